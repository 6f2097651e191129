//! What the broker does for a message, without its sockets, so many times: `instructions OPERATION COUNT`. A program that
//! counts instructions takes the difference of two counts. Without arguments it lists the operations.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tyo_mq_codec::engine::{self, Protocol};
use tyo_mq_codec::socket::{
    Connection, Incoming, JsonCheck, Limits, ROOT, Revision, write_event_start,
};
use tyo_mq_codec::websocket::{
    Decoded, Decoder, Event, MAX_HEADER, Opcode, Role, frame_header, write_masked_frame,
};
use tyo_mq_core::Message;
use tyo_mq_core::engine::{
    Command, Delivery, Key, Lifetime, Notice, Publish, Reach, Reply, ReplyToken, RetryPolicy,
    Subscribe, SubscriptionSpec,
};
use tyo_mq_core::memory_store::{MemoryLimits, MemoryStore};
use tyo_mq_core::runtime::{Broker, Flushes, Memo, Outlet, Pressure, RuntimeConfig, Session};
use tyo_mq_protocol::{ClientEvent, Produce, encode_envelope, parse_event, write_receipt};

type Failure = Box<dyn std::error::Error>;

/// Carries out an operation for the n-th time.
type Operation = Box<dyn FnMut(usize)>;

const OPERATIONS: [&str; 7] = [
    "decode", "encode", "route", "topics", "fan-out", "ack", "message",
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, count] = args.as_slice() else {
        OPERATIONS.iter().for_each(|name| println!("{name}"));
        return Ok(());
    };
    let count: usize = count.parse()?;
    let operation = operation(name).await?;
    (0..count).for_each(operation);
    Ok(())
}

async fn operation(name: &str) -> Result<Operation, Failure> {
    Ok(match name {
        "decode" => {
            let mut input = Input::new()?;
            Box::new(move |_| input.produce(|produce| _ = black_box(produce.event.len())))
        }
        "encode" => {
            let (mut encoder, delivery) = (Encoder::default(), delivery());
            Box::new(move |_| {
                encoder.of = None;
                black_box(encoder.frame(black_box(&delivery)).len());
            })
        }
        "route" => routed(10_000, false).await?,
        "topics" => routed(10_000, true).await?,
        "fan-out" => fan_out(100).await?,
        "ack" => acknowledged().await?,
        "message" => whole_message().await?,
        other => return Err(format!("no operation {other}; there are {OPERATIONS:?}").into()),
    })
}

/// One of so many subscriptions of a realm matches, another one each time.
async fn routed(count: usize, topic: bool) -> Result<Operation, Failure> {
    let broker = broker().await?;
    let (producer, consumer) = (Peer::new(&broker, "p"), Peer::new(&broker, "c"));
    let event = |n: usize| match topic {
        true => (format!("dev-{n}/+/set"), format!("dev-{n}/lamp/set")),
        false => (format!("event-{n}"), format!("event-{n}")),
    };
    for n in 0..count {
        consumer.subscribe(&event(n).0, topic, false);
    }
    let events: Vec<String> = (0..count).map(|n| event(n * 7919 % count).1).collect();
    let body = envelope();
    Ok(Box::new(move |n| {
        producer.publish(&events[n % events.len()], body.clone());
        consumer.expect(1);
    }))
}

/// So many subscribers of one event.
async fn fan_out(count: usize) -> Result<Operation, Failure> {
    let broker = broker().await?;
    let producer = Peer::new(&broker, "p");
    let names = (0..count).map(|n| format!("c-{n}"));
    let consumers: Vec<Peer> = names.map(|name| Peer::new(&broker, &name)).collect();
    for consumer in &consumers {
        consumer.subscribe("event", false, false);
    }
    let body = envelope();
    Ok(Box::new(move |_| {
        producer.publish("event", body.clone());
        for consumer in &consumers {
            consumer.expect(1);
        }
    }))
}

