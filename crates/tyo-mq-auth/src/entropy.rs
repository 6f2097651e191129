//! Where random bytes come from: the system in production, a seed in tests.

use std::fmt;

use ring::rand::{SecureRandom, SystemRandom};

use crate::secret::{Secret, encode_hex};

/// A source of random bytes.
pub trait Entropy: Send {
    /// Fills the buffer.
    fn fill(&mut self, buffer: &mut [u8]);
}

/// A new token: 32 random bytes in hexadecimal.
pub fn new_token(entropy: &mut dyn Entropy) -> Secret {
    let mut bytes = [0; 32];
    entropy.fill(&mut bytes);
    Secret::new(&encode_hex(&bytes))
}

/// The system's random numbers.
pub struct SystemEntropy(SystemRandom);

impl SystemEntropy {
    /// The system's source.
    #[must_use]
    pub fn new() -> Self {
        Self(SystemRandom::new())
    }
}

impl Default for SystemEntropy {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SystemEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemEntropy")
    }
}

impl Entropy for SystemEntropy {
    fn fill(&mut self, buffer: &mut [u8]) {
        self.0
            .fill(buffer)
            .expect("the system has random numbers once it runs");
    }
}

/// A repeatable sequence, for tests. Not for secrets.
#[derive(Debug)]
pub struct SeededEntropy(u64);

impl SeededEntropy {
    /// Begins a sequence.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }
}

impl Entropy for SeededEntropy {
    fn fill(&mut self, buffer: &mut [u8]) {
        // SplitMix64
        for chunk in buffer.chunks_mut(8) {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut word = self.0;
            word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            word ^= word >> 31;
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
    }
}
