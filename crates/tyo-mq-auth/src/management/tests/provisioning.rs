//! Realms provisioned over HTTP.

use crate::effect::Effect;
use crate::json::Object;
use crate::names::RealmName;
use crate::secret::SecretHash;
use crate::testing::{NOW, PEER, at, object, settings_with, state, state_with};

fn provision(token: &str, body: &str) -> Result<Object, u16> {
    let mut state = state();
    let holder = state
        .check_provisioner(Some(token), PEER, NOW)
        .map_err(|refusal| refusal.code)?;
    let body = state
        .provision(holder, body, NOW)
        .answer
        .map_err(|refusal| refusal.code)?;
    let answer = object(&body);
    let name = RealmName::new(answer.non_empty_str("realm").unwrap()).unwrap();
    assert!(state.document().realm(name.as_str()).is_some());
    assert_eq!(
        state
            .document()
            .manager_key(name.as_str(), NOW)
            .unwrap()
            .expose(),
        "key"
    );
    assert!(!body.contains("\"key\""));
    Ok(answer)
}

fn check(token: &str, body: &str, expected: Result<(&str, &str), u16>) {
    let answer =
        provision(token, body).map(|answer| (at(&answer, "created"), at(&answer, "expires_at")));
    assert_eq!(
        answer,
        expected.map(|(created, expires)| (created.to_owned(), expires.to_owned())),
        "{body}"
    );
}

#[test]
fn provisioning() {
    let body =
        |realm: &str, more: &str| format!(r#"{{"realm":"{realm}","manager_key":"key"{more}}}"#);
    let hour = (NOW + 3_600_000).to_string();
    let minute = (NOW + 60_000).to_string();
    let day = (NOW + 24 * 3_600_000).to_string();
    check("m-org", &body("org:a", ""), Ok(("true", "null")));
    check(
        "m-org",
        r#"{"realm":"org:a","managerKey":"key"}"#,
        Ok(("true", "null")),
    );
    check(
        "m-org",
        &body("org:a", r#","disposable":true"#),
        Ok(("true", &day)),
    );
    check(
        "m-org",
        &body("org:a", r#","ttl":"1h","ephemeral":false"#),
        Ok(("true", &hour)),
    );
    check("m-apps", &body("apps:a", ""), Ok(("true", &hour)));
    check(
        "m-apps",
        &body("apps:a", r#","ephemeral":false"#),
        Ok(("true", &hour)),
    );
    check(
        "m-apps",
        &body("apps:a", r#","ttl":"1m""#),
        Ok(("true", &minute)),
    );
    check(
        "m-apps",
        &body("apps:live", r#","ttl":"rubbish""#),
        Ok(("false", &minute)),
    );
    check(
        "m-apps",
        &body("apps:live", r#","exclusive":true"#),
        Err(409),
    );
    for (realm, expected) in [
        ("acme", 403),
        ("apps:", 403),
        ("apps", 403),
        ("*", 403),
        ("default", 403),
        ("APPS:a", 403),
        ("", 400),
    ] {
        check("m-apps", &body(realm, ""), Err(expected));
    }
    for bad in [
        "",
        "{}",
        "null",
        "[]",
        "{",
        r#"{"realm":"apps:a"}"#,
        r#"{"realm":"apps:a","manager_key":""}"#,
        r#"{"realm":"apps:a","manager_key":{}}"#,
        r#"{"realm":["apps:a"],"manager_key":"key"}"#,
    ] {
        check("m-apps", bad, Err(400));
    }
    check("m-apps", &body("apps:a", r#","ttl":0"#), Err(400));
    check(
        "m-apps",
        &body("apps:a", &format!(r#","x":"{}""#, "x".repeat(64 * 1024))),
        Err(400),
    );
}

#[test]
fn who_provisions() {
    for token in ["", "wrong", "t-admin", "t-acme-both"] {
        check(token, "{}", Err(401));
    }
    for settings in [
        settings_with("enabled", "false"),
        settings_with("management_tokens", "[]"),
        settings_with(
            "management_tokens",
            r#"[{"token":"m-apps"},{"realm_prefix":"x"}]"#,
        ),
    ] {
        let mut state = state_with(&settings);
        assert_eq!(
            state
                .check_provisioner(Some("m-apps"), PEER, NOW)
                .unwrap_err()
                .code,
            404
        );
    }
    let revoked = SecretHash::of("revoked in between");
    assert_eq!(
        state()
            .provision(revoked, "{}", NOW)
            .answer
            .unwrap_err()
            .code,
        401
    );
}

/// A cap holds also for a token that may create permanent realms.
#[test]
fn caps() {
    let settings = settings_with(
        "management_tokens",
        r#"[{"token":"m","realm_prefix":"x:","max_ttl":"90s"}]"#,
    );
    let mut state = state_with(&settings);
    let holder = state.check_provisioner(Some("m"), PEER, NOW).unwrap();
    let body = state
        .provision(holder, r#"{"realm":"x:a","manager_key":"key"}"#, NOW)
        .answer
        .unwrap();
    assert_eq!(at(&object(&body), "expires_at"), (NOW + 90_000).to_string());
}

#[test]
fn provisioning_is_audited() {
    let mut state = state();
    let holder = state.check_provisioner(Some("m-org"), PEER, NOW).unwrap();
    let mut told = Vec::new();
    for realm in ["org:a", "acme"] {
        let body = format!(r#"{{"realm":"{realm}","manager_key":"key"}}"#);
        let effects = state.provision(holder, &body, NOW).effects;
        told.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::Audit(entry) => Some(entry),
            _ => None,
        }));
    }
    let trail: Vec<_> = state.audit().iter().cloned().collect();
    assert_eq!(told, trail, "what is remembered is told, too");
    let outcomes: Vec<_> = trail
        .iter()
        .map(|entry| (entry.target.as_deref(), entry.refused))
        .collect();
    assert_eq!(outcomes, [(Some("org:a"), None), (Some("acme"), Some(403))]);
}
