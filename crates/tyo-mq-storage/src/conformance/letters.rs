//! Cases of dead letters.

use std::sync::Arc;

use tyo_mq_core::MessageId;
use tyo_mq_core::store::{DeadLetter, DeadLetterPage, Store, StoreOp, StoreReply, StoredMessage};

use super::messages::odd_contents;
use super::{CREATED_AT_MS, LATER_MS, Subject, ids, queue, stored, unplaced, with_body};

fn letter(stored: &StoredMessage) -> DeadLetter {
    DeadLetter {
        stored: stored.clone(),
        reason: "ack timeout after 3 attempt(s) \"ü\"".to_owned(),
        dead_lettered_at_ms: CREATED_AT_MS + 1,
    }
}

fn bury(stored: &StoredMessage) -> StoreOp {
    StoreOp::DeadLetter(Box::new(letter(stored)))
}

impl<S: Store> Subject<S> {
    async fn letters(
        &self,
        realm: Option<&str>,
        after: Option<u64>,
        limit: usize,
    ) -> DeadLetterPage {
        self.0
            .dead_letters(realm.map(Into::into), after, limit)
            .await
            .expect("lists")
    }

    async fn letter_ids(&self, realm: Option<&str>) -> Vec<String> {
        let page = self.letters(realm, None, 1000).await;
        assert_eq!(page.next, None);
        page.letters
            .iter()
            .map(|letter| letter.stored.id.to_string())
            .collect()
    }

    async fn letter(&self, realm: Option<&str>, id: &str) -> Option<DeadLetter> {
        self.0
            .dead_letter(realm.map(Into::into), MessageId::from(id))
            .await
            .expect("shows")
    }

    async fn discard(&self, realm: Option<&str>, id: &str) -> bool {
        self.0
            .discard_dead_letter(realm.map(Into::into), MessageId::from(id))
            .await
            .expect("discards")
    }

    async fn requeue(
        &self,
        realm: &str,
        id: &str,
        expires_at_ms: Option<u64>,
        now_ms: u64,
    ) -> Option<String> {
        let op = StoreOp::Requeue {
            realm: realm.into(),
            id: id.into(),
            expires_at_ms,
            now_ms,
        };
        match self.one(op).await {
            StoreReply::Requeued(key) => {
                key.map(|key| format!("{}/{}/{}", key.realm, key.key, key.consumer))
            }
            other => panic!("a requeue was answered {other:?}"),
        }
    }
}

pub(super) async fn a_letter_leaves_its_queue<S: Store>(store: &Subject<S>) {
    let queue = queue("r", "k", "c");
    let mut kept = stored(&queue, "a");
    kept.attempts = 3;
    kept.expires_at_ms = Some(LATER_MS);
    store.enqueue(&kept).await;
    store.enqueue(&stored(&queue, "b")).await;
    assert_eq!(store.one(bury(&kept)).await, StoreReply::Done);
    // one that was never kept, and one whose enqueue is in the same batch
    let (unkept, fresh) = (stored(&queue, "never kept"), stored(&queue, "fresh"));
    store
        .all(vec![
            bury(&unkept),
            StoreOp::Enqueue(fresh.clone()),
            bury(&fresh),
        ])
        .await;
    assert_eq!(store.ids(&queue).await, ["b"]);
    let page = store.letters(Some("r"), None, 10).await;
    let found: Vec<DeadLetter> = page.letters.into_iter().map(unplaced_letter).collect();
    assert_eq!(found, [letter(&kept), letter(&unkept), letter(&fresh)]);
    store.one(bury(&kept)).await;
    assert_eq!(
        store.letter_ids(None).await,
        ["never kept", "fresh", "a"],
        "the later one counts"
    );
}

fn unplaced_letter(letter: DeadLetter) -> DeadLetter {
    DeadLetter {
        stored: unplaced(letter.stored),
        ..letter
    }
}

pub(super) async fn pages<S: Store>(store: &Subject<S>) {
    let (one, two) = (queue("one", "k", "c"), queue("two", "k", "c"));
    let mut ops = Vec::new();
    for number in 0..5 {
        ops.push(bury(&stored(&one, &format!("a{number}"))));
        ops.push(bury(&stored(&two, &format!("b{number}"))));
    }
    store.all(ops).await;
    let walk = async |realm: Option<&str>, limit: usize| {
        let (mut after, mut found) = (None, Vec::new());
        loop {
            let page = store.letters(realm, after, limit).await;
            assert!(page.letters.len() <= limit);
            found.push(
                page.letters
                    .iter()
                    .map(|it| it.stored.id.to_string())
                    .collect::<Vec<_>>()
                    .concat(),
            );
            match page.next {
                Some(next) => after = Some(next),
                None => return found,
            }
        }
    };
    assert_eq!(walk(Some("one"), 2).await, ["a0a1", "a2a3", "a4"]);
    assert_eq!(walk(Some("two"), 5).await, ["b0b1b2b3b4"]);
    assert_eq!(walk(None, 4).await, ["a0b0a1b1", "a2b2a3b3", "a4b4"]);
    assert_eq!(walk(Some("three"), 4).await, [""]);
}

