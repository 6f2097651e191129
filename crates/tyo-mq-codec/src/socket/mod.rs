//! Socket.IO packets, revisions 4 and 5 (Engine.IO 3 and 4): text in, text out; knows no sockets, no events of the broker and no clock.
//!
//! [`decode`] reads the frame of one packet and borrows from it; [`Connection`] is the server's side of one Engine.IO
//! connection: which namespaces it joined and which binary packet is waiting for its attachments. The JSON of a packet
//! stays the text that arrived. Everything here begins after Engine.IO's own `4`.

mod assembler;
mod connection;
mod encode;
mod packet;
mod placeholder;
mod shape;
#[cfg(test)]
mod tests;

pub use assembler::{Assembled, Assembler};
pub use connection::{Connection, Incoming, JsonCheck, Limits};
pub use encode::{
    write_ack, write_ack_start, write_connect, write_connect_error, write_connect_request,
    write_disconnect, write_event, write_event_start, write_json_string,
};
pub use packet::{Packet, PacketError, PacketKind, decode};
pub use placeholder::{buffers_to_placeholders, check_placeholders, placeholders_to_buffers};
pub use shape::{EventShape, check_json, event_shape};

/// Which revision of the Socket.IO protocol a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// Revision 4, on Engine.IO 3: the server joins the client to `/` unasked and sends no socket id.
    V4,
    /// Revision 5, on Engine.IO 4: the client asks for each namespace and is told its socket id.
    V5,
}

/// The namespace that packets without one belong to.
pub const ROOT: &str = "/";

/// The most attachments that a binary packet may announce.
pub const MAX_ATTACHMENTS: u32 = 1024;

/// The longest namespace in bytes, with the query that revision 4 clients put behind it.
pub const MAX_NAMESPACE_BYTES: usize = 4096;

/// The most namespaces that one connection may have joined.
pub const MAX_NAMESPACES: usize = 64;
