//! How outputs are written in transcripts.

use tyo_mq_core::engine::{Counters, Delivery, Key, Notice, Output, Reply, Usage};
use tyo_mq_core::store::DeadLetter;
use tyo_mq_core::{MessageId, SessionId};

use super::world::World;

impl World {
    pub(super) fn print(&mut self, output: &Output, lines: &mut Vec<String>) {
        match output {
            Output::Deliver { session, delivery } => {
                let text = self.delivery(delivery);
                lines.push(self.line(*session, &text));
            }
            Output::FanOut { sessions, delivery } => {
                let text = self.delivery(delivery);
                lines.extend(sessions.iter().map(|session| self.line(*session, &text)));
            }
            Output::Notify { session, notice } => {
                let refusal = matches!(notice, Notice::Refused(_) | Notice::SubscribeRefused(_));
                if self.presence || refusal {
                    lines.push(self.line(*session, &written(notice)));
                }
            }
            Output::Reply { session, reply, .. } => {
                let text = self.reply(reply);
                lines.push(self.line(*session, &text));
            }
            Output::Requeued { result, .. } => lines.push(match result {
                Ok(found) => format!("< requeued {found}"),
                Err(error) => format!("< not requeued: {error}"),
            }),
            Output::Renamed { result, .. } => lines.push(match result {
                Ok(()) => "< renamed".to_owned(),
                Err(error) => format!("< not renamed: {error}"),
            }),
            Output::Disconnect { session } => lines.push(self.line(*session, "disconnect")),
            Output::Pace { session } => lines.push(self.line(*session, "pace")),
            Output::Store { .. } => unreachable!("store operations are carried out"),
        }
    }

    fn line(&self, session: SessionId, text: &str) -> String {
        let label = self.labels.get(&session).map_or("?", String::as_str);
        format!("{label}< {text}")
    }

    /// `m1` for the first id that was seen, and so on.
    pub(super) fn short(&mut self, id: &MessageId) -> String {
        let place = match self.ids.iter().position(|known| known == id.as_str()) {
            Some(place) => place,
            None => {
                self.ids.push(id.as_str().to_owned());
                self.ids.len() - 1
            }
        };
        format!("m{}", place + 1)
    }

    /// The id behind a short name; other text stands for itself.
    pub(super) fn long(&self, short: &str) -> String {
        let place = short
            .strip_prefix('m')
            .and_then(|text| text.parse::<usize>().ok());
        place
            .and_then(|place| self.ids.get(place.wrapping_sub(1)))
            .map_or_else(|| short.to_owned(), Clone::clone)
    }

    fn delivery(&mut self, delivery: &Delivery) -> String {
        let key = match &delivery.key {
            Key::Exact(key) => key.to_string(),
            Key::AllOf(producer) => format!("{producer}-TM-ALL"),
        };
        let body = String::from_utf8_lossy(&delivery.message.body).into_owned();
        match &delivery.receipt {
            None => format!("{key} {body}"),
            Some(receipt) => {
                let id = self.short(&receipt.id);
                format!("{key} {body} {id} #{}", receipt.attempt)
            }
        }
    }

    fn reply(&mut self, reply: &Reply) -> String {
        match reply {
            Reply::Published(Ok(published)) => {
                format!("ok routed={} queued={}", published.routed, published.queued)
            }
            Reply::Published(Err(error)) => format!("failed: {error}"),
            Reply::Acked { id, result: Ok(()) } => format!("acked {}", self.known(id)),
            Reply::Acked {
                id,
                result: Err(error),
            } => format!("not acked {}: {error}", self.known(id)),
            Reply::Unsubscribed { removed } => format!("unsubscribed {removed}"),
        }
    }

    fn known(&self, id: &MessageId) -> String {
        let place = self.ids.iter().position(|known| known == id.as_str());
        place.map_or_else(|| id.to_string(), |place| format!("m{}", place + 1))
    }

    pub(super) fn letter(&mut self, letter: &DeadLetter) -> String {
        let id = self.short(&letter.stored.id);
        let body = String::from_utf8_lossy(&letter.stored.message.body).into_owned();
        format!(
            "< letter {id} {body} attempts={} {}",
            letter.stored.attempts, letter.reason
        )
    }
}

fn written(notice: &Notice) -> String {
    match notice {
        Notice::SubscribeTo {
            producer_id,
            name,
            id,
            socket,
            events,
        } => {
            let suffix = producer_id
                .as_ref()
                .map(|id| format!("-{id}"))
                .unwrap_or_default();
            let socket = socket.as_deref().unwrap_or("offline");
            format!("SUBSCRIBE-TO{suffix} {name}/{id} {socket} {events:?}")
        }
        Notice::ProducerConnected {
            consumer_id,
            socket,
            producer,
        } => format!("CONNECT-{consumer_id} producer {producer} {socket}"),
        Notice::ConsumerConnected {
            producer_id,
            socket,
            id,
            consumer,
        } => format!("CONNECT-{producer_id} consumer {consumer}/{id} {socket}"),
        Notice::ProducerDisconnected {
            consumer_id,
            socket,
            producer,
        } => format!("DISCONNECT-{consumer_id} producer {producer} {socket}"),
        Notice::ConsumerDisconnected {
            producer_id,
            socket,
            consumer,
        } => format!("DISCONNECT-{producer_id} consumer {consumer} {socket}"),
        Notice::ProducerReplaced { producer } => format!("ERROR producer {producer} joined again"),
        Notice::Refused(reason) => format!("ERROR {reason}"),
        Notice::SubscribeRefused(limit) => format!("ERROR {limit}"),
    }
}

/// What is not zero.
pub(super) fn usage(usage: &Usage) -> String {
    list(&[
        ("realms", usage.realms as u64),
        ("sessions", usage.sessions as u64),
        ("producers", usage.producers as u64),
        ("consumers", usage.consumers as u64),
        ("subscriptions", usage.subscriptions as u64),
        ("queues", usage.queues as u64),
        ("in_flight", usage.in_flight as u64),
        ("ready", usage.ready as u64),
        ("stored", usage.stored),
        ("confirms", usage.confirms as u64),
        ("store_operations", usage.store_operations as u64),
    ])
}

/// What is not zero.
pub(super) fn counters(counters: &Counters) -> String {
    list(&[
        ("produced", counters.produced),
        ("delivered", counters.delivered),
        ("queued", counters.queued),
        ("dead_lettered", counters.dead_lettered),
        ("ack_timeouts", counters.ack_timeouts),
        ("expired", counters.expired),
        ("dropped", counters.dropped),
        ("store_failures", counters.store_failures),
    ])
}

fn list(fields: &[(&str, u64)]) -> String {
    let some = fields.iter().filter(|(_, value)| *value > 0);
    let words: Vec<String> = some
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("< {}", words.join(" ")).trim_end().to_owned()
}
