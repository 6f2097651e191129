//! A store that is late, fails or loses its answers: what the engine must make of it.

use crate::transcript::check_deliveries;

#[test]
fn a_failed_removal_delivers_again_and_counts_right() {
    check_deliveries(
        "c> open
        c> sub P k durable ack
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        fail remove
        since
        c> ack m1
        c< not acked m1: store unavailable: by the test
        tick 1500
        @1000 c< p-k 1 m1 #2
        mend
        c> ack m1
        c< acked m1
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1",
    );
}

#[test]
fn refused_acknowledgements_deliver_again_once_a_second_in_order_and_before_all_others() {
    check_deliveries(
        "c> open
        c> sub P k durable ack prefetch=3
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        P> pub P k 2
        c< p-k 2 m2 #1
        P> pub P k 3
        c< p-k 3 m3 #1
        fail remove
        since
        hold
        c> ack m2
        c> ack m1
        flush
        c< not acked m2: store unavailable: by the test
        c< not acked m1: store unavailable: by the test
        release
        tick 400
        c> ack m3
        c< not acked m3: store unavailable: by the test
        P> pub P k 4
        tick 599
        tick 1
        @1000 c< p-k 1 m1 #2
        @1000 c< p-k 2 m2 #2
        @1000 c< p-k 3 m3 #2
        c> ack m2
        c< not acked m2: store unavailable: by the test
        tick 999
        mend
        tick 1
        @2000 c< p-k 2 m2 #3
        c> ack m1
        c< p-k 4 m4 #1
        c< acked m1
        c> ack m2
        c< acked m2
        c> ack m3
        c< acked m3
        c> ack m4
        c< acked m4
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1",
    );
}

#[test]
fn a_message_that_was_acknowledged_in_vain_is_not_given_up_for_that() {
    check_deliveries(
        "c> open
        c> sub P k durable ack max=2 timeout=100 delay=10
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        fail remove
        since
        c> ack m1
        c< not acked m1: store unavailable: by the test
        tick 1000
        @1000 c< p-k 1 m1 #2
        c> ack m1
        c< not acked m1: store unavailable: by the test
        tick 1000
        @2000 c< p-k 1 m1 #2
        c> ack m1
        c< not acked m1: store unavailable: by the test
        mend
        tick 1050
        @3000 c< p-k 1 m1 #2
        c> ack m1
        c< acked m1
        letters",
    );
}

#[test]
fn what_waits_for_the_pause_goes_back_to_the_store_with_its_consumer() {
    check_deliveries(
        "c> open
        c> sub P k durable ack
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        fail remove
        c> ack m1
        c< not acked m1: store unavailable: by the test
        c> close
        mend
        since
        c> open
        tick 100
        c> sub P k durable ack
        tick 2000
        @1000 c< p-k 1 m1 #2
        c> ack m1
        c< acked m1
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1",
    );
}