/// Published, stored in memory, delivered, acknowledged, forgotten.
async fn acknowledged() -> Result<Operation, Failure> {
    let broker = broker().await?;
    let (producer, consumer) = (Peer::new(&broker, "p"), Peer::new(&broker, "c"));
    consumer.subscribe("event", false, true);
    let body = envelope();
    Ok(Box::new(move |_| {
        producer.publish("event", body.clone());
        let id = consumer.expect(1).expect("the delivery has a receipt");
        consumer.submit(Command::Ack { id: &id }, Some(ReplyToken(0)));
        assert!(consumer.outlet.take().acked, "the broker has taken the ack");
    }))
}

/// From the bytes of a producer's frame to the bytes of a consumer's.
async fn whole_message() -> Result<Operation, Failure> {
    let broker = broker().await?;
    let (producer, consumer) = (Peer::new(&broker, "p"), Peer::new(&broker, "c"));
    consumer.subscribe("event", false, false);
    let mut input = Input::new()?;
    Ok(Box::new(move |_| {
        input.produce(|produce| {
            let mut body = Vec::new();
            encode_envelope(produce, &mut body);
            producer.publish(&produce.event, body.into());
        });
        consumer.expect(1);
    }))
}

const PRODUCE: &str = r#"42["PRODUCE",{"event":"event","message":{"n":123456,"text":"abcdefghijklmnopqrstuvwxyz0123456789"},"from":"p"}]"#;

/// A connection that reads the same frame again and again.
struct Input {
    wire: Vec<u8>,
    buffer: Vec<u8>,
    decoder: Decoder,
    connection: Connection,
}

impl Input {
    fn new() -> Result<Self, Failure> {
        let mut connection = Connection::new(Revision::V5, JsonCheck::Name, Limits::default());
        connection.accept(ROOT, "socket", &mut Vec::new())?;
        let mut wire = Vec::new();
        write_masked_frame(
            &mut wire,
            Opcode::Text,
            true,
            PRODUCE.as_bytes(),
            [1, 2, 3, 4],
        );
        Ok(Self {
            wire,
            buffer: Vec::new(),
            decoder: Decoder::new(Role::Server, 1 << 20),
            connection,
        })
    }

    fn produce(&mut self, then: impl FnOnce(&Produce<'_>)) {
        self.buffer.clone_from(&self.wire);
        let decoded = self.decoder.decode(black_box(&mut self.buffer));
        let Ok(Decoded::Frame {
            event: Some(Event::Text(text)),
            ..
        }) = decoded
        else {
            unreachable!("the frame is whole");
        };
        let Ok(engine::Packet::Text(text)) = engine::decode_text(Protocol::V4, text) else {
            unreachable!("it is a message");
        };
        let Ok(Incoming::Event { args, .. }) = self.connection.receive_text(text) else {
            unreachable!("it is an event");
        };
        let Ok(ClientEvent::Produce(produce)) = parse_event(&args) else {
            unreachable!("it is PRODUCE");
        };
        then(&produce);
    }
}

fn envelope() -> Bytes {
    let mut body = Vec::new();
    let args = PRODUCE.strip_prefix("42").expect("it is an event");
    let Ok(ClientEvent::Produce(produce)) = parse_event(args) else {
        unreachable!("it is PRODUCE");
    };
    encode_envelope(&produce, &mut body);
    body.into()
}

fn delivery() -> Delivery {
    Delivery {
        key: Key::Exact("p-event".into()),
        message: Arc::new(Message {
            event: "event".into(),
            producer: "p".into(),
            body: envelope(),
            attachments: Box::default(),
        }),
        receipt: None,
    }
}

async fn broker() -> Result<Broker, Failure> {
    let config = RuntimeConfig {
        shards: 1,
        ..RuntimeConfig::default()
    };
    let store = Arc::new(MemoryStore::new(MemoryLimits::default()));
    Ok(Broker::start(config, store).await?)
}

/// A client of the broker without a socket.
struct Peer {
    session: Session,
    outlet: Arc<Inbox>,
    name: String,
}

impl Peer {
    fn new(broker: &Broker, name: &str) -> Self {
        let outlet = Arc::new(Inbox::default());
        Self {
            session: broker.open("default", name, outlet.clone()),
            outlet,
            name: name.to_owned(),
        }
    }

    fn submit(&self, command: Command<'_>, reply: Option<ReplyToken>) {
        self.session.submit(command, reply, &mut Flushes::new());
    }

