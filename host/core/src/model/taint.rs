use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::keys::DRAIN_TAINT;
use crate::time::Time;

/// Effect of a taint on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TaintEffect {
    /// Nothing new is scheduled there unless it tolerates the taint.
    NoSchedule,
    /// As `NoSchedule`, but only a preference; Karmada's scheduler ignores it.
    PreferNoSchedule,
    /// Nothing new is scheduled there, and what runs there and does not tolerate the taint is evicted.
    NoExecute,
    /// What runs there is evicted if its policy has `failover.cluster`, whatever it tolerates. In no release of
    /// Karmada; behind a gate.
    PreferNoExecute,
    /// Anything else: another program's word, which does nothing here and is written back as it came.
    #[serde(untagged)]
    Other(String),
}

impl TaintEffect {
    /// The effects that are not [`Self::Other`], as they are spelled.
    pub const KNOWN: [&str; 4] = ["NoSchedule", "PreferNoSchedule", "NoExecute", "PreferNoExecute"];

    /// The wire spelling.
    pub fn as_str(&self) -> &str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
            Self::PreferNoExecute => "PreferNoExecute",
            Self::Other(text) => text,
        }
    }

    /// Whether it is another program's word.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Other(_))
    }
}

/// A taint on a cluster. Its identity is (key, effect); the value is never part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Qualified name.
    pub key: String,
    /// Label value, often empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What it does.
    pub effect: TaintEffect,
    /// When it was added; a `NoExecute` taint without it never makes a toleration with seconds expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
}

impl Taint {
    /// `key:effect`.
    pub fn identity(&self) -> String {
        format!("{}:{}", self.key, self.effect.as_str())
    }

    /// Whether both have the same key and effect.
    pub fn same_identity(&self, other: &Self) -> bool {
        self.key == other.key && self.effect == other.effect
    }
}

/// `key=value:effect`, or `key:effect` when there is no value.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_empty() {
            write!(f, "{}:{}", self.key, self.effect.as_str())
        } else {
            write!(f, "{}={}:{}", self.key, self.value, self.effect.as_str())
        }
    }
}

/// `core/v1` toleration as policies carry it in `placement.clusterTolerations`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Key to match; empty matches every key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// `Equal` (also when empty) or `Exists`; anything else never matches.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// Value for `Equal`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Effect to match; absent matches every effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// For how long a `NoExecute` taint is tolerated, in seconds; absent is for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

impl Toleration {
    /// Whether this toleration tolerates `taint`, whatever its seconds say. A drain is tolerated only by name: whoever
    /// tolerates everything did not have a person in mind who empties the cluster.
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
