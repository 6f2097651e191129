//! Receiving messages: what a SUBSCRIBE may say, and the stream of deliveries that it makes.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc;
use tyo_mq_protocol::{ALL_EVENTS, ALL_PRODUCERS, events};

use crate::task::{Command, Keep, Outgoing};
use crate::{CallError, Client, Delivery, RequestError};

/// What to receive, and how.
#[derive(Debug, Clone, Serialize)]
pub struct Subscribe {
    event: String,
    producer: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    durable: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ack: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ack_timeout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Retry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefetch: Option<u32>,
}

/// How often the broker tries to have a message handled.
#[derive(Debug, Clone, Serialize)]
pub struct Retry {
    max_attempts: u32,
    delay: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff: Option<&'static str>,
}

impl Retry {
    /// So many attempts, with such a wait between them; then the message is a dead letter.
    #[must_use]
    pub fn new(max_attempts: u32, delay: Duration) -> Self {
        Self {
            max_attempts,
            delay: milliseconds(delay),
            backoff: None,
        }
    }

    /// Each wait is twice the one before it.
    #[must_use]
    pub fn exponential(mut self) -> Self {
        self.backoff = Some("exponential");
        self
    }
}

impl Subscribe {
    /// An event of a producer.
    #[must_use]
    pub fn new(producer: &str, event: &str) -> Self {
        Self {
            event: event.to_owned(),
            producer: producer.to_owned(),
            durable: false,
            ack: false,
            ack_timeout: None,
            retry: None,
            mode: None,
            scope: None,
            group: None,
            prefetch: None,
        }
    }

    /// An event of any producer.
    #[must_use]
    pub fn any_producer(event: &str) -> Self {
        Self::new(ALL_PRODUCERS, event)
    }

    /// All events of a producer.
    #[must_use]
    pub fn all_events(producer: &str) -> Self {
        Self {
            scope: Some("all"),
            ..Self::new(producer, ALL_EVENTS)
        }
    }

    /// All events, of any producer, that a pattern matches: `+` is one level, `#` at the end is any number of them.
    #[must_use]
    pub fn topic(pattern: &str) -> Self {
        Self {
            mode: Some("topic"),
            ..Self::any_producer(pattern)
        }
    }

    /// Messages wait while the consumer is away.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// A message counts as handled when it was acknowledged.
    #[must_use]
    pub fn ack(mut self) -> Self {
        self.ack = true;
        self
    }

    /// How long the broker waits for an acknowledgement.
    #[must_use]
    pub fn ack_timeout(mut self, timeout: Duration) -> Self {
        self.ack_timeout = Some(milliseconds(timeout));
        self
    }

    /// How often the broker tries.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Each message goes to one member of the group.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.group = Some(group.to_owned());
        self
    }

    /// The most messages that may wait for their acknowledgements; 0 is no bound.
    #[must_use]
    pub fn prefetch(mut self, prefetch: u32) -> Self {
        self.prefetch = Some(prefetch);
        self
    }

    /// The name that deliveries have.
    fn delivery_name(&self) -> String {
        let producer = self.producer.to_lowercase();
        if self.event.eq_ignore_ascii_case(ALL_EVENTS) {
            return format!("{}{producer}-{ALL_EVENTS}", events::CONSUME_PREFIX);
        }
        let event = self.event.to_lowercase();
        format!("{}{producer}-{event}", events::CONSUME_PREFIX)
    }
}

/// A name under which a connection consumes.
#[derive(Debug, Clone)]
pub struct Consumer {
    client: Client,
    name: String,
}

/// The payload of SUBSCRIBE.
#[derive(Serialize)]
struct Payload<'a> {
    #[serde(flatten)]
    what: &'a Subscribe,
    consumer: &'a str,
    consumer_id: &'a str,
}

