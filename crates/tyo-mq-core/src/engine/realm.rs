//! What a realm consists of: sessions, registrations, subscriptions, queues. Structure only; behaviour is beside.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use slab::Slab;

use super::clock::{Now, Timers};
use super::config::Config;
use super::ids::Ids;
use super::input::{Lifetime, RealmPolicy, ReplyToken, StoreToken, SubscriptionSpec};
use super::output::{Key, Output, PublishError};
use super::queue::{Entry, Queue};
use super::roster::Roster;
use super::route::Routes;
use super::settle::{Departure, SubscriptionName, Unsettled};
use super::tally::EventCounts;
use super::topics::TopicTree;
use super::{ANY_PRODUCER_KEY, Counters};
use crate::message::{MessageId, SessionId};
use crate::store::{QueueKey, StoreOp};

/// The unit of isolation. Every index lives and dies with it.
#[derive(Debug)]
pub(crate) struct Realm {
    pub(crate) index: usize,
    pub(crate) name: Arc<str>,
    /// The name that it had, until the store has followed.
    pub(crate) renamed_from: Option<Arc<str>>,
    pub(crate) policy: RealmPolicy,
    pub(crate) sessions: HashMap<SessionId, Session>,
    pub(crate) producers: Slab<Producer>,
    pub(crate) producer_names: HashMap<Arc<str>, usize>,
    /// Producers by their name in lower case.
    pub(crate) producer_folds: HashMap<Arc<str>, Vec<usize>>,
    pub(crate) consumers: Slab<Consumer>,
    pub(crate) consumer_names: HashMap<Arc<str>, usize>,
    pub(crate) subs: Slab<Subscription>,
    /// Subscriptions that name an event or pattern, by key, in order of arrival.
    pub(crate) by_key: HashMap<Arc<str>, Roster>,
    /// Subscriptions to all events, by producer in lower case.
    pub(crate) all_events: HashMap<Arc<str>, Roster>,
    /// Subscriptions by named producer in lower case: whom its coming and going concerns.
    pub(crate) by_producer: HashMap<Arc<str>, Roster>,
    pub(crate) topics: TopicTree,
    pub(crate) groups: HashMap<Arc<str>, Group>,
    pub(crate) queues: Slab<Queue>,
    pub(crate) queue_names: HashMap<Arc<str>, HashMap<Arc<str>, usize>>,
    /// Deliveries that wait for an acknowledgement: queue and slot.
    pub(crate) tracked: HashMap<MessageId, (usize, usize)>,
    pub(crate) confirms: Slab<Confirm>,
    /// Messages in the store.
    pub(crate) stored: u64,
    /// Rows given to the store since the start.
    pub(crate) rows: u64,
    /// The look for expired messages that is under way.
    pub(crate) purge: Option<Purge>,
    pub(crate) unsettled: Unsettled,
    /// Window of subscriptions that name none.
    pub(crate) default_prefetch: u32,
    pub(crate) publications: u64,
    pub(crate) routes: Routes,
    pub(crate) next_order: u64,
    pub(crate) counters: Counters,
    /// Messages accepted, by event.
    pub(crate) produced: EventCounts,
    /// Copies handed to sessions, by subscription key.
    pub(crate) delivered: EventCounts,
    /// It is counted under its own name.
    pub(crate) has_label: bool,
}

/// A connected client.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) socket: Arc<str>,
    pub(crate) producers: Vec<usize>,
    pub(crate) consumers: Vec<usize>,
    /// The outbound queue is full: nothing that can wait is sent.
    pub(crate) stalled: bool,
    /// A replay waits for `Drained`.
    pub(crate) paced: bool,
    /// Bytes that replays sent since the last `Drained`.
    pub(crate) burst: usize,
}

impl Session {
    /// How many names it holds.
    pub(crate) fn names(&self) -> usize {
        self.producers.len() + self.consumers.len()
    }
}

/// A producer name.
#[derive(Debug)]
pub(crate) struct Producer {
    pub(crate) name: Arc<str>,
    pub(crate) id: Option<Arc<str>>,
    pub(crate) session: Option<SessionId>,
    pub(crate) offline_since_ms: u64,
    pub(crate) default_ttl: Lifetime,
    /// Consumers that were announced to it, with their unique numbers.
    pub(crate) audience: BTreeMap<usize, u64>,
}

/// A consumer name.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) name: Arc<str>,
    /// Never given twice in a realm, unlike its index.
    pub(crate) unique: u64,
    pub(crate) id: Arc<str>,
    pub(crate) session: Option<SessionId>,
    pub(crate) offline_since_ms: u64,
    /// How long it had been away when the broker started.
    pub(crate) away_before_ms: u64,
    pub(crate) subs: Roster,
}

