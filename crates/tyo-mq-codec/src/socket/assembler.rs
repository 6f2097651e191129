//! A binary packet that waits for its attachments: at most one a connection, nothing set aside from its header.

use bytes::Bytes;

use super::{Packet, PacketError, PacketKind, check_json, check_placeholders};

/// Collects the attachments of one packet at a time.
#[derive(Debug)]
pub struct Assembler {
    partial: Option<Assembled>,
    due: u32,
    bytes: usize,
    max_bytes: usize,
}

/// A binary packet with all its attachments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembled {
    /// [`PacketKind::BinaryEvent`] or [`PacketKind::BinaryAck`].
    pub kind: PacketKind,
    /// The namespace as sent.
    pub namespace: String,
    /// The ack id.
    pub id: Option<u64>,
    /// The JSON array, placeholders in place.
    pub args: String,
    /// What the placeholders stand for, by number.
    pub attachments: Vec<Bytes>,
}

impl Assembler {
    /// An assembler that takes packets of up to `max_bytes`, text and attachments together.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            partial: None,
            due: 0,
            bytes: 0,
            max_bytes,
        }
    }

    /// Whether attachments are due, so that the next message must be a binary one.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.partial.is_some()
    }

    /// Takes a binary packet's header and JSON; the packet itself when no attachments are due.
    ///
    /// # Errors
    /// When the JSON or a placeholder is malformed, or the limit is hit.
    pub fn begin(&mut self, packet: &Packet<'_>) -> Result<Option<Assembled>, PacketError> {
        if self.is_waiting() {
            return Err(PacketError::AttachmentDue);
        }
        check_json(packet.data)?;
        check_placeholders(packet.data, packet.attachments)?;
        self.check_size(packet.data.len())?;
        let assembled = Assembled {
            kind: packet.kind,
            namespace: packet.namespace.to_owned(),
            id: packet.id,
            args: packet.data.to_owned(),
            attachments: Vec::new(),
        };
        if packet.attachments == 0 {
            return Ok(Some(assembled));
        }
        self.due = packet.attachments;
        self.bytes = packet.data.len();
        self.partial = Some(assembled);
        Ok(None)
    }

    /// Takes one attachment; the packet when it was the last.
    ///
    /// # Errors
    /// When no attachment is due or the limit is hit.
    pub fn attach(&mut self, attachment: &[u8]) -> Result<Option<Assembled>, PacketError> {
        let bytes = self.bytes.saturating_add(attachment.len());
        self.check_size(bytes)?;
        let partial = self.partial.as_mut().ok_or(PacketError::UnexpectedBinary)?;
        partial.attachments.push(Bytes::copy_from_slice(attachment));
        self.bytes = bytes;
        self.due -= 1;
        if self.due > 0 {
            return Ok(None);
        }
        self.bytes = 0;
        Ok(self.partial.take())
    }

    fn check_size(&self, bytes: usize) -> Result<(), PacketError> {
        if bytes > self.max_bytes {
            return Err(PacketError::TooLarge {
                max: self.max_bytes,
            });
        }
        Ok(())
    }
}
