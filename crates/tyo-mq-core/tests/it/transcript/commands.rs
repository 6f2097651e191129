//! The commands of transcripts, read from text.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use tyo_mq_core::SessionId;
use tyo_mq_core::engine::{
    Command, Input, Lifetime, Publish, Reach, RealmPolicy, RegisterConsumer, RegisterProducer,
    ReplyToken, RetryPolicy, Subscribe, SubscriptionSpec, Unsubscribe,
};
use tyo_mq_core::store::Store;

use super::world::{World, now_or_never};
use super::{kept, print};

/// Words of a command: plain ones, and options (`name` or `name=value`).
struct Words<'a> {
    plain: VecDeque<&'a str>,
    options: HashMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    fn of(text: &'a str, plain: usize) -> Self {
        let mut words = text.split_whitespace();
        let plain = words.by_ref().take(plain).map(unquoted).collect();
        let options = words
            .map(|word| word.split_once('=').unwrap_or((word, "")))
            .collect();
        Self { plain, options }
    }

    fn next(&mut self) -> &'a str {
        self.plain.pop_front().expect("the command has this word")
    }

    fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.options.get(name).copied().map(unquoted)
    }

    fn number(&self, name: &str) -> Option<u64> {
        let text = self.text(name)?;
        Some(text.parse().expect("the option is a number"))
    }

    fn lifetime(&self) -> Option<Lifetime> {
        match self.text("ttl")? {
            "never" => Some(Lifetime::Never),
            _ => self.number("ttl").map(Lifetime::Millis),
        }
    }
}

/// `''` is the empty word.
fn unquoted(word: &str) -> &str {
    if word == "''" { "" } else { word }
}

impl World {
    /// Runs one command and returns the lines that came out.
    pub(crate) fn run(&mut self, line: &str) -> Vec<String> {
        match line.split_once("> ") {
            Some((label, command)) => self.of_session(label, command),
            None => self.of_world(line),
        }
    }