impl Consumer {
    /// How long it has been away, if it is.
    pub(crate) fn away_ms(&self, now: Now) -> u64 {
        let here_ms = now.mono_ms.saturating_sub(self.offline_since_ms);
        here_ms.saturating_add(self.away_before_ms)
    }
}

/// One subscription: identified by its key and its consumer's name.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) consumer: usize,
    pub(crate) key: Arc<str>,
    pub(crate) producer_lower: Arc<str>,
    pub(crate) event_lower: Arc<str>,
    pub(crate) consumer_id: Arc<str>,
    pub(crate) spec: SubscriptionSpec,
    /// The producer has been told.
    pub(crate) announced: bool,
    /// The consumer is back but has not subscribed: it takes what waits from this moment on.
    pub(crate) resume_at_ms: Option<u64>,
    pub(crate) queue: Option<usize>,
    pub(crate) in_flight: u32,
    /// Where its deliveries are counted.
    pub(crate) counter: usize,
    /// Order of arrival in the realm.
    pub(crate) order: u64,
}

impl Subscription {
    pub(crate) fn any_producer(&self) -> bool {
        &*self.spec.producer == super::ANY_PRODUCER
    }

    pub(crate) fn delivery_key(&self) -> Key {
        if self.spec.all_events {
            Key::AllOf(self.producer_lower.clone())
        } else {
            Key::Exact(self.key.clone())
        }
    }
}

/// A consumer group.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) members: Vec<usize>,
    /// Whose turn it is, by the key of the first candidate.
    pub(crate) turns: HashMap<Arc<str>, u64>,
}

/// A publication whose rows are not all stored yet.
#[derive(Debug)]
pub(crate) struct Confirm {
    pub(crate) session: SessionId,
    pub(crate) token: ReplyToken,
    pub(crate) id: MessageId,
    pub(crate) routed: usize,
    pub(crate) queued: usize,
    pub(crate) waiting: usize,
    pub(crate) error: Option<PublishError>,
}

/// What realm code needs besides the realm: the moment, the exits and what realms share.
pub(crate) struct Context<'a> {
    pub(crate) now: Now,
    pub(crate) out: &'a mut Vec<Output>,
    pub(crate) config: &'a Config,
    pub(crate) timers: &'a mut Timers,
    pub(crate) ids: &'a mut Ids,
    pub(crate) ledger: &'a mut Ledger,
}

impl Context<'_> {
    /// Emits a store operation and remembers what its result is for.
    pub(crate) fn store(&mut self, realm: usize, op: StoreOp, purpose: Purpose) {
        let token = self.ledger.open(realm, purpose);
        self.out.push(Output::Store { token, op });
    }
}

/// Store operations under way. They mostly end in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The token of the first of them.
    first: u64,
    open: VecDeque<Option<(usize, Purpose)>>,
    len: usize,
    /// How many are of each realm, by its place.
    by_realm: Vec<usize>,
}

impl Ledger {
    fn open(&mut self, realm: usize, purpose: Purpose) -> StoreToken {
        let token = StoreToken(self.first + self.open.len() as u64);
        self.open.push_back(Some((realm, purpose)));
        self.len += 1;
        if realm >= self.by_realm.len() {
            self.by_realm.resize(realm + 1, 0);
        }
        self.by_realm[realm] += 1;
        token
    }

    pub(crate) fn close(&mut self, token: StoreToken) -> Option<(usize, Purpose)> {
        let place = usize::try_from(token.0.checked_sub(self.first)?).ok()?;
        let closed = self.open.get_mut(place)?.take()?;
        while matches!(self.open.front(), Some(None)) {
            self.open.pop_front();
            self.first += 1;
        }
        self.len -= 1;
        self.by_realm[closed.0] -= 1;
        Some(closed)
    }

