//! Reliable delivery: timelines of attempts, acknowledgements, windows, dead letters, expiry.

use tyo_mq_core::engine::Config;

use crate::transcript::{check_deliveries, check_deliveries_with};

#[test]
fn attempts_come_at_their_times_and_end_as_a_dead_letter() {
    check_deliveries(
        "c> open
        c> sub P k durable ack timeout=200 max=3 delay=100 exponential
        P> open
        since
        P> pub P k 1
        c< p-k 1 m1 #1
        tick 299
        tick 1
        @300 c< p-k 1 m1 #2
        tick 399
        tick 1
        @700 c< p-k 1 m1 #3
        tick 199
        letters
        tick 1
        letters
        < letter m1 1 attempts=3 ack timeout: not acknowledged after 3 attempts
        tick 100000
        c> ack m1
        c< not acked m1: no delivery with this id is waiting for an acknowledgement
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1
        counters
        < produced=1 delivered=3 queued=1 dead_lettered=1 ack_timeouts=3",
    );
}

#[test]
fn a_fixed_delay_stays_and_one_attempt_is_one() {
    check_deliveries(
        "c> open
        c> sub P k ack timeout=50 max=3 delay=10
        d> open
        d> sub P k ack timeout=50 max=1 delay=10
        P> open
        since
        P> pub P k 1
        c< p-k 1 m1 #1
        d< p-k 1 m2 #1
        tick 1000
        @60 c< p-k 1 m1 #2
        @120 c< p-k 1 m1 #3
        letters
        < letter m2 1 attempts=1 ack timeout: not acknowledged after 1 attempts
        < letter m1 1 attempts=3 ack timeout: not acknowledged after 3 attempts",
    );
}

#[test]
fn waits_of_no_time_still_end() {
    check_deliveries(
        "c> open
        c> sub P k ack timeout=0 max=4 delay=0
        P> open
        since
        P> pub P k 1
        c< p-k 1 m1 #1
        tick 1000
        @1 c< p-k 1 m1 #2
        @2 c< p-k 1 m1 #3
        @3 c< p-k 1 m1 #4",
    );
}

#[test]
fn waits_of_all_time_do_not_overflow() {
    check_deliveries(
        "c> open
        c> sub P k ack timeout=18446744073709551615 max=4294967295 delay=18446744073709551615 exponential
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        tick 100000000000
        c> ack m1
        c< acked m1",
    );
}

#[test]
fn an_ack_is_for_the_session_that_got_it_and_once() {
    check_deliveries(
        "c> open
        c> sub P k durable ack
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        P> ack m1
        P< not acked m1: the delivery belongs to another connection
        c> ack m1
        c< acked m1
        c> ack m1
        c< not acked m1: no delivery with this id is waiting for an acknowledgement
        c> ack ''
        c< not acked '': no delivery with this id is waiting for an acknowledgement
        tick 100000
        letters",
    );
}

#[test]
fn an_ack_in_the_retry_gap_counts() {
    check_deliveries(
        "c> open
        c> sub P k durable ack timeout=200 delay=100
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        tick 250
        c> ack m1
        c< acked m1
        tick 100000
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1",
    );
}

#[test]
fn acks_without_durable_are_tracked_in_memory() {
    check_deliveries(
        "c> open
        c> sub P k ack timeout=200 delay=100
        P> open
        P> pub P k 1 confirm
        c< p-k 1 m1 #1
        P< ok routed=1 queued=0
        since
        tick 300
        @300 c< p-k 1 m1 #2
        c> close
        P> pub P k 2 confirm
        P< ok routed=0 queued=0
        c> open
        c> sub P k ack
        tick 100000
        counters
        < produced=2 delivered=2 ack_timeouts=1 dropped=1",
    );
}

#[test]
fn the_window_bounds_what_is_in_flight_and_keeps_the_order() {
    check_deliveries(
        "c> open
        c> sub P k durable ack prefetch=2
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        P> pub P k 2
        c< p-k 2 m2 #1
        P> pub P k 3
        P> pub P k 4
        P> pub P k 5
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1 in_flight=2 stored=5
        c> ack m2
        c< acked m2
        c< p-k 3 m3 #1
        c> ack m1
        c< p-k 4 m4 #1
        c< acked m1
        P> pub P k 6
        c> ack m3
        c< p-k 5 m5 #1
        c< acked m3
        c> ack m4
        c< acked m4
        c< p-k 6 m6 #1",
    );
}

#[test]
fn the_window_holds_without_durable_too() {
    check_deliveries(
        "c> open
        c> sub P k ack prefetch=1
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        P> pub P k 2
        P> pub P k 3
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1 in_flight=1 ready=2
        c> ack m1
        c< acked m1
        c< p-k 2 m2 #1
        c> close
        counters
        < produced=3 delivered=2 dropped=2",
    );
}

