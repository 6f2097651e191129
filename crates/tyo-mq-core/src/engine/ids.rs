//! Message ids: unique text from a seeded generator and the clock value given. No randomness of its own.

use crate::message::MessageId;

/// Makes message ids of the form `msg-<base36 milliseconds>-<12 hex digits>`.
#[derive(Debug)]
pub(crate) struct Ids {
    state: u64,
}

impl Ids {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next(&mut self, wall_ms: u64) -> MessageId {
        let mut text = [0u8; 4 + 13 + 1 + 12];
        text[..4].copy_from_slice(b"msg-");
        let mut end = 4 + write_base36(wall_ms, &mut text[4..17]);
        text[end] = b'-';
        end += 1;
        let random = self.next_u64();
        for shift in (0..12).rev() {
            text[end] = DIGITS[(random >> (shift * 4) & 15) as usize];
            end += 1;
        }
        MessageId(
            std::str::from_utf8(&text[..end])
                .expect("only ASCII was written")
                .into(),
        )
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
