//! Whole federations on virtual time, driven through the library that the program uses.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod conformance;
mod examples;
mod faults;
mod library;
mod reload;
mod runs;
mod support;