impl Consumer {
    pub(crate) fn new(client: Client, name: &str) -> Self {
        Self {
            client,
            name: name.to_owned(),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Subscribes. A subscription of this client to the same producer and event ends when a second one is made.
    ///
    /// # Errors
    /// When the client is closed.
    pub async fn subscribe(&self, what: Subscribe) -> Result<Subscription, CallError> {
        let name = what.delivery_name();
        let (sender, deliveries) = mpsc::channel(self.client.options().subscription_queue.max(1));
        let listen = Command::Listen {
            name: name.clone(),
            deliveries: sender,
        };
        self.client.command(listen).await?;
        let payload = Payload {
            what: &what,
            consumer: &self.name,
            consumer_id: &self.name,
        };
        let subscribe = Outgoing {
            event: Cow::Borrowed(events::SUBSCRIBE),
            payloads: vec![serde_json::to_string(&payload)?],
            attachments: Vec::new(),
            answer: None,
            keep: Keep::Yes {
                event: events::SUBSCRIBE,
                listens_to: Some(name.clone()),
            },
        };
        self.client.send(subscribe).await?;
        Ok(Subscription {
            client: self.client.clone(),
            consumer: self.name.clone(),
            name,
            what,
            deliveries,
        })
    }
}

/// A stream of deliveries. While it is full, the connection is not read.
#[derive(Debug)]
pub struct Subscription {
    client: Client,
    consumer: String,
    name: String,
    what: Subscribe,
    deliveries: mpsc::Receiver<Delivery>,
}

impl Subscription {
    /// The next delivery; none once the client is closed.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.deliveries.recv().await
    }

    /// Says that a delivery was handled. One that wants no acknowledgement gets none.
    ///
    /// # Errors
    /// When the broker does not wait for it, or does not answer.
    pub async fn ack(&self, delivery: &Delivery) -> Result<(), RequestError> {
        match &delivery.msg_id {
            Some(msg_id) => self.client.ack(msg_id).await,
            None => Ok(()),
        }
    }

    /// Ends the subscription, also a durable one.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn unsubscribe(self) -> Result<(), RequestError> {
        let forget = Command::Forget { name: self.name };
        self.client.command(forget).await?;
        let payload = serde_json::json!({
            "event": self.what.event,
            "producer": self.what.producer,
            "consumer": self.consumer,
        });
        let patience = self.client.options().call_timeout;
        let reply = self
            .client
            .emit_with_ack(events::UNSUBSCRIBE, &payload, patience)
            .await?;
        reply.accepted::<serde::de::IgnoredAny>().map(drop)
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(what: &Subscribe, payload: &str, name: &str) {
        assert_eq!(serde_json::to_string(what).unwrap(), payload);
        assert_eq!(what.delivery_name(), name);
    }

    #[test]
    fn payloads_and_names() {
        check(
            &Subscribe::new("Shop", "Order-Placed"),
            r#"{"event":"Order-Placed","producer":"Shop"}"#,
            "CONSUME-shop-order-placed",
        );
        check(
            &Subscribe::any_producer("E"),
            r#"{"event":"E","producer":"TYO-MQ-ALL"}"#,
            "CONSUME-tyo-mq-all-e",
        );
        check(
            &Subscribe::all_events("Shop"),
            r#"{"event":"TM-ALL","producer":"Shop","scope":"all"}"#,
            "CONSUME-shop-TM-ALL",
        );
        check(
            &Subscribe::topic("org/+/Cmd").durable().ack().group("g"),
            r#"{"event":"org/+/Cmd","producer":"TYO-MQ-ALL","durable":true,"ack":true,"mode":"topic","group":"g"}"#,
            "CONSUME-tyo-mq-all-org/+/cmd",
        );
        let retry = Retry::new(3, Duration::from_secs(1)).exponential();
        check(
            &Subscribe::new("p", "e")
                .ack_timeout(Duration::from_millis(5))
                .retry(retry)
                .prefetch(2),
            r#"{"event":"e","producer":"p","ack_timeout":"5ms","retry":{"max_attempts":3,"delay":"1000ms","backoff":"exponential"},"prefetch":2}"#,
            "CONSUME-p-e",
        );
    }
}
