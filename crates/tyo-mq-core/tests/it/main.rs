//! Tests of the engine from outside: transcripts, comparison with a naive model, simulation, store faults.

mod adopt;
mod delivery;
mod durable;
mod faults;
mod groups;
mod matcher;
mod memory_store;
mod model;
mod presence;
#[cfg(feature = "runtime")]
mod rename;
mod routing;
mod simulation;
mod sweep;
mod transcript;
