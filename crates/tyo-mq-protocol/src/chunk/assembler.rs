//! Puts the pieces of PRODUCE_CHUNK together, within bounds; time is a value that the caller brings.

use std::collections::BTreeMap;

use crate::{ProduceChunk, Status, wtf8};

/// The most pieces of one transfer.
pub const MAX_CHUNKS: u32 = 4096;

/// The transfers of one socket that are under way.
#[derive(Debug)]
pub struct ChunkAssembler {
    limits: ChunkLimits,
    transfers: Vec<Transfer>,
}

/// Bounds of one socket's transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLimits {
    /// The text of one message, in bytes.
    pub max_bytes: usize,
    /// The pieces of all transfers together, in bytes.
    pub max_buffered_bytes: usize,
    /// Transfers under way at a time.
    pub max_transfers: usize,
    /// A transfer that gets no piece for so long is dropped.
    pub idle_ms: u64,
}

/// Why a piece was refused. Its transfer, if there was one, is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkError {
    /// Not `0 <= index < total <= MAX_CHUNKS`.
    #[error("chunk {index} of {total} is out of range")]
    OutOfRange {
        /// The piece's place.
        index: u32,
        /// The pieces it claims.
        total: u32,
    },
    /// Another number of pieces than its transfer began with.
    #[error("chunk claims {total} pieces, its transfer began with {expected}")]
    TotalChanged {
        /// The pieces it claims.
        total: u32,
        /// The pieces that the first one claimed.
        expected: u32,
    },
    /// The message is over its limit.
    #[error("chunks add up to more than {max} bytes")]
    MessageTooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// All transfers together are over their limit.
    #[error("unfinished transfers hold more than {max} bytes")]
    BufferFull {
        /// The limit in bytes.
        max: usize,
    },
    /// Too many transfers are under way.
    #[error("more than {max} transfers at a time")]
    TooManyTransfers {
        /// The limit.
        max: usize,
    },
    /// The piece is no JSON string, or the whole is no text.
    #[error("chunk data is not text")]
    NotText,
}

#[derive(Debug)]
struct Transfer {
    id: Box<str>,
    total: u32,
    /// By place, since they come in any order; only what arrived takes room.
    pieces: BTreeMap<u32, Box<[u8]>>,
    bytes: usize,
    touched_ms: u64,
}

impl Default for ChunkLimits {
    fn default() -> Self {
        Self {
            max_bytes: 50 << 20,
            max_buffered_bytes: 100 << 20,
            max_transfers: 64,
            idle_ms: 60_000,
        }
    }
}

impl ChunkError {
    /// The code of the answer.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::MessageTooLarge { .. } => Status::TooLarge,
            Self::BufferFull { .. } | Self::TooManyTransfers { .. } => Status::RateLimited,
            Self::OutOfRange { .. } | Self::TotalChanged { .. } | Self::NotText => {
                Status::Malformed
            }
        }
    }
}

impl ChunkAssembler {
    /// An assembler with nothing under way.
    #[must_use]
    pub fn new(limits: ChunkLimits) -> Self {
        Self {
            limits,
            transfers: Vec::new(),
        }
    }

    /// Takes a piece; the whole text when it was the last that was missing. A piece that is there already changes
    /// nothing. Transfers that were idle for too long are dropped first.
    ///
    /// # Errors
    /// When a bound is broken; the transfer is dropped then.
    pub fn add(
        &mut self,
        chunk: &ProduceChunk<'_>,
        now_ms: u64,
    ) -> Result<Option<String>, ChunkError> {
        self.expire(now_ms);
        let added = self.try_add(chunk, now_ms);
        match added {
            Ok(false) => Ok(None),
            Ok(true) => self
                .take(&chunk.transfer_id)
                .map_or(Ok(None), |transfer| transfer.join().map(Some)),
            Err(error) => {
                drop(self.take(&chunk.transfer_id));
                Err(error)
            }
        }
    }

    /// Drops the transfers that were idle for too long; how many those were.
    pub fn expire(&mut self, now_ms: u64) -> usize {
        let before = self.transfers.len();
        let idle_ms = self.limits.idle_ms;
        self.transfers
            .retain(|transfer| now_ms.saturating_sub(transfer.touched_ms) < idle_ms);
        before - self.transfers.len()
    }

    /// When [`expire`](Self::expire) has something to do, if nothing arrives.
    #[must_use]
    pub fn deadline_ms(&self) -> Option<u64> {
        let oldest = self
            .transfers
            .iter()
            .map(|transfer| transfer.touched_ms)
            .min()?;
        Some(oldest.saturating_add(self.limits.idle_ms))
    }

    /// Transfers under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.transfers.len()
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.transfers.is_empty()
    }

    /// Adds the piece; whether its transfer is complete.
    fn try_add(&mut self, chunk: &ProduceChunk<'_>, now_ms: u64) -> Result<bool, ChunkError> {
        let &ProduceChunk { index, total, .. } = chunk;
        if index >= total || total > MAX_CHUNKS {
            return Err(ChunkError::OutOfRange { index, total });
        }
        let piece = wtf8::unescape(&chunk.data).ok_or(ChunkError::NotText)?;
        let room = self
            .limits
            .max_buffered_bytes
            .saturating_sub(self.buffered_bytes());
        let at = self.position_or_begin(chunk, now_ms)?;
        let transfer = &mut self.transfers[at];
        transfer.touched_ms = now_ms;
        if transfer.total != total {
            return Err(ChunkError::TotalChanged {
                total,
                expected: transfer.total,
            });
        }
        if transfer.pieces.contains_key(&index) {
            return Ok(false);
        }
        if piece.len() > self.limits.max_bytes.saturating_sub(transfer.bytes) {
            return Err(ChunkError::MessageTooLarge {
                max: self.limits.max_bytes,
            });
        }
        if piece.len() > room {
            return Err(ChunkError::BufferFull {
                max: self.limits.max_buffered_bytes,
            });
        }
        transfer.bytes += piece.len();
        transfer.pieces.insert(index, piece.into());
        Ok(transfer.pieces.len() == total as usize)
    }

    fn position_or_begin(
        &mut self,
        chunk: &ProduceChunk<'_>,
        now_ms: u64,
    ) -> Result<usize, ChunkError> {
        if let Some(at) = self.position(&chunk.transfer_id) {
            return Ok(at);
        }
        if self.transfers.len() >= self.limits.max_transfers {
            return Err(ChunkError::TooManyTransfers {
                max: self.limits.max_transfers,
            });
        }
        self.transfers.push(Transfer {
            id: chunk.transfer_id.as_ref().into(),
            total: chunk.total,
            pieces: BTreeMap::new(),
            bytes: 0,
            touched_ms: now_ms,
        });
        Ok(self.transfers.len() - 1)
    }

    fn take(&mut self, id: &str) -> Option<Transfer> {
        self.position(id).map(|at| self.transfers.swap_remove(at))
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.transfers
            .iter()
            .position(|transfer| &*transfer.id == id)
    }

    fn buffered_bytes(&self) -> usize {
        self.transfers.iter().map(|transfer| transfer.bytes).sum()
    }
}

impl Transfer {
    fn join(self) -> Result<String, ChunkError> {
        let mut text = Vec::with_capacity(self.bytes);
        for piece in self.pieces.into_values() {
            wtf8::append(&mut text, &piece);
        }
        wtf8::into_json_text(text).ok_or(ChunkError::NotText)
    }
}
