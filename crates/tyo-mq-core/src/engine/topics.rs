//! MQTT-style patterns: a trie of levels, matched without recursion. Knows patterns and numbers, no subscriptions.

use hashbrown::HashMap;
use slab::Slab;

/// A set of (pattern, value) pairs that finds the values whose pattern matches a topic.
///
/// Levels are separated by `/`. `+` alone in a level matches exactly one level, empty or not; `#` alone in the
/// last level matches any number of levels, also none. Callers fold case before.
#[derive(Debug)]
pub struct TopicTree {
    nodes: Slab<Node>,
    /// Patterns that are no tree paths ([`is_listed`]), matched one by one.
    listed: Vec<(Box<str>, usize)>,
    len: usize,
}

#[derive(Debug, Default)]
struct Node {
    children: HashMap<Box<str>, usize>,
    plus: Option<usize>,
    here: Vec<usize>,
    rest: Vec<usize>,
}

impl Node {
    fn is_unused(&self) -> bool {
        self.children.is_empty()
            && self.plus.is_none()
            && self.here.is_empty()
            && self.rest.is_empty()
    }
}

impl Default for TopicTree {
    fn default() -> Self {
        let mut nodes = Slab::new();
        nodes.insert(Node::default());
        Self {
            nodes,
            listed: Vec::new(),
            len: 0,
        }
    }
}

impl TopicTree {
    /// Adds a value under a pattern.
    pub fn insert(&mut self, pattern: &str, value: usize) {
        self.len += 1;
        if is_listed(pattern) {
            self.listed.push((pattern.into(), value));
            return;
        }
        let (levels, rest) = split_pattern(pattern);
        let mut node = ROOT;
        for level in levels {
            node = self.child_or_new(node, level);
        }
        let target = &mut self.nodes[node];
        if rest {
            target.rest.push(value)
        } else {
            target.here.push(value)
        }
    }

    /// Takes a value out; nodes without use go.
    pub fn remove(&mut self, pattern: &str, value: usize) {
        if is_listed(pattern) {
            let before = self.listed.len();
            self.listed
                .retain(|(text, kept)| *kept != value || &**text != pattern);
            self.len -= before - self.listed.len();
            return;
        }
        let (levels, rest) = split_pattern(pattern);
        let mut path = vec![(ROOT, "")];
        for level in levels {
            let (node, _) = path[path.len() - 1];
            let Some(child) = self.child(node, level) else {
                return;
            };
            path.push((child, level));
        }
        let leaf = &mut self.nodes[path[path.len() - 1].0];
        let list = if rest { &mut leaf.rest } else { &mut leaf.here };
        let before = list.len();
        list.retain(|kept| *kept != value);
        self.len -= before - list.len();
        self.prune(path);
    }

    /// Appends the values of all matching patterns, in no particular order.
    pub fn find(&self, topic: &str, found: &mut Vec<usize>) {
        if self.len == 0 {
            return;
        }
        let mut pending = vec![(ROOT, Some(topic))];
        while let Some((index, remaining)) = pending.pop() {
            let node = &self.nodes[index];
            found.extend_from_slice(&node.rest);
            let Some(remaining) = remaining else {
                found.extend_from_slice(&node.here);
                continue;
            };
            let (level, after) = match memchr_slash(remaining) {
                Some(at) => (&remaining[..at], Some(&remaining[at + 1..])),
                None => (remaining, None),
            };
            if let Some(&child) = node.children.get(level) {
                pending.push((child, after));
            }
            if let Some(child) = node.plus {
                pending.push((child, after));
            }
        }
        found.extend(
            self.listed
                .iter()
                .filter(|(pattern, _)| matches(pattern, topic))
                .map(|(_, value)| *value),
        );
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.len
    }

    /// No pair at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn child(&self, node: usize, level: &str) -> Option<usize> {
        match level {
            "+" => self.nodes[node].plus,
            _ => self.nodes[node].children.get(level).copied(),
        }
    }

    fn child_or_new(&mut self, node: usize, level: &str) -> usize {
        if let Some(child) = self.child(node, level) {
            return child;
        }
        let child = self.nodes.insert(Node::default());
        let parent = &mut self.nodes[node];
        match level {
            "+" => parent.plus = Some(child),
            _ => _ = parent.children.insert(level.into(), child),
        }
        child
    }

    fn prune(&mut self, mut path: Vec<(usize, &str)>) {
        while let Some((node, level)) = path.pop() {
            let Some(&(parent, _)) = path.last() else {
                return;
            };
            if !self.nodes[node].is_unused() {
                return;
            }
            self.nodes.remove(node);
            match level {
                "+" => self.nodes[parent].plus = None,
                _ => _ = self.nodes[parent].children.remove(level),
            }
        }
    }
}

