//! Tests of cutting and putting together.
