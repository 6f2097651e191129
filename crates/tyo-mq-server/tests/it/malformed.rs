//! What clients must not send, and what that costs them: their packet, or their own connection, and nobody else's.

use super::script::check;

/// The packet is ignored: nothing comes back and the connection goes on.
async fn ignored(packet: &str) {
    check(&format!(
        r#"
        A> {packet}
        A<
        A> 421["PING",null]
        A< 431["{{\"pong\":\"PONG\",\"timestamp\":\"<time>\"}}"]
        "#
    ))
    .await;
}

/// The sender is closed without a code; its neighbour notices nothing.
async fn closes(packet: &str) {
    check(&format!(
        r#"
        B> 42["CONSUMER",{{"name":"b"}}]
        A> {packet}
        A< closed
        B<
        B> 421["PING",null]
        B< 431["{{\"pong\":\"PONG\",\"timestamp\":\"<time>\"}}"]
        "#
    ))
    .await;
}

#[tokio::test]
async fn names_that_are_none() {
    for event in ["PRODUCER", "CONSUMER"] {
        for payload in [
            "",
            ",null",
            ",5",
            ",[]",
            ",{}",
            r#",{"name":null}"#,
            r#",{"name":5}"#,
            r#",{"name":{"a":1}}"#,
            r#",{"name":["a"]}"#,
            r#",{"name":"\ud800"}"#,
            r#",true"#,
            r#",[null]"#,
        ] {
            check(&format!(
                r#"
                A> 42["{event}"{payload}]
                A< 42["ERROR",{{"message":"<words>","code":-1}}]
                "#
            ))
            .await;
        }
        ignored(&format!(r#"42["{event}","not JSON"]"#)).await;
    }
}

#[tokio::test]
async fn subscriptions_to_nothing() {
    for payload in [
        "",
        ",null",
        ",5",
        ",[]",
        ",{}",
        r#",{"producer":"x"}"#,
        r#",{"event":""}"#,
        r#",{"event":5}"#,
        r#",{"event":null}"#,
        r#",{"event":{"event":5}}"#,
        r#",{"event":"e","producer":5}"#,
        r#",{"event":"e","producer":["p"]}"#,
        r#",{"event":"e","consumer":{}}"#,
    ] {
        check(&format!(
            r#"
            A> 42["SUBSCRIBE"{payload}]
            A< 42["ERROR","<words>"]
            "#
        ))
        .await;
    }
    ignored(r#"42["SUBSCRIBE","not JSON"]"#).await;
}

#[tokio::test]
async fn messages_without_an_event() {
    for payload in [
        "",
        ",null",
        ",[]",
        ",5",
        ",\"not JSON\"",
        ",{}",
        r#",{"event":5}"#,
        r#",{"event":null,"message":1}"#,
        r#",{"event":"e","from":5}"#,
        r#",{"event":"e","from":{}}"#,
        r#",{"event":"\ud800"}"#,
    ] {
        ignored(&format!(r#"42["PRODUCE"{payload}]"#)).await;
    }
}

#[tokio::test]
async fn pieces_out_of_bounds() {
    for payload in [
        ",null",
        ",[]",
        ",{}",
        r#",{"transferId":"t","index":0,"total":-1,"data":"x"}"#,
        r#",{"transferId":"t","index":0,"total":0,"data":"x"}"#,
        r#",{"transferId":"t","index":1,"total":1,"data":"x"}"#,
        r#",{"transferId":"t","index":-1,"total":1,"data":"x"}"#,
        r#",{"transferId":"t","index":0.5,"total":1,"data":"x"}"#,
        r#",{"transferId":"t","index":"0","total":"1","data":"x"}"#,
        r#",{"transferId":"t","index":0,"total":4097,"data":"x"}"#,
        r#",{"transferId":"t","index":0,"total":1e99,"data":"x"}"#,
        r#",{"transferId":"t","index":0,"total":1,"data":5}"#,
        r#",{"transferId":"t","index":0,"total":1,"data":"null"}"#,
        r#",{"transferId":"t","index":0,"total":1,"data":"not JSON"}"#,
        r#",{"transferId":{},"index":0,"total":1,"data":"{}"}"#,
    ] {
        ignored(&format!(r#"42["PRODUCE_CHUNK"{payload}]"#)).await;
    }
}

#[tokio::test]
async fn acknowledgements_of_nothing() {
    for payload in [
        "",
        ",null",
        ",5",
        ",[]",
        ",{}",
        r#",{"msgId":null}"#,
        r#",{"msgId":""}"#,
        r#",{"msgId":{}}"#,
        r#",{"msgId":"\ud800"}"#,
        r#","not JSON""#,
        r#","msg-1-2""#,
    ] {
        check(&format!(
            r#"
            A> 42["ACK"{payload}]
            A< 42["ACK_FAIL",{{"ok":false,"code":400,"message":"<words>"}}]
            "#
        ))
        .await;
    }
    check(
        r#"
        A> 42["ACK",{"msgId":"msg-x-1"},"no function"]
        A< 42["ACK_FAIL",{"ok":false,"code":404,"message":"<words>"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn what_has_no_effect() {
    for packet in [
        "42",
        "42[5]",
        "42[5,{}]",
        r#"42["HELLO"]"#,
        r#"42["HELLO",null]"#,
        r#"42["DEBUG"]"#,
        r#"42["QUIT",5]"#,
        r#"42["UNSUBSCRIBE"]"#,
        r#"42["UNSUBSCRIBE",{}]"#,
        r#"42["UNSUBSCRIBE",[1]]"#,
        r#"42["NOT_AN_EVENT",{"a":1}]"#,
        r#"42["error",{"a":1}]"#,
        r#"42["__proto__",{"a":1}]"#,
        r#"42["PING",{"a":1}]"#,
        r#"42["PING"]"#,
        "43[1]",
        "437[1]",
        "3",
        "3probe",
        "5",
        "6",
        "41/elsewhere,",
    ] {
        ignored(packet).await;
    }
}

#[tokio::test]
async fn what_ends_the_connection() {
    for packet in [
        "",
        "2",
        "7",
        "x",
        "4",
        "40",
        "44",
        "47",
        "4x",
        "42[]",
        "42[null]",
        "42[{}]",
        "42[true]",
        "42{}",
        "42x",
        r#"42["PING""#,
        r#"42["PING",]"#,
        r#"42["PING",{"a":01}]"#,
        r#"42["connect"]"#,
        r#"42["connect_error"]"#,
        r#"42["disconnect",1]"#,
        r#"42["disconnecting"]"#,
        r#"42["newListener"]"#,
        r#"42["removeListener"]"#,
        r#"42/remote,["PING",null]"#,
        r#"4299999999999999999999["PING",null]"#,
        r#"45["PRODUCE",{"event":"e"}]"#,
        r#"451000000000-["PRODUCE",{"event":"e"}]"#,
        r#"451-["PRODUCE",{"event":"e","message":{"_placeholder":true,"num":1}}]"#,
    ] {
        closes(packet).await;
    }
}

#[tokio::test]
async fn bytes_that_nobody_waits_for() {
    check(
        r#"
        A>> 0102
        A< closed
        B> 451-["PRODUCE",{"event":"e","message":{"_placeholder":true,"num":0}}]
        B> 42["PING",null]
        B< closed
        "#,
    )
    .await;
}

#[tokio::test]
async fn an_event_before_joining() {
    check(
        r#"
        A! engine
        A> 421["PING",{"k":1}]
        A< closed
        "#,
    )
    .await;
}

#[tokio::test]
async fn nesting_is_passed_through_however_deep() {
    for levels in [200, 100_000] {
        let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        check(&format!(
            r#"
            C> 42["SUBSCRIBE",{{"event":"e","producer":"P","consumer":"c"}}]
            P> 42["PRODUCE",{{"event":"e","message":{deep},"from":"P"}}]
            C< 42["CONSUME-p-e",{{"event":"e","message":{deep},"from":"P"}}]
            "#
        ))
        .await;
        // Where the broker reads a payload itself, depth is an error and nothing worse.
        check(&format!(
            r#"
            A> 42["SUBSCRIBE",{{"event":{deep}}}]
            A< 42["ERROR","<words>"]
            A> 42["SUBSCRIBE",{{"event":"e","options":{deep},"producer":"P","consumer":"c"}}]
            A> 421["PING",{deep}]
            A< 431["<answer>"]
            A> 42{deep}
            A< closed
            "#
        ))
        .await;
    }
}

#[tokio::test]
async fn names_that_scripts_would_trip_over() {
    check(
        r#"
        C> 42["CONSUMER",{"name":"__proto__","id":"constructor"}]
        C> 42["SUBSCRIBE",{"event":"toString","producer":"hasOwnProperty","consumer":"__proto__"}]
        P> 42["PRODUCE",{"event":"toString","message":1,"from":"hasOwnProperty","__proto__":{"x":1}}]
        C< 42["CONSUME-hasownproperty-tostring",{"event":"toString","message":1,"from":"hasOwnProperty"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn names_of_a_megabyte() {
    let long = "x".repeat(1 << 20);
    check(&format!(
        r#"
        A> 42["PRODUCER",{{"name":"{long}"}}]
        A< 42["ERROR",{{"message":"<words 1>","code":-1}}]
        A> 42["CONSUMER",{{"name":"{long}"}}]
        A< 42["ERROR",{{"message":"<words 2>","code":-1}}]
        A> 42["CONSUMER",{{"name":"a","id":"{long}"}}]
        A> 42["SUBSCRIBE",{{"event":"{long}","producer":"p","consumer":"a"}}]
        A< 42["ERROR","<words 4>"]
        A> 42["SUBSCRIBE",{{"event":"e","producer":"{long}","consumer":"a"}}]
        A< 42["ERROR","<words 5>"]
        A> 42["SUBSCRIBE",{{"event":"e","producer":"p","consumer":"{long}"}}]
        A< 42["ERROR","<words 6>"]
        A> 42["PRODUCE",{{"event":"{long}","message":1,"from":"p"}}]
        A> 42["PRODUCE",{{"event":"e","message":1,"from":"{long}"}}]
        A> 42["UNSUBSCRIBE","{long}"]
        A> 42["QUIT","{long}"]
        A> 42["HELLO","{long}"]
        A> 42["PRODUCE_CHUNK",{{"transferId":"{long}","index":0,"total":2,"data":"x"}}]
        A> 42["{long}",{{}}]
        A> 42["ACK",{{"msgId":"{long}"}}]
        A< 42["ACK_FAIL",{{"ok":false,"code":<code>}}]
        A> 421["PING",null]
        A< 431["<answer>"]
        "#
    ))
    .await;
}

/// They are passed on as they are, to those who asked for them alone.
#[tokio::test]
async fn names_that_control() {
    for name in [
        "\\u0000",
        "a\\r\\nb",
        "\\u001b[2J",
        "\u{7f}",
        "\u{85}",
        "\u{202e}",
        "\u{feff}",
        "..",
        "../../x",
        "a/+/#",
        "'; DROP TABLE x; --",
        "%00",
    ] {
        check(&format!(
            r#"
            B> 42["SUBSCRIBE",{{"event":"e","producer":"p","consumer":"b"}}]
            A> 42["CONSUMER",{{"name":"{name}","id":"{name}"}}]
            A> 42["SUBSCRIBE",{{"event":"{name}","producer":"{name}","consumer":"{name}"}}]
            P> 421["PRODUCE",{{"event":"{name}","message":1,"from":"{name}"}}]
            P< 431[{{"ok":true,"msg_id":"<id>","routed":1,"queued":0}}]
            A< 42["CONSUME-<key>",{{"event":"{name}","message":1,"from":"{name}"}}]
            A> 42["QUIT","{name}"]
            A> 42["HELLO","{name}"]
            A> 42["{name}",{{}}]
            A> 422["UNSUBSCRIBE",{{"event":"{name}","producer":"{name}"}}]
            A< 432[{{"ok":true,"removed":1}}]
            B<
            "#
        ))
        .await;
    }
}

#[tokio::test]
async fn arguments_that_nobody_asked_for() {
    for event in ["HELLO", "PRODUCER", "CONSUMER", "PING", "QUIT", "DEBUG"] {
        for more in [
            "null",
            "7",
            r#""no function""#,
            "{}",
            "[]",
            r#"{"name":"p"},null,null"#,
        ] {
            check(&format!(
                r#"
                A> 42["{event}",{{"name":"p"}},{more}]
                A> 421["PING",null]
                A< 431["<answer>"]
                "#
            ))
            .await;
        }
    }
}
