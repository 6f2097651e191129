//! Binary content: in and out as attachments, also after waiting in a store; as JSON where it must be cut.

use serde_json::Value;

use super::chunks::assemble;
use super::client::{Came, Client};
use super::script::check;
use super::server::Running;

#[tokio::test]
async fn attachments_live_and_stored() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"b","producer":"P","consumer":"c","consumer_id":"c","durable":true}]
        P> 452-7["PRODUCE",{"event":"b","message":{"one":{"_placeholder":true,"num":0},"two":{"_placeholder":true,"num":1}},"from":"P"}]
        P<
        P>> 000102ff
        P>>
        P< 437[{"ok":true,"msg_id":"<a>","routed":1,"queued":0}]
        C< 452-["CONSUME-p-b",{"event":"b","message":{"one":{"_placeholder":true,"num":0},"two":{"_placeholder":true,"num":1}},"from":"P"}]
        C<< 000102ff
        C<<
        C> 41
        P> 451-8["PRODUCE",{"event":"b","message":{"_placeholder":true,"num":0},"from":"P"}]
        P>> 2a
        P< 438[{"ok":true,"msg_id":"<b>","routed":1,"queued":1}]
        D> 42["SUBSCRIBE",{"event":"b","producer":"P","consumer":"c","consumer_id":"c","durable":true}]
        P< 42["SUBSCRIBE-TO",{"name":"c","id":"$D","socket":"$D","events":["p-b"],"online":true}]
        D< 451-["CONSUME-p-b",{"event":"b","message":{"_placeholder":true,"num":0},"from":"P"}]
        D<< 2a
        "#,
    )
    .await;
}

#[tokio::test]
async fn attachments_with_an_acknowledgement_and_a_broadcast() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"b","producer":"P","consumer":"c","ack":true}]
        P> 451-["PRODUCE",{"event":"b","message":{"_placeholder":true,"num":0},"from":"P"}]
        P>> 01
        C< 451-["CONSUME-p-b",{"event":"b","message":{"_placeholder":true,"num":0},"from":"P","msgId":"<m1>","msg_id":"<m1>","delivery_attempt":1}]
        C<< 01
        C> 42["ACK",{"msgId":"<m1>"}]
        C< 42["ACK_OK",{"ok":true,"msgId":"<m1>"}]
        C> 42["CONSUMER",{"name":"c"}]
        X> 451-["PRODUCE",{"event":"n","message":{"_placeholder":true,"num":0},"from":"P","method":"broadcast"}]
        X>> 02
        C< 451-["CONSUME-n",{"event":"n","message":{"_placeholder":true,"num":0},"from":"P"}]
        C<< 02
        C< 451-["CONSUME-p-n",{"event":"n","message":{"_placeholder":true,"num":0},"from":"P"}]
        C<< 02
        C< 451-["CONSUME-tyo-mq-all-n",{"event":"n","message":{"_placeholder":true,"num":0},"from":"P"}]
        C<< 02
        C< 451-["CONSUME-p-TM-ALL",{"event":"n","message":{"_placeholder":true,"num":0},"from":"P"}]
        C<< 02
        P! leave
        X! leave
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_text_that_must_be_cut_carries_its_bytes_as_json() {
    let server = Running::start().await;
    let mut consumer = Client::connect(server.addr).await;
    consumer
        .emit(
            "SUBSCRIBE",
            r#"{"event":"b","producer":"P","consumer":"c"}"#,
        )
        .await;
    consumer.fence().await;
    let mut producer = Client::connect(server.addr).await;
    let text = "x".repeat(300_000);
    let head = r#"451-["PRODUCE",{"event":"b","message":{"t":""#;
    let tail = r#"","b":{"_placeholder":true,"num":0}},"from":"P"}]"#;
    producer.send(&[head, &text, tail].concat()).await;
    producer.send_binary(&[1, 2, 255]).await;
    let whole = assemble(&mut consumer, "CONSUME-p-b").await;
    let expected = serde_json::json!({
        "event": "b",
        "message": {"t": text, "b": {"type": "Buffer", "data": [1, 2, 255]}},
        "from": "P",
    });
    assert!(serde_json::from_str::<Value>(&whole).unwrap() == expected);
}

#[tokio::test]
async fn a_large_attachment_stays_binary() {
    let server = Running::start().await;
    let mut consumer = Client::connect(server.addr).await;
    consumer
        .emit(
            "SUBSCRIBE",
            r#"{"event":"b","producer":"P","consumer":"c"}"#,
        )
        .await;
    consumer.fence().await;
    let mut producer = Client::connect(server.addr).await;
    let bytes: Vec<u8> = (0..3_000_000u32)
        .map(|at| (at.wrapping_mul(at) / 7) as u8)
        .collect();
    producer
        .send(r#"451-["PRODUCE",{"event":"b","message":{"_placeholder":true,"num":0},"from":"P"}]"#)
        .await;
    producer.send_binary(&bytes).await;
    assert_eq!(
        consumer.text().await,
        r#"451-["CONSUME-p-b",{"event":"b","message":{"_placeholder":true,"num":0},"from":"P"}]"#
    );
    assert!(consumer.next().await == Came::Binary(bytes));
}
