//! One connection's outbound queue: bounded, ordered, and written in few large pieces. Does no I/O.
//!
//! Order on the wire is `buf`, then `pieces`, then `backlog`. Small frames are copied into `buf` while nothing waits
//! behind it; large ones stay shared and are written from where they are.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use tyo_mq_codec::engine::{PayloadEncoder, Protocol};
use tyo_mq_codec::websocket::{MAX_HEADER, Opcode, frame_header};

use crate::frame::{Frame, FrameRef};

/// Frames and attachments from this size on are shared and not copied.
const LARGE: usize = 16 * 1024;
/// `buf` takes no more frames beyond this.
const BUF_SOFT_MAX: usize = 64 * 1024;
/// A polling answer takes no more messages beyond this; the rest waits for the next poll.
const POLL_BODY_SOFT_MAX: usize = 1024 * 1024;
/// Packets of a poll's body, but for a message with more attachments: clients in Python take no more unless told to.
const POLL_PACKETS_MAX: usize = 16;
/// What a waiting frame costs besides its bytes.
const ENTRY_OVERHEAD: usize = 64;
/// Gone entries are swept out when there are more than this, and more than half.
const SWEEP_AT: usize = 64;

/// The bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutboundLimits {
    pub(crate) max_bytes: usize,
    pub(crate) high_water: usize,
    /// Whether the oldest droppable frames make room; otherwise a full queue is an overflow.
    pub(crate) drop_oldest: bool,
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Push {
    Queued,
    AboveHighWater,
    /// This frame itself was dropped.
    Dropped,
    Overflow,
}

#[derive(Debug)]
struct Entry {
    /// `None`: dropped while waiting.
    frame: Option<Frame>,
    droppable: bool,
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Outbound {
    limits: OutboundLimits,
    protocol: Protocol,
    /// Whether a WebSocket carries the session; otherwise frames wait for polls.
    streaming: bool,
    buf: Vec<u8>,
    /// How much of `buf` is written.
    at: usize,
    pieces: VecDeque<Bytes>,
    backlog: VecDeque<Entry>,
    /// Entries of `backlog` that are gone.
    gone: usize,
    /// Leading entries of `backlog` that cannot be dropped.
    kept_front: usize,
    bytes: usize,
    above: bool,
    dropped: u64,
}

impl Outbound {
    pub(crate) fn new(limits: OutboundLimits, protocol: Protocol, streaming: bool) -> Self {
        Self {
            limits,
            protocol,
            streaming,
            buf: Vec::new(),
            at: 0,
            pieces: VecDeque::new(),
            backlog: VecDeque::new(),
            gone: 0,
            kept_front: 0,
            bytes: 0,
            above: false,
            dropped: 0,
        }
    }

