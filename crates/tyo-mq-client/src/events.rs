//! What the broker says besides deliveries, as a stream that anybody may listen to.

use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::broadcast;

/// An event of the broker's, or of the connection's life.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// There is a connection again; registrations and subscriptions are made again.
    Reconnected,
    /// The connection was lost, and why.
    Disconnected(String),
    /// An event came that no subscription waits for.
    Received(Arc<Received>),
    /// So many events were lost because nobody took them in time.
    Missed(u64),
}

/// An event as it came.
#[derive(Debug)]
pub struct Received {
    /// Its name.
    pub name: String,
    /// Its first argument.
    pub payload: Option<Box<RawValue>>,
    /// What its placeholders stand for.
    pub attachments: Vec<Bytes>,
}

impl Received {
    /// The payload as JSON text; `null` when there is none.
    #[must_use]
    pub fn json(&self) -> &str {
        self.payload.as_ref().map_or("null", |raw| raw.get())
    }

    /// Reads the payload; none when it has another form.
    #[must_use]
    pub fn parse<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.json()).ok()
    }
}

/// Events from the moment on at which this was made.
#[derive(Debug)]
pub struct Events {
    receiver: broadcast::Receiver<Event>,
}

impl Events {
    pub(crate) const fn new(receiver: broadcast::Receiver<Event>) -> Self {
        Self { receiver }
    }

    /// The next event; none once the client is closed.
    pub async fn next(&mut self) -> Option<Event> {
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Event::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// The next event with one of these names; none once the client is closed or the connection is lost.
    pub async fn next_named(&mut self, names: &[&str]) -> Option<Arc<Received>> {
        loop {
            match self.next().await? {
                Event::Received(event) if names.contains(&event.name.as_str()) => {
                    return Some(event);
                }
                Event::Disconnected(_) => return None,
                _ => {}
            }
        }
    }
}
