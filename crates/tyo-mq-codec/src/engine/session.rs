//! One Engine.IO session as a machine: heartbeat, polling rules, upgrade, close. It holds no packets and does no I/O;
//! the caller owns the queue and asks what to do. Times are milliseconds of a monotonic clock.

use super::{Packet, Protocol};

/// The intervals of a session, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Between two pings of whoever pings.
    pub ping_interval_ms: u64,
    /// How long a ping may stay unanswered.
    pub ping_timeout_ms: u64,
    /// How long a WebSocket may take from opening to the `5` that completes an upgrade.
    pub upgrade_timeout_ms: u64,
}

impl Timing {
    fn silence_ms(&self) -> u64 {
        self.ping_interval_ms.saturating_add(self.ping_timeout_ms)
    }
}

/// What carries the session's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// HTTP requests.
    Polling,
    /// One WebSocket.
    WebSocket,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer closed the WebSocket or sent the close packet.
    ClientClosed,
    /// The connection broke.
    TransportError,
    /// The peer did not answer, or did not ping, in time.
    PingTimeout,
    /// The peer sent what the protocol does not allow.
    ParseError,
    /// A message over the limit.
    TooLarge,
    /// Two polls, or two posts, at once.
    ConcurrentRequest,
    /// The outbound limit was reached.
    SlowConsumer,
    /// The application closed it.
    ServerClosed,
    /// The server stops.
    ServerShutdown,
}

impl CloseReason {
    /// Whether what is queued may still go out before the end.
    pub fn drains(self) -> bool {
        matches!(self, Self::ServerClosed | Self::ServerShutdown)
    }
}

/// A rule of polling that the peer broke. The session is closed by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The session ended before.
    #[error("session is closed")]
    Closed,
    /// Its packets go through a WebSocket.
    #[error("session does not poll")]
    NotPolling,
    /// Another request of the same kind is under way.
    #[error("overlapping requests")]
    Concurrent,
    /// An upgrade is under way already.
    #[error("upgrade under way")]
    Upgrading,
}

/// What a received packet asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Reaction<'a> {
    /// Hand the packet's message, text or binary, to the application.
    Message(Packet<'a>),
    /// Queue a pong.
    Pong,
    /// Nothing.
    Ignore,
    /// End the session.
    Close(CloseReason),
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerEvent {
    /// Queue a ping.
    Ping,
    /// End the session for this reason.
    Close(CloseReason),
}

/// An upgrade on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upgrade {
    None,
    /// The WebSocket is open.
    Opened,
    /// It was probed: polls return at once from here on.
    Probed,
}

/// The machine.
#[derive(Debug)]
pub struct Session {
    protocol: Protocol,
    timing: Timing,
    carrier: Carrier,
    upgrade: Upgrade,
    upgrade_until: u64,
    polling: bool,
    posting: bool,
    last_seen: u64,
    next_ping: u64,
    pong_due: Option<u64>,
    closed: Option<CloseReason>,
}

impl Session {
    /// A session that was just handshaken.
    pub fn new(protocol: Protocol, carrier: Carrier, timing: Timing, now: u64) -> Self {
        Self {
            protocol,
            timing,
            carrier,
            upgrade: Upgrade::None,
            upgrade_until: 0,
            polling: false,
            posting: false,
            last_seen: now,
            next_ping: now.saturating_add(timing.ping_interval_ms),
            pong_due: None,
            closed: None,
        }
    }

    /// The revision that the client speaks.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// What carries packets now.
    pub fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// Why the session ended, once it did.
    pub fn closed(&self) -> Option<CloseReason> {
        self.closed
    }

    /// Ends the session; only the first reason counts. True when this call ended it.
    pub fn close(&mut self, reason: CloseReason) -> bool {
        if self.closed.is_some() {
            return false;
        }
        self.closed = Some(reason);
        true
    }

    /// A poll arrives. An overlapping one closes the session: the waiting poll gets a close packet, this one a refusal.
    pub fn begin_poll(&mut self, now: u64) -> Result<(), Violation> {
        self.begin_request(now)?;
        if self.polling {
            self.close(CloseReason::ConcurrentRequest);
            return Err(Violation::Concurrent);
        }
        self.polling = true;
        Ok(())
    }

    /// The poll was answered, or its client left.
    pub fn end_poll(&mut self) {
        self.polling = false;
    }

    /// A post arrives. An overlapping one closes the session.
    pub fn begin_post(&mut self, now: u64) -> Result<(), Violation> {
        self.begin_request(now)?;
        if self.posting {
            self.close(CloseReason::ConcurrentRequest);
            return Err(Violation::Concurrent);
        }
        self.posting = true;
        Ok(())
    }

    /// Part of a post's body came: the peer is alive, although it cannot answer a ping meanwhile.
    pub fn post_progress(&mut self, now: u64) {
        self.last_seen = now;
        if self.pong_due.is_some() {
            self.pong_due = Some(now.saturating_add(self.timing.ping_timeout_ms));
        }
    }

    /// The post was read, or its client left.
    pub fn end_post(&mut self) {
        self.posting = false;
    }

    /// Whether a waiting poll must return although nothing is queued.
    pub fn must_answer_poll(&self) -> bool {
        self.closed.is_some()
            || self.upgrade == Upgrade::Probed
            || self.carrier == Carrier::WebSocket
    }

