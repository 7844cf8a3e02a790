//! Participation of a plugin in decisions.

use serde::{Deserialize, Serialize};

use super::Scope;
use crate::call::CallKind;
use crate::composition::Mode;

/// Objects that the scores of a plugin rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Scores {
    /// The clusters that a binding could be placed on.
    #[default]
    Placements,
    /// The bindings that wait for their eviction from a cluster. The plugin is called for each with that cluster as
    /// the only one, and the highest score is evicted first. The scheduler does not call it.
    Evictions,
}

/// Thresholds of the circuit breaker that quarantines a faulty plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Breaker"))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct BreakerThresholds {
    /// Number of faults of the plugin within the window that start a quarantine; 0 disables the breaker.
    pub faults: u32,
    /// Length of the window, in seconds.
    pub window_seconds: u32,
    /// Duration of a quarantine before the plugin is probed, in seconds.
    pub quarantine_seconds: u32,
    /// Number of consecutive successful probes that end the quarantine.
    pub probes: u32,
}

impl Default for BreakerThresholds {
    /// Returns five faults within a minute, half a minute of quarantine, three probes.
    fn default() -> Self {
        Self {
            faults: 5,
            window_seconds: 60,
            quarantine_seconds: 30,
            probes: 3,
        }
    }
}

/// Replacement of a plugin in quarantine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    /// None: every call is a fault, and the fail-static rule of its kind applies.
    #[default]
    FailStatic,
    /// None: the other policies decide as if the plugin did not exist.
    Abstain,
    /// The previously active version; fail-static if there was none.
    Previous,
    /// A built-in policy, by name.
    Builtin(String),
}

/// Terms of a plugin's participation in decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Participation in decisions.
    pub mode: Mode,
    /// Factor for its scores.
    pub weight: u32,
    /// Objects that its scores rank.
    pub scores: Scores,
    /// Workloads and clusters that it is asked about.
    pub scope: Scope,
    /// Thresholds of its circuit breaker.
    pub breaker: BreakerThresholds,
    /// Replacement while it is in quarantine.
    pub fallback: Fallback,
}

impl Terms {
    /// Returns the reason why a plugin on these terms cannot answer a kind of call; `None` if it can.
    pub fn objection(&self, kind: CallKind) -> Option<String> {
        if self.scores == Scores::Evictions && kind != CallKind::Score {
            return Some("scores: evictions is for plugins that only score".to_owned());
        }
        self.scope.objection(kind, self.scores == Scores::Evictions)
    }
}
