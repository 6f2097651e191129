//! Chunks in any order and of any kind: bounds hold, and a whole text is a text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tyo_mq_protocol::{ChunkAssembler, ChunkLimits, ProduceChunk, parse_produce};

const LIMITS: ChunkLimits = ChunkLimits {
    max_bytes: 200,
    max_buffered_bytes: 300,
    max_transfers: 3,
    idle_ms: 1000,
};

fuzz_target!(|chunks: Vec<(u8, u8, u8, u8, &str)>| {
    let mut assembler = ChunkAssembler::new(LIMITS);
    let mut now_ms = 0;
    for (id, index, total, later_ms, data) in chunks {
        now_ms += u64::from(later_ms);
        let chunk = ProduceChunk {
            transfer_id: (id % 5).to_string().into(),
            index: u32::from(index),
            total: u32::from(total),
            data: format!("\"{data}\"").into(),
        };
        if let Ok(Some(text)) = assembler.add(&chunk, now_ms) {
            // An escaped surrogate takes twice the bytes that the surrogate took.
            assert!(text.len() <= 2 * LIMITS.max_bytes);
            let _ = parse_produce(&text);
        }
        assert!(assembler.len() <= LIMITS.max_transfers);
        assert_eq!(assembler.deadline_ms().is_none(), assembler.is_empty());
    }
});
