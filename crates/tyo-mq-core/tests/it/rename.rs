//! A realm gets another name while it is in use, and keeps everything.

use std::sync::Arc;

use bytes::Bytes;
use tyo_mq_core::MessageId;
use tyo_mq_core::engine::{RenameError, Subscribe, SubscriptionSpec};
use tyo_mq_core::memory_store::MemoryStore;
use tyo_mq_core::runtime::{Broker, LocalEvent, LocalSession, PublishOptions, RuntimeConfig};
use tyo_mq_core::store::{
    BoxFuture, DeadLetter, DeadLetterPage, InlineStore, Snapshot, Store, StoreError, StoreOp,
    StoreResult,
};

use super::transcript::{check, check_deliveries};

#[test]
fn everything_goes_on_under_the_new_name() {
    check_deliveries(
        "c> open a
        c> sub P k durable ack
        d> open a
        d> sub P k durable ack max=1 timeout=100
        e> open a
        e> sub P k durable
        e> close
        P> open a
        P> pub P k 1
        c< p-k 1 m1 #1
        d< p-k 1 m2 #1
        rename a b
        < renamed
        c> ack m1
        c< acked m1
        tick 200
        letters
        < letter m2 1 attempts=1 ack timeout: not acknowledged after 1 attempts
        d> close
        P> pub P k 2 confirm
        c< p-k 2 m3 #1
        P< ok routed=3 queued=3
        N> open b
        N> sub P k
        P> pub P k 3
        N< p-k 3
        c< p-k 3 m4 #1
        restart
        e> open b
        e> sub P k durable id=e-socket
        e< p-k 1
        e< p-k 2
        e< p-k 3",
    );
}

