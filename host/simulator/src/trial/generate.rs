//! Generation of disruptions from a seed.

use bulkhead_controllers::flags::GoDuration;
use serde_json::{Value, json};

use super::seeded_rng::SeededRng;
use super::timing::Timing;
use super::{Disruption, DisruptionKind};
use crate::scenario::faults::{FaultKind, FaultSpec};

/// Minimum and maximum number of disruptions per seed.
const DISRUPTIONS: (u64, u64) = (2, 9);
/// Maximum number of writes that pass before a fault affects one.
const WRITES_MAX: u64 = 12;
/// Maximum age of an eviction at the loss of its target, in seconds: by then most replacements are ready.
const TARGET_AGE_MAX_S: u64 = 15;

/// Possible targets of disruptions.
pub(super) struct Targets<'a> {
    /// Names of the member clusters.
    pub(super) clusters: &'a [String],
    /// Workloads that can fail, as `namespace/name`.
    pub(super) workloads: &'a [String],
}

/// Generates the disruptions of a seed, in order of time. All of them end by [`Timing::until_s`].
pub(super) fn disruptions(
    seed: u64,
    kinds: &[DisruptionKind],
    targets: &Targets<'_>,
    timing: &Timing,
) -> Vec<Disruption> {
    // The simulated clusters use the seed itself.
    let mut rng = SeededRng::new(seed, 0x005e_ed0f_fa17);
    let count = rng.between(DISRUPTIONS.0, DISRUPTIONS.1);
    let mut disruptions: Vec<_> = (0..count)
        .filter_map(|_| disruption(&mut rng, kinds, targets, timing))
        .collect();
    disruptions.sort_by_key(|disruption| disruption.at);
    disruptions
}

fn disruption(
    rng: &mut SeededRng,
    kinds: &[DisruptionKind],
    targets: &Targets<'_>,
    timing: &Timing,
) -> Option<Disruption> {
    let kind = *rng.one_of(kinds)?;
    let at = rng.seconds(timing.from_s, timing.until_s - timing.lasts_max_s);
    let back = GoDuration(at.0 + rng.seconds(5, timing.lasts_max_s).0);
    let state = |at: GoDuration, cluster: &str, state: &str| json!({"at": at, "cluster": cluster, "state": state});
    let events = match kind {
        DisruptionKind::ClusterLoss | DisruptionKind::ClusterUnready => {
            let down = if kind == DisruptionKind::ClusterLoss {
                "unreachable"
            } else {
                "readyz-failing"
            };
            let cluster = rng.one_of(targets.clusters)?;
            vec![state(at, cluster, down), state(back, cluster, "recover")]
        }
        DisruptionKind::AllLost => {
            let moments = [(at, "unreachable"), (back, "recover")];
            let of_all = |(at, to)| targets.clusters.iter().map(move |cluster| state(at, cluster, to));
            moments.into_iter().flat_map(of_all).collect()
        }
        DisruptionKind::Flap => {
            let (cluster, mut moment, mut events) = (rng.one_of(targets.clusters)?, at, Vec::new());
            let times = rng.between(2, 4);
            for _ in 0..times {
                for to in ["unreachable", "recover"] {
                    events.push(state(moment, cluster, to));
                    moment = GoDuration(moment.0 + rng.seconds(1, timing.lasts_max_s / (2 * times)).0);
                }
            }
            events
        }
        DisruptionKind::BlipAtTakeover => {
            let cluster = rng.one_of(targets.clusters)?;
            let (taken_over, back) = (
                GoDuration(at.0 + rng.seconds(0, 2).0),
                GoDuration(at.0 + rng.seconds(2, 4).0),
            );
            let takeover = json!({"at": taken_over, "fault": FaultSpec::of(FaultKind::LeaderChange)});
            vec![
                state(at, cluster, "unreachable"),
                takeover,
                state(back, cluster, "recover"),
            ]
        }
        DisruptionKind::ApplicationFailure => {
            let (cluster, workload) = (rng.one_of(targets.clusters)?, rng.one_of(targets.workloads)?);
            let mode = rng.one_of(&["never-ready", "crash-loop"])?;
            let modes = json!([{"mode": mode, "workload": workload}]);
            let fails = |at: GoDuration, modes| json!({"at": at, "cluster": cluster, "failureModes": modes});
            vec![fails(at, modes), fails(back, json!([]))]
        }
        DisruptionKind::Fault(kind) => vec![json!({"at": at, "fault": fault(rng, kind, targets, timing)?})],
    };
    Some(Disruption { kind, at, events })
}

fn fault(rng: &mut SeededRng, kind: FaultKind, targets: &Targets<'_>, timing: &Timing) -> Option<FaultSpec> {
    let codes = [409, 410, 429, 500, 504];
    let resources = kind.resources();
    let narrow = !resources.is_empty() && rng.chance(66);
    let after = match kind {
        FaultKind::TargetLoss => rng.between(0, TARGET_AGE_MAX_S),
        _ if kind.affects_single_write() => rng.between(0, WRITES_MAX),
        _ => 0,
    };
    // Outages of other components last longer.
    let lasts_max_s = if kind == FaultKind::WriteOutage {
        timing.lasts_max_s
    } else {
        timing.lasts_max_s.min(40)
    };
    let cluster = if kind.has_cluster() {
        Some(rng.one_of(targets.clusters)?.clone())
    } else {
        None
    };
    let peers: Vec<_> = targets
        .clusters
        .iter()
        .filter(|name| Some(*name) != cluster.as_ref())
        .collect();
    let peer = if kind == FaultKind::PeerPartition {
        Some((*rng.one_of(&peers)?).clone())
    } else {
        None
    };
    Some(FaultSpec {
        resource: if narrow {
            rng.one_of(resources).map(|resource| (*resource).to_owned())
        } else {
            None
        },
        code: if kind == FaultKind::Respond {
            rng.one_of(&codes).copied()
        } else {
            None
        },
        after: (after > 0).then_some(after),
        cluster,
        peer,
        by: kind.is_of_clocks().then(|| rng.seconds(2, 600)),
        for_: kind.lasts().then(|| rng.seconds(1, lasts_max_s)),
        ..FaultSpec::of(kind)
    })
}

/// Access to the events as scenario data.
impl Disruption {
    pub(super) fn events(&self) -> impl Iterator<Item = &Value> {
        self.events.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_and_everything_is_over_in_time() {
        let (clusters, workloads) = (["member1", "member2"].map(str::to_owned), ["default/app".to_owned()]);
        let targets = Targets {
            clusters: &clusters,
            workloads: &workloads,
        };
        for timing in [Timing::LONG, Timing::SHORT] {
            let mut seen = std::collections::BTreeSet::new();
            for seed in 0..300 {
                let generated = || format!("{:?}", disruptions(seed, &DisruptionKind::all(), &targets, &timing));
                assert_eq!(generated(), generated());
                for disruption in disruptions(seed, &DisruptionKind::all(), &targets, &timing) {
                    seen.insert(disruption.kind);
                    for event in disruption.events() {
                        let at: GoDuration = serde_json::from_value(event["at"].clone()).unwrap();
                        assert!(
                            at <= GoDuration::from_secs(timing.until_s),
                            "seed {seed}: {disruption:?}"
                        );
                        if let Some(fault) = event.get("fault") {
                            let fault: FaultSpec = serde_json::from_value(fault.clone()).unwrap();
                            assert_eq!(fault.mistake(), None, "seed {seed}");
                        }
                    }
                }
            }
            assert_eq!(seen.len(), DisruptionKind::all().len(), "{seen:?}");
        }
    }
}
