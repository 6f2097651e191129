//! Sending messages: what a PRODUCE may say, and how a large one is cut.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tyo_mq_protocol::{MAX_CHUNKS, cut_chunks, events, needs_chunks, write_json_string};

use crate::task::{Keep, Outgoing};
use crate::{CallError, Client, RequestError};

/// A message to send.
#[derive(Debug, Clone, Serialize)]
pub struct Produce {
    event: String,
    message: Box<RawValue>,
    from: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    guaranteed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broadcast: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recipients: Vec<String>,
    #[serde(skip)]
    attachments: Vec<Bytes>,
}

/// What the broker did with a message.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Receipt {
    /// The message's id.
    pub msg_id: String,
    /// The subscriptions that it is for.
    #[serde(default)]
    pub routed: u64,
    /// The copies that were stored.
    #[serde(default)]
    pub queued: u64,
}

impl Produce {
    /// A message of a producer.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn new<T>(from: &str, event: &str, message: &T) -> Result<Self, CallError>
    where
        T: Serialize + ?Sized,
    {
        Ok(Self {
            event: event.to_owned(),
            message: serde_json::value::to_raw_value(message)?,
            from: from.to_owned(),
            ttl: None,
            guaranteed: false,
            method: None,
            broadcast: None,
            group: None,
            recipients: Vec::new(),
            attachments: Vec::new(),
        })
    }

    /// How long it may wait for a consumer.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(format!("{}ms", ttl.as_millis()));
        self
    }

    /// It is kept for consumers that are away, also for those that did not ask for it.
    #[must_use]
    pub fn guaranteed(mut self) -> Self {
        self.guaranteed = true;
        self
    }

    /// It goes to everybody in the realm.
    #[must_use]
    pub fn to_realm(mut self) -> Self {
        (self.method, self.broadcast) = (Some("broadcast"), Some("realm"));
        self
    }

    /// It goes to every member of a group.
    #[must_use]
    pub fn to_group(mut self, group: &str) -> Self {
        (self.method, self.broadcast) = (Some("broadcast"), Some("group"));
        self.group = Some(group.to_owned());
        self
    }

    /// Of those who listen, only these consumers receive it.
    #[must_use]
    pub fn recipients<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.recipients = names.into_iter().map(Into::into).collect();
        self
    }

    /// What the message's placeholders, `{"_placeholder":true,"num":0}` and so on, stand for.
    #[must_use]
    pub fn attachments(mut self, attachments: Vec<Bytes>) -> Self {
        self.attachments = attachments;
        self
    }

    /// One packet, or as many pieces as it takes. Attachments do not travel in pieces.
    pub(crate) fn outgoing(&self) -> Result<Outgoing, CallError> {
        let whole = serde_json::to_string(self)?;
        if !self.attachments.is_empty() || !needs_chunks(&whole) {
            return Ok(Outgoing {
                event: Cow::Borrowed(events::PRODUCE),
                payloads: vec![whole],
                attachments: self.attachments.clone(),
                answer: None,
                keep: Keep::No,
            });
        }
        Ok(Outgoing {
            event: Cow::Borrowed(events::PRODUCE_CHUNK),
            payloads: pieces(&whole)?,
            attachments: Vec::new(),
            answer: None,
            keep: Keep::No,
        })
    }
}

/// A name under which a connection produces.
#[derive(Debug, Clone)]
pub struct Producer {
    client: Client,
    name: String,
}

impl Producer {
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

    /// A message of this producer.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn message<T>(&self, event: &str, message: &T) -> Result<Produce, CallError>
    where
        T: Serialize + ?Sized,
    {
        Produce::new(&self.name, event, message)
    }

    /// Sends a message; see [`Client::produce`].
    ///
    /// # Errors
    /// When the message is too large or the client is closed.
    pub async fn produce<T>(&self, event: &str, message: &T) -> Result<(), CallError>
    where
        T: Serialize + ?Sized,
    {
        self.client.produce(&self.message(event, message)?).await
    }

    /// Sends a message and waits until the broker has it; see [`Client::produce_confirmed`].
    ///
    /// # Errors
    /// When the broker refuses it, or does not answer.
    pub async fn produce_confirmed<T>(
        &self,
        event: &str,
        message: &T,
    ) -> Result<Receipt, RequestError>
    where
        T: Serialize + ?Sized,
    {
        let message = self.message(event, message)?;
        self.client.produce_confirmed(&message).await
    }
}

/// The payloads of the PRODUCE_CHUNK events that carry a text.
fn pieces(whole: &str) -> Result<Vec<String>, CallError> {
    let pieces = cut_chunks(whole);
    if pieces.len() > MAX_CHUNKS as usize {
        return Err(CallError::TooLarge {
            max: MAX_CHUNKS as usize,
        });
    }
    let total = pieces.len();
    let transfer = transfer_id();
    let write = |(index, data): (usize, &&str)| {
        let head = format!(
            "{{\"transferId\":\"{transfer}\",\"index\":{index},\"total\":{total},\"data\":"
        );
        let mut payload = head.into_bytes();
        write_json_string(&mut payload, data);
        payload.push(b'}');
        String::from_utf8(payload).expect("written from text")
    };
    Ok(pieces.iter().enumerate().map(write).collect())
}

/// A name that no other transfer of this process has.
fn transfer_id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("t-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &Produce, expected: &str) {
        let outgoing = message.outgoing().unwrap();
        assert_eq!(outgoing.event, events::PRODUCE);
        assert_eq!(outgoing.payloads, [expected]);
    }

    #[test]
    fn payloads() {
        let message = Produce::new("p", "e", &7).unwrap();
        check(&message, r#"{"event":"e","message":7,"from":"p"}"#);
        let message = message.ttl(Duration::from_secs(2)).guaranteed();
        check(
            &message,
            r#"{"event":"e","message":7,"from":"p","ttl":"2000ms","guaranteed":true}"#,
        );
        let message = Produce::new("p", "e", &7).unwrap();
        check(
            &message.clone().to_group("g"),
            r#"{"event":"e","message":7,"from":"p","method":"broadcast","broadcast":"group","group":"g"}"#,
        );
        check(
            &message.recipients(["a", "b"]),
            r#"{"event":"e","message":7,"from":"p","recipients":["a","b"]}"#,
        );
    }

    #[test]
    fn large_messages_travel_in_pieces() {
        let text = "é🚀".repeat(300_000);
        let message = Produce::new("p", "e", &text).unwrap();
        let outgoing = message.outgoing().unwrap();
        assert_eq!(outgoing.event, events::PRODUCE_CHUNK);
        let mut whole = String::new();
        for (index, payload) in outgoing.payloads.iter().enumerate() {
            let piece: serde_json::Value = serde_json::from_str(payload).unwrap();
            assert_eq!(piece["index"], index);
            assert_eq!(piece["total"], outgoing.payloads.len());
            whole.push_str(piece["data"].as_str().unwrap());
        }
        assert_eq!(whole, serde_json::to_string(&message).unwrap());
    }
}