#[test]
fn those_present_see_each_other_as_before() {
    check(
        "c> open a
        c> sub P k
        rename a b
        < renamed
        P> open b
        P> producer P
        P< SUBSCRIBE-TO-P-socket c/c-socket c-socket [\"p-k\"]
        c< CONNECT-c-socket producer P P-socket",
    );
}

#[test]
fn a_name_that_is_in_use_or_reserved_is_refused() {
    check_deliveries(
        "c> open a
        d> open b
        rename a b
        < not renamed: there is a realm \"b\" already
        rename a a
        < not renamed: there is a realm \"a\" already
        rename a default
        < not renamed: realm \"default\" is always there
        rename * b
        < not renamed: realm \"*\" is always there
        d> close
        rename a b
        < renamed
        rename b a
        < renamed
        usage
        < realms=1 sessions=1",
    );
}

#[test]
fn until_the_store_has_followed_both_names_mean_the_realm() {
    check_deliveries(
        "c> open a
        c> sub P k durable ack
        P> open a
        hold
        P> pub P k 1 confirm
        c< p-k 1 m1 #1
        rename a b
        rename b c
        < not renamed: realm \"b\" is being renamed
        Q> open a
        Q> pub P k 2
        c< p-k 2 m2 #1
        c> ack m1
        release
        P< ok routed=1 queued=1
        < renamed
        c< acked m1
        D> open a
        D> pub P k 3
        usage
        < realms=2 sessions=4 producers=2 consumers=1 subscriptions=1 queues=1 in_flight=1 stored=1",
    );
}

#[test]
fn a_store_that_fails_leaves_the_realm_its_name() {
    check_deliveries(
        "c> open a
        c> sub P k durable ack
        P> open a
        P> pub P k 1
        c< p-k 1 m1 #1
        fail rename
        rename a b
        < not renamed: store unavailable: by the test
        c> ack m1
        c< acked m1
        Q> open a
        Q> pub P k 2
        c< p-k 2 m2 #1
        restart
        c> open a
        c> sub P k durable ack id=c-socket
        c< p-k 2 m2 #2
        mend
        rename a b
        < renamed",
    );
}

#[test]
fn a_removal_that_failed_before_is_made_up_for_under_the_new_name() {
    check_deliveries(
        "c> open a
        c> sub P k durable
        P> open a
        fail remove
        P> pub P k 1
        c< p-k 1
        mend
        rename a b
        < renamed
        tick 10000
        restart
        usage
        < realms=1 consumers=1 subscriptions=1 queues=1",
    );
}

fn subscribe(session: &LocalSession, consumer: &'static str, durable: bool) {
    let spec = SubscriptionSpec {
        producer: "P".into(),
        event: "k".into(),
        all_events: false,
        topic: false,
        durable,
        ack: false,
        ack_timeout_ms: None,
        retry: Default::default(),
        group: None,
        prefetch: None,
    };
    session.subscribe(Subscribe {
        consumer,
        id: None,
        consumer_id: Some(consumer),
        spec,
    });
}

async fn publish(session: &LocalSession, body: &'static str) -> usize {
    let options = PublishOptions::default();
    let published = session.publish("P", "k", Bytes::from_static(body.as_bytes()), options);
    published.await.expect("the store takes it").routed
}

/// The next delivery's content.
async fn next(session: &LocalSession) -> Bytes {
    loop {
        if let LocalEvent::Delivery(delivery) = session.recv().await {
            return delivery.message.body.clone();
        }
    }
}

#[tokio::test]
async fn whoever_comes_later_finds_a_renamed_realm_wherever_its_name_belongs() {
    let config = RuntimeConfig {
        shards: 8,
        ..RuntimeConfig::default()
    };
    let store = Arc::new(MemoryStore::default());
    let broker = Broker::start(config.clone(), store.clone()).await.unwrap();
    let session = broker.connect("r0");
    subscribe(&session, "c", false);
    let other = broker.connect("r0");
    subscribe(&other, "away", true);
    drop(other);
    for step in 0..16 {
        let (from, to) = (format!("r{step}"), format!("r{}", step + 1));
        broker.rename_realm(&from, &to).await.unwrap();
        assert_eq!(publish(&broker.connect(&to), "new").await, 2, "{to}");
        assert_eq!(publish(&session, "own").await, 2, "{to}");
        assert_eq!(
            (next(&session).await, next(&session).await),
            ("new".into(), "own".into())
        );
        // The old name is free, and no way in.
        assert_eq!(publish(&broker.connect(&from), "old").await, 0, "{from}");
        assert_eq!(
            broker.rename_realm(&to, &from).await,
            Err(RenameError::Exists(from)),
            "a producer's name is there"
        );
    }
    drop(session);
    broker.shutdown().await;
    let broker = Broker::start(config, store).await.unwrap();
    let away = broker.connect("r16");
    subscribe(&away, "away", true);
    for _ in 0..16 {
        assert_eq!(
            (next(&away).await, next(&away).await),
            ("new".into(), "own".into())
        );
    }
}

/// A memory store that takes its time, and renames nothing.
#[derive(Default)]
struct Stubborn(MemoryStore);

impl Store for Stubborn {
    fn name(&self) -> &'static str {
        "stubborn"
    }

    fn load(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        self.0.load()
    }

    fn execute(&self, ops: Vec<StoreOp>) -> BoxFuture<'_, Vec<StoreResult>> {
        let carry_out = |op: StoreOp| match op {
            StoreOp::RenameRealm { .. } => Err(StoreError::Unsupported),
            op => self.0.execute_now(op),
        };
        let results = ops.into_iter().map(carry_out).collect();
        Box::pin(async { results })
    }

    fn dead_letters(
        &self,
        realm: Option<Arc<str>>,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<DeadLetterPage, StoreError>> {
        self.0.dead_letters(realm, after, limit)
    }

    fn dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<Option<DeadLetter>, StoreError>> {
        self.0.dead_letter(realm, id)
    }

    fn discard_dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.0.discard_dead_letter(realm, id)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.close()
    }
}

#[tokio::test]
async fn what_went_to_the_store_behind_a_failed_renaming_goes_by_the_old_name() {
    let store = Arc::new(Stubborn::default());
    let config = RuntimeConfig {
        shards: 8,
        ..RuntimeConfig::default()
    };
    let broker = Broker::start(config, store.clone()).await.unwrap();
    let away = broker.connect("a");
    subscribe(&away, "away", true);
    drop(away);
    let producer = broker.connect("a");
    // The second is asked for while the store has not answered the first.
    let (renamed, routed) = tokio::join!(broker.rename_realm("a", "b"), publish(&producer, "1"));
    assert_eq!(renamed, Err(RenameError::Store(StoreError::Unsupported)));
    assert_eq!(routed, 1);
    assert_eq!(publish(&broker.connect("a"), "2").await, 1);
    let queues = store.load().await.unwrap().queues;
    let kept: Vec<(&str, u64)> = queues
        .iter()
        .map(|(key, rows)| (&*key.realm, *rows))
        .collect();
    assert_eq!(kept, [("a", 2)]);
    assert_eq!(publish(&broker.connect("b"), "3").await, 0);
}
