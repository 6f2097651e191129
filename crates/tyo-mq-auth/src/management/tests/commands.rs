//! Commands about tokens, validators, the block as a whole, and those that the broker answers.

use proptest::prelude::*;

use crate::effect::Effect;
use crate::json::{Object, Value};
use crate::management::{Answer, Execution, Question, ServerView};
use crate::secret::SecretHash;
use crate::state::AuthState;
use crate::testing::{
    ADMIN, NOW, PEER, at, authenticate, code, execute, object, run, settings_with, short, state,
    state_with,
};

fn check(body: &str, expected: u64) {
    let (answer, _) = run(&mut state(), ADMIN, body);
    assert_eq!(code(&answer), expected, "{body}");
}

#[test]
fn unknown_commands() {
    for body in [
        "{}",
        r#"{"command":"no_such_command"}"#,
        r#"{"command":null}"#,
        r#"{"command":["get"]}"#,
        r#"{"command":"GET"}"#,
        r#"{"command":"__proto__"}"#,
    ] {
        check(body, 400);
    }
}

#[test]
fn get() {
    let settings = r#"{
        "enabled": true, "auto_admin_token": false, "jwt_secret": "js", "auth_url": "http://x/",
        "realms": {"r": {"required": true, "auth_url": "http://q/", "manager_key": "m", "key": "k", "auth_secret": "s"}},
        "tokens": [{"token": "t-admin", "realm": "*", "role": "admin", "note": "free-form"}],
        "management_tokens": [{"token": "mt", "realm_prefix": "p:", "ephemeral_only": true, "max_ttl": "1h"}],
        "external_validators": [{"realm_prefix": "z:", "auth_url": "http://z/", "auth_secret": "zs"}]
    }"#;
    let (answer, effects) = run(&mut state_with(settings), ADMIN, r#"{"command":"get"}"#);
    let expected = r#"{"enabled":true,"auto_admin_token":false,"jwt_secret":"<configured>","auth_url":"http://x/","realms":{"r":{"required":true,"auth_url":"http://q/","manager_key_configured":true,"key_configured":true,"auth_secret_configured":true}},"tokens":[{"realm":"*","role":"admin","client_id":null,"client_name":null,"token_hash":"ADMIN"}],"management_tokens":[{"realm_prefix":"p:","token_hash":"PROVISIONER","ephemeral_only":true,"max_ttl":"1h"}],"external_validators":[{"realm_prefix":"z:","auth_url":"http://z/","auth_secret_configured":true}],"persistence":{"storage":"memory","storage_options":{}},"namespaces":{"/remote":{"module":"built-in"}}}"#;
    let expected = expected
        .replace("ADMIN", &SecretHash::of("t-admin").to_hex())
        .replace("PROVISIONER", &SecretHash::of("mt").to_hex());
    assert_eq!(at(&answer, "settings"), expected);
    assert_eq!(effects, [], "reading leaves no trace");
}

