//! Registration and presence: who is told what, whose name is whose, who is forgotten when.

use tyo_mq_core::engine::{Config, Limits};

use crate::transcript::{check, check_with};

#[test]
fn a_producer_learns_of_a_subscriber() {
    check(
        "P> open
        P> producer Shop
        mailer> open
        mailer> consumer mailer id=mailer
        mailer> sub Shop Order-Placed
        P< SUBSCRIBE-TO-P-socket mailer/mailer mailer-socket [\"shop-order-placed\"]
        P> pub Shop Order-Placed 7
        mailer< shop-order-placed 7",
    );
}

#[test]
fn a_consumer_that_was_first_learns_of_its_producer() {
    check(
        "c> open
        c> consumer c id=c
        c> sub P e1
        P> open
        P> producer P id=u-1
        P< SUBSCRIBE-TO-u-1 c/c c-socket [\"p-e1\"]
        c< CONNECT-c producer P P-socket
        c> close
        P< DISCONNECT-u-1 consumer c c-socket
        c> open
        c> consumer c id=c
        P< CONNECT-u-1 consumer c/c c-socket
        P> producer P id=u-1
        c< CONNECT-c producer P P-socket
        P> close
        c< DISCONNECT-c producer P P-socket",
    );
}

#[test]
fn a_name_in_use_is_refused_to_another_session_only() {
    check(
        "A> open
        A> consumer c
        A> consumer c id=again
        B> open
        B> consumer c
        B< ERROR duplicate consumer name: \"c\" is connected already
        B< disconnect
        A> sub P e as=c
        B> pub P e 1
        A< p-e 1
        O> open other
        O> consumer c",
    );
}

#[test]
fn a_late_close_spares_the_successor() {
    check(
        "P> open
        P> producer P
        A> open
        A> sub P e as=c
        P< SUBSCRIBE-TO-P-socket c/A-socket A-socket [\"p-e\"]
        A> close
        P< DISCONNECT-P-socket consumer c A-socket
        B> open
        B> sub P e as=c
        P< SUBSCRIBE-TO-P-socket c/B-socket B-socket [\"p-e\"]
        C> open
        C> sub P e as=c
        P< SUBSCRIBE-TO-P-socket c/B-socket B-socket [\"p-e\"]
        C> close
        P> pub P e 1
        B< p-e 1",
    );
}

#[test]
fn the_latest_producer_owns_the_notices() {
    check(
        "c> open
        c> consumer c id=c
        c> sub P e
        P1> open
        P1> producer P
        P1< SUBSCRIBE-TO-P1-socket c/c c-socket [\"p-e\"]
        c< CONNECT-c producer P P1-socket
        P2> open
        P2> producer P
        P1< ERROR producer P joined again
        P2< SUBSCRIBE-TO-P2-socket c/c c-socket [\"p-e\"]
        c< CONNECT-c producer P P2-socket
        P1> close
        P1> open
        P1> pub P e 1
        c< p-e 1
        P2> close
        c< DISCONNECT-c producer P P2-socket",
    );
}

#[test]
fn subscribing_and_producing_register_names() {
    check(
        "c> open
        c> sub P e
        X> open
        X> consumer c
        X< ERROR duplicate consumer name: \"c\" is connected already
        X< disconnect
        Q> open
        Q> pub P e 1
        c< p-e 1
        d> open
        d> sub P e
        Q< SUBSCRIBE-TO d/d-socket d-socket [\"p-e\"]
        R> open
        R> pub R x 1 id=r-1
        d> sub R y
        R< SUBSCRIBE-TO-r-1 d/d-socket d-socket [\"r-y\"]",
    );
}

#[test]
fn a_subscription_for_a_name_of_another_session_delivers_there() {
    check(
        "c> open
        c> consumer c
        X> open
        X> sub P e as=c
        X> pub P e 1
        c< p-e 1
        X> unsub p-e
        X< unsubscribed 0",
    );
}

#[test]
fn any_producer_subscribers_are_announced_to_all_but_themselves() {
    check(
        "P> open
        P> producer P
        Q> open
        Q> producer Q
        P2> open
        P2> sub TYO-MQ-ALL e as=P id=p2
        Q< SUBSCRIBE-TO-Q-socket P/p2 P2-socket [\"tyo-mq-all-e\"]
        Q> close
        P2< DISCONNECT-p2 producer Q Q-socket",
    );
}

#[test]
fn notices_do_not_depend_on_the_case_of_a_producer() {
    check(
        "P> open
        P> producer SHOP
        c> open
        c> sub Shop e id=c
        P< SUBSCRIBE-TO-P-socket c/c c-socket [\"shop-e\"]
        c> close
        P< DISCONNECT-P-socket consumer c c-socket
        c> open
        c> consumer c id=c
        P< CONNECT-P-socket consumer c/c c-socket
        P> close
        c< DISCONNECT-c producer SHOP P-socket",
    );
}

#[test]
fn anonymous_names_need_a_realm_that_allows_them() {
    check(
        "A> open
        A> consumer ''
        B> open
        B> consumer ANONYMOUS-1
        C> open guarded
        C> consumer ANONYMOUS
        C< ERROR anonymous clients are not allowed in this realm
        C< disconnect
        D> open guarded
        D> producer ANONYMOUS-x
        D< ERROR anonymous clients are not allowed in this realm
        D< disconnect
        D> producer ANONYMOUSE
        policy default
        E> open
        E> producer ''
        E< ERROR anonymous clients are not allowed in this realm
        E< disconnect",
    );
}

#[test]
fn all_names_of_a_session_leave_with_it() {
    check(
        "P> open
        P> producer P
        S> open
        S> consumer a id=a
        S> consumer b id=b
        S> producer X
        S> sub P e as=a
        P< SUBSCRIBE-TO-P-socket a/a S-socket [\"p-e\"]
        S> sub P e as=b
        P< SUBSCRIBE-TO-P-socket b/b S-socket [\"p-e\"]
        S> close
        P< DISCONNECT-P-socket consumer a S-socket
        P< DISCONNECT-P-socket consumer b S-socket
        N> open
        N> consumer b
        P< CONNECT-P-socket consumer b/N-socket N-socket",
    );
}

#[test]
fn eviction_forgets_the_offline_but_nothing_of_the_living() {
    check(
        "P> open
        P> producer P
        c> open
        c> sub P e id=c
        P< SUBSCRIBE-TO-P-socket c/c c-socket [\"p-e\"]
        d> open
        d> sub P e id=d
        P< SUBSCRIBE-TO-P-socket d/d d-socket [\"p-e\"]
        d> close
        P< DISCONNECT-P-socket consumer d d-socket
        P> close
        c< DISCONNECT-c producer P P-socket
        usage
        < realms=1 sessions=1 producers=1 consumers=2 subscriptions=2
        tick 420000
        usage
        < realms=1 sessions=1 consumers=1 subscriptions=1
        P> open
        P> producer P
        P< SUBSCRIBE-TO-P-socket c/c c-socket [\"p-e\"]
        c< CONNECT-c producer P P-socket
        P> pub P e 1
        c< p-e 1",
    );
}

#[test]
fn nothing_is_left_of_an_empty_realm() {
    check(
        "c> open team
        c> sub P e group=g topic
        c> sub P f all
        P> open team
        P> pub P e 1
        c< p-TM-ALL 1
        c< p-e 1
        c> close
        P> close
        tick 420000
        usage
        <
        counters
        < produced=1 delivered=2",
    );
}

#[test]
fn limits_refuse_new_names_and_leave_known_ones() {
    let limits = Limits {
        max_registrations: 2,
        max_subscriptions: 1,
        max_name_bytes: 8,
        max_event_bytes: 8,
        ..Limits::default()
    };
    let config = Config {
        limits,
        ..Config::default()
    };
    check_with(
        config,
        "A> open
        A> consumer a
        A> consumer b
        A> consumer c
        A< ERROR limit reached: max_registrations
        A> consumer b
        A> sub P e as=a
        A> sub P f as=a
        A< ERROR limit reached: max_subscriptions
        A> sub P e as=a durable
        A> sub P e as=c
        A< ERROR limit reached: max_subscriptions
        A> consumer 123456789
        A< ERROR limit reached: max_name_bytes
        A> sub P 123456789
        A< ERROR limit reached: max_event_bytes
        A> pub P 123456789 1 confirm
        A< failed: limit reached: max_event_bytes
        A> pub P e 1 to=123456789 confirm
        A< failed: limit reached: max_name_bytes
        A> pub P e 1 group=123456789 confirm
        A< failed: limit reached: max_name_bytes
        A> pub P x 1
        A> pub Q x 1
        A> pub R x 1 confirm
        A< ok routed=0 queued=0
        usage
        < realms=1 sessions=1 producers=2 consumers=2 subscriptions=1 queues=1",
    );
}
