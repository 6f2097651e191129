//! The handle of a connection: emit, call, listen, close. Handles are cheap to clone; the last one that goes closes it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::timeout;
use tyo_mq_protocol::events;

use crate::socket::Socket;
use crate::task::{Command, Keep, Outgoing, Task};
use crate::{
    Address, CallError, ConnectError, Connector, Consumer, Event, Events, Options, Produce,
    Producer, Receipt, Reply, RequestError,
};

/// A connection to a broker.
#[derive(Debug, Clone)]
pub struct Client {
    commands: mpsc::Sender<Command>,
    events: broadcast::WeakSender<Event>,
    closing: Arc<watch::Sender<bool>>,
    options: Arc<Options>,
}

impl Client {
    /// Connects to a broker, such as `http://localhost:17352` or, behind a proxy with TLS, `https://broker.example`.
    ///
    /// # Errors
    /// When there is no broker, its certificate is not good, or it refuses the namespace.
    pub async fn connect(url: &str, options: Options) -> Result<Self, ConnectError> {
        Self::connect_to(url.parse()?, options).await
    }

    /// As [`connect`](Self::connect), to an address.
    ///
    /// # Errors
    /// When there is no broker, or it refuses the namespace.
    pub async fn connect_to(address: Address, options: Options) -> Result<Self, ConnectError> {
        let connector = Connector::new(address, &options.trust).await?;
        let socket = Socket::open(&connector, &options).await?;
        let (commands, receiver) = mpsc::channel(options.outbound_queue.max(1));
        let (events, _) = broadcast::channel(options.event_queue.max(1));
        let (closing, closed) = watch::channel(false);
        let client = Self {
            commands,
            events: events.downgrade(),
            closing: Arc::new(closing),
            options: Arc::new(options.clone()),
        };
        let task = Task::new(connector, options, receiver, closed, events);
        tokio::spawn(task.run(socket));
        Ok(client)
    }

    /// Sends an event. It waits while the outbound queue is full, and does not wait for the broker.
    ///
    /// # Errors
    /// When the payload is no JSON or the client is closed.
    pub async fn emit<T>(&self, event: &str, payload: &T) -> Result<(), CallError>
    where
        T: Serialize + ?Sized,
    {
        self.send(Outgoing {
            event: Cow::Owned(event.to_owned()),
            payloads: vec![serde_json::to_string(payload)?],
            attachments: Vec::new(),
            answer: None,
            keep: Keep::No,
        })
        .await
    }

    /// Sends an event and waits for its answer.
    ///
    /// # Errors
    /// When no answer comes in time.
    pub async fn emit_with_ack<T>(
        &self,
        event: &str,
        payload: &T,
        patience: Duration,
    ) -> Result<Reply, CallError>
    where
        T: Serialize + ?Sized,
    {
        let outgoing = Outgoing {
            event: Cow::Owned(event.to_owned()),
            payloads: vec![serde_json::to_string(payload)?],
            attachments: Vec::new(),
            answer: None,
            keep: Keep::No,
        };
        self.call(outgoing, patience).await
    }

    /// What the broker says besides deliveries, from now on.
    #[must_use]
    pub fn events(&self) -> Events {
        let receiver = match self.events.upgrade() {
            Some(events) => events.subscribe(),
            // Closed: a stream that has ended.
            None => broadcast::channel(1).1,
        };
        Events::new(receiver)
    }

    /// Registers a producer on this connection.
    ///
    /// # Errors
    /// When the client is closed.
    pub async fn producer(&self, name: &str) -> Result<Producer, CallError> {
        self.register(events::PRODUCER, name).await?;
        Ok(Producer::new(self.clone(), name))
    }

    /// Registers a consumer on this connection. The broker tells by an `ERROR` event when the name is taken.
    ///
    /// # Errors
    /// When the client is closed.
    pub async fn consumer(&self, name: &str) -> Result<Consumer, CallError> {
        self.register(events::CONSUMER, name).await?;
        Ok(Consumer::new(self.clone(), name))
    }

    /// Sends a message, in pieces when it is large. It does not wait for the broker.
    ///
    /// # Errors
    /// When the message is too large or the client is closed.
    pub async fn produce(&self, message: &Produce) -> Result<(), CallError> {
        self.send(message.outgoing()?).await
    }

    /// Sends a message and waits until the broker has it: stored, when somebody's subscription is durable.
    ///
    /// # Errors
    /// When the broker refuses it, or does not answer.
    pub async fn produce_confirmed(&self, message: &Produce) -> Result<Receipt, RequestError> {
        let reply = self
            .call(message.outgoing()?, self.options.call_timeout)
            .await?;
        reply.accepted()
    }

    /// Says that a message was handled, and waits until the broker knows.
    ///
    /// # Errors
    /// When the broker does not wait for it, or does not answer.
    pub async fn ack(&self, msg_id: &str) -> Result<(), RequestError> {
        let payload = serde_json::json!({ "msgId": msg_id });
        let reply = self
            .emit_with_ack(events::ACK, &payload, self.options.call_timeout)
            .await?;
        reply.accepted::<serde::de::IgnoredAny>().map(drop)
    }

    /// Closes the connection: what was emitted before goes out. It returns when the connection is closed.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        self.commands.closed().await;
    }

    /// Whether the connection is closed for good.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.commands.is_closed()
    }

    /// How this client behaves.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) async fn command(&self, command: Command) -> Result<(), CallError> {
        let sent = self.commands.send(command).await;
        sent.map_err(|_| CallError::Closed)
    }

    pub(crate) async fn send(&self, outgoing: Outgoing) -> Result<(), CallError> {
        self.command(Command::Send(outgoing)).await
    }

    pub(crate) async fn call(
        &self,
        mut outgoing: Outgoing,
        patience: Duration,
    ) -> Result<Reply, CallError> {
        let (answer, answered) = oneshot::channel();
        outgoing.answer = Some(answer);
        let answered = async {
            self.send(outgoing).await?;
            answered.await.unwrap_or(Err(CallError::Closed))
        };
        let answered = timeout(patience, answered).await;
        answered.unwrap_or(Err(CallError::Timeout(patience)))
    }

    async fn register(&self, event: &'static str, name: &str) -> Result<(), CallError> {
        self.send(Outgoing {
            event: Cow::Borrowed(event),
            payloads: vec![serde_json::json!({ "name": name }).to_string()],
            attachments: Vec::new(),
            answer: None,
            keep: Keep::Yes {
                event,
                listens_to: None,
            },
        })
        .await
    }
}
