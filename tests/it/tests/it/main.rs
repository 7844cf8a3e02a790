//! Whole federations on virtual time, driven through the library behind the program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod application_failover;
mod bad_input;
mod bad_interpreters;
mod behaviours;
mod conformance;
mod dependencies;
mod diff;
mod disagreements;
mod documents;
mod events;
mod eviction;
mod examples;
mod explain;
mod failback;
mod fair_invariants;
mod faults;
mod historic;
mod holes;
mod image_faults;
mod image_trust;
mod images;
mod library;
mod live_targets;
mod manifests;
mod many_replicas;
mod new_faults;
mod overrides;
mod plugin_versions;
mod policy_deletion;
mod recovery;
#[path = "../../../registry/mod.rs"]
#[allow(dead_code, reason = "other crates use other parts")]
mod registry;
mod reload;
mod replay;
mod runs;
mod same_name;
mod standing;
mod support;
mod taints;
mod tenancy;
mod trials;
mod trust_objects;
mod what_if;
mod workload_affinity;