#[test]
fn a_row_that_was_acknowledged_before_it_failed_is_counted_once() {
    check_deliveries(
        "c> open
        c> sub P k durable ack
        P> open
        hold
        P> pub P k 1
        c< p-k 1 m1 #1
        P> pub P k 2
        c< p-k 2 m2 #1
        c> ack m1
        fail enqueue
        flush 1
        mend
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

#[test]
fn a_row_that_failed_after_it_went_on_is_counted_once() {
    check_deliveries(
        "w1> open
        w1> sub P k durable ack group=g prefetch=1
        w2> open
        w2> sub P k durable ack group=g prefetch=1
        P> open
        P> pub P k 1
        w1< p-k 1 m1 #1
        w1> ack m1
        w1< acked m1
        hold
        P> pub P k 2
        w2< p-k 2 m2 #1
        P> pub P k 3
        w1< p-k 3 m3 #1
        w2> close
        fail enqueue
        flush 1
        mend
        flush
        w1> ack m3
        w1< p-k 2 m2 #2
        flush
        w1< acked m3
        w1> ack m2
        w1< acked m2
        flush
        usage
        < realms=1 sessions=2 producers=1 consumers=2 subscriptions=2 queues=2",
    );
}

#[test]
fn a_failed_read_is_tried_again() {
    check_deliveries(
        "c> open
        c> sub P d durable
        c> close
        P> open
        P> pub P d 1
        fail fetch
        c> open
        since
        c> sub P d durable
        P> pub P d 2
        tick 2500
        mend
        tick 1000
        @3000 c< p-d 1
        @3000 c< p-d 2",
    );
}

#[test]
fn removals_that_failed_are_made_up_for() {
    check_deliveries(
        "c> open
        c> sub P d durable
        c> close
        P> open
        P> pub P d 1
        P> pub P d 2
        fail remove
        c> open
        c> sub P d durable
        c< p-d 1
        c< p-d 2
        tick 3000
        mend
        tick 3000
        restart
        usage
        < realms=1 consumers=1 subscriptions=1 queues=1",
    );
}

#[test]
fn removals_that_failed_do_not_deliver_again() {
    check_deliveries(
        "c> open
        c> sub P d durable
        c> close
        P> open
        P> pub P d 1
        fail remove
        c> open
        c> sub P d durable
        c< p-d 1
        c> close
        P> pub P d 2
        c> open
        c> sub P d durable
        c< p-d 2
        mend
        tick 3000
        restart
        c> open
        c> sub P d durable",
    );
}

#[test]
fn dead_letters_that_failed_are_made_up_for() {
    check_deliveries(
        "c> open
        c> sub P k ack timeout=100 max=1
        d> open
        d> sub P k durable ack timeout=100 max=1
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        d< p-k 1 m2 #1
        fail bury
        tick 100
        letters
        mend
        tick 3000
        letters
        < letter m2 1 attempts=1 ack timeout: not acknowledged after 1 attempts
        < letter m1 1 attempts=1 ack timeout: not acknowledged after 1 attempts
        restart
        usage
        < realms=1 consumers=1 subscriptions=1 queues=1",
    );
}

#[test]
fn subscriptions_that_could_not_be_saved_or_forgotten_are_made_up_for() {
    check_deliveries(
        "c> open
        c> sub P old durable
        fail put drop
        c> sub P new durable
        c> sub P short durable
        c> unsub p-old
        c< unsubscribed 1
        c> unsub p-short
        c< unsubscribed 1
        tick 2000
        mend
        tick 2000
        restart
        P> open
        P> pub P old 1 confirm
        P< ok routed=0 queued=0
        P> pub P short 1 confirm
        P< ok routed=0 queued=0
        P> pub P new 1 confirm
        P< ok routed=1 queued=1",
    );
}

#[test]
fn a_failed_acknowledgement_of_a_forgotten_queue_is_not_lost() {
    check_deliveries(
        "c> open
        c> sub P k ack
        P> open
        P> pub P k 1 guaranteed
        c< p-k 1 m1 #1
        hold
        c> ack m1
        c> unsub p-k
        c< unsubscribed 1
        fail remove
        flush
        c< not acked m1: store unavailable: by the test
        mend
        release
        c> sub P k ack
        c< p-k 1 m1 #2",
    );
}

#[test]
fn answers_for_a_realm_that_is_gone_do_not_meet_another() {
    check_deliveries(
        "c> open one
        c> sub P k durable
        c> unsub p-k
        c< unsubscribed 1
        c> sub P k durable
        hold
        c> unsub p-k
        c< unsubscribed 1
        c> close
        tick 500000
        requeue m1
        tick 500000
        usage
        < realms=2 store_operations=2
        flush
        < requeued false
        tick 500000
        usage
        <",
    );
}

#[test]
fn a_page_that_was_read_before_an_acknowledgement_does_not_bring_it_back() {
    check_deliveries(
        "c> open
        c> sub P k durable ack prefetch=2
        P> open
        P> pub P k 1
        c< p-k 1 m1 #1
        P> pub P k 2
        c< p-k 2 m2 #1
        P> pub P k 3
        c> close
        hold
        c> open
        c> sub P k durable ack prefetch=2
        flush 1
        flush 1
        c< p-k 1 m1 #2
        c< p-k 2 m2 #2
        flush
        c> ack m1
        c< p-k 3 m3 #1
        c> ack m2
        flush
        c< acked m1
        c< acked m2
        usage
        < realms=1 sessions=2 producers=1 consumers=1 subscriptions=1 queues=1 in_flight=1 stored=1",
    );
}

#[test]
fn a_confirmed_message_survives_a_broker_that_dies() {
    check_deliveries(
        "c> open
        c> sub P k durable ack
        c> close
        P> open
        hold
        P> pub P k 1 confirm
        P> pub P k 2 confirm
        flush 1
        P< ok routed=1 queued=1
        restart
        release
        c> open
        c> sub P k durable ack
        c< p-k 1 m1 #1",
    );
}
