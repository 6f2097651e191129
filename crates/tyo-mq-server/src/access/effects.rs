//! Carries out what the auth state wants done outside of it.

use std::sync::atomic::Ordering;

use tyo_mq_auth::document::RowChange;
use tyo_mq_auth::{Change, Effect};

use super::Access;
use super::keeper::KeeperError;
use crate::now_ms;

impl Access {
    /// In order, and by whoever has the [turn](Self::in_order). What cannot be kept is told to the operator; it is in force all the same until the next start.
    pub(super) fn carry_out(&self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Persist(rows) => {
                    if let Err(error) = self.persist(&rows) {
                        tracing::error!(%error, "cannot keep a change of realms or tokens");
                    }
                }
                Effect::Changed(changes) => self.on_changed(&changes),
                Effect::Notify {
                    socket,
                    event,
                    payload,
                } => {
                    if let Some(socket) = self.sockets.find(&socket) {
                        socket.send_event(event, &payload);
                        socket.conn.flush();
                    }
                }
                Effect::ClearRealm(realm) => _ = self.clear_realm(realm.as_str()),
                Effect::Audit(ref entry) => {
                    tracing::info!(target: "audit", "{}", entry.to_json());
                    self.keep(&effect);
                }
                effect => self.keep(&effect),
            }
        }
        self.wake.notify_one();
    }

    /// Writes rows to the store, or all to the settings file.
    pub(super) fn persist(&self, rows: &[RowChange]) -> Result<(), KeeperError> {
        let mut keeper = self.keeper();
        let auth = self.state().document().to_settings(keeper.has_store());
        keeper.persist(rows, auth)
    }

    fn keep(&self, effect: &Effect) {
        if let Err(error) = self.keeper().carry_out(effect) {
            tracing::error!(%error, "cannot write to the auth store");
        }
    }

    /// Sockets that would not be admitted any more are disconnected; all others ask anew at their next event.
    pub(super) fn on_changed(&self, changes: &[Change]) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        for change in changes {
            if let Change::Realm(name) = change {
                self.tell_policy(name.as_str());
            }
        }
        for socket in self.sockets.all() {
            let concerned = changes
                .iter()
                .any(|change| socket.auth().is_concerned(change));
            let state = self.state();
            let stays = !concerned || socket.auth().recheck(state.document(), now_ms()).is_ok();
            drop(state);
            if !stays {
                socket.disconnect();
            }
        }
    }

    /// Disconnects a realm's sockets and forgets its messages; the number of sockets.
    pub(super) fn clear_realm(&self, realm: &str) -> usize {
        let sockets = self.sockets.in_realm(realm);
        sockets.iter().for_each(|socket| socket.disconnect());
        self.broker.purge_realm(realm);
        sockets.len()
    }
}
