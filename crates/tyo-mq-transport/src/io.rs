//! The two kinds of upgraded connections: a bare TCP stream, which every thread can write, and anything else.

use std::io::{self, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use crate::connection::Link;

/// The owner's side of an upgraded connection.
pub(crate) enum Io {
    Tcp(Arc<TcpStream>),
    /// TLS and whatever else an embedder serves.
    Other(Box<TokioIo<Upgraded>>),
}

impl Io {
    /// Takes an upgraded connection over, and what was already read of it.
    pub(crate) fn new(upgraded: Upgraded) -> (Self, Bytes) {
        match upgraded.downcast::<TokioIo<TcpStream>>() {
            Ok(parts) => (Self::Tcp(Arc::new(parts.io.into_inner())), parts.read_buf),
            Err(upgraded) => (Self::Other(Box::new(TokioIo::new(upgraded))), Bytes::new()),
        }
    }

    /// What the connection writes to.
    pub(crate) fn link(&self) -> Link {
        match self {
            Self::Tcp(stream) => Link::Tcp(Arc::clone(stream)),
            Self::Other(_) => Link::Owner,
        }
    }

    /// Reads into `buf`; 0 is the end.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => loop {
                ready!(stream.poll_read_ready(cx))?;
                match read_once(stream, buf) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => return Poll::Ready(result),
                }
            },
            Self::Other(io) => {
                let mut buf = ReadBuf::new(buf);
                ready!(Pin::new(io.as_mut()).poll_read(cx, &mut buf))?;
                Poll::Ready(Ok(buf.filled().len()))
            }
        }
    }

    /// Writes some of `bytes`, for those who own this side.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => loop {
                ready!(stream.poll_write_ready(cx))?;
                match stream.try_write(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => return Poll::Ready(result),
                }
            },
            Self::Other(io) => Pin::new(io.as_mut()).poll_write(cx, bytes),
        }
    }

    /// Pushes out what a layer such as TLS still holds.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(_) => Poll::Ready(Ok(())),
            Self::Other(io) => Pin::new(io.as_mut()).poll_flush(cx),
        }
    }

    /// Ends the writing side, so that the peer sees the end after all that was written.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => {
                Poll::Ready(SockRef::from(stream.as_ref()).shutdown(std::net::Shutdown::Write))
            }
            Self::Other(io) => Pin::new(io.as_mut()).poll_shutdown(cx),
        }
    }
}

/// One read. When it brings less than fits, the socket is empty: the next one waits for an event instead of asking
/// the kernel in vain. (An event that comes meanwhile is newer than what is cleared, and is kept.)
fn read_once(stream: &TcpStream, buf: &mut [u8]) -> io::Result<usize> {
    let mut count = None;
    let result = stream.try_io(Interest::READABLE, || {
        let read = (&*SockRef::from(stream)).read(buf)?;
        count = Some(read);
        if read > 0 && read < buf.len() {
            Err(io::ErrorKind::WouldBlock.into())
        } else {
            Ok(())
        }
    });
    match count {
        Some(read) => Ok(read),
        None => result.map(|()| 0),
    }
}
