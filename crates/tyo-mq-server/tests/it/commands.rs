//! Every management command over the wire: what it needs, what it does, and who may sign it.

use serde_json::{Value, json};
use tyo_mq_auth::secret::SecretHash;

use super::client::Client;
use super::manager::{ADMIN, ask, authenticate, manage, refused, settings};
use super::server::Running;

const MANAGE: &str = "AUTH_MANAGEMENT_COMMAND";

/// A command with these fields.
fn command(name: &str, fields: Value) -> Value {
    let mut body = fields;
    body["command"] = json!(name);
    body
}

#[tokio::test]
async fn commands_that_are_refused() {
    let rows = [
        ("conquer", json!({}), 400),
        ("reload_settings", json!({}), 400),
        ("set_global_auth", json!({}), 400),
        ("set_global_auth", json!({"enabled": "false"}), 400),
        ("set_global_auth", json!({"enabled": 0}), 400),
        ("add_realm", json!({}), 400),
        ("add_realm", json!({"realm": "req"}), 409),
        ("add_realm", json!({"realm": "x", "ttl": 0}), 400),
        ("add_realm", json!({"realm": "x", "ttl": null}), 400),
        ("add_realm", json!({"realm": "x", "ttl": "1w"}), 400),
        ("add_realm", json!({"realm": "x", "required": "false"}), 400),
        ("add_realm", json!({"realm": "*", "ttl": 9}), 400),
        ("rename_realm", json!({}), 400),
        ("rename_realm", json!({"from": "req"}), 400),
        ("rename_realm", json!({"from": "none", "to": "x"}), 404),
        ("rename_realm", json!({"from": "req", "to": "open"}), 409),
        ("rename_realm", json!({"from": "default", "to": "x"}), 400),
        ("rename_realm", json!({"from": "req", "to": "*"}), 400),
        ("remove_realm", json!({}), 400),
        ("remove_realm", json!({"realm": "*"}), 400),
        ("remove_realm", json!({"realm": "default"}), 400),
        ("remove_realm", json!({"realm": "none"}), 404),
        ("set_realm_auth", json!({"realm": "req"}), 400),
        ("set_realm_auth", json!({"required": true}), 400),
        (
            "set_realm_auth",
            json!({"realm": "req", "required": 1}),
            400,
        ),
        ("set_realm_manager_key", json!({"manager_key": "k"}), 400),
        ("set_realm_manager_key", json!({"realm": "none"}), 404),
        ("set_realm_key", json!({"key": "k"}), 400),
        ("set_realm_key", json!({"realm": "none", "key": "k"}), 404),
        ("set_realm_key", json!({"realm": "req", "key": ["k"]}), 400),
        ("set_realm_acceptance", json!({"realm": "req"}), 400),
        ("set_realm_e2ee", json!({"realm": "req"}), 400),
        (
            "set_realm_e2ee",
            json!({"realm": "req", "e2ee": "some"}),
            400,
        ),
        ("set_realm_lifetime", json!({}), 400),
        ("set_realm_lifetime", json!({"realm": "none"}), 404),
        (
            "set_realm_lifetime",
            json!({"realm": "default", "ttl": 9}),
            400,
        ),
        ("set_realm_lifetime", json!({"realm": "*", "ttl": 9}), 400),
        (
            "set_realm_lifetime",
            json!({"realm": "req", "ttl": -1}),
            400,
        ),
        ("add_management_token", json!({"token": "m"}), 400),
        ("add_management_token", json!({"realm_prefix": "m:"}), 400),
        (
            "add_management_token",
            json!({"token": "m", "realm_prefix": "m:", "max_ttl": "soon"}),
            400,
        ),
        ("revoke_management_token", json!({}), 400),
        ("revoke_management_token", json!({"token_hash": "xyz"}), 400),
        (
            "revoke_management_token",
            json!({"token_hash": SecretHash::of("none").to_hex()}),
            404,
        ),
        ("set_external_auth", json!({"auth_url": "nonsense"}), 400),
        (
            "set_external_auth",
            json!({"auth_url": "file:///etc/passwd"}),
            400,
        ),
        (
            "set_external_auth",
            json!({"auth_url": "http://h/", "realm": "req", "realm_prefix": "r"}),
            400,
        ),
        (
            "set_external_auth",
            json!({"auth_url": "http://h/", "realm": "none"}),
            404,
        ),
        ("revoke_token", json!({}), 400),
        ("revoke_token", json!({"realm": "req"}), 400),
        ("revoke_token", json!({"token_hash": "xyz"}), 400),
        ("revoke_token", json!({"token": "none"}), 404),
        ("revoke_token", json!({"token": ADMIN}), 404),
        // Somebody must be left.
        (
            "revoke_token",
            json!({"token": ADMIN, "allow_admin": true}),
            409,
        ),
        (
            "revoke_token",
            json!({"token": ADMIN, "allow_admin": "yes"}),
            400,
        ),
        ("set_persistence", json!({"storage": "tape"}), 400),
        ("set_persistence", json!({"default_ttl": 0}), 400),
        ("set_persistence", json!({"storage_options": []}), 400),
        (
            "set_persistence",
            json!({"storage": "custom", "module": "/x.js"}),
            501,
        ),
        (
            "set_persistence",
            json!({"storage": "sqlite", "filename": "../x"}),
            400,
        ),
        (
            "set_persistence",
            json!({"storage": "sqlite", "path": "/etc/x"}),
            400,
        ),
        (
            "set_persistence",
            json!({"storage": "redis", "options": {"fallbackPath": "/etc/x"}}),
            400,
        ),
        ("set_limits", json!({"limits": {"max_fun": 1}}), 400),
        ("set_limits", json!({"limits": {"message_burst": -1}}), 400),
        (
            "set_limits",
            json!({"realm": "req", "limits": {"max_connections_per_ip": 1}}),
            400,
        ),
        ("disconnect_client", json!({"socket": "none"}), 404),
        ("backup_auth_store", json!({"filename": "x"}), 501),
        ("dlq_list", json!({"realm": {}}), 400),
        ("dlq_replay", json!({}), 400),
        ("dlq_replay", json!({"msg_id": "none"}), 404),
        ("dlq_discard", json!({}), 400),
    ];
    let server = Running::with(settings()).await;
    let before = manage(&server, command("get", json!({}))).await;
    for (name, fields, code) in rows {
        let body = command(name, fields);
        assert_eq!(refused(&server, ADMIN, body.clone()).await, code, "{body}");
    }
    assert_eq!(refused(&server, ADMIN, json!({})).await, 400);
    assert_eq!(manage(&server, command("get", json!({}))).await, before);
}

