//! Tests of the engine from outside: transcripts, comparison with a naive model, simulation, store faults.

mod delivery;
mod durable;
mod faults;
mod groups;
mod presence;
mod routing;
mod transcript;
