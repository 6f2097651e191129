//! Engine.IO 3 and 4 over HTTP polling and WebSocket, as a tower service. Knows nothing of Socket.IO or the broker.
//!
//! [`Engine`] is the registry of sessions; [`Engine::service`] makes the tower service that answers its path and hands
//! every other request to a fallback; [`serve`] is an accept loop for it. What happens in a session is told to a
//! [`Session`] of the embedder's [`Application`]; what goes out is a [`Frame`], encoded once for all its receivers.
//!
//! A producer never waits for a consumer: [`Connection::send`] appends to a bounded queue, [`Connection::flush`] writes
//! what the socket takes from the calling thread, and the connection's own task writes the rest.
#![forbid(unsafe_code)]

mod answer;
mod app;
mod config;
mod connection;
mod driver;
mod engine;
mod frame;
mod inbound;
mod io;
mod outbound;
mod polling;
mod request;
mod serve;
mod service;
mod upgrade;

pub use app::{Application, ConnectInfo, Message, PeerAddr, Refused, Session};
pub use config::{Cors, EngineConfig, Origins, SlowConsumer};
pub use connection::{Connection, SendKind, SendOutcome};
pub use engine::Engine;
pub use frame::{Frame, FrameRef, FrameScratch};
pub use serve::{ServeConfig, serve, serve_with};
pub use service::{EngineService, Forbidden};
pub use tyo_mq_codec::engine::{Carrier, CloseReason, Protocol};
