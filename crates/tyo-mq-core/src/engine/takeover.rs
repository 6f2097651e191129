//! Who drains a queue, as consumers come, leave and share: claims, groups taking over, deliveries taken back.

use std::sync::Arc;

use super::config::RESUME_MS;
use super::queue::InFlight;
use super::realm::{Context, Realm};
use crate::message::SessionId;

impl Realm {
    /// A subscription was made or changed by its consumer: it takes what waits for it.
    pub(crate) fn claim(&mut self, ctx: &mut Context<'_>, sub: usize) {
        self.subs[sub].resume_at_ms = None;
        let spec = &self.subs[sub].spec;
        let (wants_queue, group) = (spec.ack || spec.durable, spec.group.clone());
        if wants_queue || self.has_named_queue(sub) {
            let queue = self.queue_of(sub);
            self.queues[queue].group = group.clone();
            self.refresh_drainers(queue);
            self.pump(ctx, queue);
        }
        if let Some(group) = group {
            self.rebalance(ctx, &group, &self.subs[sub].key.clone());
        }
    }

    /// The consumer of a known subscription is back. It gets what is new; what waits comes when it subscribes (it may
    /// not listen before), or after a while if it never does.
    pub(crate) fn resume(&mut self, ctx: &mut Context<'_>, sub: usize) {
        if self.has_named_queue(sub) {
            self.queue_of(sub);
        }
        let serves: Vec<usize> = self.served_by(sub);
        let waiting: Vec<usize> = serves
            .into_iter()
            .filter(|queue| !self.queues[*queue].is_idle())
            .collect();
        if waiting.is_empty() {
            return self.claim(ctx, sub);
        }
        let at_ms = ctx.now.mono_ms.saturating_add(RESUME_MS);
        self.subs[sub].resume_at_ms = Some(at_ms);
        for queue in waiting {
            self.arm(ctx, queue, at_ms);
        }
    }

    /// Claims of consumers that came back and did not subscribe in time.
    pub(crate) fn resume_late(&mut self, ctx: &mut Context<'_>, queue: usize) {
        for sub in self.candidates(queue) {
            let resume_at_ms = self.subs.get(sub).and_then(|sub| sub.resume_at_ms);
            if resume_at_ms.is_some_and(|at_ms| at_ms <= ctx.now.mono_ms) {
                self.claim(ctx, sub);
            }
        }
    }

    /// The next moment at which [`Self::resume_late`] has something to do.
    pub(crate) fn next_resume(&self, queue: usize) -> Option<u64> {
        let candidates = self.candidates(queue).into_iter();
        candidates
            .filter_map(|sub| self.subs.get(sub)?.resume_at_ms)
            .min()
    }

    fn has_named_queue(&self, sub: usize) -> bool {
        let sub = &self.subs[sub];
        let consumers = self.queue_names.get(&sub.key);
        consumers.is_some_and(|it| it.contains_key(&sub.consumer_id))
    }

    /// Subscriptions that may drain a queue if they are online: its own, and the members of its group with its key.
    fn candidates(&self, queue: usize) -> Vec<usize> {
        let Some(queue) = self.queues.get(queue) else {
            return Vec::new();
        };
        let group = queue.group.as_ref().and_then(|name| self.groups.get(name));
        let members = group.into_iter().flat_map(|group| &group.members).copied();
        let of_key = members.filter(|sub| self.subs[*sub].key == queue.key.key);
        queue.subs.iter().copied().chain(of_key).collect()
    }

    /// Queues that a subscription may drain: its own, and those of its group with its key.
    pub(crate) fn served_by(&self, sub: usize) -> Vec<usize> {
        let sub = &self.subs[sub];
        let mut queues: Vec<usize> = sub.queue.into_iter().collect();
        if let Some(group) = &sub.spec.group {
            let others = self.group_queues(group, &sub.key).into_iter();
            queues.extend(others.filter(|queue| Some(*queue) != sub.queue));
        }
        queues
    }

    /// Queues of one key that the members of a group share, with or without a subscription of their own.
    fn group_queues(&self, group: &Arc<str>, key: &Arc<str>) -> Vec<usize> {
        let of_key = self
            .queue_names
            .get(key)
            .into_iter()
            .flat_map(|it| it.values());
        let mut queues: Vec<usize> = of_key
            .copied()
            .filter(|queue| self.queues[*queue].group.as_ref() == Some(group))
            .collect();
        queues.sort_unstable_by_key(|queue| self.queues[*queue].unique);
        queues
    }

