//! RFC 6455 frames: a decoder that unmasks in place and lends messages out of the caller's buffer, and a header
//! writer. No I/O, no handshake, no extensions (a reserved bit is an error).

mod decoder;
mod frame;

pub use decoder::{Decoded, Decoder, Event, FrameError, Role};
pub use frame::{
    Header, MAX_HEADER, Opcode, apply_mask, frame_header, write_close, write_frame,
    write_masked_frame,
};

#[cfg(test)]
mod tests;
