//! Every route of the HTTP API over a socket: who may, what comes, and what else is answered.

use serde_json::{Value, json};

use super::client::Client;
use super::http::{Answer, request};
use super::server::Running;

/// The API with these settings of its own, and access control if asked for.
async fn api(http_api: Value, auth: Value) -> Running {
    let mut http_api = http_api;
    http_api["enabled"] = json!(true);
    let mut settings = json!({ "http_api": http_api });
    if auth.is_object() {
        settings["auth"] = auth;
    }
    Running::with(settings).await
}

fn auth() -> Value {
    json!({
        "enabled": true,
        "max_failures_per_minute": 0,
        "realms": { "default": { "required": true }, "org:old": { "required": true } },
        "tokens": [
            { "token": "t-admin", "realm": "*", "role": "admin" },
            { "token": "t-both", "realm": "default", "role": "both" },
        ],
        "management_tokens": [
            { "token": "m-org", "realm_prefix": "org:" },
            { "token": "m-short", "realm_prefix": "short:", "ephemeral_only": true, "max_ttl": "1h" },
            { "token": "m-capped", "realm_prefix": "cap:", "max_ttl": "90s" },
        ],
    })
}

async fn ask(server: &Running, line: &str, token: &str, body: &str) -> Answer {
    let (method, target) = line.split_once(' ').unwrap();
    let headers = match token {
        "" => String::new(),
        token => format!("authorization: {token}\r\n"),
    };
    request(server.addr, method, target, &headers, body).await
}

async fn check(server: &Running, line: &str, token: &str, status: u16) -> Answer {
    let answer = ask(server, line, token, "").await;
    assert_eq!(answer.status, status, "{line} {token:?}: {}", answer.body);
    let is_json = answer
        .headers
        .contains("content-type: application/json; charset=utf-8");
    match status {
        403 => assert_eq!(answer.body, "", "{line}"),
        400.. => {
            let refusal = parse(&answer);
            assert_eq!(
                (&refusal["ok"], &refusal["code"]),
                (&json!(false), &json!(status))
            );
            assert!(is_json && refusal["message"].is_string(), "{line}");
        }
        _ => assert!(is_json || line.contains("metrics"), "{line}"),
    }
    answer
}

fn parse(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap()
}

const ROUTES: [&str; 5] = [
    "GET /health",
    "GET /healthz",
    "GET /api/metrics",
    "GET /api/stats",
    "GET /api/realms/default/dlq",
];

#[tokio::test]
async fn without_authentication_everything_is_served() {
    let server = api(json!({}), Value::Null).await;
    for route in ROUTES {
        check(&server, route, "", 200).await;
        check(&server, route, "Bearer anything", 200).await;
        check(&server, &format!("{route}?x=%"), "", 200).await;
        for wrong in [route.replace("GET", "PUT"), format!("{route}/")] {
            check(&server, &wrong, "", 403).await;
        }
    }
    let health = parse(&check(&server, "GET /health", "", 200).await);
    assert_eq!(
        (&health["status"], &health["node_id"]),
        (&json!("ok"), &Value::Null)
    );
    assert!(health["version"].is_string() && health["uptime_seconds"].is_u64());
    let metrics = check(&server, "GET /api/metrics", "", 200).await;
    assert!(
        metrics
            .headers
            .contains("content-type: text/plain; version=0.0.4; charset=utf-8")
    );
    let letters = parse(&check(&server, "GET /api/realms/a%20b/dlq", "", 200).await);
    assert_eq!(letters, json!({ "realm": "a b", "entries": [] }));
    check(&server, "GET /api/realms/a%2Fb/dlq", "", 403).await;
    check(&server, "GET /api/realms//dlq", "", 403).await;
    // Nobody may create realms, and publishing over HTTP is off.
    check(&server, "POST /api/realms", "", 404).await;
    for off in [
        "POST /pub/default/e",
        "GET /pub/default/e",
        "POST /sub-ticket/r",
        "GET /sub/default/e",
    ] {
        check(&server, off, "", 404).await;
    }
}

