//! Tests of packets and connections: what the protocol's own examples say, and what must not get through.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits {
    max_packet_bytes: 1000,
};

fn packet(
    kind: PacketKind,
    namespace: &'static str,
    id: Option<u64>,
    attachments: u32,
    data: &'static str,
) -> Packet<'static> {
    Packet {
        kind,
        namespace,
        id,
        attachments,
        data,
    }
}

fn connection(revision: Revision, namespaces: &[&str]) -> Connection {
    let mut connection = Connection::new(revision, JsonCheck::Full, LIMITS);
    for namespace in namespaces {
        connection.accept(namespace, "S", &mut Vec::new()).unwrap();
    }
    connection
}

fn event(
    namespace: &'static str,
    ack: Option<u64>,
    args: &'static str,
    attachments: &[&'static [u8]],
) -> Incoming<'static> {
    let attachments = attachments
        .iter()
        .map(|bytes| Bytes::from_static(bytes))
        .collect();
    Incoming::Event {
        namespace: namespace.into(),
        ack,
        args: args.into(),
        attachments,
    }
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn frames() {
    use PacketKind::*;
    let check = |text: &str, expected: Packet<'_>| assert_eq!(decode(text), Ok(expected), "{text}");
    check("0", packet(Connect, "/", None, 0, ""));
    check(
        r#"0{"token":"x"}"#,
        packet(Connect, "/", None, 0, r#"{"token":"x"}"#),
    );
    check("0/remote,", packet(Connect, "/remote", None, 0, ""));
    check("0/remote", packet(Connect, "/remote", None, 0, ""));
    check(
        "0/remote?a=1&b=2,",
        packet(Connect, "/remote?a=1&b=2", None, 0, ""),
    );
    check("1/remote,", packet(Disconnect, "/remote", None, 0, ""));
    check(r#"2["PING"]"#, packet(Event, "/", None, 0, r#"["PING"]"#));
    check(
        r#"20["PING"]"#,
        packet(Event, "/", Some(0), 0, r#"["PING"]"#),
    );
    check(
        r#"2/ns,12["PING"]"#,
        packet(Event, "/ns", Some(12), 0, r#"["PING"]"#),
    );
    check(
        "218446744073709551615[]",
        packet(Event, "/", Some(u64::MAX), 0, "[]"),
    );
    check("2", packet(Event, "/", None, 0, ""));
    check("39[]", packet(Ack, "/", Some(9), 0, "[]"));
    check(
        r#"4/ns,{"message":"no"}"#,
        packet(ConnectError, "/ns", None, 0, r#"{"message":"no"}"#),
    );
    check(
        r#"52-/ns,7["x"]"#,
        packet(BinaryEvent, "/ns", Some(7), 2, r#"["x"]"#),
    );
    check("61-3[]", packet(BinaryAck, "/", Some(3), 1, "[]"));
}

#[test]
fn frames_that_are_none() {
    let check =
        |text: &str, expected: PacketError| assert_eq!(decode(text), Err(expected), "{text}");
    check("", PacketError::Empty);
    for text in ["7", "9[\"PING\"]", "x", "-1", "\0", "é", " 2[]"] {
        check(text, PacketError::UnknownType);
    }
    for text in [
        "5",
        "51",
        "5[\"x\"]",
        "5-",
        "51[\"x\"]",
        "5a-[]",
        "5--1-[]",
        "5 1-[]",
        "50x1-[]",
        "6",
    ] {
        check(text, PacketError::AttachmentCount);
    }
    for text in [
        "51025-[]",
        "5999999999-[]",
        "518446744073709551616-[]",
        "5000000000000000000000001-[]",
    ] {
        check(text, PacketError::TooManyAttachments);
    }
    check("218446744073709551616[]", PacketError::AckId);
    check("2000000000000000000000[]", PacketError::AckId);
    check(&"2".repeat(1_000_000), PacketError::AckId);
    check(
        &format!("0/{}", "x".repeat(MAX_NAMESPACE_BYTES)),
        PacketError::NamespaceTooLong,
    );
    check(
        &format!("0/{},", "é".repeat(MAX_NAMESPACE_BYTES)),
        PacketError::NamespaceTooLong,
    );
}

#[test]
fn joining_and_leaving() {
    let mut connection = connection(Revision::V5, &[]);
    let ask = |namespace, auth| {
        Ok(Incoming::Connect {
            namespace,
            auth,
            query: None,
        })
    };
    assert_eq!(
        connection.receive_text(r#"0{"token":1}"#),
        ask("/", Some(r#"{"token":1}"#))
    );
    assert_eq!(
        written(|out| connection.accept("/", "S1", out).unwrap()),
        r#"0{"sid":"S1"}"#
    );
    assert_eq!(connection.receive_text("0/remote,"), ask("/remote", None));
    assert_eq!(
        written(|out| connection.accept("/remote", "S2", out).unwrap()),
        r#"0/remote,{"sid":"S2"}"#
    );
    assert_eq!(connection.receive_text("0/nope,"), ask("/nope", None));
    assert_eq!(
        written(|out| connection.refuse_unknown("/nope", out)),
        r#"4/nope,{"message":"Invalid namespace"}"#
    );
    assert_eq!(connection.socket_id("/remote"), Some("S2"));
    assert_eq!(
        connection.joined().collect::<Vec<_>>(),
        [("/", "S1"), ("/remote", "S2")]
    );
    let left = Incoming::Disconnect {
        namespace: "/remote",
        socket_id: "S2".into(),
    };
    assert_eq!(connection.receive_text("1/remote,"), Ok(left));
    assert_eq!(connection.receive_text("1/remote,"), Ok(Incoming::Ignored));
    assert_eq!(connection.socket_id("/remote"), None);
    assert_eq!(written(|out| assert!(connection.leave("/", out))), "1");
    assert!(!connection.leave("/", &mut Vec::new()));
    assert_eq!(
        connection.receive_text(r#"2["PING"]"#),
        Err(PacketError::NotJoined)
    );
    assert_eq!(
        connection.receive_text("0"),
        ask("/", None),
        "it may come back"
    );
}

#[test]
fn revision_4_is_joined_unasked() {
    let mut connection = connection(Revision::V4, &[]);
    assert_eq!(connection.implicit_namespace(), Some("/"));
    assert_eq!(
        written(|out| connection.accept("/", "S1", out).unwrap()),
        "0"
    );
    assert_eq!(connection.receive_text("0"), Ok(Incoming::Ignored));
    let expected = Incoming::Connect {
        namespace: "/remote",
        auth: None,
        query: Some("token=x"),
    };
    assert_eq!(connection.receive_text("0/remote?token=x,"), Ok(expected));
    assert_eq!(
        written(|out| connection.accept("/remote", "S1", out).unwrap()),
        "0/remote,"
    );
    let event = event("/remote", None, r#"["e"]"#, &[]);
    assert_eq!(
        connection.receive_text(r#"2/remote?token=x,["e"]"#),
        Ok(event)
    );
}

#[test]
fn events_and_answers() {
    let mut connection = connection(Revision::V5, &["/", "/ns"]);
    assert_eq!(
        connection.receive_text(r#"2["e",1]"#),
        Ok(event("/", None, r#"["e",1]"#, &[]))
    );
    assert_eq!(
        connection.receive_text(r#"2/ns,0[ "e" ]"#),
        Ok(event("/ns", Some(0), r#"[ "e" ]"#, &[]))
    );
    let answer = Incoming::Ack {
        namespace: "/".into(),
        id: 9,
        args: "[1]".into(),
        attachments: vec![],
    };
    assert_eq!(connection.receive_text("39[1]"), Ok(answer));
}

#[test]
fn what_is_ignored() {
    let mut connection = connection(Revision::V5, &["/"]);
    for text in ["2", "20", "2[5]", "2[-1,{}]", "3", "39", "3[1]"] {
        assert_eq!(
            connection.receive_text(text),
            Ok(Incoming::Ignored),
            "{text}"
        );
    }
}

#[test]
fn what_closes() {
    for (text, expected) in [
        ("0", PacketError::AlreadyJoined),
        ("0/x,[]", PacketError::Shape),
        ("0/x,null", PacketError::Shape),
        ("0/x,{", PacketError::Json),
        ("1{}", PacketError::Shape),
        ("4", PacketError::NotAllowed),
        (r#"4["error"]"#, PacketError::NotAllowed),
        (r#"2{"a":1}"#, PacketError::Shape),
        (r#"2"PING""#, PacketError::Shape),
        ("2null", PacketError::Shape),
        ("2true", PacketError::Shape),
        ("2[]", PacketError::Shape),
        ("2[null]", PacketError::Shape),
        ("2[{}]", PacketError::Shape),
        ("2[[]]", PacketError::Shape),
        ("2[", PacketError::Shape),
        (r#"2["PING""#, PacketError::Json),
        (r#"2["PING"#, PacketError::Json),
        (r#"2["PING",]"#, PacketError::Json),
        (r#"2["PING"]x"#, PacketError::Json),
        ("2[1,]", PacketError::Json),
        ("3{}", PacketError::Shape),
        ("3[", PacketError::Json),
        (r#"2["connect"]"#, PacketError::ReservedName),
        (r#"2["connect_error"]"#, PacketError::ReservedName),
        (r#"2["disconnect"]"#, PacketError::ReservedName),
        (r#"2["\u0064isconnecting"]"#, PacketError::ReservedName),
        (r#"2["newListener"]"#, PacketError::ReservedName),
        (r#"2["removeListener"]"#, PacketError::ReservedName),
        (r#"2/nope,["PING"]"#, PacketError::NotJoined),
        ("3/nope,1[]", PacketError::NotJoined),
        (r#"51-/nope,["PING"]"#, PacketError::NotJoined),
        ("51-", PacketError::Shape),
        ("51-[1]", PacketError::Shape),
        (r#"51-["x""#, PacketError::Json),
        (r#"51-["connect"]"#, PacketError::ReservedName),
        (
            r#"51-["x",{"_placeholder":true,"num":1}]"#,
            PacketError::Placeholder,
        ),
    ] {
        assert_eq!(
            connection(Revision::V5, &["/"]).receive_text(text),
            Err(expected),
            "{text}"
        );
    }
    let mut connection = connection(Revision::V5, &[]);
    assert_eq!(
        connection.receive_text(r#"21["PING",{}]"#),
        Err(PacketError::NotJoined)
    );
}

#[test]
fn names_that_are_not_reserved() {
    for text in [
        r#"2["error"]"#,
        r#"2["connection"]"#,
        r#"2["CONNECT"]"#,
        r#"2[""]"#,
        r#"2["\ud800"]"#,
        r#"2["\\"]"#,
    ] {
        assert!(
            connection(Revision::V5, &["/"]).receive_text(text).is_ok(),
            "{text}"
        );
    }
}

#[test]
fn depth_is_no_trouble() {
    let text = format!(r#"2["e",{}1{}]"#, "[".repeat(200_000), "]".repeat(200_000));
    assert!(connection(Revision::V5, &["/"]).receive_text(&text).is_ok());
    let open = format!(r#"2["e",{}"#, "[{\"a\":".repeat(200_000));
    assert_eq!(
        connection(Revision::V5, &["/"]).receive_text(&open),
        Err(PacketError::Json)
    );
}

#[test]
fn the_rest_may_be_left_to_the_caller() {
    let mut connection = Connection::new(Revision::V5, JsonCheck::Name, LIMITS);
    connection.accept("/", "S", &mut Vec::new()).unwrap();
    assert_eq!(
        connection.receive_text(r#"2["e",]"#),
        Ok(event("/", None, r#"["e",]"#, &[]))
    );
    assert_eq!(
        connection.receive_text(r#"2["connect",]"#),
        Err(PacketError::ReservedName)
    );
    assert_eq!(
        connection.receive_text(r#"51-["e",]"#),
        Err(PacketError::Json)
    );
}

#[test]
fn attachments() {
    let mut connection = connection(Revision::V5, &["/"]);
    const ARGS: &str = r#"["e",{"num":1,"_placeholder":true},{"_placeholder":true,"num":0}]"#;
    assert_eq!(
        connection.receive_text(&format!("52-7{ARGS}")),
        Ok(Incoming::NeedMore)
    );
    assert_eq!(connection.receive_binary(b"a"), Ok(Incoming::NeedMore));
    assert_eq!(
        connection.receive_binary(b"bc"),
        Ok(event("/", Some(7), ARGS, &[b"a", b"bc"]))
    );
    assert_eq!(connection.receive_text("61-4[]"), Ok(Incoming::NeedMore));
    let attachments = vec![Bytes::new()];
    let answer = Incoming::Ack {
        namespace: "/".into(),
        id: 4,
        args: "[]".into(),
        attachments,
    };
    assert_eq!(connection.receive_binary(b""), Ok(answer));
    assert_eq!(
        connection.receive_binary(b"x"),
        Err(PacketError::UnexpectedBinary)
    );
}

#[test]
fn no_attachments_are_complete_at_once() {
    let mut connection = connection(Revision::V5, &["/"]);
    assert_eq!(
        connection.receive_text(r#"50-1["PING",{"k":1}]"#),
        Ok(event("/", Some(1), r#"["PING",{"k":1}]"#, &[]))
    );
    assert_eq!(
        connection.receive_text(r#"2["e"]"#),
        Ok(event("/", None, r#"["e"]"#, &[]))
    );
}

#[test]
fn attachments_that_do_not_come() {
    let mut connection = connection(Revision::V5, &["/"]);
    assert_eq!(
        connection.receive_text(r#"51-["e"]"#),
        Ok(Incoming::NeedMore)
    );
    assert_eq!(
        connection.receive_text(r#"2["PING",{}]"#),
        Err(PacketError::AttachmentDue)
    );
}

#[test]
fn attachments_have_a_limit() {
    let mut connection = connection(Revision::V5, &["/"]);
    assert_eq!(
        connection.receive_text(r#"52-["e"]"#),
        Ok(Incoming::NeedMore)
    );
    assert_eq!(connection.receive_binary(&[0; 600]), Ok(Incoming::NeedMore));
    assert_eq!(
        connection.receive_binary(&[0; 600]),
        Err(PacketError::TooLarge { max: 1000 })
    );
}

#[test]
fn attachments_for_a_namespace_that_was_left() {
    let mut connection = connection(Revision::V5, &["/"]);
    assert_eq!(
        connection.receive_text(r#"51-["e"]"#),
        Ok(Incoming::NeedMore)
    );
    assert!(connection.leave("/", &mut Vec::new()));
    assert_eq!(connection.receive_binary(b"x"), Err(PacketError::NotJoined));
}

#[test]
fn namespaces_have_a_limit() {
    let names: Vec<String> = (0..MAX_NAMESPACES)
        .map(|index| format!("/{index}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut connection = connection(Revision::V5, &names);
    assert_eq!(
        connection.receive_text("0/more,"),
        Err(PacketError::TooManyNamespaces)
    );
    assert_eq!(
        connection.accept("/more", "S", &mut Vec::new()),
        Err(PacketError::TooManyNamespaces)
    );
    assert_eq!(
        connection.accept("/1", "S", &mut Vec::new()),
        Err(PacketError::AlreadyJoined)
    );
}

#[test]
fn packets_are_written() {
    let check = |write: &dyn Fn(&mut Vec<u8>), expected: &str| assert_eq!(written(write), expected);
    check(
        &|out| write_event_start(out, "/", None, 0, "a\"é"),
        r#"2["a\"é","#,
    );
    check(
        &|out| write_event_start(out, "/ns", Some(7), 2, "e"),
        r#"52-/ns,7["e","#,
    );
    check(
        &|out| write_event(out, "/", None, 0, "e", &["1", "[]"]),
        r#"2["e",1,[]]"#,
    );
    check(
        &|out| write_event(out, "/", Some(0), 0, "e", &[]),
        r#"20["e"]"#,
    );
    check(&|out| write_ack_start(out, "/", 0, 0), "30[");
    check(
        &|out| write_ack_start(out, "/ns", u64::MAX, 1),
        "61-/ns,18446744073709551615[",
    );
    check(&|out| write_ack(out, "/", 7, &["1", "2"]), "37[1,2]");
    check(&|out| write_connect_request(out, "/", None), "0");
    check(
        &|out| write_connect_request(out, "/ns", Some("{}")),
        "0/ns,{}",
    );
    check(
        &|out| write_connect(out, Revision::V5, "/", "a\"b"),
        r#"0{"sid":"a\"b"}"#,
    );
    check(&|out| write_disconnect(out, "/ns"), "1/ns,");
}

proptest! {
    #[test]
    fn no_text_is_too_much(text in r#"[0-7]?[0-9-]{0,3}(/[a-z?]{0,3},?)?([0-9]{0,22})?(\[|"|\{|\\|_placeholder|true|num|:|,|é|\]|\}|.){0,12}"#) {
        for (revision, json) in [(Revision::V5, JsonCheck::Full), (Revision::V4, JsonCheck::Name)] {
            let mut connection = Connection::new(revision, json, LIMITS);
            connection.accept("/", "S", &mut Vec::new()).unwrap();
            if let Ok(Incoming::NeedMore) = connection.receive_text(&text) {
                let _ = connection.receive_binary(text.as_bytes());
            }
        }
    }

    #[test]
    fn what_is_written_is_read(
        namespace in "/[a-z]{0,8}",
        id in prop::option::of(any::<u64>()),
        attachments in 0u32..=MAX_ATTACHMENTS,
        name in ".{0,16}",
        arg in ".{0,16}",
    ) {
        let arg = written(|out| write_json_string(out, &arg));
        let text = written(|out| write_event(out, &namespace, id, attachments as usize, &name, &[&arg]));
        let packet = decode(&text).unwrap();
        prop_assert_eq!((packet.namespace, packet.id, packet.attachments), (namespace.as_str(), id, attachments));
        let values: Vec<String> = serde_json::from_str(packet.data).unwrap();
        prop_assert_eq!(&values[0], &name);
        prop_assert_eq!(serde_json::to_string(&values[1]).unwrap(), arg);
    }

    #[test]
    fn attachments_arrive_whole(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..10)) {
        let mut connection = connection(Revision::V5, &["/"]);
        let text = format!(r#"5{}-["e"]"#, pieces.len());
        prop_assert_eq!(connection.receive_text(&text), Ok(Incoming::NeedMore));
        let (last, others) = pieces.split_last().unwrap();
        for piece in others {
            prop_assert_eq!(connection.receive_binary(piece), Ok(Incoming::NeedMore));
        }
        let Ok(Incoming::Event { attachments, .. }) = connection.receive_binary(last) else { panic!("not complete") };
        prop_assert_eq!(attachments, pieces);
    }
}
