//! What happens by itself: ephemeral realms end, requests for admission are forgotten. At the moment, not at a sweep.

use crate::audit::{Actor, AuditEntry};
use crate::document::Mutation;
use crate::effect::{Effect, push_applied};
use crate::names::RealmName;
use crate::state::AuthState;

/// The most realms that are ended in one go, so that a lock is not held for long. The deadline stays due then.
pub const MAX_ENDED_AT_ONCE: usize = 256;

impl AuthState {
    /// When [`on_deadline`](Self::on_deadline) is to be called, in milliseconds since 1970.
    #[must_use]
    pub fn deadline_ms(&self) -> Option<u64> {
        let realm = self.document.next_expiry_ms();
        let request = self.requests.next_expiry_ms();
        realm.into_iter().chain(request).min()
    }

    /// Ends what is due.
    pub fn on_deadline(&mut self, now_ms: u64) -> Vec<Effect> {
        let mut effects = self.expire_requests(now_ms);
        let due = self.document.expired_realms(now_ms).into_iter();
        for realm in due.take(MAX_ENDED_AT_ONCE) {
            self.end_realm(realm, &mut effects, now_ms);
        }
        effects
    }

    fn end_realm(&mut self, realm: RealmName, effects: &mut Vec<Effect>, now_ms: u64) {
        let applied = self.document.apply([Mutation::RemoveRealm(realm.clone())]);
        let applied = applied.expect("only fields can be refused, and there is none");
        push_applied(effects, applied);
        let entry = AuditEntry {
            at_ms: now_ms,
            actor: Actor::Broker,
            action: "end_realm".to_owned(),
            target: Some(realm.to_string()),
            refused: None,
            is_dry_run: false,
        };
        self.audit.push(entry.clone());
        effects.push(Effect::ClearRealm(realm));
        effects.push(Effect::Audit(entry));
    }
}
