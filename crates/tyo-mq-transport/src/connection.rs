//! One connection as the application sees it: a queue, a state, and the socket that takes what fits.

mod requests;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use futures_util::task::AtomicWaker;
use tokio::net::TcpStream;
use tyo_mq_codec::engine::{Carrier, CloseReason, Packet, Protocol, Reaction, Session, TimerEvent};
use tyo_mq_codec::websocket::{Opcode, write_close, write_frame};

use crate::config::{EngineConfig, SlowConsumer};
use crate::frame::{Frame, FrameRef};
use crate::outbound::{Outbound, OutboundLimits, Push};

/// Whether a message may be dropped when its receiver is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendKind {
    /// It may, where the engine is set to drop.
    Droppable,
    /// It may not: rather is the connection closed.
    Keep,
    /// It is dropped when half of what may wait does so: not worth a connection, nor the room of what is.
    Notice,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// It is queued.
    Queued,
    /// It is queued, and the queue is above its high-water mark: `on_drained` will tell when it is not any more.
    AboveHighWater,
    /// The queue is full; this message was dropped.
    Dropped,
    /// The queue is full; the connection is being closed.
    Overflow,
    /// The connection is closed or closing.
    Closed,
}

/// One client's connection. All methods are cheap and none ever waits for the network.
pub struct Connection {
    id: Box<str>,
    protocol: Protocol,
    /// The client asked for base64, or speaks revision 4.
    raw_bytes: bool,
    /// Mirrors the session's state, to be read without the lock.
    closed: AtomicBool,
    state: Mutex<State>,
    /// The task of the WebSocket.
    owner: AtomicWaker,
    /// The task that watches over a polling session.
    keeper: AtomicWaker,
}

struct State {
    session: Session,
    out: Outbound,
    link: Link,
    /// The poll that waits.
    poll: Option<Waker>,
    /// The socket takes no more; the owner waits until it does.
    blocked: bool,
    /// The owner has to tell the application.
    drained: bool,
    /// A closed session's client has not read the end yet.
    goodbye: bool,
}

/// Where bytes go.
pub(crate) enum Link {
    /// Into the next poll.
    Polling,
    /// Straight to the socket, from any thread.
    Tcp(Arc<TcpStream>),
    /// Through the owner's task, which alone can write.
    Owner,
    /// Nowhere.
    Gone,
}

/// What the owner has to know.
pub(crate) struct View {
    pub(crate) closed: Option<CloseReason>,
    pub(crate) carrier: Carrier,
    /// The application is to be told; reading it clears it.
    pub(crate) drained: bool,
    /// The socket has to be waited for, or only the owner can write what is queued.
    pub(crate) write_waits: bool,
    pub(crate) deadline: u64,
    pub(crate) goodbye: bool,
}

impl Connection {
    pub(crate) fn new(
        id: String,
        session: Session,
        raw_bytes: bool,
        link: Link,
        config: &EngineConfig,
    ) -> Self {
        let limits = OutboundLimits {
            max_bytes: config.outbound_max_bytes,
            high_water: config.outbound_high_water_bytes,
            drop_oldest: config.slow_consumer == SlowConsumer::Drop,
        };
        let protocol = session.protocol();
        let out = Outbound::new(limits, protocol, session.carrier() == Carrier::WebSocket);
        Self {
            id: id.into_boxed_str(),
            protocol,
            raw_bytes,
            closed: AtomicBool::new(false),
            state: Mutex::new(State {
                session,
                out,
                link,
                poll: None,
                blocked: false,
                drained: false,
                goodbye: false,
            }),
            owner: AtomicWaker::new(),
            keeper: AtomicWaker::new(),
        }
    }

