//! Reduction of the eviction rate when many clusters fail at the same time.
//!
//! The proposal "Optimize Cluster Failover" evaluates the federation as a whole. Kubernetes' node lifecycle
//! controller, the source of the rule, evaluates each zone; [`BrakeBy`] supports both.

use std::collections::BTreeMap;

use super::bucket::Rate;
use crate::model::Cluster;
use crate::names::keys;

/// Grouping of clusters for the evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BrakeBy {
    /// One group with all clusters, as in the proposal.
    #[default]
    Federation,
    /// One group per provider and region. The complete loss of a region does not slow down evictions.
    Region,
    /// One group per provider, region and set of zones.
    Zone,
}

impl BrakeBy {
    /// Returns the group of a cluster; empty for the whole federation.
    pub fn group_of(self, cluster: &Cluster) -> String {
        let spec = &cluster.spec;
        match self {
            Self::Federation => String::new(),
            Self::Region => format!("{}/{}", spec.provider, spec.region),
            Self::Zone => {
                let mut zones: Vec<_> = spec.zones.iter().map(String::as_str).collect();
                zones.sort_unstable();
                format!("{}/{}/{}", spec.provider, spec.region, zones.join(","))
            }
        }
    }
}

/// Eviction rates, and thresholds for their selection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BrakeSettings {
    /// Normal rate.
    pub rate: Rate,
    /// Rate for a large group with too many faulty clusters.
    pub secondary_rate: Rate,
    /// Share of faulty clusters, from 0 to 1, above which a group is unhealthy. 1 disables the brake.
    pub unhealthy_threshold: f64,
    /// Size above which a group is large. Evictions from a small unhealthy group stop.
    pub large_number: usize,
    /// Grouping of clusters.
    pub by: BrakeBy,
}

/// Effect of the brake on evictions from a group of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrakeState {
    /// The normal rate applies.
    Open,
    /// Too many clusters of a large group are faulty; the secondary rate applies.
    Slowed,
    /// Too many clusters of a small group are faulty; evictions stop.
    Stopped,
    /// Every cluster appears to have failed at once. A local fault is more likely, so evictions stop.
    Held,
}

impl BrakeState {
    /// Returns the `CamelCase` code for reasons and metrics.
    pub fn code(self) -> &'static str {
        match self {
            Self::Open => "BrakeOpen",
            Self::Slowed => "TooManyClustersFailed",
            Self::Stopped => "TooManyOfFewClustersFailed",
            Self::Held => "EveryClusterLooksDead",
        }
    }

    fn rate(self, settings: &BrakeSettings) -> Rate {
        match self {
            Self::Open => settings.rate,
            // A secondary rate above the normal rate is capped.
            Self::Slowed if settings.secondary_rate > settings.rate => settings.rate,
            Self::Slowed => settings.secondary_rate,
            Self::Stopped | Self::Held => Rate::STOP,
        }
    }
}

/// Number of failed and faulty clusters in a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    /// Clusters that are not ready.
    failed: usize,
    /// Clusters that are not ready or have an evicting taint.
    faulty: usize,
    total: usize,
}

impl Count {
    fn all_failed(self) -> bool {
        self.total > 0 && self.failed == self.total
    }

    fn share(self) -> f64 {
        if self.total == 0 {
            0.0
        } else {
            self.faulty as f64 / self.total as f64
        }
    }
}

/// Evaluation of all clusters at one point in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Brake {
    settings: BrakeSettings,
    all: Count,
    groups: BTreeMap<String, Count>,
}

