//! The long way in: polling in both revisions, and the upgrade to a WebSocket.

use serde_json::{Value, json};

use super::client::{Came, Client};
use super::http::{Answer, get, post};
use super::server::Running;

/// The id in a handshake packet.
fn sid(packet: &str) -> String {
    let fields: Value = serde_json::from_str(packet.strip_prefix('0').unwrap()).unwrap();
    fields["sid"].as_str().unwrap().to_owned()
}

/// Opens a polling session of revision 4 that has joined; its path.
async fn joined(server: &Running) -> String {
    let answer = get(server.addr, "/socket.io/?EIO=4&transport=polling").await;
    let path = format!(
        "/socket.io/?EIO=4&transport=polling&sid={}",
        sid(&answer.body)
    );
    ok(&post(server.addr, &path, "40").await);
    let answer = get(server.addr, &path).await;
    assert!(answer.body.starts_with("40{\"sid\":\""), "{}", answer.body);
    path
}

fn ok(answer: &Answer) {
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
}

#[tokio::test]
async fn a_handshake_says_what_holds() {
    let settings = json!({"pingInterval": 1234, "pingTimeout": 5678, "maxHttpBufferSize": 9012});
    let server = Running::with(settings).await;
    let answer = get(server.addr, "/socket.io/?EIO=4&transport=polling").await;
    assert!(
        answer
            .headers
            .contains("content-type: text/plain; charset=utf-8")
    );
    let mut fields: Value = serde_json::from_str(&answer.body[1..]).unwrap();
    fields["sid"] = json!("");
    let expected = json!({"sid": "", "upgrades": ["websocket"], "pingInterval": 1234, "pingTimeout": 5678, "maxPayload": 9012});
    assert_eq!(fields, expected);
}

#[tokio::test]
async fn a_message_by_polling_alone() {
    let server = Running::start().await;
    let path = joined(&server).await;
    let subscribe = r#"42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c"}]"#;
    let produce = r#"42["PRODUCE",{"event":"e","message":"é😀","from":"P"}]"#;
    ok(&post(
        server.addr,
        &path,
        &format!("{subscribe}\x1e{produce}\x1e{produce}"),
    )
    .await);
    let message = r#"42["CONSUME-p-e",{"event":"e","message":"é😀","from":"P"}]"#;
    assert_eq!(
        get(server.addr, &path).await.body,
        format!("{message}\x1e{message}")
    );
}

#[tokio::test]
async fn binary_by_polling() {
    let server = Running::start().await;
    let path = joined(&server).await;
    let subscribe = r#"42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c"}]"#;
    let produce =
        r#"451-["PRODUCE",{"event":"e","message":{"_placeholder":true,"num":0},"from":"P"}]"#;
    ok(&post(
        server.addr,
        &path,
        &format!("{subscribe}\x1e{produce}\x1ebAQL/"),
    )
    .await);
    assert_eq!(
        get(server.addr, &path).await.body,
        concat!(
            r#"451-["CONSUME-p-e",{"event":"e","message":{"_placeholder":true,"num":0},"from":"P"}]"#,
            "\x1ebAQL/"
        )
    );
}

#[tokio::test]
async fn polling_of_the_older_revision() {
    let server = Running::start().await;
    let answer = get(server.addr, "/socket.io/?EIO=3&transport=polling").await;
    let (length, rest) = answer.body.split_once(':').unwrap();
    let length: usize = length.parse().unwrap();
    let (handshake, rest) = rest.split_at(length);
    assert_eq!(rest, "");
    let path = format!("/socket.io/?EIO=3&transport=polling&sid={}", sid(handshake));
    assert_eq!(get(server.addr, &path).await.body, "2:40");
    let subscribe = r#"42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c"}]"#;
    let produce = r#"42["PRODUCE",{"event":"e","message":"é😀","from":"P"}]"#;
    // Lengths count UTF-16 units.
    let packet = |text: &str| format!("{}:{text}", text.encode_utf16().count());
    ok(&post(server.addr, &path, &(packet(subscribe) + &packet(produce))).await);
    let message = r#"42["CONSUME-p-e",{"event":"e","message":"é😀","from":"P"}]"#;
    assert_eq!(get(server.addr, &path).await.body, packet(message));
    ok(&post(server.addr, &path, "1:2").await);
    assert_eq!(get(server.addr, &path).await.body, "1:3");
}

#[tokio::test]
async fn an_upgrade_loses_and_reorders_nothing() {
    let server = Running::start().await;
    let path = joined(&server).await;
    let subscribe = r#"42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c"}]"#;
    ok(&post(server.addr, &path, subscribe).await);
    let sid = path.rsplit_once("sid=").unwrap().1;
    let mut producer = Client::connect(server.addr).await;
    let produce = async |producer: &mut Client, number: u32| {
        let payload = format!(r#"{{"event":"e","message":{number},"from":"P"}}"#);
        assert_eq!(producer.call("PRODUCE", &payload).await["routed"], 1);
    };
    let message =
        |number: u32| format!(r#"42["CONSUME-p-e",{{"event":"e","message":{number},"from":"P"}}]"#);
    produce(&mut producer, 1).await;
    let query = format!("EIO=4&transport=websocket&sid={sid}");
    let mut upgraded = Client::open(server.addr, &query).await;
    upgraded.send("2probe").await;
    assert_eq!(upgraded.text().await, "3probe");
    // From here on a poll returns at once, with what there is.
    assert_eq!(get(server.addr, &path).await.body, message(1));
    assert_eq!(get(server.addr, &path).await.body, "6");
    produce(&mut producer, 2).await;
    upgraded.send("5").await;
    produce(&mut producer, 3).await;
    assert_eq!(upgraded.text().await, message(2));
    assert_eq!(upgraded.text().await, message(3));
    // The session polls no more, and no second WebSocket may have it.
    assert_eq!(get(server.addr, &path).await.status, 400);
    produce(&mut producer, 4).await;
    assert_eq!(upgraded.text().await, message(4));
    assert_eq!(upgraded.rest().await, Vec::<Came>::new());
}

#[tokio::test]
async fn requests_that_mean_nothing() {
    let server = Running::start().await;
    for (target, code) in [
        ("/socket.io/?EIO=4&transport=pigeon", 0),
        ("/socket.io/?EIO=4", 0),
        ("/socket.io/?EIO=4&transport=polling&sid=nobody", 1),
        ("/socket.io/?EIO=4&transport=websocket", 3),
    ] {
        let answer = get(server.addr, target).await;
        let fields: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(
            (answer.status, &fields["code"]),
            (400, &json!(code)),
            "{target}"
        );
    }
    let answer = post(server.addr, "/socket.io/?EIO=4&transport=polling", "40").await;
    assert_eq!(
        (answer.status, answer.body.contains("\"code\":2")),
        (400, true)
    );
}

#[tokio::test]
async fn the_older_revision_when_it_is_off() {
    let server = Running::with(json!({"allowEIO3": false})).await;
    let answer = get(server.addr, "/socket.io/?EIO=3&transport=polling").await;
    assert_eq!(
        (answer.status, answer.body.contains("\"code\":5")),
        (400, true),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_body_over_the_limit() {
    let server = Running::with(json!({"maxHttpBufferSize": 1000})).await;
    let path = joined(&server).await;
    assert_eq!(
        post(server.addr, &path, &"4".repeat(1001)).await.status,
        413
    );
}
