//! Large messages: pieces in, pieces out, and what does not fit together.

use serde_json::{Value, json};

use super::client::{Came, Client};
use super::script::check;
use super::server::Running;

/// The text that the next deliveries, all of them pieces, add up to.
pub(crate) async fn assemble(client: &mut Client, event: &str) -> String {
    let (mut text, mut transfer) = (String::new(), None);
    for index in 0.. {
        let piece: Value = serde_json::from_str(&client.event("CONSUME_CHUNK").await).unwrap();
        let id = piece["transferId"].as_str().unwrap().to_owned();
        assert!(!id.is_empty() && id.len() <= 30);
        assert_eq!(*transfer.get_or_insert(id.clone()), id);
        assert_eq!(
            (&piece["event"], &piece["index"]),
            (&json!(event), &json!(index))
        );
        let data = piece["data"].as_str().unwrap();
        let units = data.encode_utf16().count();
        let last = piece["total"] == json!(index + 1);
        assert!(
            units <= 262_144 && (last || units >= 262_143),
            "{units} units"
        );
        text.push_str(data);
        if last {
            return text;
        }
    }
    unreachable!("every transfer has an end")
}

/// A producer and a consumer of its event `c`.
async fn pair(server: &Running) -> (Client, Client) {
    let mut consumer = Client::connect(server.addr).await;
    consumer
        .emit(
            "SUBSCRIBE",
            r#"{"event":"c","producer":"P","consumer":"c"}"#,
        )
        .await;
    consumer.fence().await;
    (Client::connect(server.addr).await, consumer)
}

