//! The world of a simulation: engine, store, clock and clients, one step after the other.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tyo_mq_core::engine::{Command, Delivery, Input, Now, Output, Reply, ReplyToken, Usage};
use tyo_mq_core::store::StoreOp;
use tyo_mq_core::{Engine, MessageId, SessionId};

use super::client::{Client, Todo};
use super::message::number;
use super::oracle::{Oracle, Verdict};
use super::plan::{AWAY_MS, Plan};
use super::rng::Rng;
use super::store::{Executed, SimStore};
use crate::matcher::key_text;

pub(crate) struct World {
    pub(super) seed: u64,
    pub(super) step: u64,
    pub(super) rng: Rng,
    pub(super) plan: Plan,
    pub(super) engine: Engine,
    pub(super) store: SimStore,
    pub(super) now: Now,
    pub(super) clients: Vec<Client>,
    pub(super) producers: Vec<SessionId>,
    pub(super) consumers: HashMap<SessionId, usize>,
    pub(super) agenda: BTreeMap<(u64, u64), Todo>,
    pub(super) oracle: Oracle,
    /// Message number of each confirm that is awaited.
    pub(super) confirms: HashMap<u64, (SessionId, usize)>,
    next_slot: u32,
    next_todo: u64,
    /// All outputs so far.
    story: DefaultHasher,
    loud: bool,
    /// Everybody behaves, to see whether everything comes to its end.
    pub(super) calm: bool,
}

/// What came out for one published message, at once.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) delivered: Vec<(usize, Arc<str>)>,
    pub(super) enqueued: Vec<(usize, Arc<str>)>,
}

