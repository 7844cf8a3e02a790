//! Simulated member clusters on the in-process API server.
//!
//! A [`MemberCluster`] has an [`ApiServer`](bulkhead_apiserver::ApiServer) of its own, nodes with a capacity, and an
//! emulator of the controllers and kubelets, which makes workloads ready. A [`FailureMode`] lets them fail instead; the
//! cluster's [`Link`](bulkhead_apiserver::Link) makes the cluster slow or unreachable.
//!
//! Time is tokio's, and randomness depends only on the seed, so the same seed gives the same run on a paused clock.
//!
//! Work does not grow with the number of replicas: of a workload with many, most pods share the objects of a few groups
//! ([`POD_OBJECTS_MAX`], [`pods_in`]).
//!
//! Out of scope: containers, networks, preemption. Pods of unknown owners run, and custom kinds are only stored.

mod controllers;
mod disruption;
mod failure;
mod member;
mod nodes;

pub use controllers::{POD_OBJECTS_MAX, ReplicaReady, pods_in};
pub use disruption::{ClusterState, WorkloadFailure};
pub use failure::FailureMode;
pub use member::{Behaviour, Capacity, MemberCluster, MemberOptions};
