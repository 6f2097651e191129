//! Who may do what: tokens, realms, roles, signed proofs, enrolment and management commands. No sockets, no clock, no HTTP.
#![forbid(unsafe_code)]

pub mod entropy;
pub mod json;
pub mod jwt;
pub mod names;
pub mod nonce;
pub mod proof;
pub mod secret;
