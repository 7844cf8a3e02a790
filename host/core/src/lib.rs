//! The pure middle of Bulkhead: the model, the plugin port and every decision.
//!
//! A controller captures a snapshot, calls one function of [`decide`], and applies the plan it gets back.
//! Nothing here does I/O, reads a clock, logs, or knows which engine runs a plugin: `now` is part of the
//! input, plugins are reached through [`policy::PolicySet`] only, and the same input gives the same plan.
//!
//! Start reading at [`call`] (what a plugin is asked), then [`combine`] (what several answers, or a fault,
//! amount to), then [`decide`].

pub mod call;
pub mod combine;
pub mod composition;
pub mod decide;
pub mod journal;
pub mod jsonpath;
pub mod model;
pub mod mutation;
pub mod names;
pub mod pod;
pub mod policy;
pub mod quantity;
#[cfg(feature = "schema")]
mod schema;
pub mod shadow;
pub mod shape;
pub mod snapshot;
pub mod time;
