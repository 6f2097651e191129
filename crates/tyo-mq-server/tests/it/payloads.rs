//! Content is nobody's business: bytes, numbers, halves of pairs and JSON in strings come out as they went in.

use super::script::check;

#[tokio::test]
async fn json_is_passed_through_byte_for_byte() {
    for message in [
        "null",
        "0",
        "-0",
        "1e21",
        "0.10",
        "1E+2",
        "12345678901234567890",
        "1e400",
        "true",
        r#""""#,
        r#""\u00e9\/\b\ud83d\ude00é😀""#,
        r#""\ud83d""#,
        r#""\u0000\u2028 ""#,
        r#"{"z":1,"a":{"b":[1,2,{"c":null}]},"z":2}"#,
        r#"{ "spaced" : [ 1 , 2 ] }"#,
        r#"{"__proto__":{"x":1},"":""}"#,
        r#"{"\ud800":"\udc00"}"#,
        "[]",
    ] {
        check(&format!(
            r#"
            C> 42["SUBSCRIBE",{{"event":"e","producer":"P","consumer":"c"}}]
            P> 42["PRODUCE",{{"event":"e","message":{message},"from":"P","to":{message},"enc":{{"v":{message}}}}}]
            C< 42["CONSUME-p-e",{{"event":"e","message":{message},"from":"P","enc":{{"v":{message}}}{to}}}]
            "#,
            // What JavaScript takes for false is no recipient.
            to = match message {
                "null" | "0" | "-0" | r#""""# => String::new(),
                truthy => format!(r#","to":{truthy}"#),
            }
        ))
        .await;
    }
}

#[tokio::test]
async fn only_known_fields_reach_the_consumer() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c"}]
        P> 42["PRODUCE",{"extra":1,"contentType":"text/plain","ttl":5,"id":"x","from":"P","event":"e"}]
        C< 42["CONSUME-p-e",{"event":"e","from":"P","content_type":"text/plain"}]
        A> 42["SUBSCRIBE",{"event":"","producer":"P","consumer":"a"}]
        A< 42["ERROR","<words>"]
        A> 42["SUBSCRIBE",{"event":"e","consumer":"a"}]
        P> 42["PRODUCE",{"event":"e","message":1}]
        A< 42["CONSUME-anonymous-e",{"event":"e","message":1,"from":"ANONYMOUS"}]
        P> 42["PRODUCE",{"event":"e","message":1,"from":""}]
        A< 42["CONSUME-anonymous-e",{"event":"e","message":1,"from":"ANONYMOUS"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn payloads_as_json_in_a_string() {
    check(
        r#"
        P> 42["PRODUCER","{\"name\":\"P\",\"id\":\"P\"}"]
        C> 42["CONSUMER","{\"name\":\"c\",\"id\":\"c\"}"]
        C> 42["SUBSCRIBE","{\"event\":\"e\",\"producer\":\"P\",\"consumer\":\"c\",\"ack\":true}"]
        P< 42["SUBSCRIBE-TO-P",{"name":"c","id":"c","socket":"$C","events":["p-e"],"online":true}]
        P> 421["PRODUCE","{\"event\":\"e\",\"message\":\"\\ud83d\\u00e9\",\"from\":\"P\"}"]
        C< 42["CONSUME-p-e",{"event":"e","message":"\ud83d\u00e9","from":"P","msgId":"<m1>","msg_id":"<m1>","delivery_attempt":1}]
        P< 431[{"ok":true,"msg_id":"<m0>","routed":1,"queued":0}]
        C> 42["ACK","{\"msgId\":\"<m1>\"}"]
        C< 42["ACK_OK",{"ok":true,"msgId":"<m1>"}]
        P> 42["PRODUCE_CHUNK","{\"transferId\":\"t\",\"index\":0,\"total\":1,\"data\":\"{\\\"event\\\":\\\"e\\\",\\\"message\\\":2,\\\"from\\\":\\\"P\\\"}\"}"]
        C< 42["CONSUME-p-e",{"event":"e","message":2,"from":"P","msgId":"<m2>","msg_id":"<m2>","delivery_attempt":1}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_ping_comes_back_as_text() {
    check(
        r#"
        A> 427["PING",{"app_id":"x","n":1.0,"pong":0}]
        A< 437["{\"app_id\":\"x\",\"n\":1.0,\"pong\":\"PONG\",\"timestamp\":\"<t1>\"}"]
        A> 428["PING",null]
        A< 438["{\"pong\":\"PONG\",\"timestamp\":\"<t2>\"}"]
        A> 429["PING","str"]
        A< 439["{\"0\":\"s\",\"1\":\"t\",\"2\":\"r\",\"pong\":\"PONG\",\"timestamp\":\"<t3>\"}"]
        A> 4210["PING"]
        A<
        "#,
    )
    .await;
}

#[tokio::test]
async fn names_keep_their_case_and_keys_lose_it_in_unicode() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"ÄÖ","producer":"ÅÉ","consumer":"c"}]
        P> 42["PRODUCE",{"event":"äÖ","message":1,"from":"åé"}]
        C< 42["CONSUME-åé-äö",{"event":"äÖ","message":1,"from":"åé"}]
        Q> 42["SUBSCRIBE",{"event":"a\"b\\c\n","producer":"q","consumer":"q"}]
        Q> 42["PRODUCE",{"event":"A\"b\\c\n","message":1,"from":"q"}]
        Q< 42["CONSUME-q-a\"b\\c\n",{"event":"A\"b\\c\n","message":1,"from":"q"}]
        "#,
    )
    .await;
}
