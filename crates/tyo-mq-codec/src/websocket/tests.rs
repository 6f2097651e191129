//! Tests of the frame decoder and writers.

use proptest::prelude::*;

use super::*;

const MASK: [u8; 4] = [1, 2, 3, 4];

fn masked(opcode: Opcode, fin: bool, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_masked_frame(&mut out, opcode, fin, payload, MASK);
    out
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Owned {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>),
}

impl From<Event<'_>> for Owned {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Text(text) => Self::Text(text.to_owned()),
            Event::Binary(data) => Self::Binary(data.to_vec()),
            Event::Ping(data) => Self::Ping(data.to_vec()),
            Event::Pong(data) => Self::Pong(data.to_vec()),
            Event::Close(code) => Self::Close(code),
        }
    }
}

/// Everything in `bytes`, and the bytes of an unfinished frame.
fn decode_all(decoder: &mut Decoder, bytes: &[u8]) -> Result<(Vec<Owned>, Vec<u8>), FrameError> {
    let mut buf = bytes.to_vec();
    let mut events = Vec::new();
    let mut at = 0;
    loop {
        let (consumed, event) = match decoder.decode(&mut buf[at..])? {
            Decoded::Incomplete { .. } => return Ok((events, buf[at..].to_vec())),
            Decoded::Frame { consumed, event } => (consumed, event.map(Owned::from)),
        };
        at += consumed;
        events.extend(event);
    }
}

fn check(frames: &[Vec<u8>], expected: Result<Vec<Owned>, FrameError>) {
    let mut decoder = Decoder::new(Role::Server, 1000);
    let got = decode_all(&mut decoder, &frames.concat()).map(|(events, _)| events);
    assert_eq!(got, expected, "{frames:?}");
}

fn text(text: &str) -> Owned {
    Owned::Text(text.to_owned())
}

#[test]
fn whole_messages() {
    check(
        &[masked(Opcode::Text, true, "4é".as_bytes())],
        Ok(vec![text("4é")]),
    );
    check(
        &[masked(Opcode::Binary, true, &[0xff; 300])],
        Ok(vec![Owned::Binary(vec![0xff; 300])]),
    );
    check(&[masked(Opcode::Text, true, b"")], Ok(vec![text("")]));
    check(
        &[masked(Opcode::Ping, true, b"x")],
        Ok(vec![Owned::Ping(b"x".to_vec())]),
    );
    check(
        &[masked(Opcode::Pong, true, b"")],
        Ok(vec![Owned::Pong(vec![])]),
    );
}

#[test]
fn fragments() {
    let euro = "€".as_bytes();
    check(
        &[
            masked(Opcode::Text, false, &euro[..1]),
            masked(Opcode::Ping, true, b""),
            masked(Opcode::Continuation, false, &euro[1..2]),
            masked(Opcode::Continuation, true, &euro[2..]),
            masked(Opcode::Text, true, b"next"),
        ],
        Ok(vec![Owned::Ping(vec![]), text("€"), text("next")]),
    );
    check(
        &[masked(Opcode::Continuation, true, b"x")],
        Err(FrameError::BadFragment),
    );
    check(
        &[
            masked(Opcode::Text, false, b"x"),
            masked(Opcode::Text, true, b"x"),
        ],
        Err(FrameError::BadFragment),
    );
    // 600 + 600 is over 1,000.
    check(
        &[
            masked(Opcode::Binary, false, &[0; 600]),
            masked(Opcode::Continuation, true, &[0; 600]),
        ],
        Err(FrameError::TooLarge),
    );
}

#[test]
fn invalid_text() {
    for bytes in [
        &b"42\xff"[..],
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"42\xe2",
    ] {
        check(&[masked(Opcode::Text, true, bytes)], Err(FrameError::Utf8));
    }
    // Refused at once, although more fragments could come.
    check(
        &[masked(Opcode::Text, false, b"a\xff")],
        Err(FrameError::Utf8),
    );
    check(
        &[
            masked(Opcode::Text, false, b"a\xe2"),
            masked(Opcode::Continuation, true, b"\xff"),
        ],
        Err(FrameError::Utf8),
    );
}

#[test]
fn refused_headers() {
    let with_first = |first: u8| {
        let mut frame = masked(Opcode::Text, true, b"2");
        frame[0] = first;
        frame
    };
    for bits in [0x40, 0x20, 0x10, 0x30] {
        check(&[with_first(0x81 | bits)], Err(FrameError::ReservedBits));
    }
    for opcode in [3, 7, 0xb, 0xf] {
        check(
            &[with_first(0x80 | opcode)],
            Err(FrameError::ReservedOpcode),
        );
    }
    check(&[vec![0x81, 1, b'2']], Err(FrameError::BadMask));
    check(
        &[masked(Opcode::Ping, false, b"")],
        Err(FrameError::BadControl),
    );
    check(
        &[masked(Opcode::Ping, true, &[b'x'; 126])],
        Err(FrameError::BadControl),
    );
    check(
        &[vec![0x81, 0xfe, 0, 5, 1, 2, 3, 4]],
        Err(FrameError::BadLength),
    );
    check(
        &[vec![0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0]],
        Err(FrameError::BadLength),
    );
    check(
        &[vec![0x82, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]],
        Err(FrameError::TooLarge),
    );
}

