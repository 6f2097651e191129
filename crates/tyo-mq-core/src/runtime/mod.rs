//! The tokio shell around the engine: shards, timers, the store executor, in-process sessions.
