//! Rules that combine the replies of several policies into one, as data.
//!
//! Two call kinds have configurable rules; the others have a fixed one. Taint changes apply in order, a cluster has
//! to pass every filter, and scores are summed with the weights of their policies. The first policy with a rule
//! interprets.

use serde::{Deserialize, Serialize};

/// Rules for the call kinds with a configurable rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Composition {
    /// Rule for combining health verdicts.
    pub health: HealthRule,
    /// Rule for releasing an old copy.
    pub eviction_check: EvictionRule,
}

/// Rule for combining health verdicts if several policies cover an object kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HealthRule {
    /// First verdict that is not an abstention, in policy order.
    #[default]
    FirstOpinion,
    /// Worst of all verdicts: unhealthy before unknown before healthy.
    WorstOpinion,
}

/// Rule for releasing an old copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EvictionRule {
    /// At least one policy releases it and none holds it.
    #[default]
    AnyHoldWins,
    /// At least one policy releases it; holds are ignored.
    AnyReleaseWins,
    /// At least this many policies release it; holds are ignored. 0 counts as 1, because a release is always
    /// required.
    Quorum(u32),
}

impl EvictionRule {
    /// Returns true if these numbers of releases and holds release the old copy.
    pub fn releases(self, releases: usize, holds: usize) -> bool {
        match self {
            Self::AnyHoldWins => releases > 0 && holds == 0,
            Self::AnyReleaseWins => releases > 0,
            Self::Quorum(least) => releases >= usize::try_from(least.max(1)).unwrap_or(usize::MAX),
        }
    }
}

/// Participation of a policy in decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The policy is called and its replies count.
    #[default]
    Enforce,
    /// The policy is called, and its replies are only compared with the decision made without it.
    Shadow,
    /// The policy is not called.
    Off,
}

impl Mode {
    /// Returns the spelling used in manifests.
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
            assert_eq!(
                rule.releases(releases, holds),
                expected,
                "{rule:?} with {releases} and {holds}"
            );
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
        let rules = Composition {
            health: HealthRule::WorstOpinion,
            eviction_check: Quorum(2),
        };
        assert_eq!(read(text).ok(), Some(rules));
        assert!(read(r#"{"eviction": "any-hold-wins"}"#).is_err());
    }
}
