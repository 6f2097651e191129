//! What meets the store outside of the message path: start, expiry sweeps, dead letters going back.

use hashbrown::HashMap;

use super::Engine;
use super::clock::Now;
use super::config::RESUME_MS;
use super::delivery::is_expired;
use super::input::{RealmPolicy, ReplyToken};
use super::output::Output;
use super::queue::Backlog;
use super::realm::{ALL_EVENTS_SUFFIX, Context, Purge, Purpose, Realm};
use super::roster::Roster;
use crate::message::{MessageId, SessionId};
use crate::store::{
    DurableSubscription, Position, QueueKey, Snapshot, StoreOp, StoreReply, StoreResult,
};

impl Engine {
    /// Takes up what the store held: durable subscriptions, and queues with messages. It may come while we run, from a store
    /// that was away: none of those messages is known then, and what we know of a subscription is newer.
    pub(crate) fn restore(&mut self, now: Now, snapshot: Snapshot, out: &mut Vec<Output>) {
        for subscription in snapshot.subscriptions {
            let index = self.realm_entry(&subscription.queue.realm);
            let (realm, mut ctx) = self.split(index, now, out);
            realm.restore_subscription(&mut ctx, subscription);
        }
        for (key, count) in snapshot.queues {
            let index = self.realm_entry(&key.realm);
            let (realm, mut ctx) = self.split(index, now, out);
            realm.restore_queue(&mut ctx, &key, count);
        }
    }

    /// The last position of the store that is remembered.
    pub fn last_position(&self) -> Position {
        let queues = self.realms.iter().flat_map(|(_, realm)| &realm.queues);
        let remembered = queues.map(|(_, queue)| {
            let read = queue.backlog.as_ref().map(|backlog| backlog.after);
            queue.tail.max(read.unwrap_or_default())
        });
        remembered.max().unwrap_or_default()
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
        let id = MessageId::from(id);
        let op = StoreOp::Requeue {
            realm: realm.name.clone(),
            id: id.clone(),
            expires_at_ms,
            now_ms: now.wall_ms,
        };
        ctx.store(index, op, Purpose::Requeue { id, token });
    }
}

impl Realm {
    fn restore_subscription(&mut self, ctx: &mut Context<'_>, subscription: DurableSubscription) {
        let consumer = match self.consumer_names.get(&subscription.consumer_name) {
            Some(&index) => index,
            None => {
                let id = subscription.queue.consumer.clone();
                let index = self.insert_consumer(subscription.consumer_name.clone(), id);
                self.consumers[index].offline_since_ms = ctx.now.mono_ms;
                self.consumers[index].away_before_ms = u64::MAX;
                index
            }
        };
        if let Some(known) = self.subscription_of(consumer, &subscription.queue.key) {
            return self.forget_older(ctx, known, subscription);
        }
        // An age that the clocks cannot tell is taken as none: nothing is forgotten too early.
        let since_ms = subscription.offline_since_ms;
        let away_ms = since_ms.map_or(0, |since| ctx.now.wall_ms.saturating_sub(since));
        let known_ms = self.consumers[consumer].away_before_ms;
        self.consumers[consumer].away_before_ms = known_ms.min(away_ms);
        let (sub, _) = self.put_subscription(
            ctx,
            consumer,
            subscription.queue.consumer,
            subscription.spec,
        );
        let online = self.consumers[consumer].session.is_some();
        let resume_at_ms = online.then(|| ctx.now.mono_ms.saturating_add(RESUME_MS));
        self.subs[sub].resume_at_ms = resume_at_ms;
        let queue = self.queue_of(sub);
        if let Some(at_ms) = resume_at_ms {
            self.arm(ctx, queue, at_ms);
        }
        if since_ms.is_none() != online {
            self.save_subscription(ctx, sub);
        }
    }

