//! Confirms: what a producer that asked is told once all copies of its message are as safe as they get.

use super::input::ReplyToken;
use super::output::{Output, Published, Reply};
use super::realm::{Confirm, Context, Realm};
use crate::message::SessionId;
use crate::store::StoreResult;

impl Realm {
    pub(crate) fn open_confirm(
        &mut self,
        ctx: &mut Context<'_>,
        session: SessionId,
        token: ReplyToken,
    ) -> usize {
        let id = ctx.ids.next(ctx.now.wall_ms);
        // One part is the publishing itself, so that early results cannot close it.
        self.confirms.insert(Confirm {
            session,
            token,
            id,
            routed: 0,
            queued: 0,
            waiting: 1,
            error: None,
        })
    }

    /// One part of a publication is done; with the last one the producer is answered.
    pub(crate) fn close_confirm(&mut self, ctx: &mut Context<'_>, index: usize) {
        let confirm = &mut self.confirms[index];
        confirm.waiting -= 1;
        if confirm.waiting > 0 {
            return;
        }
        let confirm = self.confirms.remove(index);
        let result = match confirm.error {
            Some(error) => Err(error),
            None => Ok(Published {
                id: confirm.id,
                routed: confirm.routed,
                queued: confirm.queued,
            }),
        };
        let (session, token) = (confirm.session, Some(confirm.token));
        ctx.out.push(Output::Reply {
            session,
            token,
            reply: Reply::Published(result),
        });
    }

    /// The result of keeping one copy.
    pub(crate) fn on_kept(
        &mut self,
        ctx: &mut Context<'_>,
        confirm: Option<usize>,
        result: StoreResult,
    ) {
        if let Err(error) = result {
            self.counters.store_failures += 1;
            if let Some(confirm) = confirm {
                self.confirms[confirm].error = Some(error.into());
            }
        }
        if let Some(confirm) = confirm {
            self.close_confirm(ctx, confirm);
        }
    }
}
