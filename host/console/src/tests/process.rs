//! Pages with the state of a process: queue, cost of calls, rehearsals.

use std::collections::BTreeMap;
use std::time::Duration;

use bulkhead_controllers::{QueuedEviction, RATE};
use bulkhead_core::call::CallKind;
use bulkhead_core::composition::Mode;
use bulkhead_core::journal::DecisionId;
use bulkhead_core::policy::{EngineKind, PolicyId, Usage};
use bulkhead_journal::{DecisionOutline, News};
use bulkhead_plugin::{BreakerState, CallCounts, Durations, KindReport, Layer, PluginReport};
use bulkhead_simulator::what_if::{Answer, Load, Move};

use super::*;
use crate::rehearsal::Rehearsed;
use crate::source::Place;

#[test]
fn the_cost_of_calls_is_that_of_the_running_process() {
    let usage = Usage {
        steps: 900,
        memory_bytes_max: 70_000,
    };
    let counts = CallCounts {
        calls: 3,
        faults: 1,
        ..Default::default()
    };
    let mut durations = Durations::default();
    durations.buckets[0] = 3;
    durations.sum = Duration::from_micros(60);
    let report = PluginReport {
        id: PolicyId {
            name: HOSTILE.to_owned(),
            version: "1".to_owned(),
            engine: EngineKind::Lua,
        },
        layer: Layer::Plugins,
        mode: Mode::Enforce,
        breaker: BreakerState::Open,
        counts,
        kinds: vec![KindReport {
            kind: CallKind::EvictionCheck,
            counts,
            durations,
            usage,
        }],
    };
    let console = Console::new(Costs(Journals::new(vec![EXAMPLE.path().to_path_buf()]), report), || {
        Time::from_millis(0)
    });
    let (page, _) = page(&console, "/plugins");
    for fact in [
        "(lua)",
        "eviction-check",
        "20 µs",
        "<td>300</td>",
        "68 KiB",
        "in quarantine",
    ] {
        assert!(page.contains(fact), "{fact}: {page}");
    }
    assert!(!page.contains("<script>"), "{page}");
    // The queue of the process is on the map, but not in the past.
    let (now, past) = (get(&console, "/").1, get(&console, "/?position=1").1);
    assert!(
        now.contains("default/tolerating") && now.contains("no free slot") && !past.contains("tolerating"),
        "{now}"
    );
}

/// Rehearsal that moves one workload off the first cluster, and knows no cluster `gone`.
struct OneMove;

impl Rehearsal for OneMove {
    fn play(&self, loss: &Loss) -> anyhow::Result<Rehearsed> {
        anyhow::ensure!(loss.down != ["gone"], "there is no cluster gone");
        let load = |cluster: &str, down, before, after| Load {
            cluster: cluster.to_owned(),
            down,
            before,
            after,
        };
        let moved = Move {
            at_ms: 90_000,
            binding: HOSTILE.to_owned(),
            from: loss.down[0].clone(),
            leaving: 3,
            to: [("member2".to_owned(), 3)].into(),
            shrunk: BTreeMap::new(),
            reason: format!("rate {:?}", loss.rate),
        };
        let answer = Answer {
            moves: vec![moved],
            load: vec![load("member1", true, 3, 0), load("member2", false, 1, 4)],
            last_move_ms: Some(90_000),
            ..Answer::default()
        };
        Ok(Rehearsed {
            answer,
            notes: vec![format!("a note about {HOSTILE}")],
            objects: "2 clusters".to_owned(),
        })
    }
}

#[test]
fn a_loss_is_rehearsed_and_drawn_before_and_after() {
    let without = example();
    assert!(
        page(&without, "/what-if?down=member1")
            .0
            .contains("has no objects to rehearse with")
    );
    let console = example().with_rehearsal(OneMove);
    let (form, _) = page(&console, "/what-if");
    assert!(
        form.contains("<option value=\"member5\">") && !form.contains("Replicas of each cluster"),
        "{form}"
    );
    let (answer, elements) = page(&console, "/what-if?down=member1&rate=0.5&for=30m");
    for fact in [
        "What if member1 were lost?",
        "replicas of member1: 3 before, 0 after",
        "rate Some(0.5)",
        "2 clusters",
    ] {
        assert!(answer.contains(fact), "{fact}: {answer}");
    }
    assert_eq!(
        elements
            .iter()
            .filter(|element| element.get("role") == Some("img"))
            .count(),
        2
    );
    assert!(!answer.contains("<script>") && !answer.contains(" style="), "{answer}");
    let (failed, _) = page(&console, "/what-if?down=gone");
    assert!(failed.contains("there is no cluster gone"), "{failed}");
    let (status, wrong) = get(&console, "/what-if?down=m1&rate=fast");
    assert_eq!(status, 400, "{wrong}");
    assert!(links(&page(&console, "/").1, "/what-if?down=member1").len() == 1);
}

/// Journals of a process with one plugin.
struct Costs(Journals, PluginReport);

impl Source for Costs {
    fn name(&self) -> String {
        self.0.name()
    }

    fn read_new(&self, take: &mut dyn FnMut(Option<Place>, News<DecisionOutline>)) -> anyhow::Result<Vec<String>> {
        self.0.read_new(take)
    }

    fn find(&self, about: &str, wanted: &[(DecisionId, Option<Place>)]) -> anyhow::Result<Vec<Stored>> {
        self.0.find(about, wanted)
    }

    fn queued(&self) -> Option<Vec<QueuedEviction>> {
        let queued = QueuedEviction {
            kind: "ResourceBinding".to_owned(),
            namespace: "default".to_owned(),
            name: "tolerating".to_owned(),
            cluster: "member1".to_owned(),
            is_failback: false,
            gate: RATE.to_owned(),
            waited_ms: 60_000,
            next_check_ms: Some(1_000),
        };
        Some(vec![queued])
    }

    fn costs(&self) -> Option<Vec<PluginReport>> {
        Some(vec![self.1.clone()])
    }
}