    /// Lets the online members of a group take over the queues of those that are away.
    fn rebalance(&mut self, ctx: &mut Context<'_>, group: &Arc<str>, key: &Arc<str>) {
        for queue in self.group_queues(group, key) {
            if self.queues.contains(queue) {
                self.refresh_drainers(queue);
                self.pump(ctx, queue);
            }
        }
    }

    /// Who drains: online subscriptions of this identity, else online members of its group with the same key.
    pub(crate) fn refresh_drainers(&mut self, index: usize) {
        let takes = |sub: &usize| {
            let sub = &self.subs[*sub];
            sub.resume_at_ms.is_none() && self.consumers[sub.consumer].session.is_some()
        };
        let mut drainers = self.queues[index].subs.clone();
        drainers.retain(takes);
        if drainers.is_empty() && self.queues[index].group.is_some() {
            drainers = self.candidates(index);
            drainers.retain(takes);
        }
        self.queues[index].drainers = drainers;
    }

    /// A subscription ends or changes its identity: what it has in hand goes back.
    pub(crate) fn leave_queue(&mut self, ctx: &mut Context<'_>, sub: usize) {
        let Some(index) = self.subs[sub].queue.take() else {
            return;
        };
        self.queues[index].subs.retain(|kept| *kept != sub);
        self.release(ctx, |in_flight| in_flight.sub == sub, index);
        self.drop_if_unused(index);
        self.routes.invalidate();
    }

    /// A subscription is no member any longer: what it had taken over from others goes back.
    pub(crate) fn leave_group(&mut self, ctx: &mut Context<'_>, sub: usize, group: &Arc<str>) {
        let (key, own) = (self.subs[sub].key.clone(), self.subs[sub].queue);
        for queue in self.group_queues(group, &key) {
            if Some(queue) != own && self.queues.contains(queue) {
                self.release(ctx, |in_flight| in_flight.sub == sub, queue);
            }
        }
    }

    pub(crate) fn drop_if_unused(&mut self, index: usize) {
        let Some(queue) = self.queues.get(index).filter(|queue| queue.is_unused()) else {
            return;
        };
        let key = queue.key.clone();
        self.queues.remove(index);
        if let Some(consumers) = self.queue_names.get_mut(&key.key) {
            consumers.remove(&key.consumer);
            if consumers.is_empty() {
                self.queue_names.remove(&key.key);
            }
        }
    }

    /// Everything that a gone session had in hand is free at once, for whoever drains now.
    pub(crate) fn release_session(
        &mut self,
        ctx: &mut Context<'_>,
        session: SessionId,
        consumers: &[usize],
    ) {
        let mut concerned: Vec<usize> = Vec::new();
        for consumer in consumers {
            if self.consumers[*consumer].session.is_some() {
                continue;
            }
            for sub in self.consumers[*consumer].subs.to_vec() {
                self.save_subscription(ctx, sub);
                concerned.extend(self.served_by(sub));
            }
        }
        concerned.sort_unstable();
        concerned.dedup();
        for queue in concerned {
            if self.queues.contains(queue) {
                self.release(ctx, |in_flight| in_flight.session == session, queue);
            }
        }
    }

    /// Takes deliveries back. With a drainer left they come first again; else the store keeps those it has.
    fn release(&mut self, ctx: &mut Context<'_>, which: impl Fn(&InFlight) -> bool, index: usize) {
        self.refresh_drainers(index);
        let queue = &mut self.queues[index];
        let of_leaver = queue.in_flight.iter().filter(|(_, it)| which(it));
        let slots: Vec<usize> = of_leaver.map(|(slot, _)| slot).collect();
        let mut taken: Vec<InFlight> = slots
            .into_iter()
            .map(|slot| queue.in_flight.remove(slot))
            .collect();
        taken.sort_unstable_by_key(|in_flight| in_flight.entry.order);
        for in_flight in &taken {
            self.tracked.remove(&in_flight.entry.id);
            if let Some(sub) = self.subs.get_mut(in_flight.sub) {
                sub.in_flight = sub.in_flight.saturating_sub(1);
            }
        }
        let queue = &mut self.queues[index];
        if queue.drainers.is_empty() {
            let unstored = taken.iter().map(|it| &it.entry).chain(&queue.ready);
            self.counters.dropped += unstored.filter(|entry| !entry.stored).count() as u64;
            queue.rescan();
            return;
        }
        for in_flight in taken.into_iter().rev() {
            queue.push_back_in(in_flight.entry);
        }
        self.pump(ctx, index);
    }
}
