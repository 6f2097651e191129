//! The task that owns the connection: what handles ask for goes out, what comes in goes to whom it concerns, and a lost connection is made again.

mod inbound;
mod reconnect;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::Instant;
use tyo_mq_codec::socket::write_event;
use tyo_mq_protocol::{ChunkAssembler, ChunkLimits};

use crate::socket::{Lost, Socket};
use crate::standing::{MAX_STANDING, Standing};
use crate::{CallError, Connector, Delivery, Event, Options, Received, Reply};

/// The most calls that wait for their answers.
const MAX_CALLS: usize = 4096;

/// What handles ask for.
#[derive(Debug)]
pub(crate) enum Command {
    /// Send these, in this order, with nothing between.
    Send(Outgoing),
    /// Deliveries with this name go there from now on.
    Listen {
        name: String,
        deliveries: mpsc::Sender<Delivery>,
    },
    /// Nobody waits for these deliveries any more, and the next connection need not ask for them.
    Forget { name: String },
    /// These credentials were accepted: the next connection begins with them.
    Authenticated { payload: String },
}

/// Events to send.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// The event's name.
    pub(crate) event: Cow<'static, str>,
    /// One payload a packet.
    pub(crate) payloads: Vec<String>,
    /// What the last payload's placeholders stand for.
    pub(crate) attachments: Vec<Bytes>,
    /// Who waits for the answer to the last packet.
    pub(crate) answer: Option<Answer>,
    /// Whether the next connection is told again, and for which subscription.
    pub(crate) keep: Keep,
}

/// Whether the next connection is told again.
#[derive(Debug)]
pub(crate) enum Keep {
    No,
    Yes {
        event: &'static str,
        listens_to: Option<String>,
    },
}

/// Who waits for an answer.
pub(crate) type Answer = oneshot::Sender<Result<Reply, CallError>>;

/// Everything of one client.
pub(crate) struct Task {
    connector: Connector,
    options: Options,
    commands: mpsc::Receiver<Command>,
    /// Turns true, or ends, when the client shall close.
    closing: watch::Receiver<bool>,
    events: broadcast::Sender<Event>,
    calls: HashMap<u64, Answer>,
    next_call: u64,
    subscriptions: HashMap<String, mpsc::Sender<Delivery>>,
    /// A delivery that its subscription has no room for; until it has, nothing is read.
    stalled: Option<(mpsc::Sender<Delivery>, Delivery)>,
    standing: Standing,
    chunks: ChunkAssembler,
    started: Instant,
}

impl Task {
    pub(crate) fn new(
        connector: Connector,
        options: Options,
        commands: mpsc::Receiver<Command>,
        closing: watch::Receiver<bool>,
        events: broadcast::Sender<Event>,
    ) -> Self {
        let limits = ChunkLimits {
            max_bytes: options.max_message_bytes,
            ..ChunkLimits::default()
        };
        Self {
            connector,
            options,
            commands,
            closing,
            events,
            calls: HashMap::new(),
            next_call: 0,
            subscriptions: HashMap::new(),
            stalled: None,
            standing: Standing::default(),
            chunks: ChunkAssembler::new(limits),
            started: Instant::now(),
        }
    }

    /// Serves until the client shall close or there is no connection to be had.
    pub(crate) async fn run(mut self, mut socket: Socket) {
        let mut attempt = 0;
        loop {
            let since = Instant::now();
            let lost = match self.serve(&mut socket).await {
                Ok(()) => {
                    socket.close().await;
                    return;
                }
                Err(lost) => lost,
            };
            self.on_lost(lost);
            if since.elapsed() >= reconnect::STABLE {
                attempt = 0;
            }
            match self.reconnect(&mut attempt).await {
                Some(again) => socket = again,
                None => return,
            }
        }
    }

    /// One connection, from open to lost; Ok when the client closes.
    async fn serve(&mut self, socket: &mut Socket) -> Result<(), Lost> {
        loop {
            let stalled = self.stalled.is_some();
            let deadline = socket.deadline();
            tokio::select! {
                _ = self.closing.changed() => break,
                command = self.commands.recv() => match command {
                    Some(command) => self.on_command(command, socket).await?,
                    None => break,
                },
                frame = socket.next_frame(), if !stalled => {
                    if let Some(incoming) = socket.take(frame).await? {
                        self.on_incoming(incoming)?;
                    }
                }
                () = tokio::time::sleep_until(deadline), if !stalled => {
                    return Err(Lost::Silent);
                }
                () = wait_for_room(self.stalled.as_ref()), if stalled => {
                    self.deliver_stalled();
                    socket.restart_silence();
                }
            }
        }
        // What was asked for before the close still goes out.
        while let Ok(command) = self.commands.try_recv() {
            self.on_command(command, socket).await?;
        }
        Ok(())
    }

