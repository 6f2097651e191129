//! Live routing against the naive matcher: who gets a message, under which name, in which order.

use bytes::Bytes;
use proptest::prelude::*;
use tyo_mq_core::engine::{
    ANY_PRODUCER, Command, Config, Input, Lifetime, Now, Output, Publish, Reach, RegisterConsumer,
    RetryPolicy, Subscribe, SubscriptionSpec, Unsubscribe,
};
use tyo_mq_core::{Engine, SessionId};

use crate::matcher::{Known, Target, key_text};

const PRODUCERS: [&str; 5] = ["a", "a-b", "A", "tm-all", ANY_PRODUCER];
const EVENTS: [&str; 11] = [
    "b", "b-c", "c", "B", "tm-all", "x/y", "+/y", "x/#", "#", "X/Y", "",
];
const CONSUMERS: usize = 4;

#[derive(Debug, Clone)]
enum Step {
    Subscribe(usize, SubscriptionSpec),
    Unsubscribe(usize, SubscriptionSpec),
    Leave(usize),
    Publish(&'static str, &'static str),
}

fn step() -> impl Strategy<Value = Step> {
    let spec = (0..5usize, 0..11usize, any::<bool>(), 0..4usize).prop_map(spec);
    let consumer = 0..CONSUMERS;
    prop_oneof![
        4 => (consumer.clone(), spec.clone()).prop_map(|(it, spec)| Step::Subscribe(it, spec)),
        1 => (consumer.clone(), spec).prop_map(|(it, spec)| Step::Unsubscribe(it, spec)),
        1 => consumer.prop_map(Step::Leave),
        6 => (0..4usize, 0..11usize)
            .prop_map(|(producer, event)| Step::Publish(PRODUCERS[producer], EVENTS[event])),
    ]
}

fn spec((producer, event, topic, group): (usize, usize, bool, usize)) -> SubscriptionSpec {
    let all_events = EVENTS[event].eq_ignore_ascii_case("tm-all");
    SubscriptionSpec {
        producer: PRODUCERS[producer].into(),
        event: EVENTS[event].into(),
        all_events,
        topic: topic && !all_events,
        durable: false,
        ack: false,
        ack_timeout_ms: None,
        retry: RetryPolicy::default(),
        group: [None, None, Some("g".into()), Some("h".into())][group].clone(),
        prefetch: None,
    }
}

struct Model {
    engine: Engine,
    known: Vec<Known>,
    online: [Option<SessionId>; CONSUMERS],
    next: u32,
}

impl Model {
    fn handle(&mut self, input: Input<'_>) -> Vec<Output> {
        let mut out = Vec::new();
        self.engine.handle(Now::default(), input, &mut out);
        out
    }

    fn session(&mut self, consumer: usize) -> SessionId {
        if let Some(session) = self.online[consumer] {
            return session;
        }
        self.next += 1;
        let session = SessionId::new(self.next, 0);
        self.handle(Input::Opened {
            session,
            realm: "default",
            socket: &session.slot().to_string(),
        });
        let name = consumer.to_string();
        self.ask(
            session,
            Command::RegisterConsumer(RegisterConsumer {
                name: &name,
                id: None,
            }),
        );
        self.online[consumer] = Some(session);
        session
    }

    fn ask(&mut self, session: SessionId, command: Command<'_>) -> Vec<Output> {
        self.handle(Input::Command {
            session,
            command,
            reply: None,
        })
    }

    fn run(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Subscribe(consumer, spec) => self.subscribe(*consumer, spec),
            Step::Unsubscribe(consumer, spec) => {
                let session = self.session(*consumer);
                let known = Known::new(*consumer, spec);
                self.ask(session, Command::Unsubscribe(Unsubscribe::Key(&known.key)));
                self.known.retain(|it| it.target() != known.target());
            }
            Step::Leave(consumer) => {
                if let Some(session) = self.online[*consumer].take() {
                    self.handle(Input::Closed { session });
                }
            }
            Step::Publish(producer, event) => return self.publish(producer, event),
        }
        Ok(())
    }

    fn subscribe(&mut self, consumer: usize, spec: &SubscriptionSpec) {
        let session = self.session(consumer);
        let name = consumer.to_string();
        let known = Known::new(consumer, spec);
        let ask = Subscribe {
            consumer: &name,
            id: None,
            consumer_id: Some(&name),
            spec: spec.clone(),
        };
        self.ask(session, Command::Subscribe(ask));
        self.known.retain(|it| it.target() != known.target());
        self.known.push(known);
    }

    fn publish(&mut self, producer: &str, event: &str) -> Result<(), TestCaseError> {
        let session = SessionId::new(0, 0);
        let publish = Publish {
            event,
            producer,
            producer_id: None,
            body: Bytes::new(),
            attachments: Box::default(),
            lifetime: Lifetime::Unset,
            guaranteed: false,
            recipients: None,
            reach: Reach::Subscribers,
        };
        let out = self.ask(session, Command::Publish(publish));
        let given = self.given(&out);
        let matching = self.known.iter().filter(|it| it.matches(producer, event));
        let online: Vec<&Known> = matching
            .filter(|it| self.online[it.consumer].is_some())
            .collect();
        let single: Vec<&&Known> = online.iter().filter(|it| it.spec.group.is_none()).collect();
        let mut wanted: Vec<Target> = single.iter().map(|it| it.target()).collect();
        let mut first = given.iter().take(wanted.len()).cloned().collect::<Vec<_>>();
        wanted.sort();
        first.sort();
        prop_assert_eq!(
            &first,
            &wanted,
            "{} {}: all without a group, first",
            producer,
            event
        );
        let mut rest = &given[first.len()..];
        for group in ["g", "h"] {
            let of_group = |it: &&&Known| it.spec.group.as_deref() == Some(group);
            let members: Vec<Target> = online
                .iter()
                .filter(of_group)
                .map(|it| it.target())
                .collect();
            let place = rest.iter().position(|it| members.contains(it));
            prop_assert_eq!(
                place.is_some(),
                !members.is_empty(),
                "{} has one copy",
                group
            );
            if let Some(place) = place {
                let mut others = rest.to_vec();
                others.remove(place);
                rest = others.leak();
            }
        }
        prop_assert!(rest.is_empty(), "too many: {:?}", rest);
        Ok(())
    }

    fn given(&self, out: &[Output]) -> Vec<Target> {
        let consumer = |session: &SessionId| {
            let place = self.online.iter().position(|it| *it == Some(*session));
            place.expect("only consumers that are online get something")
        };
        let mut given = Vec::new();
        for output in out {
            match output {
                Output::Deliver { session, delivery } => {
                    given.push((consumer(session), key_text(&delivery.key)));
                }
                Output::FanOut { sessions, delivery } => {
                    let key = key_text(&delivery.key);
                    given.extend(sessions.iter().map(|it| (consumer(it), key.clone())));
                }
                _ => {}
            }
        }
        given
    }
}

proptest! {
    #[test]
    fn live_messages_go_where_the_list_says(steps in prop::collection::vec(step(), 1..60)) {
        let mut model = Model {
            engine: Engine::new(Config::default()),
            known: Vec::new(),
            online: [None; CONSUMERS],
            next: 0,
        };
        model.handle(Input::Opened {
            session: SessionId::new(0, 0),
            realm: "default",
            socket: "producer",
        });
        for step in &steps {
            model.run(step)?;
        }
    }
}