#[tokio::test]
async fn names_that_no_realm_can_have() {
    let server = Running::with(settings()).await;
    let mut names = vec![json!({}), json!(["req"]), json!(7), json!(true), json!("")];
    let long = ["x".repeat(257), "é".repeat(129)];
    let texts = ["a\u{0}b", "\n", "\u{7f}"].into_iter();
    names.extend(texts.map(|name| json!(name)));
    names.extend(long.map(|name| json!(name)));
    for name in names {
        for (command_name, fields) in [
            ("add_realm", json!({})),
            ("set_realm_auth", json!({"required": false})),
            ("set_realm_manager_key", json!({"manager_key": "k"})),
            ("set_realm_key", json!({"key": "k"})),
            ("set_realm_acceptance", json!({"required": false})),
            ("set_realm_e2ee", json!({"e2ee": "off"})),
            ("set_realm_lifetime", json!({"ttl": 9})),
            ("add_token", json!({"token": "t"})),
            ("rename_realm", json!({"from": "req", "to": name})),
        ] {
            let mut body = command(command_name, fields);
            body["realm"] = name.clone();
            assert_eq!(refused(&server, ADMIN, body.clone()).await, 400, "{body}");
        }
    }
}

/// Such names belong to all objects of a script.
#[tokio::test]
async fn a_key_of_a_realm_with_an_odd_name_is_the_key_of_no_other() {
    let server = Running::with(settings()).await;
    for realm in ["__proto__", "constructor", "toString"] {
        for (name, fields) in [
            ("set_realm_auth", json!({"required": true})),
            ("set_realm_acceptance", json!({"required": false})),
            ("set_realm_e2ee", json!({"e2ee": "opportunistic"})),
            ("set_realm_key", json!({"key": "evil"})),
            ("set_realm_manager_key", json!({"manager_key": "evil"})),
        ] {
            let mut body = command(name, fields);
            body["realm"] = json!(realm);
            manage(&server, body).await;
        }
    }
    for realm in ["req", "open", "default", "nowhere"] {
        let body = command("set_realm_key", json!({"realm": realm, "key": "x"}));
        assert_eq!(refused(&server, "evil", body).await, 401, "{realm}");
    }
    let (_, answer) = authenticate(&server, r#"{"realm":"req","role":"producer"}"#).await;
    assert_eq!(answer, "403");
}

/// A member of an answer by its path.
fn at<'a>(answer: &'a Value, path: &str) -> &'a Value {
    answer.pointer(path).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn what_commands_change() {
    let hash = |token: &str| json!(SecretHash::of(token).to_hex());
    let management = |more: Value| {
        let mut entry = json!({"realm_prefix": "m:", "token_hash": hash("m")});
        if let (Some(entry), Some(more)) = (entry.as_object_mut(), more.as_object()) {
            entry.extend(more.clone());
        }
        json!([entry])
    };
    let new = "/settings/realms/new";
    let rows = [
        (
            "add_realm",
            json!({"realm": "new", "required": false, "managerKey": "mk", "preshared_key": "k",
                   "require_acceptance": true, "e2ee": "required"}),
            new,
            json!({"required": false, "require_acceptance": true, "e2ee": "required",
                   "manager_key_configured": true, "key_configured": true}),
        ),
        (
            "set_realm_auth",
            json!({"realm": "new", "required": true}),
            "/settings/realms/new/required",
            json!(true),
        ),
        (
            "set_realm_acceptance",
            json!({"realm": "new", "required": false}),
            "/settings/realms/new/require_acceptance",
            json!(false),
        ),
        (
            "set_realm_e2ee",
            json!({"realm": "new", "policy": "off"}),
            "/settings/realms/new/e2ee",
            json!(null),
        ),
        (
            "set_realm_manager_key",
            json!({"realm": "new"}),
            "/settings/realms/new/manager_key_configured",
            json!(null),
        ),
        (
            "set_realm_key",
            json!({"realm": "new", "require_key": true}),
            new,
            json!({"required": true, "require_acceptance": false, "require_key": true,
                   "key_configured": true}),
        ),
        (
            "set_realm_key",
            json!({"realm": "new"}),
            "/settings/realms/new/key_configured",
            json!(null),
        ),
        (
            "set_realm_lifetime",
            json!({"realm": "new", "ttl": "2h"}),
            "/settings/realms/new/ephemeral",
            json!(true),
        ),
        (
            "set_realm_lifetime",
            json!({"realm": "new", "ephemeral": false}),
            new,
            json!({"required": true, "require_acceptance": false, "require_key": true}),
        ),
        (
            "rename_realm",
            json!({"from": "new", "to": "newer"}),
            "/settings/realms/newer/require_key",
            json!(true),
        ),
        (
            "remove_realm",
            json!({"realm": "newer"}),
            "/settings/realms/newer",
            json!(null),
        ),
        (
            "set_realm_auth",
            json!({"realm": "made", "required": false}),
            "/settings/realms/made",
            json!({"required": false}),
        ),
        (
            "add_management_token",
            json!({"token": "m", "realm_prefix": "m:", "ephemeralOnly": true, "maxTtl": "1h"}),
            "/settings/management_tokens",
            management(json!({"ephemeral_only": true, "max_ttl": "1h"})),
        ),
        (
            "revoke_management_token",
            json!({"token_hash": hash("m")}),
            "/settings/management_tokens",
            json!(null),
        ),
        (
            "set_external_auth",
            json!({"auth_url": "http://h/", "auth_secret": "s"}),
            "/settings/auth_secret",
            json!("<configured>"),
        ),
        (
            "set_external_auth",
            json!({"auth_url": "http://h/r", "realm": "req", "auth_secret": "s"}),
            "/settings/realms/req/auth_secret_configured",
            json!(true),
        ),
        (
            "set_external_auth",
            json!({"auth_url": "http://h/p", "realm_prefix": "p:"}),
            "/settings/external_validators",
            json!([{"realm_prefix": "p:", "auth_url": "http://h/p", "auth_secret_configured": false}]),
        ),
        (
            "set_external_auth",
            json!({"realm_prefix": "p:"}),
            "/settings/external_validators",
            json!([]),
        ),
        (
            "revoke_token",
            json!({"token_hash": hash("t-cons")}),
            "/revoked",
            json!([{"realm": "req", "role": "consumer", "client_id": "c1", "client_name": null,
                    "token_hash": hash("t-cons")}]),
        ),
        ("stats", json!({}), "/stats/connections_current", json!(1)),
        (
            "dlq_list",
            json!({"realm": null}),
            "",
            json!({"ok": true, "realm": null, "entries": []}),
        ),
        (
            "dlq_discard",
            json!({"id": "none"}),
            "/msg_id",
            json!("none"),
        ),
        (
            "set_global_auth",
            json!({"enabled": false}),
            "/settings/enabled",
            json!(false),
        ),
    ];
    let server = Running::with(settings()).await;
    for (name, fields, path, expected) in rows {
        let body = command(name, fields);
        let answer = manage(&server, body.clone()).await;
        assert_eq!(*at(&answer, path), expected, "{body}: {answer}");
    }
}

