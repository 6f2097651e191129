//! What happens by itself, at its moment: realms end, requests are forgotten.

use std::sync::Weak;
use std::time::Duration;

use super::Access;
use crate::now_ms;

/// Ends with the last owner of the door.
pub(super) async fn keep(this: Weak<Access>) {
    loop {
        let Some(access) = this.upgrade() else { return };
        access.end_what_is_due();
        let deadline_ms = access.state().deadline_ms();
        let wait_ms = deadline_ms.map_or(MAX_WAIT_MS, |at_ms| {
            at_ms.saturating_sub(now_ms()).min(MAX_WAIT_MS)
        });
        tokio::select! {
            () = access.wake.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
        }
    }
}

impl Access {
    fn end_what_is_due(&self) {
        let _order = self.in_order();
        let is_due = self
            .state()
            .deadline_ms()
            .is_some_and(|at_ms| at_ms <= now_ms());
        if is_due {
            let effects = self.state().on_deadline(now_ms());
            self.carry_out(effects);
        }
    }
}

/// The wall clock may be set: the deadline is looked at again after this at the latest.
const MAX_WAIT_MS: u64 = 1_000;