    fn subscribe(&self, event: &str, topic: bool, ack: bool) {
        let spec = SubscriptionSpec {
            producer: if topic { "TYO-MQ-ALL" } else { "p" }.into(),
            event: event.into(),
            all_events: false,
            topic,
            durable: ack,
            ack,
            ack_timeout_ms: None,
            retry: RetryPolicy::default(),
            group: None,
            prefetch: None,
        };
        let (consumer, id) = (&*self.name, Some(&*self.name));
        let subscribe = Subscribe {
            consumer,
            id,
            consumer_id: id,
            spec,
        };
        self.submit(Command::Subscribe(subscribe), None);
    }

    /// Takes what came, which is so many deliveries; the last one's id if it has one.
    fn expect(&self, deliveries: usize) -> Option<Arc<str>> {
        let received = self.outlet.take();
        assert_eq!(received.deliveries, deliveries, "each message arrives");
        received.receipt
    }

    fn publish(&self, event: &str, body: Bytes) {
        let publish = Publish {
            event,
            producer: &self.name,
            producer_id: None,
            body,
            attachments: Box::default(),
            lifetime: Lifetime::Unset,
            guaranteed: false,
            recipients: None,
            reach: Reach::Subscribers,
        };
        self.submit(Command::Publish(publish), None);
    }
}

/// What a client was sent: the bytes, as a connection's buffer has them.
#[derive(Default)]
struct Inbox(Mutex<Received>);

#[derive(Default)]
struct Received {
    wire: Vec<u8>,
    deliveries: usize,
    receipt: Option<Arc<str>>,
    acked: bool,
}

impl Inbox {
    fn with<T>(&self, act: impl FnOnce(&mut Received) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take(&self) -> Received {
        self.with(|received| {
            received.wire.clear();
            Received {
                wire: Vec::new(),
                deliveries: std::mem::take(&mut received.deliveries),
                receipt: received.receipt.take(),
                acked: std::mem::take(&mut received.acked),
            }
        })
    }
}

impl Outlet for Inbox {
    fn deliver(&self, delivery: &Delivery, memo: &mut Memo) -> Pressure {
        let frame = memo.get::<Encoder>().frame(delivery);
        self.with(|received| {
            received.wire.extend_from_slice(frame);
            received.deliveries += 1;
            received.receipt = delivery
                .receipt
                .as_ref()
                .map(|receipt| receipt.id.0.clone());
        });
        Pressure::Flowing
    }

    fn notify(&self, _: &Notice) {}

    fn reply(&self, _: Option<ReplyToken>, reply: Reply, _: &mut Memo) {
        let acked = matches!(reply, Reply::Acked { result: Ok(_), .. });
        self.with(|received| received.acked |= acked);
    }

    fn disconnect(&self) {}

    fn flush(&self) {}

    fn is_flowing(&self) -> bool {
        true
    }
}

/// The frame of the message that was delivered last.
#[derive(Default)]
struct Encoder {
    of: Option<Arc<Message>>,
    buffer: Vec<u8>,
    start: usize,
}

impl Encoder {
    fn frame(&mut self, delivery: &Delivery) -> &[u8] {
        let known = self
            .of
            .as_ref()
            .is_some_and(|of| Arc::ptr_eq(of, &delivery.message));
        if !known {
            self.encode(delivery);
            let shared = delivery.receipt.is_none();
            self.of = shared.then(|| delivery.message.clone());
        }
        &self.buffer[self.start..]
    }

    fn encode(&mut self, delivery: &Delivery) {
        let (Key::Exact(key) | Key::AllOf(key)) = &delivery.key;
        let out = &mut self.buffer;
        out.clear();
        out.extend_from_slice(&[0; MAX_HEADER]);
        out.push(b'4');
        write_event_start(out, ROOT, None, 0, &["CONSUME-", key].concat());
        out.extend_from_slice(&delivery.message.body);
        if let Some(receipt) = &delivery.receipt {
            write_receipt(out, receipt.id.as_str(), receipt.attempt);
        }
        out.extend_from_slice(b"}]");
        let (header, size) = frame_header(Opcode::Text, out.len() - MAX_HEADER);
        self.start = MAX_HEADER - size;
        out[self.start..MAX_HEADER].copy_from_slice(&header[self.start..]);
    }
}
