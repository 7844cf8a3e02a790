//! Decisions, one module each: a snapshot as input, a plan as output.

pub mod affinity;
pub mod depend;
pub mod dispatch;
pub mod evict;
pub mod eviction;
pub mod failback;
pub mod failover;
pub mod finish;
pub mod health;
pub mod ownership;
pub mod ready;
pub mod report;
pub mod schedule;
pub mod summary;
pub mod taint;