impl Brake {
    /// Evaluates the clusters. A cluster counts as failed unless its Ready condition is True, and as faulty if it is
    /// failed or has a `NoExecute` or `PreferNoExecute` taint other than that of a drain. The threshold applies to
    /// faulty clusters, so that it also slows down a wrong taint policy. A cluster that is being removed does not
    /// count.
    pub fn assess<'a>(clusters: impl IntoIterator<Item = &'a Cluster>, settings: BrakeSettings) -> Self {
        let (mut all, mut groups) = (Count::default(), BTreeMap::<String, Count>::new());
        for cluster in clusters.into_iter().filter(|cluster| !cluster.is_terminating()) {
            let failed = usize::from(!cluster.is_ready());
            let faulty = usize::from(!cluster.is_ready() || is_tainted(cluster));
            let group = groups.entry(settings.by.group_of(cluster)).or_default();
            for count in [&mut all, group] {
                count.failed += failed;
                count.faulty += faulty;
                count.total += 1;
            }
        }
        Self { settings, all, groups }
    }

    /// Returns the effect on evictions from a group (see [`BrakeBy::group_of`]).
    pub fn state(&self, group: &str) -> BrakeState {
        if self.all.all_failed() {
            return BrakeState::Held;
        }
        let count = self.groups.get(group).copied().unwrap_or_default();
        // The complete loss of one group while others are healthy is the purpose of failover.
        let lost_as_a_whole = self.settings.by != BrakeBy::Federation && count.all_failed();
        if lost_as_a_whole || count.share() <= self.settings.unhealthy_threshold {
            BrakeState::Open
        } else if count.total > self.settings.large_number {
            BrakeState::Slowed
        } else {
            BrakeState::Stopped
        }
    }

    /// Returns the eviction rate for a group.
    pub fn rate(&self, group: &str) -> Rate {
        self.state(group).rate(&self.settings)
    }

    /// Returns the group of a cluster.
    pub fn group_of(&self, cluster: &Cluster) -> String {
        self.settings.by.group_of(cluster)
    }

    /// Returns the number of faulty clusters.
    pub fn faulty(&self) -> usize {
        self.all.faulty
    }

    /// Returns the share of faulty clusters, from 0 to 1.
    pub fn faulty_share(&self) -> f64 {
        self.all.share()
    }

    /// Returns a human-readable description of the failures.
    pub fn describe(&self, group: &str) -> String {
        let count = self.groups.get(group).copied().unwrap_or_default();
        let of = if group.is_empty() {
            String::new()
        } else {
            format!(" in {group}")
        };
        if count.faulty > count.failed {
            return format!(
                "{} of {} clusters{of} are not ready or have an evicting taint",
                count.faulty, count.total
            );
        }
        format!("{} of {} clusters{of} are not ready", count.failed, count.total)
    }
}

