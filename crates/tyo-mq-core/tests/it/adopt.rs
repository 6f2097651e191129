//! A store that was away comes back with messages and subscriptions while the engine runs.

use crate::transcript::check_deliveries;

#[test]
fn what_is_kept_for_a_consumer_that_is_here_is_delivered() {
    check_deliveries(
        "c> open
        c> sub P k durable ack
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        kept p-k c old
        adopt
        c< p-k old m2 #1
        P> pub P k 2
        c< p-k 2 m3 #1
        c> ack m2
        c< acked m2
        c> ack m1
        c< acked m1
        c> ack m3
        c< acked m3
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1",
    );
}

#[test]
fn what_is_kept_for_a_consumer_that_is_away_waits_with_what_is_known() {
    check_deliveries(
        "c> open
        c> sub P k durable ack
        c> close
        P> open
        P> pub P k 1
        kept p-k c old
        kept p-k c older
        adopt
        usage
        < realms=1 sessions=1 producers=1 consumers=1 subscriptions=1 queues=1 stored=3
        c> open
        c> sub P k durable ack
        c< p-k 1 m1 #1
        c< p-k old m2 #1
        c< p-k older m3 #1",
    );
}

#[test]
fn a_window_that_is_full_delivers_each_once() {
    check_deliveries(
        "c> open
        c> sub P k durable ack prefetch=1
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        P> pub P k 2
        P> pub P k 3
        kept p-k c old
        adopt
        c> ack m1
        c< acked m1
        c< p-k 2 m2 #1
        c> ack m2
        c< p-k 3 m3 #1
        c< acked m2
        c> ack m3
        c< p-k old m4 #1
        c< acked m3
        c> ack m4
        c< acked m4
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1",
    );
}

#[test]
fn an_acknowledgement_under_way_is_not_undone() {
    check_deliveries(
        "c> open
        c> sub P k durable ack
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        hold
        c> ack m1
        kept p-k c old
        adopt
        flush
        c< acked m1
        c< p-k old m2 #1
        release
        c> ack m2
        c< acked m2
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1",
    );
}

#[test]
fn a_subscription_that_is_kept_takes_part_again() {
    check_deliveries(
        "P> open
        P> producer P
        kept-sub P k c
        kept p-k c old
        adopt
        P> pub P k 1
        c> open
        c> sub P k durable
        c< p-k old
        c< p-k 1",
    );
}

#[test]
fn a_consumer_that_is_here_gets_what_it_had_subscribed_to_before_after_a_while() {
    check_deliveries(
        "P> open
        c> open
        c> sub P other
        kept-sub P k c
        kept p-k c old
        since
        adopt
        P> pub P k 1
        tick 6000
        @5000 c< p-k old
        @5000 c< p-k 1
        P> pub P k 2
        c< p-k 2",
    );
}

#[test]
fn a_newer_subscription_keeps_its_place() {
    check_deliveries(
        "c> open
        c> sub P k
        P> open
        kept-sub P k c
        adopt
        P> pub P k 1
        c< p-k 1
        c> close
        P> pub P k 2 confirm
        P< ok routed=0 queued=0
        restart
        usage
        <",
    );
}

#[test]
fn messages_of_a_plain_subscription_that_is_here_are_delivered() {
    check_deliveries(
        "c> open
        c> sub P k
        P> open
        kept p-k c old
        adopt
        c< p-k old
        P> pub P k 1
        c< p-k 1
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1",
    );
}
