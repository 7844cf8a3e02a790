//! How the answers of several policies become one, as data.
//!
//! Two kinds have a choice. The others have one rule: changes of taints are made in order, a cluster has to pass every
//! filter, scores are summed with the weights of their policies, and the first policy with a rule interprets.

use serde::{Deserialize, Serialize};

/// The rules for the kinds that have a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Composition {
    /// Whose health counts.
    pub health: HealthRule,
    /// When an old copy may go.
    pub eviction_check: EvictionRule,
}

/// Whose health counts when several policies cover a kind of object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HealthRule {
    /// The first one that has an opinion, in order.
    #[default]
    FirstOpinion,
    /// The worst of all opinions: unhealthy before unknown before healthy.
    WorstOpinion,
}

/// When an old copy may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvictionRule {
    /// When one releases it and none holds it.
    #[default]
    AnyHoldWins,
    /// When one releases it, whoever holds it.
    AnyReleaseWins,
    /// When at least so many release it, whoever holds it. 0 counts as 1: nothing goes without a release.
    Quorum(u32),
}

impl EvictionRule {
    /// Whether that many releases and holds let the old copy go.
    pub fn releases(self, releases: usize, holds: usize) -> bool {
        match self {
            Self::AnyHoldWins => releases > 0 && holds == 0,
            Self::AnyReleaseWins => releases > 0,
            Self::Quorum(least) => releases >= usize::try_from(least.max(1)).unwrap_or(usize::MAX),
        }
    }
}

/// How a policy takes part in decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Its answers count.
    #[default]
    Enforce,
    /// It is asked, and its answers are compared with what was decided without it.
    Shadow,
    /// It is not asked.
    Off,
}

impl Mode {
    /// The spelling used in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
            Self::Off => "off",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EvictionRule::{AnyHoldWins, AnyReleaseWins, Quorum};
    use super::*;

    #[test]
    fn an_old_copy_goes_as_the_rule_says() {
        let check = |rule: EvictionRule, releases, holds, expected| {
            assert_eq!(rule.releases(releases, holds), expected, "{rule:?} with {releases} and {holds}");
        };
        check(AnyHoldWins, 0, 0, false);
        check(AnyHoldWins, 2, 0, true);
        check(AnyHoldWins, 2, 1, false);
        check(AnyReleaseWins, 0, 0, false);
        check(AnyReleaseWins, 1, 5, true);
        check(Quorum(2), 1, 0, false);
        check(Quorum(2), 2, 3, true);
        check(Quorum(0), 0, 0, false);
    }

    #[test]
    fn the_rules_are_read_as_manifests_spell_them() {
        let read = |text: &str| serde_json::from_str::<Composition>(text);
        assert_eq!(read("{}").ok(), Some(Composition::default()));
        let text = r#"{"health": "worst-opinion", "eviction-check": {"quorum": 2}}"#;
        let rules = Composition { health: HealthRule::WorstOpinion, eviction_check: Quorum(2) };
        assert_eq!(read(text).ok(), Some(rules));
        assert!(read(r#"{"eviction": "any-hold-wins"}"#).is_err());
    }
}