impl World {
    pub(crate) fn new(seed: u64, loud: bool) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::new(seed, &mut rng);
        let specs = plan.consumers.iter().cloned().enumerate();
        let clients = specs
            .map(|(number, specs)| Client::new(number, specs))
            .collect();
        if loud {
            println!("{plan:#?}");
        }
        Self {
            seed,
            step: 0,
            engine: Engine::new(plan.config.clone()),
            store: SimStore::new(&plan),
            now: Now {
                mono_ms: 1_000,
                wall_ms: 1_700_000_000_000,
            },
            clients,
            producers: Vec::new(),
            consumers: HashMap::new(),
            agenda: BTreeMap::new(),
            oracle: Oracle::default(),
            confirms: HashMap::new(),
            next_slot: 0,
            next_todo: 0,
            story: DefaultHasher::new(),
            loud,
            calm: false,
            rng,
            plan,
        }
    }

    /// Runs to the end; returns a digest of everything that came out.
    pub(crate) fn run(mut self) -> u64 {
        self.open_producers();
        for step in 0..self.plan.steps {
            self.step = step;
            self.act();
        }
        self.come_to_rest();
        self.leave_nothing();
        self.story.finish()
    }

    fn act(&mut self) {
        match self.rng.below(100) {
            0..40 => self.publish(),
            40..65 => self.client_acts(),
            65..67 if self.plan.clock_jumps => {
                let jump = self.rng.below(1_200_000) as i64 - 600_000;
                self.say("clock jumps", &jump);
                self.now.wall_ms = self.now.wall_ms.saturating_add_signed(jump);
            }
            67..68 if !self.plan.failing.is_empty() => {
                let until_ms = self.now.mono_ms + self.rng.below(5_000);
                self.say("the store is away until", &until_ms);
                self.store.fail_until(until_ms);
            }
            68..69 => self.requeue(),
            69..72 => {
                let place = self.rng.index(self.producers.len());
                self.close(self.producers[place]);
                self.producers[place] = self.open();
            }
            _ => {
                let passed_ms = self.rng.pick(&[0, 1, 10, 100, 400, 2_000, 20_000]);
                let passed_ms = self.rng.below(passed_ms + 1);
                self.advance(passed_ms);
            }
        }
        if self.rng.below(1_000) < self.plan.crashes {
            self.crash();
        }
    }

    fn open_producers(&mut self) {
        self.producers = (0..2).map(|_| self.open()).collect();
    }

    pub(super) fn open(&mut self) -> SessionId {
        let session = SessionId::new(self.next_slot, 0);
        self.next_slot += 1;
        let socket = format!("s{}", self.next_slot);
        self.feed(Input::Opened {
            session,
            realm: "default",
            socket: &socket,
        });
        session
    }

    pub(super) fn close(&mut self, session: SessionId) {
        self.oracle.closed(session);
        if let Some(client) = self.consumers.remove(&session) {
            self.clients[client].disconnected();
        }
        self.feed(Input::Closed { session });
    }

    fn crash(&mut self) {
        self.say("the broker dies", &self.now.mono_ms.clone());
        let executed = self.store.crash(self.now.mono_ms, &mut self.rng);
        self.carried_out(&executed);
        self.plan.config.seed += 1;
        self.engine = Engine::new(self.plan.config.clone());
        self.agenda.clear();
        self.confirms.clear();
        self.consumers.clear();
        for client in &mut self.clients {
            client.disconnected();
        }
        let snapshot = self.store.snapshot();
        self.oracle.restarted(&snapshot);
        self.feed(Input::Loaded(snapshot));
        self.open_producers();
    }

    /// Lets time pass, with everything that falls due.
    pub(super) fn advance(&mut self, passed_ms: u64) {
        let end_ms = self.now.mono_ms + passed_ms;
        loop {
            let todo = self
                .agenda
                .first_key_value()
                .map(|((due_ms, _), _)| *due_ms);
            let due = [self.engine.deadline(), self.store.next_due(), todo];
            let next_ms = due
                .into_iter()
                .flatten()
                .min()
                .filter(|due_ms| *due_ms <= end_ms);
            self.move_clock(next_ms.unwrap_or(end_ms));
            if next_ms.is_none() {
                return;
            }
            self.run_store();
            if self
                .engine
                .deadline()
                .is_some_and(|due_ms| due_ms <= self.now.mono_ms)
            {
                self.feed(Input::Timeout);
            }
            while let Some(entry) = self.agenda.first_entry() {
                if entry.key().0 > self.now.mono_ms {
                    break;
                }
                let todo = entry.remove();
                self.do_now(todo);
            }
        }
    }

    fn move_clock(&mut self, to_ms: u64) {
        let passed_ms = to_ms.saturating_sub(self.now.mono_ms);
        self.now.mono_ms += passed_ms;
        self.now.wall_ms += passed_ms;
    }

    fn do_now(&mut self, todo: Todo) {
        match todo {
            Todo::Drain { session } => self.drain(session),
            Todo::Ack { session, id } => {
                if self.consumers.contains_key(&session) {
                    self.say("ack", &id);
                    self.ask(session, Command::Ack { id: id.as_str() });
                }
            }
        }
    }

    fn later(&mut self, wait_ms: u64, todo: Todo) {
        self.next_todo += 1;
        self.agenda
            .insert((self.now.mono_ms + wait_ms, self.next_todo), todo);
    }

    pub(super) fn ask(&mut self, session: SessionId, command: Command<'_>) {
        self.feed(Input::Command {
            session,
            command,
            reply: None,
        });
    }

    /// Gives an input to the engine, and what follows at once; returns what the input itself brought.
    pub(super) fn feed(&mut self, input: Input<'_>) -> Outcome {
        let outcome = self.handle(input);
        self.run_store();
        outcome
    }

    fn run_store(&mut self) {
        loop {
            let executed = self.store.execute_due(self.now.mono_ms, &mut self.rng);
            self.carried_out(&executed);
            match self.store.answer(self.now.mono_ms) {
                Some((token, result)) => _ = self.handle(Input::Stored { token, result }),
                None if executed.is_empty() => return,
                None => {}
            }
        }
    }

    fn carried_out(&mut self, executed: &[Executed]) {
        for executed in executed {
            if self.loud {
                let failed = if executed.result.is_err() {
                    " FAILED"
                } else {
                    ""
                };
                println!("      store: {:?}{failed}", brief(&executed.op));
            }
            self.oracle.executed(executed);
        }
    }

    fn handle(&mut self, input: Input<'_>) -> Outcome {
        let acking = match &input {
            Input::Command {
                command: Command::Ack { id },
                ..
            } => Some(MessageId::from(*id)),
            _ => None,
        };
        self.oracle.begin(acking.as_ref());
        let mut out = Vec::new();
        self.engine.handle(self.now, input, &mut out);
        let mut outcome = Outcome::default();
        for output in out {
            let verdict = self.take(output, &mut outcome);
            self.judge(verdict);
        }
        outcome
    }

    fn take(&mut self, output: Output, outcome: &mut Outcome) -> Verdict {
        match output {
            Output::Deliver { session, delivery } => self.delivered(session, &delivery, outcome),
            Output::FanOut { sessions, delivery } => sessions
                .iter()
                .try_for_each(|session| self.delivered(*session, &delivery, outcome)),
            Output::Reply { reply, token, .. } => self.replied(&reply, token),
            Output::Pace { session } => {
                let wait_ms = self.rng.below(50);
                self.later(wait_ms, Todo::Drain { session });
                Ok(())
            }
            Output::Store { token, op } => {
                self.tell(&brief(&op));
                if let StoreOp::Enqueue(row) = &op {
                    outcome.enqueued.push(self.oracle.target(&row.queue));
                }
                let verdict = self.oracle.asked(self.now, &op);
                self.store.push(self.now.mono_ms, &mut self.rng, token, op);
                verdict
            }
            Output::Disconnect { .. } => Err("nobody is to be disconnected".to_owned()),
            Output::Notify { .. } | Output::Requeued { .. } | Output::Renamed { .. } => Ok(()),
        }
    }

    fn delivered(
        &mut self,
        session: SessionId,
        delivery: &Delivery,
        outcome: &mut Outcome,
    ) -> Verdict {
        let key = key_text(&delivery.key);
        let message = number(&delivery.message.body);
        let receipt = delivery.receipt.as_ref();
        self.tell(&("deliver", session, &key, message, receipt));
        let Some(&client) = self.consumers.get(&session) else {
            return Err(format!(
                "message {message} is given to {session:?}, who is nobody"
            ));
        };
        let target = (client, key);
        outcome.delivered.push(target.clone());
        self.oracle
            .delivered(self.now, session, target, message, receipt)?;
        let Some(receipt) = receipt else {
            return Ok(());
        };
        if self.clients[client].stalled {
            return Err(format!(
                "message {message} is given to client {client}, who is stalled"
            ));
        }
        self.plan_ack(session, receipt.id.clone());
        Ok(())
    }

    fn plan_ack(&mut self, session: SessionId, id: MessageId) {
        let (soon, late) = self.plan.acks;
        let wait_ms = match self.rng.below(100) {
            _ if self.calm => 0,
            it if it < soon => self.rng.below(50),
            it if it < soon + late => self.rng.below(2_500),
            _ => return,
        };
        self.later(wait_ms, Todo::Ack { session, id });
    }

    fn replied(&mut self, reply: &Reply, token: Option<ReplyToken>) -> Verdict {
        self.tell(reply);
        match reply {
            Reply::Acked { id, result } => match result {
                Ok(()) => self.oracle.acked(id, true),
                Err(tyo_mq_core::engine::AckError::Store(_)) => self.oracle.acked(id, false),
                Err(_) => Ok(()),
            },
            Reply::Published(result) => {
                let token = token.map_or(u64::MAX, |token| token.0);
                let Some((_, message)) = self.confirms.remove(&token) else {
                    return Err("a confirm that nobody awaits".to_owned());
                };
                match result {
                    Ok(published) => self.oracle.confirmed(message, published.queued),
                    Err(_) => Ok(()),
                }
            }
            Reply::Unsubscribed { .. } => Ok(()),
        }
    }

    /// Nothing fails any longer, everybody is there and acknowledges: all that is kept arrives.
    fn come_to_rest(&mut self) {
        self.say("come to rest", &self.now.mono_ms.clone());
        self.store.heal();
        self.calm = true;
        for client in 0..self.clients.len() {
            match self.clients[client].session {
                None => self.connect(client),
                Some(session) => {
                    self.drain(session);
                    for spec in 0..self.clients[client].specs.len() {
                        self.subscribe(client, spec);
                    }
                }
            }
        }
        for _ in 0..20 {
            self.advance(10_000);
        }
        let queues = self.store.snapshot().queues;
        let usage = self.engine.usage();
        let left = Usage {
            realms: 1,
            sessions: usage.sessions,
            producers: usage.producers,
            consumers: usage.consumers,
            subscriptions: usage.subscriptions,
            queues: usage.queues,
            ..Usage::default()
        };
        if !queues.is_empty() || usage != left || !self.confirms.is_empty() {
            let confirms = self.confirms.len();
            self.judge(Err(format!("left over: {queues:?} {usage:?} {confirms}")));
        }
    }

    /// Everybody leaves for good: nothing remains.
    fn leave_nothing(&mut self) {
        self.say("leave", &self.now.mono_ms.clone());
        let sessions = self.clients.iter().filter_map(|client| client.session);
        let sessions: Vec<SessionId> = sessions.chain(self.producers.clone()).collect();
        for session in sessions {
            self.close(session);
        }
        self.advance(AWAY_MS + 2 * 60_000);
        let (usage, snapshot) = (self.engine.usage(), self.store.snapshot());
        if usage != Usage::default() || snapshot != Default::default() {
            self.judge(Err(format!("remains: {usage:?} {snapshot:?}")));
        }
    }

    pub(super) fn judge(&self, verdict: Verdict) {
        if let Err(broken) = verdict {
            panic!(
                "seed {}, step {}, {} ms: {broken}\n(TYO_MQ_SIM_SEED={} shows it)",
                self.seed, self.step, self.now.mono_ms, self.seed
            );
        }
    }

    /// An output, for the story.
    fn tell(&mut self, what: &dyn Debug) {
        let text = format!("{what:?}");
        text.hash(&mut self.story);
        if self.loud {
            println!("   {} {text}", self.now.mono_ms);
        }
    }

    /// What is done, for who reads.
    pub(super) fn say(&self, what: &str, detail: &dyn Debug) {
        if self.loud {
            println!("{} {} {what} {detail:?}", self.step, self.now.mono_ms);
        }
    }
}

/// An operation in short.
fn brief(op: &StoreOp) -> String {
    match op {
        StoreOp::Enqueue(row) => format!(
            "enqueue {} {} {}",
            row.id,
            number(&row.message.body),
            row.queue.consumer
        ),
        StoreOp::PutSubscription(sub) => format!("put {} {}", sub.queue.key, sub.consumer_name),
        StoreOp::DeadLetter(letter) => format!("bury {} {}", letter.stored.id, letter.reason),
        StoreOp::Fetch { queue, after, .. } => {
            format!("fetch {} {} {after:?}", queue.key, queue.consumer)
        }
        other => format!("{other:?}"),
    }
}
