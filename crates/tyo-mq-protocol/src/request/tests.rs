//! Tests of client events.
