//! Frame headers, masks, and whole small frames. Knows nothing of messages or state.

use super::FrameError;

/// Longest header of an unmasked frame.
pub const MAX_HEADER: usize = 10;
/// Longest payload of a control frame.
pub(crate) const MAX_CONTROL: u64 = 125;

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// More of a fragmented message.
    Continuation,
    /// A text message or its first fragment.
    Text,
    /// A binary message or its first fragment.
    Binary,
    /// Close.
    Close,
    /// Ping.
    Ping,
    /// Pong.
    Pong,
}

impl Opcode {
    fn decode(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    pub(crate) fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// A frame's header as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Whether this is the last frame of its message.
    pub fin: bool,
    /// What it is.
    pub opcode: Opcode,
    /// The key, where the payload is masked.
    pub mask: Option<[u8; 4]>,
    /// Bytes of the payload.
    pub payload: u64,
    /// Bytes of the header itself.
    pub size: usize,
}

impl Header {
    /// Reads a header from the front of `bytes`; `None` when more bytes are needed.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, FrameError> {
        let &[first, second, ..] = bytes else {
            return Ok(None);
        };
        if first & RESERVED != 0 {
            return Err(FrameError::ReservedBits);
        }
        let opcode = Opcode::decode(first & 0x0f).ok_or(FrameError::ReservedOpcode)?;
        let fin = first & FIN != 0;
        let short = second & !MASKED;
        if opcode.is_control() && (!fin || short > MAX_CONTROL as u8) {
            return Err(FrameError::BadControl);
        }
        let Some((payload, mut size)) = decode_length(short, &bytes[2..])? else {
            return Ok(None);
        };
        let mut mask = None;
        if second & MASKED != 0 {
            let Some(&key) = bytes[size..].first_chunk::<4>() else {
                return Ok(None);
            };
            mask = Some(key);
            size += 4;
        }
        Ok(Some(Self {
            fin,
            opcode,
            mask,
            payload,
            size,
        }))
    }
}

/// The payload's length and where the header's length field ends.
fn decode_length(short: u8, rest: &[u8]) -> Result<Option<(u64, usize)>, FrameError> {
    match short {
        LENGTH_16 => {
            let Some(&long) = rest.first_chunk::<2>() else {
                return Ok(None);
            };
            let length = u64::from(u16::from_be_bytes(long));
            if length < u64::from(LENGTH_16) {
                Err(FrameError::BadLength)
            } else {
                Ok(Some((length, 4)))
            }
        }
        LENGTH_64 => {
            let Some(&long) = rest.first_chunk::<8>() else {
                return Ok(None);
            };
            let length = u64::from_be_bytes(long);
            let valid = length > u64::from(u16::MAX) && length >> 63 == 0;
            if valid {
                Ok(Some((length, 10)))
            } else {
                Err(FrameError::BadLength)
            }
        }
        short => Ok(Some((u64::from(short), 2))),
    }
}

/// The header of an unmasked, unfragmented frame: its bytes are the last `n` of the array.
pub fn frame_header(opcode: Opcode, payload: usize) -> ([u8; MAX_HEADER], usize) {
    let mut header = [0; MAX_HEADER];
    let first = FIN | opcode.bits();
    if payload < usize::from(LENGTH_16) {
        header[8] = first;
        header[9] = payload as u8;
        (header, 2)
    } else if let Ok(length) = u16::try_from(payload) {
        header[6] = first;
        header[7] = LENGTH_16;
        header[8..].copy_from_slice(&length.to_be_bytes());
        (header, 4)
    } else {
        header[0] = first;
        header[1] = LENGTH_64;
        header[2..].copy_from_slice(&(payload as u64).to_be_bytes());
        (header, MAX_HEADER)
    }
}

/// Appends one whole unmasked frame, as servers send it.
pub fn write_frame(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    let (header, size) = frame_header(opcode, payload.len());
    out.extend_from_slice(&header[MAX_HEADER - size..]);
    out.extend_from_slice(payload);
}

/// Appends an unmasked close frame; `None` sends no code.
pub fn write_close(out: &mut Vec<u8>, code: Option<u16>) {
    match code {
        Some(code) => write_frame(out, Opcode::Close, &code.to_be_bytes()),
        None => write_frame(out, Opcode::Close, &[]),
    }
}

/// Appends one frame as clients send it.
pub fn write_masked_frame(
    out: &mut Vec<u8>,
    opcode: Opcode,
    fin: bool,
    payload: &[u8],
    mask: [u8; 4],
) {
    let start = out.len();
    let (header, size) = frame_header(opcode, payload.len());
    out.extend_from_slice(&header[MAX_HEADER - size..]);
    if !fin {
        out[start] &= !FIN;
    }
    out[start + 1] |= MASKED;
    out.extend_from_slice(&mask);
    let body = out.len();
    out.extend_from_slice(payload);
    apply_mask(&mut out[body..], mask);
}

/// Masks or unmasks in place.
pub fn apply_mask(bytes: &mut [u8], mask: [u8; 4]) {
    let wide = u64::from(u32::from_ne_bytes(mask));
    let wide = wide | wide << 32;
    let mut blocks = bytes.chunks_exact_mut(8);
    for block in &mut blocks {
        let word = u64::from_ne_bytes(block.try_into().expect("the block has eight bytes")) ^ wide;
        block.copy_from_slice(&word.to_ne_bytes());
    }
    for (byte, key) in blocks.into_remainder().iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}
