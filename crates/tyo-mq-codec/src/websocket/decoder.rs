//! Messages out of frames, over a buffer of the caller's. Keeps only the fragments of an unfinished message.

use super::frame::{Header, Opcode, apply_mask};

/// Which side of the connection this is: servers read masked frames, clients unmasked ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads what clients send.
    Server,
    /// Reads what servers send.
    Client,
}

/// A message or a control frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A whole text message.
    Text(&'a str),
    /// A whole binary message.
    Binary(&'a [u8]),
    /// A ping, to be answered with the same bytes.
    Ping(&'a [u8]),
    /// A pong.
    Pong(&'a [u8]),
    /// The peer closes, with this code if it gave one.
    Close(Option<u16>),
}

/// What the front of the buffer holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// A whole frame: skip `consumed` bytes; a fragment that completes nothing has no event.
    Frame {
        /// Bytes of the frame.
        consumed: usize,
        /// What it brought.
        event: Option<Event<'a>>,
    },
    /// Part of a frame: at least `needed` bytes in all, counted from the front.
    Incomplete {
        /// Claimed by the peer, within the limit: do not allocate it in advance.
        needed: usize,
    },
}

/// What the peer did wrong. The connection must be closed with [`FrameError::code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A reserved bit without an extension.
    #[error("reserved bits are set")]
    ReservedBits,
    /// An opcode that does not exist.
    #[error("reserved opcode")]
    ReservedOpcode,
    /// A control frame that is fragmented or too long.
    #[error("control frame is fragmented or longer than 125 bytes")]
    BadControl,
    /// A length not in its shortest form, or beyond 63 bits.
    #[error("invalid length")]
    BadLength,
    /// A client's frame without a mask, or a server's with one.
    #[error("mask is missing or not allowed")]
    BadMask,
    /// A continuation of nothing, or a new message before the end of the last.
    #[error("fragments out of order")]
    BadFragment,
    /// A close frame of one byte, or with a code that may not be sent, or with a reason that is not UTF-8.
    #[error("invalid close frame")]
    BadClose,
    /// Text that is not UTF-8.
    #[error("text is not valid utf-8")]
    Utf8,
    /// A message over the limit.
    #[error("message is too large")]
    TooLarge,
}

impl FrameError {
    /// The close code for it.
    pub fn code(self) -> u16 {
        match self {
            Self::Utf8 => 1007,
            Self::TooLarge => 1009,
            _ => 1002,
        }
    }
}

/// Fragments beyond this are given back to the allocator once their message was handed out.
const KEEP_FRAGMENTS: usize = 4096;

/// The state between frames.
#[derive(Debug)]
pub struct Decoder {
    role: Role,
    max_message: usize,
    /// Opcode of the message whose fragments are gathered.
    fragmented: Option<Opcode>,
    fragments: Vec<u8>,
    /// How much of `fragments` is known to be UTF-8.
    valid: usize,
}

impl Decoder {
    /// A decoder for messages up to `max_message` bytes.
    pub fn new(role: Role, max_message: usize) -> Self {
        Self {
            role,
            max_message,
            fragmented: None,
            fragments: Vec::new(),
            valid: 0,
        }
    }

    /// Decodes the frame at the front of `buf`, unmasking it in place. After an error, or once a frame was decoded,
    /// the same bytes must not be given again.
    pub fn decode<'a>(&'a mut self, buf: &'a mut [u8]) -> Result<Decoded<'a>, FrameError> {
        if self.fragmented.is_none() && !self.fragments.is_empty() {
            self.forget_fragments();
        }
        let Some(header) = Header::decode(buf)? else {
            return Ok(Decoded::Incomplete {
                needed: buf.len() + 1,
            });
        };
        let payload = self.admit(&header)?;
        let consumed = header.size + payload;
        if buf.len() < consumed {
            return Ok(Decoded::Incomplete { needed: consumed });
        }
        let payload = &mut buf[header.size..consumed];
        if let Some(mask) = header.mask {
            apply_mask(payload, mask);
        }
        let event = self.on_frame(header, payload)?;
        Ok(Decoded::Frame { consumed, event })
    }

    /// Checks a header before its payload is there, and returns the payload's length.
    fn admit(&self, header: &Header) -> Result<usize, FrameError> {
        if header.mask.is_some() != (self.role == Role::Server) {
            return Err(FrameError::BadMask);
        }
        let continues = header.opcode == Opcode::Continuation;
        if !header.opcode.is_control() && continues != self.fragmented.is_some() {
            return Err(FrameError::BadFragment);
        }
        let payload = usize::try_from(header.payload).map_err(|_| FrameError::TooLarge)?;
        let before = if continues { self.fragments.len() } else { 0 };
        if payload > self.max_message.saturating_sub(before) && !header.opcode.is_control() {
            return Err(FrameError::TooLarge);
        }
        Ok(payload)
    }

    fn on_frame<'a>(
        &'a mut self,
        header: Header,
        payload: &'a [u8],
    ) -> Result<Option<Event<'a>>, FrameError> {
        match header.opcode {
            Opcode::Ping => Ok(Some(Event::Ping(payload))),
            Opcode::Pong => Ok(Some(Event::Pong(payload))),
            Opcode::Close => Ok(Some(Event::Close(close_code(payload)?))),
            opcode @ (Opcode::Text | Opcode::Binary) if header.fin => {
                message(opcode, payload).map(Some)
            }
            Opcode::Text | Opcode::Binary => {
                self.fragmented = Some(header.opcode);
                self.gather(payload, false)?;
                Ok(None)
            }
            Opcode::Continuation => {
                self.gather(payload, header.fin)?;
                if !header.fin {
                    return Ok(None);
                }
                let opcode = self
                    .fragmented
                    .take()
                    .expect("admit refuses a continuation of nothing");
                message(opcode, &self.fragments).map(Some)
            }
        }
    }

    /// Keeps a fragment; text is checked as it comes.
    fn gather(&mut self, payload: &[u8], last: bool) -> Result<(), FrameError> {
        self.fragments.extend_from_slice(payload);
        if self.fragmented == Some(Opcode::Text)
            && !last
            && let Err(error) = std::str::from_utf8(&self.fragments[self.valid..])
        {
            if error.error_len().is_some() {
                return Err(FrameError::Utf8);
            }
            self.valid += error.valid_up_to();
        } else {
            self.valid = self.fragments.len();
        }
        Ok(())
    }

    fn forget_fragments(&mut self) {
        self.valid = 0;
        self.fragments.clear();
        if self.fragments.capacity() > KEEP_FRAGMENTS {
            self.fragments = Vec::new();
        }
    }
}

fn message(opcode: Opcode, payload: &[u8]) -> Result<Event<'_>, FrameError> {
    if opcode == Opcode::Text {
        return std::str::from_utf8(payload)
            .map(Event::Text)
            .map_err(|_| FrameError::Utf8);
    }
    Ok(Event::Binary(payload))
}

fn close_code(payload: &[u8]) -> Result<Option<u16>, FrameError> {
    let Some((code, reason)) = payload.split_first_chunk::<2>() else {
        return if payload.is_empty() {
            Ok(None)
        } else {
            Err(FrameError::BadClose)
        };
    };
    let code = u16::from_be_bytes(*code);
    let sendable = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
    if !sendable {
        return Err(FrameError::BadClose);
    }
    std::str::from_utf8(reason).map_err(|_| FrameError::Utf8)?;
    Ok(Some(code))
}
