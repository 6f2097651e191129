//! The outlet of a Socket.IO socket: outputs of the broker become frames in its connection's queue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tyo_mq_core::engine::{Delivery, Notice, Reply, ReplyToken};
use tyo_mq_core::runtime::{Memo, Outlet, Pressure};
use tyo_mq_transport::{Connection, FrameRef, SendKind, SendOutcome};

use super::encode::{FrameMemo, core_notice_frame, refusal_frame};

/// Where a socket's outputs go.
pub(super) struct SocketOutlet {
    conn: Arc<Connection>,
    /// The broker ended the session: the socket leaves its namespace.
    ended: AtomicBool,
    /// The Socket.IO ack of the event under way, which only a refusal answers.
    asking: Mutex<Option<u64>>,
    high_water_bytes: usize,
}

impl SocketOutlet {
    pub(super) fn new(conn: Arc<Connection>, high_water_bytes: usize) -> Self {
        Self {
            conn,
            ended: AtomicBool::new(false),
            asking: Mutex::default(),
            high_water_bytes,
        }
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Sets the ack to answer if what is carried out next is refused; it ends with that.
    pub(super) fn set_asking(&self, ack: Option<u64>) {
        *self.asking.lock().unwrap_or_else(PoisonError::into_inner) = ack;
    }

    fn keep<'a>(&self, frame: impl Into<FrameRef<'a>>) {
        // Too slow or gone: the connection ends by itself, and the session with it.
        let _ = self.conn.send(frame, SendKind::Keep);
    }
}

impl Outlet for SocketOutlet {
    fn deliver(&self, delivery: &Delivery, memo: &mut Memo) -> Pressure {
        let kind = if delivery.receipt.is_some() {
            SendKind::Keep
        } else {
            SendKind::Droppable
        };
        let mut pressure = Pressure::Flowing;
        memo.get::<FrameMemo>().send(delivery, |frame| {
            if self.conn.send(frame, kind) == SendOutcome::AboveHighWater {
                pressure = Pressure::High;
            }
        });
        pressure
    }

    fn notify(&self, notice: &Notice) {
        let frame = core_notice_frame(notice);
        if !matches!(notice, Notice::Refused(_) | Notice::SubscribeRefused(_)) {
            // A client that reads too slowly misses who comes and goes, and keeps its connection.
            let _ = self.conn.send(&frame, SendKind::Notice);
            return;
        }
        self.keep(&frame);
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(frame) = asking.take().and_then(|ack| refusal_frame(ack, notice)) {
            self.keep(&frame);
        }
    }

    fn reply(&self, token: Option<ReplyToken>, reply: Reply, memo: &mut Memo) {
        let ack = token.map(|token| token.0);
        memo.get::<FrameMemo>()
            .answer(ack, &reply, |frame| self.keep(frame));
    }

    fn disconnect(&self) {
        self.ended.store(true, Ordering::Release);
    }

    fn flush(&self) {
        self.conn.flush();
    }

    fn is_flowing(&self) -> bool {
        self.conn.queued_bytes() < self.high_water_bytes
    }
}
