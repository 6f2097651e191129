//! The program against a broker, as a user runs it.
//!
//! The broker is a stand-in that decides with the same library as the real one, or the real one in this process where a test
//! needs more of it. With `TYO_MQ_BROKER` set to the path of a `tyo-mq` program, the same tests run against that.
#![allow(
    clippy::unwrap_used,
    reason = "a test that finds nothing to unwrap has failed"
)]

mod admin;
mod broker_program;
mod contexts;
mod dlq;
mod every_command;
mod fresh;
mod http;
mod legacy;
mod local;
mod menu;
mod menu_terminal;
mod old_broker;
mod program;
mod realm_manager;
mod requests;
mod smoke_test;
mod stage;
mod stand_in;
mod terminal;
mod tls;
#[path = "../../../../crates/tyo-mq-client/tests/it/tls_proxy.rs"]
#[allow(dead_code, reason = "the client's tests need more of it")]
mod tls_proxy;