    async fn on_command(&mut self, command: Command, socket: &mut Socket) -> Result<(), Lost> {
        match command {
            Command::Send(outgoing) => self.send(outgoing, socket).await,
            Command::Listen { name, deliveries } => {
                self.subscriptions.insert(name, deliveries);
                Ok(())
            }
            Command::Forget { name } => {
                self.subscriptions.remove(&name);
                self.standing.forget(&name);
                Ok(())
            }
            Command::Authenticated { payload } => {
                self.standing.authenticate(payload);
                Ok(())
            }
        }
    }

    async fn send(&mut self, outgoing: Outgoing, socket: &mut Socket) -> Result<(), Lost> {
        let Some(outgoing) = self.keep(outgoing) else {
            return Ok(());
        };
        let id = match outgoing.answer {
            Some(answer) => match self.expect_answer(answer) {
                Some(id) => Some(id),
                None => return Ok(()),
            },
            None => None,
        };
        let name = &*outgoing.event;
        let last = outgoing.payloads.len().saturating_sub(1);
        for (index, payload) in outgoing.payloads.iter().enumerate() {
            let (id, attachments) = if index == last {
                (id, outgoing.attachments.as_slice())
            } else {
                (None, [].as_slice())
            };
            let mut packet = Vec::with_capacity(payload.len() + name.len() + PACKET_OVERHEAD);
            let args = [payload.as_str()];
            write_event(
                &mut packet,
                &self.options.namespace,
                id,
                attachments.len(),
                name,
                &args,
            );
            socket.send(&packet, attachments).await?;
        }
        Ok(())
    }

    /// Notes what the next connection must be told; none when it is too much and the caller was told so.
    fn keep(&mut self, outgoing: Outgoing) -> Option<Outgoing> {
        let Keep::Yes { event, listens_to } = &outgoing.keep else {
            return Some(outgoing);
        };
        let payload = outgoing.payloads.first()?;
        let kept = self.standing.keep(event, payload, listens_to.as_deref());
        if kept.is_ok() {
            return Some(outgoing);
        }
        if let Some(answer) = outgoing.answer {
            // Whoever waited may have gone.
            let _ = answer.send(Err(CallError::TooManyRegistrations { max: MAX_STANDING }));
        }
        None
    }

    /// The id under which the answer will come.
    fn expect_answer(&mut self, answer: Answer) -> Option<u64> {
        if self.calls.len() >= MAX_CALLS {
            self.calls.retain(|_, waiting| !waiting.is_closed());
        }
        if self.calls.len() >= MAX_CALLS {
            // Whoever waited may have gone.
            let _ = answer.send(Err(CallError::TooManyCalls { max: MAX_CALLS }));
            return None;
        }
        self.next_call += 1;
        self.calls.insert(self.next_call, answer);
        Some(self.next_call)
    }

    fn on_lost(&mut self, lost: Lost) {
        for (_, answer) in self.calls.drain() {
            // Whoever waited may have gone.
            let _ = answer.send(Err(CallError::Lost));
        }
        self.stalled = None;
        self.chunks = ChunkAssembler::new(ChunkLimits {
            max_bytes: self.options.max_message_bytes,
            ..ChunkLimits::default()
        });
        self.tell(Event::Disconnected(lost.to_string()));
    }

    fn tell(&self, event: Event) {
        // Nobody need listen.
        let _ = self.events.send(event);
    }

    fn tell_received(&self, received: Received) {
        self.tell(Event::Received(Arc::new(received)));
    }
}

/// Room in the queue of the subscription that stalls the connection.
async fn wait_for_room(stalled: Option<&(mpsc::Sender<Delivery>, Delivery)>) {
    match stalled {
        // A subscription that was dropped has room for everything.
        Some((deliveries, _)) => drop(deliveries.reserve().await),
        None => std::future::pending().await,
    }
}

/// Bytes of a packet around its name and payload.
const PACKET_OVERHEAD: usize = 64;
