//! Engine.IO 3 and 4: packets, polling payloads, the handshake and the session machine. No I/O, no clock.
//!
//! Times are milliseconds of a monotonic clock that the caller passes in. Every error is a value; nothing is
//! allocated from a length that the peer merely claims.

mod handshake;
mod packet;
mod payload;
mod payload_v3;
mod session;

pub use handshake::{Open, RequestError};
pub use packet::{Packet, PacketError, decode_binary, decode_text};
pub use payload::{PayloadEncoder, decode_payload};
pub use payload_v3::{decode_payload_v3, decode_payload_v3_binary, utf16_len};
pub use session::{
    Carrier, CloseReason, Reaction, Session, TimerEvent, Timing, UpgradeStep, Violation,
};

/// The Engine.IO revision that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Revision 3: the client pings, payloads are length-prefixed.
    V3,
    /// Revision 4: the server pings, payloads are separated by 0x1e.
    V4,
}

/// Separates the packets of a revision 4 payload.
pub(crate) const RECORD_SEPARATOR: u8 = 0x1e;
