//! Tests of the outbound queue.

use proptest::prelude::*;

use super::*;
use crate::frame::FrameScratch;

const LIMITS: OutboundLimits = OutboundLimits {
    max_bytes: 1000,
    high_water: 500,
    drop_oldest: true,
};

fn text(text: &str) -> Frame {
    Frame::text(|buf| buf.extend_from_slice(text.as_bytes()))
}

fn push(out: &mut Outbound, frame: &Frame, droppable: bool) -> Push {
    out.push(FrameRef::from(frame), droppable)
}

/// Everything that is to be written, taken in pieces of at most `step`.
fn drain(out: &mut Outbound, step: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    loop {
        let chunk = out.writable();
        if chunk.is_empty() {
            return wire;
        }
        let count = chunk.len().min(step);
        wire.extend_from_slice(&chunk[..count]);
        out.advance(count);
    }
}

fn body(out: &mut Outbound) -> String {
    String::from_utf8(out.take_payload(false).finish()).unwrap()
}

#[test]
fn a_poll_takes_16_packets_or_one_message() {
    let limits = OutboundLimits {
        max_bytes: 100_000,
        ..LIMITS
    };
    let mut out = Outbound::new(limits, Protocol::V4, false);
    for _ in 0..20 {
        push(&mut out, &text("a"), true);
    }
    let many = vec![Bytes::from_static(&[1]); 20];
    push(&mut out, &text("b").with_attachments(many), true);
    let mut packets = || body(&mut out).split('\u{1e}').count();
    assert_eq!([packets(), packets(), packets()], [16, 4, 21]);
}

#[test]
fn dropped_messages_do_not_widen_the_bound_of_a_poll() {
    let mut out = Outbound::new(LIMITS, Protocol::V4, false);
    for _ in 0..40 {
        push(&mut out, &text(&"x".repeat(8)), true);
    }
    let mut packets = || body(&mut out).split('\u{1e}').count();
    assert!(packets() <= 16);
}

#[test]
fn small_frames_are_joined() {
    let mut out = Outbound::new(LIMITS, Protocol::V4, true);
    assert_eq!(push(&mut out, &text("a"), true), Push::Queued);
    out.push_packet(&Frame::packet(b"2"));
    out.push_raw(b"\x8a\x00");
    assert_eq!(out.bytes(), 4 + 3 + 2);
    assert_eq!(out.writable(), b"\x81\x024a\x81\x012\x8a\x00");
    out.advance(5);
    assert_eq!(push(&mut out, &text("b"), true), Push::Queued);
    assert_eq!(drain(&mut out, 1), b"\x012\x8a\x00\x81\x024b");
    assert!(out.is_empty());
}

#[test]
fn order_is_kept_between_small_and_large() {
    let limits = OutboundLimits {
        max_bytes: 1 << 20,
        ..LIMITS
    };
    let mut out = Outbound::new(limits, Protocol::V4, true);
    let frames = [
        text("a"),
        text(&"b".repeat(LARGE)),
        text("c"),
        text(&"d".repeat(2 * LARGE)),
        text("e"),
    ];
    for frame in &frames {
        push(&mut out, frame, false);
    }
    out.push_raw(b"\x88\x00");
    let mut expected: Vec<u8> = frames
        .iter()
        .flat_map(|frame| frame.wire().to_vec())
        .collect();
    expected.extend_from_slice(b"\x88\x00");
    assert_eq!(drain(&mut out, 1000), expected);
}

#[test]
fn binary_messages_follow_their_text() {
    let frame = text("x").with_attachments(vec![Bytes::from_static(&[1, 2]), Bytes::new()]);
    let mut v4 = Outbound::new(LIMITS, Protocol::V4, true);
    push(&mut v4, &frame, true);
    assert_eq!(drain(&mut v4, 100), b"\x81\x024x\x82\x02\x01\x02\x82\x00");
    let mut v3 = Outbound::new(LIMITS, Protocol::V3, true);
    push(&mut v3, &frame, true);
    assert_eq!(
        drain(&mut v3, 100),
        b"\x81\x024x\x82\x03\x04\x01\x02\x82\x01\x04"
    );
    let mut poll = Outbound::new(LIMITS, Protocol::V4, false);
    push(&mut poll, &frame, true);
    assert_eq!(body(&mut poll), "4x\u{1e}bAQI=\u{1e}b");
    let mut raw = Outbound::new(LIMITS, Protocol::V3, false);
    push(&mut raw, &frame, true);
    push(&mut raw, &Frame::binary(Bytes::from_static(&[9])), true);
    let payload = raw.take_payload(true);
    assert!(payload.is_raw_bytes());
    assert_eq!(
        payload.finish(),
        b"\x00\x02\xff4x\x01\x03\xff\x04\x01\x02\x01\x01\xff\x04\x01\x02\xff\x04\x09"
    );
}

