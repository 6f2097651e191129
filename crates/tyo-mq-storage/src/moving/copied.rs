//! Copying one store into another: subscriptions, queues in order, dead letters.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tyo_mq_core::MessageId;
use tyo_mq_core::store::{
    Position, QueueKey, Store, StoreError, StoreOp, StoreReply, StoredMessage,
};

use super::places::Places;

/// What was copied so far.
#[derive(Default)]
pub(super) struct Copied {
    messages: Vec<(Arc<QueueKey>, MessageId)>,
    letters: Vec<MessageId>,
    realms: BTreeSet<Arc<str>>,
    moved: HashMap<QueueKey, Vec<(u64, u64)>>,
}

/// Messages of one step.
const STEP: usize = 256;

/// Bytes of one step, a last message apart.
const STEP_BYTES: usize = 4 * 1024 * 1024;

impl Copied {
    /// Copies everything; the source keeps it.
    pub(super) async fn copy(
        &mut self,
        from: &dyn Store,
        to: &dyn Store,
    ) -> Result<(), StoreError> {
        let snapshot = from.load().await?;
        for subscription in snapshot.subscriptions {
            self.realms.insert(subscription.queue.realm.clone());
            all_done(to, vec![StoreOp::PutSubscription(Box::new(subscription))]).await?;
        }
        for (key, _) in snapshot.queues {
            self.realms.insert(key.realm.clone());
            self.copy_queue(from, to, Arc::new(key)).await?;
        }
        self.copy_letters(from, to).await
    }

    async fn copy_queue(
        &mut self,
        from: &dyn Store,
        to: &dyn Store,
        queue: Arc<QueueKey>,
    ) -> Result<(), StoreError> {
        let mut after = Position(0);
        loop {
            let (messages, exhausted) = page(from, &queue, after).await?;
            if let Some(last) = messages.last() {
                after = last.position;
            }
            let old: Vec<u64> = messages.iter().map(|it| it.position.0).collect();
            self.messages
                .extend(messages.iter().map(|it| (queue.clone(), it.id.clone())));
            let replies =
                all_done(to, messages.into_iter().map(StoreOp::Enqueue).collect()).await?;
            let places = self.moved.entry((*queue).clone()).or_default();
            for (old, reply) in old.into_iter().zip(replies) {
                if let StoreReply::Enqueued(new) = reply {
                    places.push((old, new.0));
                }
            }
            if exhausted {
                return Ok(());
            }
        }
    }

    async fn copy_letters(&mut self, from: &dyn Store, to: &dyn Store) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = from.dead_letters(None, after, STEP).await?;
            for letter in &page.letters {
                self.realms.insert(letter.stored.queue.realm.clone());
                self.letters.push(letter.stored.id.clone());
            }
            let ops = page
                .letters
                .into_iter()
                .map(|letter| StoreOp::DeadLetter(Box::new(letter)));
            all_done(to, ops.collect()).await?;
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Takes copies of an attempt that failed back: what they are copies of may have gone since.
    pub(super) async fn take_back(&mut self, to: &dyn Store) -> Result<(), StoreError> {
        for (queue, id) in &self.messages {
            let op = StoreOp::Remove {
                queue: queue.clone(),
                id: id.clone(),
            };
            all_done(to, vec![op]).await?;
        }
        for id in &self.letters {
            to.discard_dead_letter(None, id.clone()).await?;
        }
        *self = Self::default();
        Ok(())
    }

    /// Empties the source.
    pub(super) async fn empty(&self, from: &dyn Store) -> Result<(), StoreError> {
        let purge = |realm: &Arc<str>| StoreOp::PurgeRealm {
            realm: realm.clone(),
        };
        all_done(from, self.realms.iter().map(purge).collect())
            .await
            .map(|_| ())
    }

    /// Where positions up to `last` are now.
    pub(super) fn places(&mut self, last: u64) -> Places {
        let moved = std::mem::take(&mut self.moved);
        let ends = moved
            .values()
            .filter_map(|places| places.last())
            .map(|(old, _)| *old);
        Places::new(ends.max().unwrap_or(0).max(last), moved)
    }
}

async fn page(
    from: &dyn Store,
    queue: &Arc<QueueKey>,
    after: Position,
) -> Result<(Vec<StoredMessage>, bool), StoreError> {
    let op = StoreOp::Fetch {
        queue: queue.clone(),
        after,
        limit: STEP,
        max_bytes: STEP_BYTES,
    };
    match all_done(from, vec![op]).await?.pop() {
        Some(StoreReply::Page {
            messages,
            exhausted,
        }) => Ok((messages, exhausted)),
        _ => Err(StoreError::Unsupported),
    }
}

/// The replies, if there is one for each operation.
async fn all_done(store: &dyn Store, ops: Vec<StoreOp>) -> Result<Vec<StoreReply>, StoreError> {
    let count = ops.len();
    let replies: Vec<StoreReply> = store
        .execute(ops)
        .await
        .into_iter()
        .collect::<Result<_, _>>()?;
    if replies.len() == count {
        Ok(replies)
    } else {
        Err(StoreError::Unsupported)
    }
}
