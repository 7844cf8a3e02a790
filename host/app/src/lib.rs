//! Library crate of the `bulkhead` program: scenarios, simulation and their outputs. `main.rs` adds the command
//! line.
//!
//! Start reading at [`scenario`] (input format), then [`simulation`] (execution), then [`report`] (results).

pub mod admission;
pub mod default_registry;
pub mod journal;
pub mod origin;
pub mod render;
pub mod report;
pub mod scenario;
pub mod simulation;
pub mod what_if;
