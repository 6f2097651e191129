//! Cases of durable subscriptions.

use tyo_mq_core::engine::{RetryPolicy, SubscriptionSpec};
use tyo_mq_core::store::{DurableSubscription, Store, StoreOp};

use super::{CREATED_AT_MS, Subject, queue};

pub(super) fn subscription(
    realm: &str,
    key: &str,
    consumer: &str,
    name: &str,
) -> DurableSubscription {
    DurableSubscription {
        queue: (*queue(realm, key, consumer)).clone(),
        consumer_name: name.into(),
        spec: SubscriptionSpec {
            producer: "Shop".into(),
            event: "Order-Placed".into(),
            all_events: false,
            topic: true,
            durable: true,
            ack: true,
            ack_timeout_ms: Some(1234),
            retry: RetryPolicy {
                max_attempts: 5,
                delay_ms: 17,
                exponential: true,
            },
            group: Some("workers".into()),
            prefetch: Some(3),
        },
        offline_since_ms: Some(CREATED_AT_MS),
    }
}

impl<S: Store> Subject<S> {
    async fn subscriptions(&self) -> Vec<DurableSubscription> {
        let mut kept = self.0.load().await.expect("loads").subscriptions;
        kept.sort_by(|a, b| (&a.queue, &a.consumer_name).cmp(&(&b.queue, &b.consumer_name)));
        kept
    }
}

pub(super) async fn kept_replaced_and_forgotten<S: Store>(store: &Subject<S>) {
    let put = |it: &DurableSubscription| StoreOp::PutSubscription(Box::new(it.clone()));
    let mut first = subscription("r", "k", "c", "name");
    let (second, third) = (
        subscription("r", "k", "c", "Name"),
        subscription("s", "", "ü:\u{0}", ""),
    );
    store
        .all(vec![put(&third), put(&first), put(&second)])
        .await;
    assert_eq!(
        store.subscriptions().await,
        [second.clone(), first.clone(), third.clone()]
    );
    first.spec.group = None;
    first.spec.prefetch = None;
    first.spec.ack_timeout_ms = None;
    first.offline_since_ms = None;
    store.one(put(&first)).await;
    assert_eq!(
        store.subscriptions().await,
        [second.clone(), first.clone(), third.clone()]
    );
    let forget = |it: &DurableSubscription| StoreOp::RemoveSubscription {
        queue: it.queue.clone(),
        consumer_name: it.consumer_name.clone(),
    };
    store
        .all(vec![forget(&second), forget(&second), forget(&third)])
        .await;
    assert_eq!(store.subscriptions().await, [first]);
}