    /// A newer subscription has the place of one that the store holds.
    fn forget_older(&mut self, ctx: &mut Context<'_>, newer: usize, older: DurableSubscription) {
        let sub = &self.subs[newer];
        if !sub.spec.durable || sub.consumer_id != older.queue.consumer {
            let QueueKey { key, consumer, .. } = older.queue;
            self.forget_subscription(ctx, (key, consumer, older.consumer_name));
        }
    }

    fn restore_queue(&mut self, ctx: &mut Context<'_>, key: &QueueKey, count: u64) {
        let index = self.queue_named(&key.key, &key.consumer);
        self.queues[index].add_rows(count);
        self.stored += count;
        self.attach_waiting(key);
        self.pump(ctx, index);
    }

    /// Ends the realm: nothing of it is left but sessions that are told to go.
    pub(crate) fn purge(&mut self, ctx: &mut Context<'_>) {
        let subs: Vec<usize> = self.subs.iter().map(|(index, _)| index).collect();
        for sub in subs {
            self.remove_subscription(ctx, sub);
        }
        self.queues.clear();
        self.queue_names.clear();
        self.tracked.clear();
        self.unsettled.clear();
        self.stored = 0;
        self.policy = RealmPolicy::default();
        let realm = self.name.clone();
        ctx.store(self.index, StoreOp::PurgeRealm { realm }, Purpose::Note);
        let mut sessions: Vec<SessionId> = self.sessions.keys().copied().collect();
        sessions.sort_unstable();
        let leave = |session| Output::Disconnect { session };
        ctx.out.extend(sessions.into_iter().map(leave));
    }

    pub(crate) fn purge_expired(&mut self, ctx: &mut Context<'_>) {
        if self.stored > 0 && self.purge.is_none() {
            self.purge = Some(Purge {
                now_ms: ctx.now.wall_ms,
                rows: self.rows,
                settled: HashMap::new(),
            });
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
        let (Some(purge), Ok(StoreReply::Purged(queues))) = (self.purge.take(), result) else {
            self.counters.store_failures += 1;
            return;
        };
        for (key, rows) in queues {
            let Some(index) = self.find_queue(&key.key, &key.consumer) else {
                continue;
            };
            let queue = &mut self.queues[index];
            let settled = purge
                .settled
                .get(&queue.unique)
                .copied()
                .unwrap_or_default();
            let rows = rows.saturating_sub(settled);
            let in_flight = queue.in_flight.iter_mut().map(|(_, it)| &mut it.entry);
            let mut in_memory = 0;
            for entry in in_flight.chain(&mut queue.ready) {
                let purged = entry.row <= purge.rows && is_expired(entry, purge.now_ms);
                if entry.stored && purged {
                    entry.stored = false;
                    in_memory += 1;
                }
            }
            let gone = rows.saturating_sub(in_memory);
            self.counters.expired += gone;
            if ctx.config.expired_to_dlq {
                self.counters.dead_lettered += gone;
            }
            self.uncount(index, rows);
            self.pump(ctx, index);
            self.drop_if_unused(index);
        }
    }

    pub(crate) fn on_requeued(
        &mut self,
        ctx: &mut Context<'_>,
        id: &MessageId,
        token: Option<ReplyToken>,
        result: StoreResult,
    ) {
        let result = match result {
            Ok(StoreReply::Requeued(Some(key))) => {
                let index = self.queue_named(&key.key, &key.consumer);
                self.stored += 1;
                let queue = &mut self.queues[index];
                queue.stored += 1;
                queue.recover(id);
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
    pub(crate) fn attach_waiting(&mut self, key: &QueueKey) {
        let named = self.by_key.get(&key.key).into_iter();
        let producer = key.key.strip_suffix(ALL_EVENTS_SUFFIX).unwrap_or_default();
        let all = self.all_events.get(producer).into_iter();
        let waiting: Vec<usize> = named
            .chain(all)
            .flat_map(Roster::iter)
            .filter(|sub| self.subs[*sub].consumer_id == key.consumer)
            .collect();
        for sub in waiting {
            self.queue_of(sub);
        }
    }
}
