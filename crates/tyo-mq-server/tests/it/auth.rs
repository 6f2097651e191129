//! Who is let in, by what they say of themselves; and what each may do then.

use serde_json::{Value, json};

use tyo_mq_auth::json::Value as Json;
use tyo_mq_auth::jwt::mint;
use tyo_mq_auth::secret::Secret;

use super::client::{Came, Client};
use super::http::request;
use super::manager::{ADMIN, authenticate, authenticate_again, manage, refused, settings};
use super::server::Running;

/// Each payload on a socket of its own.
async fn check(settings: Value, rows: &[(&str, &str)]) {
    let server = Running::with(settings).await;
    for (payload, expected) in rows {
        let (_, answer) = authenticate(&server, payload).await;
        assert_eq!(answer, *expected, "{payload}");
    }
}

#[tokio::test]
async fn while_authentication_is_off_everybody_is_let_in() {
    let server = Running::start().await;
    let (mut client, answer) = authenticate(&server, r#"{"token":"bad","realm":"r"}"#).await;
    assert_eq!(answer, "default/both");
    for payload in ["null", r#"{"realm":"*"}"#, r#""{\"token\":\"x\"}""#] {
        assert_eq!(
            authenticate_again(&mut client, payload).await,
            "default/both"
        );
    }
    assert_eq!(authenticate_again(&mut client, r#""no json""#).await, "401");
}

#[tokio::test]
async fn tokens_and_what_stands_beside_them() {
    let rows = [
        (r#"{"token":"t-prod"}"#, "req/producer"),
        (r#"{"token":"t-cons"}"#, "req/consumer"),
        (r#"{"token":"t-plain"}"#, "default/both"),
        (r#"{"token":"t-admin"}"#, "*/admin"),
        (r#"{"token":"t-manager"}"#, "req/manager"),
        (r#"{"token":"t-wizard"}"#, "req/wizard"),
        // The token's own realm and role count.
        (
            r#"{"token":"t-prod","realm":"open","role":"admin"}"#,
            "req/producer",
        ),
        (r#""{\"token\":\"t-prod\"}""#, "req/producer"),
        (r#"{"token":"bad"}"#, "401"),
        (r#"{"token":"bad","realm":"open"}"#, "401"),
        (r#""no json""#, "401"),
        // An empty token is none.
        (r#"{"token":"","realm":"open"}"#, "open/both"),
    ];
    check(settings(), &rows).await;
}

#[tokio::test]
async fn an_open_realm_lets_in_whoever_names_it() {
    let rows = [
        (r#"{"realm":"open"}"#, "open/both"),
        (r#"{"realm":"open","role":"producer"}"#, "open/producer"),
        (r#"{"realm":"open","role":"consumer"}"#, "open/consumer"),
        (r#"{"realm":"open","role":"admin"}"#, "open/both"),
        (r#"{"realm":"open","role":"manager"}"#, "401"),
        (r#"{"realm":"open","key":"wrong"}"#, "open/both"),
    ];
    check(settings(), &rows).await;
}

#[tokio::test]
async fn without_a_token_a_realm_that_is_not_open_wants_its_key_or_acceptance() {
    let rows = [
        ("null", "401"),
        ("7", "401"),
        ("{}", "401"),
        (r#"{"realm":"req"}"#, "401"),
        (r#"{"realm":"req","role":"manager"}"#, "401"),
        (r#"{"realm":"req","role":"consumer"}"#, "req/consumer"),
        (r#"{"realm":"req","role":"producer"}"#, "403"),
        (r#"{"realm":"req","role":"both"}"#, "403"),
        (r#"{"realm":"req","key":null}"#, "403"),
        (
            r#"{"realm":"nowhere","role":"consumer"}"#,
            "nowhere/consumer",
        ),
        (r#"{"realm":"nowhere","role":"producer"}"#, "403"),
        (r#"{"role":"consumer"}"#, "default/consumer"),
        (r#"{"realm":"keyed","role":"consumer"}"#, "401"),
        (
            r#"{"realm":"keyed","role":"consumer","key":"wrong"}"#,
            "401",
        ),
        (
            r#"{"realm":"keyed","role":"consumer","key":["psk"]}"#,
            "401",
        ),
        (
            r#"{"realm":"keyed","role":"consumer","key":"psk"}"#,
            "keyed/consumer",
        ),
        (r#"{"realm":"keyed","role":"producer"}"#, "keyed/producer"),
        (r#"{"realm":"keyed","key":"psk"}"#, "keyed/both"),
        // The key comes before acceptance.
        (r#"{"realm":"shop","role":"both","key":"wrong"}"#, "401"),
        (r#"{"realm":"shop","role":"both","key":"psk"}"#, "403"),
        (
            r#"{"realm":"shop","role":"consumer","key":"psk"}"#,
            "shop/consumer",
        ),
        (r#"{"realm":"locked","role":"consumer","key":""}"#, "401"),
        (r#"{"realm":"free","role":"both"}"#, "free/both"),
    ];
    check(settings(), &rows).await;
}

#[tokio::test]
async fn a_strict_broker_wants_a_token_or_a_key_of_consumers_too() {
    let mut strict = settings();
    strict["auth"]["strict"] = json!(true);
    strict["auth"]["realms"]["waived"] = json!({"required": true, "require_key": false});
    let rows = [
        (r#"{"realm":"req","role":"consumer"}"#, "401"),
        (r#"{"realm":"nowhere","role":"consumer"}"#, "401"),
        (r#"{"role":"consumer"}"#, "401"),
        (r#"{"realm":"waived","role":"consumer"}"#, "waived/consumer"),
        (
            r#"{"realm":"keyed","role":"consumer","key":"psk"}"#,
            "keyed/consumer",
        ),
        (r#"{"realm":"open","role":"consumer"}"#, "open/consumer"),
        (r#"{"token":"t-cons"}"#, "req/consumer"),
    ];
    check(strict, &rows).await;
}

/// Whatever the settings say of it.
#[tokio::test]
async fn nobody_enters_the_realm_that_sees_all_without_a_token() {
    let mut opened = settings();
    opened["auth"]["realms"]["*"] =
        json!({"required": false, "require_key": false, "require_acceptance": false});
    let mut keyed = settings();
    keyed["auth"]["realms"]["*"] = json!({"key": "psk", "require_acceptance": false});
    for block in [settings(), opened, keyed] {
        let server = Running::with(block).await;
        for payload in [
            r#"{"realm":"*"}"#,
            r#"{"realm":"*","role":"consumer"}"#,
            r#"{"realm":"*","role":"producer"}"#,
            r#"{"realm":"*","role":"admin"}"#,
            r#"{"realm":"*","role":"both","key":"psk"}"#,
            r#"{"realm":"*","key":null}"#,
        ] {
            let (mut client, answer) = authenticate(&server, payload).await;
            assert_eq!(answer, "401", "{payload}");
            // Nor by what they do next.
            for (event, payload) in [
                ("CONSUMER", r#"{"name":"spy"}"#),
                ("PRODUCE", r#"{"event":"e"}"#),
            ] {
                assert_eq!(refusal(&mut client, event, payload).await, Some(json!(401)));
            }
        }
        assert_eq!(
            authenticate(&server, r#"{"token":"t-admin"}"#).await.1,
            "*/admin"
        );
    }
}

#[tokio::test]
async fn a_socket_authenticates_once_and_may_fail_before() {
    let server = Running::with(settings()).await;
    let (mut client, answer) = authenticate(&server, r#"{"token":"bad"}"#).await;
    assert_eq!(answer, "401");
    assert_eq!(
        authenticate_again(&mut client, r#"{"token":"t-prod"}"#).await,
        "req/producer"
    );
    assert_eq!(
        authenticate_again(&mut client, r#"{"token":"t-prod"}"#).await,
        "403"
    );
    assert_eq!(authenticate_again(&mut client, "{}").await, "403");
}

#[tokio::test]
async fn too_many_failures_of_an_address_make_it_wait() {
    let mut slow = settings();
    slow["auth"]["max_failures_per_minute"] = json!(2);
    let server = Running::with(slow).await;
    for expected in ["401", "401", "429"] {
        let (_, answer) = authenticate(&server, r#"{"token":"bad"}"#).await;
        assert_eq!(answer, expected);
    }
    assert_eq!(
        authenticate(&server, r#"{"token":"t-prod"}"#).await.1,
        "429"
    );
}

/// The code of the refusal of an event, if it is refused.
async fn refusal(client: &mut Client, event: &str, payload: &str) -> Option<Value> {
    client.emit(event, payload).await;
    let came = client.rest().await;
    came.iter().find_map(|came| match came {
        Came::Text(text) => {
            let payload = text.strip_prefix(r#"42["AUTH_FAIL","#)?.strip_suffix(']')?;
            Some(serde_json::from_str::<Value>(payload).unwrap()["code"].clone())
        }
        Came::Binary(_) | Came::Closed(_) => None,
    })
}

/// The kinds of [`EVENTS`] that each role may send; all others are 403.
#[tokio::test]
async fn what_each_role_may_do() {
    let rows = [
        ("t-prod", "PES"),
        ("t-cons", "CES"),
        ("t-both", "PCES"),
        ("t-manager", "PCES"),
        ("t-admin-of-req", "PCES"),
        ("t-wizard", "S"),
        ("t-admin", "PCES"),
        // In an open realm the role is advice.
        ("t-open", "PCES"),
    ];
    let server = Running::with(settings()).await;
    for (token, allowed) in rows {
        for (event, payload, kind) in EVENTS {
            let (mut client, _) = authenticate(&server, &json!({"token": token}).to_string()).await;
            let refused = refusal(&mut client, event, payload).await;
            let expected = (!allowed.contains(kind)).then(|| json!(403));
            assert_eq!(refused, expected, "{token} {event}");
        }
    }
}

/// The kinds of [`EVENTS`] that place a socket which named a realm in vain; all others are 401.
#[tokio::test]
async fn what_places_a_socket() {
    let rows = [
        ("open", "PCES", "PCES"),
        ("req", "C", ""),
        ("nowhere", "C", ""),
        ("free", "PC", "P"),
        ("keyed", "P", "P"),
        ("shop", "", ""),
        ("locked", "", ""),
        ("*", "", ""),
    ];
    for is_strict in [false, true] {
        let mut block = settings();
        block["auth"]["strict"] = json!(is_strict);
        let server = Running::with(block).await;
        for (realm, lax, strict) in rows {
            let allowed = if is_strict { strict } else { lax };
            for (event, payload, kind) in EVENTS {
                let named = json!({"realm": realm, "token": "bad"}).to_string();
                let (mut client, answer) = authenticate(&server, &named).await;
                assert_eq!(answer, "401");
                let refused = refusal(&mut client, event, payload).await;
                let expected = (!allowed.contains(kind)).then(|| json!(401));
                assert_eq!(refused, expected, "{realm} {event}, strict {is_strict}");
            }
        }
    }
}

/// Events by what they ask of their sender: to produce, to consume, either, or a session.
const EVENTS: [(&str, &str, char); 22] = [
    ("PRODUCER", r#"{"name":"p"}"#, 'P'),
    ("PRODUCE", r#"{"event":"e","message":1,"from":"p"}"#, 'P'),
    (
        "PRODUCE_CHUNK",
        r#"{"transferId":"t","index":0,"total":2,"data":"x"}"#,
        'P',
    ),
    ("CONSUMER", r#"{"name":"c"}"#, 'C'),
    (
        "SUBSCRIBE",
        r#"{"event":"e","producer":"p","consumer":"c"}"#,
        'C',
    ),
    ("UNSUBSCRIBE", r#""p-e""#, 'C'),
    ("ACK", r#"{"msgId":"none"}"#, 'C'),
    ("KEY_PUBLISH", "{}", 'E'),
    ("KEY_LOOKUP", "{}", 'E'),
    ("PREKEY_PUBLISH", "{}", 'E'),
    ("PREKEY_TAKE", "{}", 'E'),
    ("SEALED_CERT_REQUEST", "{}", 'E'),
    ("SEALED_UAK_SET", "{}", 'E'),
    ("SEALED_DELIVER", "{}", 'E'),
    ("SEALED_SUBSCRIBE", "{}", 'E'),
    ("PUSH_REGISTER", "{}", 'E'),
    ("PUSH_UNREGISTER", "{}", 'E'),
    ("PING", "null", 'S'),
    ("HELLO", r#""x""#, 'S'),
    ("DEBUG", r#""x""#, 'S'),
    ("QUIT", r#""x""#, 'S'),
    ("REMOTE_TICKET_REQUEST", "{}", 'S'),
];

#[tokio::test]
async fn an_open_default_is_entered_by_name_and_not_by_saying_nothing() {
    let mut open = settings();
    open["auth"]["realms"]["default"] = json!({"required": false});
    let rows = [
        ("{}", "401"),
        ("null", "401"),
        (r#"{"realm":""}"#, "401"),
        (r#"{"realm":["default"]}"#, "401"),
        (r#"{"realm":"default"}"#, "default/both"),
        (r#"{"role":"consumer"}"#, "default/consumer"),
        (r#"{"role":"both"}"#, "default/both"),
        (r#"{"role":"manager"}"#, "401"),
    ];
    check(open, &rows).await;
}

#[tokio::test]
async fn names_of_realms_are_names_and_nothing_else() {
    let server = Running::with(settings()).await;
    let long = "x".repeat(256);
    for realm in [
        "__proto__",
        "constructor",
        "toString",
        "hasOwnProperty",
        "null",
        "a b",
        "\u{202e}x",
        &long,
    ] {
        let payload = json!({"realm": realm, "role": "consumer"}).to_string();
        let (mut client, answer) = authenticate(&server, &payload).await;
        assert_eq!(answer, format!("{realm}/consumer"));
        client.emit("CONSUMER", r#"{"name":"__proto__"}"#).await;
        let key = client.call("UNSUBSCRIBE", r#""__proto__""#).await;
        assert_eq!(key["removed"], 0, "{realm}");
    }
    for realm in [
        "a\0b",
        "\n",
        "\u{7f}",
        "\u{85}",
        &format!("{long}x"),
        &"é".repeat(129),
        &"x".repeat(1 << 20),
    ] {
        for role in ["consumer", "producer", "both"] {
            let payload = json!({"realm": realm, "role": role}).to_string();
            let (mut client, answer) = authenticate(&server, &payload).await;
            assert_eq!(answer, "401", "{realm:.20?}");
            // Nobody means to go there by it.
            let subscription = r#"{"event":"e","producer":"p","consumer":"c"}"#;
            assert_eq!(refusal(&mut client, "SUBSCRIBE", subscription).await, None);
            let produce = r#"{"event":"e","message":1}"#;
            assert_eq!(client.call("PRODUCE", produce).await["code"], 403);
        }
    }
}

#[tokio::test]
async fn a_refused_event_has_its_ack_answered_and_no_effect() {
    let server = Running::with(settings()).await;
    let (mut consumer, _) = authenticate(&server, r#"{"token":"t-cons"}"#).await;
    let subscription = r#"{"event":"e","producer":"p","consumer":"c"}"#;
    consumer.emit("SUBSCRIBE", subscription).await;
    consumer.fence().await;
    let produce = r#"{"event":"e","message":1,"from":"p"}"#;
    let answer = consumer.call("PRODUCE", produce).await;
    assert_eq!(
        (&answer["ok"], &answer["code"]),
        (&json!(false), &json!(403))
    );
    assert!(consumer.event("AUTH_FAIL").await.contains("403"));
    assert_eq!(consumer.rest().await, []);
}

#[tokio::test]
async fn whoever_says_nothing_is_placed_by_what_they_do() {
    let mut open = settings();
    open["auth"]["realms"]["default"] = json!({"required": false});
    let server = Running::with(open).await;
    let mut client = Client::connect(server.addr).await;
    assert_eq!(
        client.call("PRODUCE", r#"{"event":"e","message":1}"#).await["ok"],
        true
    );
    // The place stays.
    assert_eq!(
        authenticate_again(&mut client, r#"{"token":"t-prod"}"#).await,
        "403"
    );

    let server = Running::with(settings()).await;
    let mut client = Client::connect(server.addr).await;
    assert_eq!(
        client.call("PRODUCE", r#"{"event":"e","message":1}"#).await["code"],
        401
    );
    assert_eq!(client.call("UNSUBSCRIBE", r#""x""#).await["ok"], true);
    assert_eq!(
        client.call("PRODUCE", r#"{"event":"e","message":1}"#).await["code"],
        403
    );
    // The realm of a failed attempt is where they mean to go.
    let (mut client, answer) = authenticate(&server, r#"{"realm":"free","token":"bad"}"#).await;
    assert_eq!(answer, "401");
    assert_eq!(
        client.call("PRODUCE", r#"{"event":"e","message":1}"#).await["ok"],
        true
    );
}

#[tokio::test]
async fn realms_do_not_see_each_other_and_the_admin_sees_all() {
    let server = Running::with(settings()).await;
    let subscription = r#"{"event":"e","producer":"p","consumer":"c"}"#;
    let mut consumers = Vec::new();
    for payload in [
        r#"{"token":"t-cons"}"#,
        r#"{"realm":"open"}"#,
        r#"{"token":"t-admin"}"#,
    ] {
        let (mut client, _) = authenticate(&server, payload).await;
        client.emit("SUBSCRIBE", subscription).await;
        client.fence().await;
        consumers.push(client);
    }
    let (mut producer, _) = authenticate(&server, r#"{"token":"t-prod"}"#).await;
    let produce = r#"{"event":"e","message":1,"from":"p"}"#;
    assert_eq!(producer.call("PRODUCE", produce).await["ok"], true);
    assert!(
        consumers[0]
            .event("CONSUME-p-e")
            .await
            .contains(r#""message":1"#)
    );
    assert!(
        consumers[2]
            .event("CONSUME-p-e")
            .await
            .contains(r#""message":1"#)
    );
    assert_eq!(consumers[1].rest().await, []);
    // What the observer says stays in its realm.
    let (mut admin, _) = authenticate(&server, r#"{"token":"t-admin"}"#).await;
    assert_eq!(admin.call("PRODUCE", produce).await["routed"], 1);
    assert!(
        consumers[2]
            .event("CONSUME-p-e")
            .await
            .contains(r#""message":1"#)
    );
    assert_eq!(consumers[0].rest().await, []);
}

#[tokio::test]
async fn web_tokens_of_a_realm() {
    let mut with_key = settings();
    with_key["auth"]["realms"]["alpha"] =
        json!({"required": true, "manager_key": "alpha-realm-manager-key"});
    let jwt = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJyZWFsbSI6ImFscGhhIiwicm9sZSI6ImJvdGgifQ.qvlMq9BpGC7F_hJ5DpIY7HJRm6g0y_y1MD0MG9Pl7OA";
    let server = Running::with(with_key).await;
    let payload = json!({"token": jwt}).to_string();
    let (mut client, answer) = authenticate(&server, &payload).await;
    assert_eq!(answer, "alpha/both");
    // Another key ends what the old one let in.
    let command =
        json!({"command": "set_realm_manager_key", "realm": "alpha", "manager_key": "new"});
    manage(&server, command).await;
    assert_eq!(client.text().await, "41");
    assert_eq!(authenticate(&server, &payload).await.1, "401");
}

/// Claims for realm `req` with its own key's HMAC-SHA256, and a header that names another algorithm: `none`, `HS512`,
/// `none` behind `HS256`, no name at all, a list of names.
const OTHER_ALGORITHMS: [&str; 5] = [
    "eyJhbGciOiJub25lIn0.eyJyZWFsbSI6InJlcSIsInJvbGUiOiJib3RoIn0.TPjx9dK-YrYSuhBk9ifPFfNH9UBGlC5m2c9B69ibkug",
    "eyJhbGciOiJIUzUxMiJ9.eyJyZWFsbSI6InJlcSIsInJvbGUiOiJib3RoIn0.Hi8auizp2h7tMZAF4UAR5qFc_c9m7KbGfIhYln8om34",
    "eyJhbGciOiJIUzI1NiIsImFsZyI6Im5vbmUifQ.eyJyZWFsbSI6InJlcSIsInJvbGUiOiJib3RoIn0.KkJXRVc_jLCyvTDZPe8xqD11hc6lvmhRiyXxaABz1is",
    "e30.eyJyZWFsbSI6InJlcSIsInJvbGUiOiJib3RoIn0.pt8kWcNpH5jrbNY9nF6LMsZwMQGpKRhvbcXkHfCkGH0",
    "eyJhbGciOlsiSFMyNTYiXX0.eyJyZWFsbSI6InJlcSIsInJvbGUiOiJib3RoIn0.AWqdD-5uT3tiJ05Niaow4cddIa3uus-T_K4Aa2kTR8c",
];

/// The header `{"alg":"none"}`.
const UNSIGNED: &str = "eyJhbGciOiJub25lIn0";

#[tokio::test]
async fn web_tokens_that_are_not_good() {
    let key = Secret::new("mk-req");
    let with = |claims: Value| {
        let claims = Json::parse(&claims.to_string()).unwrap();
        mint(&key, claims.as_object().unwrap())
    };
    let plain = |realm: &str, role: &str| with(json!({"realm": realm, "role": role}));
    let timed = |name: &str, value: Value| {
        let mut claims = json!({"realm": "req", "role": "both"});
        claims[name] = value;
        with(claims)
    };
    let good = plain("req", "both");
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let now_s = super::manager::now_ms() / 1000;
    let rows = [
        (good.clone(), "req/both"),
        (timed("exp", json!(now_s + 600)), "req/both"),
        (plain("req", "wizard"), "req/wizard"),
        (format!("{UNSIGNED}.{claims}."), "401"),
        (format!("{UNSIGNED}.{claims}.{signature}"), "401"),
        (format!("{header}.{claims}."), "401"),
        (format!("{header}.{claims}"), "401"),
        (format!("{claims}.{header}.{signature}"), "401"),
        (format!("{good}="), "401"),
        (format!("{good}.x"), "401"),
        (good[..good.len() - 1].to_owned(), "401"),
        (timed("exp", json!(now_s)), "401"),
        (timed("exp", json!(0)), "401"),
        (timed("exp", json!(null)), "401"),
        (timed("exp", json!("99999999999")), "401"),
        (timed("nbf", json!(now_s + 600)), "401"),
        (timed("role", json!(["both"])), "401"),
        (timed("role", json!("")), "401"),
        (timed("realm", json!(["req"])), "401"),
        // The key of one realm says nothing of another, and least of all of the one that sees all.
        (plain("shop", "both"), "401"),
        (plain("open", "both"), "401"),
        (plain("*", "admin"), "401"),
        (plain("__proto__", "both"), "401"),
    ];
    let server = Running::with(settings()).await;
    let others = OTHER_ALGORITHMS.map(|token| (token.to_owned(), "401"));
    for (token, expected) in rows.into_iter().chain(others) {
        let payload = json!({"token": token}).to_string();
        assert_eq!(authenticate(&server, &payload).await.1, expected, "{token}");
    }
    // Who makes an admin of a realm has made nobody who manages.
    let admin = plain("req", "admin");
    let payload = json!({"token": admin}).to_string();
    assert_eq!(authenticate(&server, &payload).await.1, "req/admin");
    assert_eq!(
        refused(&server, &admin, json!({"command": "get"})).await,
        401
    );
}

#[tokio::test]
async fn whoever_guesses_at_one_door_waits_at_all() {
    let mut slow = settings();
    slow["auth"]["max_failures_per_minute"] = json!(4);
    slow["auth"]["management_tokens"] = json!([{"token": "m-org", "realm_prefix": "org:"}]);
    slow["http_api"] = json!({"enabled": true});
    let server = Running::with(slow).await;
    let http = async |line: &str, token: &str| {
        let (method, target) = line.split_once(' ').unwrap();
        let bearer = format!("authorization: Bearer {token}\r\n");
        let answer = request(server.addr, method, target, &bearer, "{}").await;
        answer.status
    };
    let (mut inside, _) = authenticate(&server, r#"{"token":"t-both"}"#).await;
    let get = json!({"command": "get"});
    assert_eq!(authenticate(&server, r#"{"token":"bad"}"#).await.1, "401");
    assert_eq!(refused(&server, "bad", get.clone()).await, 401);
    assert_eq!(http("GET /api/stats", "bad").await, 401);
    assert_eq!(http("POST /api/realms", "bad").await, 401);
    assert_eq!(
        authenticate(&server, r#"{"token":"t-prod"}"#).await.1,
        "429"
    );
    assert_eq!(refused(&server, ADMIN, get).await, 429);
    assert_eq!(http("GET /api/stats", ADMIN).await, 429);
    assert_eq!(http("POST /api/realms", "m-org").await, 429);
    // Whoever is inside goes on.
    let produce = r#"{"event":"e","message":1}"#;
    assert_eq!(inside.call("PRODUCE", produce).await["ok"], true);
}