#[test]
fn answers_hold_no_secrets() {
    let settings = settings_with(
        "orgs",
        r#"{"o":{"client_secret":"leak-1","name":"n","password":"leak-2"}}"#,
    );
    let mut state = state_with(&settings);
    let view = ServerView {
        storage_options: object(r#"{"url":"redis://user:leak-3@host:6379/0","password":"leak-4"}"#),
        ..ServerView::default()
    };
    let payload = crate::testing::signed(
        ADMIN,
        crate::SignedEvent::Manage,
        r#"{"command":"get"}"#,
        "x",
    );
    let verified = state
        .verify(crate::SignedEvent::Manage, Some(&payload), PEER, NOW)
        .unwrap();
    let Execution::Done(handled) = state.execute_command(verified, &view, NOW) else {
        panic!()
    };
    for secret in [
        "leak-",
        "t-admin",
        "t-acme",
        "mk-",
        "shop-key",
        "keyed-key",
        "m-apps",
        "global-jwt",
    ] {
        assert!(!handled.reply.payload.contains(secret), "{secret}");
    }
    assert!(
        handled
            .reply
            .payload
            .contains("redis://user:<configured>@host:6379/0")
    );
    assert!(handled.reply.payload.contains(r#""name":"n""#));
}

#[test]
fn switches() {
    let mut state = state();
    for (body, path, expected) in [
        (
            r#"{"command":"set_global_auth","enabled":false}"#,
            "settings.enabled",
            "false",
        ),
        (
            r#"{"command":"set_strict_auth","strict":true}"#,
            "settings.strict",
            "true",
        ),
        (
            r#"{"command":"set_jwt_secret","jwt_secret":"new"}"#,
            "settings.jwt_secret",
            r#""<configured>""#,
        ),
        (
            r#"{"command":"set_jwt_secret"}"#,
            "settings.jwt_secret",
            "null",
        ),
    ] {
        let (answer, effects) = run(&mut state, ADMIN, body);
        assert_eq!(
            (code(&answer), at(&answer, path)),
            (200, expected.to_owned()),
            "{body}"
        );
        assert!(effects.contains(&Effect::Persist(vec![crate::RowChange::Fields])));
    }
    for body in [
        r#"{"command":"set_global_auth"}"#,
        r#"{"command":"set_global_auth","enabled":"false"}"#,
        r#"{"command":"set_global_auth","enabled":0}"#,
        r#"{"command":"set_strict_auth"}"#,
        r#"{"command":"set_jwt_secret","jwt_secret":{}}"#,
    ] {
        check(body, 400);
    }
}

fn external(state: &mut AuthState, fields: &str) -> Object {
    let (answer, _) = run(
        state,
        ADMIN,
        &format!(r#"{{"command":"set_external_auth"{fields}}}"#),
    );
    assert_eq!(code(&answer), 200, "{fields}");
    answer
}

#[test]
fn validators_of_a_realm() {
    let mut state = state();
    let realm = |answer: &Object| {
        (
            at(answer, "settings.realms.free.auth_url"),
            at(answer, "settings.realms.free.auth_secret_configured"),
        )
    };
    let is = |url: &str, secret: &str| (url.to_owned(), secret.to_owned());
    let answer = external(
        &mut state,
        r#","realm":"free","auth_url":"http://a/","auth_secret":"s""#,
    );
    assert_eq!(realm(&answer), is(r#""http://a/""#, "true"));
    let answer = external(&mut state, r#","realm":"free","auth_url":"http://b/""#);
    assert_eq!(
        realm(&answer),
        is(r#""http://b/""#, "true"),
        "the secret is kept"
    );
    let answer = external(
        &mut state,
        r#","realm":"free","auth_url":"http://b/","auth_secret":"""#,
    );
    assert_eq!(realm(&answer), is(r#""http://b/""#, "null"));
    let _ = external(
        &mut state,
        r#","realm":"free","auth_url":"http://b/","auth_secret":"s""#,
    );
    let answer = external(&mut state, r#","realm":"free","auth_url":"""#);
    assert_eq!(realm(&answer), is("null", "null"));
}

#[test]
fn validators_by_prefix_and_for_all() {
    let mut state = state();
    let path = "settings.external_validators";
    let answer = external(
        &mut state,
        r#","realm_prefix":"a:","auth_url":"http://a/","auth_secret":"s""#,
    );
    assert_eq!(
        at(&answer, path),
        r#"[{"realm_prefix":"a:","auth_url":"http://a/","auth_secret_configured":true}]"#
    );
    let answer = external(&mut state, r#","realm_prefix":"a:","auth_url":"http://b/""#);
    assert_eq!(
        at(&answer, path),
        r#"[{"realm_prefix":"a:","auth_url":"http://b/","auth_secret_configured":true}]"#
    );
    let answer = external(
        &mut state,
        r#","realm_prefix":"a:","auth_url":"http://b/","auth_secret":"""#,
    );
    assert_eq!(
        at(&answer, path),
        r#"[{"realm_prefix":"a:","auth_url":"http://b/","auth_secret_configured":false}]"#
    );
    let answer = external(&mut state, r#","realm_prefix":"a:""#);
    assert_eq!(at(&answer, path), "[]");
    let answer = external(&mut state, r#","auth_url":"https://g/","auth_secret":"s""#);
    assert_eq!(
        (
            at(&answer, "settings.auth_url"),
            at(&answer, "settings.auth_secret")
        ),
        (r#""https://g/""#.to_owned(), r#""<configured>""#.to_owned())
    );
    let answer = external(&mut state, r#","auth_url":null"#);
    assert_eq!(
        (
            at(&answer, "settings.auth_url"),
            at(&answer, "settings.auth_secret")
        ),
        ("null".to_owned(), r#""<configured>""#.to_owned()),
        "the secret is kept"
    );
    for url in [
        "nonsense",
        "http://",
        "ftp://x/",
        "file:///etc/passwd",
        "http://a b/",
        "javascript:x",
    ] {
        check(
            &format!(r#"{{"command":"set_external_auth","auth_url":"{url}"}}"#),
            400,
        );
    }
    check(
        r#"{"command":"set_external_auth","auth_url":"http://x/","realm":"acme","realm_prefix":"a:"}"#,
        400,
    );
    check(
        r#"{"command":"set_external_auth","auth_url":"http://x/","realm":"none"}"#,
        404,
    );
}

#[test]
fn adding_and_revoking_tokens() {
    let mut state = state();
    let add = r#"{"command":"add_token","token":"fresh","realm":"acme","role":"producer","client_id":"c9"}"#;
    let (answer, _) = run(&mut state, ADMIN, add);
    assert_eq!(
        at(&answer, "added.token_hash"),
        format!("\"{}\"", SecretHash::of("fresh").to_hex())
    );
    assert_eq!(
        short(&authenticate(&mut state, r#"{"token":"fresh"}"#).1),
        "acme producer"
    );
    assert_eq!(code(&run(&mut state, ADMIN, add).0), 409);
    let selectors = [
        r#""token":"fresh""#.to_owned(),
        format!(r#""token_hash":"{}""#, SecretHash::of("fresh").to_hex()),
        format!(
            r#""tokenHash":"{}""#,
            SecretHash::of("fresh").to_hex().to_uppercase()
        ),
        r#""realm":"acme","client_id":"c9""#.to_owned(),
        r#""realm":"acme","clientId":"c9""#.to_owned(),
    ];
    for selector in selectors {
        let revoke = format!(r#"{{"command":"revoke_token",{selector}}}"#);
        let (answer, effects) = run(&mut state, ADMIN, &revoke);
        assert_eq!(at(&answer, "revoked.0.client_id"), r#""c9""#);
        let change = Effect::Changed(vec![crate::Change::Token(SecretHash::of("fresh"))]);
        assert!(effects.contains(&change));
        assert_eq!(
            short(&authenticate(&mut state, r#"{"token":"fresh"}"#).1),
            "401"
        );
        assert_eq!(code(&run(&mut state, ADMIN, &revoke).0), 404);
        assert_eq!(code(&run(&mut state, ADMIN, add).0), 200);
    }
    for body in [
        r#"{"command":"revoke_token"}"#,
        r#"{"command":"revoke_token","realm":"acme"}"#,
        r#"{"command":"revoke_token","client_id":"c1"}"#,
        r#"{"command":"revoke_token","token_hash":"xyz"}"#,
        r#"{"command":"revoke_token","token":{}}"#,
        r#"{"command":"add_token","realm":"acme"}"#,
        r#"{"command":"add_token","token":"x"}"#,
        r#"{"command":"add_token","token":"x","realm":"acme","role":"emperor"}"#,
    ] {
        check(body, 400);
    }
}

#[test]
fn admins_tokens() {
    let mut state = state();
    let revoke = r#"{"command":"revoke_token","token":"t-admin"}"#;
    assert_eq!(code(&run(&mut state, ADMIN, revoke).0), 404);
    let revoke = r#"{"command":"revoke_token","token":"t-admin","allow_admin":true}"#;
    assert_eq!(
        code(&run(&mut state, ADMIN, revoke).0),
        409,
        "somebody must be left"
    );
    let add = r#"{"command":"add_token","token":"second","realm":"*","role":"admin"}"#;
    assert_eq!(code(&run(&mut state, ADMIN, add).0), 200);
    assert_eq!(code(&run(&mut state, "second", revoke).0), 200);
    assert_eq!(code(&run(&mut state, ADMIN, r#"{"command":"get"}"#).0), 401);
    check(
        r#"{"command":"revoke_token","token":"t-admin","allow_admin":"yes"}"#,
        400,
    );
}

#[test]
fn management_tokens() {
    let mut state = state();
    let add = r#"{"command":"add_management_token","token":"m9","realm_prefix":"q:","ephemeralOnly":true,"maxTtl":"2h"}"#;
    let (answer, _) = run(&mut state, ADMIN, add);
    assert_eq!(
        at(&answer, "settings.management_tokens.2"),
        format!(
            r#"{{"realm_prefix":"q:","token_hash":"{}","ephemeral_only":true,"max_ttl":"2h"}}"#,
            SecretHash::of("m9").to_hex()
        )
    );
    assert_eq!(code(&run(&mut state, ADMIN, add).0), 409);
    assert!(state.check_provisioner(Some("m9"), PEER, NOW).is_ok());
    assert!(
        !Value::from(state.document().to_settings(false))
            .to_json()
            .contains("m9")
    );
    let revoke = format!(
        r#"{{"command":"revoke_management_token","token_hash":"{}"}}"#,
        SecretHash::of("m9").to_hex()
    );
    assert_eq!(code(&run(&mut state, ADMIN, &revoke).0), 200);
    assert_eq!(code(&run(&mut state, ADMIN, &revoke).0), 404);
    assert!(state.check_provisioner(Some("m9"), PEER, NOW).is_err());
    for body in [
        r#"{"command":"revoke_management_token"}"#,
        r#"{"command":"add_management_token","token":"x"}"#,
        r#"{"command":"add_management_token","realm_prefix":"x"}"#,
        r#"{"command":"add_management_token","token":"x","realm_prefix":"q:","max_ttl":"x"}"#,
        r#"{"command":"add_management_token","token":"x","realm_prefix":"q:","ephemeral_only":"no"}"#,
    ] {
        check(body, 400);
    }
}

#[test]
fn hashing_what_is_there() {
    let mut state = state();
    let (answer, _) = run(&mut state, ADMIN, r#"{"command":"hash_tokens"}"#);
    assert_eq!(at(&answer, "hashed"), "7");
    let stored = Value::from(state.document().to_settings(false)).to_json();
    assert!(!stored.contains("t-acme-both") && stored.contains("t-admin"));
    assert_eq!(
        short(&authenticate(&mut state, r#"{"token":"t-acme-both"}"#).1),
        "acme both"
    );
    assert_eq!(code(&run(&mut state, ADMIN, r#"{"command":"get"}"#).0), 200);
}

#[test]
fn lists() {
    let mut state = state();
    let _ = state.request_admission(
        Some(r#"{"realm":"acme","client_id":"c","client_name":"n","client_token":"t"}"#),
        "s",
        PEER,
        NOW,
    );
    let mut list =
        |secret: &str, body: &str, path: &str| at(&run(&mut state, secret, body).0, path);
    assert_eq!(
        list(
            ADMIN,
            r#"{"command":"list_requests"}"#,
            "requests.0.client_id"
        ),
        r#""c""#
    );
    assert_eq!(
        list(
            ADMIN,
            r#"{"command":"list_requests","realm":"beta"}"#,
            "total"
        ),
        "0"
    );
    assert_eq!(
        list(
            "mk-acme",
            r#"{"command":"list_requests","realm":"acme"}"#,
            "total"
        ),
        "1"
    );
    assert_eq!(
        list(
            "mk-beta",
            r#"{"command":"list_requests","realm":"beta"}"#,
            "total"
        ),
        "0"
    );
    assert_eq!(
        list(
            ADMIN,
            r#"{"command":"list_tokens","realm":"acme"}"#,
            "total"
        ),
        "4"
    );
    assert_eq!(
        list(
            ADMIN,
            r#"{"command":"list_tokens","offset":1,"limit":1}"#,
            "tokens.0.client_id"
        ),
        r#""c1""#
    );
    assert_eq!(
        list(
            ADMIN,
            r#"{"command":"list_realms","prefix":"apps:"}"#,
            "realms.0.realm"
        ),
        r#""apps:live""#
    );
    for bad in [
        r#""limit":-1"#,
        r#""limit":1.5"#,
        r#""limit":1001"#,
        r#""limit":"1""#,
        r#""offset":1e400"#,
        r#""realm":5"#,
    ] {
        assert_eq!(
            code(
                &run(
                    &mut state,
                    ADMIN,
                    &format!(r#"{{"command":"list_tokens",{bad}}}"#)
                )
                .0
            ),
            400
        );
    }
}

#[test]
fn the_audit_trail() {
    let mut state = state();
    let _ = run(
        &mut state,
        ADMIN,
        r#"{"command":"add_realm","realm":"new","manager_key":"secret-key"}"#,
    );
    let _ = run(
        &mut state,
        ADMIN,
        r#"{"command":"add_realm","realm":"new","manager_key":"secret-key"}"#,
    );
    let _ = run(
        &mut state,
        ADMIN,
        r#"{"command":"revoke_token","token":"secret-token"}"#,
    );
    let _ = run(
        &mut state,
        "mk-acme",
        r#"{"command":"set_realm_key","realm":"acme","key":"secret-key"}"#,
    );
    let _ = run(&mut state, ADMIN, r#"{"command":"drop\u0000 tables"}"#);
    let (answer, _) = run(&mut state, ADMIN, r#"{"command":"audit"}"#);
    let text = at(&answer, "entries");
    assert!(!text.contains("secret") && !text.contains("tables"));
    let actor = SecretHash::of(ADMIN).short();
    assert_eq!(
        at(&answer, "entries.4"),
        format!(
            r#"{{"at":"2025-10-09T08:53:20.000Z","actor":"admin {actor}","action":"add_realm","target":"new","ok":true}}"#
        )
    );
    assert_eq!(
        (at(&answer, "entries.3.code"), at(&answer, "entries.2.code")),
        ("409".to_owned(), "404".to_owned())
    );
    assert_eq!(at(&answer, "entries.1.actor"), r#""manager of acme""#);
    for _ in 0..1100 {
        let _ = run(&mut state, ADMIN, r#"{"command":"no"}"#);
    }
    assert_eq!(state.audit().iter().count(), crate::audit::MAX_ENTRIES);
}

fn ask(body: &str, answer: Answer) -> (Question, bool, String, &'static str) {
    let mut state = state();
    let Ok(Execution::Ask {
        question, pending, ..
    }) = execute(&mut state, ADMIN, body)
    else {
        panic!("{body}")
    };
    let handled = state.finish_command(pending, answer, &ServerView::default(), NOW);
    (
        question,
        handled.reply.is_ok,
        handled.reply.payload,
        handled.reply.event,
    )
}

#[test]
fn questions_for_the_broker() {
    let (question, _, payload, event) = ask(
        r#"{"command":"stats"}"#,
        Answer::Value(object(r#"{"realms":{}}"#).into()),
    );
    assert_eq!(
        (question, &*payload, event),
        (
            Question::Stats,
            r#"{"ok":true,"stats":{"realms":{}}}"#,
            "AUTH_MANAGEMENT_RESULT"
        )
    );
    let (question, _, payload, _) = ask(
        r#"{"command":"dlq_list","realm":null}"#,
        Answer::Value(Value::List(Vec::new())),
    );
    assert_eq!(
        (question, &*payload),
        (
            Question::DlqList { realm: None },
            r#"{"ok":true,"realm":null,"entries":[]}"#
        )
    );
    let (_, _, payload, _) = ask(
        r#"{"command":"dlq_list","realm":"acme"}"#,
        Answer::Value(Value::List(Vec::new())),
    );
    assert_eq!(payload, r#"{"ok":true,"realm":"acme","entries":[]}"#);
    for id in ["msg_id", "msgId", "id"] {
        let (_, _, payload, _) = ask(
            &format!(r#"{{"command":"dlq_replay","{id}":"m1"}}"#),
            Answer::Value("m2".into()),
        );
        assert_eq!(payload, r#"{"ok":true,"msg_id":"m1","new_msg_id":"m2"}"#);
    }
    let (_, _, payload, _) = ask(r#"{"command":"dlq_discard","id":"m1"}"#, Answer::Done);
    assert_eq!(payload, r#"{"ok":true,"msg_id":"m1"}"#);
    let missing = crate::Refusal::new(404, "none");
    let (_, is_ok, payload, event) = ask(
        r#"{"command":"dlq_replay","id":"m1"}"#,
        Answer::Refused(missing.clone()),
    );
    assert_eq!(
        (is_ok, &*payload, event),
        (
            false,
            r#"{"ok":false,"code":404,"message":"none"}"#,
            "AUTH_MANAGEMENT_FAIL"
        )
    );
    let mut state = state();
    let body = r#"{"command":"stats"}"#;
    let Ok(Execution::Ask { pending, .. }) = execute(&mut state, ADMIN, body) else {
        panic!("stats are the broker's");
    };
    let answer = Answer::Refused(missing.clone());
    let handled = state.finish_command(pending, answer, &ServerView::default(), NOW);
    let refusal = state.audit().iter().next_back().cloned();
    assert_eq!(
        handled.effects,
        [Effect::Audit(refusal.expect("a refusal is remembered"))]
    );
    let (_, is_ok, _, event) = ask(
        r#"{"command":"disconnect_client","socket":"s1"}"#,
        Answer::Refused(missing),
    );
    assert_eq!((is_ok, event), (false, "AUTH_MANAGEMENT_RESULT"));
    let (question, ..) = ask(
        r#"{"command":"list_clients","realm":"acme","limit":5}"#,
        Answer::Value(Value::List(Vec::new())),
    );
    assert!(matches!(
        question,
        Question::ListClients {
            realm: Some(_),
            offset: 0,
            limit: 5
        }
    ));
    let (_, _, payload, _) = ask(
        r#"{"command":"get_limits"}"#,
        Answer::Value(Object::new().into()),
    );
    assert_eq!(payload, r#"{"ok":true,"limits":{}}"#);
    for body in [
        r#"{"command":"dlq_replay"}"#,
        r#"{"command":"dlq_discard","id":5}"#,
        r#"{"command":"dlq_list","realm":{}}"#,
        r#"{"command":"disconnect_client"}"#,
        r#"{"command":"reload_settings"}"#,
    ] {
        check(body, 400);
    }
    check(r#"{"command":"backup_auth_store","path":"b.sqlite"}"#, 501);
}

#[test]
fn limits() {
    let (question, ..) = ask(
        r#"{"command":"set_limits","realm":"acme","limits":{"messages_per_second":5,"bytes_burst":null}}"#,
        Answer::Done,
    );
    assert!(
        matches!(question, Question::SetLimits { realm: Some(_), limits } if limits.len() == 2)
    );
    for bad in [
        "",
        r#","limits":[]"#,
        r#","limits":{"nope":1}"#,
        r#","limits":{"messages_per_second":"5"}"#,
        r#","limits":{"messages_per_second":-1}"#,
        r#","limits":{"message_burst":1e400}"#,
        r#","realm":"acme","limits":{"max_connections_per_ip":5}"#,
    ] {
        check(&format!(r#"{{"command":"set_limits"{bad}}}"#), 400);
    }
}

#[test]
fn persistence() {
    let mut view = ServerView::default();
    let (question, is_ok, ..) = ask(
        r#"{"command":"set_persistence","backend":"Redis","url":"redis://unreachable/","prefix":"p","default_ttl":60,"options":{"x":1}}"#,
        Answer::Done,
    );
    let options = object(r#"{"x":1,"default_ttl":60,"url":"redis://unreachable/","prefix":"p"}"#);
    assert!(is_ok);
    assert_eq!(
        question,
        Question::SetPersistence {
            storage: "redis",
            options
        }
    );
    let (question, ..) = ask(r#"{"command":"set_persistence"}"#, Answer::Done);
    assert!(matches!(
        question,
        Question::SetPersistence {
            storage: "memory",
            ..
        }
    ));
    check(
        r#"{"command":"set_persistence","storage":"custom","module":"./x.js"}"#,
        501,
    );
    for bad in [
        r#""storage":"tape""#,
        r#""default_ttl":"x""#,
        r#""default_ttl":0"#,
        r#""options":[]"#,
    ] {
        check(&format!(r#"{{"command":"set_persistence",{bad}}}"#), 400);
    }
    for path in ["/etc/cron.d/x", "../x", "a/../../x", "a\\u0000b"] {
        check(
            &format!(r#"{{"command":"set_persistence","storage":"sqlite","filename":"{path}"}}"#),
            400,
        );
        for option in crate::FILE_OPTIONS {
            check(
                &format!(
                    r#"{{"command":"set_persistence","storage":"redis","options":{{"url":"redis://h/","{option}":"{path}"}}}}"#
                ),
                400,
            );
        }
    }
    view.data_dir = Some("/var/lib/mq".into());
    let mut state = state();
    for (path, is_good) in [
        ("queue.sqlite", true),
        ("/var/lib/mq/q", true),
        ("/var/lib/mq/../x", false),
        ("/var/lib/mqx", false),
    ] {
        let body = format!(r#"{{"command":"set_persistence","storage":"sqlite","path":"{path}"}}"#);
        let payload = crate::testing::signed(ADMIN, crate::SignedEvent::Manage, &body, path);
        let verified = state
            .verify(crate::SignedEvent::Manage, Some(&payload), PEER, NOW)
            .unwrap();
        let asked = matches!(
            state.execute_command(verified, &view, NOW),
            Execution::Ask { .. }
        );
        assert_eq!(asked, is_good, "{path}");
    }
}

proptest! {
    /// Whatever an admin sends, commands answer, and what is refused has changed nothing.
    #[test]
    fn any_fields(command in "[a-z_]{0,20}|add_realm|set_realm_key|rename_realm|set_limits|set_external_auth|revoke_token|add_token|set_persistence|add_management_token|set_realm_lifetime",
                  realm in ".{0,10}|acme", value in ".{0,10}", number in any::<f64>()) {
        let mut state = state();
        let body = Object::new()
            .with("command", command).with("realm", realm.as_str()).with("from", realm).with("to", value.as_str())
            .with("key", value.as_str()).with("token", value.as_str()).with("realm_prefix", value.as_str()).with("auth_url", value.as_str())
            .with("ttl", Value::Number(if number.is_finite() { format!("{number:e}") } else { "1e999".to_owned() }.into()))
            .with("limits", Object::new().with(&value, number.is_nan())).with("filename", value);
        let before = Value::from(state.document().to_settings(false)).to_json();
        if let Ok(Execution::Done(handled)) = execute(&mut state, ADMIN, &Value::from(body).to_json())
            && !handled.reply.is_ok
        {
            prop_assert_eq!(Value::from(state.document().to_settings(false)).to_json(), before);
        }
    }
}