pub(super) async fn show_and_discard<S: Store>(store: &Subject<S>) {
    let queue = queue("r", "k", "c");
    let kept = stored(&queue, "a");
    store
        .all(vec![bury(&kept), bury(&stored(&queue, "b"))])
        .await;
    assert_eq!(
        store.letter(Some("r"), "a").await.map(unplaced_letter),
        Some(letter(&kept))
    );
    assert!(store.letter(None, "a").await.is_some());
    assert_eq!(store.letter(Some("other"), "a").await, None);
    assert_eq!(store.letter(None, "unknown").await, None);
    assert!(!store.discard(Some("other"), "a").await);
    assert!(store.discard(Some("r"), "a").await);
    assert!(!store.discard(Some("r"), "a").await, "only once");
    assert!(store.discard(None, "b").await);
    assert!(store.letter_ids(None).await.is_empty());
}

pub(super) async fn requeue<S: Store>(store: &Subject<S>) {
    let queue = queue("r", "k", "c");
    let mut kept = stored(&queue, "a");
    kept.attempts = 3;
    kept.expires_at_ms = Some(LATER_MS);
    store
        .all(vec![
            bury(&kept),
            StoreOp::Enqueue(stored(&queue, "b")),
            bury(&stored(&queue, "c")),
        ])
        .await;
    let put_back = async |realm, id| store.requeue(realm, id, Some(1), LATER_MS - 1).await;
    assert_eq!(put_back("other", "a").await, None, "of another realm");
    assert_eq!(put_back("r", "unknown").await, None);
    assert_eq!(put_back("r", "a").await.as_deref(), Some("r/k/c"));
    assert_eq!(put_back("r", "c").await.as_deref(), Some("r/k/c"));
    assert_eq!(put_back("r", "a").await, None, "only once");
    let messages = store.messages(&queue).await;
    assert_eq!(ids(&messages), ["b", "a", "c"], "at the end of the queue");
    kept.attempts = 0;
    assert_eq!(
        unplaced(messages[1].clone()),
        kept,
        "nothing counted, its own expiry"
    );
    assert_eq!(messages[2].expires_at_ms, None, "for ever stays for ever");
    assert!(store.letter_ids(None).await.is_empty());
}

pub(super) async fn requeue_of_an_expired_one<S: Store>(store: &Subject<S>) {
    let queue = queue("r", "k", "c");
    let mut kept = stored(&queue, "a");
    kept.expires_at_ms = Some(CREATED_AT_MS);
    let mut other = stored(&queue, "b");
    other.expires_at_ms = Some(CREATED_AT_MS);
    store.all(vec![bury(&kept), bury(&other)]).await;
    let back = store.requeue("r", "a", Some(LATER_MS), CREATED_AT_MS).await;
    assert_eq!(back.as_deref(), Some("r/k/c"));
    store.requeue("r", "b", None, CREATED_AT_MS).await;
    let expiries: Vec<Option<u64>> = store
        .messages(&queue)
        .await
        .iter()
        .map(|it| it.expires_at_ms)
        .collect();
    assert_eq!(expiries, [Some(LATER_MS), None]);
}

pub(super) async fn content_is_kept_exactly<S: Store>(store: &Subject<S>) {
    let queue = queue("r", "k", "c");
    let sent: Vec<StoredMessage> = odd_contents()
        .into_iter()
        .enumerate()
        .map(|(number, (body, attachments))| {
            with_body(&queue, &format!("m{number}"), &body, &attachments)
        })
        .collect();
    store.all(sent.iter().map(bury).collect()).await;
    let letters = store.letters(Some("r"), None, 100).await.letters;
    let kept: Vec<Arc<_>> = letters
        .into_iter()
        .map(|letter| letter.stored.message)
        .collect();
    assert!(
        kept.iter().eq(sent.iter().map(|it| &it.message)),
        "letters are as they were sent"
    );
    for stored in &sent {
        store
            .requeue("r", stored.id.as_str(), None, CREATED_AT_MS)
            .await;
    }
    let back = store.messages(&queue).await;
    assert!(
        back.into_iter().map(unplaced).eq(sent),
        "and so they go back"
    );
}