#[test]
fn a_full_queue_overflows_or_drops() {
    let big = text(&"x".repeat(300));
    let mut strict = Outbound::new(
        OutboundLimits {
            drop_oldest: false,
            ..LIMITS
        },
        Protocol::V4,
        false,
    );
    assert_eq!(push(&mut strict, &big, true), Push::Queued);
    assert_eq!(push(&mut strict, &big, true), Push::AboveHighWater);
    assert_eq!(push(&mut strict, &big, true), Push::Overflow);

    let mut dropping = Outbound::new(LIMITS, Protocol::V4, false);
    push(&mut dropping, &text("keep"), false);
    for name in ["a", "b", "c", "d"] {
        push(&mut dropping, &text(&name.repeat(300)), true);
    }
    assert_eq!(dropping.dropped(), 2);
    assert!(dropping.bytes() <= LIMITS.max_bytes);
    let left = body(&mut dropping);
    let names: Vec<_> = left.split('\u{1e}').map(|packet| &packet[1..2]).collect();
    assert_eq!(names, ["k", "c", "d"]);
}

#[test]
fn what_may_not_be_dropped_overflows() {
    let mut out = Outbound::new(LIMITS, Protocol::V4, false);
    let big = text(&"x".repeat(400));
    assert_eq!(push(&mut out, &big, false), Push::Queued);
    assert_eq!(push(&mut out, &big, false), Push::AboveHighWater);
    assert_eq!(push(&mut out, &big, true), Push::Dropped);
    assert_eq!(push(&mut out, &big, false), Push::Overflow);
}

#[test]
fn half_of_the_bound_counts_what_waits_and_what_comes() {
    let mut out = Outbound::new(LIMITS, Protocol::V4, false);
    let big = text(&"x".repeat(400));
    assert!(!out.is_half_full(FrameRef::from(&big)));
    push(&mut out, &text("a"), false);
    assert!(!out.is_half_full(FrameRef::from(&text("b"))));
    push(&mut out, &big, false);
    assert!(out.is_half_full(FrameRef::from(&text("b"))));
}

#[test]
fn one_message_over_the_bound_passes_an_empty_queue() {
    let mut out = Outbound::new(
        OutboundLimits {
            drop_oldest: false,
            ..LIMITS
        },
        Protocol::V4,
        true,
    );
    let huge = text(&"x".repeat(5000));
    assert_eq!(push(&mut out, &huge, false), Push::AboveHighWater);
    assert_eq!(push(&mut out, &text("y"), false), Push::Overflow);
    assert_eq!(drain(&mut out, 700), &huge.wire()[..]);
    assert_eq!(push(&mut out, &huge, false), Push::AboveHighWater);
}

#[test]
fn drained_is_told_once_below_half() {
    let mut out = Outbound::new(LIMITS, Protocol::V4, true);
    push(&mut out, &text(&"x".repeat(600)), false);
    assert!(!out.take_drained());
    out.writable();
    out.advance(300);
    assert!(!out.take_drained());
    out.advance(60);
    assert!(out.take_drained());
    assert!(!out.take_drained());
}

#[test]
fn streaming_starts_with_what_waited() {
    let mut out = Outbound::new(LIMITS, Protocol::V4, false);
    push(&mut out, &text("a"), false);
    out.push_packet(&Frame::packet(b"2"));
    out.start_streaming();
    push(&mut out, &text("b"), false);
    assert_eq!(drain(&mut out, 100), b"\x81\x024a\x81\x012\x81\x024b");
}

