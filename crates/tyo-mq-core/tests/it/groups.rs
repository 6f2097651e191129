//! Consumer groups: one copy for one member, fair, also when members leave, return or are away.

use crate::transcript::check_deliveries;

#[test]
fn members_take_turns_and_observers_come_first() {
    check_deliveries(
        "w1> open
        w1> sub P job group=g
        w2> open
        w2> sub P job group=g
        o> open
        o> sub P job
        P> open
        P> pub P job 1
        o< p-job 1
        w1< p-job 1
        P> pub P job 2
        o< p-job 2
        w2< p-job 2
        P> pub P job 3
        o< p-job 3
        w1< p-job 3
        P> pub P job 4 confirm
        o< p-job 4
        w2< p-job 4
        P< ok routed=2 queued=0",
    );
}

#[test]
fn events_do_not_share_a_turn() {
    check_deliveries(
        "w1> open
        w1> sub P a group=g
        w1> sub P b group=g
        w2> open
        w2> sub P a group=g
        w2> sub P b group=g
        P> open
        P> pub P a 1
        w1< p-a 1
        P> pub P b 2
        w1< p-b 2
        P> pub P a 3
        w2< p-a 3
        P> pub P b 4
        w2< p-b 4",
    );
}

#[test]
fn a_group_is_one_bucket_over_its_keys() {
    check_deliveries(
        "w1> open
        w1> sub P job group=g
        w2> open
        w2> sub TYO-MQ-ALL job group=g
        w3> open
        w3> sub P +  group=g topic
        P> open
        P> pub P job 1
        w1< p-job 1
        P> pub P job 2
        w2< tyo-mq-all-job 2
        P> pub P job 3
        w3< p-+ 3
        P> pub P job 4
        w1< p-job 4",
    );
}

#[test]
fn the_least_busy_member_that_acknowledges_is_chosen() {
    check_deliveries(
        "w1> open
        w1> sub P job group=g ack
        w2> open
        w2> sub P job group=g ack
        P> open
        P> pub P job 1
        w1< p-job 1 m1 #1
        P> pub P job 2
        w2< p-job 2 m2 #1
        w2> ack m2
        w2< acked m2
        P> pub P job 3
        w2< p-job 3 m3 #1
        P> pub P job 4
        w1< p-job 4 m4 #1",
    );
}

#[test]
fn a_member_without_room_is_passed_over() {
    check_deliveries(
        "w1> open
        w1> sub P job group=g ack prefetch=1
        w2> open
        w2> sub P job group=g
        P> open
        P> pub P job 1
        w1< p-job 1 m1 #1
        w2> stall
        P> pub P job 2
        w2< p-job 2
        w1> ack m1
        w1< acked m1
        P> pub P job 3
        w1< p-job 3 m2 #1",
    );
}

#[test]
fn offline_members_are_passed_over() {
    check_deliveries(
        "w1> open
        w1> sub P job group=g durable
        w2> open
        w2> sub P job group=g durable
        w1> close
        P> open
        P> pub P job 1 confirm
        w2< p-job 1
        P< ok routed=1 queued=0
        P> pub P job 2
        w2< p-job 2",
    );
}

#[test]
fn what_waits_for_an_absent_group_goes_to_whoever_comes() {
    check_deliveries(
        "w1> open
        w1> sub P job group=g durable ack
        w2> open
        w2> sub P job group=g durable ack
        w1> close
        w2> close
        P> open
        P> pub P job 1
        P> pub P job 2
        P> pub P job 3 confirm
        P< ok routed=1 queued=1
        w2> open
        w2> sub P job group=g durable ack
        w2< p-job 2 m1 #1
        w2< p-job 1 m2 #1
        w2< p-job 3 m3 #1
        w1> open
        w1> sub P job group=g durable ack
        w2> close
        w1< p-job 1 m2 #2
        w1< p-job 3 m3 #2
        w1< p-job 2 m1 #2",
    );
}

#[test]
fn a_durable_member_keeps_what_a_plain_one_would_lose() {
    check_deliveries(
        "w1> open
        w1> sub P job group=g
        w2> open
        w2> sub P job group=g durable
        w1> close
        w2> close
        P> open
        P> pub P job 1 confirm
        P< ok routed=1 queued=1
        P> pub P job 2 confirm
        P< ok routed=1 queued=1
        w1> open
        w1> sub P job group=g
        w1< p-job 1
        w1< p-job 2",
    );
}

#[test]
fn what_a_leaving_member_had_in_hand_goes_on_at_once() {
    check_deliveries(
        "w1> open
        w1> sub P job group=g durable ack
        w2> open
        w2> sub P job group=g durable ack
        P> open
        P> pub P job 1
        w1< p-job 1 m1 #1
        w1> close
        w2< p-job 1 m1 #2
        w2> ack m1
        w2< acked m1
        usage
        < realms=1 sessions=2 producers=1 consumers=2 subscriptions=2 queues=2",
    );
}

#[test]
fn a_member_that_unsubscribes_hands_over_all_it_had() {
    check_deliveries(
        "w1> open
        w1> sub P job group=g durable ack
        w2> open
        w2> sub P job group=g durable ack
        w3> open
        w3> sub P job group=g durable ack
        P> open
        P> pub P job 1
        w1< p-job 1 m1 #1
        P> pub P job 2
        w2< p-job 2 m2 #1
        w1> close
        w2< p-job 1 m1 #2
        w2> unsub p-job
        w3< p-job 2 m2 #2
        w3< p-job 1 m1 #3
        w2< unsubscribed 1
        w2> ack m1
        w2< not acked m1: the delivery belongs to another connection
        w3> unsub p-job
        w3< unsubscribed 1
        tick 100000
        w2> sub P job group=g durable ack
        w2< p-job 2 m2 #3
        letters
        < letter m1 1 attempts=3 ack timeout: not acknowledged after 3 attempts",
    );
}

#[test]
fn leaving_the_group_hands_over_what_was_taken_over() {
    check_deliveries(
        "w1> open
        w1> sub P job group=g durable ack
        w2> open
        w2> sub P job group=g durable ack
        P> open
        P> pub P job 1
        w1< p-job 1 m1 #1
        w1> close
        w2< p-job 1 m1 #2
        w2> sub P job group=h durable ack
        w2> ack m1
        w2< not acked m1: no delivery with this id is waiting for an acknowledgement
        w1> open
        w1> sub P job group=g durable ack
        w1< p-job 1 m1 #3",
    );
}

#[test]
fn a_full_window_opens_for_all_queues_it_serves() {
    check_deliveries(
        "w1> open
        w1> sub P job group=g durable ack prefetch=1
        w2> open
        w2> sub P job group=g durable ack prefetch=1
        P> open
        P> pub P job 1
        w1< p-job 1 m1 #1
        P> pub P job 2
        w2< p-job 2 m2 #1
        P> pub P job 3
        P> pub P job 4
        w1> close
        w2> ack m2
        w2< p-job 1 m1 #2
        w2< acked m2
        w2> ack m1
        w2< p-job 4 m3 #1
        w2< acked m1
        w2> ack m3
        w2< p-job 3 m4 #1
        w2< acked m3
        w2> ack m4
        w2< acked m4",
    );
}
