//! Tests of client events: each payload form, and the answer of each malformed one.

use proptest::prelude::*;

use super::*;
use crate::{Answer, ErrorCode, Status, Ttl};

fn read(args: &str) -> ClientEvent<'_> {
    parse_event(args).unwrap_or_else(|error| panic!("{args}: {error}"))
}

fn produce(args: &str) -> Produce<'_> {
    match read(args) {
        ClientEvent::Produce(produce) => produce,
        other => panic!("{args}: {other:?}"),
    }
}

fn subscribe(payload: &str) -> Subscribe {
    match read(&format!(r#"["SUBSCRIBE",{payload}]"#)) {
        ClientEvent::Subscribe(subscribe) => *subscribe,
        other => panic!("{payload}: {other:?}"),
    }
}

fn check_answer(args: &str, expected: Answer) {
    let error = parse_event(args).expect_err(args);
    assert_eq!(error.answer(), expected, "{args}");
}

#[test]
fn what_is_no_event_closes() {
    for args in [
        "",
        "[",
        "[]",
        "{}",
        "null",
        "[1]",
        "[null]",
        "[[]]",
        r#"["PING""#,
        r#"["PING",]"#,
        r#"["PRODUCE",{"event":"e"}"#,
        r#"["PRODUCE",{"event":"e"}]x"#,
        r#"["PRODUCE",{"event":"e","message":tru}]"#,
    ] {
        check_answer(args, Answer::Close);
    }
}

#[test]
fn malformed_registrations() {
    let bad_name = Answer::ErrorObject(ErrorCode::BadName);
    for event in ["PRODUCER", "CONSUMER"] {
        for payload in [
            "",
            ",null",
            ",5",
            ",[]",
            ",{}",
            ",true",
            r#",{"name":7}"#,
            r#",{"name":null}"#,
            r#",{"name":{}}"#,
            r#",{"name":"\ud800"}"#,
            r#","null""#,
            r#","[1]""#,
        ] {
            check_answer(&format!(r#"["{event}"{payload}]"#), bad_name);
        }
        for payload in [r#","""#, r#","not json""#, r#","{nope""#] {
            check_answer(&format!(r#"["{event}"{payload}]"#), Answer::Silent);
        }
    }
}

#[test]
fn malformed_subscriptions() {
    for payload in [
        "",
        ",null",
        ",5",
        ",[]",
        ",{}",
        ",true",
        r#",{"event":""}"#,
        r#",{"event":7}"#,
        r#",{"event":null}"#,
        r#",{"event":{}}"#,
        r#",{"event":"e","producer":7}"#,
        r#",{"event":"e","consumer":[]}"#,
        r#",{"event":"\udc00"}"#,
        r#","\"x\"""#,
        r#","[1]""#,
    ] {
        check_answer(&format!(r#"["SUBSCRIBE"{payload}]"#), Answer::ErrorText);
    }
    check_answer(r#"["SUBSCRIBE","{nope"]"#, Answer::Silent);
}

#[test]
fn malformed_messages_are_dropped() {
    for payload in [
        "",
        ",null",
        ",5",
        ",[]",
        ",{}",
        ",true",
        r#",{"event":7}"#,
        r#",{"event":null}"#,
        r#",{"event":{}}"#,
        r#",{"event":"e","from":7}"#,
        r#",{"event":"e","recipients":[7]}"#,
        r#",{"event":"e","recipients":{}}"#,
        r#",{"event":"\ud800"}"#,
        r#","{nope""#,
        r#","5""#,
    ] {
        check_answer(&format!(r#"["PRODUCE"{payload}]"#), Answer::Silent);
    }
    for payload in [
        "",
        ",null",
        r#",{"transferId":"t","index":0,"total":1}"#,
        r#",{"transferId":{},"index":0,"total":1,"data":""}"#,
        r#",{"transferId":"t","index":-1,"total":1,"data":""}"#,
        r#",{"transferId":"t","index":0.5,"total":1,"data":""}"#,
        r#",{"transferId":"t","index":0,"total":1,"data":["{}"]}"#,
        r#",{"transferId":"t","index":"0","total":1,"data":""}"#,
        r#",{"transferId":"t","index":0,"total":1e40,"data":""}"#,
    ] {
        check_answer(&format!(r#"["PRODUCE_CHUNK"{payload}]"#), Answer::Silent);
    }
}

#[test]
fn malformed_acks_and_authentications() {
    for payload in [
        "",
        ",null",
        ",{}",
        ",5",
        r#","nope""#,
        r#","""#,
        r#",{"msgId":null}"#,
        r#",{"msgId":{}}"#,
        r#",{"msgId":"\ud800"}"#,
    ] {
        check_answer(
            &format!(r#"["ACK"{payload}]"#),
            Answer::AckFail(Status::Malformed),
        );
    }
    check_answer(
        r#"["AUTHENTICATION","{nope"]"#,
        Answer::AuthFail(Status::Unauthenticated),
    );
}

#[test]
fn nothing_else_can_be_malformed() {
    for event in [
        "HELLO",
        "DEBUG",
        "PING",
        "QUIT",
        "AUTHENTICATION",
        "NO_SUCH_EVENT",
        r"\ud800",
    ] {
        for payload in [
            "",
            ",null",
            ",5",
            ",[]",
            ",{}",
            ",true",
            r#",{"id":null}"#,
            r#",{"id":7},"extra""#,
        ] {
            read(&format!(r#"["{event}"{payload}]"#));
        }
    }
}

#[test]
fn errors_name_their_event() {
    let event = |args| parse_event(args).expect_err(args).event();
    assert_eq!(event(r#"["PRODUCE",null]"#), Some(EventKind::Produce));
    assert_eq!(event(r#"["UNSUBSCRIBE"]"#), Some(EventKind::Unsubscribe));
    assert_eq!(event("[]"), None);
}

#[test]
fn a_message_with_everything() {
    let args = r#"["PRODUCE",{"event":"Order \"é\"","message":{"n":1.0},"from":"Shop","ttl":"15m","lifespan":1,"to":"bob","enc":{"v":1},"contentType":"text/plain","id":"p1","guaranteed":true,"method":"broadcast","broadcast":"group","group":"g","recipients":["a","b"],"unknown":[]},"extra"]"#;
    let expected = Produce {
        event: r#"Order "é""#.into(),
        message: Some(r#"{"n":1.0}"#.into()),
        from: Some("Shop".into()),
        ttl: Some(Ttl::Millis(900_000)),
        ttl_unreadable: false,
        guaranteed: true,
        broadcast: Some(Broadcast::Group("g".into())),
        to: Some(r#""bob""#.into()),
        enc: Some(r#"{"v":1}"#.into()),
        content_type: Some(r#""text/plain""#.into()),
        id: Some("p1".into()),
        recipients: Some(vec!["a".into(), "b".into()]),
    };
    assert_eq!(produce(args), expected);
}

#[test]
fn a_message_with_nothing() {
    let bare = produce(r#"["PRODUCE",{"event":""}]"#);
    assert_eq!(bare.producer(), "ANONYMOUS");
    assert_eq!(
        (bare.event.as_ref(), bare.message, bare.ttl),
        ("", None, None)
    );
    let nulls = produce(
        r#"["PRODUCE",{"event":"e","from":null,"to":null,"enc":0,"contentType":"","id":null,"recipients":null,"message":null}]"#,
    );
    assert_eq!(nulls.message.as_deref(), Some("null"), "null is a payload");
    assert_eq!(
        (
            nulls.from,
            nulls.to,
            nulls.enc,
            nulls.content_type,
            nulls.id
        ),
        (None, None, None, None, None)
    );
}

#[test]
fn borrowed_when_it_can_be() {
    let produce = produce(r#"["PRODUCE",{"event":"e","message":[1],"from":"p"}]"#);
    assert!(matches!(produce.event, Cow::Borrowed(_)));
    assert!(matches!(produce.message, Some(Cow::Borrowed(_))));
    assert!(matches!(produce.from, Some(Cow::Borrowed(_))));
}

#[test]
fn the_last_of_duplicate_keys_counts() {
    let produce =
        produce(r#"["PRODUCE",{"event":"first","event":"last","message":1,"message":2}]"#);
    assert_eq!(
        (produce.event.as_ref(), produce.message.as_deref()),
        ("last", Some("2"))
    );
}

#[test]
fn keys_may_be_escaped_and_need_not_be_text() {
    let produce = produce(
        r#"[ "PRODUCE" , { "\u0065vent" : "e" , "\ud800" : 1 , "mess\u0061ge": 1 } , "x" ]"#,
    );
    assert_eq!(
        (produce.event.as_ref(), produce.message.as_deref()),
        ("e", Some("1"))
    );
}

#[test]
fn payloads_stay_as_they_came() {
    for message in [
        "1e400",
        "-0",
        "1.0",
        "12345678901234567890123",
        r#""\ud800""#,
        r#""\ud83d\ud83d\ude00b""#,
        r#"{"b":1,"a":2,"a":3}"#,
        r#"{ "a" : [ ] }"#,
        r#""{\"looks\":\"like JSON\"}""#,
        r#"{"__proto__":{}}"#,
    ] {
        let args = format!(r#"["PRODUCE",{{"event":"e","message":{message}}}]"#);
        assert_eq!(produce(&args).message.as_deref(), Some(message));
        let text =
            serde_json::to_string(&format!(r#"{{"event":"e","message":{message}}}"#)).unwrap();
        let args = format!(r#"["PRODUCE",{text}]"#);
        assert_eq!(
            produce(&args).message.as_deref(),
            Some(message),
            "in a string"
        );
    }
}

#[test]
fn deep_payloads() {
    let message = "[".repeat(100_000) + &"]".repeat(100_000);
    let args = format!(r#"["PRODUCE",{{"event":"e","message":{message}}}]"#);
    assert_eq!(produce(&args).message.as_deref(), Some(message.as_str()));
}

#[test]
fn guaranteed_by_any_of_its_names() {
    for field in [
        r#""guaranteed":1"#,
        r#""guaranteed_delivery":"false""#,
        r#""guaranteedDelivery":{}"#,
        r#""durable":true"#,
        r#""delivery":"guaranteed""#,
        r#""delivery_mode":"guaranteed""#,
    ] {
        assert!(
            produce(&format!(r#"["PRODUCE",{{"event":"e",{field}}}]"#)).guaranteed,
            "{field}"
        );
    }
    for field in [
        r#""guaranteed":0"#,
        r#""guaranteed":"""#,
        r#""durable":null"#,
        r#""durable":-0.0"#,
        r#""delivery":"Guaranteed""#,
        r#""delivery":true"#,
    ] {
        assert!(
            !produce(&format!(r#"["PRODUCE",{{"event":"e",{field}}}]"#)).guaranteed,
            "{field}"
        );
    }
}

#[test]
fn broadcasts() {
    let check = |fields: &str, expected: Option<Broadcast<'static>>| {
        let args = format!(r#"["PRODUCE",{{"event":"e",{fields}}}]"#);
        assert_eq!(produce(&args).broadcast, expected, "{fields}");
    };
    check(r#""method":"broadcast""#, Some(Broadcast::Realm));
    check(
        r#""method":"broadcast","broadcast":"realm","group":"g""#,
        Some(Broadcast::Realm),
    );
    check(
        r#""method":"broadcast","broadcast":"group""#,
        Some(Broadcast::Realm),
    );
    check(
        r#""method":"broadcast","broadcast":"group","group":"""#,
        Some(Broadcast::Realm),
    );
    check(
        r#""method":"broadcast","broadcast":"group","group":"g""#,
        Some(Broadcast::Group("g".into())),
    );
    check(
        r#""method":"unicast","broadcast":"group","group":"g""#,
        None,
    );
    check(r#""broadcast":"realm""#, None);
}

#[test]
fn lifetimes() {
    let check = |fields: &str, ttl: Option<Ttl>, unreadable: bool| {
        let args = format!(r#"["PRODUCE",{{"event":"e",{fields}}}]"#);
        let produce = produce(&args);
        assert_eq!(
            (produce.ttl, produce.ttl_unreadable),
            (ttl, unreadable),
            "{fields}"
        );
    };
    check(r#""ttl":5"#, Some(Ttl::Millis(5000)), false);
    check(r#""ttl":null,"lifespan":5"#, Some(Ttl::StoreDefault), false);
    check(r#""ttl":"abc""#, None, true);
    check(
        r#""ttl":"abc","lifespan":5"#,
        Some(Ttl::Millis(5000)),
        false,
    );
    check(r#""lifespan":5"#, Some(Ttl::Millis(5000)), false);
    check(r#""lifespan":0"#, Some(Ttl::Millis(0)), false);
    check(r#""lifespan":-1"#, None, false);
    check(r#""lifespan":null"#, None, false);
    check(r#""lifespan":[]"#, None, true);
    check(r#""ttl":-1"#, Some(Ttl::Never), false);
}

#[test]
fn recipients() {
    let names = |raw: &str| {
        produce(&format!(
            r#"["PRODUCE",{{"event":"e","recipients":{raw}}}]"#
        ))
        .into_owned()
        .recipients
    };
    assert_eq!(names("[]"), Some(vec![]));
    assert_eq!(names(r#""one""#), Some(vec!["one".into()]));
    let many = format!("[{}]", vec![r#""x""#; crate::MAX_RECIPIENTS + 1].join(","));
    check_answer(
        &format!(r#"["PRODUCE",{{"event":"e","recipients":{many}}}]"#),
        Answer::Silent,
    );
}

#[test]
fn an_event_may_be_an_object_that_has_one() {
    assert_eq!(produce(r#"["PRODUCE",{"event":{"event":"e"}}]"#).event, "e");
    assert_eq!(subscribe(r#"{"event":{"event":"e"}}"#).event, "e");
}

#[test]
fn registrations() {
    let producer = |payload: &str| match read(&format!(r#"["PRODUCER",{payload}]"#)) {
        ClientEvent::Producer(producer) => producer,
        other => panic!("{other:?}"),
    };
    let plain = producer(r#"{"name":"P"}"#);
    assert_eq!(
        plain,
        Producer {
            name: "P".into(),
            id: None,
            default_ttl: None,
            default_ttl_unreadable: false
        }
    );
    let full = producer(r#""{\"name\":\"P\",\"id\":7,\"default_ttl\":60}""#);
    assert_eq!(
        (full.id.as_deref(), full.default_ttl),
        (Some("7"), Some(Ttl::Millis(60_000)))
    );
    assert_eq!(
        producer(r#"{"name":"","id":"","default_ttl":null}"#).default_ttl,
        Some(Ttl::StoreDefault)
    );
    assert!(producer(r#"{"name":"P","default_ttl":"soon"}"#).default_ttl_unreadable);
    let consumer = read(r#"["CONSUMER",{"name":"C","id":"c-1","consumer_id":"ignored"}]"#);
    assert_eq!(
        consumer,
        ClientEvent::Consumer(Consumer {
            name: "C".into(),
            id: Some("c-1".into())
        })
    );
}

#[test]
fn subscription_defaults() {
    let expected = Subscribe {
        event: "E".into(),
        producer: "ANONYMOUS".into(),
        consumer: "ANONYMOUS".into(),
        id: None,
        consumer_id: None,
        all_events: false,
        durable: false,
        ack: false,
        manual_ack: false,
        ack_timeout_ms: None,
        retry: None,
        topic_mode: false,
        group: None,
        prefetch: None,
    };
    assert_eq!(subscribe(r#"{"event":"E"}"#), expected);
    let nulls = r#"{"event":"E","producer":null,"consumer":"","id":null,"scope":null,"durable":false,"consumer_id":null,"ack":false,"manual_ack":false,"ack_timeout":null,"retry":null,"mode":null,"group":null,"prefetch":null,"options":null}"#;
    assert_eq!(subscribe(nulls), expected);
}

#[test]
fn subscription_aliases_and_options() {
    let full = Subscribe {
        event: "E".into(),
        producer: "P".into(),
        consumer: "C".into(),
        id: Some("i".into()),
        consumer_id: Some("q".into()),
        all_events: true,
        durable: true,
        ack: true,
        manual_ack: true,
        ack_timeout_ms: Some(400),
        retry: Some(Retry {
            max_attempts: 2,
            delay_ms: 100,
            backoff: Backoff::Exponential,
        }),
        topic_mode: true,
        group: Some("g".into()),
        prefetch: Some(10),
    };
    assert_eq!(
        subscribe(
            r#"{"event":"E","producer":"P","consumer":"C","id":"i","consumer_id":"q","scope":"all","durable":1,"ack":true,"manual_ack":true,"ack_timeout":"400ms","retry":{"max_attempts":2,"delay":"100ms","backoff":"exponential"},"mode":"topic","group":"g","prefetch":10}"#
        ),
        full
    );
    assert_eq!(
        subscribe(
            r#"{"event":"E","producer":"P","consumer":"C","id":"i","consumerId":"q","durable":false,"options":{"scope":"all","durable":true,"requireAck":true,"manualAck":true,"ackTimeout":0.4,"retry":{"maxAttempts":"2","delay":0.1,"backoff":"exponential"},"mode":"topic","group":"g","prefetch":10.0}}"#
        ),
        full
    );
}

#[test]
fn subscription_details() {
    assert!(subscribe(r#"{"event":"Tm-All"}"#).all_events);
    assert!(!subscribe(r#"{"event":"e","mode":"TOPIC"}"#).topic_mode);
    assert!(
        subscribe(r#"{"event":"e","manual_ack":true}"#).ack,
        "manual_ack alone asks for ACKs"
    );
    assert!(subscribe(r#"{"event":"e","require_ack":1}"#).ack);
    assert_eq!(
        subscribe(r#"{"event":"e","ack_timeout":0}"#).ack_timeout_ms,
        None
    );
    assert_eq!(
        subscribe(r#"{"event":"e","ack_timeout":"2h"}"#).ack_timeout_ms,
        None
    );
    assert_eq!(subscribe(r#"{"event":"e","prefetch":0}"#).prefetch, Some(0));
    assert_eq!(subscribe(r#"{"event":"e","prefetch":-1}"#).prefetch, None);
    assert_eq!(subscribe(r#"{"event":"e","retry":5}"#).retry, None);
    assert_eq!(
        subscribe(r#"{"event":"e","group":5}"#).group.as_deref(),
        Some("5")
    );
}

#[test]
fn attempts() {
    let check = |raw: &str, expected: u32| {
        let retry = subscribe(&format!(
            r#"{{"event":"e","retry":{{"max_attempts":{raw}}}}}"#
        ))
        .retry;
        assert_eq!(
            retry.map(|retry| retry.max_attempts),
            Some(expected),
            "{raw}"
        );
    };
    for (raw, expected) in [
        ("1", 1),
        ("0", 3),
        ("-4", 1),
        ("2.5", 3),
        (r#""7""#, 7),
        (r#""0""#, 3),
        (r#""x""#, 3),
        ("null", 3),
        ("{}", 3),
        ("1e99", u32::MAX),
    ] {
        check(raw, expected);
    }
    let empty = subscribe(r#"{"event":"e","retry":{"backoff":""}}"#).retry;
    assert_eq!(empty, Some(Retry::default()));
}

#[test]
fn unsubscriptions() {
    let check = |payload: &str, expected: Unsubscribe| {
        assert_eq!(
            read(&format!(r#"["UNSUBSCRIBE",{payload}]"#)),
            ClientEvent::Unsubscribe(expected),
            "{payload}"
        );
    };
    check(r#""tyo-mq-all-e""#, Unsubscribe::Key("tyo-mq-all-e".into()));
    check(r#""CONSUME-p-e""#, Unsubscribe::Key("p-e".into()));
    check(
        r#""{\"event\":\"e\"}""#,
        Unsubscribe::Key(r#"{"event":"e"}"#.into()),
    );
    let event = |producer: Option<&str>| Unsubscribe::Event {
        event: "e".into(),
        producer: producer.map(Into::into),
        consumer: None,
    };
    check(r#"{"event":"e","producer":"P"}"#, event(Some("P")));
    check(r#"{"event":"CONSUME-e"}"#, event(None));
    for payload in [
        "",
        ",null",
        ",5",
        ",[]",
        ",{}",
        r#","""#,
        r#",{"event":"e","producer":7}"#,
    ] {
        check_answer(&format!(r#"["UNSUBSCRIBE"{payload}]"#), Answer::Silent);
    }
}

#[test]
fn acks() {
    for payload in [
        r#"{"msgId":"m"}"#,
        r#"{"msg_id":"m"}"#,
        r#"{"id":"m"}"#,
        r#"{"msgId":null,"msg_id":"m"}"#,
        r#""{\"msgId\":\"m\"}""#,
    ] {
        assert_eq!(
            read(&format!(r#"["ACK",{payload}]"#)),
            ClientEvent::Ack(Ack { msg_id: "m".into() })
        );
    }
}

#[test]
fn chunks_keep_their_text_raw() {
    let args = r#"["PRODUCE_CHUNK",{"transferId":"t","index":1.0,"total":2,"data":"\ud83d"}]"#;
    let chunk = ProduceChunk {
        transfer_id: "t".into(),
        index: 1,
        total: 2,
        data: r#""\ud83d""#.into(),
    };
    assert_eq!(read(args), ClientEvent::ProduceChunk(chunk));
    let unnamed = read(r#"["PRODUCE_CHUNK",{"index":0,"total":1,"data":""}]"#);
    assert!(matches!(unnamed, ClientEvent::ProduceChunk(chunk) if chunk.transfer_id.is_empty()));
}

#[test]
fn the_small_ones() {
    assert_eq!(read(r#"["PING"]"#), ClientEvent::Ping(None));
    assert_eq!(
        read(r#"["PING",null]"#),
        ClientEvent::Ping(Some("null".into()))
    );
    assert_eq!(
        read(r#"["QUIT","s1"]"#),
        ClientEvent::Quit(Some("s1".into()))
    );
    assert_eq!(
        read(r#"["QUIT",{"id":"s1"}]"#),
        ClientEvent::Quit(Some("s1".into()))
    );
    assert_eq!(read(r#"["QUIT",{"id":5}]"#), ClientEvent::Quit(None));
    assert_eq!(
        read(r#"["AUTHENTICATION",null]"#),
        ClientEvent::Authentication(None)
    );
    assert_eq!(
        read(r#"["AUTHENTICATION","{\"token\":\"t\"}"]"#),
        ClientEvent::Authentication(Some(r#"{"token":"t"}"#.into()))
    );
    assert_eq!(
        read(r#"["KEY_LOOKUP",{"a":1}]"#),
        ClientEvent::Other {
            name: "KEY_LOOKUP".into(),
            payload: Some(r#"{"a":1}"#.into())
        }
    );
}

#[test]
fn a_string_may_hold_half_a_pair() {
    let produce = produce(r#"["PRODUCE","{\"event\":\"e\",\"message\":\"\ud83d\"}"]"#);
    assert_eq!(produce.message.as_deref(), Some(r#""\ud83d""#));
}

#[test]
fn names_have_a_limit() {
    let name = "x".repeat(crate::MAX_NAME_BYTES + 1);
    check_answer(
        &format!(r#"["CONSUMER",{{"name":"{name}"}}]"#),
        Answer::ErrorObject(ErrorCode::BadName),
    );
    read(&format!(r#"["CONSUMER",{{"name":"{}"}}]"#, &name[1..]));
}

proptest! {
    #[test]
    fn no_text_is_too_much(args in ".*") {
        let _ = parse_event(&args);
    }

    #[test]
    fn no_payload_is_too_much(
        event in prop::sample::select(EventKind::ALL.to_vec()),
        payload in r#"(\{|\[|"|\}|\]|,|:|\\ud8|event|name|[0-9.e-]|null|true|"event":"e"|"data":"){0,12}"#,
    ) {
        let _ = parse_event(&format!(r#"["{event}",{payload}]"#));
        let text = serde_json::to_string(&payload).unwrap();
        let _ = parse_event(&format!(r#"["{event}",{text}]"#));
    }

    #[test]
    fn both_readings_agree(event in ".{0,8}", from in ".{1,8}", message in ".{0,8}") {
        let object = serde_json::json!({ "event": event, "from": from, "message": message }).to_string();
        let text = serde_json::to_string(&object).unwrap();
        let fast = format!(r#"["PRODUCE",{object}]"#);
        let slow = format!(r#"["PRODUCE",{text}]"#);
        prop_assert_eq!(parse_event(&fast), parse_event(&slow));
        let read = produce(&fast);
        prop_assert_eq!(read.event.as_ref(), event);
        prop_assert_eq!(read.producer(), from);
    }
}
