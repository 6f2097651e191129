//! An Engine.IO server that sends every message back, as the Engine.IO protocol's test suites expect it.
//!
//! The port is the first argument, else the environment's `PORT`, else 3000.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;
use tyo_mq_transport::{
    Application, CloseReason, ConnectInfo, Connection, Engine, EngineConfig, Forbidden, Frame,
    FrameScratch, Message, Refused, SendKind, Session, serve,
};

struct Echo;

struct EchoSession {
    conn: Arc<Connection>,
    scratch: FrameScratch,
}

impl Application for Echo {
    type Session = EchoSession;

    fn open(&self, conn: Arc<Connection>, _: ConnectInfo) -> EchoSession {
        EchoSession {
            conn,
            scratch: FrameScratch::default(),
        }
    }
}

impl Session for EchoSession {
    fn on_message(&mut self, message: Message<'_>) -> Result<(), Refused> {
        match message {
            Message::Text(text) => {
                let frame = self
                    .scratch
                    .text(|buf| buf.extend_from_slice(text.as_bytes()));
                self.conn.send(frame, SendKind::Keep);
            }
            Message::Binary(bytes) => {
                self.conn.send(
                    &Frame::binary(Bytes::copy_from_slice(bytes)),
                    SendKind::Keep,
                );
            }
        }
        Ok(())
    }

    fn on_batch_end(&mut self) {}

    fn on_drained(&mut self) {}

    fn on_close(&mut self, _: CloseReason) {}
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args()
        .nth(1)
        .or_else(|| std::env::var("PORT").ok());
    let port: u16 = port.as_deref().unwrap_or("3000").parse()?;
    let config = EngineConfig {
        path: "/engine.io/".to_owned(),
        ping_interval: Duration::from_millis(300),
        ping_timeout: Duration::from_millis(200),
        max_payload: 1_000_000,
        lenient_version: false,
        ..EngineConfig::default()
    };
    let engine = Engine::new(config, Echo);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on {}", listener.local_addr()?);
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
        engine.shutdown().await;
    };
    serve(listener, engine.service(Forbidden), stop).await;
    Ok(())
}
