//! Pure core of Bulkhead: the model, the plugin port and all decisions.
//!
//! A controller captures a snapshot, calls one function of [`decide`] and applies the plan that it returns. The crate
//! does no I/O, reads no clock and writes no logs. `now` is part of the input, plugins are reached only through
//! [`policy::PolicySet`], and equal inputs give equal plans.
//!
//! Start with [`call`] (the calls to a plugin), then [`combine`] (how several replies or a fault combine), then
//! [`decide`].

pub mod affinity;
pub mod call;
pub mod combine;
pub mod composition;
pub mod decide;
pub mod failover_record;
pub mod identity;
pub mod journal;
pub mod jsonpath;
pub mod label;
pub mod manifest;
pub mod model;
pub mod names;
pub mod overriding;
pub mod pod;
pub mod policy;
pub mod prune;
pub mod quantity;
pub mod scoped;
pub mod shape;
pub mod snapshot;
pub mod time;
pub mod typed;
pub mod unknown_fields;
pub mod unstructured;
