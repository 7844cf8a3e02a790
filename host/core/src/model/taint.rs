use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::keys::DRAIN_TAINT;
use crate::time::Time;

/// Effect of a taint on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TaintEffect {
    /// New workloads are not scheduled to the cluster unless they tolerate the taint.
    NoSchedule,
    /// Soft version of `NoSchedule`; ignored by Karmada's scheduler.
    PreferNoSchedule,
    /// Like `NoSchedule`; in addition, running workloads that do not tolerate the taint are evicted.
    NoExecute,
    /// Running workloads are evicted if their policy has `failover.cluster`, regardless of tolerations. Not in any
    /// Karmada release; behind a feature gate.
    PreferNoExecute,
    /// Effect defined by another program; ignored, and written back unchanged.
    #[serde(untagged)]
    Other(String),
}

impl TaintEffect {
    /// Spelling of all effects other than [`Self::Other`].
    pub const KNOWN: [&str; 4] = ["NoSchedule", "PreferNoSchedule", "NoExecute", "PreferNoExecute"];

    /// Returns the wire spelling.
    pub fn as_str(&self) -> &str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
            Self::PreferNoExecute => "PreferNoExecute",
            Self::Other(text) => text,
        }
    }

    /// Returns true for an effect that can evict workloads.
    pub fn evicts(&self) -> bool {
        matches!(self, Self::NoExecute | Self::PreferNoExecute)
    }

    /// Returns true for an effect of another program.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Other(_))
    }
}

/// Taint on a cluster, identified by key and effect; the value is not part of the identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Qualified name.
    pub key: String,
    /// Label value, often empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Effect of the taint.
    pub effect: TaintEffect,
    /// Time at which it was added. Without it, `tolerationSeconds` for a `NoExecute` taint never expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
}

impl Taint {
    /// Returns `key:effect`.
    pub fn identity(&self) -> String {
        format!("{}:{}", self.key, self.effect.as_str())
    }

    /// Returns true if key and effect are equal.
    pub fn same_identity(&self, other: &Self) -> bool {
        self.key == other.key && self.effect == other.effect
    }
}

/// `key=value:effect`, or `key:effect` without a value.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_empty() {
            write!(f, "{}:{}", self.key, self.effect.as_str())
        } else {
            write!(f, "{}={}:{}", self.key, self.value, self.effect.as_str())
        }
    }
}

/// `core/v1` toleration, as used in `placement.clusterTolerations` of policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Key to match; empty matches every key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// `Equal` (also if empty) or `Exists`; any other operator never matches.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// Value to match with `Equal`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Effect to match; absent matches every effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// Seconds for which a `NoExecute` taint is tolerated; absent means without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

impl Toleration {
    /// Returns true if this toleration matches the taint, regardless of its seconds. The drain taint is matched only
    /// by its explicit key: a toleration for all taints is not meant to block an operator's drain.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.as_ref().is_none_or(|effect| *effect == taint.effect)
            && (self.key == taint.key || self.key.is_empty() && taint.key != DRAIN_TAINT)
            && match self.operator.as_str() {
                "" | "Equal" => self.value == taint.value,
                "Exists" => true,
                _ => false,
            }
    }
}