#[test]
fn a_frame_that_was_begun_is_finished() {
    let mut out = Outbound::new(
        OutboundLimits {
            max_bytes: 1 << 20,
            ..LIMITS
        },
        Protocol::V4,
        true,
    );
    let large = text(&"x".repeat(LARGE));
    push(&mut out, &large, false);
    push(&mut out, &text("later"), false);
    out.writable();
    out.advance(10);
    out.discard_waiting();
    out.push_raw(b"\x88\x00");
    let expected = [&large.wire()[10..], b"\x88\x00"].concat();
    assert_eq!(drain(&mut out, 1 << 20), expected);
    assert!(out.is_empty());
    out.clear();
    assert_eq!(out.bytes(), 0);
}

#[derive(Debug, Clone)]
enum Step {
    Push {
        size: usize,
        attachment: Option<usize>,
        droppable: bool,
    },
    Write(usize),
    Poll,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0usize..40_000, proptest::option::of(0usize..40_000), any::<bool>())
            .prop_map(|(size, attachment, droppable)| Step::Push { size, attachment, droppable }),
        3 => (0usize..200, proptest::option::of(0usize..200), any::<bool>())
            .prop_map(|(size, attachment, droppable)| Step::Push { size, attachment, droppable }),
        3 => (1usize..60_000).prop_map(Step::Write),
        1 => Just(Step::Poll),
    ]
}

/// The numbers of the messages in `wire`, and that nothing else is in it.
fn numbers(wire: &[u8]) -> Vec<u32> {
    use tyo_mq_codec::websocket::{Decoded, Decoder, Event, Role};
    let mut decoder = Decoder::new(Role::Client, 1 << 20);
    let mut buf = wire.to_vec();
    let (mut at, mut found) = (0, Vec::new());
    while at < buf.len() {
        let Ok(Decoded::Frame { consumed, event }) = decoder.decode(&mut buf[at..]) else {
            panic!("whole frames only");
        };
        if let Some(Event::Text(text)) = event {
            found.push(text[1..].trim_end_matches('x').parse().unwrap());
        }
        at += consumed;
    }
    found
}

proptest! {
    #[test]
    fn never_over_the_bound_and_in_order(steps in proptest::collection::vec(step(), 1..60), streaming in any::<bool>()) {
        let limits = OutboundLimits { max_bytes: 100_000, high_water: 50_000, drop_oldest: true };
        let mut out = Outbound::new(limits, Protocol::V4, streaming);
        let mut scratch = FrameScratch::default();
        let (mut wire, mut sent, mut next, mut refused) = (Vec::new(), Vec::new(), 0u32, 0);
        for step in steps {
            match step {
                Step::Push { size, attachment, droppable } => {
                    next += 1;
                    let write = |buf: &mut Vec<u8>| {
                        buf.extend_from_slice(next.to_string().as_bytes());
                        buf.resize(buf.len() + size, b'x');
                    };
                    let pushed = match attachment {
                        Some(len) => {
                            let frame = Frame::text(write).with_attachments(vec![vec![0; len].into()]);
                            push(&mut out, &frame, droppable)
                        }
                        None => out.push(scratch.text(write), droppable),
                    };
                    match pushed {
                        Push::Queued | Push::AboveHighWater => sent.push(next),
                        Push::Dropped => refused += 1,
                        Push::Overflow => {}
                    }
                }
                Step::Write(count) if streaming => {
                    let chunk = out.writable();
                    let count = count.min(chunk.len());
                    wire.extend_from_slice(&chunk[..count]);
                    out.advance(count);
                }
                Step::Poll if !streaming => {
                    let body = out.take_payload(false).finish();
                    for packet in body.split(|&byte| byte == 0x1e).filter(|packet| packet.starts_with(b"4")) {
                        let number = std::str::from_utf8(&packet[1..]).unwrap().trim_end_matches('x').to_owned();
                        wire.extend_from_slice(text(&number).wire());
                    }
                }
                Step::Write(_) | Step::Poll => {}
            }
            prop_assert!(out.bytes() <= limits.max_bytes);
        }
        if !streaming {
            out.start_streaming();
        }
        wire.extend(drain(&mut out, 5000));
        prop_assert!(out.is_empty());
        let received = numbers(&wire);
        prop_assert!(received.is_sorted());
        prop_assert!(received.iter().all(|number| sent.contains(number)));
        let dropped_later = out.dropped() - refused;
        prop_assert_eq!(received.len() as u64, sent.len() as u64 - dropped_later);
    }
}
