//! A stand-in for the broker: sockets, authentication and administration, without messages.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::oneshot;
use tyo_mq_auth::entropy::SystemEntropy;
use tyo_mq_auth::json::{Object, Value};
use tyo_mq_auth::nonce::NonceWindow;
use tyo_mq_auth::{
    Answer, AuthDocument, AuthState, Effect, Execution, Handled, Question, Refusal, ServerView,
    SignedEvent, SocketAuth, Step, outcome_event,
};
use tyo_mq_codec::socket::{
    Connection as SocketState, Incoming, JsonCheck, Limits, ROOT, Revision, write_ack, write_event,
};
use tyo_mq_transport::{
    Application, CloseReason, ConnectInfo, Connection, Engine, EngineConfig, Forbidden, Frame,
    Message, Refused, SendKind, Session,
};

/// A broker that runs.
pub(crate) struct StandIn {
    addr: SocketAddr,
    _stop: oneshot::Sender<()>,
}

#[derive(Clone)]
struct Gateway(Arc<Mutex<Inner>>);

struct Inner {
    auth: AuthState,
    clients: BTreeMap<String, Weak<Connection>>,
    dead_letters: Vec<Object>,
    limits: Object,
    /// It has the commands of the reference and no others.
    is_old: bool,
}

struct Client {
    gateway: Gateway,
    conn: Arc<Connection>,
    state: SocketState,
    auth: SocketAuth,
}