    fn of_session(&mut self, label: &str, line: &str) -> Vec<String> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        if name == "open" {
            let realm = if rest.is_empty() { "default" } else { rest };
            return self.open(label, realm);
        }
        let session = self.sessions[label];
        match name {
            "close" => {
                let lines = self.feed(Input::Closed { session });
                self.sessions.remove(label);
                lines
            }
            "stall" => self.feed(Input::Stalled { session }),
            "drain" => self.feed(Input::Drained { session }),
            "consumer" => {
                let mut words = Words::of(rest, 1);
                let name = words.next();
                let id = words.text("id");
                self.ask(
                    session,
                    Command::RegisterConsumer(RegisterConsumer { name, id }),
                )
            }
            "producer" => {
                let mut words = Words::of(rest, 1);
                let ask = RegisterProducer {
                    name: words.next(),
                    id: words.text("id"),
                    default_ttl: words.lifetime(),
                };
                self.ask(session, Command::RegisterProducer(ask))
            }
            "sub" => self.subscribe(session, Words::of(rest, 2)),
            "unsub" => self.unsubscribe(session, rest),
            "pub" => self.publish(session, Words::of(rest, 3)),
            "ack" => {
                let id = self.long(rest);
                self.ask(session, Command::Ack { id: &id })
            }
            _ => panic!("no such command: {line}"),
        }
    }

    fn ask(&mut self, session: SessionId, command: Command<'_>) -> Vec<String> {
        self.feed(Input::Command {
            session,
            command,
            reply: None,
        })
    }

    /// `sub PRODUCER EVENT [as=NAME] [id=] [cid=] [durable] [ack] [topic] [all] [group=] [prefetch=] [timeout=] [max=]
    /// [delay=] [exponential]`; the consumer is called as the session, and so is its stable id.
    fn subscribe(&mut self, session: SessionId, mut words: Words<'_>) -> Vec<String> {
        let label = self.labels[&session].clone();
        let (producer, event) = (words.next(), words.next());
        let name = words.text("as").unwrap_or(&label);
        let retry = RetryPolicy {
            max_attempts: words.number("max").map_or(3, |max| max as u32),
            delay_ms: words.number("delay").unwrap_or(5_000),
            exponential: words.has("exponential"),
        };
        let spec = SubscriptionSpec {
            producer: producer.into(),
            event: event.into(),
            all_events: words.has("all"),
            topic: words.has("topic"),
            durable: words.has("durable"),
            ack: words.has("ack"),
            ack_timeout_ms: words.number("timeout"),
            retry,
            group: words.text("group").map(Into::into),
            prefetch: words.number("prefetch").map(|it| it as u32),
        };
        let consumer_id = Some(words.text("cid").unwrap_or(name));
        let ask = Subscribe {
            consumer: name,
            id: words.text("id"),
            consumer_id,
            spec,
        };
        self.ask(session, Command::Subscribe(ask))
    }

    /// `unsub KEY`, or `unsub event=EVENT [producer=] [consumer=]`.
    fn unsubscribe(&mut self, session: SessionId, rest: &str) -> Vec<String> {
        let words = Words::of(rest, 0);
        let ask = match words.text("event") {
            None => Unsubscribe::Key(rest),
            Some(event) => Unsubscribe::Event {
                event,
                producer: words.text("producer"),
                consumer: words.text("consumer"),
            },
        };
        self.ask(session, Command::Unsubscribe(ask))
    }

    /// `pub PRODUCER EVENT BODY [ttl=] [guaranteed] [to=A,B] [realm] [group=] [confirm] [id=]`.
    fn publish(&mut self, session: SessionId, mut words: Words<'_>) -> Vec<String> {
        let (producer, event, body) = (words.next(), words.next(), words.next());
        let reach = match words.text("group") {
            Some(group) => Reach::Group(group),
            None if words.has("realm") => Reach::Realm,
            None => Reach::Subscribers,
        };
        let publish = Publish {
            event,
            producer,
            producer_id: words.text("id"),
            body: Bytes::copy_from_slice(body.as_bytes()),
            attachments: Box::default(),
            lifetime: words.lifetime().unwrap_or_default(),
            guaranteed: words.has("guaranteed"),
            recipients: words.text("to").map(|names| names.split(',').collect()),
            reach,
        };
        let reply = words.has("confirm").then_some(ReplyToken(7));
        self.feed(Input::Command {
            session,
            command: Command::Publish(publish),
            reply,
        })
    }

    fn of_world(&mut self, line: &str) -> Vec<String> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "since" => self.since = self.now.mono_ms,
            "tick" => return self.tick(rest.parse().expect("milliseconds")),
            "wall" => {
                let by: i64 = rest.parse().expect("milliseconds");
                self.now.wall_ms = self.now.wall_ms.saturating_add_signed(by);
            }
            "hold" => self.held = Some(VecDeque::new()),
            "flush" => return self.flush(rest.parse().unwrap_or(usize::MAX)),
            "release" => {
                let lines = self.flush(usize::MAX);
                self.held = None;
                return lines;
            }
            "fail" => self
                .failing
                .extend(rest.split(' ').map(|kind| &*kind.to_owned().leak())),
            "mend" => self.failing.clear(),
            "restart" => return self.restart(),
            "policy" => {
                let policy = RealmPolicy {
                    allow_anonymous: Some(false),
                    ..RealmPolicy::default()
                };
                return self.feed(Input::Policy {
                    realm: rest,
                    policy,
                });
            }
            "rename" => {
                let mut words = Words::of(rest, 2);
                let (from, to) = (words.next(), words.next());
                let reply = None;
                return self.feed(Input::RenameRealm { from, to, reply });
            }
            "purge" => return self.feed(Input::PurgeRealm { realm: rest }),
            "requeue" => {
                let id = self.long(rest);
                return self.feed(Input::Requeue {
                    realm: "default",
                    id: &id,
                    reply: None,
                });
            }
            "kept" => self.keep(kept::message(rest)),
            "kept-sub" => self.keep(kept::subscription(rest)),
            "adopt" => {
                let snapshot = std::mem::take(&mut self.unheard);
                return self.feed(Input::Loaded(snapshot));
            }
            "observed" => return self.observed(Words::of(rest, 3)),
            "letters" => {
                let page = now_or_never(self.store.dead_letters(None, None, 100));
                let letters = page.expect("the memory store always lists").letters;
                return letters.iter().map(|letter| self.letter(letter)).collect();
            }
            "usage" => return vec![print::usage(&self.engine.usage())],
            "counters" => return vec![print::counters(&self.engine.counters())],
            _ => panic!("no such command: {line}"),
        }
        Vec::new()
    }

    fn observed(&mut self, mut words: Words<'_>) -> Vec<String> {
        let (producer, event, body) = (words.next(), words.next(), words.next());
        let publish = Publish {
            event,
            producer,
            producer_id: None,
            body: Bytes::copy_from_slice(body.as_bytes()),
            attachments: Box::default(),
            lifetime: Lifetime::Unset,
            guaranteed: words.has("guaranteed"),
            recipients: None,
            reach: Reach::Subscribers,
        };
        self.feed(Input::Observed { publish })
    }
}
