//! The consumers of a simulation: what they know and do.

use tyo_mq_core::engine::SubscriptionSpec;
use tyo_mq_core::{MessageId, SessionId};

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) specs: Vec<SubscriptionSpec>,
    pub(crate) session: Option<SessionId>,
    /// The consumer name is bound to the session.
    pub(crate) registered: bool,
    pub(crate) stalled: bool,
}

/// Something that a client does later.
#[derive(Debug)]
pub(crate) enum Todo {
    Ack { session: SessionId, id: MessageId },
    Drain { session: SessionId },
}

impl Client {
    pub(crate) fn new(number: usize, specs: Vec<SubscriptionSpec>) -> Self {
        Self {
            name: format!("c{number}"),
            specs,
            session: None,
            registered: false,
            stalled: false,
        }
    }

    pub(crate) fn disconnected(&mut self) {
        self.session = None;
        self.registered = false;
        self.stalled = false;
    }
}
