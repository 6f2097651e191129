//! The crate as a server uses it, through what is public alone.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod broker;
mod campaign;
mod enrolment;
