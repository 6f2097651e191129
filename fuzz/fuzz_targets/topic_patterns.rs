//! Topics: the tree finds exactly the patterns that match one by one, also after some are gone.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tyo_mq_core::engine::topics::{TopicTree, matches};

fuzz_target!(|input: (Vec<(bool, &str)>, &str)| {
    let (patterns, topic) = input;
    let mut tree = TopicTree::default();
    for (value, (_, pattern)) in patterns.iter().enumerate() {
        tree.insert(pattern, value);
    }
    for (value, (stays, pattern)) in patterns.iter().enumerate() {
        if !stays {
            tree.remove(pattern, value);
        }
    }
    let mut found = Vec::new();
    tree.find(topic, &mut found);
    found.sort_unstable();
    let expected: Vec<usize> = patterns
        .iter()
        .enumerate()
        .filter(|(_, (stays, pattern))| *stays && matches(pattern, topic))
        .map(|(value, _)| value)
        .collect();
    assert_eq!(found, expected);
});
