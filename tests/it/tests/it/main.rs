//! Whole federations on virtual time, driven through the library that the program uses.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod application_failover;
mod bad_input;
mod conformance;
mod eviction;
mod examples;
mod faults;
mod historic;
mod library;
mod reload;
mod runs;
mod support;
mod taints;
