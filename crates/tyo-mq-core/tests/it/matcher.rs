//! The naive matcher: a list of subscriptions, looked at one by one.

use std::sync::Arc;

use tyo_mq_core::engine::{ANY_PRODUCER, Key, SubscriptionSpec, topics};

/// A subscription: consumer and key.
pub(crate) type Target = (usize, Arc<str>);

/// A subscription as it is known to exist.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) consumer: usize,
    pub(crate) key: Arc<str>,
    pub(crate) spec: SubscriptionSpec,
}

impl Known {
    pub(crate) fn new(consumer: usize, spec: &SubscriptionSpec) -> Self {
        Self {
            consumer,
            key: key_of(spec),
            spec: spec.clone(),
        }
    }

    pub(crate) fn target(&self) -> Target {
        (self.consumer, self.key.clone())
    }

    /// Whether a message of this producer and event is for it.
    pub(crate) fn matches(&self, producer: &str, event: &str) -> bool {
        let (producer, event) = (producer.to_lowercase(), event.to_lowercase());
        let any = &*self.spec.producer == ANY_PRODUCER;
        let of_producer = any || self.spec.producer.to_lowercase() == producer;
        let exact = format!("{producer}-{event}");
        let any_key = format!("tyo-mq-all-{event}");
        if self.spec.all_events {
            return of_producer;
        }
        if *self.key == *exact || *self.key == *any_key {
            return of_producer && self.spec.event.to_lowercase() == event;
        }
        self.spec.topic && topics::matches(&self.spec.event.to_lowercase(), &event)
    }
}

/// The key of a subscription.
pub(crate) fn key_of(spec: &SubscriptionSpec) -> Arc<str> {
    format!("{}-{}", spec.producer, spec.event)
        .to_lowercase()
        .into()
}

/// The key under which a delivery arrived.
pub(crate) fn key_text(key: &Key) -> Arc<str> {
    match key {
        Key::Exact(key) => key.clone(),
        Key::AllOf(producer) => format!("{producer}-tm-all").into(),
    }
}