#[tokio::test]
async fn what_a_realms_manager_may_sign() {
    let own = [
        ("set_realm_lifetime", json!({"ttl": "1h"})),
        ("set_realm_key", json!({"key": "k"})),
        ("set_realm_acceptance", json!({"required": false})),
        ("set_realm_e2ee", json!({"e2ee": "off"})),
        ("list_requests", json!({})),
    ];
    let admins = [
        ("get", json!({})),
        ("reload_settings", json!({})),
        ("set_global_auth", json!({"enabled": true})),
        ("set_strict_auth", json!({"strict": true})),
        ("set_jwt_secret", json!({"jwt_secret": "s"})),
        ("set_external_auth", json!({"auth_url": "http://h/"})),
        ("add_realm", json!({})),
        ("rename_realm", json!({"from": "req", "to": "x"})),
        ("remove_realm", json!({})),
        ("set_realm_auth", json!({"required": false})),
        ("set_realm_manager_key", json!({"manager_key": "k"})),
        ("set_realm_anonymous", json!({"allowed": true})),
        (
            "add_management_token",
            json!({"token": "m", "realm_prefix": "req"}),
        ),
        (
            "revoke_management_token",
            json!({"token_hash": SecretHash::of("m").to_hex()}),
        ),
        ("add_token", json!({"token": "t"})),
        ("revoke_token", json!({"token": "t-prod"})),
        ("hash_tokens", json!({})),
        ("list_realms", json!({})),
        ("list_tokens", json!({})),
        ("audit", json!({})),
        ("list_clients", json!({})),
        ("disconnect_client", json!({"socket": "s"})),
        ("get_limits", json!({})),
        ("set_limits", json!({"limits": {}})),
        ("set_persistence", json!({})),
        ("backup_auth_store", json!({"filename": "x"})),
        ("stats", json!({})),
        ("dlq_list", json!({})),
        ("dlq_replay", json!({"id": "x"})),
        ("dlq_discard", json!({"id": "x"})),
    ];
    let of = |realm: &str, name: &str, fields: &Value| {
        let mut body = command(name, fields.clone());
        body["realm"] = json!(realm);
        body
    };
    let server = Running::with(settings()).await;
    for (name, fields) in &own {
        let answer = ask(&server, "mk-req", MANAGE, of("req", name, fields)).await;
        assert_eq!(answer["ok"], true, "{name}: {answer}");
        for realm in ["open", "default", "*", "none"] {
            let body = of(realm, name, fields);
            assert_eq!(
                refused(&server, "mk-req", body).await,
                401,
                "{name} {realm}"
            );
        }
    }
    for (name, fields) in &admins {
        let body = of("req", name, fields);
        assert_eq!(refused(&server, "mk-req", body).await, 401, "{name}");
    }
    // Whatever else is a secret here signs nothing.
    for secret in [
        "t-both",
        "t-manager",
        "t-admin-of-req",
        "t-prod",
        "psk",
        "k",
        "undefined",
    ] {
        let body = of("req", "set_realm_key", &json!({"key": "x"}));
        assert_eq!(refused(&server, secret, body).await, 401, "{secret}");
    }
}

