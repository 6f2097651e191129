//! Who may do what: tokens, realms, roles, signed proofs, enrolment and management commands. No sockets, no clock, no HTTP.
//!
//! [`AuthState`] holds all of it. A server hands it what sockets send and the time, carries out the [`Effect`]s in
//! their order, asks validators and the broker what it asks for, and calls [`AuthState::on_deadline`] when it is due.
//! Whoever has a [`Grant`] is checked again when a [`Change`] concerns it.
#![forbid(unsafe_code)]

pub mod attempt;
pub mod audit;
pub mod document;
pub mod effect;
pub mod enrolment;
pub mod entropy;
pub mod external;
pub mod files;
pub mod journal;
pub mod json;
pub mod jwt;
pub mod lifetime;
pub mod management;
pub mod names;
pub mod nonce;
pub mod proof;
pub mod refusal;
pub mod secret;
pub mod session;
pub mod signed;
#[cfg(feature = "sqlite")]
pub mod store;
pub mod throttle;

mod expiry;
mod policy;
mod state;
#[cfg(test)]
mod testing;

pub use attempt::{Outcome, PendingAttempt, Step, outcome_event};
pub use document::{AuthDocument, Change, RowChange, StoreRows};
pub use effect::{Effect, Handled, Reply};
pub use expiry::MAX_ENDED_AT_ONCE;
pub use management::{Answer, Execution, FILE_OPTIONS, PendingCommand, Question, ServerView};
pub use names::{Permission, RealmName, Role};
pub use refusal::Refusal;
pub use session::{Decision, Grant, SocketAuth, Via};
pub use signed::{SignedEvent, Verified};
pub use state::AuthState;
