//! What happens by itself, at its moment: realms end, requests are forgotten.

use std::sync::Weak;
use std::time::Duration;

use super::Access;
use crate::now_ms;

/// Ends with the last owner of the door.
pub(super) async fn keep(this: Weak<Access>) {
    loop {
        let Some(access) = this.upgrade() else { return };
        let deadline_ms = access.state().deadline_ms();
        let wait_ms = deadline_ms.map_or(MAX_WAIT_MS, |at_ms| {
            at_ms.saturating_sub(now_ms()).min(MAX_WAIT_MS)
        });
        tokio::select! {
            () = access.wake.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
        }
        let due = access
            .state()
            .deadline_ms()
            .is_some_and(|at_ms| at_ms <= now_ms());
        if due {
            let effects = access.state().on_deadline(now_ms());
            access.carry_out(effects);
        }
    }
}

/// The wall clock may be set: the deadline is looked at again after this at the latest.
const MAX_WAIT_MS: u64 = 1_000;
