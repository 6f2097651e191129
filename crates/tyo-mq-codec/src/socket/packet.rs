//! The frame of one packet: type, attachment count, namespace, ack id, data. It does not look into the data.

use super::{MAX_ATTACHMENTS, MAX_NAMESPACE_BYTES, ROOT};

/// What a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketKind {
    /// `0`: join a namespace, or the answer to it.
    Connect,
    /// `1`: leave a namespace.
    Disconnect,
    /// `2`: an event.
    Event,
    /// `3`: the answer to an event that asked for one.
    Ack,
    /// `4`: a namespace was refused (server to client only).
    ConnectError,
    /// `5`: an event with attachments.
    BinaryEvent,
    /// `6`: an answer with attachments.
    BinaryAck,
}

/// One packet as framed; `data` is the text behind the header, unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The packet's type.
    pub kind: PacketKind,
    /// The namespace, with the query that revision 4 clients may put behind it.
    pub namespace: &'a str,
    /// The ack id, if there is one.
    pub id: Option<u64>,
    /// How many binary messages follow.
    pub attachments: u32,
    /// The JSON text, possibly empty, not yet checked.
    pub data: &'a str,
}

/// Why a packet is none. Each is the peer's fault and ends its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// Nothing at all.
    #[error("packet is empty")]
    Empty,
    /// The first character is not `0` to `6`.
    #[error("packet type is unknown")]
    UnknownType,
    /// A type that only servers send.
    #[error("packet type may not be sent by a client")]
    NotAllowed,
    /// Count or dash of a binary packet is missing.
    #[error("attachment count is missing or malformed")]
    AttachmentCount,
    /// More attachments than [`MAX_ATTACHMENTS`].
    #[error("more than {MAX_ATTACHMENTS} attachments announced")]
    TooManyAttachments,
    /// The ack id is no unsigned 64-bit integer.
    #[error("ack id does not fit 64 bits")]
    AckId,
    /// The namespace is longer than [`MAX_NAMESPACE_BYTES`].
    #[error("namespace is longer than {MAX_NAMESPACE_BYTES} bytes")]
    NamespaceTooLong,
    /// The data is not JSON.
    #[error("data is not JSON")]
    Json,
    /// The data is JSON of another shape than the packet type has.
    #[error("data has the wrong shape for its packet type")]
    Shape,
    /// The event has one of the names that the protocol keeps for itself.
    #[error("event name is reserved")]
    ReservedName,
    /// A placeholder points to no attachment of its packet.
    #[error("placeholder is malformed or points to no attachment")]
    Placeholder,
    /// A binary message that no packet announced.
    #[error("binary message that no packet announced")]
    UnexpectedBinary,
    /// A text packet while attachments were due.
    #[error("text packet where an attachment was due")]
    AttachmentDue,
    /// Data and attachments together are over the limit.
    #[error("packet with its attachments is over {max} bytes")]
    TooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// A packet for a namespace that the connection has not joined.
    #[error("namespace was not joined")]
    NotJoined,
    /// A second CONNECT for a namespace.
    #[error("namespace was joined already")]
    AlreadyJoined,
    /// More namespaces than a connection may join.
    #[error("too many namespaces on one connection")]
    TooManyNamespaces,
}

/// Reads the frame of one packet (the text behind Engine.IO's `4`).
///
/// # Errors
/// When the frame is malformed. The data is not looked at.
pub fn decode(text: &str) -> Result<Packet<'_>, PacketError> {
    let first = *text.as_bytes().first().ok_or(PacketError::Empty)?;
    let kind = PacketKind::from_byte(first).ok_or(PacketError::UnknownType)?;
    let rest = &text[1..];
    let (attachments, rest) = match kind {
        PacketKind::BinaryEvent | PacketKind::BinaryAck => split_attachments(rest)?,
        _ => (0, rest),
    };
    let (namespace, rest) = split_namespace(rest)?;
    let (id, data) = split_id(rest)?;
    Ok(Packet {
        kind,
        namespace,
        id,
        attachments,
        data,
    })
}

impl PacketKind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            b'0' => Self::Connect,
            b'1' => Self::Disconnect,
            b'2' => Self::Event,
            b'3' => Self::Ack,
            b'4' => Self::ConnectError,
            b'5' => Self::BinaryEvent,
            b'6' => Self::BinaryAck,
            _ => return None,
        })
    }

    /// Whether the packet announces attachments.
    #[must_use]
    pub fn is_binary(self) -> bool {
        matches!(self, Self::BinaryEvent | Self::BinaryAck)
    }
}

fn split_attachments(text: &str) -> Result<(u32, &str), PacketError> {
    let (count, rest) = split_number(text).map_err(|Overflow| PacketError::TooManyAttachments)?;
    let count = count.ok_or(PacketError::AttachmentCount)?;
    let rest = rest.strip_prefix('-').ok_or(PacketError::AttachmentCount)?;
    match u32::try_from(count) {
        Ok(count) if count <= MAX_ATTACHMENTS => Ok((count, rest)),
        _ => Err(PacketError::TooManyAttachments),
    }
}

fn split_namespace(text: &str) -> Result<(&str, &str), PacketError> {
    if !text.starts_with('/') {
        return Ok((ROOT, text));
    }
    let window = &text.as_bytes()[..text.len().min(MAX_NAMESPACE_BYTES + 1)];
    match memchr::memchr(b',', window) {
        Some(comma) => Ok((&text[..comma], &text[comma + 1..])),
        None if text.len() <= MAX_NAMESPACE_BYTES => Ok((text, "")),
        None => Err(PacketError::NamespaceTooLong),
    }
}

fn split_id(text: &str) -> Result<(Option<u64>, &str), PacketError> {
    split_number(text).map_err(|Overflow| PacketError::AckId)
}

struct Overflow;

/// Takes the decimal digits off the front; stops reading at the first digit that is too many.
fn split_number(text: &str) -> Result<(Option<u64>, &str), Overflow> {
    let mut value = 0u64;
    let mut digits = 0;
    for byte in text.bytes().take_while(u8::is_ascii_digit) {
        value = value
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u64::from(byte - b'0')))
            .filter(|_| digits < MAX_DIGITS)
            .ok_or(Overflow)?;
        digits += 1;
    }
    Ok(((digits > 0).then_some(value), &text[digits..]))
}

/// Digits of the largest 64-bit number; more are refused even when they are leading zeros.
const MAX_DIGITS: usize = 20;
