//! What is to be done outside after a request was handled, and what is answered. Effects are carried out in their order.

use crate::audit::AuditEntry;
use crate::document::{Applied, Change, RowChange};
use crate::json::{Object, Value};
use crate::names::RealmName;
use crate::refusal::Refusal;
use crate::secret::Secret;

/// Something that the state cannot do itself.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// Rows for the auth store. Without a store, or with [`RowChange::Fields`], the settings file is to be written.
    Persist(Vec<RowChange>),
    /// Live sessions that are concerned are to be checked.
    Changed(Vec<Change>),
    /// A request for admission is to be kept over a restart.
    KeepRequest {
        /// Its id.
        id: String,
        /// What to restore it from: JSON with a token or its digest.
        json: Secret,
    },
    /// A request for admission need not be kept any more.
    DropRequest {
        /// Its id.
        id: String,
    },
    /// A socket is to be told something, if it is still there.
    Notify {
        /// The socket's id, as it was given with the request.
        socket: String,
        /// The event.
        event: &'static str,
        /// The payload.
        payload: String,
    },
    /// The sockets of a realm are to be disconnected, its messages and dead letters removed.
    ClearRealm(RealmName),
    /// A deed for the audit trail.
    Audit(AuditEntry),
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Whether it was done.
    pub is_ok: bool,
    /// The payload, for the ack or the event.
    pub payload: String,
    /// The event in place of an ack that was not asked for.
    pub event: &'static str,
    /// Whether the event is sent with an ack too.
    pub is_always_event: bool,
}

/// What came of handling something. The effects come first, then the answer: what was answered is kept.
#[derive(Debug)]
#[must_use]
pub struct Handled {
    /// The answer.
    pub reply: Reply,
    /// What is to be done.
    pub effects: Vec<Effect>,
}

impl Reply {
    pub(crate) fn ok(event: &'static str, payload: Object) -> Self {
        Self {
            is_ok: true,
            payload: Value::from(payload).to_json(),
            event,
            is_always_event: false,
        }
    }

    pub(crate) fn refused(event: &'static str, refusal: &Refusal) -> Self {
        Self {
            is_ok: false,
            payload: refusal.to_answer(),
            event,
            is_always_event: false,
        }
    }
}

/// The effects of changed settings: what is to be kept before what is to be looked after.
pub(crate) fn push_applied(effects: &mut Vec<Effect>, applied: Applied) {
    if !applied.rows.is_empty() {
        effects.push(Effect::Persist(applied.rows));
    }
    if !applied.changes.is_empty() {
        effects.push(Effect::Changed(applied.changes));
    }
}
