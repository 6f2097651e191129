//! Sessions inside this process: what an embedder uses instead of a socket.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};

use super::outlet::{Flushes, Memo, Outlet, Pressure};
use super::{Broker, Session};
use crate::engine::{
    Command, Delivery, Lifetime, Notice, Publish, PublishError, Published, Reach, RegisterConsumer,
    RegisterProducer, Reply, ReplyToken, Subscribe,
};

/// A client inside this process. Events wait in a bounded inbox; when that is full, deliveries that need no
/// acknowledgement are dropped, oldest first.
pub struct LocalSession {
    session: Session,
    inbox: Arc<Inbox>,
}

/// Something that a local session receives.
#[derive(Debug, Clone, PartialEq)]
pub enum LocalEvent {
    /// A message.
    Delivery(Delivery),
    /// News of others, or a refusal.
    Notice(Notice),
    /// An answer to an acknowledgement or an unsubscribe.
    Reply(Reply),
    /// The broker ended the session; nothing follows.
    Disconnected,
}

/// How a message is published, besides its content.
#[derive(Debug, Clone, Default)]
pub struct PublishOptions<'a> {
    /// How long stored copies live.
    pub lifetime: Lifetime,
    /// Keep it for consumers that are away, durable or not.
    pub guaranteed: bool,
    /// Only for these consumers.
    pub recipients: Option<Vec<&'a str>>,
    /// Binary attachments.
    pub attachments: Vec<Bytes>,
    /// To whom; subscribers if absent.
    pub reach: Option<Reach<'a>>,
}

#[derive(Default)]
struct Inbox {
    state: Mutex<InboxState>,
    wake: Notify,
    next_token: AtomicU64,
}

#[derive(Default)]
struct InboxState {
    events: VecDeque<LocalEvent>,
    bytes: usize,
    high: bool,
    confirms: HashMap<u64, oneshot::Sender<Result<Published, PublishError>>>,
}

/// Bytes of deliveries that wait in an inbox; beyond, the oldest without a receipt are dropped.
const MAX_INBOX_BYTES: usize = 8 * 1024 * 1024;

/// Bytes above which no acknowledged message is added.
const HIGH_WATER_BYTES: usize = 1024 * 1024;

impl LocalSession {
    pub(super) fn open(broker: &Broker, realm: &str) -> Self {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let inbox = Arc::new(Inbox::default());
        let socket = format!("local-{}", OPENED.fetch_add(1, Ordering::Relaxed));
        Self {
            session: broker.open(realm, &socket, inbox.clone()),
            inbox,
        }
    }

    /// Announces a producer.
    pub fn register_producer(&self, name: &str) {
        self.command(Command::RegisterProducer(RegisterProducer {
            name,
            id: None,
            default_ttl: None,
        }));
    }

    /// Announces a consumer.
    pub fn register_consumer(&self, name: &str) {
        self.command(Command::RegisterConsumer(RegisterConsumer {
            name,
            id: Some(name),
        }));
    }

    /// Subscribes, or changes a subscription.
    pub fn subscribe(&self, subscribe: Subscribe<'_>) {
        self.command(Command::Subscribe(subscribe));
    }

    /// Acknowledges a delivery; the answer comes as [`LocalEvent::Reply`].
    pub fn ack(&self, id: &str) {
        self.command(Command::Ack { id });
    }

    /// Publishes, and returns when every copy that must be kept is kept.
    ///
    /// # Errors
    /// A limit that was hit, or what the store says.
    pub async fn publish(
        &self,
        producer: &str,
        event: &str,
        body: Bytes,
        options: PublishOptions<'_>,
    ) -> Result<Published, PublishError> {
        let token = self.inbox.next_token.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.inbox.lock().confirms.insert(token, sender);
        let publish = Publish {
            event,
            producer,
            producer_id: None,
            body,
            attachments: options.attachments.into(),
            lifetime: options.lifetime,
            guaranteed: options.guaranteed,
            recipients: options.recipients,
            reach: options.reach.unwrap_or(Reach::Subscribers),
        };
        self.session.submit(
            Command::Publish(publish),
            Some(ReplyToken(token)),
            &mut Flushes::new(),
        );
        let gone = |_| {
            PublishError::Store(crate::store::StoreError::Unavailable(
                "the broker ended".to_owned(),
            ))
        };
        receiver.await.map_err(gone)?
    }

    /// The next event; waits for one.
    pub async fn recv(&self) -> LocalEvent {
        loop {
            let woken = self.inbox.wake.notified();
            if let Some(event) = self.try_recv() {
                return event;
            }
            woken.await;
        }
    }

    /// The next event, if one is there.
    pub fn try_recv(&self) -> Option<LocalEvent> {
        let mut state = self.inbox.lock();
        let event = state.events.pop_front()?;
        state.bytes -= event.size();
        let drained = state.high && state.bytes < HIGH_WATER_BYTES / 2;
        state.high &= !drained;
        drop(state);
        if drained {
            self.session.drained();
        }
        Some(event)
    }

    fn command(&self, command: Command<'_>) {
        self.session
            .submit(command, Some(ReplyToken(u64::MAX)), &mut Flushes::new());
    }
}

impl LocalEvent {
    fn size(&self) -> usize {
        if let Self::Delivery(delivery) = self {
            delivery.message.size()
        } else {
            0
        }
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: LocalEvent) {
        self.lock().events.push_back(event);
    }
}

impl Outlet for Inbox {
    fn deliver(&self, delivery: &Delivery, _: &mut Memo) -> Pressure {
        let mut state = self.lock();
        state.bytes += delivery.message.size();
        state
            .events
            .push_back(LocalEvent::Delivery(delivery.clone()));
        if state.bytes > MAX_INBOX_BYTES {
            let droppable = |event: &LocalEvent| matches!(event, LocalEvent::Delivery(it) if it.receipt.is_none());
            let oldest = state
                .events
                .iter()
                .take(state.events.len() - 1)
                .position(droppable);
            if let Some(event) = oldest.and_then(|place| state.events.remove(place)) {
                state.bytes -= event.size();
            }
        }
        state.high |= state.bytes > HIGH_WATER_BYTES;
        if state.high {
            Pressure::High
        } else {
            Pressure::Flowing
        }
    }

    fn notify(&self, notice: &Notice) {
        self.push(LocalEvent::Notice(notice.clone()));
    }

    fn reply(&self, token: Option<ReplyToken>, reply: Reply, _: &mut Memo) {
        let confirm = token.and_then(|token| self.lock().confirms.remove(&token.0));
        match (confirm, reply) {
            (Some(confirm), Reply::Published(result)) => {
                // Who asked may have stopped waiting.
                let _ = confirm.send(result);
            }
            (_, reply) => self.push(LocalEvent::Reply(reply)),
        }
    }

    fn disconnect(&self) {
        self.push(LocalEvent::Disconnected);
    }

    fn flush(&self) {
        self.wake.notify_one();
    }

    fn is_flowing(&self) -> bool {
        !self.lock().high
    }
}
