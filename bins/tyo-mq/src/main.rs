//! The server program: flags, signals, exit codes; nothing else.

fn main() {}
