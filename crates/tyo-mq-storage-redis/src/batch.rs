//! Operations that a script carries out together: their arguments, and its answers.

use fred::types::Value;
use tyo_mq_core::store::{
    DurableSubscription, Position, QueueKey, StoreError, StoreOp, StoreReply, StoreResult,
    StoredMessage,
};
use tyo_mq_storage::{encode_json_letter, encode_json_row, encode_spec};

use crate::connection::Connection;
use crate::error::{told, unexpected};
use crate::keys::{Keys, encode, encode_queue};
use crate::script::BATCH;

/// The most operations of one script; others wait meanwhile.
const MAX_OPS: usize = 500;

/// The most bytes of one script's arguments, a last message apart.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The last moment that JavaScript can date. What expires later is as good as kept for ever.
const MAX_MOMENT_MS: u64 = 8_640_000_000_000_000;

/// Operations for one script.
pub(crate) struct Batch<'a> {
    keys: &'a Keys,
    keep_expired_ms: u64,
    args: Vec<Value>,
    kinds: Vec<Kind>,
    scores: usize,
    bytes: usize,
}

/// What an operation's answer becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Enqueue,
    Other,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(keys: &'a Keys, keep_expired_ms: u64) -> Self {
        Self {
            keys,
            keep_expired_ms,
            args: Vec::new(),
            kinds: Vec::new(),
            scores: 0,
            bytes: 0,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.kinds.len() >= MAX_OPS || self.bytes >= MAX_BYTES
    }

    /// Takes an operation, or gives it back if it needs more than one step.
    pub(crate) fn push(&mut self, op: StoreOp) -> Option<StoreOp> {
        match op {
            StoreOp::Enqueue(stored) => {
                let row = encode_json_row(&stored);
                self.op("E", Kind::Enqueue);
                self.message(&stored, row);
                self.text(stored.attempts.to_string());
                self.scores += 1;
            }
            StoreOp::Remove { queue, id } => {
                self.op("R", Kind::Other);
                self.place(&queue, id.as_str());
            }
            StoreOp::SetAttempts {
                queue,
                id,
                attempts,
            } => {
                self.op("A", Kind::Other);
                self.place(&queue, id.as_str());
                self.text(attempts.to_string());
            }
            StoreOp::DeadLetter(letter) => {
                self.op("D", Kind::Other);
                self.place(&letter.stored.queue, letter.stored.id.as_str());
                self.text(encode_json_letter(&letter));
                self.scores += 1;
            }
            StoreOp::PutSubscription(subscription) => self.put_subscription(&subscription),
            StoreOp::RemoveSubscription {
                queue,
                consumer_name,
            } => self.remove_subscription(&queue, &consumer_name),
            StoreOp::Fetch { .. }
            | StoreOp::PurgeExpired { .. }
            | StoreOp::Requeue { .. }
            | StoreOp::PurgeRealm { .. }
            | StoreOp::RenameRealm { .. } => return Some(op),
        }
        None
    }

    /// A dead letter, given as its text, goes back as a message.
    pub(crate) fn push_requeue(&mut self, stored: &StoredMessage, letter: String) {
        let row = encode_json_row(stored);
        self.op("Q", Kind::Other);
        self.message(stored, row);
        self.text(letter);
        self.scores += 1;
    }

    /// A dead letter goes.
    pub(crate) fn push_discard(&mut self, realm: &str, id: &str) {
        self.op("K", Kind::Other);
        self.text(encode(realm));
        self.text(id.to_owned());
    }

    /// Runs everything and appends the results.
    pub(crate) async fn run(self, connection: &Connection, results: &mut Vec<StoreResult>) {
        if self.kinds.is_empty() {
            return;
        }
        let kinds = self.kinds.clone();
        match self.answers(connection, true).await {
            Ok(answers) => results.extend(
                kinds
                    .iter()
                    .zip(answers)
                    .map(|(kind, answer)| kind.result(answer)),
            ),
            Err(error) => results.extend(kinds.iter().map(|_| Err(error.clone()))),
        }
    }

    /// Runs a single operation; true if it found what it was for.
    pub(crate) async fn run_one(self, connection: &Connection) -> Result<bool, StoreError> {
        let answers = self.answers(connection, false).await?;
        let [answer] = &answers[..] else {
            return Err(unexpected());
        };
        match answer.strip_prefix('E') {
            Some(error) => Err(told(error)),
            None => Ok(answer == "ok"),
        }
    }

    async fn answers(
        self,
        connection: &Connection,
        repeatable: bool,
    ) -> Result<Vec<String>, StoreError> {
        let head = [
            self.keys.prefix().to_owned(),
            now_ms().to_string(),
            self.scores.to_string(),
        ];
        let args = head.into_iter().map(Value::from).chain(self.args).collect();
        let answer = connection.run(&BATCH, args, repeatable).await?;
        let answers: Vec<String> = answer.convert().map_err(|_| unexpected())?;
        if answers.len() != self.kinds.len() {
            return Err(unexpected());
        }
        Ok(answers)
    }

    fn put_subscription(&mut self, subscription: &DurableSubscription) {
        let queue = &subscription.queue;
        self.op("S", Kind::Other);
        // Only with scores it is found out whether there is room.
        self.scores += 1;
        self.text(encode(&queue.realm));
        self.text(subscription_field(queue, &subscription.consumer_name));
        self.text(subscription_value(subscription));
    }

    fn remove_subscription(&mut self, queue: &QueueKey, consumer_name: &str) {
        self.op("U", Kind::Other);
        self.text(encode(&queue.realm));
        self.text(subscription_field(queue, consumer_name));
    }

    fn op(&mut self, letter: &'static str, kind: Kind) {
        self.args.push(Value::from(letter));
        self.kinds.push(kind);
    }

    fn text(&mut self, text: String) {
        self.bytes += text.len();
        self.args.push(Value::from(text));
    }

    fn place(&mut self, queue: &QueueKey, id: &str) {
        self.text(encode(&queue.realm));
        self.text(encode_queue(queue));
        self.text(id.to_owned());
    }

    /// A message's place, text and expiry.
    fn message(&mut self, stored: &StoredMessage, row: String) {
        let expires_at_ms = stored.expires_at_ms.filter(|at_ms| *at_ms <= MAX_MOMENT_MS);
        let kept_until_ms = expires_at_ms.map(|at_ms| {
            at_ms
                .saturating_add(self.keep_expired_ms)
                .min(MAX_MOMENT_MS)
        });
        let number = |at_ms: Option<u64>| at_ms.map(|at_ms| at_ms.to_string()).unwrap_or_default();
        self.place(&stored.queue, stored.id.as_str());
        self.text(row);
        self.text(number(expires_at_ms));
        self.text(number(kept_until_ms));
    }
}