    /// A WebSocket carries the session from here on; what waits goes out through it, in order.
    pub(crate) fn start_streaming(&mut self) {
        self.streaming = true;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Frames that were dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn is_above_high_water(&self) -> bool {
        self.above
    }

    /// Appends a frame.
    pub(crate) fn push(&mut self, frame: FrameRef<'_>, droppable: bool) -> Push {
        let size = self.size_of(frame.wire(), frame.attachments());
        let cost = size + ENTRY_OVERHEAD;
        if self.bytes > 0 && self.bytes + cost > self.limits.max_bytes {
            if !self.limits.drop_oldest {
                return Push::Overflow;
            }
            self.make_room(cost);
            if self.bytes > 0 && self.bytes + cost > self.limits.max_bytes {
                return if droppable {
                    self.drop_new()
                } else {
                    Push::Overflow
                };
            }
        }
        self.append(frame, size, droppable);
        if self.bytes > self.limits.high_water {
            self.above = true;
            return Push::AboveHighWater;
        }
        Push::Queued
    }

    /// With this frame, more would wait than half of the limit.
    pub(crate) fn is_half_full(&self, frame: FrameRef<'_>) -> bool {
        let size = self.size_of(frame.wire(), frame.attachments());
        self.bytes > 0 && self.bytes + size + ENTRY_OVERHEAD > self.limits.max_bytes / 2
    }

    /// Appends a packet of the engine's own: few and small, so no bound stops them.
    pub(crate) fn push_packet(&mut self, frame: &Frame) {
        let size = frame.wire().len();
        self.append(FrameRef::from(frame), size, false);
    }

    /// Appends a whole frame of the WebSocket itself, such as a pong; it is never dropped and never polled.
    pub(crate) fn push_raw(&mut self, bytes: &[u8]) {
        if self.can_copy(bytes.len()) {
            self.buf.extend_from_slice(bytes);
            self.bytes += bytes.len();
        } else {
            self.backlog.push_back(Entry {
                frame: Some(Frame::raw(bytes)),
                droppable: false,
            });
            self.bytes += bytes.len() + ENTRY_OVERHEAD;
        }
    }

    /// What to write next; empty when there is nothing.
    pub(crate) fn writable(&mut self) -> &[u8] {
        if self.at == self.buf.len() {
            self.buf.clear();
            self.at = 0;
            if self.pieces.is_empty() && !self.backlog.is_empty() {
                self.refill();
            }
        }
        if self.at < self.buf.len() {
            return &self.buf[self.at..];
        }
        self.pieces
            .front()
            .map(|piece| &piece[..])
            .unwrap_or_default()
    }

    /// `count` bytes of [`Self::writable`] are written.
    pub(crate) fn advance(&mut self, count: usize) {
        self.bytes -= count;
        if self.at < self.buf.len() {
            self.at += count;
        } else if let Some(piece) = self.pieces.front_mut() {
            piece.advance(count);
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
    }

    /// True once when the queue has fallen below half the high-water mark after having been above it.
    pub(crate) fn take_drained(&mut self) -> bool {
        let drained = self.above && self.bytes <= self.limits.high_water / 2;
        if drained {
            self.above = false;
        }
        drained
    }

    /// The body of a poll: what waits, up to two soft bounds. `raw_bytes`: the client reads revision 3's binary form.
    pub(crate) fn take_payload(&mut self, raw_bytes: bool) -> PayloadEncoder {
        let (mut count, mut packets, mut size, mut binary) = (0, 0, 0, false);
        for frame in self.backlog.iter().filter_map(|entry| entry.frame.as_ref()) {
            packets += 1 + frame.attachments().len();
            let too_many = packets > POLL_PACKETS_MAX && size > 0;
            if too_many || size >= POLL_BODY_SOFT_MAX {
                break;
            }
            size += self.size_of(frame.wire(), frame.attachments());
            binary |= !frame.attachments().is_empty();
            count += 1;
        }
        let mut encoder = PayloadEncoder::new(self.protocol, raw_bytes && binary);
        for _ in 0..count {
            let Some(frame) = self.take_entry() else {
                break;
            };
            if !frame.wire().is_empty() {
                encoder.push_text(frame.packet_bytes());
            }
            for attachment in frame.attachments() {
                encoder.push_binary(attachment);
            }
        }
        encoder
    }

    /// Forgets what has not begun to be written; a frame that has is finished.
    pub(crate) fn discard_waiting(&mut self) {
        let in_flight =
            self.buf.len() - self.at + self.pieces.iter().map(Bytes::len).sum::<usize>();
        self.backlog = VecDeque::new();
        (self.gone, self.kept_front) = (0, 0);
        self.bytes = in_flight;
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.pieces = VecDeque::new();
        self.buf = Vec::new();
        self.at = 0;
        self.discard_waiting();
    }

    /// Gives memory back while nothing is under way.
    pub(crate) fn shrink(&mut self) {
        if self.bytes == 0 {
            self.clear();
        }
    }

    fn can_copy(&self, size: usize) -> bool {
        size < LARGE
            && self.pieces.is_empty()
            && self.backlog.is_empty()
            && self.buf.len() - self.at < BUF_SOFT_MAX
    }

    fn append(&mut self, frame: FrameRef<'_>, size: usize, droppable: bool) {
        if self.streaming && self.can_copy(size) {
            self.append_small(frame.wire(), frame.attachments());
        } else {
            self.backlog.push_back(Entry {
                frame: Some(frame.to_frame()),
                droppable,
            });
            self.bytes += size + ENTRY_OVERHEAD;
        }
    }

    /// A new frame is not taken.
    pub(crate) fn drop_new(&mut self) -> Push {
        self.dropped += 1;
        Push::Dropped
    }

    /// Drops the oldest frames that may be dropped until `cost` fits, or none is left.
    fn make_room(&mut self, cost: usize) {
        let mut index = self.kept_front;
        while self.bytes + cost > self.limits.max_bytes && index < self.backlog.len() {
            let entry = &mut self.backlog[index];
            if entry.droppable
                && let Some(frame) = entry.frame.take()
            {
                self.bytes -= self.size_of(frame.wire(), frame.attachments()) + ENTRY_OVERHEAD;
                self.gone += 1;
                self.dropped += 1;
            }
            index += 1;
        }
        self.kept_front = index;
        if self.gone > SWEEP_AT && self.gone > self.backlog.len() / 2 {
            self.backlog.retain(|entry| entry.frame.is_some());
            self.kept_front = self.kept_front.saturating_sub(self.gone);
            self.gone = 0;
        }
    }

    fn take_entry(&mut self) -> Option<Frame> {
        while let Some(entry) = self.backlog.pop_front() {
            self.kept_front = self.kept_front.saturating_sub(1);
            match entry.frame {
                Some(frame) => {
                    self.bytes -= self.size_of(frame.wire(), frame.attachments()) + ENTRY_OVERHEAD;
                    return Some(frame);
                }
                None => self.gone -= 1,
            }
        }
        None
    }

    /// Moves waiting frames to where they are written from.
    fn refill(&mut self) {
        while self.buf.len() < BUF_SOFT_MAX {
            let Some(frame) = self.take_entry() else {
                break;
            };
            if self.size_of(frame.wire(), frame.attachments()) >= LARGE {
                self.expand(&frame);
                break;
            }
            self.append_small(frame.wire(), frame.attachments());
        }
        if self.backlog.is_empty() {
            self.backlog = VecDeque::new();
        }
    }

    fn append_small(&mut self, wire: &[u8], attachments: &[Bytes]) {
        let before = self.buf.len();
        self.buf.extend_from_slice(wire);
        for attachment in attachments {
            let (header, start) = attachment_header(self.protocol, attachment.len());
            self.buf.extend_from_slice(&header[start..]);
            self.buf.extend_from_slice(attachment);
        }
        self.bytes += self.buf.len() - before;
    }

    /// Lays a frame out as pieces, sharing its bytes.
    fn expand(&mut self, frame: &Frame) {
        self.bytes += self.size_of(frame.wire(), frame.attachments());
        if !frame.wire().is_empty() {
            self.pieces.push_back(frame.wire().clone());
        }
        for attachment in frame.attachments() {
            let (header, start) = attachment_header(self.protocol, attachment.len());
            self.pieces
                .push_back(Bytes::copy_from_slice(&header[start..]));
            if !attachment.is_empty() {
                self.pieces.push_back(attachment.clone());
            }
        }
    }

    /// Bytes on a WebSocket.
    fn size_of(&self, wire: &[u8], attachments: &[Bytes]) -> usize {
        let framed = |attachment: &Bytes| {
            let (header, start) = attachment_header(self.protocol, attachment.len());
            header.len() - start + attachment.len()
        };
        wire.len() + attachments.iter().map(framed).sum::<usize>()
    }
}

/// The header of a binary message, with revision 3's type byte behind it: the bytes from the index on.
fn attachment_header(protocol: Protocol, payload: usize) -> ([u8; MAX_HEADER + 1], usize) {
    let mut out = [0; MAX_HEADER + 1];
    match protocol {
        Protocol::V4 => {
            let (header, size) = frame_header(Opcode::Binary, payload);
            out[1..].copy_from_slice(&header);
            (out, 1 + MAX_HEADER - size)
        }
        Protocol::V3 => {
            let (header, size) = frame_header(Opcode::Binary, payload + 1);
            out[..MAX_HEADER].copy_from_slice(&header);
            out[MAX_HEADER] = 4;
            (out, MAX_HEADER - size)
        }
    }
}

#[cfg(test)]
mod tests;
