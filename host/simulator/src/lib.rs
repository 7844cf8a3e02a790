//! Decisions without a real control plane: scenarios on virtual time, trials, what-if, and the replay of recorded
//! decisions, with their outputs.
//!
//! Start reading at [`scenario`] (input format), then [`simulation`] (execution), then [`report`] (results).

mod control_plane;
pub mod origin;
pub mod recorded;
pub mod render;
pub mod report;
pub mod scenario;
pub mod simulation;
pub mod table;
pub mod takeover;
pub mod trial;
pub mod what_if;
