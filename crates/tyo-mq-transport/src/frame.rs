//! A message encoded once for all its receivers. Knows no connection.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tyo_mq_codec::websocket::{MAX_HEADER, Opcode, frame_header};

/// The packet type of a message.
const MESSAGE: u8 = b'4';
/// A scratch larger than this is given back to the allocator.
const KEEP_SCRATCH: usize = 64 * 1024;

/// A text message, shared: the whole unmasked WebSocket frame, and the binary messages that follow it.
/// Cloning it is two reference counts.
#[derive(Clone)]
pub struct Frame {
    wire: Bytes,
    /// Where the packet starts in `wire`, behind the WebSocket header.
    packet_at: u8,
    attachments: Option<Arc<[Bytes]>>,
}

impl Frame {
    /// A text message; `write` appends what follows the packet type, which must be UTF-8.
    pub fn text(write: impl FnOnce(&mut Vec<u8>)) -> Self {
        Self::text_with_capacity(0, write)
    }

    /// The same with room for `capacity` bytes from the start.
    pub fn text_with_capacity(capacity: usize, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut buf = Vec::with_capacity(MAX_HEADER + 1 + capacity);
        let start = encode(&mut buf, write);
        let wire = Bytes::from(buf).slice(start..);
        Self {
            wire,
            packet_at: (MAX_HEADER - start) as u8,
            attachments: None,
        }
    }

    /// A binary message on its own.
    pub fn binary(data: Bytes) -> Self {
        Self {
            wire: Bytes::new(),
            packet_at: 0,
            attachments: Some([data].into()),
        }
    }

    /// The same message followed by these binary messages.
    #[must_use]
    pub fn with_attachments(mut self, attachments: Vec<Bytes>) -> Self {
        self.attachments = if attachments.is_empty() {
            None
        } else {
            Some(attachments.into())
        };
        self
    }

    /// A packet of the engine's own.
    pub(crate) fn packet(packet: &[u8]) -> Self {
        let (header, size) = frame_header(Opcode::Text, packet.len());
        let wire = Bytes::from([&header[MAX_HEADER - size..], packet].concat());
        Self {
            wire,
            packet_at: size as u8,
            attachments: None,
        }
    }

    /// Bytes that are a frame already and have no packet.
    pub(crate) fn raw(wire: &[u8]) -> Self {
        Self {
            wire: Bytes::copy_from_slice(wire),
            packet_at: 0,
            attachments: None,
        }
    }

    /// What `write` wrote.
    pub fn payload(&self) -> &[u8] {
        self.packet_bytes().get(1..).unwrap_or_default()
    }

    /// The binary messages that follow.
    pub fn attachments(&self) -> &[Bytes] {
        self.attachments.as_deref().unwrap_or_default()
    }

    /// The packet with its type, as polling sends it.
    pub(crate) fn packet_bytes(&self) -> &[u8] {
        &self.wire[usize::from(self.packet_at)..]
    }

    pub(crate) fn wire(&self) -> &Bytes {
        &self.wire
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("bytes", &self.wire.len())
            .field("attachments", &self.attachments().len())
            .finish()
    }
}

/// A frame to be sent: a shared [`Frame`], or one that lies in a [`FrameScratch`].
#[derive(Clone, Copy)]
pub struct FrameRef<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Shared(&'a Frame),
    Scratch { wire: &'a [u8], packet_at: u8 },
}

impl FrameRef<'_> {
    /// Bytes of the text frame.
    pub(crate) fn wire(&self) -> &[u8] {
        match self.0 {
            Source::Shared(frame) => &frame.wire,
            Source::Scratch { wire, .. } => wire,
        }
    }

    pub(crate) fn attachments(&self) -> &[Bytes] {
        match self.0 {
            Source::Shared(frame) => frame.attachments(),
            Source::Scratch { .. } => &[],
        }
    }

    /// The frame to keep in a queue: shared where it is, copied where it is not.
    pub(crate) fn to_frame(self) -> Frame {
        match self.0 {
            Source::Shared(frame) => frame.clone(),
            Source::Scratch { wire, packet_at } => Frame {
                wire: Bytes::copy_from_slice(wire),
                packet_at,
                attachments: None,
            },
        }
    }
}

impl fmt::Debug for FrameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameRef")
            .field("bytes", &self.wire().len())
            .finish()
    }
}

impl<'a> From<&'a Frame> for FrameRef<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self(Source::Shared(frame))
    }
}

/// Room to encode messages for one receiver each without an allocation a message.
#[derive(Debug, Default)]
pub struct FrameScratch {
    buf: Vec<u8>,
    /// Where the frame starts in `buf`.
    start: usize,
}

impl FrameScratch {
    /// Encodes a text message in place of the last one; `write` appends what follows the packet type.
    pub fn text(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> FrameRef<'_> {
        self.buf.clear();
        if self.buf.capacity() > KEEP_SCRATCH {
            self.buf = Vec::new();
        }
        self.start = encode(&mut self.buf, write);
        self.last()
    }

    /// The message that was encoded last, for another receiver; empty before the first.
    pub fn last(&self) -> FrameRef<'_> {
        FrameRef(Source::Scratch {
            wire: &self.buf[self.start..],
            packet_at: (MAX_HEADER - self.start) as u8,
        })
    }
}

/// Writes header and packet so that the frame ends with the buffer, and returns where it starts.
fn encode(buf: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> usize {
    buf.extend_from_slice(&[0; MAX_HEADER]);
    buf.push(MESSAGE);
    write(buf);
    let (header, size) = frame_header(Opcode::Text, buf.len() - MAX_HEADER);
    let start = MAX_HEADER - size;
    buf[start..MAX_HEADER].copy_from_slice(&header[start..]);
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_and_packet() {
        let check = |payload: usize, header: &[u8]| {
            let text = vec![b'x'; payload];
            let frame = Frame::text(|buf| buf.extend_from_slice(&text));
            assert_eq!(frame.payload(), text);
            assert_eq!(frame.packet_bytes()[0], b'4');
            assert_eq!(&frame.wire()[..header.len()], header);
            assert_eq!(frame.wire().len(), header.len() + 1 + payload);
            let mut scratch = FrameScratch::default();
            assert_eq!(
                scratch.text(|buf| buf.extend_from_slice(&text)).wire(),
                &frame.wire()[..]
            );
        };
        check(0, &[0x81, 1]);
        check(124, &[0x81, 125]);
        check(125, &[0x81, 126, 0, 126]);
        check(65_534, &[0x81, 126, 0xff, 0xff]);
        check(65_535, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn own_packets() {
        let frame = Frame::packet(b"2");
        assert_eq!(
            (&frame.wire()[..], frame.packet_bytes()),
            (&b"\x81\x012"[..], &b"2"[..])
        );
    }
}
