//! Tests of the outbound queue.
