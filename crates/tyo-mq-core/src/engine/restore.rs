//! What meets the store outside of the message path: start, expiry sweeps, dead letters going back.

use super::Engine;
use super::clock::Now;
use super::input::ReplyToken;
use super::output::Output;
use super::queue::Backlog;
use super::realm::{Context, Purpose, Realm};
use crate::message::MessageId;
use crate::store::{DurableSubscription, QueueKey, Snapshot, StoreOp, StoreReply, StoreResult};

impl Engine {
    /// Takes up what the store held: durable subscriptions, and queues with messages.
    pub(crate) fn restore(&mut self, now: Now, snapshot: Snapshot, out: &mut Vec<Output>) {
        for subscription in snapshot.subscriptions {
            let index = self.realm_entry(&subscription.queue.realm);
            let (realm, mut ctx) = self.split(index, now, out);
            realm.restore_subscription(&mut ctx, subscription);
        }
        for (key, count) in snapshot.queues {
            let index = self.realm_entry(&key.realm);
            self.realms[index].restore_queue(&key, count);
        }
    }

    pub(crate) fn requeue(
        &mut self,
        now: Now,
        realm: &str,
        id: &str,
        token: Option<ReplyToken>,
        out: &mut Vec<Output>,
    ) {
        let index = self.realm_entry(realm);
        let (realm, mut ctx) = self.split(index, now, out);
        let expires_at_ms = ctx
            .config
            .default_ttl_ms
            .map(|ttl_ms| now.wall_ms.saturating_add(ttl_ms));
        let op = StoreOp::Requeue {
            realm: realm.name.clone(),
            id: MessageId::from(id),
            expires_at_ms,
            now_ms: now.wall_ms,
        };
        ctx.store(index, op, Purpose::Requeue { token });
    }
}

impl Realm {
    fn restore_subscription(&mut self, ctx: &mut Context<'_>, subscription: DurableSubscription) {
        let consumer = match self.consumer_names.get(&subscription.consumer_name) {
            Some(&index) => index,
            None => {
                let index = self.insert_consumer(
                    subscription.consumer_name,
                    subscription.queue.consumer.clone(),
                );
                // An age that the clocks cannot tell is taken as none: nothing is forgotten too early.
                let away_ms = subscription
                    .offline_since_ms
                    .map_or(0, |since| ctx.now.wall_ms.saturating_sub(since));
                self.consumers[index].offline_since_ms = ctx.now.mono_ms.saturating_sub(away_ms);
                index
            }
        };
        let sub = self.put_subscription(
            ctx,
            consumer,
            subscription.queue.consumer,
            subscription.spec,
        );
        self.queue_of(sub);
    }

    fn restore_queue(&mut self, key: &QueueKey, count: u64) {
        let index = self.queue_named(&key.key, &key.consumer);
        let queue = &mut self.queues[index];
        queue.stored += count;
        queue.backlog = Some(Backlog::default());
        self.stored += count;
    }

    pub(crate) fn purge_expired(&mut self, ctx: &mut Context<'_>) {
        if self.stored > 0 {
            let op = StoreOp::PurgeExpired {
                realm: self.name.clone(),
                now_ms: ctx.now.wall_ms,
                to_dead_letters: ctx.config.expired_to_dlq,
            };
            ctx.store(self.index, op, Purpose::Purge);
        }
    }

    /// The store forgot expired messages: those in memory expire when their turn comes, and are not counted twice.
    pub(crate) fn on_purged(&mut self, ctx: &mut Context<'_>, result: StoreResult) {
        let Ok(StoreReply::Purged(queues)) = result else {
            self.counters.store_failures += 1;
            return;
        };
        for (key, rows) in queues {
            let Some(&index) = self
                .queue_names
                .get(&key.key)
                .and_then(|it| it.get(&key.consumer))
            else {
                continue;
            };
            let now_ms = ctx.now.wall_ms;
            let queue = &mut self.queues[index];
            let in_memory = queue
                .in_flight
                .iter_mut()
                .map(|(_, it)| &mut it.entry)
                .chain(&mut queue.ready);
            for entry in in_memory.filter(|entry| super::delivery::is_expired(entry, now_ms)) {
                entry.stored = false;
            }
            self.counters.expired += rows;
            self.uncount(index, rows);
            self.pump(ctx, index);
            self.drop_if_unused(index);
        }
    }

    pub(crate) fn on_requeued(
        &mut self,
        ctx: &mut Context<'_>,
        token: Option<ReplyToken>,
        result: StoreResult,
    ) {
        let result = match result {
            Ok(StoreReply::Requeued(Some(key))) => {
                let index = self.queue_named(&key.key, &key.consumer);
                self.stored += 1;
                let queue = &mut self.queues[index];
                queue.stored += 1;
                let tail = queue.tail;
                let backlog = queue.backlog.get_or_insert(Backlog {
                    after: tail,
                    ..Backlog::default()
                });
                backlog.grown = true;
                self.attach_waiting(&key);
                self.pump(ctx, index);
                Ok(true)
            }
            Ok(_) => Ok(false),
            Err(error) => Err(error),
        };
        ctx.out.push(Output::Requeued { token, result });
    }

    /// Subscriptions without a queue of their own join the one that has just got a message.
    fn attach_waiting(&mut self, key: &QueueKey) {
        let named = self.by_key.get(&key.key).into_iter().flatten();
        let producer = key.key.strip_suffix("-tm-all").unwrap_or_default();
        let all = self.all_events.get(producer).into_iter().flatten();
        let waiting: Vec<usize> = named
            .chain(all)
            .copied()
            .filter(|sub| self.subs[*sub].consumer_id == key.consumer)
            .collect();
        for sub in waiting {
            self.queue_of(sub);
        }
    }
}
