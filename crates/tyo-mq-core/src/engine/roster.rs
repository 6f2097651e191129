//! Lists of subscriptions in the order of their arrival. To take one out costs no walk, however long the list is.

/// Subscriptions, each with the number of its arrival.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roster {
    /// By arrival; those that left stay for a while as [`GONE`].
    entries: Vec<(u64, usize)>,
    gone: usize,
}

const GONE: usize = usize::MAX;

impl Roster {
    /// Puts a subscription to its place: mostly the end.
    pub(crate) fn insert(&mut self, order: u64, sub: usize) {
        if self.entries.last().is_none_or(|(last, _)| *last < order) {
            return self.entries.push((order, sub));
        }
        match self.place(order) {
            Ok(place) => {
                self.gone -= usize::from(self.entries[place].1 == GONE);
                self.entries[place].1 = sub;
            }
            Err(place) => self.entries.insert(place, (order, sub)),
        }
    }

    pub(crate) fn remove(&mut self, order: u64) {
        let Ok(place) = self.place(order) else {
            return;
        };
        let left = std::mem::replace(&mut self.entries[place].1, GONE);
        self.gone += usize::from(left != GONE);
        if self.gone * 2 > self.entries.len() {
            self.entries.retain(|(_, sub)| *sub != GONE);
            self.entries.shrink_to(2 * self.entries.len());
            self.gone = 0;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        let subs = self.entries.iter().map(|(_, sub)| *sub);
        subs.filter(|sub| *sub != GONE)
    }

    pub(crate) fn to_vec(&self) -> Vec<usize> {
        self.iter().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.gone
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn place(&self, order: u64) -> Result<usize, usize> {
        self.entries
            .binary_search_by_key(&order, |(order, _)| *order)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_an_ordered_map(steps in prop::collection::vec((any::<bool>(), 0u64..20, 0usize..5), 0..200)) {
            let (mut roster, mut expected) = (Roster::default(), BTreeMap::new());
            for (insert, order, sub) in steps {
                if insert {
                    roster.insert(order, sub);
                    expected.insert(order, sub);
                } else {
                    roster.remove(order);
                    expected.remove(&order);
                }
                prop_assert_eq!(roster.len(), expected.len());
                prop_assert!(roster.entries.len() <= 2 * expected.len() + 1);
            }
            prop_assert_eq!(roster.to_vec(), expected.into_values().collect::<Vec<_>>());
        }
    }
}
