//! Cases over whole realms: expiry, purging, and what a store still has when it is opened again.

use tyo_mq_core::store::{DeadLetter, QueueKey, Snapshot, Store, StoreOp, StoreReply};

use super::subscriptions::subscription;
use super::{CREATED_AT_MS, LATER_MS, Subject, queue, stored, unplaced};

/// Behind the expiry of some messages below, before that of others.
const NOW_MS: u64 = LATER_MS + 500;

impl<S: Store> Subject<S> {
    async fn purge(&self, realm: &str, now_ms: u64, to_dead_letters: bool) -> Vec<(QueueKey, u64)> {
        match self
            .one(StoreOp::PurgeExpired {
                realm: realm.into(),
                now_ms,
                to_dead_letters,
            })
            .await
        {
            StoreReply::Purged(queues) => queues,
            other => panic!("a purge was answered {other:?}"),
        }
    }

    async fn enqueue_expiring(&self) {
        for (realm, key, id, expires_at_ms) in [
            ("r", "k", "a", Some(LATER_MS)),
            ("r", "k", "b", None),
            ("r", "k", "c", Some(NOW_MS)),
            ("r", "k", "d", Some(NOW_MS + 1)),
            ("r", "other", "e", Some(LATER_MS)),
            ("s", "k", "f", Some(LATER_MS)),
        ] {
            let mut sent = stored(&queue(realm, key, "x"), id);
            sent.expires_at_ms = expires_at_ms;
            self.enqueue(&sent).await;
        }
    }
}

pub(super) async fn expiry<S: Store>(store: &Subject<S>) {
    store.enqueue_expiring().await;
    assert_eq!(store.purge("r", LATER_MS - 1, false).await, []);
    let (own, other) = (queue("r", "k", "x"), queue("r", "other", "x"));
    let mut purged = store.purge("r", NOW_MS, false).await;
    purged.sort_unstable();
    assert_eq!(purged, [((*own).clone(), 2), ((*other).clone(), 1)]);
    assert_eq!(store.ids(&own).await, ["b", "d"]);
    assert!(store.ids(&other).await.is_empty());
    assert_eq!(
        store.ids(&queue("s", "k", "x")).await,
        ["f"],
        "of another realm"
    );
    assert_eq!(store.purge("r", NOW_MS, false).await, []);
    let letters = store.0.dead_letters(None, None, 10).await.expect("lists");
    assert!(letters.letters.is_empty());
}

pub(super) async fn expiry_to_dead_letters<S: Store>(store: &Subject<S>) {
    store.enqueue_expiring().await;
    let mut purged = store.purge("r", NOW_MS, true).await;
    purged.sort_unstable();
    assert_eq!(purged.iter().map(|(_, count)| count).sum::<u64>(), 3);
    let letters = store
        .0
        .dead_letters(Some("r".into()), None, 10)
        .await
        .expect("lists")
        .letters;
    let mut found: Vec<(&str, &str, u64, Option<u64>)> = letters
        .iter()
        .map(|it| {
            (
                it.stored.id.as_str(),
                it.reason.as_str(),
                it.dead_lettered_at_ms,
                it.stored.expires_at_ms,
            )
        })
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("a", "expired", NOW_MS, Some(LATER_MS)),
            ("c", "expired", NOW_MS, Some(NOW_MS)),
            ("e", "expired", NOW_MS, Some(LATER_MS)),
        ]
    );
    assert_eq!(store.ids(&queue("r", "k", "x")).await, ["b", "d"]);
    let message = &stored(&queue("r", "k", "x"), "a").message;
    assert!(
        letters.iter().any(|it| it.stored.message == *message),
        "with its content"
    );
}

pub(super) async fn purge<S: Store>(store: &Subject<S>) {
    let kept = fill(store).await;
    store.one(StoreOp::PurgeRealm { realm: "r".into() }).await;
    let left = store.0.load().await.expect("loads");
    assert!(left.subscriptions.iter().all(|it| &*it.queue.realm != "r"));
    assert!(left.queues.iter().all(|(key, _)| &*key.realm != "r"));
    let others = |snapshot: &Snapshot| {
        snapshot
            .queues
            .iter()
            .filter(|(key, _)| &*key.realm != "r")
            .count()
    };
    assert_eq!(others(&left), others(&kept), "other realms are untouched");
    let letters = store
        .0
        .dead_letters(None, None, 10)
        .await
        .expect("lists")
        .letters;
    assert_eq!(
        letters
            .iter()
            .map(|it| it.stored.id.as_str())
            .collect::<Vec<_>>(),
        ["dead-r2"]
    );
    assert!(store.ids(&queue("r", "k", "c")).await.is_empty());
    assert_eq!(
        store.purge("r", u64::MAX >> 2, false).await,
        [],
        "nothing is left to expire"
    );
    store
        .one(StoreOp::PurgeRealm {
            realm: "unknown".into(),
        })
        .await;
}