impl Kind {
    fn result(self, answer: String) -> StoreResult {
        if let Some(error) = answer.strip_prefix('E') {
            return Err(told(error));
        }
        match self {
            Self::Enqueue => position(&answer)
                .map(StoreReply::Enqueued)
                .ok_or_else(unexpected),
            Self::Other => Ok(StoreReply::Done),
        }
    }
}

/// Steps in a millisecond.
const STEPS: f64 = 1024.0;

/// A score as a position: exact, since scores are multiples of a step.
pub(crate) fn position(score: &str) -> Option<Position> {
    score
        .parse::<f64>()
        .ok()
        .map(|score| Position((score * STEPS) as u64))
}

/// A position as a score.
pub(crate) fn score(position: Position) -> String {
    format!("{:.10}", position.0 as f64 / STEPS)
}

/// Milliseconds since 1970 by this machine's clock. Order does not depend on it.
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

fn subscription_field(queue: &QueueKey, consumer_name: &str) -> String {
    format!("{}:{}", encode_queue(queue), encode(consumer_name))
}

/// Since when it is away, if it is, and the specification.
fn subscription_value(subscription: &DurableSubscription) -> String {
    let since = subscription
        .offline_since_ms
        .map(|at_ms| at_ms.to_string())
        .unwrap_or_default();
    format!("{since} {}", encode_spec(&subscription.spec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_and_positions_are_the_same_thing() {
        for (text, expected) in [
            ("0.0000000000", 0),
            ("1795976817339.0000000000", 1_795_976_817_339 * 1024),
            ("1795976817339.0009765625", 1_795_976_817_339 * 1024 + 1),
            ("1795976817339.9990234375", 1_795_976_817_339 * 1024 + 1023),
        ] {
            assert_eq!(position(text), Some(Position(expected)));
            assert_eq!(score(Position(expected)), text);
        }
        assert_eq!(position("x"), None);
    }
}