#[tokio::test]
async fn an_empty_secret_signs_nothing() {
    let mut empty = settings();
    empty["auth"]["realms"]["req"]["manager_key"] = json!("");
    let server = Running::with(empty).await;
    let body = json!({"command": "set_realm_key", "realm": "req", "key": "x"});
    assert_eq!(refused(&server, "", body).await, 401);
}

#[tokio::test]
async fn keys_are_cleared_however_they_are_spelt() {
    let mut camel = settings();
    camel["auth"]["realms"]["camel"] =
        json!({"required": true, "managerKey": "mk-camel", "presharedKey": "psk"});
    camel["auth"]["realms"]["snake"] = json!({"required": true, "preshared_key": "psk"});
    let server = Running::with(camel).await;
    let own = command("list_requests", json!({"realm": "camel"}));
    assert_eq!(
        ask(&server, "mk-camel", MANAGE, own.clone()).await["ok"],
        true
    );
    for (name, realm) in [
        ("set_realm_manager_key", "camel"),
        ("set_realm_key", "camel"),
        ("set_realm_key", "snake"),
    ] {
        let consumer = json!({"realm": realm, "role": "consumer"}).to_string();
        if name == "set_realm_key" {
            assert_eq!(authenticate(&server, &consumer).await.1, "401");
        }
        let answer = manage(&server, command(name, json!({"realm": realm}))).await;
        if name == "set_realm_key" {
            let shown = &answer["settings"]["realms"][realm];
            assert_eq!(*shown, json!({"required": true}));
            assert_eq!(
                authenticate(&server, &consumer).await.1,
                format!("{realm}/consumer")
            );
        }
    }
    assert_eq!(refused(&server, "mk-camel", own).await, 401);
}