/// Returns true if the cluster has a taint that evicts. A drain is a request of an operator and no fault.
fn is_tainted(cluster: &Cluster) -> bool {
    cluster
        .spec
        .taints
        .iter()
        .any(|taint| taint.effect.evicts() && taint.key != keys::DRAIN_TAINT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Condition, ConditionStatus, Taint, TaintEffect};
    use crate::time::Time;

    fn cluster(index: usize, region: &str, ready: bool) -> Cluster {
        let status = if ready {
            ConditionStatus::True
        } else {
            ConditionStatus::False
        };
        let mut cluster = Cluster {
            name: format!("m{index}"),
            ..Cluster::default()
        };
        region.clone_into(&mut cluster.spec.region);
        cluster
            .status
            .conditions
            .push(Condition::new("Ready", status, "R", "m", Time::from_millis(0)));
        cluster
    }

    fn settings(by: BrakeBy) -> BrakeSettings {
        let (rate, secondary_rate) = (Rate::per_second(0.5), Rate::per_second(0.1));
        BrakeSettings {
            rate,
            secondary_rate,
            unhealthy_threshold: 0.55,
            large_number: 10,
            by,
        }
    }

    fn some(failed: usize, total: usize) -> Vec<Cluster> {
        (0..total).map(|index| cluster(index, "", index >= failed)).collect()
    }

    #[test]
    fn a_small_federation_stops_and_a_large_one_slows_down() {
        let check = |failed, total, expected| {
            let brake = Brake::assess(&some(failed, total), settings(BrakeBy::Federation));
            assert_eq!(brake.state(""), expected, "{failed} of {total}");
        };
        check(0, 3, BrakeState::Open);
        check(1, 2, BrakeState::Open);
        check(2, 3, BrakeState::Stopped);
        check(5, 10, BrakeState::Open);
        check(6, 10, BrakeState::Stopped);
        check(6, 11, BrakeState::Open);
        check(7, 11, BrakeState::Slowed);
        // A share equal to the threshold is not above it.
        check(11, 20, BrakeState::Open);
        check(12, 20, BrakeState::Slowed);
        check(1, 1, BrakeState::Held);
        check(20, 20, BrakeState::Held);
        check(0, 0, BrakeState::Open);
    }

    #[test]
    fn a_cluster_that_is_being_removed_does_not_count() {
        let mut clusters = some(2, 4);
        clusters[0].deletion_timestamp = Some(Time::from_millis(0));
        let brake = Brake::assess(&clusters, settings(BrakeBy::Federation));
        assert_eq!(
            (brake.faulty(), brake.describe("")),
            (1, "1 of 3 clusters are not ready".to_owned())
        );
    }

    /// Evaluates ten ready clusters, of which the first ones have this taint.
    fn tainted(count: usize, key: &str, effect: &TaintEffect, by: BrakeBy) -> Brake {
        let mut clusters: Vec<_> = (0..10).map(|index| cluster(index, "", true)).collect();
        for cluster in clusters.iter_mut().take(count) {
            let (key, value, effect) = (key.to_owned(), String::new(), effect.clone());
            cluster.spec.taints.push(Taint {
                key,
                value,
                effect,
                time_added: None,
            });
        }
        Brake::assess(&clusters, settings(by))
    }

    #[test]
    fn a_ready_cluster_with_an_evicting_taint_counts_as_faulty() {
        let check = |count, key: &str, effect: &TaintEffect, expected| {
            let brake = tainted(count, key, effect, BrakeBy::Federation);
            assert_eq!(brake.state(""), expected, "{count} with {key}:{effect:?}");
        };
        check(5, "k", &TaintEffect::NoExecute, BrakeState::Open);
        check(6, "k", &TaintEffect::NoExecute, BrakeState::Stopped);
        check(6, "k", &TaintEffect::PreferNoExecute, BrakeState::Stopped);
        check(6, "k", &TaintEffect::NoSchedule, BrakeState::Open);
        check(6, keys::DRAIN_TAINT, &TaintEffect::NoExecute, BrakeState::Open);
        // Clusters that answer are not a sign of a local fault.
        check(10, "k", &TaintEffect::NoExecute, BrakeState::Stopped);
        let brake = tainted(6, "k", &TaintEffect::NoExecute, BrakeBy::Federation);
        let described = "6 of 10 clusters are not ready or have an evicting taint";
        assert_eq!((brake.faulty(), brake.describe("")), (6, described.to_owned()));
        // A region whose clusters are ready is not lost as a whole.
        let region = tainted(10, "k", &TaintEffect::NoExecute, BrakeBy::Region);
        assert_eq!(region.state("/"), BrakeState::Stopped);
    }

    #[test]
    fn a_region_that_is_lost_as_a_whole_is_evacuated_and_a_half_lost_one_is_not() {
        let region = |name: &'static str, failed: usize, total: usize| {
            (0..total).map(move |index| cluster(index, name, index >= failed))
        };
        let check = |clusters: Vec<Cluster>, by, east, west| {
            let brake = Brake::assess(&clusters, settings(by));
            assert_eq!((brake.state("/east"), brake.state("/west")), (east, west), "{by:?}");
        };
        let (open, stopped, held) = (BrakeState::Open, BrakeState::Stopped, BrakeState::Held);
        check(
            region("east", 3, 3).chain(region("west", 0, 2)).collect(),
            BrakeBy::Region,
            open,
            open,
        );
        check(
            region("east", 2, 3).chain(region("west", 0, 9)).collect(),
            BrakeBy::Region,
            stopped,
            open,
        );
        check(
            region("east", 3, 3).chain(region("west", 2, 2)).collect(),
            BrakeBy::Region,
            held,
            held,
        );
    }

    #[test]
    fn zones_are_distinguished_within_a_region() {
        let mut clusters: Vec<_> = (0..4).map(|index| cluster(index, "east", index > 1)).collect();
        for (index, cluster) in clusters.iter_mut().enumerate() {
            cluster.spec.zones = vec![format!("z{}", index / 2)];
        }
        let brake = Brake::assess(&clusters, settings(BrakeBy::Zone));
        assert_eq!(brake.group_of(&clusters[0]), "/east/z0");
        assert_eq!(brake.state("/east/z0"), BrakeState::Open, "the zone is lost as a whole");
    }

    #[test]
    fn a_secondary_rate_above_the_normal_one_does_not_speed_things_up() {
        let settings = BrakeSettings {
            secondary_rate: Rate::per_second(9.0),
            ..settings(BrakeBy::Federation)
        };
        assert_eq!(Brake::assess(&some(12, 20), settings).rate(""), Rate::per_second(0.5));
    }

    proptest! {
        /// An additional failed cluster never raises the rate, except when it completes the loss of a region.
        #[test]
        fn more_failures_never_speed_up_a_federation(failed in 0_usize..40, total in 1_usize..40) {
            let failed = failed.min(total - 1);
            let rate = |failed| Brake::assess(&some(failed, total), settings(BrakeBy::Federation)).rate("");
            prop_assert!(rate(failed + 1) <= rate(failed));
        }
    }

    #[test]
    fn each_state_has_a_code_and_a_rate() {
        let settings = settings(BrakeBy::Federation);
        for (state, code, rate) in [
            (BrakeState::Open, "BrakeOpen", settings.rate),
            (BrakeState::Slowed, "TooManyClustersFailed", settings.secondary_rate),
            (BrakeState::Stopped, "TooManyOfFewClustersFailed", Rate::STOP),
            (BrakeState::Held, "EveryClusterLooksDead", Rate::STOP),
        ] {
            assert_eq!((state.code(), state.rate(&settings)), (code, rate), "{state:?}");
        }
    }

    #[test]
    fn the_share_of_faulty_clusters_counts_tainted_ones() {
        let share = |brake: Brake| (brake.faulty_share() * 100.0).round();
        assert!((share(tainted(6, "k", &TaintEffect::NoExecute, BrakeBy::Federation)) - 60.0).abs() < 0.1);
        assert!((share(Brake::assess(&some(1, 4), settings(BrakeBy::Federation))) - 25.0).abs() < 0.1);
        assert!(share(Brake::assess(&some(0, 0), settings(BrakeBy::Federation))).abs() < 0.1);
    }
}