#[tokio::test]
async fn administrators_alone_see_what_is_not_for_everybody() {
    let server = api(json!({}), auth()).await;
    for route in &ROUTES[..2] {
        check(&server, route, "", 200).await;
    }
    for route in &ROUTES[2..] {
        for token in [
            "",
            "Bearer",
            "Bearer wrong",
            "Bearer t-both",
            "Bearer m-org",
            "Basic t-admin",
        ] {
            check(&server, route, token, 401).await;
        }
        check(&server, route, "Bearer t-admin", 200).await;
        check(&server, route, "bEARER  t-admin", 200).await;
    }
    let metrics = check(&server, "GET /api/metrics", "Bearer t-admin", 200).await;
    assert!(
        metrics
            .body
            .contains("tyo_mq_auth_failures_total{code=\"401\"} 18\n"),
        "{}",
        metrics.body
    );
}

#[tokio::test]
async fn routes_are_switched_off_one_by_one() {
    for (setting, gone) in [
        ("health", &ROUTES[..2]),
        ("metrics", &ROUTES[2..3]),
        ("stats", &ROUTES[3..]),
    ] {
        let server = api(json!({ setting: false }), Value::Null).await;
        for route in ROUTES {
            let status = if gone.contains(&route) { 403 } else { 200 };
            check(&server, route, "", status).await;
        }
    }
    let server = api(json!({ "metrics_auth": false }), auth()).await;
    check(&server, "GET /api/metrics", "", 200).await;
    check(&server, "GET /api/stats", "", 401).await;
    let off = Running::with(json!({ "auth": auth() })).await;
    for route in ROUTES.into_iter().chain(["POST /api/realms"]) {
        check(&off, route, "Bearer m-org", 403).await;
    }
}

