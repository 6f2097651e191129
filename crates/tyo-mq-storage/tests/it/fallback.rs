//! A primary that is away at the start and comes back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tyo_mq_core::memory_store::{MemoryLimits, MemoryStore};
use tyo_mq_core::store::{
    BoxFuture, DeadLetter, DeadLetterPage, Position, QueueKey, Snapshot, Store, StoreError,
    StoreOp, StoreReply, StoreResult, StoredMessage,
};
use tyo_mq_core::{Message, MessageId};
use tyo_mq_storage::conformance::{self, Opening};
use tyo_mq_storage::{FallbackStore, Opener, Plan};

/// A memory store that others hold too, and that closing does not end.
#[derive(Clone)]
struct Held(Arc<MemoryStore>);

impl Store for Held {
    fn name(&self) -> &'static str {
        "held"
    }
    fn load(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        self.0.load()
    }
    fn execute(&self, ops: Vec<StoreOp>) -> BoxFuture<'_, Vec<StoreResult>> {
        self.0.execute(ops)
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
        Box::pin(async {})
    }
}

/// Two stores, the switch that lets the first one be found, and a sign that it has taken over.
struct Scene {
    primary: Held,
    stand_in: Held,
    there: Arc<AtomicBool>,
    returned: Arc<Notify>,
    own: Arc<Mutex<Option<Snapshot>>>,
}

impl Scene {
    fn new(primary: MemoryStore) -> Self {
        Self {
            primary: Held(Arc::new(primary)),
            stand_in: Held(Arc::new(MemoryStore::default())),
            there: Arc::new(AtomicBool::new(false)),
            returned: Arc::new(Notify::new()),
            own: Arc::new(Mutex::new(None)),
        }
    }

    async fn open(&self, stand_in_exists: bool) -> FallbackStore {
        let there = self.there.clone();
        let (returned, own) = (self.returned.clone(), self.own.clone());
        let plan = Plan {
            primary: opener(&self.primary, move || there.load(Ordering::SeqCst)),
            stand_in: opener(&self.stand_in, || true),
            stand_in_exists,
            retry: Duration::from_millis(1),
            on_return: Box::new(move |snapshot| {
                *own.lock().unwrap() = Some(snapshot);
                returned.notify_one();
            }),
        };
        FallbackStore::open(plan).await.unwrap()
    }

    async fn come_back(&self) {
        self.there.store(true, Ordering::SeqCst);
        self.returned.notified().await;
    }
}

fn opener(store: &Held, there: impl Fn() -> bool + Send + Sync + 'static) -> Opener {
    let store = store.clone();
    Box::new(move || {
        let found: Result<Arc<dyn Store>, StoreError> = if there() {
            Ok(Arc::new(store.clone()))
        } else {
            Err(StoreError::Unavailable("away".to_owned()))
        };
        Box::pin(std::future::ready(found))
    })
}

fn queue(key: &str) -> Arc<QueueKey> {
    Arc::new(QueueKey {
        realm: "r".into(),
        key: key.into(),
        consumer: "c".into(),
    })
}

fn stored(queue: &Arc<QueueKey>, id: &str) -> StoredMessage {
    StoredMessage {
        id: id.into(),
        queue: queue.clone(),
        message: Arc::new(Message {
            event: "e".into(),
            producer: "p".into(),
            body: id.to_owned().into(),
            attachments: Box::default(),
        }),
        created_at_ms: 1,
        expires_at_ms: None,
        attempts: 0,
        position: Position(0),
    }
}

async fn enqueue(store: &dyn Store, queue: &Arc<QueueKey>, id: &str) -> Position {
    match store
        .execute(vec![StoreOp::Enqueue(stored(queue, id))])
        .await
        .remove(0)
    {
        Ok(StoreReply::Enqueued(position)) => position,
        other => panic!("an enqueue was answered {other:?}"),
    }
}

async fn ids(store: &dyn Store, queue: &Arc<QueueKey>, after: Position) -> Vec<String> {
    let fetch = StoreOp::Fetch {
        queue: queue.clone(),
        after,
        limit: 10_000,
        max_bytes: usize::MAX,
    };
    match store.execute(vec![fetch]).await.remove(0) {
        Ok(StoreReply::Page { messages, .. }) => {
            messages.iter().map(|it| it.id.to_string()).collect()
        }
        other => panic!("a fetch was answered {other:?}"),
    }
}

