//! Rates and quotas: what is over them is refused, and the client is told.

use serde_json::{Value, json};

use super::client::{Came, Client};
use super::manager::{authenticate, manage, settings};
use super::server::{Running, on_free_port};

const PRODUCE: &str = r#"{"event":"e","message":"0123456789","from":"p"}"#;
const SUBSCRIBE: &str = r#"{"event":"e","producer":"p","consumer":"c"}"#;

/// Sends events on one socket, and tells what comes back.
async fn outcome(limits: Value, events: &[(&str, &str)]) -> Vec<Came> {
    let mut limits = limits;
    limits["enabled"] = json!(true);
    let server = Running::with(json!({"limits": limits})).await;
    let mut client = Client::connect(server.addr).await;
    for (event, payload) in events {
        client.emit(event, payload).await;
    }
    client.rest().await
}

/// One refusal, with this reason and a time to wait; the time.
fn is_told(came: &[Came], reason: &str) -> u64 {
    let [Came::Text(text)] = came else {
        panic!("{reason}: {came:?}");
    };
    let frame: Value = serde_json::from_str(&text[2..]).unwrap();
    assert_eq!(frame[0], "RATE_LIMITED");
    assert_eq!(frame[1]["code"], 429);
    assert_eq!(frame[1]["reason"], reason);
    let retry_after = frame[1]["retry_after"].as_u64().unwrap();
    assert!(retry_after >= 1, "{frame}");
    retry_after
}