    /// The packet that ends a poll's body, where one is needed: close, or noop where nothing else is in it.
    pub fn poll_ending(&self, body_is_empty: bool) -> Option<&'static [u8]> {
        match self.closed {
            // It said goodbye itself.
            Some(CloseReason::ClientClosed) | None => body_is_empty.then_some(b"6"),
            Some(_) => Some(b"1"),
        }
    }

    /// A WebSocket opens with this session's id.
    pub fn begin_upgrade(&mut self, now: u64) -> Result<(), Violation> {
        if self.closed.is_some() {
            return Err(Violation::Closed);
        }
        if self.carrier == Carrier::WebSocket {
            return Err(Violation::NotPolling);
        }
        if self.upgrade != Upgrade::None {
            return Err(Violation::Upgrading);
        }
        self.upgrade = Upgrade::Opened;
        self.upgrade_until = now.saturating_add(self.timing.upgrade_timeout_ms);
        Ok(())
    }

    /// A packet on the WebSocket that is not the carrier yet.
    pub fn on_upgrade_packet(&mut self, packet: &Packet<'_>, now: u64) -> UpgradeStep {
        if self.closed.is_some() {
            return UpgradeStep::Refuse;
        }
        match (self.upgrade, packet) {
            (Upgrade::Opened | Upgrade::Probed, Packet::Ping("probe")) => {
                self.upgrade = Upgrade::Probed;
                UpgradeStep::AnswerProbe
            }
            (Upgrade::Probed, Packet::Upgrade) => {
                self.upgrade = Upgrade::None;
                self.carrier = Carrier::WebSocket;
                self.last_seen = now;
                UpgradeStep::Complete
            }
            _ => UpgradeStep::Refuse,
        }
    }

    /// The WebSocket of an upgrade went away, or took too long: polling goes on.
    pub fn abandon_upgrade(&mut self) {
        self.upgrade = Upgrade::None;
    }

    /// When an upgrade that is under way is given up.
    pub fn upgrade_deadline(&self) -> Option<u64> {
        (self.upgrade != Upgrade::None).then_some(self.upgrade_until)
    }

    /// A packet on the carrier.
    pub fn on_packet<'a>(&mut self, packet: Packet<'a>, now: u64) -> Reaction<'a> {
        if self.closed.is_some() {
            return Reaction::Ignore;
        }
        self.last_seen = now;
        match packet {
            Packet::Text(_) | Packet::Binary(_) => Reaction::Message(packet),
            Packet::Ping(_) if self.protocol == Protocol::V3 => Reaction::Pong,
            Packet::Ping(_) => Reaction::Close(CloseReason::ParseError),
            Packet::Pong(_) => {
                if self.pong_due.take().is_some() {
                    self.next_ping = now.saturating_add(self.timing.ping_interval_ms);
                }
                Reaction::Ignore
            }
            Packet::Close if self.carrier == Carrier::Polling => {
                Reaction::Close(CloseReason::ClientClosed)
            }
            // On a WebSocket the close frame is what counts.
            Packet::Close | Packet::Open(_) | Packet::Upgrade | Packet::Noop => Reaction::Ignore,
        }
    }

    /// Something came that needs no [`Self::on_packet`]: the peer is alive.
    pub fn touch(&mut self, now: u64) {
        self.last_seen = now;
    }

    /// When [`Self::on_timer`] wants to be called next.
    pub fn deadline(&self) -> u64 {
        let silent = self.last_seen.saturating_add(self.timing.silence_ms());
        match (self.protocol, self.carrier) {
            (Protocol::V3, _) => silent,
            (Protocol::V4, Carrier::Polling) => self.pong_due.unwrap_or(self.next_ping).min(silent),
            (Protocol::V4, Carrier::WebSocket) => self.pong_due.unwrap_or(self.next_ping),
        }
    }

    /// What is due at `now`, if anything.
    pub fn on_timer(&mut self, now: u64) -> Option<TimerEvent> {
        if self.closed.is_some() || now < self.deadline() {
            return None;
        }
        let silent = now >= self.last_seen.saturating_add(self.timing.silence_ms());
        if self.protocol == Protocol::V3 || (self.carrier == Carrier::Polling && silent) {
            return Some(TimerEvent::Close(CloseReason::PingTimeout));
        }
        if self.pong_due.is_some() {
            return Some(TimerEvent::Close(CloseReason::PingTimeout));
        }
        self.pong_due = Some(now.saturating_add(self.timing.ping_timeout_ms));
        Some(TimerEvent::Ping)
    }

    fn begin_request(&mut self, now: u64) -> Result<(), Violation> {
        if self.closed.is_none()
            && let Some(TimerEvent::Close(reason)) = self.expired(now)
        {
            self.close(reason);
        }
        if self.closed.is_some() {
            return Err(Violation::Closed);
        }
        if self.carrier == Carrier::WebSocket {
            return Err(Violation::NotPolling);
        }
        self.last_seen = now;
        Ok(())
    }

    /// Whether the session's time is over although nobody called [`Self::on_timer`] yet.
    fn expired(&self, now: u64) -> Option<TimerEvent> {
        let silent = now >= self.last_seen.saturating_add(self.timing.silence_ms());
        let unanswered = self.pong_due.is_some_and(|due| now >= due);
        (silent || unanswered).then_some(TimerEvent::Close(CloseReason::PingTimeout))
    }
}

/// What a packet does to an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeStep {
    /// Send `3probe` on the WebSocket and let a waiting poll go.
    AnswerProbe,
    /// The WebSocket is the carrier now.
    Complete,
    /// Close the WebSocket; polling goes on.
    Refuse,
}

#[cfg(test)]
mod tests;
