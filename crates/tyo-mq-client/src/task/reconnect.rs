//! Coming back: the waits, the new connection, and what it is told first.

use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use serde_json::value::RawValue;
use tyo_mq_codec::socket::write_event;
use tyo_mq_protocol::events;

use super::Task;
use crate::socket::{Incoming, Lost, Socket};
use crate::{Event, packet};

/// A connection that lasted so long counts as good: waits begin anew after it.
pub(super) const STABLE: Duration = Duration::from_secs(10);

/// How a new connection began.
enum Beginning {
    Good,
    /// The credentials are good no longer: coming back has no use.
    Refused,
}

impl Task {
    /// A new connection; none when the client shall close, or gives up.
    pub(super) async fn reconnect(&mut self, attempt: &mut u32) -> Option<Socket> {
        let reconnect = self.options.reconnect.clone()?;
        loop {
            let delay = reconnect.delay(*attempt, chance())?;
            *attempt = attempt.saturating_add(1);
            tokio::select! {
                _ = self.closing.changed() => return None,
                () = tokio::time::sleep(delay) => {}
            }
            let Ok(mut socket) = Socket::open(&self.connector, &self.options).await else {
                continue;
            };
            match self.begin(&mut socket).await {
                Ok(Beginning::Good) => {
                    self.tell(Event::Reconnected);
                    return Some(socket);
                }
                Ok(Beginning::Refused) => return None,
                Err(_) => {}
            }
        }
    }

    /// Tells a new connection who we are and what we listen to.
    async fn begin(&mut self, socket: &mut Socket) -> Result<Beginning, Lost> {
        if let Some(payload) = self.standing.authentication() {
            let payload = payload.to_owned();
            self.say(events::AUTHENTICATION, &payload, socket).await?;
            if !self.wait_for_verdict(socket).await? {
                return Ok(Beginning::Refused);
            }
        }
        let registrations: Vec<_> = self
            .standing
            .registrations()
            .map(|(event, payload)| (event, payload.to_owned()))
            .collect();
        for (event, payload) in registrations {
            self.say(event, &payload, socket).await?;
        }
        Ok(Beginning::Good)
    }

    async fn say(&self, event: &str, payload: &str, socket: &mut Socket) -> Result<(), Lost> {
        let mut packet = Vec::new();
        let namespace = &self.options.namespace;
        write_event(&mut packet, namespace, None, 0, event, &[payload]);
        socket.send(&packet, &[]).await
    }

    /// Whether the credentials were accepted. Whatever else comes is handled.
    async fn wait_for_verdict(&mut self, socket: &mut Socket) -> Result<bool, Lost> {
        let deadline = tokio::time::Instant::now() + self.options.call_timeout;
        loop {
            let frame = tokio::time::timeout_at(deadline, socket.next_frame()).await;
            let frame = frame.map_err(|_| Lost::Silent)?;
            let Some(incoming) = socket.take(frame).await? else {
                continue;
            };
            let verdict = verdict(&incoming);
            self.on_incoming(incoming)?;
            if let Some(verdict) = verdict {
                return Ok(verdict);
            }
        }
    }
}

/// What an event says about our credentials.
fn verdict(incoming: &Incoming) -> Option<bool> {
    let Incoming::Event { args, .. } = incoming else {
        return None;
    };
    let (name, _): (String, Option<Box<RawValue>>) = packet::event(args)?;
    match name.as_str() {
        events::AUTH_OK => Some(true),
        events::AUTH_FAIL => Some(false),
        _ => None,
    }
}

/// Some number; clients that were cut off together must not come back together.
fn chance() -> u64 {
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}
