//! Karmada's API types, as Bulkhead reads and writes them.
//!
//! Each kind is a typed object for `kube::Api`, with Kubernetes metadata. Spec and status are types of the core model
//! wherever one exists: the model *is* the wire shape, so conversions move metadata only. [`admission`] implements
//! Karmada's webhooks for these objects, as functions without I/O.
//!
//! This crate has no client, no runtime and no engine. Karmada has more fields than decisions read: those of bindings
//! and clusters survive a write untouched, those of policies are listed in full.
//!
//! Start reading at [`kinds`] (the kinds that are served), then [`binding`] (the code shared by both kinds of
//! binding).

pub mod admission;
pub mod binding;
pub mod cluster;
pub mod decode;
pub mod definition;
pub mod eviction;
pub mod failover_record;
pub mod interpreter;
pub mod kinds;
mod object;
pub mod override_policy;
pub mod plugin;
pub mod plugin_trust;
pub mod policy;
pub mod rebalancer;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod releases;
mod schemas;
pub mod time;
pub mod webhook;
pub mod work;

pub use binding::{AnyBinding, ClusterResourceBinding, ResourceBinding};
pub use cluster::Cluster;
pub use decode::{Decoded, FieldError, UnknownField, decode_strict};
pub use eviction::{ClusterDrain, EvictionPause};
pub use failover_record::{AnyFailoverRecord, ClusterFailoverRecord, FailoverRecord};
pub use interpreter::ResourceInterpreterCustomization;
pub use kinds::{KindInfo, REGISTERED};
pub use override_policy::{ClusterOverridePolicy, OverridePolicy, OverrideSpec};
pub use plugin::{Plugin, PluginSpec, PluginStatus};
pub use plugin_trust::{PluginTrust, PluginTrustSpec, PluginTrustStatus};
pub use policy::{ClusterPropagationPolicy, ClusterTaintPolicy, PropagationPolicy};
pub use rebalancer::WorkloadRebalancer;
pub use webhook::ResourceInterpreterWebhookConfiguration;
pub use work::Work;
