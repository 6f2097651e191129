//! What is counted by realm and by event, under a bounded number of names.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use super::realm::Realm;
use super::{Counters, Engine, RealmUsage};

/// The name under which everything is counted that has none of its own.
pub const OTHER: &str = "__other__";

/// Realms of an engine that are counted by name. Later ones are counted together, under [`OTHER`].
pub const MAX_COUNTED_REALMS: usize = 256;

/// Events of a realm that are counted by name, published and delivered ones apart. Later ones go under [`OTHER`].
pub const MAX_COUNTED_EVENTS: usize = 128;

/// Longest name, in bytes, that is counted as itself.
pub const MAX_COUNTED_NAME_BYTES: usize = 128;

/// What was counted in one realm since the engine was made.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// All events together.
    pub counters: Counters,
    /// Messages accepted, by event.
    pub produced: EventCounts,
    /// Copies handed to sessions, by subscription key.
    pub delivered: EventCounts,
}

/// Counts by event. A place, once found, is counted at by an addition.
#[derive(Debug, Clone, Default)]
pub struct EventCounts {
    places: HashMap<Arc<str>, usize>,
    /// Each event with its count, but for the others.
    counts: Vec<(Arc<str>, u64)>,
    others: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.counters = self.counters.plus(&other.counters);
        self.produced.merge(&other.produced);
        self.delivered.merge(&other.delivered);
    }

    /// Everything under one name.
    fn add_nameless(&mut self, other: &Self) {
        self.counters = self.counters.plus(&other.counters);
        self.produced.others += other.produced.total();
        self.delivered.others += other.delivered.total();
    }
}

impl EventCounts {
    /// Events with their counts, in order of appearance; the nameless last.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let named = self.counts.iter().map(|(event, count)| (&**event, *count));
        named.chain([(OTHER, self.others)])
    }

    /// The place of an event.
    pub(crate) fn place(&mut self, event: &str) -> usize {
        if let Some(place) = self.places.get(event) {
            return *place;
        }
        let place = self.counts.len();
        if place >= MAX_COUNTED_EVENTS || event.len() > MAX_COUNTED_NAME_BYTES {
            return usize::MAX;
        }
        let event: Arc<str> = event.into();
        self.counts.push((event.clone(), 0));
        self.places.insert(event, place);
        place
    }

    pub(crate) fn count(&mut self, place: usize, copies: u64) {
        match self.counts.get_mut(place) {
            Some((_, count)) => *count += copies,
            None => self.others += copies,
        }
    }

    fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }

    fn merge(&mut self, other: &Self) {
        for (event, count) in &other.counts {
            let place = self.place(event);
            self.count(place, *count);
        }
        self.others += other.others;
    }
}

/// What was counted in realms that are gone, and how many names are taken.
#[derive(Debug, Default)]
pub(crate) struct Past {
    realms: BTreeMap<Arc<str>, Tally>,
    nameless: Tally,
    names: usize,
}

impl Past {
    pub(crate) fn total(&self) -> Counters {
        let named = self.realms.values().map(|tally| &tally.counters);
        named.fold(self.nameless.counters, |sum, part| sum.plus(part))
    }

    /// A new realm goes on from where one of its name ended.
    pub(crate) fn revive(&mut self, realm: &mut Realm) {
        let counted_before = self.realms.remove(&realm.name);
        if let Some(tally) = counted_before {
            realm.counters = tally.counters;
            (realm.produced, realm.delivered) = (tally.produced, tally.delivered);
            realm.has_label = true;
        } else if self.names < MAX_COUNTED_REALMS && realm.name.len() <= MAX_COUNTED_NAME_BYTES {
            self.names += 1;
            realm.has_label = true;
        }
    }

    /// A realm is gone.
    pub(crate) fn keep(&mut self, realm: Realm) {
        let tally = realm.tally();
        if realm.has_label {
            self.realms.entry(realm.name).or_default().add(&tally);
        } else {
            self.nameless.add_nameless(&tally);
        }
    }
}