/// Whether one pattern matches one topic, level by level.
///
/// ```
/// use tyo_mq_core::engine::topics::matches;
/// assert!(matches("a/#", "a"));
/// assert!(matches("a/+/b", "a//b"));
/// assert!(!matches("a/+", "a/b/c"));
/// ```
pub fn matches(pattern: &str, topic: &str) -> bool {
    if pattern == topic {
        return true;
    }
    let mut levels = topic.split('/');
    let mut wanted = pattern.split('/').peekable();
    while let Some(want) = wanted.next() {
        if want == "#" {
            return wanted.peek().is_none();
        }
        match levels.next() {
            Some(level) if want == "+" || want == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

const ROOT: usize = 0;

/// Deeper patterns are kept in a list instead, so that one of them costs no node a level.
const MAX_TREE_LEVELS: usize = 64;

/// Too deep, or with a `#` that is not last: such a pattern matches nothing but its own text.
fn is_listed(pattern: &str) -> bool {
    let deep = pattern.bytes().filter(|byte| *byte == b'/').count() >= MAX_TREE_LEVELS;
    deep || pattern.starts_with("#/") || pattern.contains("/#/")
}

/// The levels to walk, and whether the last one was `#`.
fn split_pattern(pattern: &str) -> (Vec<&str>, bool) {
    let mut levels: Vec<&str> = pattern.split('/').collect();
    let rest = levels.last() == Some(&"#");
    if rest {
        levels.pop();
    }
    (levels, rest)
}

fn memchr_slash(text: &str) -> Option<usize> {
    text.bytes().position(|byte| byte == b'/')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATTERNS: [&str; 13] = [
        "#", "+", "a/#", "a/+", "a/+/b", "+/a", "a/#/b", "a/b", "/a", "a/", "+/#", "a/b+", "a//b",
    ];

    fn check(topic: &str, expected: &[&str]) {
        let mut tree = TopicTree::default();
        for (value, pattern) in PATTERNS.iter().enumerate() {
            tree.insert(pattern, value);
        }
        let mut found = Vec::new();
        tree.find(topic, &mut found);
        found.sort_unstable();
        let found: Vec<&str> = found.into_iter().map(|value| PATTERNS[value]).collect();
        let mut expected: Vec<usize> = expected
            .iter()
            .map(|want| PATTERNS.iter().position(|have| have == want).unwrap())
            .collect();
        expected.sort_unstable();
        let expected: Vec<&str> = expected.into_iter().map(|value| PATTERNS[value]).collect();
        assert_eq!(found, expected, "topic {topic:?}");
    }

    #[test]
    fn the_truth_table_holds() {
        check("a", &["#", "+", "a/#", "+/#"]);
        check("a/b", &["a/b", "#", "a/#", "a/+", "+/#"]);
        check("a/b/c", &["#", "a/#", "+/#"]);
        check("a/x/b", &["#", "a/#", "a/+/b", "+/#"]);
        check("a//b", &["a//b", "#", "a/#", "a/+/b", "+/#"]);
        check("/a", &["/a", "#", "+/a", "+/#"]);
        check("a/", &["a/", "#", "a/#", "a/+", "+/#"]);
        check("", &["#", "+", "+/#"]);
        check("a/b+", &["a/b+", "#", "a/#", "a/+", "+/#"]);
        check("a/#/b", &["a/#/b", "#", "a/#", "a/+/b", "+/#"]);
    }

    #[test]
    fn a_topic_of_65000_levels_matches_without_recursion() {
        let deep = "a/".repeat(65_000) + "z";
        let mut tree = TopicTree::default();
        tree.insert(&deep, 1);
        tree.insert("a/#", 2);
        let mut found = Vec::new();
        tree.find(&deep, &mut found);
        found.sort_unstable();
        assert_eq!(found, [1, 2]);
    }

    fn level() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("a"),
            Just("b"),
            Just(""),
            Just("+"),
            Just("#"),
            Just("a+")
        ]
        .prop_map(str::to_owned)
    }

    fn path() -> impl Strategy<Value = String> {
        prop::collection::vec(level(), 1..6).prop_map(|levels| levels.join("/"))
    }

    proptest! {
        #[test]
        fn the_tree_agrees_with_the_naive_matcher(
            patterns in prop::collection::vec(path(), 0..20),
            removed in prop::collection::vec(any::<bool>(), 20),
            topic in path(),
        ) {
            let mut tree = TopicTree::default();
            for (value, pattern) in patterns.iter().enumerate() {
                tree.insert(pattern, value);
            }
            for (value, pattern) in patterns.iter().enumerate().filter(|(value, _)| removed[*value]) {
                tree.remove(pattern, value);
            }
            let mut found = Vec::new();
            tree.find(&topic, &mut found);
            found.sort_unstable();
            let expected: Vec<usize> = patterns.iter().enumerate()
                .filter(|(value, pattern)| !removed[*value] && matches(pattern, &topic))
                .map(|(value, _)| value)
                .collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn nothing_is_left_when_all_patterns_are_gone(patterns in prop::collection::vec(path(), 0..20)) {
            let mut tree = TopicTree::default();
            for (value, pattern) in patterns.iter().enumerate() {
                tree.insert(pattern, value);
            }
            for (value, pattern) in patterns.iter().enumerate() {
                tree.remove(pattern, value);
            }
            prop_assert!(tree.is_empty());
            prop_assert_eq!(tree.nodes.len(), 1);
            prop_assert!(tree.listed.is_empty());
        }
    }
}