#[tokio::test]
async fn dead_letters_are_shown_sent_again_and_discarded() {
    let mut impatient = settings();
    impatient["ack_timeout"] = json!("20ms");
    let server = Running::with(impatient).await;
    let (mut client, _) = authenticate(&server, r#"{"realm":"open"}"#).await;
    let subscription = json!({
        "event": "e", "producer": "p", "consumer": "c", "consumer_id": "c", "durable": true,
        "ack": true, "retry": {"max_attempts": 1},
    });
    client.emit("SUBSCRIBE", &subscription.to_string()).await;
    let letter = async |client: &mut Client| {
        let produce = r#"{"event":"e","message":1,"from":"p"}"#;
        assert_eq!(client.call("PRODUCE", produce).await["queued"], 1);
        loop {
            let shown = manage(&server, command("dlq_list", json!({}))).await;
            if let Some(entry) = shown["entries"].get(0) {
                return entry.clone();
            }
        }
    };
    let dead = letter(&mut client).await;
    assert_eq!(
        (&dead["realm"], &dead["consumer"]),
        (&json!("open"), &json!("c"))
    );
    for (realm, letters) in [("open", 1), ("req", 0)] {
        let shown = manage(&server, command("dlq_list", json!({"realm": realm}))).await;
        assert_eq!(
            shown["entries"].as_array().unwrap().len(),
            letters,
            "{realm}"
        );
    }
    let id = &dead["id"];
    let elsewhere = command("dlq_replay", json!({"msg_id": id, "realm": "req"}));
    assert_eq!(refused(&server, ADMIN, elsewhere).await, 404);
    client.fence().await;
    client.rest().await;
    let replayed = manage(&server, command("dlq_replay", json!({"msg_id": id}))).await;
    assert_eq!(&replayed["msg_id"], id);
    assert!(client.event("CONSUME-p-e").await.contains(r#""message":1"#));

    let dead = letter(&mut client).await;
    for was_there in [true, false] {
        let body = command(
            "dlq_discard",
            json!({"msg_id": dead["id"], "realm": "open"}),
        );
        assert_eq!(manage(&server, body).await["discarded"], was_there);
    }
    let shown = manage(&server, command("dlq_list", json!({}))).await;
    assert!(
        !shown["entries"]
            .to_string()
            .contains(dead["id"].as_str().unwrap())
    );
}
