//! Commands about realms and their lifetimes.

use crate::document::Change;
use crate::effect::Effect;
use crate::json::Value;
use crate::management::{Answer, Execution, Question, ServerView};
use crate::names::RealmName;
use crate::testing::{
    ADMIN, NOW, at, authenticate, code, execute, object, run, settings_with, short, state,
    state_with,
};

fn check(body: &str, expected: u64) {
    let mut state = state();
    let before = Value::from(state.document().to_settings(false)).to_json();
    let answer = match execute(&mut state, ADMIN, body) {
        Ok(Execution::Done(handled)) => object(&handled.reply.payload),
        Ok(Execution::Ask { .. }) => panic!("asks: {body}"),
        Err(code) => panic!("{code}: {body}"),
    };
    assert_eq!(code(&answer), expected, "{body}");
    let after = Value::from(state.document().to_settings(false)).to_json();
    assert_eq!(before == after, expected != 200, "{body}");
}

/// A realm as it is shown after a command.
fn check_realm(secret: &str, body: &str, realm: &str, expected: &str) {
    let mut state = state();
    let (answer, _) = run(&mut state, secret, body);
    assert_eq!(code(&answer), 200, "{body}");
    assert_eq!(
        at(&answer, &format!("settings.realms.{realm}")),
        expected,
        "{body}"
    );
}

