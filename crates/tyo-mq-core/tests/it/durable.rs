//! Durable subscriptions: what waits, replay, confirms, eviction, restart, dead letters going back.

use tyo_mq_core::engine::{Config, Limits};

use crate::transcript::{check_deliveries, check_deliveries_with};

#[test]
fn messages_wait_for_a_durable_consumer() {
    check_deliveries(
        "c> open
        c> sub P d durable
        c> close
        P> open
        P> pub P d 1 ttl=60000 confirm
        P< ok routed=1 queued=1
        P> pub P d 2
        c> open
        c> consumer c id=c
        c> sub P d durable
        c< p-d 1
        c< p-d 2
        P> pub P d 3 confirm
        c< p-d 3
        P< ok routed=1 queued=0
        c> close
        c> open
        c> sub P d durable
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1",
    );
}

#[test]
fn the_backlog_comes_with_the_subscription_and_before_what_is_new() {
    check_deliveries(
        "c> open
        c> sub P d durable
        c> close
        P> open
        P> pub P d 1
        c> open
        c> consumer c
        P> pub P d 2
        c> sub P d durable
        c< p-d 1
        c< p-d 2
        P> pub P d 3
        c< p-d 3",
    );
}

#[test]
fn a_consumer_that_never_subscribes_again_is_served_after_a_while() {
    check_deliveries(
        "c> open
        c> sub P d durable
        c> close
        P> open
        P> pub P d 1
        c> open
        since
        c> consumer c
        P> pub P d 2
        tick 10000
        @5000 c< p-d 1
        @5000 c< p-d 2
        P> pub P d 3
        c< p-d 3",
    );
}

#[test]
fn a_surviving_subscription_is_live_with_its_consumer() {
    check_deliveries(
        "c> open
        c> sub P d durable
        c> sub P e
        c> close
        c> open
        c> consumer c
        P> open
        P> pub P d 1
        c< p-d 1
        P> pub P e 2
        c< p-e 2",
    );
}

#[test]
fn plain_and_anonymous_queues_lose_and_guaranteed_messages_wait() {
    check_deliveries(
        "c> open
        c> sub P d
        c> close
        P> open
        P> pub P d 1 confirm
        P< ok routed=0 queued=0
        P> pub P d 2 guaranteed confirm
        P< ok routed=1 queued=1
        c> open
        c> sub P d cid=other
        c> sub P d
        c< p-d 2
        P> pub P d 3 guaranteed confirm
        c< p-d 3
        P< ok routed=1 queued=0
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1",
    );
}

#[test]
fn a_shared_consumer_id_is_one_queue() {
    check_deliveries(
        "a> open
        a> sub P d durable cid=s
        b> open
        b> sub P d durable cid=s
        a> close
        b> close
        P> open
        P> pub P d 1 confirm
        P< ok routed=1 queued=1
        a> open
        a> sub P d durable cid=s
        a< p-d 1
        b> open
        b> sub P d durable cid=s
        P> pub P d 2
        a< p-d 2
        b< p-d 2
        a> close
        P> pub P d 3 confirm
        b< p-d 3
        P< ok routed=1 queued=0",
    );
}

#[test]
fn confirms_come_after_the_last_row() {
    check_deliveries(
        "a> open
        a> sub P d durable ack
        b> open
        b> sub P d durable
        b> close
        P> open
        hold
        P> pub P d 1 confirm
        a< p-d 1 m1 #1
        flush 1
        flush 1
        P< ok routed=2 queued=2
        usage
        < realms=1 sessions=2 producers=1 consumers=2 subscriptions=2 queues=2 in_flight=1 stored=2",
    );
}