    /// Nothing of this realm is under way.
    pub(crate) fn is_idle(&self, realm: usize) -> bool {
        self.by_realm.get(realm).is_none_or(|count| *count == 0)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// What the result of a store operation is for. Queues are named with their unique number, for they may be gone.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A message was to be kept.
    Enqueue {
        queue: QueueRef,
        id: MessageId,
        row: u64,
        confirm: Option<usize>,
    },
    /// An acknowledged message was to be forgotten.
    Ack {
        queue: Arc<QueueKey>,
        entry: Box<Entry>,
        session: SessionId,
        token: Option<ReplyToken>,
    },
    /// A page of a queue.
    Fetch { queue: QueueRef, round: u64 },
    /// Expired messages were looked for.
    Purge,
    /// A dead letter goes back.
    Requeue {
        id: MessageId,
        token: Option<ReplyToken>,
    },
    /// A message that is done with was to leave its queue.
    Depart {
        id: MessageId,
        departure: Departure,
        era: u64,
    },
    /// A durable subscription was to be kept or forgotten.
    Subscription(Box<SubscriptionName>),
    /// The realm was to be put under its new name.
    Rename { token: Option<ReplyToken> },
    /// Nothing depends on it.
    Note,
}

/// A look for expired messages.
#[derive(Debug)]
pub(crate) struct Purge {
    /// The wall clock that it goes by.
    pub(crate) now_ms: u64,
    /// The last row given to the store before.
    pub(crate) rows: u64,
    /// How many of those that it finds were done with meanwhile, by the unique number of their queue.
    pub(crate) settled: HashMap<u64, u64>,
}

/// A queue that may be gone when the reference is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueRef {
    pub(crate) index: usize,
    pub(crate) unique: u64,
}

impl Realm {
    pub(crate) fn new(index: usize, name: Arc<str>, default_prefetch: u32) -> Self {
        Self {
            index,
            name,
            renamed_from: None,
            policy: RealmPolicy::default(),
            sessions: HashMap::new(),
            producers: Slab::new(),
            producer_names: HashMap::new(),
            producer_folds: HashMap::new(),
            consumers: Slab::new(),
            consumer_names: HashMap::new(),
            subs: Slab::new(),
            by_key: HashMap::new(),
            all_events: HashMap::new(),
            by_producer: HashMap::new(),
            topics: TopicTree::default(),
            groups: HashMap::new(),
            queues: Slab::new(),
            queue_names: HashMap::new(),
            tracked: HashMap::new(),
            confirms: Slab::new(),
            stored: 0,
            rows: 0,
            purge: None,
            unsettled: Unsettled::default(),
            default_prefetch,
            publications: 0,
            routes: Routes::default(),
            next_order: 0,
            counters: Counters::default(),
            produced: EventCounts::default(),
            delivered: EventCounts::default(),
            has_label: false,
        }
    }

    /// Nothing in it is worth keeping.
    pub(crate) fn is_unused(&self) -> bool {
        self.sessions.is_empty()
            && self.producers.is_empty()
            && self.consumers.is_empty()
            && self.queues.is_empty()
            && self.confirms.is_empty()
            && self.unsettled.is_empty()
            && self.policy.allow_anonymous.is_none()
    }

    pub(crate) fn live_session(&self, id: Option<SessionId>) -> Option<&Session> {
        id.and_then(|id| self.sessions.get(&id))
    }

    /// Sessions with a registration, each once, in order of registration.
    pub(crate) fn registered_sessions(&self) -> Vec<SessionId> {
        let producers = self
            .producers
            .iter()
            .filter_map(|(_, producer)| producer.session);
        let consumers = self
            .consumers
            .iter()
            .filter_map(|(_, consumer)| consumer.session);
        let mut seen = HashSet::new();
        producers
            .chain(consumers)
            .filter(|session| seen.insert(*session))
            .collect()
    }
}

/// `lower(producer-event)`, the subscription key.
pub(crate) fn subscription_key(producer: &str, event: &str) -> String {
    let mut key = String::with_capacity(producer.len() + 1 + event.len());
    push_lower(&mut key, producer);
    key.push('-');
    push_lower(&mut key, event);
    key
}

/// How the key of a subscription to all events of a producer ends.
pub(crate) const ALL_EVENTS_SUFFIX: &str = "-tm-all";

/// `lower(TYO-MQ-ALL-event)`.
pub(crate) fn any_producer_key(event: &str) -> String {
    let mut key = String::with_capacity(ANY_PRODUCER_KEY.len() + 1 + event.len());
    key.push_str(ANY_PRODUCER_KEY);
    key.push('-');
    push_lower(&mut key, event);
    key
}

/// Unicode lower case; text without capitals, the usual case, costs no second pass.
fn push_lower(out: &mut String, text: &str) {
    if text.is_ascii() {
        let start = out.len();
        out.push_str(text);
        out[start..].make_ascii_lowercase();
    } else {
        out.push_str(&text.to_lowercase());
    }
}

/// Unicode lower case of a name.
pub(crate) fn lower(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_lower(&mut out, text);
    out
}
