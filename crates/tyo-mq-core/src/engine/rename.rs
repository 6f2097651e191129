//! A realm gets another name: everything in it stays where it is, and the store follows.
//!
//! Until the store has answered, both names mean the realm, so that nobody can take the old one before it is free.

use std::sync::Arc;

use super::clock::Now;
use super::input::ReplyToken;
use super::output::{Output, RenameError};
use super::realm::{Purpose, Realm};
use super::{DEFAULT_REALM, Engine, OBSERVER_REALM};
use crate::message::SessionId;
use crate::store::{QueueKey, StoreOp, StoreResult};

impl Engine {
    /// There is something in a realm of this name.
    pub fn holds_realm(&self, name: &str) -> bool {
        let index = self.realm_names.get(name);
        index.is_some_and(|index| !self.realms[*index].is_unused() || !self.ledger.is_idle(*index))
    }

    /// The name of the realm that a session is in.
    pub fn realm_of(&self, session: SessionId) -> Option<&Arc<str>> {
        let index = self.session_realms.get(&session)?;
        Some(&self.realms[*index].name)
    }

    pub(crate) fn rename_realm(
        &mut self,
        now: Now,
        (from, to): (&str, &str),
        token: Option<ReplyToken>,
        out: &mut Vec<Output>,
    ) {
        if let Err(error) = self.check_rename(from, to) {
            let result = Err(error);
            return out.push(Output::Renamed { token, result });
        }
        if let Some(unused) = self.realm_names.remove(to) {
            let unused = self.realms.remove(unused);
            self.past.keep(unused);
        }
        // The store may hold something of a realm that is not in memory.
        let index = self.realm_entry(from);
        let name: Arc<str> = to.into();
        self.realm_names.insert(name.clone(), index);
        let (realm, mut ctx) = self.split(index, now, out);
        let from = realm.take_name(name.clone());
        realm.renamed_from = Some(from.clone());
        let op = StoreOp::RenameRealm { from, to: name };
        ctx.store(index, op, Purpose::Rename { token });
    }

    fn check_rename(&self, from: &str, to: &str) -> Result<(), RenameError> {
        for name in [from, to] {
            if name == DEFAULT_REALM || name == OBSERVER_REALM {
                return Err(RenameError::Reserved(name.to_owned()));
            }
        }
        let index = self.realm_names.get(from);
        if index.is_some_and(|index| self.realms[*index].renamed_from.is_some()) {
            return Err(RenameError::Busy(from.to_owned()));
        }
        if from == to || self.holds_realm(to) {
            return Err(RenameError::Exists(to.to_owned()));
        }
        Ok(())
    }

    /// The store has followed, or has not: then everything is as it was.
    pub(crate) fn on_renamed(
        &mut self,
        index: usize,
        token: Option<ReplyToken>,
        result: StoreResult,
        out: &mut Vec<Output>,
    ) {
        let realm = &mut self.realms[index];
        let Some(from) = realm.renamed_from.take() else {
            return;
        };
        let result = match result {
            Ok(_) => {
                self.realm_names.remove(&from);
                Ok(())
            }
            Err(error) => {
                realm.counters.store_failures += 1;
                let to = realm.take_name(from);
                self.realm_names.remove(&to);
                Err(error.into())
            }
        };
        out.push(Output::Renamed { token, result });
    }
}

impl Realm {
    /// Gives the name that it had.
    fn take_name(&mut self, name: Arc<str>) -> Arc<str> {
        for (_, queue) in &mut self.queues {
            queue.key = Arc::new(QueueKey {
                realm: name.clone(),
                ..(*queue.key).clone()
            });
        }
        std::mem::replace(&mut self.name, name)
    }
}
