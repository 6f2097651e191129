//! What the oracle remembers of a message.

use std::sync::Arc;

use tyo_mq_core::SessionId;

use crate::matcher::Target;

/// A published message.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) session: SessionId,
    /// Subscriptions without a group that it is for.
    pub(crate) single: Vec<Target>,
    /// Groups that it is for, with the members that match.
    pub(crate) groups: Vec<(Arc<str>, Vec<Target>)>,
}

/// What one copy is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    Single(Target),
    Group(Arc<str>),
}

/// The number in a message's body.
pub(crate) fn number(body: &[u8]) -> usize {
    let text = std::str::from_utf8(body).expect("bodies are numbers");
    text.parse().expect("bodies are numbers")
}
