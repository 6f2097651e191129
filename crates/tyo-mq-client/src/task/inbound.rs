//! What comes in: answers to their callers, deliveries to their subscriptions, everything else to whoever listens.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc::error::TrySendError;
use tyo_mq_protocol::{ProduceChunk, events};

use super::Task;
use crate::socket::{Incoming, Lost};
use crate::{Delivery, Received, Reply, packet};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    transfer_id: Cow<'a, str>,
    event: Cow<'a, str>,
    index: u32,
    total: u32,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl Task {
    pub(super) fn on_incoming(&mut self, incoming: Incoming) -> Result<(), Lost> {
        match incoming {
            Incoming::Event { args, attachments } => {
                let (name, payload) = packet::event(&args).ok_or(Lost::Protocol)?;
                self.on_event(name, payload, attachments);
                Ok(())
            }
            Incoming::Answer {
                id,
                args,
                attachments,
            } => {
                let payload = packet::answer(&args).ok_or(Lost::Protocol)?;
                if let Some(waiting) = self.calls.remove(&id) {
                    // Whoever waited may have gone.
                    let _ = waiting.send(Ok(Reply {
                        payload,
                        attachments,
                    }));
                }
                Ok(())
            }
            Incoming::Refused(_) => Err(Lost::Ended),
            Incoming::Joined => Ok(()),
        }
    }

    fn on_event(&mut self, name: String, payload: Option<Box<RawValue>>, attachments: Vec<Bytes>) {
        let whole = match (&payload, name.as_str()) {
            (Some(raw), events::CONSUME_CHUNK) => self.add_chunk(raw),
            _ => None,
        };
        match (whole, payload) {
            (Some((name, payload)), _) => self.dispatch(name, Some(payload), Vec::new()),
            // A piece; its whole comes later, or never.
            (None, Some(_)) if name == events::CONSUME_CHUNK => {}
            (None, payload) => self.dispatch(name, payload, attachments),
        }
    }

    /// Takes a piece of a large delivery: the whole, when it was the last one. Pieces that make no whole are dropped.
    fn add_chunk(&mut self, raw: &RawValue) -> Option<(String, Box<RawValue>)> {
        let chunk: Chunk<'_> = serde_json::from_str(raw.get()).ok()?;
        let piece = ProduceChunk {
            transfer_id: chunk.transfer_id,
            index: chunk.index,
            total: chunk.total,
            data: Cow::Borrowed(chunk.data.get()),
        };
        let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let whole = self.chunks.add(&piece, now_ms).ok()??;
        let payload = RawValue::from_string(whole).ok()?;
        Some((chunk.event.into_owned(), payload))
    }

    fn dispatch(&mut self, name: String, payload: Option<Box<RawValue>>, attachments: Vec<Bytes>) {
        let Some(deliveries) = self.subscriptions.get(&name).cloned() else {
            return self.tell_received(Received {
                name,
                payload,
                attachments,
            });
        };
        let Some(delivery) = payload.and_then(|raw| Delivery::read(raw, attachments)) else {
            return;
        };
        match deliveries.try_send(delivery) {
            Ok(()) => {}
            Err(TrySendError::Full(delivery)) => self.stalled = Some((deliveries, delivery)),
            Err(TrySendError::Closed(_)) => {
                self.subscriptions.remove(&name);
                self.standing.forget(&name);
            }
        }
    }

    /// Hands over the delivery that waited for room.
    pub(super) fn deliver_stalled(&mut self) {
        let Some((deliveries, delivery)) = self.stalled.take() else {
            return;
        };
        match deliveries.try_send(delivery) {
            Err(TrySendError::Full(delivery)) => self.stalled = Some((deliveries, delivery)),
            // A subscription that was dropped is found out with its next delivery.
            Ok(()) | Err(TrySendError::Closed(_)) => {}
        }
    }
}
