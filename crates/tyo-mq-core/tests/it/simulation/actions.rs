//! What producers and consumers of a simulation do, and what must come of it at once.

use std::sync::Arc;

use bytes::Bytes;
use tyo_mq_core::SessionId;
use tyo_mq_core::engine::{
    Command, Input, Lifetime, Publish, Reach, RegisterConsumer, ReplyToken, Subscribe, Unsubscribe,
};

use super::oracle::Verdict;
use super::plan::{EVENTS, PRODUCERS};
use super::world::{Outcome, World};
use crate::matcher::{Known, key_of};

/// An attachment that takes a good part of what a replay sends at a time.
const LARGE: Bytes = Bytes::from_static(&[0; 150_000]);

impl World {
    pub(super) fn publish(&mut self) {
        let session = self.rng.pick(&self.producers);
        let (producer, event) = (self.rng.pick(&PRODUCERS), self.rng.pick(&EVENTS));
        let guaranteed = self.rng.percent(self.plan.guaranteed);
        let lifetime = match self.rng.percent(self.plan.short_ttl) {
            true => Lifetime::Millis(self.rng.pick(&[0, 500, 5_000])),
            false => Lifetime::Unset,
        };
        let names: Vec<usize> = (0..self.clients.len())
            .filter(|_| self.rng.percent(50))
            .collect();
        let recipients = self.rng.percent(5).then_some(names);
        let message = self
            .oracle
            .publish(session, producer, event, recipients.as_deref());
        let names =
            recipients.map(|some| some.iter().map(|it| format!("c{it}")).collect::<Vec<_>>());
        self.say("publish", &(message, producer, event, guaranteed, lifetime));
        self.confirms.insert(message as u64, (session, message));
        // Some fill the buffers of a session at once.
        let large = self.rng.percent(10);
        let attachments: Vec<Bytes> = large.then_some(LARGE).into_iter().collect();
        let publish = Publish {
            event,
            producer,
            producer_id: None,
            body: Bytes::from(message.to_string()),
            attachments: attachments.into(),
            lifetime,
            guaranteed,
            recipients: names
                .as_ref()
                .map(|some| some.iter().map(String::as_str).collect()),
            reach: Reach::Subscribers,
        };
        let outcome = self.feed(Input::Command {
            session,
            command: Command::Publish(publish),
            reply: Some(ReplyToken(message as u64)),
        });
        let expires = lifetime == Lifetime::Millis(0);
        let verdict = self.check_outcome(message, guaranteed, expires, &outcome);
        self.judge(verdict);
    }

    /// Each subscription, and one member of each group, has the message, or it is kept, or nobody is there for it.
    pub(super) fn check_outcome(
        &self,
        message: usize,
        guaranteed: bool,
        expires: bool,
        outcome: &Outcome,
    ) -> Verdict {
        let sent = &self.oracle.sent[message];
        let single = sent.single.iter().map(|target| vec![target.clone()]);
        let groups = sent.groups.iter().map(|(_, members)| members.clone());
        for targets in single.chain(groups) {
            let online = targets
                .iter()
                .any(|(client, _)| self.clients[*client].registered);
            let known = |target: &(usize, Arc<str>)| {
                self.oracle.known.iter().find(|it| it.target() == *target)
            };
            let durable = targets.iter().filter_map(known).any(|it| it.spec.durable);
            let ack = targets.iter().filter_map(known).any(|it| it.spec.ack);
            let given = targets
                .iter()
                .filter(|it| outcome.delivered.contains(it))
                .count();
            let kept = targets
                .iter()
                .filter(|it| outcome.enqueued.contains(it))
                .count();
            let wanted = online || durable || guaranteed;
            let bounded = self.plan.config.limits.max_queued_per_realm.is_some();
            // What is acknowledged may wait in memory; what expires at once, or is too much, is kept nowhere.
            let excused = (online && ack) || expires || bounded;
            let least = usize::from(wanted && !excused);
            let right = given <= 1
                && kept <= 1
                && (given.max(kept) >= least)
                && (given.max(kept) <= usize::from(wanted))
                && (online || given == 0);
            if !right {
                return Err(format!("message {message} for {targets:?}: {outcome:?}"));
            }
        }
        Ok(())
    }

    pub(super) fn client_acts(&mut self) {
        let client = self.rng.index(self.clients.len());
        let Some(session) = self.clients[client].session else {
            return self.connect(client);
        };
        let spec = self.rng.index(self.clients[client].specs.len());
        match self.rng.below(100) {
            it if it < self.plan.client_crashes => {
                self.say("client leaves", &client);
                self.close(session);
            }
            0..40 => self.subscribe(client, spec),
            40..45 => self.unsubscribe(client, session, spec),
            45..55 => self.stall(client, session),
            55..80 => self.drain(session),
            _ => self.register(client),
        }
    }

    pub(super) fn connect(&mut self, client: usize) {
        self.say("client comes", &client);
        let session = self.open();
        self.clients[client].session = Some(session);
        self.consumers.insert(session, client);
        if self.rng.percent(60) {
            self.register(client);
        }
        for spec in 0..self.clients[client].specs.len() {
            if self.calm || self.rng.percent(70) {
                self.subscribe(client, spec);
            }
        }
    }

    pub(super) fn register(&mut self, client: usize) {
        let state = &mut self.clients[client];
        let (Some(session), name) = (state.session, state.name.clone()) else {
            return;
        };
        state.registered = true;
        self.say("register", &client);
        let ask = RegisterConsumer {
            name: &name,
            id: None,
        };
        self.ask(session, Command::RegisterConsumer(ask));
    }

    pub(super) fn subscribe(&mut self, client: usize, spec: usize) {
        let state = &mut self.clients[client];
        let (Some(session), name) = (state.session, state.name.clone()) else {
            return;
        };
        if self.rng.percent(10) {
            state.specs[spec].prefetch = self.rng.pick(&[None, Some(0), Some(1), Some(3)]);
        }
        if self.rng.percent(5) && !self.calm {
            state.specs[spec].durable = !state.specs[spec].durable;
        }
        let spec = state.specs[spec].clone();
        state.registered = true;
        self.say("subscribe", &(client, key_of(&spec)));
        self.oracle.subscribed(Known::new(client, &spec));
        let ask = Subscribe {
            consumer: &name,
            id: None,
            consumer_id: Some(&name),
            spec,
        };
        self.ask(session, Command::Subscribe(ask));
    }

    pub(super) fn unsubscribe(&mut self, client: usize, session: SessionId, spec: usize) {
        if !self.clients[client].registered {
            return;
        }
        let key = key_of(&self.clients[client].specs[spec]);
        self.say("unsubscribe", &(client, &key));
        self.oracle.unsubscribed(&(client, key.clone()));
        self.ask(session, Command::Unsubscribe(Unsubscribe::Key(&key)));
    }

    pub(super) fn stall(&mut self, client: usize, session: SessionId) {
        self.say("stall", &client);
        self.clients[client].stalled = true;
        self.feed(Input::Stalled { session });
    }

    pub(super) fn drain(&mut self, session: SessionId) {
        if let Some(client) = self.consumers.get(&session) {
            self.clients[*client].stalled = false;
            self.say("drain", &session);
            self.feed(Input::Drained { session });
        }
    }

    pub(super) fn requeue(&mut self) {
        let letters = self.store.letters();
        if letters.is_empty() {
            return;
        }
        let id = letters[self.rng.index(letters.len())].stored.id.clone();
        self.say("requeue", &id);
        self.feed(Input::Requeue {
            realm: "default",
            id: id.as_str(),
            reply: None,
        });
    }
}
