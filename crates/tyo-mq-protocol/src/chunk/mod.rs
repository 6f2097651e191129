//! Large payloads in pieces: how deliveries are cut, and how a client's pieces are put together.

mod assembler;
#[cfg(test)]
mod tests;

pub use assembler::{ChunkAssembler, ChunkError, ChunkLimits, MAX_CHUNKS};

use crate::json::{utf16_len, write_json_string};

/// The most UTF-16 units of JSON text that one frame carries; what is longer goes out in pieces.
pub const CHUNK_UNITS: usize = 262_144;

/// Whether a delivery's text must be cut.
#[must_use]
pub fn needs_chunks(text: &str) -> bool {
    text.len() > CHUNK_UNITS && utf16_len(text.as_bytes()) > CHUNK_UNITS
}

/// Cuts a text into pieces of at most [`CHUNK_UNITS`] UTF-16 units, between characters: a surrogate pair stays whole,
/// so that a piece may be one unit short.
#[must_use]
pub fn cut_chunks(text: &str) -> Vec<&str> {
    cut(text, CHUNK_UNITS)
}

/// Writes the payload of one CONSUME_CHUNK.
pub fn write_consume_chunk(
    out: &mut Vec<u8>,
    transfer_id: &str,
    event: &str,
    (index, total): (usize, usize),
    data: &str,
) {
    out.extend_from_slice(b"{\"transferId\":");
    write_json_string(out, transfer_id);
    out.extend_from_slice(b",\"event\":");
    write_json_string(out, event);
    out.extend_from_slice(format!(",\"index\":{index},\"total\":{total},\"data\":").as_bytes());
    write_json_string(out, data);
    out.push(b'}');
}

/// Bytes that are counted at a time.
const STRIDE: usize = 4096;

fn cut(mut text: &str, units: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    loop {
        let (piece, rest) = text.split_at(prefix_len(text, units));
        pieces.push(piece);
        if rest.is_empty() {
            return pieces;
        }
        text = rest;
    }
}

/// The bytes of the longest beginning that has at most so many UTF-16 units.
fn prefix_len(text: &str, units: usize) -> usize {
    if text.len() <= units {
        return text.len();
    }
    let (mut at, mut left) = (0, units);
    for stride in text.as_bytes().chunks(STRIDE) {
        match left.checked_sub(utf16_len(stride)) {
            Some(less) => (at, left) = (at + stride.len(), less),
            None => break,
        }
    }
    // The character that a stride ends in was counted where it begins.
    at = text.ceil_char_boundary(at);
    for (offset, c) in text[at..].char_indices() {
        match left.checked_sub(c.len_utf16()) {
            Some(less) => left = less,
            None => return at + offset,
        }
    }
    text.len()
}
