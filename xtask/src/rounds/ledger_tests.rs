//! That the ledger sees each thing that must not happen, and nothing else.

use super::*;

/// Producer 1 sent numbers 0 to 5 (exclusive); 0 to 2 were confirmed.
fn sent() -> Produced {
    Produced {
        producer: 1,
        end: 5,
        confirmed: (0..3).collect(),
        ..Produced::default()
    }
}

/// `d3` delivers number 3 of producer 1, `s3` sends its ACK, `a3` acknowledges it, `r3` refuses its ACK with 404, `f3` with 500.
fn journal(life: usize, script: &str) -> Journal {
    let entry = |word: &str| {
        let n = word[1..].parse().unwrap();
        let seq = Seq { producer: 1, n };
        match &word[..1] {
            "d" => Entry::Delivered(seq),
            "s" => Entry::AckSent(seq),
            "a" => Entry::Acked(seq),
            "r" => Entry::AckRefused(seq, 404),
            "f" => Entry::AckRefused(seq, 500),
            other => panic!("no entry {other}"),
        }
    };
    Journal {
        queue: "q".to_owned(),
        life,
        entries: script.split_whitespace().map(entry).collect(),
    }
}

fn tally(produced: Produced, scripts: &[&str], order: Order) -> Tally {
    let mut ledger = Ledger::default();
    ledger.add_produced(produced);
    for (life, script) in scripts.iter().enumerate() {
        ledger.add_journal(journal(life, script));
    }
    ledger.judge(&[("q", order)])
}

/// Each expected text must be in a problem, and there are no others.
fn check(scripts: &[&str], expected: &[&str]) {
    let found = tally(sent(), scripts, Order::PerProducer).problems;
    assert_eq!(found.len(), expected.len(), "{scripts:?}: {found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{scripts:?}: {found}");
    }
}

#[test]
fn what_is_right_has_no_problem() {
    check(&["d0 s0 a0 d1 s1 a1 d2 s2 a2"], &[]);
    // A restart between the ACK and its answer: either may be.
    check(&["d0 s0 d1 s1 a1", "d2 s2 a2"], &[]);
    check(&["d0 s0 d1 s1 a1", "d0 s0 a0 d2 s2 a2"], &[]);
    // Not confirmed, yet kept.
    check(&["d0 d1", "d0 s0 a0 d1 s1 a1 d2 s2 a2 d3 s3 a3"], &[]);
    // A store that was away.
    check(&["d0 s0 f0 d1 d2", "d0 s0 a0 d1 s1 a1 d2 s2 a2"], &[]);
    check(&["d0 s0 f0 d1 s1 a1 d0 s0 a0 d2 s2 a2"], &[]);
}

#[test]
fn what_is_wrong_is_found() {
    check(
        &["d0 s0 a0 d1 s1 a1"],
        &["1 confirmed messages lost, 1 of them never"],
    );
    check(
        &["d0 d1 d2", "d0 s0 a0 d2 s2 a2"],
        &["1 confirmed messages lost, 0 of them never"],
    );
    check(&["d0 s0 a0 d1 s1 a1 d2 s2 a2 d4 s4 a4"], &["1 holes"]);
    check(
        &["d0 s0 a0 d1 s1 a1 d2 s2 a2", "d1"],
        &["again after their ACK_OK: 1/1"],
    );
    check(
        &["d0 s0 a0 d1 s1 a1 d2 s2 r2"],
        &["1 ACKs of delivered messages refused"],
    );
    check(
        &["d0 s0 a0 d1 d1 s1 a1 d2 s2 a2"],
        &["twice on one connection: 1/1"],
    );
    check(
        &["d0 s0 a0 d2 s2 a2 d1 s1 a1"],
        &["after later ones of their producer: 1/1"],
    );
}

#[test]
fn an_order_that_is_not_promised_is_not_asked_for() {
    let script = ["d0 s0 a0 d2 s2 a2 d1 s1 a1"];
    assert_eq!(
        tally(sent(), &script, Order::Any).problems,
        [] as [String; 0]
    );
}

#[test]
fn a_refused_message_is_no_hole() {
    let mut produced = sent();
    produced.refused.insert(3, 503);
    let delivered = ["d0 s0 a0 d1 s1 a1 d2 s2 a2 d3 s3 a3"];
    let of_delivered = tally(produced.clone(), &delivered, Order::PerProducer);
    assert_eq!(
        (of_delivered.refused, of_delivered.refused_and_delivered),
        (1, 1)
    );
    let script = ["d0 s0 a0 d1 s1 a1 d2 s2 a2 d4 s4 a4"];
    let tally = tally(produced, &script, Order::PerProducer);
    assert_eq!(tally.problems, [] as [String; 0]);
    assert_eq!(
        (tally.refused, tally.refused_and_delivered, tally.unanswered),
        (1, 0, 1)
    );
}

#[test]
fn counts_are_of_what_happened() {
    let scripts = ["d0 s0 a0 d1", "d1 s1 a1 d2 s2 a2"];
    let tally = tally(sent(), &scripts, Order::PerProducer);
    let counts = (tally.confirmed, tally.delivered, tally.after_restart);
    assert_eq!(counts, (3, 3, 2));
    assert_eq!((tally.redelivered, tally.acked, tally.lost), (1, 3, 0));
    assert_eq!(tally.unanswered, 2);
}

#[test]
fn what_is_owed_ends_with_the_first_ack_sent() {
    let mut ledger = Ledger::default();
    ledger.add_produced(sent());
    ledger.add_journal(journal(0, "d0 s0 d1"));
    let owed: Vec<u64> = ledger.owed("q").iter().map(|seq| seq.n).collect();
    assert_eq!(owed, [1, 2]);
    assert_eq!(ledger.owed("other").len(), 3);
    assert_eq!((ledger.next_number(1), ledger.next_number(2)), (5, 0));
}