#[test]
fn confirms_tell_of_a_failing_store() {
    check_deliveries(
        "a> open
        a> sub P d durable ack prefetch=1
        b> open
        b> sub P e
        P> open
        fail enqueue
        P> pub P d 1 confirm
        a< p-d 1 m1 #1
        P< failed: store unavailable: by the test
        P> pub P d 2 confirm
        P< failed: store unavailable: by the test
        P> pub P e 3 confirm
        b< p-e 3
        P< ok routed=1 queued=0
        mend
        a> ack m1
        a< acked m1
        P> pub P d 4 confirm
        a< p-d 4 m2 #1
        P< ok routed=1 queued=1
        usage
        < realms=1 sessions=3 producers=1 consumers=2 subscriptions=2 queues=1 in_flight=1 stored=1
        counters
        < produced=4 delivered=3 queued=3 store_failures=2",
    );
}

#[test]
fn a_full_realm_refuses_copies() {
    let limits = Limits {
        max_queued_per_realm: Some(2),
        ..Limits::default()
    };
    let config = Config {
        limits,
        ..Config::default()
    };
    check_deliveries_with(
        config,
        "a> open
        a> sub P d durable
        a> close
        P> open
        P> pub P d 1 confirm
        P< ok routed=1 queued=1
        P> pub P d 2 confirm
        P< ok routed=1 queued=1
        P> pub P d 3 confirm
        P< failed: queue full: the realm holds 2 messages
        a> open
        a> sub P d durable
        a< p-d 1
        a< p-d 2
        a> close
        P> pub P d 4 confirm
        P< ok routed=1 queued=1
        counters
        < produced=4 delivered=2 queued=3 dropped=1",
    );
}

#[test]
fn messages_from_before_and_during_an_absence_all_come() {
    check_deliveries(
        "c> open
        c> sub P k durable ack
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        c> close
        P> pub P k 2
        c> open
        c> sub P k durable ack
        c< p-k 1 m1 #2
        c< p-k 2 m2 #1",
    );
}

#[test]
fn attempts_count_on_over_connections_and_restarts() {
    check_deliveries(
        "c> open
        c> sub P k durable ack
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        c> close
        c> open
        c> sub P k durable ack
        c< p-k 1 m1 #2
        restart
        c> open
        c> sub P k durable ack
        c< p-k 1 m1 #3
        c> close
        c> open
        c> sub P k durable ack
        letters
        < letter m1 1 attempts=3 ack timeout: not acknowledged after 3 attempts",
    );
}

#[test]
fn a_restart_keeps_subscriptions_and_their_messages() {
    check_deliveries(
        "c> open
        c> sub P k durable ack
        w> open
        w> sub TYO-MQ-ALL j/# durable topic group=g
        a> open
        a> sub P x durable all
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        a< p-TM-ALL 1
        c> ack m1
        c< acked m1
        restart
        usage
        < realms=1 consumers=3 subscriptions=3 queues=3
        P> open
        P> pub P k 2 confirm
        P< ok routed=2 queued=2
        P> pub P j/1 3
        w> open
        w> sub TYO-MQ-ALL j/# durable topic group=g
        w< tyo-mq-all-j/# 3
        c> open
        c> sub P k durable ack
        c< p-k 2 m2 #1
        a> open
        a> sub P x durable all
        a< p-TM-ALL 2
        a< p-TM-ALL 3",
    );
}

#[test]
fn unsubscribing_and_subscribing_without_durable_end_it() {
    check_deliveries(
        "c> open
        c> sub P k durable
        c> sub P l durable
        c> sub P m durable
        c> unsub p-k
        c< unsubscribed 1
        c> sub P l
        c> close
        P> open
        P> pub P k 1 confirm
        P< ok routed=0 queued=0
        P> pub P l 1 confirm
        P< ok routed=0 queued=0
        P> pub P m 1 confirm
        P< ok routed=1 queued=1
        restart
        usage
        < realms=1 consumers=1 subscriptions=1 queues=1 stored=1",
    );
}