pub(super) async fn another_name<S: Store>(store: &Subject<S>) {
    fill(store).await;
    let newest = stored(&queue("new \"name\"", "k", "c"), "own");
    store.enqueue(&newest).await;
    rename(store).await;
    store.one(super::remove(&newest)).await;
    is_renamed(store).await;
    rename(store).await;
    is_renamed(store).await;
    // Everything that goes by realm and id finds its message.
    let own = queue("new \"name\"", "k", "c");
    assert_eq!(store.purge("r", NOW_MS, false).await, []);
    assert_eq!(
        store.purge("new \"name\"", NOW_MS, false).await,
        [((*own).clone(), 7)]
    );
    let requeue = |realm: &str| StoreOp::Requeue {
        realm: realm.into(),
        id: "dead-r".into(),
        expires_at_ms: None,
        now_ms: CREATED_AT_MS,
    };
    assert_eq!(
        store.one(requeue("r")).await,
        StoreReply::Requeued(None),
        "under the old name"
    );
    assert_eq!(
        store.one(requeue("new \"name\"")).await,
        StoreReply::Requeued(Some((*own).clone()))
    );
    assert_eq!(
        store.ids(&own).await.last().map(String::as_str),
        Some("dead-r")
    );
    store.one(super::remove(&stored(&own, "r-7"))).await;
    assert!(!store.ids(&own).await.contains(&"r-7".to_owned()));
}

/// Gives realm `r` of [`fill`] another name.
pub(super) async fn rename<S: Store>(store: &Subject<S>) {
    let op = StoreOp::RenameRealm {
        from: "r".into(),
        to: "new \"name\"".into(),
    };
    assert_eq!(store.one(op).await, StoreReply::Done);
}

pub(super) async fn is_renamed<S: Store>(store: &Subject<S>) {
    let (own, old) = (queue("new \"name\"", "k", "c"), queue("r", "k", "c"));
    let other = queue("r2", "k", "c");
    let kept = store.0.load().await.expect("loads");
    assert_eq!(
        kept.queues,
        [((*own).clone(), 20), ((*other).clone(), 20)],
        "with their messages"
    );
    let mut named: Vec<_> = kept.subscriptions;
    named.sort_by(|left, right| left.queue.cmp(&right.queue));
    assert_eq!(
        named,
        [
            subscription("new \"name\"", "k", "c", "name"),
            subscription("r2", "k", "c", "name")
        ]
    );
    assert!(store.ids(&old).await.is_empty());
    let messages = store.messages(&own).await;
    let numbers: Vec<String> = (0..20)
        .map(|number| format!("r-{}", number * 7 % 20))
        .collect();
    assert_eq!(super::ids(&messages), numbers, "in their order");
    assert_eq!(messages.iter().map(|it| it.attempts).sum::<u32>(), 5);
    assert!(messages.iter().all(|it| it.queue == own));
    for (realm, expected) in [("new \"name\"", &["dead-r"][..]), ("r", &[])] {
        let page = store.0.dead_letters(Some(realm.into()), None, 10).await;
        let letters = page.expect("lists").letters;
        let found: Vec<&str> = letters.iter().map(|it| it.stored.id.as_str()).collect();
        assert_eq!(found, expected, "{realm}");
        let shown = store.0.dead_letter(Some(realm.into()), "dead-r".into());
        let shown = shown.await.expect("looks");
        assert_eq!(shown.is_some(), !expected.is_empty(), "{realm}");
    }
}

/// Puts something of everything into the store and gives what it says that it has.
pub(super) async fn fill<S: Store>(store: &Subject<S>) -> Snapshot {
    let mut ops = Vec::new();
    for realm in ["r", "r2"] {
        let queue = queue(realm, "k", "c");
        for number in 0..20 {
            let mut sent = stored(&queue, &format!("{realm}-{}", number * 7 % 20));
            sent.expires_at_ms = (number % 3 == 0).then_some(LATER_MS);
            ops.push(StoreOp::Enqueue(sent));
        }
        ops.push(StoreOp::SetAttempts {
            queue: queue.clone(),
            id: format!("{realm}-7").as_str().into(),
            attempts: 5,
        });
        ops.push(StoreOp::DeadLetter(Box::new(DeadLetter {
            stored: stored(&queue, &format!("dead-{realm}")),
            reason: "poison".to_owned(),
            dead_lettered_at_ms: CREATED_AT_MS,
        })));
        ops.push(StoreOp::PutSubscription(Box::new(subscription(
            realm, "k", "c", "name",
        ))));
    }
    store.all(ops).await;
    store.0.load().await.expect("loads")
}

pub(super) async fn is_filled<S: Store>(store: &Subject<S>, kept: &Snapshot) {
    assert_eq!(store.0.load().await.expect("loads"), *kept);
    assert_eq!(
        kept.queues
            .iter()
            .map(|(_, count)| *count)
            .collect::<Vec<_>>(),
        [20, 20]
    );
    assert_eq!(kept.subscriptions.len(), 2);
    let queue = queue("r", "k", "c");
    let messages = store.messages(&queue).await;
    let numbers: Vec<String> = (0..20)
        .map(|number| format!("r-{}", number * 7 % 20))
        .collect();
    assert_eq!(super::ids(&messages), numbers);
    let attempts: Vec<u32> = messages.iter().map(|it| it.attempts).collect();
    assert_eq!(attempts.iter().sum::<u32>(), 5);
    assert_eq!(unplaced(messages[2].clone()), stored(&queue, "r-14"));
    let letters = store
        .0
        .dead_letters(None, None, 10)
        .await
        .expect("lists")
        .letters;
    assert_eq!(
        letters
            .iter()
            .map(|it| it.stored.id.as_str())
            .collect::<Vec<_>>(),
        ["dead-r", "dead-r2"]
    );
    assert_eq!(letters[0].reason, "poison");
    let last = messages.last().expect("there are messages").position;
    assert!(
        store.enqueue(&stored(&queue, "after")).await > last,
        "new ones come behind"
    );
    store.one(super::remove(&stored(&queue, "after"))).await;
}
