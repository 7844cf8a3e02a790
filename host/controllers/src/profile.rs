//! Named sets of options, each of which reproduces the failover of a version of Karmada or of a proposal for it.
//!
//! A profile consists of flags only. Flags that are given in addition override it one by one.

use bulkhead_core::decide::eviction::PreCheck;
use bulkhead_core::decide::graceful_eviction::{PurgeWithoutReplacement, RestoreSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::flags::{FeatureGate, Flags, GoDuration};

/// Named set of options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Current Karmada with its defaults, except that an old copy is kept while nothing replaces it.
    #[default]
    Modern,
    /// Karmada before 1.14: lost clusters are tainted and evicted automatically, and a grace period always ends.
    Classic,
    /// The proposal "Configurable cluster failover".
    Configurable,
    /// The proposal "Optimize Cluster Failover".
    Optimized,
}

/// Flag that a profile sets to a value other than the default.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// Name of the flag.
    pub flag: String,
    /// Value in the profile.
    pub value: Value,
    /// Default value.
    pub default: Value,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 4] = [Self::Modern, Self::Classic, Self::Configurable, Self::Optimized];

    /// Returns the name used in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Classic => "classic",
            Self::Configurable => "configurable",
            Self::Optimized => "optimized",
        }
    }

    /// Returns a one-sentence description.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Modern => "current Karmada with its defaults; an old copy stays while nothing replaces it",
            Self::Classic => {
                "Karmada before 1.14: a lost cluster is tainted and evicted automatically after some minutes"
            }
            Self::Configurable => "classic, and policies choose purge mode and grace period for lost clusters too",
            Self::Optimized => "only taint policies evict; a started eviction continues until it ends or is cancelled",
        }
    }

    /// Returns all flags as the profile sets them.
    pub fn flags(self) -> Flags {
        let modern = Flags::default();
        match self {
            Self::Modern => modern,
            Self::Classic => Flags {
                feature_gates: [(FeatureGate::Failover, true)].into(),
                enable_no_execute_taint_eviction: true,
                failover_eviction_timeout: GoDuration::from_secs(300),
                // The features of the proposals did not exist yet.
                eviction_pre_check: PreCheck::None,
                default_not_ready_toleration_seconds: Some(300),
                default_unreachable_toleration_seconds: Some(300),
                purge_without_replacement: PurgeWithoutReplacement::AfterGracePeriod,
                restore_recovered_source: RestoreSource::Never,
                ..modern
            },
            Self::Configurable => Flags {
                allow_never_purging_clusters: true,
                ..Self::Classic.flags()
            },
            Self::Optimized => Flags {
                feature_gates: [(FeatureGate::Failover, true), (FeatureGate::PreferNoExecute, true)].into(),
                enable_no_execute_taint_eviction: true,
                allow_no_execute_taint_policy: true,
                unhealthy_cluster_threshold: 0.55,
                eviction_pre_check: PreCheck::Proposal,
                purge_without_replacement: PurgeWithoutReplacement::OnlyByPolicy,
                restore_recovered_source: RestoreSource::WhenUnplaced,
                ..modern
            },
        }
    }

    /// Returns the flags of the profile, overridden by `given`, an object of flags. Feature gates are overridden one
    /// by one.
    pub fn with(self, given: &Value) -> Result<Flags, serde_json::Error> {
        let mut flags = members(&self.flags());
        for (flag, value) in given.as_object().into_iter().flatten() {
            match (flags.get_mut(flag), value) {
                (Some(Value::Object(existing)), Value::Object(given)) => existing.extend(given.clone()),
                _ => drop(flags.insert(flag.clone(), value.clone())),
            }
        }
        serde_json::from_value(Value::Object(flags))
    }

    /// Returns the flags that differ from the default, in order of name.
    pub fn settings(self) -> Vec<Setting> {
        let defaults = members(&Flags::default());
        let own = members(&self.flags());
        let differs = |(flag, value): (String, Value)| {
            let default = defaults.get(&flag).cloned().unwrap_or_default();
            (value != default).then_some(Setting { flag, value, default })
        };
        own.into_iter().filter_map(differs).collect()
    }
}

fn members(flags: &Flags) -> Map<String, Value> {
    match serde_json::to_value(flags) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_profile_is_in_range_and_reads_back() {
        for profile in Profile::ALL {
            assert_eq!(profile.flags().validate(), Ok(()), "{profile:?}");
            assert_eq!(profile.with(&json!({})).unwrap(), profile.flags(), "{profile:?}");
            assert_eq!(serde_json::to_value(profile).unwrap(), profile.name());
        }
        assert_eq!(Profile::Modern.flags(), Flags::default());
        assert_eq!(Profile::Modern.settings(), []);
    }

    #[test]
    fn what_is_given_overrides_the_profile_flag_by_flag() {
        let given = json!({
            "failover-eviction-timeout": "1m", "feature-gates": {"GracefulEviction": false},
            "default-not-ready-toleration-seconds": null,
        });
        let flags = Profile::Classic.with(&given).unwrap();
        assert_eq!(flags.failover_eviction_timeout, GoDuration::from_secs(60));
        assert!(flags.gate(FeatureGate::Failover) && !flags.gate(FeatureGate::GracefulEviction));
        assert_eq!(flags.default_not_ready_toleration_seconds, None);
        assert_eq!(flags.default_unreachable_toleration_seconds, Some(300));
        assert!(Profile::Classic.with(&json!({"colour": "red"})).is_err());
    }

    #[test]
    fn a_profile_says_what_it_changes() {
        let settings = Profile::Configurable.settings();
        let of = |flag: &str| {
            settings
                .iter()
                .find(|setting| setting.flag == flag)
                .map(|s| (&s.value, &s.default))
        };
        assert_eq!(of("failover-eviction-timeout"), Some((&json!("5m"), &json!("0s"))));
        assert_eq!(of("allow-never-purging-clusters"), Some((&json!(true), &json!(false))));
        assert_eq!(of("resource-eviction-rate"), None);
    }
}
