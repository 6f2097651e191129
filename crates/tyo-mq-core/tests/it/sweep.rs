//! One scenario, once for each of its store operations with that one failing (and with all that follow for a
//! while): nothing panics, nothing confirmed is lost, nothing acknowledged returns, nothing stays behind.

use std::collections::BTreeSet;

use tyo_mq_core::engine::Config;

use crate::transcript::World;

const SCENARIO: &str = "
    c> open
    c> sub P k durable ack timeout=200 max=4 delay=100
    d> open
    d> sub P k durable
    w1> open
    w1> sub P j durable ack group=g timeout=200 max=4 delay=100 prefetch=1
    w2> open
    w2> sub P j durable ack group=g timeout=200 max=4 delay=100 prefetch=1
    P> open
    P> pub P k one confirm
    P> pub P j two confirm
    P> pub P j three confirm
    P> pub P j four confirm
    c> ack m1
    w1> close
    tick 350
    c> close
    d> close
    P> pub P k five confirm
    P> pub P k six confirm ttl=1000
    P> pub P j seven confirm
    c> open
    c> consumer c
    P> pub P k eight confirm
    c> sub P k durable ack timeout=200 max=4 delay=100
    d> open
    d> sub P k durable
    w1> open
    w1> sub P j durable ack group=g timeout=200 max=4 delay=100 prefetch=1
    w2> unsub p-j
    P> pub P j nine confirm
    c> sub Q x durable
    c> unsub q-x
    tick 2000
    requeue m1
    requeue m2
    tick 70000";

const REST: &str = "
    w2> sub P j durable ack group=g timeout=200 max=4 delay=100 prefetch=1
    c> close
    d> close
    c> open
    c> sub P k durable ack timeout=200 max=4 delay=100
    d> open
    d> sub P k durable";

/// What the lines of a run say.
#[derive(Default)]
struct Story {
    confirmed: Vec<String>,
    /// Consumer and body.
    given: BTreeSet<(String, String)>,
    acked: BTreeSet<String>,
    letters: BTreeSet<String>,
}

impl Story {
    fn read(&mut self, world: &mut World, command: &str) {
        let mut commands = vec![command.to_owned()];
        while let Some(command) = commands.pop() {
            for line in world.run(&command) {
                commands.extend(self.line(&command, &line));
            }
        }
    }

    /// Takes one line; every second delivery, and every one of the end, is acknowledged.
    fn line(&mut self, command: &str, line: &str) -> Option<String> {
        let line = line
            .split_once(' ')
            .filter(|_| line.starts_with('@'))
            .map_or(line, |it| it.1);
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["P<", "ok", ..] => {
                let body = command.split(' ').nth(4).expect("a publish has a body");
                self.confirmed.push(body.to_owned());
            }
            [_, "acked", id] => _ = self.acked.insert(id.to_owned()),
            [who, key, body, ref receipt @ ..] if key.starts_with("p-") => {
                let who = who.trim_end_matches('<');
                self.given.insert((who.to_owned(), body.to_owned()));
                let id = receipt.first()?;
                assert!(!self.acked.contains(*id), "acknowledged, but again: {line}");
                let late = receipt[1] != "#1";
                return late.then(|| format!("{who}> ack {id}"));
            }
            ["<", "letter", _, body, ..] => _ = self.letters.insert(body.to_owned()),
            ["<", "requeued", "true"] => self.acked.clear(),
            _ => {}
        }
        None
    }

    fn reached(&self, who: &[&str], body: &str) -> bool {
        let given = |who: &&str| self.given.contains(&((*who).to_owned(), body.to_owned()));
        who.iter().any(given) || self.letters.contains(body)
    }
}

/// Runs the scenario with operations `from` and `length - 1` more failing; returns how many there were.
fn run(from: usize, length: usize) -> usize {
    let mut world = World::new(Config::default());
    world.failing_operations = from..from.saturating_add(length);
    let mut story = Story::default();
    for command in SCENARIO
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        story.read(&mut world, command);
    }
    let operations = world.operations;
    world.failing_operations = 0..0;
    for command in REST.lines().map(str::trim).filter(|line| !line.is_empty()) {
        story.read(&mut world, command);
    }
    for command in ["tick 10000", "letters"] {
        story.read(&mut world, command);
    }
    for body in &story.confirmed {
        let expired = body == "six";
        let to_group = ["two", "three", "four", "seven", "nine"].contains(&body.as_str());
        let receivers: &[&[&str]] = if to_group {
            &[&["w1", "w2"]]
        } else {
            &[&["c"], &["d"]]
        };
        let missing = receivers
            .iter()
            .any(|who| !expired && !story.reached(who, body));
        assert!(
            !missing,
            "{body} is lost with operations {from} + {length} failing"
        );
    }
    let left = world.run("usage");
    let waits = [
        "in_flight",
        "ready",
        "stored",
        "confirms",
        "store_operations",
    ];
    let waiting = waits
        .iter()
        .any(|word| left[0].contains(&format!(" {word}=")));
    assert!(
        !waiting,
        "{left:?} is left with operations {from} + {length} failing"
    );
    assert_eq!(
        world.kept_rows(),
        0,
        "with operations {from} + {length} failing"
    );
    operations
}

#[test]
fn any_operation_may_fail() {
    let operations = run(usize::MAX, 1);
    assert!(
        operations > 40,
        "the scenario asks much of the store: {operations}"
    );
    for from in 0..operations {
        for length in [1, 2, 5, 20, usize::MAX] {
            run(from, length);
        }
    }
}