#[tokio::test]
async fn stats_count_what_is_there_and_who_is_online() {
    let server = api(json!({}), Value::Null).await;
    let stats = async || parse(&check(&server, "GET /api/stats", "", 200).await);
    assert_eq!(
        stats().await,
        json!({ "realms": {}, "connections_current": 0 })
    );
    let mut consumer = Client::connect(server.addr).await;
    consumer
        .emit(
            "SUBSCRIBE",
            r#"{"event":"e","producer":"P","consumer":"c"}"#,
        )
        .await;
    consumer.fence().await;
    let mut producer = Client::connect(server.addr).await;
    producer
        .call("PRODUCE", r#"{"event":"e","message":1,"from":"P"}"#)
        .await;
    producer.emit("PRODUCER", r#"{"name":"Q"}"#).await;
    producer.fence().await;
    let realm = json!({
        "producers": { "total": 2, "online": 2 },
        "consumers": { "total": 1, "online": 1 },
        "subscriptions": 1,
    });
    let expected = json!({ "realms": { "default": realm }, "connections_current": 2 });
    assert_eq!(stats().await, expected);
    producer.close().await;
    loop {
        let now = stats().await;
        if now["connections_current"] == 1 {
            assert_eq!(
                now["realms"]["default"]["producers"],
                json!({ "total": 2, "online": 0 })
            );
            break;
        }
    }
}

#[tokio::test]
async fn metrics_count_messages_by_realm_and_event() {
    let server = api(json!({}), Value::Null).await;
    let mut client = Client::connect(server.addr).await;
    client
        .emit(
            "SUBSCRIBE",
            r#"{"event":"E","producer":"P","consumer":"c"}"#,
        )
        .await;
    let durable = r#"{"event":"E","producer":"P","consumer":"d","consumer_id":"d","durable":true,"ack":true}"#;
    client.emit("SUBSCRIBE", durable).await;
    for _ in 0..3 {
        client
            .emit("PRODUCE", r#"{"event":"E","message":1,"from":"P"}"#)
            .await;
    }
    client
        .emit(
            "PRODUCE",
            r#"{"event":"quote\" and \\","message":1,"from":"P"}"#,
        )
        .await;
    client.fence().await;
    let metrics = check(&server, "GET /api/metrics", "", 200).await.body;
    for line in [
        "# TYPE tyo_mq_connections_total counter",
        "tyo_mq_connections_total 1",
        r#"tyo_mq_messages_delivered_total{event="p-e",realm="default"} 6"#,
        r#"tyo_mq_messages_produced_total{event="E",realm="default"} 3"#,
        r#"tyo_mq_messages_produced_total{event="quote\" and \\",realm="default"} 1"#,
        r#"tyo_mq_messages_queued_total{realm="default"} 3"#,
        "tyo_mq_deliveries_in_flight 3",
        "tyo_mq_messages_stored 3",
        "tyo_mq_connections_current 1",
    ] {
        assert!(
            metrics.lines().any(|it| it == line),
            "{line} is not in\n{metrics}"
        );
    }
    assert!(
        !metrics.contains("# HELP") && !metrics.contains("dlq"),
        "{metrics}"
    );
    assert!(
        metrics.ends_with("tyo_mq_connections_current 1\n"),
        "{metrics}"
    );
}

#[tokio::test]
async fn metrics_stay_small_whatever_clients_invent() {
    let server = api(json!({}), Value::Null).await;
    let mut client = Client::connect(server.addr).await;
    for number in 0..1000 {
        let payload = format!(r#"{{"event":"e{number}","message":1,"from":"P"}}"#);
        client.emit("PRODUCE", &payload).await;
    }
    client.fence().await;
    let metrics = check(&server, "GET /api/metrics", "", 200).await.body;
    let others = r#"tyo_mq_messages_produced_total{event="__other__",realm="default"} 872"#;
    assert!(metrics.lines().any(|line| line == others), "{metrics}");
    assert!(metrics.lines().count() < 150, "{metrics}");
}

async fn provision(server: &Running, token: &str, body: &str) -> (u16, Value) {
    let answer = ask(server, "POST /api/realms", &format!("Bearer {token}"), body).await;
    (answer.status, parse(&answer))
}

#[tokio::test]
async fn realms_are_created_by_holders_of_a_management_token() {
    let server = api(json!({}), auth()).await;
    let body = r#"{"realm":"org:a","manager_key":"key-of-a"}"#;
    for token in ["wrong", "t-admin", "t-both"] {
        assert_eq!(provision(&server, token, body).await.0, 401, "{token}");
    }
    check(&server, "POST /api/realms", "", 401).await;
    let created = json!({ "ok": true, "realm": "org:a", "created": true,
        "manager_key_configured": true, "ephemeral": false, "expires_at": null });
    assert_eq!(
        provision(&server, "m-org", body).await,
        (200, created.clone())
    );
    let mut replaced = created;
    replaced["created"] = json!(false);
    // A lifetime is not looked at when the realm is there.
    let again = r#"{"realm":"org:a","managerKey":"other-key","ttl":"rubbish"}"#;
    assert_eq!(provision(&server, "m-org", again).await, (200, replaced));
    for (realm, status) in [
        ("org:old", 200),
        ("org:", 403),
        ("other", 403),
        ("default", 403),
        ("*", 403),
    ] {
        let body = json!({ "realm": realm, "manager_key": "k" }).to_string();
        assert_eq!(
            provision(&server, "m-org", &body).await.0,
            status,
            "{realm}"
        );
    }
    for bad in [
        "",
        "{}",
        "[]",
        "{",
        r#"{"realm":"org:b"}"#,
        r#"{"realm":"org:b","manager_key":""}"#,
        r#"{"realm":7,"manager_key":"k"}"#,
        r#"{"realm":"org:b","manager_key":"k","ttl":"rubbish"}"#,
    ] {
        assert_eq!(provision(&server, "m-org", bad).await.0, 400, "{bad}");
    }
    let large = format!(
        r#"{{"realm":"org:b","manager_key":"{}"}}"#,
        "k".repeat(70_000)
    );
    assert_eq!(provision(&server, "m-org", &large).await.0, 400);
}

#[tokio::test]
async fn what_else_a_realm_is_created_with() {
    let server = api(json!({}), auth()).await;
    let day_ms = 24 * 3_600_000;
    // None where it lives for ever, or about how long it lives.
    for (token, realm, more, lives_ms) in [
        ("m-org", "org:__proto__", json!({}), None),
        ("m-org", "org:a", json!({"ephemeral": false}), None),
        ("m-org", "org:b", json!({"ephemeral": true}), Some(day_ms)),
        ("m-org", "org:c", json!({"temporary": true}), Some(day_ms)),
        ("m-org", "org:d", json!({"disposable": true}), Some(day_ms)),
        ("m-org", "org:e", json!({"ttl": "2h"}), Some(7_200_000)),
        (
            "m-org",
            "org:f",
            json!({"ttl": 60, "ephemeral": false}),
            Some(60_000),
        ),
        // A longest life binds also who may create realms for ever.
        ("m-capped", "cap:a", json!({}), Some(90_000)),
        (
            "m-capped",
            "cap:b",
            json!({"ephemeral": false}),
            Some(90_000),
        ),
        ("m-capped", "cap:c", json!({"ttl": "9d"}), Some(90_000)),
    ] {
        let mut body = more;
        body["realm"] = json!(realm);
        body["manager_key"] = json!("key-of-it");
        let before_ms = super::manager::now_ms();
        let (status, answer) = provision(&server, token, &body.to_string()).await;
        assert_eq!((status, &answer["created"]), (200, &json!(true)), "{body}");
        assert!(!answer.to_string().contains("key-of-it"), "{answer}");
        let expires_ms = answer["expires_at"].as_u64();
        let lives = expires_ms.map(|expires_ms| expires_ms - before_ms);
        let is_as_long = match (lives_ms, lives) {
            (None, None) => true,
            (Some(least), Some(lives)) => lives >= least,
            _ => false,
        };
        assert!(is_as_long, "{body}: {answer}");
    }
    for (more, status) in [
        (json!({"exclusive": true}), 409),
        (json!({"exclusive": "yes"}), 400),
        (json!({"realm": "org:a\u{0}"}), 400),
        (json!({"realm": "org:\n"}), 400),
        (json!({"realm": format!("org:{}", "x".repeat(256))}), 400),
        (json!({"realm": ["org:z"]}), 400),
        (json!({"realm": {}}), 400),
        (json!({"manager_key": ["k"]}), 400),
        (json!({"manager_key": null}), 400),
        (json!({"realm": "org:z", "ttl": 0}), 400),
        (json!({"realm": "org:z", "ttl": null}), 400),
        (json!({"realm": "org:z", "ephemeral": "yes"}), 400),
        (json!({"realm": "ORG:z"}), 403),
        (json!({"realm": " org:z"}), 403),
        (json!({"realm": "cap:a"}), 403),
    ] {
        let mut body = json!({"realm": "org:a", "manager_key": "k"});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let refused = provision(&server, "m-org", &body.to_string()).await;
        assert_eq!(refused.0, status, "{body}");
    }
}

#[tokio::test]
async fn without_a_usable_management_token_there_is_nothing_to_ask() {
    for tokens in [
        json!([]),
        json!([{"realm_prefix": "org:"}]),
        json!([{"token": "m-org"}]),
    ] {
        let mut block = auth();
        block["management_tokens"] = tokens.clone();
        let settings = json!({"http_api": {"enabled": true}, "auth": block});
        let server = Running::with(settings).await;
        let body = r#"{"realm":"org:a","manager_key":"k"}"#;
        assert_eq!(provision(&server, "m-org", body).await.0, 404, "{tokens}");
    }
}

#[tokio::test]
async fn realms_of_a_limited_token_end_in_time() {
    let server = api(json!({}), auth()).await;
    let now_ms = super::manager::now_ms();
    for (extra, most_ms) in [
        ("", 3_600_000),
        (r#","ttl":"10s""#, 10_000),
        (r#","ttl":"9d""#, 3_600_000),
    ] {
        let body = format!(
            r#"{{"realm":"short:{most_ms}{}","manager_key":"k"{extra}}}"#,
            extra.len()
        );
        let (status, answer) = provision(&server, "m-short", &body).await;
        assert_eq!(
            (status, &answer["ephemeral"]),
            (200, &json!(true)),
            "{answer}"
        );
        let lives_ms = answer["expires_at"].as_u64().unwrap() - now_ms;
        assert!(
            (most_ms..most_ms + 60_000).contains(&lives_ms),
            "{extra}: {lives_ms}"
        );
    }
}

#[tokio::test]
async fn an_address_creates_so_many_realms_an_hour() {
    let settings = json!({
        "http_api": { "enabled": true },
        "auth": auth(),
        "limits": { "enabled": true, "realms_per_hour_per_ip": 2, "trusted_proxies": ["127.0.0.1"] },
    });
    let server = Running::with(settings).await;
    let body = r#"{"realm":"org:old","manager_key":"k"}"#;
    // Without a good token nothing is counted; with one, a bad body is, too.
    assert_eq!(provision(&server, "wrong", body).await.0, 401);
    assert_eq!(provision(&server, "m-org", "{").await.0, 400);
    assert_eq!(provision(&server, "m-org", body).await.0, 200);
    let (status, answer) = provision(&server, "m-org", body).await;
    let retry_after = answer["retry_after"].as_u64().unwrap();
    assert!(
        status == 429 && (1..=1800).contains(&retry_after),
        "{answer}"
    );
    let elsewhere = "authorization: Bearer m-org\r\nx-forwarded-for: 10.1.1.1\r\n";
    let answer = request(server.addr, "POST", "/api/realms", elsewhere, body).await;
    assert_eq!(answer.status, 200, "another client of the same proxy");
    let metrics = check(&server, "GET /api/metrics", "Bearer t-admin", 200)
        .await
        .body;
    let line = r#"tyo_mq_rate_limited_total{reason="realms_per_hour_per_ip"} 1"#;
    assert!(metrics.lines().any(|it| it == line), "{metrics}");
}

#[tokio::test]
async fn refusals_for_limits_are_counted_told_or_not() {
    let limits = json!({ "enabled": true, "messages_per_second": 0.001, "message_burst": 1 });
    let settings = json!({ "http_api": { "enabled": true }, "limits": limits });
    let server = Running::with(settings).await;
    let mut client = Client::connect(server.addr).await;
    for _ in 0..11 {
        client
            .emit("PRODUCE", r#"{"event":"e","message":1,"from":"P"}"#)
            .await;
    }
    client.fence().await;
    let metrics = check(&server, "GET /api/metrics", "", 200).await.body;
    let line = r#"tyo_mq_rate_limited_total{reason="messages_per_second"} 10"#;
    assert!(metrics.lines().any(|it| it == line), "{metrics}");
}

#[tokio::test]
async fn a_changed_settings_file_changes_what_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("settings.json");
    let write = |enabled: bool| {
        let settings = json!({ "host": "127.0.0.1", "port": 0, "http_api": { "enabled": enabled, "stats": false } });
        std::fs::write(&file, settings.to_string()).unwrap();
    };
    write(false);
    let server = Running::with_file(&file, &[]).await;
    check(&server, "GET /health", "", 403).await;
    write(true);
    (server.reload)();
    check(&server, "GET /health", "", 200).await;
    check(&server, "GET /api/stats", "", 403).await;
    write(false);
    (server.reload)();
    check(&server, "GET /health", "", 403).await;
}