#[test]
fn close_frames() {
    let close = |payload: &[u8]| masked(Opcode::Close, true, payload);
    check(&[close(b"")], Ok(vec![Owned::Close(None)]));
    check(
        &[close(&1000u16.to_be_bytes())],
        Ok(vec![Owned::Close(Some(1000))]),
    );
    check(
        &[close(&4999u16.to_be_bytes())],
        Ok(vec![Owned::Close(Some(4999))]),
    );
    check(&[close(b"\x03")], Err(FrameError::BadClose));
    for code in [0u16, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000] {
        check(&[close(&code.to_be_bytes())], Err(FrameError::BadClose));
    }
    check(&[close(b"\x03\xe8\xff")], Err(FrameError::Utf8));
}

#[test]
fn codes() {
    assert_eq!(FrameError::Utf8.code(), 1007);
    assert_eq!(FrameError::TooLarge.code(), 1009);
    assert_eq!(FrameError::BadMask.code(), 1002);
}

#[test]
fn says_how_much_is_missing() {
    let mut decoder = Decoder::new(Role::Server, 1000);
    let frame = masked(Opcode::Binary, true, &[1; 200]);
    let mut part = frame[..8].to_vec();
    assert_eq!(
        decoder.decode(&mut part),
        Ok(Decoded::Incomplete {
            needed: frame.len()
        })
    );
    assert_eq!(
        decoder.decode(&mut []),
        Ok(Decoded::Incomplete { needed: 1 })
    );
}

#[test]
fn server_frames_are_read_by_the_client_role() {
    for size in [0, 1, 125, 126, 65_535, 65_536] {
        let payload = vec![7; size];
        let mut out = Vec::new();
        write_frame(&mut out, Opcode::Binary, &payload);
        let mut decoder = Decoder::new(Role::Client, 1 << 20);
        let (events, rest) = decode_all(&mut decoder, &out).unwrap();
        assert_eq!((events, rest.len()), (vec![Owned::Binary(payload)], 0));
    }
    let mut out = Vec::new();
    write_close(&mut out, Some(1002));
    write_close(&mut out, None);
    assert_eq!(out, [0x88, 2, 3, 0xea, 0x88, 0]);
}

fn message() -> impl Strategy<Value = Owned> {
    prop_oneof![
        any::<String>().prop_map(Owned::Text),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(Owned::Binary),
    ]
}

/// `payload` cut at `cuts` into frames.
fn fragment(opcode: Opcode, payload: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut points: Vec<usize> = cuts.iter().map(|cut| cut % (payload.len() + 1)).collect();
    points.extend([0, payload.len()]);
    points.sort_unstable();
    let last = points.len() - 2;
    let frame = |(index, part): (usize, &[usize])| {
        let opcode = if index == 0 {
            opcode
        } else {
            Opcode::Continuation
        };
        masked(opcode, index == last, &payload[part[0]..part[1]])
    };
    points.windows(2).enumerate().flat_map(frame).collect()
}

proptest! {
    #[test]
    fn round_trips_however_cut(
        messages in proptest::collection::vec((message(), proptest::collection::vec(any::<usize>(), 0..4)), 1..5),
        reads in proptest::collection::vec(1usize..40, 1..200),
    ) {
        let wire: Vec<u8> = messages
            .iter()
            .flat_map(|(message, cuts)| match message {
                Owned::Binary(data) => fragment(Opcode::Binary, data, cuts),
                Owned::Text(text) => fragment(Opcode::Text, text.as_bytes(), cuts),
                _ => unreachable!("the strategy makes messages only"),
            })
            .collect();
        let mut decoder = Decoder::new(Role::Server, 1 << 16);
        let (mut events, mut pending, mut rest) = (Vec::new(), Vec::new(), &wire[..]);
        let mut sizes = reads.iter().cycle();
        while !rest.is_empty() {
            let (read, after) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
            rest = after;
            pending.extend_from_slice(read);
            let (more, left) = decode_all(&mut decoder, &pending).unwrap();
            events.extend(more);
            pending = left;
        }
        let expected: Vec<Owned> = messages.into_iter().map(|(message, _)| message).collect();
        prop_assert_eq!(events, expected);
    }

    #[test]
    fn arbitrary_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut decoder = Decoder::new(Role::Server, 100);
        if let Ok((events, rest)) = decode_all(&mut decoder, &bytes) {
            prop_assert!(events.len() * 6 + rest.len() <= bytes.len() + 6);
        }
    }

    #[test]
    fn mask_is_its_own_inverse(data in proptest::collection::vec(any::<u8>(), 0..70), mask in any::<[u8; 4]>()) {
        let mut twice = data.clone();
        apply_mask(&mut twice, mask);
        let expected: Vec<u8> = data.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
        prop_assert_eq!(&twice, &expected);
        apply_mask(&mut twice, mask);
        prop_assert_eq!(twice, data);
    }
}