#[test]
fn adding() {
    let add = |more: &str| format!(r#"{{"command":"add_realm","realm":"new"{more}}}"#);
    check_realm(ADMIN, &add(""), "new", r#"{"required":true}"#);
    check_realm(
        ADMIN,
        &add(r#","required":false"#),
        "new",
        r#"{"required":false}"#,
    );
    check_realm(
        ADMIN,
        &add(r#","managerKey":"m","presharedKey":"k""#),
        "new",
        r#"{"required":true,"manager_key_configured":true,"key_configured":true}"#,
    );
    check_realm(
        ADMIN,
        &add(r#","require_acceptance":false,"e2ee":"required""#),
        "new",
        r#"{"required":true,"require_acceptance":false,"e2ee":"required"}"#,
    );
    check_realm(
        ADMIN,
        &add(r#","e2ee":"some","require_acceptance":null"#),
        "new",
        r#"{"required":true}"#,
    );
    let day = NOW + 24 * 3_600_000;
    for more in [
        r#","ephemeral":true"#,
        r#","temporary":true"#,
        r#","disposable":true"#,
    ] {
        check_realm(
            ADMIN,
            &add(more),
            "new",
            &format!(r#"{{"required":true,"ephemeral":true,"expires_at":{day}}}"#),
        );
    }
    let hours = NOW + 2 * 3_600_000;
    for more in [
        r#","ttl":"2h""#,
        r#","ttl":7200"#,
        r#","ttl":"2h","ephemeral":false"#,
    ] {
        check_realm(
            ADMIN,
            &add(more),
            "new",
            &format!(r#"{{"required":true,"ephemeral":true,"expires_at":{hours}}}"#),
        );
    }
    for bad in ["null", "\"\"", "0", "-1", "\"1w\"", "[]", "true", "1e400"] {
        check(&add(&format!(r#","ttl":{bad}"#)), 400);
    }
    for bad in [
        r#","required":"false""#,
        r#","required":0"#,
        r#","manager_key":{}"#,
        r#","key":["k"]"#,
        r#","ephemeral":"yes""#,
    ] {
        check(&add(bad), 400);
    }
    for name in [
        "null",
        "5",
        "\"\"",
        "{}",
        "[\"a\"]",
        "\"a\\nb\"",
        "\"\\ud800\"",
    ] {
        check(&format!(r#"{{"command":"add_realm","realm":{name}}}"#), 400);
    }
    check(r#"{"command":"add_realm","realm":"acme"}"#, 409);
    check(r#"{"command":"add_realm","realm":"default"}"#, 200);
    check(r#"{"command":"add_realm","realm":"*"}"#, 200);
    check(r#"{"command":"add_realm","realm":"*","ttl":5}"#, 400);
}

/// The reference mixes such names up with properties of all objects.
#[test]
fn names_are_just_names() {
    let mut state = state();
    for command in ["set_realm_auth", "set_realm_acceptance"] {
        for name in ["__proto__", "constructor", "hasOwnProperty"] {
            let body = format!(r#"{{"command":"{command}","realm":"{name}","required":true}}"#);
            assert_eq!(code(&run(&mut state, ADMIN, &body).0), 200);
        }
    }
    let body = r#"{"command":"set_realm_manager_key","realm":"__proto__","manager_key":"evil"}"#;
    assert_eq!(code(&run(&mut state, ADMIN, body).0), 200);
    for realm in ["beta", "free", "default", "nowhere"] {
        assert!(
            state
                .document()
                .manager_key(realm, NOW)
                .is_none_or(|key| key.expose() != "evil")
        );
    }
}

#[test]
fn removing() {
    let mut state = state();
    let body = r#"{"command":"remove_realm","realm":"acme"}"#;
    let Ok(Execution::Ask {
        effects,
        question,
        pending,
    }) = execute(&mut state, ADMIN, body)
    else {
        panic!()
    };
    assert_eq!(
        question,
        Question::ClearRealm(RealmName::new("acme").unwrap())
    );
    assert!(matches!(&effects[..], [Effect::Persist(_)]));
    assert_eq!(
        short(&authenticate(&mut state, r#"{"token":"t-acme-both"}"#).1),
        "401"
    );
    let handled = state.finish_command(
        pending,
        Answer::Value(2u64.into()),
        &ServerView::default(),
        NOW,
    );
    let answer = object(&handled.reply.payload);
    let keys: Vec<_> = answer.iter().map(|(name, _)| name.to_lossy()).collect();
    assert_eq!(
        keys,
        ["ok", "settings", "removed_tokens", "disconnected_sockets"]
    );
    assert_eq!(
        (
            at(&answer, "removed_tokens"),
            at(&answer, "disconnected_sockets")
        ),
        ("4".to_owned(), "2".to_owned())
    );
    let gone = Change::RealmRemoved(RealmName::new("acme").unwrap());
    assert!(
        handled
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Changed(changes) if changes.contains(&gone)))
    );
    for (realm, expected) in [("none", 404), ("default", 400), ("*", 400), ("", 400)] {
        check(
            &format!(r#"{{"command":"remove_realm","realm":"{realm}"}}"#),
            expected,
        );
    }
}

#[test]
fn renaming() {
    let mut state = state();
    let _ = state.request_admission(
        Some(r#"{"realm":"acme","client_id":"c","client_name":"n","client_token":"t"}"#),
        "s",
        crate::testing::PEER,
        NOW,
    );
    let body = r#"{"command":"rename_realm","from":"acme","to":"acme2"}"#;
    let Ok(Execution::Ask {
        effects,
        question,
        pending,
    }) = execute(&mut state, ADMIN, body)
    else {
        panic!()
    };
    let [from, to] = ["acme", "acme2"].map(|name| RealmName::new(name).unwrap());
    assert_eq!(
        question,
        Question::RenameRealm {
            from: from.clone(),
            to: to.clone()
        }
    );
    assert_eq!(effects, []);
    assert!(
        state.document().realm("acme").is_some(),
        "nothing changes before the messages have moved"
    );
    let handled = state.finish_command(
        pending,
        Answer::Value(3u64.into()),
        &ServerView::default(),
        NOW,
    );
    assert_eq!(at(&object(&handled.reply.payload), "moved_sockets"), "3");
    assert_eq!(
        short(&authenticate(&mut state, r#"{"token":"t-acme-both"}"#).1),
        "acme2 both"
    );
    assert!(state.document().realm("acme").is_none());
    assert!(state.document().manager_key("acme2", NOW).is_some());
    assert!(state.requests().pending(Some(&to), NOW).next().is_some());
    assert!(
        handled
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::KeepRequest { .. }))
    );
    for (from, to, expected) in [
        ("none", "x", 404),
        ("acme", "beta", 409),
        ("default", "x", 400),
        ("*", "x", 400),
        ("acme", "*", 400),
        ("acme", "", 400),
        ("", "x", 400),
    ] {
        check(
            &format!(r#"{{"command":"rename_realm","from":"{from}","to":"{to}"}}"#),
            expected,
        );
    }
}

#[test]
fn renaming_that_fails_changes_nothing() {
    let mut state = state();
    let body = r#"{"command":"rename_realm","from":"acme","to":"acme2"}"#;
    let Ok(Execution::Ask { pending, .. }) = execute(&mut state, ADMIN, body) else {
        panic!()
    };
    let refusal = crate::Refusal::new(503, "the store is down");
    let handled = state.finish_command(
        pending,
        Answer::Refused(refusal),
        &ServerView::default(),
        NOW,
    );
    assert_eq!(code(&object(&handled.reply.payload)), 503);
    assert!(state.document().realm("acme").is_some() && state.document().realm("acme2").is_none());
}

#[test]
fn settings_of_a_realm() {
    let set = |command: &str, realm: &str, more: &str| {
        format!(r#"{{"command":"{command}","realm":"{realm}"{more}}}"#)
    };
    check_realm(
        ADMIN,
        &set("set_realm_auth", "acme", r#","required":false"#),
        "acme",
        r#"{"required":false,"manager_key_configured":true}"#,
    );
    check_realm(
        ADMIN,
        &set("set_realm_auth", "new", r#","required":true"#),
        "new",
        r#"{"required":true}"#,
    );
    check_realm(
        ADMIN,
        &set("set_realm_acceptance", "new", r#","required":false"#),
        "new",
        r#"{"require_acceptance":false}"#,
    );
    check_realm(
        ADMIN,
        &set("set_realm_anonymous", "new", r#","allowed":true"#),
        "new",
        r#"{"allow_anonymous":true}"#,
    );
    check_realm(
        ADMIN,
        &set("set_realm_e2ee", "new", r#","policy":"required""#),
        "new",
        r#"{"e2ee":"required"}"#,
    );
    check_realm(
        ADMIN,
        &set("set_realm_e2ee", "new", r#","e2ee":"off""#),
        "new",
        "{}",
    );
    for command in [
        "set_realm_auth",
        "set_realm_acceptance",
        "set_realm_anonymous",
    ] {
        for more in [
            "",
            r#","required":"false","allowed":"true""#,
            r#","required":1"#,
            r#","required":null"#,
        ] {
            check(&set(command, "acme", more), 400);
        }
    }
    check(
        &set("set_realm_e2ee", "acme", r#","e2ee":"sometimes""#),
        400,
    );
    check(&set("set_realm_e2ee", "acme", ""), 400);
}

#[test]
fn keys() {
    let set = |command: &str, realm: &str, more: &str| {
        format!(r#"{{"command":"{command}","realm":"{realm}"{more}}}"#)
    };
    check_realm(
        ADMIN,
        &set("set_realm_manager_key", "free", r#","managerKey":"m""#),
        "free",
        r#"{"required":true,"require_acceptance":false,"manager_key_configured":true}"#,
    );
    check_realm(
        ADMIN,
        &set("set_realm_manager_key", "acme", ""),
        "acme",
        r#"{"required":true}"#,
    );
    check_realm(
        ADMIN,
        &set("set_realm_key", "acme", r#","key":"k""#),
        "acme",
        r#"{"required":true,"manager_key_configured":true,"key_configured":true}"#,
    );
    check_realm(
        ADMIN,
        &set("set_realm_key", "shop", ""),
        "shop",
        r#"{"required":true,"require_acceptance":true}"#,
    );
    check_realm(
        ADMIN,
        &set("set_realm_key", "shop", r#","key":null,"require_key":true"#),
        "shop",
        r#"{"required":true,"require_acceptance":true,"require_key":true}"#,
    );
    check_realm(
        ADMIN,
        &set("set_realm_key", "shop", r#","require_key":false"#),
        "shop",
        r#"{"required":true,"require_acceptance":true,"require_key":false,"key_configured":true}"#,
    );
    for command in ["set_realm_manager_key", "set_realm_key"] {
        check(
            &set(command, "none", r#","key":"k","manager_key":"m""#),
            404,
        );
        check(&set(command, "acme", r#","key":{},"manager_key":5"#), 400);
    }
}

/// Keys under other spellings are cleared too.
#[test]
fn spellings() {
    let mut state = state_with(&settings_with(
        "realms",
        r#"{"r":{"managerKey":"m","presharedKey":"k"}}"#,
    ));
    let _ = run(
        &mut state,
        ADMIN,
        r#"{"command":"set_realm_manager_key","realm":"r"}"#,
    );
    let _ = run(
        &mut state,
        ADMIN,
        r#"{"command":"set_realm_key","realm":"r"}"#,
    );
    assert!(state.document().manager_key("r", NOW).is_none());
    assert!(!state.document().is_key_required("r"));
}

#[test]
fn keys_are_kept_as_digests() {
    let mut state = state();
    let _ = run(
        &mut state,
        ADMIN,
        r#"{"command":"set_realm_key","realm":"acme","key":"new-secret-key"}"#,
    );
    let stored = Value::from(state.document().to_settings(false)).to_json();
    assert!(!stored.contains("new-secret-key") && stored.contains("key_hash"));
    let consumer = |key: &str| format!(r#"{{"realm":"acme","role":"consumer","key":"{key}"}}"#);
    assert_eq!(
        short(&authenticate(&mut state, &consumer("new-secret-key")).1),
        "acme consumer"
    );
    assert_eq!(
        short(&authenticate(&mut state, &consumer("other")).1),
        "401"
    );
    let hash = crate::secret::SecretHash::of("new-secret-key").to_hex();
    assert_eq!(short(&authenticate(&mut state, &consumer(&hash)).1), "401");
}

/// What a realm's manager sees is the realm.
#[test]
fn managers_answers() {
    let mut state = state();
    let (answer, _) = run(
        &mut state,
        "mk-acme",
        r#"{"command":"set_realm_key","realm":"acme","key":"k"}"#,
    );
    let expected = r#"{"ok":true,"realm":"acme","settings":{"realms":{"acme":{"required":true,"manager_key_configured":true,"key_configured":true}}}}"#;
    assert_eq!(Value::from(answer).to_json(), expected);
    let (answer, _) = run(
        &mut state,
        "mk-acme",
        r#"{"command":"set_realm_acceptance","realm":"acme"}"#,
    );
    assert_eq!(code(&answer), 400);
}

#[test]
fn lifetimes() {
    let set = |realm: &str, more: &str| {
        format!(r#"{{"command":"set_realm_lifetime","realm":"{realm}"{more}}}"#)
    };
    let acme = |ttl: u64| {
        format!(
            r#"{{"required":true,"ephemeral":true,"expires_at":{},"manager_key_configured":true}}"#,
            NOW + ttl
        )
    };
    let permanent = r#"{"required":true,"manager_key_configured":true}"#;
    check_realm(ADMIN, &set("acme", ""), "acme", &acme(24 * 3_600_000));
    check_realm(ADMIN, &set("acme", r#","ttl":"250ms""#), "acme", &acme(250));
    check_realm(
        ADMIN,
        &set("acme", r#","temporary":true,"ttl":5"#),
        "acme",
        &acme(5000),
    );
    check_realm(
        ADMIN,
        &set("acme", r#","ephemeral":false"#),
        "acme",
        permanent,
    );
    check_realm(
        "mk-acme",
        &set("acme", r#","ephemeral":false"#),
        "acme",
        permanent,
    );
    check_realm(
        "mk-acme",
        &set("acme", r#","ttl":"30d""#),
        "acme",
        &acme(30 * 24 * 3_600_000),
    );
    for more in [r#","ttl":null"#, r#","ttl":"x""#, r#","ephemeral":"false""#] {
        check(&set("acme", more), 400);
    }
    check(&set("none", ""), 404);
    check(&set("default", ""), 400);
    check(&set("*", ""), 400);
}

/// What the owner's token allows binds the realm's manager, not the admin.
#[test]
fn lifetimes_under_a_prefix() {
    let set =
        |more: &str| format!(r#"{{"command":"set_realm_lifetime","realm":"apps:live"{more}}}"#);
    let live = |ttl: u64| {
        format!(
            r#"{{"required":true,"ephemeral":true,"expires_at":{},"manager_key_configured":true}}"#,
            NOW + ttl
        )
    };
    let shown = "apps:live";
    check_realm("mk-live", &set(r#","ttl":"5h""#), shown, &live(3_600_000));
    check_realm("mk-live", &set(""), shown, &live(3_600_000));
    check_realm(
        "mk-live",
        &set(r#","ephemeral":false"#),
        shown,
        &live(3_600_000),
    );
    check_realm("mk-live", &set(r#","ttl":"1500ms""#), shown, &live(2000));
    check_realm(ADMIN, &set(r#","ttl":"5h""#), shown, &live(5 * 3_600_000));
    check_realm(
        ADMIN,
        &set(r#","ephemeral":false"#),
        shown,
        r#"{"required":true,"manager_key_configured":true}"#,
    );
}

#[test]
fn realms_end_by_themselves() {
    let mut state = state();
    assert_eq!(state.deadline_ms(), Some(NOW - 1));
    let effects = state.on_deadline(NOW);
    assert!(effects.contains(&Effect::ClearRealm(RealmName::new("gone").unwrap())));
    assert!(state.document().realm("gone").is_none());
    assert_eq!(state.deadline_ms(), Some(NOW + 60_000));
    assert_eq!(state.on_deadline(NOW + 59_999), []);
    let effects = state.on_deadline(NOW + 60_000);
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Persist(_)))
    );
    assert_eq!(state.deadline_ms(), None);
    let last = state.audit().iter().next_back().unwrap();
    assert_eq!(
        (last.action.as_str(), last.target.as_deref()),
        ("end_realm", Some("apps:live"))
    );
}

#[test]
fn trying_out() {
    let mut state = state();
    for (body, changes) in [
        (
            r#"{"command":"add_realm","realm":"new","dry_run":true}"#,
            r#"["set realm new"]"#,
        ),
        (
            r#"{"command":"remove_realm","realm":"acme","dry_run":true}"#,
            r#"["remove realm acme"]"#,
        ),
        (
            r#"{"command":"rename_realm","from":"acme","to":"b","dry_run":true}"#,
            r#"["rename realm acme to b"]"#,
        ),
        (
            r#"{"command":"set_global_auth","enabled":false,"dry_run":true}"#,
            r#"["set auth.enabled"]"#,
        ),
    ] {
        let before = Value::from(state.document().to_settings(false)).to_json();
        let (answer, effects) = run(&mut state, ADMIN, body);
        assert_eq!(
            (
                code(&answer),
                at(&answer, "changes"),
                at(&answer, "dry_run")
            ),
            (200, changes.to_owned(), "true".to_owned())
        );
        assert!(matches!(&effects[..], [Effect::Audit(entry)] if entry.is_dry_run));
        assert_eq!(
            Value::from(state.document().to_settings(false)).to_json(),
            before
        );
    }
    check(
        r#"{"command":"add_realm","realm":"acme","dry_run":true}"#,
        409,
    );
    check(r#"{"command":"add_realm","realm":"x","dry_run":"no"}"#, 400);
}
