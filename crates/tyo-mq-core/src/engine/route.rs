//! Which subscriptions a message goes to, and the memory of it. Delivers nothing.

use std::sync::Arc;

use hashbrown::HashMap;

use super::ANY_PRODUCER_KEY;
use super::input::Lifetime;
use super::output::Key;
use super::realm::{Group, Realm, any_producer_key, lower, subscription_key};
use super::roster::Roster;
use crate::message::SessionId;

/// Where messages of one (producer, event) go, as long as nothing changes in the realm.
#[derive(Debug)]
pub(crate) struct Route {
    /// Names shared by all messages of this route.
    pub(crate) event: Arc<str>,
    pub(crate) producer: Arc<str>,
    /// Where its messages are counted.
    pub(crate) counter: usize,
    /// Some session holds the producer's name.
    pub(crate) held: bool,
    /// Life of its stored copies if a message names none.
    pub(crate) default_ttl: Lifetime,
    /// Online subscriptions that need no state, by name: whole lists of sessions.
    pub(crate) plain: Vec<Plain>,
    /// Subscriptions that are looked at one by one: acknowledged, durable, offline, or with a queue.
    pub(crate) single: Vec<usize>,
    /// Groups with the subscriptions among which one is chosen.
    pub(crate) groups: Vec<(Arc<str>, Vec<usize>)>,
}

/// Subscriptions of one name that need no state.
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) key: Key,
    /// Where copies are counted.
    pub(crate) counter: usize,
    pub(crate) sessions: Arc<[SessionId]>,
}

impl Plain {
    fn new(((key, counter), sessions): ((Key, usize), Vec<SessionId>)) -> Self {
        Self {
            key,
            counter,
            sessions: sessions.into(),
        }
    }
}

/// Remembered routes of a realm; any change of registrations or subscriptions forgets them all. At the limit those go that
/// were not used for the longest time, half of them at once.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    recent: Generation,
    older: Generation,
}

/// Routes by producer and event.
#[derive(Debug, Default)]
struct Generation {
    known: HashMap<Arc<str>, HashMap<Arc<str>, Arc<Route>>>,
    len: usize,
}

impl Generation {
    fn find(&self, producer: &str, event: &str) -> Option<&Arc<Route>> {
        self.known.get(producer)?.get(event)
    }

    fn insert(&mut self, route: Arc<Route>) {
        let events = self.known.entry(route.producer.clone()).or_default();
        let before = events.insert(route.event.clone(), route);
        self.len += usize::from(before.is_none());
    }
}

impl Routes {
    pub(crate) fn find(&mut self, producer: &str, event: &str, limit: usize) -> Option<Arc<Route>> {
        if let Some(route) = self.recent.find(producer, event) {
            return Some(route.clone());
        }
        let route = self.older.find(producer, event)?.clone();
        self.remember(&route, limit);
        Some(route)
    }

    pub(crate) fn remember(&mut self, route: &Arc<Route>, limit: usize) {
        if self.recent.len >= limit / 2 {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(route.clone());
    }

    pub(crate) fn invalidate(&mut self) {
        for generation in [&mut self.recent, &mut self.older] {
            if generation.len > 0 {
                generation.known.clear();
                generation.len = 0;
            }
        }
    }
}

impl Realm {
    /// Computes the route of a (producer, event).
    pub(crate) fn build_route(&mut self, producer: &str, event: &str) -> Route {
        let mut route = Route {
            event: event.into(),
            producer: producer.into(),
            counter: self.produced.place(event),
            held: false,
            default_ttl: Lifetime::Unset,
            plain: Vec::new(),
            single: Vec::new(),
            groups: Vec::new(),
        };
        if let Some(&index) = self.producer_names.get(producer) {
            route.default_ttl = self.producers[index].default_ttl;
            route.held = self.producers[index].session.is_some();
        }
        let mut plain: Vec<((Key, usize), Vec<SessionId>)> = Vec::new();
        let mut places: HashMap<Arc<str>, usize> = HashMap::new();
        for index in self.matching(producer, event) {
            let sub = &self.subs[index];
            if let Some(group) = &sub.spec.group {
                add_member(&mut route.groups, group, index);
                continue;
            }
            let session = self.consumers[sub.consumer].session;
            match session.filter(|_| !sub.spec.ack && !sub.spec.durable && sub.queue.is_none()) {
                None => route.single.push(index),
                Some(session) => {
                    let place = *places.entry(sub.key.clone()).or_insert(plain.len());
                    if place == plain.len() {
                        plain.push(((sub.delivery_key(), sub.counter), Vec::new()));
                    }
                    plain[place].1.push(session);
                }
            }
        }
        route.plain = plain.into_iter().map(Plain::new).collect();
        route
    }

