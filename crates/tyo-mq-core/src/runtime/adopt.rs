//! What a store that was away comes back with, and a handle for who brings it.

use std::sync::{Arc, Weak};

use super::{Broker, Inner};
use crate::store::Snapshot;

/// A handle that does not keep a broker alive.
#[derive(Clone)]
pub struct WeakBroker(Weak<Inner>);

impl WeakBroker {
    /// The broker, if it still is there.
    pub fn upgrade(&self) -> Option<Broker> {
        self.0.upgrade().map(|inner| Broker { inner })
    }
}

impl Broker {
    /// A handle that does not keep it alive.
    pub fn downgrade(&self) -> WeakBroker {
        WeakBroker(Arc::downgrade(&self.inner))
    }

    /// Takes up what the store holds and the broker has not heard of: messages beside those it knows are counted and
    /// delivered, durable subscriptions take part unless there is a newer one in their place.
    pub fn adopt(&self, snapshot: Snapshot) {
        self.restore(snapshot);
    }
}
