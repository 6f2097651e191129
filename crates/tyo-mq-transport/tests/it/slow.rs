//! Clients that do not read.

use tyo_mq_transport::{CloseReason, EngineConfig, SendKind, SendOutcome, SlowConsumer};

use crate::support::{Event, Server, quiet, text};

const MAX: usize = 200_000;

fn bounded(slow_consumer: SlowConsumer) -> EngineConfig {
    EngineConfig {
        outbound_max_bytes: MAX,
        outbound_high_water_bytes: 50_000,
        slow_consumer,
        ..quiet()
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_closed() {
    let mut server = Server::start(bounded(SlowConsumer::Disconnect)).await;
    let slow = server.ws_open(4).await;
    let (slow_conn, _) = server.opened().await;
    let mut healthy = server.ws_open(4).await;
    let (healthy_conn, _) = server.opened().await;
    let message = text(&"x".repeat(10_000));
    loop {
        let outcome = slow_conn.send(&message, SendKind::Keep);
        slow_conn.flush();
        assert!(slow_conn.queued_bytes() <= MAX);
        // Others are served meanwhile.
        healthy_conn.send(&text("fine"), SendKind::Keep);
        healthy_conn.flush();
        assert_eq!(healthy.text().await, "4fine");
        if outcome == SendOutcome::Overflow {
            break;
        }
    }
    assert_eq!(server.closed().await, CloseReason::SlowConsumer);
    assert_eq!(
        (
            slow_conn.queued_bytes(),
            slow_conn.send(&message, SendKind::Keep)
        ),
        (0, SendOutcome::Closed)
    );
    drop(slow);
}

#[tokio::test]
async fn the_oldest_messages_are_dropped() {
    let mut server = Server::start(bounded(SlowConsumer::Drop)).await;
    let mut client = server.ws_open(4).await;
    let (conn, _) = server.opened().await;
    let padding = "x".repeat(10_000);
    let mut sent = 0;
    while conn.dropped_messages() < 50 {
        conn.send(&text(&format!("{sent} {padding}")), SendKind::Droppable);
        conn.flush();
        assert!(conn.queued_bytes() <= MAX);
        sent += 1;
    }
    assert_eq!(
        conn.send(&text("kept"), SendKind::Keep),
        SendOutcome::AboveHighWater
    );
    let dropped = conn.dropped_messages();
    let mut received = Vec::new();
    loop {
        let packet = client.text().await;
        if packet == "4kept" {
            break;
        }
        received.push(
            packet[1..]
                .split(' ')
                .next()
                .unwrap()
                .parse::<u64>()
                .unwrap(),
        );
    }
    assert!(received.is_sorted());
    assert_eq!(received.len() as u64, sent - dropped);
    assert_eq!(received.last(), Some(&(sent - 1)));
    // The queue ran empty while the client read.
    loop {
        if matches!(server.event().await, Event::Drained) {
            break;
        }
    }
}

#[tokio::test]
async fn a_poll_queue_is_bounded_too() {
    let mut server = Server::start(bounded(SlowConsumer::Drop)).await;
    let target = server.poll_open(4).await;
    let (conn, _) = server.opened().await;
    let padding = "x".repeat(1000);
    for number in 0..1000 {
        conn.send(&text(&format!("{number} {padding}")), SendKind::Droppable);
    }
    assert!(conn.queued_bytes() <= MAX);
    let mut packets = Vec::new();
    while !packets
        .last()
        .is_some_and(|last: &String| last.starts_with("4999 "))
    {
        let body = server.get(&target).await.body;
        packets.extend(body.split('\u{1e}').map(str::to_owned));
    }
    assert_eq!(packets.len() as u64, 1000 - conn.dropped_messages());
    loop {
        if matches!(server.event().await, Event::Drained) {
            break;
        }
    }

    let mut server = Server::start(bounded(SlowConsumer::Disconnect)).await;
    let target = server.poll_open(4).await;
    let (conn, _) = server.opened().await;
    while conn.send(&text(&padding), SendKind::Droppable) != SendOutcome::Overflow {}
    assert_eq!(server.closed().await, CloseReason::SlowConsumer);
    assert_eq!(server.get(&target).await.status, 400);
}

#[tokio::test]
async fn pongs_do_not_pile_up() {
    let mut server = Server::start(bounded(SlowConsumer::Drop)).await;
    let mut client = server.ws_open(3).await;
    let (conn, _) = server.opened().await;
    assert_eq!(client.text().await, "40");
    // Past what the kernel takes, and over the high-water mark: pongs would come on top.
    let filler = text(&"x".repeat(10_000));
    while conn.queued_bytes() <= 50_000 {
        conn.send(&filler, SendKind::Droppable);
        conn.flush();
    }
    let queued = conn.queued_bytes();
    for _ in 0..2000 {
        client.send("2").await;
    }
    client.send("4done").await;
    assert_eq!(server.text().await, "done");
    assert!(conn.queued_bytes() <= queued + 100);
}
