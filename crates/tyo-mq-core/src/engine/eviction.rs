//! Forgetting: registrations and subscriptions whose owners have been away for too long.

use super::realm::{Context, Realm, lower};

impl Realm {
    /// Forgets what has been offline for long, but no durable subscription before its time.
    pub(crate) fn evict_idle(&mut self, ctx: &mut Context<'_>) {
        let idle_ms = ctx.config.idle_eviction.map(|eviction| eviction.ttl_ms);
        self.evict_consumers(ctx, idle_ms);
        self.evict_producers(ctx, idle_ms);
    }

    fn evict_consumers(&mut self, ctx: &mut Context<'_>, idle_ms: Option<u64>) {
        let durable_ms = ctx.config.durable_subscription_ttl_ms;
        for index in 0..self.consumers.capacity() {
            let Some(consumer) = self
                .consumers
                .get(index)
                .filter(|consumer| consumer.session.is_none())
            else {
                continue;
            };
            let away_ms = consumer.away_ms(ctx.now);
            for sub in consumer.subs.to_vec() {
                let ttl = if self.subs[sub].spec.durable {
                    durable_ms
                } else {
                    idle_ms
                };
                if is_over(away_ms, ttl) {
                    self.remove_subscription(ctx, sub);
                }
            }
            if self.consumers[index].subs.is_empty() && is_over(away_ms, idle_ms) {
                let name = self.consumers.remove(index).name;
                self.consumer_names.remove(&name);
            }
        }
    }

    fn evict_producers(&mut self, ctx: &Context<'_>, idle_ms: Option<u64>) {
        for index in 0..self.producers.capacity() {
            let Some(producer) = self
                .producers
                .get(index)
                .filter(|producer| producer.session.is_none())
            else {
                continue;
            };
            let away_ms = ctx.now.mono_ms.saturating_sub(producer.offline_since_ms);
            if is_over(away_ms, idle_ms) {
                self.forget_producer(index);
                self.routes.invalidate();
            }
        }
    }

    fn forget_producer(&mut self, index: usize) {
        let name = self.producers.remove(index).name;
        self.producer_names.remove(&name);
        let fold = lower(&name);
        if let Some(list) = self.producer_folds.get_mut(&*fold) {
            list.retain(|kept| *kept != index);
            if list.is_empty() {
                self.producer_folds.remove(&*fold);
            }
        }
    }
}

fn is_over(away_ms: u64, ttl_ms: Option<u64>) -> bool {
    ttl_ms.is_some_and(|ttl_ms| away_ms >= ttl_ms)
}
