//! A WebSocket server that sends every message back: our framing on its own, for conformance suites. No Engine.IO.
//!
//! The port is the first argument, else 9001. One request a connection; its path does not matter.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tyo_mq_codec::websocket::{
    Decoded, Decoder, Event, FrameError, Opcode, Role, write_close, write_frame,
};

/// Largest message.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;
/// Largest request.
const MAX_HEAD: usize = 16 * 1024;
/// Bytes of one read.
const READ: usize = 64 * 1024;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args()
        .nth(1)
        .as_deref()
        .unwrap_or("9001")
        .parse()?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            if let Err(error) = serve(stream).await {
                eprintln!("{error}");
            }
        });
    }
}

async fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let Some(mut pending) = shake_hands(&mut stream).await? else {
        return Ok(());
    };
    let mut decoder = Decoder::new(Role::Server, MAX_MESSAGE);
    let mut out = Vec::new();
    loop {
        let open = echo(&mut decoder, &mut pending, &mut out);
        stream.write_all(&out).await?;
        out.clear();
        if !open {
            stream.shutdown().await?;
            // Reads on, so that the peer gets the rest and not a reset.
            return tokio::io::copy(&mut stream, &mut tokio::io::sink())
                .await
                .map(|_| ());
        }
        let len = pending.len();
        pending.resize(len + READ, 0);
        let count = stream.read(&mut pending[len..]).await?;
        pending.truncate(len + count);
        if count == 0 {
            return Ok(());
        }
    }
}

/// Echoes every whole frame; false when the connection is to be closed.
fn echo(decoder: &mut Decoder, pending: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
    let mut used = 0;
    let open = loop {
        match decoder.decode(&mut pending[used..]) {
            Ok(Decoded::Frame { consumed, event }) => {
                used += consumed;
                if !answer(event, out) {
                    break false;
                }
            }
            Ok(Decoded::Incomplete { .. }) => break true,
            Err(error) => {
                write_close(out, Some(FrameError::code(error)));
                break false;
            }
        }
    };
    pending.drain(..used);
    open
}

fn answer(event: Option<Event<'_>>, out: &mut Vec<u8>) -> bool {
    match event {
        Some(Event::Text(text)) => write_frame(out, Opcode::Text, text.as_bytes()),
        Some(Event::Binary(bytes)) => write_frame(out, Opcode::Binary, bytes),
        Some(Event::Ping(payload)) => write_frame(out, Opcode::Pong, payload),
        Some(Event::Pong(_)) | None => {}
        Some(Event::Close(code)) => {
            write_close(out, code);
            return false;
        }
    }
    true
}

/// Reads the request and accepts it; what came behind it, or nothing when it asks for no WebSocket.
async fn shake_hands(stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    let end = loop {
        if let Some(at) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if head.len() > MAX_HEAD || stream.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    };
    let text = String::from_utf8_lossy(&head[..end]);
    let key = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("sec-websocket-key")
            .then(|| value.trim())
    });
    let Some(key) = key else {
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await?;
        return Ok(None);
    };
    let seed = [key.as_bytes(), b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"].concat();
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &seed);
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
        STANDARD.encode(digest)
    );
    stream.write_all(answer.as_bytes()).await?;
    Ok(Some(head.split_off(end)))
}
