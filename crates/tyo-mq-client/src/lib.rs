//! A client for tyo-mq: publish, subscribe, acknowledge, and any other event of the protocol. Engine.IO 4 over a WebSocket.
//!
//! [`Client::connect`] opens a connection; one task owns it until the last handle is dropped. [`Producer`] and
//! [`Consumer`] are names on that connection, [`Subscription`] is a stream of deliveries, [`Client::emit`] and
//! [`Client::emit_with_ack`] say everything else, [`Events`] is what the broker says besides deliveries. An address that
//! begins with `https` or `wss` is reached over TLS; [`Options::trust`] says whose certificates are good.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use tyo_mq_client::{Client, Options, Subscribe};
//!
//! let client = Client::connect("http://localhost:17352", Options::default()).await?;
//! let consumer = client.consumer("mailer").await?;
//! let mut orders = consumer
//!     .subscribe(Subscribe::new("shop", "order-placed").durable().ack())
//!     .await?;
//! let shop = client.producer("shop").await?;
//! shop.produce("order-placed", &"a book").await?;
//! while let Some(order) = orders.next().await {
//!     println!("{}", order.message.get());
//!     orders.ack(&order).await?;
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod address;
mod auth;
mod client;
mod error;
mod events;
mod message;
mod options;
mod packet;
mod produce;
mod socket;
mod standing;
mod subscribe;
mod task;
mod tls;
mod wire;

pub use address::{Address, AddressError};
pub use auth::{Credentials, Granted};
pub use client::Client;
pub use error::{CallError, ConnectError, Refusal, RequestError};
pub use events::{Event, Events, Received};
pub use message::Delivery;
pub use options::{Options, Reconnect};
pub use packet::Reply;
pub use produce::{Produce, Producer, Receipt};
pub use serde_json::value::RawValue;
pub use subscribe::{Consumer, Retry, Subscribe, Subscription};
pub use tls::{TlsError, Trust};
pub use wire::{Connector, Duplex, Stream};
