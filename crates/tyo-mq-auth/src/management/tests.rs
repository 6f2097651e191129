//! Every command: what it does, what it answers, and what it refuses.

mod commands;
mod provisioning;
mod realms;
