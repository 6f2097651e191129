//! Choices that a seed repeats.

/// A generator of choices. Good enough to spread them, not for secrets.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed that no other run has.
    pub(super) fn fresh_seed() -> u64 {
        use std::hash::{BuildHasher, Hasher};
        let seed = std::collections::hash_map::RandomState::new()
            .build_hasher()
            .finish();
        seed % SEEDS
    }

    /// A generator of its own for a thread.
    pub(super) fn split(&mut self) -> Self {
        Self(self.next())
    }

    /// Any number, after splitmix64.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of `least..=most`.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most.saturating_sub(least) + 1)
    }

    /// True in so many of a hundred cases.
    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// One of them.
    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let index = self.between(0, of.len() as u64 - 1);
        &of[usize::try_from(index).unwrap_or(0)]
    }
}

/// Seeds are kept short, so that they are easy to type.
const SEEDS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_choices_and_bounds_hold() {
        let (mut one, mut two) = (Random::new(7), Random::new(7));
        let choices: Vec<u64> = (0..100).map(|_| one.between(3, 5)).collect();
        assert!(choices.iter().all(|it| (3..=5).contains(it)));
        assert!((3..=5).all(|it| choices.contains(&it)), "{choices:?}");
        assert_eq!(
            choices,
            (0..100).map(|_| two.between(3, 5)).collect::<Vec<_>>()
        );
        assert_eq!(Random::new(1).between(9, 9), 9);
        assert!(!Random::new(1).percent(0) && Random::new(1).percent(100));
        assert_eq!(Random::new(1).pick(&["only"]), &"only");
    }
}
