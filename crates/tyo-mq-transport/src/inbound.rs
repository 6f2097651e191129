//! Bytes of a WebSocket into its messages, through one read buffer a thread. A connection keeps only what is
//! incomplete of its own.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::task::{Context, Poll, ready};

use tyo_mq_codec::websocket::{Decoded, Decoder, Event, FrameError, Role};

use crate::io::Io;

/// Size of a thread's read buffer.
const READ_BUFFER: usize = 64 * 1024;
/// An incomplete frame up to this is completed in the thread's buffer, a larger one where it is kept.
const COPY_BACK_MAX: usize = 16 * 1024;
/// A kept buffer grows by at most this a read, whatever length the peer claims.
const GROW_MAX: usize = 256 * 1024;

thread_local! {
    static READ: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// How one read ended.
#[derive(Debug)]
pub(crate) enum Batch {
    /// Its frames were handed over.
    Done,
    /// The handler wants no more.
    Stopped,
    /// The peer sends no more, or the socket broke.
    Ended,
    /// The peer broke the protocol.
    Failed(FrameError),
}

/// Called with each message and control frame.
pub(crate) type Handler<'h> = dyn FnMut(Event<'_>) -> ControlFlow<()> + 'h;

/// The reading side of one WebSocket.
pub(crate) struct Inbound {
    decoder: Decoder,
    /// Bytes of an incomplete frame.
    pending: Vec<u8>,
    /// How many bytes that frame has in all, as far as is known.
    needed: usize,
    /// `pending` came with the upgrade and was not looked at.
    fresh: bool,
}

impl Inbound {
    /// `early`: bytes that were read together with the handshake.
    pub(crate) fn new(max_message: usize, early: &[u8]) -> Self {
        let decoder = Decoder::new(Role::Server, max_message);
        Self {
            decoder,
            pending: early.to_vec(),
            needed: 0,
            fresh: !early.is_empty(),
        }
    }

    /// Reads once and hands over every complete frame.
    pub(crate) fn poll_batch(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut Io,
        handler: &mut Handler<'_>,
    ) -> Poll<Batch> {
        if std::mem::take(&mut self.fresh) {
            return Poll::Ready(self.decode_pending(handler));
        }
        if self.pending.len() > COPY_BACK_MAX {
            return self.poll_large(cx, io, handler);
        }
        let mut buf = take_buffer();
        let kept = self.pending.len();
        buf[..kept].copy_from_slice(&self.pending);
        let batch = match io.poll_read(cx, &mut buf[kept..]) {
            Poll::Pending => None,
            Poll::Ready(Ok(0) | Err(_)) => Some(Batch::Ended),
            Poll::Ready(Ok(count)) => {
                let (used, batch) = self.decode(&mut buf[..kept + count], handler);
                self.keep(&buf[used..kept + count]);
                Some(batch)
            }
        };
        READ.set(buf);
        batch.map_or(Poll::Pending, Poll::Ready)
    }

    /// Gives memory back while no frame is under way.
    pub(crate) fn shrink(&mut self) {
        if self.pending.is_empty() {
            self.pending = Vec::new();
        }
    }

    /// A read into the kept buffer itself: a large frame is on its way.
    fn poll_large(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut Io,
        handler: &mut Handler<'_>,
    ) -> Poll<Batch> {
        let len = self.pending.len();
        let missing = self.needed.saturating_sub(len);
        let room = missing.clamp(READ_BUFFER, GROW_MAX);
        self.pending.resize(len + room, 0);
        let read = io.poll_read(cx, &mut self.pending[len..]);
        let count = if let Poll::Ready(Ok(count)) = read {
            count
        } else {
            0
        };
        self.pending.truncate(len + count);
        Poll::Ready(match ready!(read) {
            Ok(0) | Err(_) => Batch::Ended,
            Ok(_) if self.pending.len() < self.needed => Batch::Done,
            Ok(_) => self.decode_pending(handler),
        })
    }

    fn decode_pending(&mut self, handler: &mut Handler<'_>) -> Batch {
        let mut buf = std::mem::take(&mut self.pending);
        let (used, batch) = self.decode(&mut buf, handler);
        self.keep(&buf[used..]);
        batch
    }

    /// Hands over the complete frames of `buf` and returns how many bytes they were.
    fn decode(&mut self, buf: &mut [u8], handler: &mut Handler<'_>) -> (usize, Batch) {
        let mut at = 0;
        self.needed = 0;
        while at < buf.len() {
            match self.decoder.decode(&mut buf[at..]) {
                Ok(Decoded::Frame { consumed, event }) => {
                    at += consumed;
                    if event.is_some_and(|event| handler(event).is_break()) {
                        return (buf.len(), Batch::Stopped);
                    }
                }
                Ok(Decoded::Incomplete { needed }) => {
                    self.needed = needed;
                    break;
                }
                Err(error) => return (buf.len(), Batch::Failed(error)),
            }
        }
        (at, Batch::Done)
    }

    fn keep(&mut self, rest: &[u8]) {
        self.pending.clear();
        self.pending.extend_from_slice(rest);
    }
}

/// Reads and forgets until the peer's end.
pub(crate) fn poll_discard(cx: &mut Context<'_>, io: &mut Io) -> Poll<()> {
    let mut buf = take_buffer();
    let end = loop {
        match io.poll_read(cx, &mut buf) {
            Poll::Pending => break Poll::Pending,
            Poll::Ready(Ok(1..)) => {}
            Poll::Ready(_) => break Poll::Ready(()),
        }
    };
    READ.set(buf);
    end
}

fn take_buffer() -> Vec<u8> {
    let mut buf = READ.take();
    if buf.len() != READ_BUFFER {
        buf = vec![0; READ_BUFFER];
    }
    buf
}
