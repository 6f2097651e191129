//! Writes packets, without Engine.IO's leading `4`, to the end of a buffer. Arguments are JSON texts and go out as they are.

use super::{ROOT, Revision};

/// Writes an event up to and with the comma behind its name: `2["name",`, `2/ns,7["name",`, `51-["name",`.
/// What must follow are the arguments and `]`.
pub fn write_event_start(
    out: &mut Vec<u8>,
    namespace: &str,
    ack: Option<u64>,
    attachments: usize,
    name: &str,
) {
    push_head(out, b'2', b'5', namespace, ack, attachments);
    out.push(b'[');
    write_json_string(out, name);
    out.push(b',');
}

/// Writes a whole event.
pub fn write_event(
    out: &mut Vec<u8>,
    namespace: &str,
    ack: Option<u64>,
    attachments: usize,
    name: &str,
    args: &[&str],
) {
    push_head(out, b'2', b'5', namespace, ack, attachments);
    out.push(b'[');
    write_json_string(out, name);
    for arg in args {
        out.push(b',');
        out.extend_from_slice(arg.as_bytes());
    }
    out.push(b']');
}

/// Writes an answer up to and with its bracket: `37[`, `3/ns,7[`, `61-7[`.
/// What must follow are the arguments and `]`.
pub fn write_ack_start(out: &mut Vec<u8>, namespace: &str, id: u64, attachments: usize) {
    push_head(out, b'3', b'6', namespace, Some(id), attachments);
    out.push(b'[');
}

/// Writes a whole answer.
pub fn write_ack(out: &mut Vec<u8>, namespace: &str, id: u64, args: &[&str]) {
    write_ack_start(out, namespace, id, 0);
    for (index, arg) in args.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(arg.as_bytes());
    }
    out.push(b']');
}

/// Writes the server's answer to a CONNECT that it grants. Revision 4 has no socket id in it.
pub fn write_connect(out: &mut Vec<u8>, revision: Revision, namespace: &str, socket_id: &str) {
    push_head(out, b'0', b'0', namespace, None, 0);
    if revision == Revision::V5 {
        out.extend_from_slice(b"{\"sid\":");
        write_json_string(out, socket_id);
        out.push(b'}');
    }
}

/// Writes a client's CONNECT; `auth` is a JSON object and needs revision 5.
pub fn write_connect_request(out: &mut Vec<u8>, namespace: &str, auth: Option<&str>) {
    push_head(out, b'0', b'0', namespace, None, 0);
    out.extend_from_slice(auth.unwrap_or_default().as_bytes());
}

/// Writes the answer to a CONNECT that is refused.
pub fn write_connect_error(out: &mut Vec<u8>, namespace: &str, message: &str) {
    push_head(out, b'4', b'4', namespace, None, 0);
    out.extend_from_slice(b"{\"message\":");
    write_json_string(out, message);
    out.push(b'}');
}

/// Writes a DISCONNECT.
pub fn write_disconnect(out: &mut Vec<u8>, namespace: &str) {
    push_head(out, b'1', b'1', namespace, None, 0);
}

/// Writes a JSON string: quotes, and escapes where JSON wants them.
pub fn write_json_string(out: &mut Vec<u8>, text: &str) {
    let is_plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        serde_json::to_writer(out, text).expect("a string goes into memory");
    }
}

fn push_head(
    out: &mut Vec<u8>,
    kind: u8,
    binary: u8,
    namespace: &str,
    id: Option<u64>,
    attachments: usize,
) {
    if attachments == 0 {
        out.push(kind);
    } else {
        out.push(binary);
        push_number(out, attachments as u64);
        out.push(b'-');
    }
    if namespace != ROOT {
        out.extend_from_slice(namespace.as_bytes());
        out.push(b',');
    }
    if let Some(id) = id {
        push_number(out, id);
    }
}

/// Writes a number in decimal.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}
