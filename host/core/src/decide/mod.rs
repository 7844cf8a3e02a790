//! Decisions, one module each: a snapshot as input, a plan as output.

pub mod application_failover;
pub mod cluster_ready;
pub mod dependencies;
pub mod dispatch;
pub mod eviction;
pub mod failback;
pub mod graceful_eviction;
pub mod health;
pub mod ownership;
pub mod preserve;
pub mod reasons;
pub mod rebalance;
pub mod report;
pub mod schedule;
pub mod summary;
pub mod taint;