impl Realm {
    fn tally(&self) -> Tally {
        Tally {
            counters: self.counters,
            produced: self.produced.clone(),
            delivered: self.delivered.clone(),
        }
    }
}

impl Engine {
    /// What has been counted, over all realms.
    pub fn counters(&self) -> Counters {
        self.realms
            .iter()
            .fold(self.past.total(), |sum, (_, realm)| {
                sum.plus(&realm.counters)
            })
    }

    /// Adds what was counted in each realm to `sums`.
    pub fn add_tallies(&self, sums: &mut BTreeMap<Arc<str>, Tally>) {
        let mut nameless = self.past.nameless.clone();
        for (name, tally) in &self.past.realms {
            sums.entry(name.clone()).or_default().add(tally);
        }
        for (_, realm) in &self.realms {
            if realm.has_label {
                let sum = sums.entry(realm.name.clone()).or_default();
                sum.add(&realm.tally());
            } else {
                nameless.add_nameless(&realm.tally());
            }
        }
        if nameless.counters != Counters::default() {
            sums.entry(OTHER.into()).or_default().add(&nameless);
        }
    }

    /// Adds what each realm holds to `sums`.
    pub fn add_realm_usages(&self, sums: &mut BTreeMap<Arc<str>, RealmUsage>) {
        for (_, realm) in &self.realms {
            let sum = sums.entry(realm.name.clone()).or_default();
            let online = realm
                .producers
                .iter()
                .filter(|(_, it)| it.session.is_some());
            sum.producers += realm.producers.len();
            sum.producers_online += online.count();
            let online = realm
                .consumers
                .iter()
                .filter(|(_, it)| it.session.is_some());
            sum.consumers += realm.consumers.len();
            sum.consumers_online += online.count();
            sum.subscriptions += realm.subs.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(events: &[&str], expected: &[(&str, u64)]) {
        let mut counts = EventCounts::default();
        for event in events {
            let place = counts.place(event);
            counts.count(place, 1);
        }
        let shown: Vec<_> = counts.iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn events_are_counted_by_name_as_long_as_there_is_room() {
        check(&[], &[]);
        check(&["a", "b", "a"], &[("a", 2), ("b", 1)]);
        let long = "x".repeat(MAX_COUNTED_NAME_BYTES + 1);
        check(
            &[&long[1..], &long, "a"],
            &[(&long[1..], 1), ("a", 1), (OTHER, 1)],
        );
        let many: Vec<String> = (0..2 * MAX_COUNTED_EVENTS)
            .map(|it| it.to_string())
            .collect();
        let mut counts = EventCounts::default();
        for event in many.iter().chain(&many) {
            let place = counts.place(event);
            counts.count(place, 1);
        }
        assert_eq!(counts.iter().count(), MAX_COUNTED_EVENTS + 1);
        assert_eq!(counts.others, 2 * MAX_COUNTED_EVENTS as u64);
        assert_eq!(counts.total(), 4 * MAX_COUNTED_EVENTS as u64);
    }

    #[test]
    fn a_realm_goes_on_counting_and_too_many_are_counted_together() {
        let mut past = Past::default();
        let mut live = |name: &str, produced: u64| {
            let mut realm = Realm::new(0, name.into(), 1);
            past.revive(&mut realm);
            let place = realm.produced.place("e");
            realm.produced.count(place, produced);
            realm.counters.produced += produced;
            past.keep(realm);
            (
                past.realms.len(),
                past.nameless.counters.produced,
                past.total().produced,
            )
        };
        assert_eq!(live("a", 1), (1, 0, 1));
        assert_eq!(live("a", 2), (1, 0, 3));
        for index in 1..MAX_COUNTED_REALMS {
            live(&index.to_string(), 0);
        }
        assert_eq!(live("late", 5), (MAX_COUNTED_REALMS, 5, 8));
        assert_eq!(live("a", 1), (MAX_COUNTED_REALMS, 5, 9));
        assert_eq!(past.realms["a"].produced.iter().next(), Some(("e", 4)));
        assert_eq!(past.nameless.produced.others, 5);
    }
}
