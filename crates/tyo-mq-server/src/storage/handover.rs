//! From a store that was away when the broker started to the broker that runs by now. The store is opened before the broker.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tyo_mq_core::runtime::{Broker, WeakBroker};
use tyo_mq_core::store::Snapshot;

/// Brings the broker what the store held.
#[derive(Clone, Default)]
pub(crate) struct Handover(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    broker: Option<WeakBroker>,
    /// It came before the broker ran.
    snapshot: Option<Snapshot>,
}

impl Handover {
    /// The broker runs: it is told from now on.
    pub(crate) fn attach(&self, broker: &Broker) {
        let mut waiting = self.lock();
        waiting.broker = Some(broker.downgrade());
        let snapshot = waiting.snapshot.take();
        drop(waiting);
        if let Some(snapshot) = snapshot {
            adopt(broker, snapshot);
        }
    }

    pub(super) fn bring(&self, snapshot: Snapshot) {
        let mut waiting = self.lock();
        let Some(broker) = &waiting.broker else {
            waiting.snapshot = Some(snapshot);
            return;
        };
        let broker = broker.upgrade();
        drop(waiting);
        if let Some(broker) = broker {
            adopt(&broker, snapshot);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes up what a store held that has taken over.
pub(crate) fn adopt(broker: &Broker, snapshot: Snapshot) {
    if snapshot == Snapshot::default() {
        return;
    }
    let (queues, subscriptions) = (snapshot.queues.len(), snapshot.subscriptions.len());
    broker.adopt(snapshot);
    tracing::info!(
        queues,
        subscriptions,
        "what the message store held from before is taken up"
    );
}

#[cfg(test)]
mod tests {
    use tyo_mq_core::memory_store::{MemoryLimits, MemoryStore};
    use tyo_mq_core::runtime::RuntimeConfig;
    use tyo_mq_core::store::QueueKey;

    use super::*;

    fn snapshot() -> Snapshot {
        let queue = QueueKey {
            realm: "default".into(),
            key: "p-k".into(),
            consumer: "c".into(),
        };
        Snapshot {
            queues: vec![(queue, 3)],
            ..Snapshot::default()
        }
    }

    #[tokio::test]
    async fn what_comes_early_waits_for_the_broker() {
        for early in [true, false] {
            let store = Arc::new(MemoryStore::new(MemoryLimits::default()));
            let started = Broker::start(RuntimeConfig::default(), store).await;
            let broker = started.expect("memory is always there");
            let handover = Handover::default();
            if early {
                handover.bring(snapshot());
                assert_eq!(broker.usage().stored, 0);
            }
            handover.attach(&broker);
            if !early {
                handover.bring(snapshot());
            }
            assert_eq!(broker.usage().stored, 3, "early: {early}");
        }
    }

    #[tokio::test]
    async fn a_broker_that_is_gone_is_not_told() {
        let store = Arc::new(MemoryStore::new(MemoryLimits::default()));
        let started = Broker::start(RuntimeConfig::default(), store).await;
        let broker = started.expect("memory is always there");
        let handover = Handover::default();
        handover.attach(&broker);
        broker.shutdown().await;
        let weak = broker.downgrade();
        drop(broker);
        handover.bring(snapshot());
        assert!(weak.upgrade().is_none());
    }
}
