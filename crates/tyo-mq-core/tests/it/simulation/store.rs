//! The store of a simulation: a memory store behind delays, failures, outages and crashes.

use std::collections::VecDeque;

use tyo_mq_core::engine::StoreToken;
use tyo_mq_core::memory_store::MemoryStore;
use tyo_mq_core::store::{
    DeadLetter, InlineStore, Snapshot, Store, StoreError, StoreOp, StoreReply, StoreResult,
};

use super::plan::Plan;
use super::rng::Rng;
use crate::transcript::{kind, now_or_never};

#[derive(Debug)]
pub(crate) struct SimStore {
    memory: MemoryStore,
    pending: VecDeque<(u64, StoreToken, StoreOp)>,
    answers: VecDeque<(u64, StoreToken, StoreResult)>,
    delay_ms: u64,
    page: usize,
    failing: Vec<(&'static str, u64)>,
    outage_until_ms: u64,
    last_due_ms: u64,
}

/// An operation that was carried out, or failed.
pub(crate) struct Executed {
    pub(crate) op: StoreOp,
    pub(crate) result: StoreResult,
}

impl SimStore {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            memory: MemoryStore::default(),
            pending: VecDeque::new(),
            answers: VecDeque::new(),
            delay_ms: plan.store_delay_ms,
            page: plan.page,
            failing: plan.failing.clone(),
            outage_until_ms: 0,
            last_due_ms: 0,
        }
    }

    pub(crate) fn push(&mut self, now_ms: u64, rng: &mut Rng, token: StoreToken, op: StoreOp) {
        let due_ms = self.due(now_ms, rng);
        self.pending.push_back((due_ms, token, op));
    }

    /// Never before what was given earlier.
    fn due(&mut self, now_ms: u64, rng: &mut Rng) -> u64 {
        let delay_ms = rng.below(self.delay_ms + 1);
        self.last_due_ms = self.last_due_ms.max(now_ms + delay_ms);
        self.last_due_ms
    }

    pub(crate) fn next_due(&self) -> Option<u64> {
        let pending = self.pending.front().map(|(due_ms, ..)| *due_ms);
        let answer = self.answers.front().map(|(due_ms, ..)| *due_ms);
        pending.into_iter().chain(answer).min()
    }

    /// Carries out what is due.
    pub(crate) fn execute_due(&mut self, now_ms: u64, rng: &mut Rng) -> Vec<Executed> {
        let mut executed = Vec::new();
        while self
            .pending
            .front()
            .is_some_and(|(due_ms, ..)| *due_ms <= now_ms)
        {
            let Some((_, token, op)) = self.pending.pop_front() else {
                break;
            };
            let result = self.execute(now_ms, rng, &op);
            // An answer may be as late again; answers keep their order too.
            let last_ms = self.answers.back().map_or(now_ms, |(due_ms, ..)| *due_ms);
            let due_ms = last_ms.max(now_ms + rng.below(self.delay_ms + 1));
            self.answers.push_back((due_ms, token, result.clone()));
            executed.push(Executed { op, result });
        }
        executed
    }

    fn execute(&mut self, now_ms: u64, rng: &mut Rng, op: &StoreOp) -> StoreResult {
        let name = kind(op);
        let failing = self.failing.iter().find(|(failing, _)| *failing == name);
        let percent = failing.map_or(0, |(_, percent)| *percent);
        if now_ms < self.outage_until_ms || (percent > 0 && rng.percent(percent)) {
            return Err(StoreError::Unavailable("simulated".to_owned()));
        }
        let mut op = op.clone();
        if let StoreOp::Fetch { limit, .. } = &mut op {
            *limit = self.page.min(*limit);
        }
        self.memory.execute_now(op)
    }

    pub(crate) fn answer(&mut self, now_ms: u64) -> Option<(StoreToken, StoreResult)> {
        let due = self
            .answers
            .front()
            .is_some_and(|(due_ms, ..)| *due_ms <= now_ms);
        let (_, token, result) = if due { self.answers.pop_front() } else { None }?;
        Some((token, result))
    }

    pub(crate) fn fail_until(&mut self, until_ms: u64) {
        self.outage_until_ms = until_ms;
    }

    /// The broker dies: some of what is under way is still carried out, no answer arrives.
    pub(crate) fn crash(&mut self, now_ms: u64, rng: &mut Rng) -> Vec<Executed> {
        let mut executed = Vec::new();
        for _ in 0..rng.index(self.pending.len() + 1) {
            if let Some((_, _, op)) = self.pending.pop_front() {
                let result = self.execute(now_ms, rng, &op);
                executed.push(Executed { op, result });
            }
        }
        self.pending.clear();
        self.answers.clear();
        executed
    }

    /// From now on nothing fails.
    pub(crate) fn heal(&mut self) {
        self.failing.clear();
        self.outage_until_ms = 0;
        self.delay_ms = self.delay_ms.min(3);
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        now_or_never(self.memory.load()).expect("the memory store always loads")
    }

    pub(crate) fn letters(&self) -> Vec<DeadLetter> {
        let page = now_or_never(self.memory.dead_letters(None, None, usize::MAX));
        page.expect("the memory store always lists").letters
    }
}

/// The answer names a queue that got a letter back.
pub(crate) fn is_requeued(result: &StoreResult) -> bool {
    matches!(result, Ok(StoreReply::Requeued(Some(_))))
}
