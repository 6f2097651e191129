//! Store operations that failed and that nobody else makes up for: they are tried again until they succeed.
//!
//! Removals and dead letters are kept as they were; of a subscription only the name is kept, and what is true of it
//! at the next try is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::clock::Timer;
use super::config::{MAX_UNSETTLED, SETTLE_BATCH, SETTLE_MS};
use super::realm::{Context, Purpose, Realm};
use crate::message::MessageId;
use crate::store::{DeadLetter, DurableSubscription, QueueKey, StoreOp, StoreResult};

/// What the store is behind with.
#[derive(Debug, Default)]
pub(crate) struct Unsettled {
    /// Messages that should have left their queue.
    messages: BTreeMap<MessageId, Departure>,
    /// Durable subscriptions that are kept or forgotten wrongly: key, consumer id, consumer name.
    subscriptions: BTreeSet<SubscriptionName>,
    timer_set: bool,
    /// How often the realm has ended: what failed before is not tried again.
    era: u64,
}

/// How a message leaves its queue.
#[derive(Debug, Clone)]
pub(crate) enum Departure {
    /// It is forgotten.
    Removed(Arc<QueueKey>),
    /// It becomes a dead letter.
    Buried(Box<DeadLetter>),
}

/// Key, consumer id and consumer name of a durable subscription.
pub(crate) type SubscriptionName = (Arc<str>, Arc<str>, Arc<str>);

impl Unsettled {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.subscriptions.is_empty()
    }

    /// The realm ends: the store forgets all of it anyway.
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.subscriptions.clear();
        self.era += 1;
    }

    /// The store still holds this message although it is done with.
    pub(crate) fn holds(&self, id: &MessageId) -> bool {
        !self.messages.is_empty() && self.messages.contains_key(id)
    }
}

impl Departure {
    fn queue(&self) -> &Arc<QueueKey> {
        match self {
            Self::Removed(queue) => queue,
            Self::Buried(letter) => &letter.stored.queue,
        }
    }

    /// The realm may have another name by now.
    fn move_to(&mut self, realm: &Arc<str>) {
        let queue = match self {
            Self::Removed(queue) => queue,
            Self::Buried(letter) => &mut letter.stored.queue,
        };
        if queue.realm != *realm {
            Arc::make_mut(queue).realm = realm.clone();
        }
    }

    fn op(&self, id: &MessageId) -> StoreOp {
        match self {
            Self::Removed(queue) => StoreOp::Remove {
                queue: queue.clone(),
                id: id.clone(),
            },
            Self::Buried(letter) => StoreOp::DeadLetter(letter.clone()),
        }
    }
}

impl Realm {
    /// Takes a message that is done with out of the store.
    pub(crate) fn depart(&mut self, ctx: &mut Context<'_>, id: MessageId, departure: Departure) {
        let (op, era) = (departure.op(&id), self.unsettled.era);
        let purpose = Purpose::Depart { id, departure, era };
        ctx.store(self.index, op, purpose);
    }

    pub(crate) fn on_departed(
        &mut self,
        ctx: &mut Context<'_>,
        (id, departure, era): (MessageId, Departure, u64),
        result: &StoreResult,
    ) {
        if result.is_ok() {
            self.unsettled.messages.remove(&id);
            return;
        }
        self.counters.store_failures += 1;
        if self.unsettled.messages.len() >= MAX_UNSETTLED || era != self.unsettled.era {
            return;
        }
        // Its row may be counted or not: the next look at the queue finds out.
        let queue = departure.queue();
        if let Some(index) = self.find_queue(&queue.key, &queue.consumer) {
            self.queues[index].doubtful = true;
        }
        self.unsettled.messages.insert(id, departure);
        self.arm_settling(ctx);
    }

    /// Keeps a durable subscription in the store, with the time since when its consumer is away.
    pub(crate) fn save_subscription(&self, ctx: &mut Context<'_>, index: usize) {
        let sub = &self.subs[index];
        if !sub.spec.durable {
            return;
        }
        let consumer = &self.consumers[sub.consumer];
        let offline_since_ms = match consumer.session {
            Some(_) => None,
            None => Some(ctx.now.wall_ms.saturating_sub(consumer.away_ms(ctx.now))),
        };
        let name = consumer.name.clone();
        let subscription = DurableSubscription {
            queue: self.queue_key(&sub.key, &sub.consumer_id),
            consumer_name: name.clone(),
            spec: sub.spec.clone(),
            offline_since_ms,
        };
        let op = StoreOp::PutSubscription(Box::new(subscription));
        let name = Box::new((sub.key.clone(), sub.consumer_id.clone(), name));
        ctx.store(self.index, op, Purpose::Subscription(name));
    }

    /// Takes a durable subscription out of the store.
    pub(crate) fn forget_subscription(&self, ctx: &mut Context<'_>, name: SubscriptionName) {
        let (key, consumer_id, consumer_name) = name.clone();
        let op = StoreOp::RemoveSubscription {
            queue: self.queue_key(&key, &consumer_id),
            consumer_name,
        };
        ctx.store(self.index, op, Purpose::Subscription(Box::new(name)));
    }

    pub(crate) fn on_subscription_stored(
        &mut self,
        ctx: &mut Context<'_>,
        name: SubscriptionName,
        result: &StoreResult,
    ) {
        if result.is_ok() {
            return;
        }
        self.counters.store_failures += 1;
        if self.unsettled.subscriptions.len() < MAX_UNSETTLED {
            self.unsettled.subscriptions.insert(name);
            self.arm_settling(ctx);
        }
    }

    fn arm_settling(&mut self, ctx: &mut Context<'_>) {
        if !self.unsettled.timer_set {
            self.unsettled.timer_set = true;
            let realm = self.index;
            ctx.timers
                .set(ctx.now.mono_ms + SETTLE_MS, Timer::Settle { realm });
        }
    }

    /// Tries again, some at a time.
    pub(crate) fn settle(&mut self, ctx: &mut Context<'_>) {
        self.unsettled.timer_set = false;
        let departures = self.unsettled.messages.iter().take(SETTLE_BATCH);
        let departures: Vec<(MessageId, Departure)> = departures
            .map(|(id, departure)| (id.clone(), departure.clone()))
            .collect();
        for (id, mut departure) in departures {
            departure.move_to(&self.name);
            // It stays listed until it succeeds, so that no page brings it back in between.
            self.depart(ctx, id, departure);
        }
        for _ in 0..SETTLE_BATCH {
            let Some(name) = self.unsettled.subscriptions.pop_first() else {
                break;
            };
            match self.durable_subscription(&name) {
                Some(sub) => self.save_subscription(ctx, sub),
                None => self.forget_subscription(ctx, name),
            }
        }
        if !self.unsettled.is_empty() {
            self.arm_settling(ctx);
        }
    }

    fn durable_subscription(&self, (key, consumer_id, name): &SubscriptionName) -> Option<usize> {
        let consumer = *self.consumer_names.get(name)?;
        let found = self.subscription_of(consumer, key);
        found.filter(|sub| {
            let sub = &self.subs[*sub];
            sub.consumer_id == *consumer_id && sub.spec.durable
        })
    }
}