#[test]
fn a_stalled_session_gets_nothing_that_can_wait() {
    check_deliveries(
        "c> open
        c> sub P d durable
        c> sub P k durable ack
        c> sub P e
        P> open
        P> pub P d 1
        c< p-d 1
        c> stall
        P> pub P d 2 confirm
        P< ok routed=1 queued=1
        P> pub P k 3 confirm
        P< ok routed=1 queued=1
        P> pub P e 4
        c< p-e 4
        P> pub P d 5
        c> drain
        c< p-d 2
        c< p-d 5
        c< p-k 3 m1 #1
        P> pub P d 6
        c< p-d 6",
    );
}

#[test]
fn a_retry_waits_for_a_stalled_session() {
    check_deliveries(
        "c> open
        c> sub P k durable ack timeout=200 delay=100
        P> open
        since
        P> pub P k 1
        c< p-k 1 m1 #1
        c> stall
        tick 500
        c> drain
        tick 800
        @1300 c< p-k 1 m1 #2",
    );
}

#[test]
fn a_new_policy_counts_from_the_next_attempt() {
    check_deliveries(
        "c> open
        c> sub P k durable ack timeout=200 max=5 delay=100
        P> open
        since
        P> pub P k 1
        c< p-k 1 m1 #1
        tick 300
        @300 c< p-k 1 m1 #2
        tick 250
        c> sub P k durable ack timeout=200 max=2 delay=100
        tick 1000
        letters
        < letter m1 1 attempts=2 ack timeout: not acknowledged after 2 attempts",
    );
}

#[test]
fn subscribing_again_does_not_send_again_what_is_in_flight() {
    check_deliveries(
        "c> open
        c> sub P k durable ack prefetch=1
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        P> pub P k 2
        c> sub P k durable ack prefetch=1
        c> sub P k durable ack prefetch=2
        c< p-k 2 m2 #1
        c> ack m1
        c< acked m1
        c> ack m2
        c< acked m2",
    );
}

#[test]
fn expired_messages_are_never_delivered_wherever_they_stand() {
    check_deliveries(
        "c> open
        c> sub P d durable
        c> close
        P> open
        P> producer P ttl=5000
        P> pub P d 60 ttl=60000
        P> pub P d 1 ttl=1000
        P> pub P d 5
        P> pub P d 0 ttl=0
        P> pub P d never ttl=never
        tick 1700
        c> open
        c> sub P d durable
        c< p-d 60
        c< p-d 5
        c< p-d never
        counters
        < produced=5 delivered=3 queued=4 expired=2",
    );
}

#[test]
fn a_sweep_forgets_expired_messages() {
    check_deliveries(
        "c> open
        c> sub P d durable
        c> close
        P> open
        P> pub P d 1 ttl=1000
        P> pub P d 2 ttl=never
        tick 60000
        usage
        < realms=1 sessions=1 producers=1 consumers=1 subscriptions=1 queues=1 stored=1
        counters
        < produced=2 queued=2 expired=1",
    );
}

#[test]
fn expired_messages_become_dead_letters_if_so_set() {
    let config = Config {
        expired_to_dlq: true,
        ..Config::default()
    };
    check_deliveries_with(
        config,
        "c> open
        c> sub P d durable
        c> close
        P> open
        P> pub P d 1 ttl=1000
        P> pub P d 0 ttl=0
        letters
        < letter m1 0 attempts=0 expired
        tick 1000
        c> open
        c> sub P d durable
        letters
        < letter m1 0 attempts=0 expired
        < letter m2 1 attempts=0 expired
        c> close
        P> pub P d 2 ttl=1000
        tick 70000
        letters
        < letter m1 0 attempts=0 expired
        < letter m2 1 attempts=0 expired
        < letter m3 2 attempts=0 expired",
    );
}

#[test]
fn clock_jumps_do_not_touch_attempts() {
    check_deliveries(
        "c> open
        c> sub P k durable ack timeout=200 delay=100
        P> open
        since
        P> pub P k 1 ttl=never
        c< p-k 1 m1 #1
        wall -3600000
        tick 300
        @300 c< p-k 1 m1 #2
        wall 7200000
        tick 300
        @600 c< p-k 1 m1 #3
        c> ack m1
        c< acked m1",
    );
}

#[test]
fn what_a_purge_did_not_see_is_not_taken_for_gone() {
    check_deliveries(
        "c> open
        c> sub P k durable ack timeout=200000
        P> open
        tick 59000
        P> pub P k 1 ttl=2000
        c< p-k 1 m1 #1
        hold
        tick 1500
        wall 1000
        flush
        wall -5000
        c> ack m1
        release
        c< acked m1
        restart
        usage
        < realms=1 consumers=1 subscriptions=1 queues=1",
    );
}

#[test]
fn a_message_that_expires_in_flight_is_acknowledged_once() {
    check_deliveries(
        "c> open
        c> sub P k durable ack timeout=200000
        P> open
        P> pub P k 1 ttl=1000
        c< p-k 1 m1 #1
        P> pub P k 2 ttl=never
        c< p-k 2 m2 #1
        hold
        tick 60000
        wall -3600000
        c> ack m1
        flush
        c< acked m1
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1 in_flight=1 stored=1
        release
        c> close
        c> open
        c> sub P k durable ack
        c< p-k 2 m2 #2",
    );
}