#[test]
fn a_durable_subscription_outlives_eviction_but_not_its_own_time() {
    let config = Config {
        durable_subscription_ttl_ms: Some(3_600_000),
        ..Config::default()
    };
    let script = "c> open
        c> sub P k durable
        c> sub P e
        c> close
        tick 3000000
        usage
        < realms=1 consumers=1 subscriptions=1 queues=1
        restart
        tick 540000
        usage
        < realms=1 consumers=1 subscriptions=1 queues=1
        tick 120000
        usage
        <
        restart
        usage
        <";
    check_deliveries_with(config, script);
}

#[test]
fn a_broken_connection_to_a_dead_broker_is_an_absence_since_the_next_start() {
    let config = Config {
        durable_subscription_ttl_ms: Some(3_600_000),
        ..Config::default()
    };
    check_deliveries_with(
        config,
        "c> open
        c> sub P k durable
        restart
        tick 2400000
        restart
        tick 1080000
        usage
        < realms=1 consumers=1 subscriptions=1 queues=1
        tick 240000
        usage
        <",
    );
}

#[test]
fn a_consumer_that_returns_is_no_longer_away() {
    let config = Config {
        durable_subscription_ttl_ms: Some(3_600_000),
        ..Config::default()
    };
    check_deliveries_with(
        config,
        "c> open
        c> sub P k durable
        c> close
        tick 3000000
        c> open
        c> consumer c
        tick 3000000
        restart
        tick 600000
        usage
        < realms=1 consumers=1 subscriptions=1 queues=1",
    );
}

#[test]
fn a_dead_letter_goes_back_with_no_attempts() {
    check_deliveries(
        "c> open
        c> sub P k durable ack timeout=100 max=1
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        tick 100
        requeue m1
        < requeued true
        c< p-k 1 m1 #1
        requeue m1
        < requeued false
        c> ack m1
        c< acked m1
        letters
        requeue nothing
        < requeued false",
    );
}

#[test]
fn a_dead_letter_goes_back_to_a_consumer_that_is_away() {
    check_deliveries(
        "c> open
        c> sub P k ack timeout=100 max=1
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        tick 100
        c> close
        requeue m1
        < requeued true
        c> open
        c> sub P k ack
        c< p-k 1 m1 #1
        c> ack m1
        c< acked m1
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1",
    );
}

#[test]
fn a_long_backlog_comes_in_order_and_at_the_pace_of_the_session() {
    let mut script = String::from("c> open\nc> sub P d durable\nc> close\nP> open\n");
    for number in 0..600 {
        script.push_str(&format!("P> pub P d {number}\n"));
    }
    script.push_str("c> open\nc> sub P d durable\n");
    for number in 0..600 {
        script.push_str(&format!("c< p-d {number}\n"));
    }
    script
        .push_str("usage\n< realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1");
    check_deliveries(&script);
}

#[test]
fn a_replay_of_large_messages_waits_for_the_session() {
    let body = "x".repeat(200_000);
    check_deliveries(&format!(
        "c> open
        c> sub P d durable
        c> close
        P> open
        P> pub P d 1{body}
        P> pub P d 2{body}
        P> pub P d 3{body}
        P> pub P d 4{body}
        c> open
        c> sub P d durable
        c< p-d 1{body}
        c< p-d 2{body}
        c< pace
        P> pub P d 5
        c> drain
        c< p-d 3{body}
        c< p-d 4{body}
        c< pace
        c> drain
        c< p-d 5"
    ));
}

#[test]
fn a_realm_that_ends_leaves_nothing() {
    check_deliveries(
        "c> open
        c> sub P k durable ack group=g timeout=100 max=1
        e> open
        e> sub P k durable ack group=g timeout=100 max=1
        d> open
        d> sub P k durable
        d> close
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        fail bury
        tick 100
        mend
        purge default
        c< disconnect
        e< disconnect
        P< disconnect
        P> pub P k 2 confirm
        P< ok routed=0 queued=0
        c> ack m1
        c< not acked m1: no delivery with this id is waiting for an acknowledgement
        tick 5000
        letters
        c> close
        e> close
        P> close
        tick 500000
        usage
        <
        restart
        usage
        <",
    );
}
