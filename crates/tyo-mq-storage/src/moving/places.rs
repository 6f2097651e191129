//! Positions over a change of stores: larger than those before, and the old ones find their place in the new store.

use std::collections::HashMap;
use std::sync::Arc;

use tyo_mq_core::store::{Position, QueueKey, StoreOp, StoreReply, StoreResult};

/// Translates positions.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    /// The last position before the change; the new store's are counted from here.
    offset: u64,
    /// Position before and after the move of each message, growing.
    moved: HashMap<QueueKey, Vec<(u64, u64)>>,
    /// All moved messages stand behind this in the new store.
    floor: u64,
}

impl Places {
    pub(super) fn new(offset: u64, moved: HashMap<QueueKey, Vec<(u64, u64)>>) -> Self {
        let first = moved
            .values()
            .filter_map(|places| places.first())
            .map(|(_, new)| *new)
            .min();
        let floor = first.map_or(0, |first| first.saturating_sub(1));
        Self {
            offset,
            moved,
            floor,
        }
    }

    /// Makes an operation one for the new store.
    pub(super) fn translate(&self, op: &mut StoreOp) {
        if let StoreOp::Fetch { queue, after, .. } = op {
            *after = Position(self.place(queue, after.0));
        }
    }

    /// Messages of a realm are found under another name.
    pub(super) fn rename_realm(&mut self, from: &str, to: &Arc<str>) {
        for (mut queue, places) in std::mem::take(&mut self.moved) {
            if *queue.realm == *from {
                queue.realm = to.clone();
            }
            self.moved.insert(queue, places);
        }
    }

    /// Makes a result of the new store one for its caller.
    pub(super) fn translate_back(&self, result: &mut StoreResult) {
        let lift = |position: &mut Position| position.0 = position.0.saturating_add(self.offset);
        match result {
            Ok(StoreReply::Enqueued(position)) => lift(position),
            Ok(StoreReply::Page { messages, .. }) => {
                messages.iter_mut().for_each(|it| lift(&mut it.position))
            }
            Ok(StoreReply::Done | StoreReply::Purged(_) | StoreReply::Requeued(_)) | Err(_) => {}
        }
    }

    fn place(&self, queue: &QueueKey, after: u64) -> u64 {
        if after == 0 || after > self.offset {
            return after.saturating_sub(self.offset);
        }
        let moved = self.moved.get(queue).map(Vec::as_slice).unwrap_or_default();
        let passed = moved.partition_point(|(old, _)| *old <= after);
        passed
            .checked_sub(1)
            .map_or(self.floor, |last| moved[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_positions_find_their_place() {
        let queue = QueueKey {
            realm: "r".into(),
            key: "k".into(),
            consumer: "c".into(),
        };
        let other = QueueKey {
            key: "other".into(),
            ..queue.clone()
        };
        let places = Places::new(
            50,
            HashMap::from([(queue.clone(), vec![(10, 101), (20, 103)])]),
        );
        for (after, expected) in [
            (0, 0),
            (5, 100),
            (10, 101),
            (15, 101),
            (20, 103),
            (50, 103),
            (51, 1),
            (151, 101),
        ] {
            assert_eq!(places.place(&queue, after), expected, "{after}");
        }
        assert_eq!(places.place(&other, 7), 100);
    }
}