impl StandIn {
    pub(crate) fn start(auth: &str, is_old: bool) -> Self {
        let (document, warnings) = AuthDocument::parse(auth).unwrap();
        assert!(warnings.is_empty());
        let nonces = NonceWindow::restored([], now_ms());
        let dead_letter = |id: &str, realm: &str| {
            Object::new()
                .with("id", id)
                .with("realm", realm)
                .with("event", "order")
                .with("consumer", "mailer\u{1b}[2J")
                .with("message", Object::new().with("n", 1_u64))
                .with("reason", "ack timeout")
        };
        let inner = Inner {
            auth: AuthState::new(document, nonces, Box::new(SystemEntropy::new())),
            clients: BTreeMap::new(),
            dead_letters: vec![dead_letter("m-1", "shop"), dead_letter("m-2", "other")],
            limits: Object::new(),
            is_old,
        };
        let gateway = Gateway(Arc::new(Mutex::new(inner)));
        let (tell_addr, told_addr) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell_addr.send(listener.local_addr().unwrap()).unwrap();
                let engine = Engine::new(EngineConfig::default(), gateway);
                let goodbye = async {
                    // A test that ends ends its broker.
                    let _ = stopped.await;
                };
                tyo_mq_transport::serve(listener, engine.service(Forbidden), goodbye).await;
            });
        });
        Self {
            addr: told_addr.recv().unwrap(),
            _stop: stop,
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Application for Gateway {
    type Session = Client;

    fn open(&self, conn: Arc<Connection>, _: ConnectInfo) -> Client {
        let mut inner = self.0.lock().unwrap();
        inner
            .clients
            .insert(conn.id().to_owned(), Arc::downgrade(&conn));
        Client {
            gateway: self.clone(),
            state: SocketState::new(Revision::V5, JsonCheck::Full, Limits::default()),
            auth: SocketAuth::default(),
            conn,
        }
    }
}

impl Session for Client {
    fn on_message(&mut self, message: Message<'_>) -> Result<(), Refused> {
        let Message::Text(text) = message else {
            return Err(Refused);
        };
        match self.state.receive_text(text).map_err(|_| Refused)? {
            Incoming::Connect {
                namespace: ROOT, ..
            } => {
                let id = self.conn.id().to_owned();
                let mut out = Vec::new();
                self.state.accept(ROOT, &id, &mut out).unwrap();
                send(&self.conn, |buffer| buffer.extend_from_slice(&out));
            }
            Incoming::Event { ack, args, .. } => {
                let args = Value::parse(&args).unwrap();
                let args = args.as_list().unwrap();
                let name = args[0].as_str().unwrap();
                let payload = args.get(1).map(Value::to_json);
                self.on_event(name, payload.as_deref(), ack);
            }
            _ => {}
        }
        Ok(())
    }

    fn on_batch_end(&mut self) {}

    fn on_drained(&mut self) {}

    fn on_close(&mut self, _: CloseReason) {
        let mut inner = self.gateway.0.lock().unwrap();
        inner.clients.remove(self.conn.id());
    }
}

impl Client {
    fn on_event(&mut self, name: &str, payload: Option<&str>, ack: Option<u64>) {
        let gateway = self.gateway.clone();
        let mut inner = gateway.0.lock().unwrap();
        let handled = match (name, SignedEvent::from_name(name)) {
            ("AUTHENTICATION", _) => {
                let step = inner
                    .auth
                    .authenticate(&mut self.auth, payload, PEER, now_ms());
                let Step::Done(outcome) = step else {
                    panic!("no validator is set");
                };
                let (event, payload) = outcome_event(&outcome);
                return emit(&self.conn, event, &payload);
            }
            ("AUTHORIZATION_REQUEST", _) => {
                let id = self.conn.id();
                inner.auth.request_admission(payload, id, PEER, now_ms())
            }
            (_, Some(event)) => inner.signed(event, payload),
            (_, None) => return,
        };
        let Handled { reply, effects } = handled;
        for effect in effects {
            if let Effect::Notify {
                socket,
                event,
                payload,
            } = effect
            {
                let conn = inner.clients.get(&socket).and_then(Weak::upgrade);
                if let Some(conn) = conn {
                    emit(&conn, event, &payload);
                    conn.flush();
                }
            }
        }
        match ack {
            Some(id) => send(&self.conn, |out| {
                write_ack(out, ROOT, id, &[&reply.payload])
            }),
            None => emit(&self.conn, reply.event, &reply.payload),
        }
    }
}

impl Inner {
    fn signed(&mut self, event: SignedEvent, payload: Option<&str>) -> Handled {
        let verified = match self.auth.verify(event, payload, PEER, now_ms()) {
            Ok(verified) => verified,
            Err(refusal) => {
                return Handled {
                    reply: event.refuse(&refusal),
                    effects: Vec::new(),
                };
            }
        };
        if event != SignedEvent::Manage {
            return self.auth.handle_authorization(verified, now_ms());
        }
        if self.is_old && !is_old_command(payload) {
            let refusal = Refusal::new(400, "there is no such command");
            return Handled {
                reply: event.refuse(&refusal),
                effects: Vec::new(),
            };
        }
        let view = ServerView::default();
        match self.auth.execute_command(verified, &view, now_ms()) {
            Execution::Done(handled) => handled,
            Execution::Ask {
                question, pending, ..
            } => {
                let answer = self.answer(question);
                self.auth.finish_command(pending, answer, &view, now_ms())
            }
        }
    }

    fn answer(&mut self, question: Question) -> Answer {
        match question {
            Question::Stats => Answer::Value(stats().into()),
            Question::DlqList { realm } => {
                let realm = realm.as_ref().map(|realm| realm.as_str());
                let found = self.dead_letters.iter().filter(|entry| {
                    realm.is_none_or(|realm| entry.get("realm").unwrap().as_str() == Some(realm))
                });
                let found: Vec<Value> = found.map(|entry| entry.clone().into()).collect();
                Answer::Value(found.into())
            }
            Question::DlqReplay { id, .. } => match self.take_dead_letter(&id) {
                true => Answer::Value(format!("{id}-again").into()),
                false => Answer::Refused(Refusal::new(404, "there is no such dead letter")),
            },
            Question::DlqDiscard { id, .. } => Answer::Value(self.take_dead_letter(&id).into()),
            Question::ListClients { .. } => {
                let clients = self.clients.keys();
                let clients: Vec<Value> = clients
                    .map(|id| Object::new().with("socket", id.as_str()).into())
                    .collect();
                Answer::Value(clients.into())
            }
            Question::DisconnectClient { socket } => {
                match self.clients.get(&socket).and_then(Weak::upgrade) {
                    Some(conn) => {
                        conn.close(CloseReason::ServerClosed);
                        Answer::Value(true.into())
                    }
                    None => Answer::Refused(Refusal::new(404, "there is no such client")),
                }
            }
            Question::SetLimits { limits, .. } => {
                for (name, value) in limits.iter() {
                    self.limits.set(name.as_str().unwrap(), value.clone());
                }
                Answer::Value(self.limits.clone().into())
            }
            Question::GetLimits { .. } => Answer::Value(self.limits.clone().into()),
            Question::ClearRealm(_) | Question::RenameRealm { .. } => {
                Answer::Value(Value::from(0_u64))
            }
            Question::SetPersistence { .. } => Answer::Value(Value::from("now")),
            _ => Answer::Done,
        }
    }

    fn take_dead_letter(&mut self, id: &str) -> bool {
        let before = self.dead_letters.len();
        self.dead_letters
            .retain(|entry| entry.get("id").unwrap().as_str() != Some(id));
        self.dead_letters.len() < before
    }
}

fn is_old_command(payload: Option<&str>) -> bool {
    let Ok(Value::Object(payload)) = Value::parse(payload.unwrap()) else {
        return false;
    };
    let body = payload.get("body").and_then(Value::as_object).unwrap();
    let command = body.get("command").and_then(Value::as_str).unwrap();
    let new = ["list_realms", "list_tokens", "list_requests", "audit"];
    !new.contains(&command)
}

fn stats() -> Object {
    let count = |online: u64, total: u64| Object::new().with("total", total).with("online", online);
    let shop = Object::new()
        .with("producers", count(1, 3))
        .with("consumers", count(2, 2))
        .with("subscriptions", 5_u64);
    Object::new()
        .with("realms", Object::new().with("shop", shop))
        .with("connections_current", 4_u64)
}

fn emit(conn: &Connection, event: &str, payload: &str) {
    send(conn, |out| {
        write_event(out, ROOT, None, 0, event, &[payload])
    });
}

fn send(conn: &Connection, write: impl FnOnce(&mut Vec<u8>)) {
    conn.send(&Frame::text(write), SendKind::Keep);
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
