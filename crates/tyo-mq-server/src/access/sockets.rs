//! Live sockets: what is known of each, and how one is reached from elsewhere.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tyo_mq_auth::{Reply, SocketAuth};
use tyo_mq_codec::socket::{ROOT, write_disconnect};
use tyo_mq_transport::{CloseReason, Connection, Frame, SendKind};

use crate::gateway::{ack_frame, event_frame};

/// A socket of the main namespace.
pub(crate) struct SocketHandle {
    pub(crate) id: Box<str>,
    pub(crate) conn: Arc<Connection>,
    pub(crate) address: IpAddr,
    pub(crate) connected_at_ms: u64,
    auth: Mutex<SocketAuth>,
    answers: Mutex<Answers>,
}

/// Answers that are owed to a manager: a command that ends the manager's own session is answered first.
#[derive(Default)]
struct Answers {
    owed: u32,
    /// The socket is to be disconnected when nothing is owed.
    is_over: bool,
}

/// All of them, by id.
#[derive(Default)]
pub(crate) struct Sockets {
    known: Mutex<HashMap<Box<str>, Arc<SocketHandle>>>,
}

impl SocketHandle {
    pub(crate) fn new(
        id: &str,
        conn: Arc<Connection>,
        address: IpAddr,
        connected_at_ms: u64,
    ) -> Self {
        Self {
            id: id.into(),
            conn,
            address,
            connected_at_ms,
            auth: Mutex::default(),
            answers: Mutex::default(),
        }
    }

    pub(crate) fn auth(&self) -> MutexGuard<'_, SocketAuth> {
        self.auth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event; the payload is JSON.
    pub(crate) fn send_event(&self, event: &str, payload: &str) {
        self.send(&event_frame(event, payload));
    }

    /// Appends an answer: as an event where none waits for an acknowledgement or always, then as the acknowledgement.
    pub(crate) fn answer(&self, ack: Option<u64>, reply: &Reply) {
        if ack.is_none() || reply.is_always_event {
            self.send_event(reply.event, &reply.payload);
        }
        if let Some(ack) = ack {
            self.send(&ack_frame(ack, |out| {
                out.extend_from_slice(reply.payload.as_bytes())
            }));
        }
    }

    /// Says that the socket is disconnected, and closes its connection when that has gone out; both after the answers
    /// that are owed.
    pub(crate) fn disconnect(&self) {
        let mut answers = self.answers();
        if answers.owed > 0 {
            answers.is_over = true;
            return;
        }
        drop(answers);
        self.disconnect_now();
    }

    /// An answer is owed from now on.
    pub(super) fn owe_answer(&self) {
        self.answers().owed += 1;
    }

    /// An answer was given.
    pub(super) fn answer_given(&self) {
        let mut answers = self.answers();
        answers.owed = answers.owed.saturating_sub(1);
        let is_over = answers.is_over && answers.owed == 0;
        drop(answers);
        if is_over {
            self.disconnect_now();
        }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn disconnect_now(&self) {
        self.send(&Frame::text(|out| write_disconnect(out, ROOT)));
        self.conn.close(CloseReason::ServerClosed);
        self.conn.flush();
    }

    fn send(&self, frame: &Frame) {
        // Too slow or gone: the connection ends by itself.
        let _ = self.conn.send(frame, SendKind::Keep);
    }
}

impl Sockets {
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<SocketHandle>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, mut handle: SocketHandle, auth: SocketAuth) -> Arc<SocketHandle> {
        handle.auth = Mutex::new(auth);
        let handle = Arc::new(handle);
        self.lock().insert(handle.id.clone(), handle.clone());
        handle
    }

    /// Forgets a socket; another one of the same id stays.
    pub(crate) fn remove(&self, handle: &Arc<SocketHandle>) {
        let mut known = self.lock();
        if known
            .get(&handle.id)
            .is_some_and(|other| Arc::ptr_eq(other, handle))
        {
            known.remove(&handle.id);
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<SocketHandle>> {
        self.lock().get(id).cloned()
    }

    /// All sockets, by time of connection.
    pub(super) fn all(&self) -> Vec<Arc<SocketHandle>> {
        let mut all: Vec<_> = self.lock().values().cloned().collect();
        all.sort_by(|left, right| {
            (left.connected_at_ms, &left.id).cmp(&(right.connected_at_ms, &right.id))
        });
        all
    }

    /// Sockets in a realm.
    pub(super) fn in_realm(&self, realm: &str) -> Vec<Arc<SocketHandle>> {
        let is_there = |socket: &Arc<SocketHandle>| {
            socket
                .auth()
                .grant()
                .is_some_and(|it| it.realm.as_str() == realm)
        };
        self.all().into_iter().filter(is_there).collect()
    }
}
