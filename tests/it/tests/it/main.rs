//! Whole federations on virtual time, driven through the library that the program uses.

mod bad_input;
mod examples;
mod faults;
mod runs;
mod support;
