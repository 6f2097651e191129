//! Message ids: unique text from a seeded generator and the clock value given. No randomness of its own.

use crate::message::MessageId;

/// Makes message ids of the form `msg-<base36 milliseconds>-<12 hex digits>`.
#[derive(Debug)]
pub(crate) struct Ids {
    state: u64,
    /// The last id: another one of the same moment differs in its digits alone.
    text: [u8; LONGEST],
    /// Where its digits begin.
    digits_at: usize,
    wall_ms: Option<u64>,
}

/// `msg-`, 13 digits of base 36, `-` and 12 hex digits.
const LONGEST: usize = 4 + 13 + 1 + 12;

impl Ids {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: seed,
            text: [0; LONGEST],
            digits_at: 0,
            wall_ms: None,
        }
    }

    pub(crate) fn next(&mut self, wall_ms: u64) -> MessageId {
        if self.wall_ms != Some(wall_ms) {
            self.write_moment(wall_ms);
        }
        let random = self.next_u64();
        let end = self.digits_at + 12;
        for (place, digit) in self.text[self.digits_at..end].iter_mut().enumerate() {
            *digit = DIGITS[(random >> ((11 - place) * 4) & 15) as usize];
        }
        let text = std::str::from_utf8(&self.text[..end]);
        MessageId(text.expect("only ASCII was written").into())
    }

    fn write_moment(&mut self, wall_ms: u64) {
        self.text[..4].copy_from_slice(b"msg-");
        let end = 4 + write_base36(wall_ms, &mut self.text[4..17]);
        self.text[end] = b'-';
        self.digits_at = end + 1;
        self.wall_ms = Some(wall_ms);
    }

    /// SplitMix64: every seed gives a full-period sequence.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// Writes at most 13 digits (the most that 64 bits need) and returns their number.
fn write_base36(mut value: u64, out: &mut [u8]) -> usize {
    let mut digits = [0u8; 13];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = DIGITS[(value % 36) as usize];
        value /= 36;
        if value == 0 {
            break;
        }
    }
    out[..13 - start].copy_from_slice(&digits[start..]);
    13 - start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moment_is_that_of_each_id() {
        let mut ids = Ids::new(3);
        let moments = [1, 1, 36 * 36, 36 * 36, u64::MAX, 0];
        let made = moments.map(|moment| ids.next(moment).as_str().to_owned());
        let starts = [
            "msg-1-",
            "msg-1-",
            "msg-100-",
            "msg-100-",
            "msg-3w5e11264sgsf-",
            "msg-0-",
        ];
        for (id, start) in made.iter().zip(starts) {
            assert!(
                id.starts_with(start) && id.len() == start.len() + 12,
                "{id}"
            );
        }
        assert_ne!(made[0], made[1]);
    }

    #[test]
    fn an_id_has_the_known_shape_and_repeats_with_the_seed() {
        let first = Ids::new(7).next(1_735_689_600_000);
        assert_eq!(first, Ids::new(7).next(1_735_689_600_000));
        let parts: Vec<&str> = first.as_str().split('-').collect();
        assert_eq!(parts[0], "msg");
        assert_eq!(u64::from_str_radix(parts[1], 36), Ok(1_735_689_600_000));
        assert_eq!(parts[2].len(), 12);
        assert!(
            Ids::new(1)
                .next(u64::MAX)
                .as_str()
                .starts_with("msg-3w5e11264sgsf-")
        );
    }
}
