//! The audit trail: who did what, when, and how it ended. Never a secret.

use std::collections::VecDeque;

use tyo_mq_protocol::write_iso8601;

use crate::json::{Object, Value};
use crate::names::RealmName;
use crate::secret::SecretHash;

/// The most entries in memory; the oldest is forgotten first.
pub const MAX_ENTRIES: usize = 1000;

/// Who signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// The global admin, by the digest of the token.
    Global(SecretHash),
    /// A realm's manager.
    Realm(RealmName),
    /// The holder of a token for provisioning, by its digest.
    Provisioner(SecretHash),
    /// The broker itself, such as when a realm's time is over.
    Broker,
}

/// One deed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Who.
    pub actor: Actor,
    /// What: the command or event.
    pub action: String,
    /// To what: a realm, a request, a client.
    pub target: Option<String>,
    /// The code of the refusal; none when it was done.
    pub refused: Option<u16>,
    /// Whether it was only tried out.
    pub is_dry_run: bool,
}

/// The latest deeds.
#[derive(Debug, Default)]
pub struct AuditLog {
    entries: VecDeque<AuditEntry>,
}

impl AuditLog {
    /// The entries, the latest last.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &AuditEntry> {
        self.entries.iter()
    }

    pub(crate) fn push(&mut self, entry: AuditEntry) {
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }
}

impl Actor {
    /// The actor in words, for logs: a digest's beginning, a realm's name.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Global(hash) => format!("admin {}", hash.short()),
            Self::Realm(realm) => format!("manager of {realm}"),
            Self::Provisioner(hash) => format!("provisioner {}", hash.short()),
            Self::Broker => "broker".to_owned(),
        }
    }
}

impl AuditEntry {
    /// As replies have it.
    #[must_use]
    pub fn to_object(&self) -> Object {
        let mut out = Object::new();
        out.push("at", iso8601(self.at_ms));
        out.push("actor", self.actor.describe());
        out.push("action", self.action.as_str());
        out.push("target", self.target.as_deref());
        out.push("ok", self.refused.is_none());
        if let Some(code) = self.refused {
            out.push("code", u64::from(code));
        }
        if self.is_dry_run {
            out.push("dry_run", true);
        }
        out
    }

    /// As one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        Value::from(self.to_object()).to_json()
    }
}

/// A point in time as JavaScript prints it.
pub(crate) fn iso8601(epoch_ms: u64) -> String {
    let mut out = Vec::new();
    write_iso8601(&mut out, epoch_ms);
    String::from_utf8(out).expect("it is ASCII")
}