#[tokio::test]
async fn what_the_stand_in_kept_moves_in_order() {
    let scene = Scene::new(MemoryStore::default());
    let (queue, other) = (queue("k"), queue("other"));
    enqueue(&scene.primary, &queue, "older").await;
    let store = scene.open(false).await;
    let mut places = Vec::new();
    for number in 0..600 {
        places.push(enqueue(&store, &queue, &format!("m{number}")).await);
    }
    let gone = StoreOp::Remove {
        queue: queue.clone(),
        id: "m1".into(),
    };
    let attempts = StoreOp::SetAttempts {
        queue: queue.clone(),
        id: "m2".into(),
        attempts: 2,
    };
    let letter = DeadLetter {
        stored: stored(&other, "dead"),
        reason: "poison".to_owned(),
        dead_lettered_at_ms: 1,
    };
    store
        .execute(vec![gone, attempts, StoreOp::DeadLetter(Box::new(letter))])
        .await;
    scene.come_back().await;

    let after = enqueue(&store, &queue, "after").await;
    assert!(after > places[599], "positions go on growing");
    let all = ids(&store, &queue, Position(0)).await;
    assert_eq!(
        (
            all.len(),
            all[0].as_str(),
            all[1].as_str(),
            all[2].as_str(),
            all[600].as_str()
        ),
        (601, "older", "m0", "m2", "after")
    );
    assert_eq!(
        ids(&store, &queue, places[597]).await,
        ["m598", "m599", "after"],
        "old positions keep their meaning"
    );
    assert_eq!(ids(&store, &queue, places[1]).await[0], "m2");
    assert!(ids(&store, &queue, after).await.is_empty());
    assert_eq!(
        store
            .dead_letter(None, "dead".into())
            .await
            .unwrap()
            .unwrap()
            .reason,
        "poison"
    );
    let own = scene.own.lock().unwrap().take().unwrap();
    assert_eq!(
        own.queues,
        [((*queue).clone(), 1)],
        "what the primary held by itself is told"
    );
    assert_eq!(
        scene.stand_in.load().await.unwrap(),
        Snapshot::default(),
        "the stand-in is empty"
    );
    store.close().await;
    assert_eq!(ids(&scene.primary, &queue, Position(0)).await.len(), 601);
}

#[tokio::test]
async fn a_primary_that_is_full_does_not_take_over() {
    let scene = Scene::new(MemoryStore::new(MemoryLimits {
        max_messages: 3,
        max_bytes: usize::MAX,
    }));
    let store = scene.open(false).await;
    let queue = queue("k");
    for id in ["a", "b", "c", "d"] {
        enqueue(&store, &queue, id).await;
    }
    scene.there.store(true, Ordering::SeqCst);
    // attempts fail until an acknowledgement makes room
    while ids(&scene.primary, &queue, Position(0)).await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(ids(&store, &queue, Position(0)).await, ["a", "b", "c", "d"]);
    store
        .execute(vec![StoreOp::Remove {
            queue: queue.clone(),
            id: "b".into(),
        }])
        .await;
    scene.returned.notified().await;
    assert_eq!(
        ids(&store, &queue, Position(0)).await,
        ["a", "c", "d"],
        "copies of what has gone are gone"
    );
    store.close().await;
}

#[tokio::test]
async fn what_an_earlier_run_left_is_brought_over() {
    let scene = Scene::new(MemoryStore::default());
    let queue = queue("k");
    enqueue(&scene.stand_in, &queue, "left").await;
    scene.there.store(true, Ordering::SeqCst);
    let store = scene.open(true).await;
    assert_eq!(ids(&store, &queue, Position(0)).await, ["left"]);
    assert_eq!(store.load().await.unwrap().queues, [((*queue).clone(), 1)]);
    assert_eq!(scene.stand_in.load().await.unwrap(), Snapshot::default());
    store.close().await;
}

#[tokio::test]
async fn closing_ends_the_wait() {
    let scene = Scene::new(MemoryStore::default());
    let store = scene.open(false).await;
    store.close().await;
    store.close().await;
    let result = store
        .execute(vec![StoreOp::PurgeRealm { realm: "r".into() }])
        .await
        .remove(0);
    assert!(matches!(result, Err(StoreError::Unavailable(_))));
    assert!(store.load().await.is_err());
}

#[tokio::test]
async fn the_store_conforms_standing_in_and_after() {
    for back in [false, true] {
        let open = async |_: Opening| {
            let scene = Scene::new(MemoryStore::default());
            let store = scene.open(false).await;
            if back {
                scene.come_back().await;
            }
            store
        };
        conformance::run(false, open).await;
    }
}
