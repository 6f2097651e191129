//! Tests of cutting and putting together.

use proptest::prelude::*;

use super::*;
use crate::{ProduceChunk, Status};

const LIMITS: ChunkLimits = ChunkLimits {
    max_bytes: 100,
    max_buffered_bytes: 150,
    max_transfers: 3,
    idle_ms: 60_000,
};

fn chunk(id: &str, index: u32, total: u32, data: &str) -> ProduceChunk<'static> {
    let data = serde_json::to_string(data).unwrap();
    ProduceChunk {
        transfer_id: id.to_owned().into(),
        index,
        total,
        data: data.into(),
    }
}

fn raw_chunk(index: u32, total: u32, data: &'static str) -> ProduceChunk<'static> {
    ProduceChunk {
        transfer_id: "t".into(),
        index,
        total,
        data: data.into(),
    }
}

/// Adds pieces of one transfer in order; what the last one gave.
fn assemble(pieces: &[&'static str]) -> Result<Option<String>, ChunkError> {
    let mut assembler = ChunkAssembler::new(LIMITS);
    let total = pieces.len() as u32;
    let mut last = Ok(None);
    for (index, data) in pieces.iter().enumerate() {
        last = assembler.add(&raw_chunk(index as u32, total, data), 0);
    }
    assert!(assembler.is_empty());
    last
}

#[test]
fn the_boundary() {
    for (units, pieces) in [
        (CHUNK_UNITS - 1, 1),
        (CHUNK_UNITS, 1),
        (CHUNK_UNITS + 1, 2),
        (2 * CHUNK_UNITS, 2),
        (2 * CHUNK_UNITS + 1, 3),
    ] {
        for text in ["x".repeat(units), "é".repeat(units), "日".repeat(units)] {
            assert_eq!(needs_chunks(&text), pieces > 1);
            assert_eq!(cut_chunks(&text).len(), pieces);
        }
    }
    assert!(!needs_chunks(&"😀".repeat(CHUNK_UNITS / 2)));
    assert!(needs_chunks(&"😀".repeat(CHUNK_UNITS / 2 + 1)));
}

#[test]
fn cuts() {
    assert_eq!(cut("", 4), [""]);
    assert_eq!(cut("abcdef", 4), ["abcd", "ef"]);
    assert_eq!(cut("x😀😀", 4), ["x😀", "😀"], "a pair stays whole");
    assert_eq!(cut("日本語", 2), ["日本", "語"]);
    for (pattern, units) in [
        ("a日😀", 4_000),
        ("😀", 4_097),
        ("é", 10_000),
        ("ab", 5_001),
        ("日", 1),
    ] {
        let text = pattern.repeat(6_000);
        let mut rest = text.as_str();
        for piece in cut(&text, units) {
            let expected = rest.char_indices().scan(0, |sum, (at, c)| {
                *sum += c.len_utf16();
                (*sum <= units).then_some(at + c.len_utf8())
            });
            assert_eq!(
                piece.len(),
                expected.last().unwrap_or_default(),
                "{pattern} {units}"
            );
            rest = &rest[piece.len()..];
        }
        assert_eq!(rest, "");
    }
}

#[test]
fn a_piece_on_the_wire() {
    let mut out = Vec::new();
    write_consume_chunk(&mut out, "t-1", "CONSUME-p-\"e", (0, 2), "{\"a\":\"é\n");
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"transferId":"t-1","event":"CONSUME-p-\"e","index":0,"total":2,"data":"{\"a\":\"é\n"}"#
    );
}

#[test]
fn any_order_and_repeated() {
    let mut assembler = ChunkAssembler::new(LIMITS);
    assert_eq!(assembler.add(&chunk("t", 2, 3, "c"), 0), Ok(None));
    assert_eq!(assembler.add(&chunk("t", 0, 3, "a"), 0), Ok(None));
    assert_eq!(assembler.add(&chunk("t", 0, 3, "A"), 0), Ok(None));
    assert_eq!(assembler.add(&chunk("t", 2, 3, "c"), 0), Ok(None));
    assert_eq!(
        assembler.add(&chunk("t", 1, 3, "b"), 0),
        Ok(Some("abc".into()))
    );
    assert!(assembler.is_empty());
}

#[test]
fn transfers_side_by_side() {
    let mut assembler = ChunkAssembler::new(LIMITS);
    assert_eq!(assembler.add(&chunk("t", 0, 2, "a"), 0), Ok(None));
    assert_eq!(assembler.add(&chunk("u", 0, 2, "x"), 0), Ok(None));
    assert_eq!(
        assembler.add(&chunk("t", 1, 2, "b"), 0),
        Ok(Some("ab".into()))
    );
    assert_eq!(
        assembler.add(&chunk("u", 1, 2, "y"), 0),
        Ok(Some("xy".into()))
    );
}

