//! Tests of the session machine, on a clock of numbers.

use super::*;

const TIMING: Timing = Timing {
    ping_interval_ms: 300,
    ping_timeout_ms: 200,
    upgrade_timeout_ms: 1000,
};

fn session(protocol: Protocol, carrier: Carrier) -> Session {
    Session::new(protocol, carrier, TIMING, 1000)
}

#[test]
fn v4_server_pings_and_waits() {
    let mut session = session(Protocol::V4, Carrier::WebSocket);
    assert_eq!(session.deadline(), 1300);
    assert_eq!(session.on_timer(1299), None);
    assert_eq!(session.on_timer(1305), Some(TimerEvent::Ping));
    assert_eq!(session.deadline(), 1505);
    assert_eq!(session.on_packet(Packet::Pong(""), 1400), Reaction::Ignore);
    assert_eq!(session.deadline(), 1700);
    assert_eq!(session.on_timer(1700), Some(TimerEvent::Ping));
    // Messages are no pong.
    assert_eq!(
        session.on_packet(Packet::Text("x"), 1800),
        Reaction::Message(Packet::Text("x"))
    );
    assert_eq!(
        session.on_timer(1900),
        Some(TimerEvent::Close(CloseReason::PingTimeout))
    );
}

#[test]
fn v4_unasked_pong_does_not_postpone_the_ping() {
    let mut session = session(Protocol::V4, Carrier::WebSocket);
    session.on_packet(Packet::Pong(""), 1290);
    assert_eq!(session.deadline(), 1300);
}

#[test]
fn v3_client_pings() {
    let mut session = session(Protocol::V3, Carrier::WebSocket);
    assert_eq!(session.deadline(), 1500);
    assert_eq!(session.on_packet(Packet::Ping(""), 1400), Reaction::Pong);
    assert_eq!(session.on_timer(1899), None);
    assert_eq!(
        session.on_timer(1900),
        Some(TimerEvent::Close(CloseReason::PingTimeout))
    );
}

#[test]
fn packets_that_servers_only_send() {
    let mut v4 = session(Protocol::V4, Carrier::WebSocket);
    assert_eq!(
        v4.on_packet(Packet::Ping(""), 1),
        Reaction::Close(CloseReason::ParseError)
    );
    for packet in [
        Packet::Close,
        Packet::Open(""),
        Packet::Upgrade,
        Packet::Noop,
    ] {
        assert_eq!(v4.on_packet(packet, 1), Reaction::Ignore);
    }
    let mut polling = session(Protocol::V4, Carrier::Polling);
    assert_eq!(
        polling.on_packet(Packet::Close, 1),
        Reaction::Close(CloseReason::ClientClosed)
    );
}

#[test]
fn overlapping_polls_close() {
    let mut session = session(Protocol::V4, Carrier::Polling);
    assert_eq!(session.begin_poll(1000), Ok(()));
    assert!(!session.must_answer_poll());
    assert_eq!(session.begin_poll(1001), Err(Violation::Concurrent));
    assert!(session.must_answer_poll());
    assert_eq!(session.poll_ending(true), Some(&b"1"[..]));
    session.end_poll();
    assert_eq!(session.begin_poll(1002), Err(Violation::Closed));
}

#[test]
fn overlapping_posts_close() {
    let mut session = session(Protocol::V4, Carrier::Polling);
    assert_eq!(session.begin_post(1000), Ok(()));
    assert_eq!(session.begin_poll(1000), Ok(()));
    assert_eq!(session.begin_post(1001), Err(Violation::Concurrent));
    assert_eq!(session.closed(), Some(CloseReason::ConcurrentRequest));
}

#[test]
fn client_close_lets_the_poll_go_with_a_noop() {
    let mut session = session(Protocol::V4, Carrier::Polling);
    session.begin_poll(1000).unwrap();
    assert!(session.close(CloseReason::ClientClosed));
    assert!(!session.close(CloseReason::ParseError));
    assert_eq!(session.poll_ending(true), Some(&b"6"[..]));
}

#[test]
fn silent_polling_session_expires_without_a_timer() {
    let mut session = session(Protocol::V4, Carrier::Polling);
    assert_eq!(session.on_timer(1300), Some(TimerEvent::Ping));
    assert_eq!(session.begin_poll(1500), Err(Violation::Closed));
    assert_eq!(session.closed(), Some(CloseReason::PingTimeout));
}

#[test]
fn long_post_keeps_the_session() {
    let mut session = session(Protocol::V4, Carrier::Polling);
    session.begin_post(1290).unwrap();
    assert_eq!(session.on_timer(1300), Some(TimerEvent::Ping));
    session.post_progress(1450);
    assert_eq!(session.on_timer(1600), None);
    assert_eq!(
        session.on_timer(1650),
        Some(TimerEvent::Close(CloseReason::PingTimeout))
    );
}

#[test]
fn upgrade_completes() {
    let mut session = session(Protocol::V4, Carrier::Polling);
    session.begin_poll(1000).unwrap();
    assert_eq!(session.begin_upgrade(1000), Ok(()));
    assert_eq!(session.upgrade_deadline(), Some(2000));
    assert_eq!(session.begin_upgrade(1000), Err(Violation::Upgrading));
    assert!(!session.must_answer_poll());
    assert_eq!(
        session.on_upgrade_packet(&Packet::Ping("probe"), 1001),
        UpgradeStep::AnswerProbe
    );
    assert!(session.must_answer_poll());
    assert_eq!(session.poll_ending(true), Some(&b"6"[..]));
    assert_eq!(session.poll_ending(false), None);
    session.end_poll();
    session.begin_poll(1002).unwrap();
    session.end_poll();
    assert_eq!(
        session.on_upgrade_packet(&Packet::Upgrade, 1003),
        UpgradeStep::Complete
    );
    assert_eq!(session.carrier(), Carrier::WebSocket);
    assert_eq!(session.begin_poll(1004), Err(Violation::NotPolling));
    assert_eq!(session.begin_post(1004), Err(Violation::NotPolling));
    assert_eq!(session.begin_upgrade(1004), Err(Violation::NotPolling));
    assert_eq!(session.upgrade_deadline(), None);
}

#[test]
fn upgrade_needs_the_probe() {
    for packet in [
        Packet::Text("0"),
        Packet::Upgrade,
        Packet::Ping(""),
        Packet::Noop,
    ] {
        let mut session = session(Protocol::V4, Carrier::Polling);
        session.begin_upgrade(1000).unwrap();
        assert_eq!(
            session.on_upgrade_packet(&packet, 1000),
            UpgradeStep::Refuse,
            "{packet:?}"
        );
        session.abandon_upgrade();
        assert_eq!(session.begin_poll(1000), Ok(()));
        assert!(!session.must_answer_poll());
        assert_eq!(session.begin_upgrade(1000), Ok(()));
    }
}

#[test]
fn reasons_that_let_the_queue_out() {
    assert!(CloseReason::ServerClosed.drains() && CloseReason::ServerShutdown.drains());
    assert!(!CloseReason::ParseError.drains() && !CloseReason::SlowConsumer.drains());
}
