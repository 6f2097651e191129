//! Routing: keys and their order, topics, all events, recipients, broadcasts, observers, unsubscribing.

use crate::transcript::{check, check_deliveries};

#[test]
fn keys_match_in_their_order_and_each_delivers() {
    check_deliveries(
        "c> open
        c> sub P a/b topic
        c> sub TYO-MQ-ALL a/b
        c> sub TYO-MQ-ALL TM-ALL all
        c> sub P TM-ALL all
        c> sub Q a/+ topic
        c> sub P a/b
        c> sub P c
        P> open
        P> pub P A/B 1
        c< p-a/b 1
        c< p-TM-ALL 1
        c< tyo-mq-all-a/b 1
        c< tyo-mq-all-TM-ALL 1
        c< q-a/+ 1",
    );
}

#[test]
fn case_does_not_matter_to_names_in_keys() {
    check_deliveries(
        "c> open
        c> sub ORDER-svc CREATED
        P> open
        P> pub Order-Svc Created 1
        c< order-svc-created 1
        P> pub Überlauf Ä 1
        c> sub ÜBERLAUF ä
        P> pub Überlauf Ä 2
        c< überlauf-ä 2",
    );
}

#[test]
fn the_producer_is_checked_per_subscription() {
    check_deliveries(
        "c> open
        c> sub a b-c
        d> open
        d> sub a-b c
        d> sub TYO-MQ-ALL z
        P> open
        P> pub a b-c 1
        c< a-b-c 1
        P> pub a-b c 2
        d< a-b-c 2
        P> pub q z 3
        d< tyo-mq-all-z 3
        c> sub a-b c
        P> pub a b-c 4
        P> pub a-b c 5
        c< a-b-c 5
        d< a-b-c 5",
    );
}

#[test]
fn the_same_subscription_again_replaces() {
    check_deliveries(
        "c> open
        c> sub P e
        c> sub p E
        c> sub P e
        P> open
        P> pub P e 1
        c< p-e 1
        c> sub P +/x topic
        P> pub Z a/x 2
        c< p-+/x 2
        c> sub P +/x
        P> pub Z a/x 3
        c> unsub p-e
        c< unsubscribed 1
        P> pub P e 4",
    );
}

#[test]
fn topics_match_by_level_and_deliver_the_pattern() {
    check_deliveries(
        "c> open
        c> sub TYO-MQ-ALL Org/+/cmd topic
        c> sub OnlyP1 org/# topic
        P> open
        P> pub fleet org/M1/cmd go
        c< tyo-mq-all-org/+/cmd go
        c< onlyp1-org/# go
        P> pub fleet ORG up
        c< onlyp1-org/# up
        P> pub fleet org/m1/x/cmd deep
        c< onlyp1-org/# deep
        c> unsub event=org/# producer=onlyP1
        c< unsubscribed 1
        P> pub fleet org 1",
    );
}

#[test]
fn a_sender_hears_itself_and_nobody_across_realms() {
    check_deliveries(
        "S> open
        S> sub S e
        T> open other
        T> sub S e
        S> pub S e 1
        S< s-e 1
        T> pub S e 2
        T< s-e 2",
    );
}

#[test]
fn recipients_narrow_a_message() {
    check_deliveries(
        "a> open
        a> sub P e
        b> open
        b> sub P e durable
        c> open
        c> sub P e group=g
        d> open
        d> sub P e group=g
        P> open
        P> pub P e 1 to=a,b,nobody confirm
        a< p-e 1
        b< p-e 1
        P< ok routed=2 queued=0
        P> pub P e 2 to=d
        d< p-e 2
        P> pub P e 3 to=d
        d< p-e 3
        b> close
        a> close
        P> pub P e 4 to=b,a confirm
        P< ok routed=1 queued=1
        b> open
        b> sub P e durable
        b< p-e 4",
    );
}

#[test]
fn a_realm_broadcast_comes_under_every_name() {
    check_deliveries(
        "P> open
        P> producer P
        c> open
        c> consumer c
        X> open
        O> open other
        O> consumer o
        P> pub P News 1 realm confirm
        P< News 1
        c< News 1
        P< p-news 1
        c< p-news 1
        P< tyo-mq-all-news 1
        c< tyo-mq-all-news 1
        P< p-TM-ALL 1
        c< p-TM-ALL 1
        P< ok routed=2 queued=0
        P> pub TYO-MQ-ALL e 2 realm
        P< e 2
        c< e 2
        P< tyo-mq-all-e 2
        c< tyo-mq-all-e 2
        P< tyo-mq-all-TM-ALL 2
        c< tyo-mq-all-TM-ALL 2",
    );
}

#[test]
fn a_group_broadcast_reaches_each_member_once() {
    check_deliveries(
        "Y> open
        Y> sub P k1 group=K
        Y> sub P k2 group=K
        Z> open
        Z> sub P k1 group=K
        Z> sub P k2 group=K
        O> open
        O> sub P k1
        P> open
        P> pub P zz m group=K
        Y< p-k1 m
        Z< p-k1 m
        P> pub P k2 m group=K confirm
        Y< p-k2 m
        Z< p-k2 m
        P< ok routed=2 queued=0
        Z> close
        P> pub P k1 m group=K
        Y< p-k1 m
        P> pub P k1 m group=none confirm
        P< ok routed=0 queued=0",
    );
}

#[test]
fn observers_see_the_messages_of_other_realms() {
    check(
        "o> open *
        o> sub TYO-MQ-ALL e
        w> open *
        w> sub P e group=g
        observed P e 1
        o< tyo-mq-all-e 1
        w< p-e 1
        observed P e 2
        o< tyo-mq-all-e 2
        w< p-e 2
        p> open *
        p> pub P e 3
        o< tyo-mq-all-e 3
        w< p-e 3
        n> open *
        n> sub P x
        p< SUBSCRIBE-TO n/n-socket n-socket [\"p-x\"]",
    );
}

#[test]
fn unsubscribing_ends_what_is_named_and_only_of_this_session() {
    check_deliveries(
        "c> open
        c> consumer a
        c> consumer b
        c> sub P e as=a
        c> sub P e as=b
        c> sub Q e as=a
        c> sub P f as=a
        d> open
        d> sub P e
        c> unsub event=E producer=P consumer=b
        c< unsubscribed 1
        P> open
        P> pub P e 1
        c< p-e 1
        d< p-e 1
        c> unsub event=e
        c< unsubscribed 2
        P> pub P e 2
        d< p-e 2
        P> pub Q e 3
        c> unsub P-F
        c< unsubscribed 1
        c> unsub p-f
        c< unsubscribed 0
        P> pub P f 4
        usage
        < realms=1 sessions=3 producers=2 consumers=3 subscriptions=1",
    );
}

#[test]
fn unknown_sessions_are_ignored() {
    check_deliveries(
        "c> open
        c> sub P e
        c> unsub nothing
        c< unsubscribed 0
        c> ack nothing
        c< not acked nothing: no delivery with this id is waiting for an acknowledgement",
    );
}
