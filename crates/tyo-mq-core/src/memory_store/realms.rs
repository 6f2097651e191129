//! What the memory store does to whole realms: expiry, the end of one, another name.

use std::sync::Arc;

use super::{Rows, State};
use crate::message::MessageId;
use crate::store::{DeadLetter, QueueKey, StoredMessage};

impl State {
    pub(super) fn purge_expired(
        &mut self,
        realm: &str,
        now_ms: u64,
        to_dead_letters: bool,
    ) -> Vec<(QueueKey, u64)> {
        let mut queues = self.queues_of(realm);
        queues.sort_unstable_by(|left, right| self.queues[*left].key.cmp(&self.queues[*right].key));
        let mut purged = Vec::new();
        for queue in queues {
            let Rows { key, slots, .. } = &self.queues[queue];
            let key = key.clone();
            let over =
                |stored: &&StoredMessage| stored.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
            let ids: Vec<MessageId> = slots
                .iter()
                .filter_map(|slot| slot.stored.as_ref())
                .filter(over)
                .map(|stored| stored.id.clone())
                .collect();
            for id in &ids {
                let taken = self.take(id);
                if let Some(stored) = taken.filter(|_| to_dead_letters) {
                    self.bury(DeadLetter {
                        stored,
                        reason: "expired".to_owned(),
                        dead_lettered_at_ms: now_ms,
                    });
                }
            }
            if !ids.is_empty() {
                purged.push(((*key).clone(), ids.len() as u64));
            }
        }
        purged
    }

    pub(super) fn purge_realm(&mut self, realm: &str) {
        for queue in self.queues_of(realm) {
            let slots = self.remove_queue(queue).slots;
            for stored in slots.into_iter().filter_map(|slot| slot.stored) {
                self.places.remove(&stored.id);
                self.bytes -= stored.message.size();
            }
        }
        let of_realm = |letter: &DeadLetter| *letter.stored.queue.realm == *realm;
        let numbers: Vec<u64> = self
            .letters
            .iter()
            .filter(|(_, it)| of_realm(it))
            .map(|(number, _)| *number)
            .collect();
        for letter in numbers {
            if let Some(letter) = self.remove_letter(letter) {
                self.letter_numbers.remove(&letter.stored.id);
            }
        }
        self.subscriptions
            .retain(|(queue, _), _| *queue.realm != *realm);
    }

    pub(super) fn rename_realm(&mut self, from: &str, to: &Arc<str>) {
        for queue in self.queues_of(from) {
            self.rename_queue(queue, to);
        }
        for letter in self.letters.values_mut() {
            if *letter.stored.queue.realm == *from {
                letter.stored.queue = Arc::new(renamed(&letter.stored.queue, to));
            }
        }
        for ((queue, name), mut subscription) in std::mem::take(&mut self.subscriptions) {
            let queue = if *queue.realm == *from {
                renamed(&queue, to)
            } else {
                queue
            };
            subscription.queue = queue.clone();
            self.subscriptions.insert((queue, name), subscription);
        }
    }

    /// Its messages go among those that wait under the new name, by their positions.
    fn rename_queue(&mut self, queue: usize, to: &Arc<str>) {
        let rows = self.remove_queue(queue);
        let key = Arc::new(renamed(&rows.key, to));
        let queue = self.queue_named(&key);
        let own = &mut self.queues[queue];
        for mut slot in rows.slots {
            if let Some(stored) = &mut slot.stored {
                stored.queue = key.clone();
                let place = (queue, slot.position);
                self.places.insert(stored.id.clone(), place);
                own.slots.push_back(slot);
                own.live += 1;
            }
        }
        own.slots
            .make_contiguous()
            .sort_unstable_by_key(|slot| slot.position);
    }

    fn queues_of(&self, realm: &str) -> Vec<usize> {
        let of_realm = self
            .queues
            .iter()
            .filter(|(_, rows)| *rows.key.realm == *realm);
        of_realm.map(|(queue, _)| queue).collect()
    }
}

fn renamed(queue: &QueueKey, realm: &Arc<str>) -> QueueKey {
    QueueKey {
        realm: realm.clone(),
        ..queue.clone()
    }
}
