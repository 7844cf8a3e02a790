//! Kinds of plugins.

use clap::ValueEnum;
use serde::Deserialize;

/// Call that a plugin implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// Interpret the health of an object.
    Health,
    /// Add and remove taints of member clusters.
    ClusterTaint,
    /// Select the clusters that a binding can run on.
    Filter,
    /// Score the feasible clusters.
    Score,
    /// Hold or release graceful evictions.
    EvictionCheck,
    /// Implement Karmada's other interpreter operations.
    ResourceInterpreter,
}

impl Kind {
    /// Returns the name on the command line and in files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::ClusterTaint => "cluster-taint",
            Self::Filter => "filter",
            Self::Score => "score",
            Self::EvictionCheck => "eviction-check",
            Self::ResourceInterpreter => "resource-interpreter",
        }
    }

    /// Returns the interfaces of the contract that a component of this kind exports, besides `plugin`.
    pub(super) fn interfaces(self) -> &'static [&'static str] {
        match self {
            Self::Health => &["health"],
            Self::ClusterTaint => &["taints"],
            Self::Filter => &["filter"],
            Self::Score => &["score"],
            Self::EvictionCheck => &["eviction"],
            Self::ResourceInterpreter => &["health", "interpreter"],
        }
    }
}