    /// Matching subscriptions: of this producer and event, of all its events, of any producer, by pattern.
    pub(crate) fn matching(&self, producer: &str, event: &str) -> Vec<usize> {
        let mut found = Vec::new();
        let (producer, any_key) = (lower(producer), any_producer_key(event));
        let exact_key = subscription_key(&producer, event);
        let exact = self.by_key.get(&*exact_key).into_iter();
        found.extend(exact.flat_map(Roster::iter).filter(|index| {
            let sub = &self.subs[*index];
            !sub.any_producer() && *sub.producer_lower == *producer
        }));
        found.extend(
            self.all_events
                .get(&*producer)
                .into_iter()
                .flat_map(Roster::iter)
                .filter(|it| !self.subs[*it].any_producer()),
        );
        let any = self.by_key.get(&*any_key).into_iter();
        let all = self.all_events.get(ANY_PRODUCER_KEY).into_iter();
        let of_any = any.chain(all).flat_map(Roster::iter);
        found.extend(of_any.filter(|index| self.subs[*index].any_producer()));
        if !self.topics.is_empty() {
            let mut by_pattern = Vec::new();
            self.topics.find(&lower(event), &mut by_pattern);
            by_pattern.retain(|index| {
                let key = &*self.subs[*index].key;
                key != exact_key && key != any_key
            });
            by_pattern.sort_unstable_by_key(|index| self.subs[*index].order);
            found.extend(by_pattern);
        }
        found
    }

    /// The member of a group that gets the next message: round robin among those that can take it now, else among
    /// the online, else among the durable, else among all. Members that acknowledge are preferred by what they have in hand.
    pub(crate) fn choose_member(&mut self, group: &Arc<str>, members: &[usize]) -> Option<usize> {
        let with_room = |index: &usize| self.has_room(*index);
        let online = |index: &usize| self.consumers[self.subs[*index].consumer].session.is_some();
        let mut candidates: Vec<usize> = members.iter().copied().filter(with_room).collect();
        if candidates.is_empty() {
            candidates = members.iter().copied().filter(online).collect();
        }
        let durable = |index: &usize| self.subs[*index].spec.durable;
        if candidates.is_empty() {
            candidates = members.iter().copied().filter(durable).collect();
        }
        if candidates.is_empty() {
            candidates = members.to_vec();
        }
        let least = |index: &usize| {
            if self.subs[*index].spec.ack {
                self.subs[*index].in_flight
            } else {
                0
            }
        };
        if let Some(fewest) = candidates.iter().map(least).min() {
            candidates.retain(|index| least(index) == fewest);
        }
        let key = self.subs[*members.first()?].key.clone();
        let turn = self
            .groups
            .get_mut(group)
            .map(|Group { turns, .. }| turns.entry(key).or_default())?;
        // The turn counts over all members, so that a member that is skipped once does not shift the others.
        let start = (*turn % members.len() as u64) as usize;
        let chosen = (0..members.len()).map(|step| (start + step) % members.len());
        let place = chosen
            .into_iter()
            .find(|place| candidates.contains(&members[*place]))?;
        *turn = place as u64 + 1;
        Some(members[place])
    }
}

/// Puts a subscription into the list of its group.
pub(crate) fn add_member(groups: &mut Vec<(Arc<str>, Vec<usize>)>, group: &Arc<str>, index: usize) {
    match groups.iter_mut().find(|(name, _)| name == group) {
        Some((_, members)) => members.push(index),
        None => groups.push((group.clone(), vec![index])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(event: &str) -> Arc<Route> {
        Arc::new(Route {
            event: event.into(),
            producer: "p".into(),
            counter: 0,
            held: true,
            default_ttl: Lifetime::Unset,
            plain: Vec::new(),
            single: Vec::new(),
            groups: Vec::new(),
        })
    }

    #[test]
    fn what_is_used_stays_and_no_more_than_the_limit() {
        const LIMIT: usize = 8;
        let mut routes = Routes::default();
        let used = route("used");
        routes.remember(&used, LIMIT);
        for number in 0..100 {
            routes.remember(&route(&number.to_string()), LIMIT);
            let found = routes.find("p", "used", LIMIT).unwrap();
            assert!(Arc::ptr_eq(&found, &used));
            assert!(routes.recent.len + routes.older.len <= LIMIT);
        }
        assert!(routes.find("p", "0", LIMIT).is_none());
        assert!(routes.find("p", "99", LIMIT).is_some());
        routes.invalidate();
        assert!(routes.find("p", "used", LIMIT).is_none());
        assert!(routes.find("p", "99", LIMIT).is_none());
    }
}
