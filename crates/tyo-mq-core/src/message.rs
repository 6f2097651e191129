//! What travels: messages, their ids, receipts and the ids of sessions. Knows nothing of who gets what.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// A published message. The body is opaque to the broker: the gateway puts the encoded envelope there, an
/// embedder whatever it likes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Event name as produced, case kept.
    pub event: Arc<str>,
    /// Name of the producer as given.
    pub producer: Arc<str>,
    /// Encoded content, shared by every receiver.
    pub body: Bytes,
    /// Binary attachments that the body refers to by number.
    pub attachments: Box<[Bytes]>,
}

impl Message {
    /// Bytes of body and attachments together.
    pub fn size(&self) -> usize {
        self.attachments
            .iter()
            .fold(self.body.len(), |sum, part| sum + part.len())
    }
}

/// Identity of one stored or acknowledged copy of a message; opaque text on the wire.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub Arc<str>);

impl MessageId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for MessageId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl std::borrow::Borrow<str> for MessageId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an acknowledged delivery carries besides the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The id that the consumer acknowledges.
    pub id: MessageId,
    /// 1 for the first delivery, counted on over reconnects and restarts.
    pub attempt: u32,
}

/// A session of one shard: a slot and a generation, so that a late event for a gone session meets nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(u64);

impl SessionId {
    /// Joins a slot and its generation.
    pub const fn new(slot: u32, generation: u32) -> Self {
        Self((generation as u64) << 32 | slot as u64)
    }

    /// The slot in the shard's table of sessions.
    pub const fn slot(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }

    /// How often the slot had been used before.
    pub const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}