#[test]
fn halves_of_a_pair_meet() {
    assert_eq!(
        assemble(&[r#""a\ud83d""#, r#""\ude00b""#]),
        Ok(Some("a😀b".into()))
    );
    assert_eq!(
        assemble(&[r#""a\uD83D""#, r#""""#, r#""\uDE00b""#]),
        Ok(Some("a😀b".into()))
    );
}

#[test]
fn halves_that_stay_alone_become_escapes() {
    assert_eq!(
        assemble(&[r#""{\"m\":\"\ud83d\"""#, r#""}""#]),
        Ok(Some(r#"{"m":"\ud83d"}"#.into()))
    );
    assert_eq!(
        assemble(&[r#""\ude00""#, r#""\ud83d""#]),
        Ok(Some(r"\ude00\ud83d".into()))
    );
    assert_eq!(
        assemble(&[r#""\ud83d""#, r#""\ud83d\ude00""#]),
        Ok(Some(r"\ud83d😀".into()))
    );
    assert_eq!(assemble(&[r#""\\\\\udfff""#]), Ok(Some(r"\\\udfff".into())));
    assert_eq!(
        assemble(&[r#""\\\udfff""#]),
        Err(ChunkError::NotText),
        "an escape would change its meaning here"
    );
}

#[test]
fn breaches_drop_the_transfer() {
    let check = |bad: ProduceChunk<'_>, expected: ChunkError, status: Status| {
        let mut assembler = ChunkAssembler::new(LIMITS);
        assert_eq!(assembler.add(&chunk("t", 0, 2, "a"), 0), Ok(None));
        assert_eq!(assembler.add(&bad, 0), Err(expected));
        assert_eq!(expected.status(), status);
        assert!(assembler.is_empty());
    };
    let out_of_range = |index, total| ChunkError::OutOfRange { index, total };
    check(chunk("t", 2, 2, ""), out_of_range(2, 2), Status::Malformed);
    check(chunk("t", 0, 0, ""), out_of_range(0, 0), Status::Malformed);
    check(
        chunk("t", 0, MAX_CHUNKS + 1, ""),
        out_of_range(0, MAX_CHUNKS + 1),
        Status::Malformed,
    );
    check(
        chunk("t", 1, 3, ""),
        ChunkError::TotalChanged {
            total: 3,
            expected: 2,
        },
        Status::Malformed,
    );
    check(
        chunk("t", 1, 2, &"x".repeat(100)),
        ChunkError::MessageTooLarge { max: 100 },
        Status::TooLarge,
    );
    check(raw_chunk(1, 2, "5"), ChunkError::NotText, Status::Malformed);
}

#[test]
fn all_transfers_share_a_buffer() {
    let mut assembler = ChunkAssembler::new(LIMITS);
    assert_eq!(
        assembler.add(&chunk("t", 0, 2, &"x".repeat(90)), 0),
        Ok(None)
    );
    assert_eq!(
        assembler.add(&chunk("u", 0, 2, &"x".repeat(60)), 0),
        Ok(None)
    );
    assert_eq!(
        assembler.add(&chunk("v", 0, 2, "x"), 0),
        Err(ChunkError::BufferFull { max: 150 })
    );
    assert_eq!(assembler.len(), 2);
}

#[test]
fn so_many_transfers_and_no_more() {
    let mut assembler = ChunkAssembler::new(LIMITS);
    for id in ["a", "b", "c"] {
        assert_eq!(assembler.add(&chunk(id, 0, 2, ""), 0), Ok(None));
    }
    assert_eq!(
        assembler.add(&chunk("d", 0, 2, ""), 0),
        Err(ChunkError::TooManyTransfers { max: 3 })
    );
    assert_eq!(
        assembler.add(&chunk("a", 1, 2, ""), 0),
        Ok(Some(String::new()))
    );
    assert_eq!(assembler.add(&chunk("d", 0, 2, ""), 0), Ok(None));
}

#[test]
fn idle_transfers_end() {
    let mut assembler = ChunkAssembler::new(LIMITS);
    assert_eq!(assembler.deadline_ms(), None);
    assembler.add(&chunk("t", 0, 3, "a"), 1000).unwrap();
    assembler.add(&chunk("u", 0, 2, "x"), 2000).unwrap();
    assembler.add(&chunk("t", 1, 3, "b"), 3000).unwrap();
    assert_eq!(assembler.deadline_ms(), Some(62_000));
    assert_eq!(assembler.expire(61_999), 0);
    assert_eq!(assembler.expire(62_000), 1);
    assert_eq!(
        assembler.add(&chunk("t", 2, 3, "c"), 62_999),
        Ok(Some("abc".into()))
    );
}

proptest! {
    #[test]
    fn cut_pieces_add_up(text in ".{0,40}", units in 2usize..6) {
        let pieces = cut(&text, units);
        prop_assert_eq!(pieces.concat(), text.clone());
        for piece in &pieces {
            prop_assert!(utf16_len(piece.as_bytes()) <= units);
        }
        for piece in &pieces[..pieces.len() - 1] {
            prop_assert!(utf16_len(piece.as_bytes()) + 1 >= units);
        }
    }

    #[test]
    fn lengths_are_those_of_utf16(text in ".*") {
        prop_assert_eq!(utf16_len(text.as_bytes()), text.encode_utf16().count());
    }

    /// Cuts a text at any UTF-16 unit, as JavaScript does, and sends the pieces in any order.
    #[test]
    fn what_is_cut_anywhere_comes_back(text in ".{1,12}", size in 1usize..4, seed in any::<u64>()) {
        let units: Vec<u16> = text.encode_utf16().collect();
        let pieces: Vec<String> = units.chunks(size).map(|piece| {
            let escapes: String = piece.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            format!("\"{escapes}\"")
        }).collect();
        let mut order: Vec<usize> = (0..pieces.len()).collect();
        order.sort_by_key(|&index| (index as u64 + 1).wrapping_mul(seed | 1) % 97);
        let mut assembler = ChunkAssembler::new(LIMITS);
        let mut whole = None;
        for index in order {
            let chunk = ProduceChunk {
                transfer_id: "t".into(),
                index: index as u32,
                total: pieces.len() as u32,
                data: pieces[index].clone().into(),
            };
            whole = assembler.add(&chunk, 0).unwrap();
        }
        prop_assert_eq!(whole, Some(text));
    }
}