#[tokio::test]
async fn where_pieces_begin() {
    let server = Running::start().await;
    let (mut producer, mut consumer) = pair(&server).await;
    let around = r#"{"event":"c","message":"","from":"P"}"#.len();
    for (units, letter) in [
        (262_143, "x"),
        (262_144, "x"),
        (262_145, "x"),
        (524_288, "x"),
        (524_289, "é"),
        (262_145, "😀"),
        (524_290, "😀"),
    ] {
        let letters = (units - around) / letter.encode_utf16().count();
        let fill = units - around - letters * letter.encode_utf16().count();
        let content = "-".repeat(fill) + &letter.repeat(letters);
        let payload = format!(r#"{{"event":"c","message":"{content}","from":"P"}}"#);
        assert_eq!(payload.encode_utf16().count(), units);
        let confirm = producer.call("PRODUCE", &payload).await;
        assert_eq!(confirm["routed"], 1);
        let came = if units <= 262_144 {
            consumer.event("CONSUME-p-c").await
        } else {
            assemble(&mut consumer, "CONSUME-p-c").await
        };
        assert!(came == payload, "{units} units of {letter}");
    }
}

#[tokio::test]
async fn pieces_carry_their_receipt() {
    let server = Running::start().await;
    let mut client = Client::connect(server.addr).await;
    let subscribe = r#"{"event":"c","producer":"P","consumer":"c","ack":true}"#;
    client.emit("SUBSCRIBE", subscribe).await;
    let content = "\\\"\\\\".repeat(100_000);
    client
        .emit(
            "PRODUCE",
            &format!(r#"{{"event":"c","message":"{content}","from":"P"}}"#),
        )
        .await;
    let whole: Value = serde_json::from_str(&assemble(&mut client, "CONSUME-p-c").await).unwrap();
    assert!(whole["message"] == "\"\\".repeat(100_000));
    let id = whole["msgId"].as_str().unwrap();
    let answer = client.call("ACK", &format!(r#"{{"msgId":"{id}"}}"#)).await;
    assert_eq!(answer, json!({"ok": true, "msgId": id}));
}

#[tokio::test]
async fn pieces_in_any_order_of_several_transfers() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"c","producer":"P","consumer":"c"}]
        P> 42["PRODUCE_CHUNK",{"transferId":"a","index":1,"total":2,"data":"\"a\",\"from\":\"P\"}"}]
        P> 42["PRODUCE_CHUNK",{"transferId":"b","index":0,"total":2,"data":"{\"event\":\"c\",\"message\":"}]
        # The same name on another socket is another transfer.
        Q> 42["PRODUCE_CHUNK",{"transferId":"a","index":0,"total":2,"data":"{\"event\":\"c\",\"message\":\"q\","}]
        P> 421["PRODUCE_CHUNK",{"transferId":"b","index":1,"total":2,"data":"\"b\",\"from\":\"P\"}"}]
        P< 431[{"ok":true,"msg_id":"<b>","routed":1,"queued":0}]
        C< 42["CONSUME-p-c",{"event":"c","message":"b","from":"P"}]
        P> 422["PRODUCE_CHUNK",{"transferId":"a","index":1,"total":2,"data":"twice"}]
        P< 432[{"ok":true}]
        P> 42["PRODUCE_CHUNK",{"transferId":"a","index":0,"total":2,"data":"{\"event\":\"c\",\"message\":"}]
        C< 42["CONSUME-p-c",{"event":"c","message":"a","from":"P"}]
        Q> 42["PRODUCE_CHUNK",{"transferId":"a","index":1,"total":2,"data":"\"from\":\"P\"}"}]
        C< 42["CONSUME-p-c",{"event":"c","message":"q","from":"P"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_pair_that_its_sender_cut_in_half() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"c","producer":"P","consumer":"c"}]
        P> 42["PRODUCE_CHUNK",{"transferId":"a","index":0,"total":2,"data":"{\"event\":\"c\",\"message\":\"\ud83d"}]
        P> 42["PRODUCE_CHUNK",{"transferId":"a","index":1,"total":2,"data":"\ude00\",\"from\":\"P\"}"}]
        C< 42["CONSUME-p-c",{"event":"c","message":"😀","from":"P"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn refusals_are_answered_where_an_ack_waits() {
    check(
        r#"
        P> 421["PRODUCE_CHUNK",{"transferId":"a","index":2,"total":2,"data":"x"}]
        P< 431[{"ok":false,"code":400,"message":"<w1>"}]
        P> 422["PRODUCE_CHUNK",{"transferId":"a","index":0,"total":1,"data":"not JSON"}]
        P< 432[{"ok":false,"code":400,"message":"<w2>"}]
        P> 423["PRODUCE_CHUNK",{"transferId":"a","index":0,"total":3,"data":"x"}]
        P< 433[{"ok":true}]
        P> 424["PRODUCE_CHUNK",{"transferId":"a","index":1,"total":2,"data":"x"}]
        P< 434[{"ok":false,"code":400,"message":"<w3>"}]
        # The transfer is forgotten: its next piece begins anew.
        P> 425["PRODUCE_CHUNK",{"transferId":"a","index":1,"total":2,"data":"x"}]
        P< 435[{"ok":true}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn transfers_are_counted_and_measured() {
    let server = Running::with(json!({"max_http_buffer_size": 4096})).await;
    let mut client = Client::connect(server.addr).await;
    for transfer in 0..64 {
        let piece = format!(r#"{{"transferId":"{transfer}","index":0,"total":9,"data":"x"}}"#);
        assert_eq!(client.call("PRODUCE_CHUNK", &piece).await["ok"], true);
    }
    let one_more = r#"{"transferId":"more","index":0,"total":9,"data":"x"}"#;
    assert_eq!(client.call("PRODUCE_CHUNK", one_more).await["code"], 429);
    let long = "x".repeat(3_000);
    let piece =
        |index| format!(r#"{{"transferId":"0","index":{index},"total":9,"data":"{long}"}}"#);
    assert_eq!(client.call("PRODUCE_CHUNK", &piece(1)).await["ok"], true);
    assert_eq!(client.call("PRODUCE_CHUNK", &piece(2)).await["code"], 413);
    assert_eq!(client.rest().await, Vec::<Came>::new());
}

#[tokio::test]
async fn two_megabytes_there_and_back() {
    let server = Running::start().await;
    let (mut producer, mut consumer) = pair(&server).await;
    let content = r#"quote \" backslash \\ line \n "#.repeat(70_000);
    let payload = format!(r#"{{"event":"c","message":"{content}","from":"P"}}"#);
    let pieces: Vec<&str> = payload
        .as_bytes()
        .chunks(262_144)
        .map(|piece| std::str::from_utf8(piece).expect("it is ASCII"))
        .collect();
    for (index, piece) in pieces.iter().enumerate() {
        let chunk =
            json!({"transferId": "t", "index": index, "total": pieces.len(), "data": piece});
        producer.emit("PRODUCE_CHUNK", &chunk.to_string()).await;
    }
    assert!(assemble(&mut consumer, "CONSUME-p-c").await == payload);
}