#[tokio::test]
async fn one_over_each_limit_is_told_once() {
    let produce = ("PRODUCE", PRODUCE);
    let chunk = (
        "PRODUCE_CHUNK",
        r#"{"transferId":"t","index":0,"total":2,"data":"0123456789"}"#,
    );
    let producer = ("PRODUCER", r#"{"name":"p"}"#);
    let consumer = ("CONSUMER", r#"{"name":"c"}"#);
    let subscribe = ("SUBSCRIBE", SUBSCRIBE);
    let slow = json!({"messages_per_second": 0.001, "message_burst": 1});
    let small = json!({"bytes_per_second": 0.001, "bytes_burst": 15});
    let rows = [
        (
            slow.clone(),
            "messages_per_second",
            [produce, produce, produce],
        ),
        (slow, "messages_per_second", [chunk, produce, chunk]),
        (
            small.clone(),
            "bytes_per_second",
            [produce, produce, produce],
        ),
        (small, "bytes_per_second", [produce, chunk, chunk]),
        (
            json!({"max_registrations_per_socket": 1}),
            "max_registrations_per_socket",
            [producer, consumer, consumer],
        ),
        (
            json!({"max_registrations_per_realm": 1}),
            "max_registrations_per_realm",
            [producer, producer, consumer],
        ),
        (
            json!({"max_subscriptions_per_socket": 1}),
            "max_subscriptions_per_socket",
            [subscribe, subscribe, subscribe],
        ),
        (
            json!({"max_subscriptions_per_realm": 1}),
            "max_subscriptions_per_realm",
            [subscribe, subscribe, subscribe],
        ),
    ];
    for (limits, reason, events) in rows {
        let retry_after = is_told(&outcome(limits, &events).await, reason);
        assert!(!reason.starts_with("max_") || retry_after == 60, "{reason}");
    }
}

/// The events of which the second is one too many where a limit is 1, or 15 bytes.
const SECOND_TOO_MANY: [(&str, &str, &str); 6] = [
    ("messages_per_second", "message_burst", "PRODUCE"),
    ("bytes_per_second", "bytes_burst", "PRODUCE"),
    ("max_registrations_per_socket", "", "PRODUCER"),
    ("max_registrations_per_realm", "", "PRODUCER"),
    ("max_subscriptions_per_socket", "", "SUBSCRIBE"),
    ("max_subscriptions_per_realm", "", "SUBSCRIBE"),
];

#[tokio::test]
async fn a_realm_has_limits_of_its_own_or_none() {
    for (name, burst, event) in SECOND_TOO_MANY {
        let mut tight = json!({});
        tight[name] = json!(if burst.is_empty() { 1.0 } else { 0.001 });
        let mut loose = json!({});
        loose[name] = json!(0);
        if !burst.is_empty() {
            tight[burst] = json!(if name == "bytes_per_second" { 15 } else { 1 });
        }
        let payload = match event {
            "PRODUCE" => PRODUCE,
            "SUBSCRIBE" => SUBSCRIBE,
            _ => r#"{"name":"p"}"#,
        };
        for (everywhere, in_default, is_refused) in [
            (json!({}), tight.clone(), true),
            (loose.clone(), tight.clone(), true),
            (tight.clone(), loose, false),
            (tight, json!({}), true),
        ] {
            let mut limits = everywhere;
            limits["realms"] = json!({"default": in_default, "other": {}});
            let came = outcome(limits.clone(), &[(event, payload), (event, payload)]).await;
            let told: Vec<_> = came
                .iter()
                .filter(|came| matches!(came, Came::Text(text) if text.contains("RATE_LIMITED")))
                .cloned()
                .collect();
            if is_refused {
                is_told(&told, name);
            } else {
                assert_eq!(told, [], "{limits}");
            }
        }
    }
}

/// What a socket may do is counted by events, what a realm may hold by what it holds.
#[tokio::test]
async fn who_unsubscribes_makes_room_in_the_realm_and_not_in_the_socket() {
    for (name, is_refused) in [
        ("max_subscriptions_per_realm", false),
        ("max_subscriptions_per_socket", true),
    ] {
        let mut limits = json!({"enabled": true});
        limits[name] = json!(1);
        let server = Running::with(json!({"limits": limits})).await;
        let mut client = Client::connect(server.addr).await;
        client.emit("SUBSCRIBE", SUBSCRIBE).await;
        let gone = client.call("UNSUBSCRIBE", r#"{"event":"e"}"#).await;
        assert_eq!(gone["removed"], 1, "{name}");
        client.emit("SUBSCRIBE", SUBSCRIBE).await;
        let came = client.rest().await;
        if is_refused {
            is_told(&came, name);
        } else {
            assert_eq!(came, [], "{name}");
        }
    }
}

#[tokio::test]
async fn addresses_have_no_limits_of_a_realm() {
    for name in ["max_connections_per_ip", "connections_per_minute_per_ip"] {
        let mut limits = json!({"enabled": true, "realms": {"default": {}}});
        limits["realms"]["default"][name] = json!(1);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings.json");
        let block = on_free_port(json!({"limits": limits}));
        std::fs::write(&file, block.to_string()).unwrap();
        let server = Running::with_file(&file, &[]).await;
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = Client::connect(server.addr).await;
            assert_eq!(client.call_or_end("PING").await, Ok(()), "{name}");
            clients.push(client);
        }
    }
}

/// Whatever is passed on is paid for, in whichever field it stands.
#[tokio::test]
async fn no_field_carries_bytes_for_nothing() {
    let limits = json!({"enabled": true, "bytes_per_second": 0.001, "bytes_burst": 500});
    for field in ["message", "enc", "to", "contentType", "event", "from"] {
        for (length, is_passed) in [(400, true), (600, false)] {
            let server = Running::with(json!({"limits": limits})).await;
            let mut client = Client::connect(server.addr).await;
            let mut message = json!({"event": "e", "from": "p", "message": 1});
            message[field] = json!("x".repeat(length));
            let answer = client.call("PRODUCE", &message.to_string()).await;
            assert_eq!(answer["ok"], is_passed, "{field} {length}: {answer}");
        }
    }
}

/// What a message costs is paid for by each of its pieces, too, and a refused one is not half delivered.
#[tokio::test]
async fn a_piece_too_many_is_dropped_and_its_message_never_comes() {
    let limits = json!({"enabled": true, "messages_per_second": 0.001, "message_burst": 1});
    let server = Running::with(json!({"limits": limits})).await;
    let mut consumer = Client::connect(server.addr).await;
    consumer.emit("SUBSCRIBE", SUBSCRIBE).await;
    consumer.fence().await;
    let mut producer = Client::connect(server.addr).await;
    let half = |index: usize, data: &str| {
        json!({"transferId": "t", "index": index, "total": 2, "data": data}).to_string()
    };
    let (first, last) = PRODUCE.split_at(20);
    assert_ne!(
        producer.call("PRODUCE_CHUNK", &half(0, first)).await["ok"],
        false
    );
    assert_eq!(
        producer.call("PRODUCE_CHUNK", &half(1, last)).await["code"],
        429
    );
    assert_eq!(consumer.rest().await, []);
}

#[tokio::test]
async fn limits_of_zero_and_limits_that_are_off_are_none() {
    for limits in [
        json!({"enabled": true, "messages_per_second": 0, "bytes_per_second": -1}),
        json!({"enabled": false, "messages_per_second": 1, "message_burst": 1}),
    ] {
        let server = Running::with(json!({"limits": limits})).await;
        let mut client = Client::connect(server.addr).await;
        for _ in 0..20 {
            client.emit("PRODUCE", PRODUCE).await;
        }
        assert_eq!(client.rest().await, []);
    }
}

#[tokio::test]
async fn a_refused_message_is_not_delivered_and_its_confirm_says_so() {
    let limits = json!({"enabled": true, "messages_per_second": 0.001, "message_burst": 1});
    let server = Running::with(json!({"limits": limits})).await;
    let mut client = Client::connect(server.addr).await;
    client.emit("SUBSCRIBE", SUBSCRIBE).await;
    assert_eq!(client.call("PRODUCE", PRODUCE).await["ok"], true);
    assert_eq!(client.call("PRODUCE", PRODUCE).await["code"], 429);
    assert!(client.event("CONSUME-p-e").await.contains("0123456789"));
    is_told(&client.rest().await, "messages_per_second");
    // Another socket has rates of its own.
    let mut other = Client::connect(server.addr).await;
    assert_eq!(other.call("PRODUCE", PRODUCE).await["ok"], true);
}

/// Connects until it is refused; how many were let in, and what the last one was told.
async fn connect_many(server: &Running, query: &str) -> (Vec<Client>, Vec<Came>) {
    let mut admitted = Vec::new();
    loop {
        assert!(admitted.len() < 5, "nobody is refused");
        let mut client = Client::engine(server.addr, 4).await;
        client.send("40").await;
        let (joined, next) = (client.text().await, client.call_or_end("PING").await);
        assert!(joined.starts_with("40{"), "{query}: {joined}");
        match next {
            Ok(()) => admitted.push(client),
            Err(came) => return (admitted, came),
        }
    }
}

#[tokio::test]
async fn an_address_has_so_many_connections() {
    for limits in [
        json!({"enabled": true, "max_connections_per_ip": 2}),
        json!({"enabled": true, "connections_per_minute_per_ip": 2}),
    ] {
        let reason = limits
            .as_object()
            .unwrap()
            .keys()
            .find(|key| *key != "enabled")
            .unwrap()
            .clone();
        let server = Running::with(json!({"limits": limits})).await;
        let (admitted, came) = connect_many(&server, &reason).await;
        assert_eq!(admitted.len(), 2, "{reason}");
        let retry_after = is_told(&came[..1], &reason);
        assert!(reason != "max_connections_per_ip" || retry_after == 30);
        assert_eq!(came[1], Came::Text("41".to_owned()));
        if reason == "max_connections_per_ip" {
            drop(admitted);
            // Their places are free again.
            while connect_many(&server, &reason).await.0.is_empty() {}
        }
    }
}

#[tokio::test]
async fn limits_change_while_the_broker_runs() {
    let server = Running::with(settings()).await;
    let (mut client, _) = authenticate(&server, r#"{"realm":"open"}"#).await;
    let (mut elsewhere, _) = authenticate(&server, r#"{"token":"t-prod"}"#).await;
    assert_eq!(client.call("PRODUCE", PRODUCE).await["ok"], true);
    let limits = json!({"messages_per_second": 0.001, "message_burst": 1});
    let answer = manage(
        &server,
        json!({"command": "set_limits", "realm": "open", "limits": limits}),
    )
    .await;
    assert_eq!(answer["limits"]["message_burst"], 1);
    assert_eq!(client.call("PRODUCE", PRODUCE).await["ok"], true);
    assert_eq!(client.call("PRODUCE", PRODUCE).await["code"], 429);
    for _ in 0..5 {
        assert_eq!(elsewhere.call("PRODUCE", PRODUCE).await["ok"], true);
    }
    let none = json!({"messages_per_second": null, "message_burst": null});
    manage(
        &server,
        json!({"command": "set_limits", "realm": "open", "limits": none}),
    )
    .await;
    assert_eq!(client.call("PRODUCE", PRODUCE).await["ok"], true);
}

#[tokio::test]
async fn the_most_stored_messages_change_while_the_broker_runs() {
    let server = Running::with(settings()).await;
    let (mut client, _) = authenticate(&server, r#"{"realm":"open"}"#).await;
    let (mut gone, _) = authenticate(&server, r#"{"realm":"open"}"#).await;
    let subscribe =
        r#"{"event":"e","producer":"P","consumer":"gone","consumer_id":"gone","durable":true}"#;
    gone.send(&format!(r#"42["SUBSCRIBE",{subscribe}]"#)).await;
    assert!(gone.call("PING", "{}").await.is_string());
    gone.send("41").await;
    let kept = r#"{"event":"e","message":1,"from":"P","guaranteed":true}"#;
    let limit = |most: Value| json!({"command": "set_limits", "realm": "open", "limits": {"max_queued_per_realm": most}});
    // Nothing is kept until the broker has seen the consumer leave.
    let mut queued = 0;
    while queued == 0 {
        queued = client.call("PRODUCE", kept).await["queued"]
            .as_u64()
            .unwrap();
    }
    manage(&server, limit(json!(1))).await;
    assert_eq!(client.call("PRODUCE", kept).await["code"], 507);
    manage(&server, limit(Value::Null)).await;
    assert_eq!(client.call("PRODUCE", kept).await["queued"], 1);
}

#[tokio::test]
async fn behind_a_proxy_the_client_counts_if_the_proxy_is_trusted() {
    let rows = [
        // Nobody is believed: all are one address.
        (json!({}), 1),
        (json!({"trusted_proxies": ["127.0.0.0/8"]}), 2),
        (json!({"trusted_proxies": 1}), 2),
        (json!({"trusted_proxies": ["192.0.2.0/24"]}), 1),
    ];
    for (proxies, admitted) in rows {
        let mut limits = proxies.clone();
        limits["enabled"] = json!(true);
        limits["max_connections_per_ip"] = json!(1);
        let server = Running::with(json!({"limits": limits})).await;
        let mut clients = Vec::new();
        for forwarded in ["203.0.113.1", "203.0.113.2"] {
            let mut client = Client::behind_proxy(server.addr, forwarded).await;
            client.send("40").await;
            client.text().await;
            if client.call_or_end("PING").await.is_ok() {
                clients.push(client);
            }
        }
        assert_eq!(clients.len(), admitted, "{proxies}");
    }
}
