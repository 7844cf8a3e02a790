//! Bulkhead's program as a library: scenarios, simulation and their outputs. `main.rs` adds the arguments.
//!
//! Start reading at [`scenario`] (what a person writes), then [`simulation`] (what runs), then [`report`] (what
//! comes out).

pub mod admission;
pub mod journal;
pub mod render;
pub mod report;
pub mod scenario;
pub mod simulation;
pub mod standard;
pub mod what_if;