    /// The Engine.IO session id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The revision that the client speaks.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Whether it is closed or closing.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Appends a message. Nothing is written before [`Self::flush`].
    pub fn send<'a>(&self, frame: impl Into<FrameRef<'a>>, kind: SendKind) -> SendOutcome {
        let mut state = self.lock();
        if state.session.closed().is_some() {
            return SendOutcome::Closed;
        }
        let frame = frame.into();
        if kind == SendKind::Notice && state.out.is_half_full(frame) {
            state.out.drop_new();
            return SendOutcome::Dropped;
        }
        match state.out.push(frame, kind != SendKind::Keep) {
            Push::Queued => SendOutcome::Queued,
            Push::AboveHighWater => SendOutcome::AboveHighWater,
            Push::Dropped => SendOutcome::Dropped,
            Push::Overflow => {
                self.close_locked(&mut state, CloseReason::SlowConsumer, None);
                SendOutcome::Overflow
            }
        }
    }

    /// Writes from this thread what the socket takes now; the connection's task writes the rest when it can.
    /// A waiting poll is answered.
    pub fn flush(&self) {
        let mut state = self.lock();
        self.flush_locked(&mut state);
    }

    /// Closes the connection. With [`CloseReason::ServerClosed`] and [`CloseReason::ServerShutdown`] what is queued
    /// still goes out, within the engine's `close_grace`.
    pub fn close(&self, reason: CloseReason) {
        self.close_with_code(reason, None);
    }

    /// Bytes in the outbound queue.
    pub fn queued_bytes(&self) -> usize {
        self.lock().out.bytes()
    }

    /// Messages that were dropped because the client is slow.
    pub fn dropped_messages(&self) -> u64 {
        self.lock().out.dropped()
    }

    pub(crate) fn close_with_code(&self, reason: CloseReason, code: Option<u16>) {
        let mut state = self.lock();
        self.close_locked(&mut state, reason, code);
    }

    /// The session's next deadline, and what the owner's task must react to. Registers the task.
    pub(crate) fn observe(&self, cx: &Context<'_>, keeper: bool) -> View {
        if keeper {
            self.keeper.register(cx.waker())
        } else {
            self.owner.register(cx.waker())
        }
        let mut state = self.lock();
        let owner_writes = matches!(state.link, Link::Owner) && !state.out.is_empty();
        View {
            closed: state.session.closed(),
            carrier: state.session.carrier(),
            drained: std::mem::take(&mut state.drained),
            write_waits: state.blocked || owner_writes,
            deadline: state.session.deadline(),
            goodbye: state.goodbye,
        }
    }

    /// The session's timer has run out: pings or closes as is due.
    pub(crate) fn on_timer(&self, now: u64) {
        let mut state = self.lock();
        state.out.shrink();
        match state.session.on_timer(now) {
            Some(TimerEvent::Ping) => {
                self.push_packet(&mut state, b"2");
                self.flush_locked(&mut state);
            }
            Some(TimerEvent::Close(reason)) => self.close_locked(&mut state, reason, None),
            None => {}
        }
    }

    /// A packet came on the carrier. True when it is a message for the application.
    pub(crate) fn on_packet<'a>(&self, packet: Packet<'a>, now: u64) -> Option<Packet<'a>> {
        let mut state = self.lock();
        match state.session.on_packet(packet, now) {
            Reaction::Message(packet) => return Some(packet),
            Reaction::Pong => {
                // A client that does not read its pongs needs no more of them.
                if !state.out.is_above_high_water() {
                    self.push_packet(&mut state, b"3");
                }
            }
            Reaction::Ignore => {}
            Reaction::Close(reason) => self.close_locked(&mut state, reason, None),
        }
        None
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.lock().session.deadline()
    }

    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.lock().session.closed()
    }

    pub(crate) fn touch(&self, now: u64) {
        self.lock().session.touch(now);
    }

    /// Queues a packet of the engine's own.
    pub(crate) fn send_packet(&self, packet: &[u8]) {
        let mut state = self.lock();
        self.push_packet(&mut state, packet);
    }

    /// A WebSocket ping came on the carrier.
    pub(crate) fn answer_socket_ping(&self, payload: &[u8]) {
        let mut state = self.lock();
        if state.session.closed().is_none() && !state.out.is_above_high_water() {
            let mut frame = Vec::with_capacity(payload.len() + 2);
            write_frame(&mut frame, Opcode::Pong, payload);
            state.out.push_raw(&frame);
        }
    }

    /// Writes through `write` what is queued, until that would wait. The owner's part; errors close the session.
    pub(crate) fn write_with(&self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) {
        let mut state = self.lock();
        self.write_locked(&mut state, &mut write);
    }

    /// The socket takes bytes again.
    pub(crate) fn unblock(&self) {
        let mut state = self.lock();
        state.blocked = false;
        self.flush_locked(&mut state);
    }

    pub(crate) fn has_output(&self) -> bool {
        !self.lock().out.is_empty()
    }

    /// Ends all I/O and gives the memory back.
    pub(crate) fn release(&self) {
        let mut state = self.lock();
        state.link = Link::Gone;
        state.goodbye = false;
        state.out.clear();
        state.poll = None;
    }

    fn close_locked(&self, state: &mut State, reason: CloseReason, code: Option<u16>) {
        if state.session.close(reason) {
            self.after_close(state, code);
        }
    }

    /// What the end of the session, whatever ended it, means for queue and tasks.
    fn after_close(&self, state: &mut State, code: Option<u16>) {
        self.closed.store(true, Ordering::Release);
        let reason = state
            .session
            .closed()
            .expect("called once the session is closed");
        match reason {
            CloseReason::SlowConsumer | CloseReason::TransportError => state.out.clear(),
            reason if !reason.drains() => state.out.discard_waiting(),
            _ => {}
        }
        match state.link {
            Link::Tcp(_) | Link::Owner => {
                if !matches!(
                    reason,
                    CloseReason::SlowConsumer | CloseReason::TransportError
                ) {
                    let code = code.or((reason == CloseReason::ServerShutdown).then_some(1001));
                    let mut frame = Vec::with_capacity(4);
                    write_close(&mut frame, code);
                    state.out.push_raw(&frame);
                }
            }
            Link::Polling => state.goodbye = reason.drains(),
            Link::Gone => {}
        }
        if let Some(poll) = state.poll.take() {
            poll.wake();
        }
        self.wake_tasks();
    }

    fn push_packet(&self, state: &mut State, packet: &[u8]) {
        if state.session.closed().is_none() {
            state.out.push_packet(&Frame::packet(packet));
        }
    }

    fn flush_locked(&self, state: &mut State) {
        match &state.link {
            Link::Tcp(stream) => {
                let stream = Arc::clone(stream);
                self.write_locked(state, &mut |bytes| stream.try_write(bytes));
            }
            Link::Polling => {
                if !state.out.is_empty()
                    && let Some(poll) = state.poll.take()
                {
                    poll.wake();
                }
            }
            Link::Owner => {
                if !state.out.is_empty() {
                    self.owner.wake();
                }
            }
            Link::Gone => {}
        }
    }

    fn write_locked(&self, state: &mut State, write: &mut dyn FnMut(&[u8]) -> io::Result<usize>) {
        loop {
            let chunk = state.out.writable();
            if chunk.is_empty() {
                break;
            }
            match write(chunk) {
                Ok(0) => return self.fail_locked(state),
                Ok(count) => state.out.advance(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Where only the owner writes, it waits for its own socket already.
                    if !state.blocked && matches!(state.link, Link::Tcp(_)) {
                        state.blocked = true;
                        self.owner.wake();
                    }
                    break;
                }
                Err(_) => return self.fail_locked(state),
            }
        }
        if state.out.take_drained() {
            state.drained = true;
            self.owner.wake();
        }
    }

    /// The socket broke.
    fn fail_locked(&self, state: &mut State) {
        self.close_locked(state, CloseReason::TransportError, None);
        state.out.clear();
        self.wake_tasks();
    }

    fn wake_tasks(&self) {
        self.owner.wake();
        self.keeper.wake();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here is left half done by a panic of the embedder's code.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.id)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}
