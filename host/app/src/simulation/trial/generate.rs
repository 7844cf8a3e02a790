//! From a seed to what goes wrong when.

use std::time::Duration;

use bulkhead_controllers::flags::GoDuration;
use bulkhead_controlplane::SplitMix64;

use super::{Sort, Trouble};
use crate::scenario::faults::{FaultKind, FaultSpec, RESOURCES};
use crate::scenario::{ClusterState, EventAction, LoadedEvent};

/// Fewest and most troubles of a seed.
const TROUBLES: (u64, u64) = (2, 9);
/// When the first thing may go wrong, in seconds: everything has been placed by then.
const FROM_S: u64 = 30;

/// Numbers that depend on the seed and nothing else.
struct Dice(SplitMix64);

impl Dice {
    /// A number from `low` to `high`, both included.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }

    fn one_of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(items.len()).ok().filter(|count| *count > 0)?;
        items.get(usize::try_from(self.0.next_u64() % count).unwrap_or(0))
    }

    /// A moment or a length, to the tenth of a second.
    fn seconds(&mut self, low_s: u64, high_s: u64) -> GoDuration {
        GoDuration(Duration::from_millis(self.between(low_s * 10, high_s * 10) * 100))
    }
}

/// What goes wrong with a seed, in order of time; all of it is over by `until`.
pub(super) fn troubles(seed: u64, sorts: &[Sort], clusters: &[String], until: GoDuration) -> Vec<Trouble> {
    // The emulators draw from the seed itself.
    let mut dice = Dice(SplitMix64::new(seed ^ 0x005e_ed0f_fa17));
    let count = dice.between(TROUBLES.0, TROUBLES.1);
    let mut troubles: Vec<_> = (0..count).filter_map(|_| trouble(&mut dice, sorts, clusters, until)).collect();
    troubles.sort_by_key(|trouble| trouble.events.first().map(|event| event.at));
    troubles
}

fn trouble(dice: &mut Dice, sorts: &[Sort], clusters: &[String], until: GoDuration) -> Option<Trouble> {
    let sort = *dice.one_of(sorts)?;
    let at = dice.seconds(FROM_S, until.0.as_secs().saturating_sub(200).max(FROM_S + 1));
    let events = match sort {
        Sort::ClusterLoss => vec![state(dice, clusters, at, ClusterState::Unreachable)?],
        Sort::ClusterUnready => vec![state(dice, clusters, at, ClusterState::ReadyzFailing)?],
        Sort::Flap => return flap(dice, clusters, at),
        Sort::Fault(kind) => vec![LoadedEvent { at, action: EventAction::Fault(fault(dice, kind)) }],
    };
    let mut trouble = Trouble { sort, events };
    if let Some(EventAction::ClusterState(cluster, _)) = trouble.events.first().map(|event| event.action.clone()) {
        let back = GoDuration(at.0 + dice.seconds(5, 180).0);
        trouble
            .events
            .push(LoadedEvent { at: back, action: EventAction::ClusterState(cluster, ClusterState::Recover) });
    }
    Some(trouble)
}

fn state(dice: &mut Dice, clusters: &[String], at: GoDuration, state: ClusterState) -> Option<LoadedEvent> {
    Some(LoadedEvent { at, action: EventAction::ClusterState(dice.one_of(clusters)?.clone(), state) })
}

/// Down and up a few times.
fn flap(dice: &mut Dice, clusters: &[String], at: GoDuration) -> Option<Trouble> {
    let (cluster, mut moment, mut events) = (dice.one_of(clusters)?.clone(), at, Vec::new());
    for _ in 0..dice.between(2, 4) {
        for state in [ClusterState::Unreachable, ClusterState::Recover] {
            events.push(LoadedEvent { at: moment, action: EventAction::ClusterState(cluster.clone(), state) });
            moment = GoDuration(moment.0 + dice.seconds(2, 45).0);
        }
    }
    Some(Trouble { sort: Sort::Flap, events })
}

fn fault(dice: &mut Dice, kind: FaultKind) -> FaultSpec {
    let codes = [409, 410, 429, 500, 504];
    let narrow = kind.has_resource() && dice.between(0, 2) > 0;
    FaultSpec {
        kind,
        resource: if narrow { dice.one_of(&RESOURCES).map(|resource| (*resource).to_owned()) } else { None },
        code: if kind == FaultKind::Respond { dice.one_of(&codes).copied() } else { None },
        for_: kind.lasts().then(|| dice.seconds(1, 40)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_and_everything_is_over_in_time() {
        let clusters = ["member1", "member2"].map(str::to_owned);
        let until = GoDuration::from_secs(360);
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let told = || format!("{:?}", troubles(seed, &Sort::all(), &clusters, until));
            assert_eq!(told(), told());
            for trouble in troubles(seed, &Sort::all(), &clusters, until) {
                seen.insert(trouble.sort);
                assert!(
                    trouble.events.iter().all(|event| event.at < GoDuration::from_secs(560)),
                    "seed {seed}: {trouble:?}"
                );
                let mut faults = trouble.events.iter().filter_map(|event| match &event.action {
                    EventAction::Fault(fault) => Some(fault),
                    _ => None,
                });
                assert_eq!(faults.find_map(FaultSpec::mistake), None, "seed {seed}");
            }
        }
        assert_eq!(seen.len(), Sort::all().len(), "{seen:?}");
    }
}
