//! Comparison of the decisions in a journal of mode `report` with the state of the control plane: actions of Karmada,
//! and those that Bulkhead would have taken in its place.
//!
//! Evictions by Karmada are known from the tasks in the bindings that decisions read, and from the tasks that are
//! there now. A task that a decision read and that is gone was ended by Karmada, because mode `report` writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use bulkhead_core::journal::{Decision, DecisionId, Outcome, Record, Subject};
use bulkhead_core::time::Time;
use bulkhead_journal::Stored;
use serde::Serialize;

/// State of the control plane.
#[derive(Clone, Debug, Default)]
pub struct Present {
    /// Bindings of both kinds.
    pub bindings: BTreeMap<Subject, PresentBinding>,
    /// Taints of each cluster, as `key=value:effect`.
    pub taints: BTreeMap<String, BTreeSet<String>>,
}

/// State of a binding, by names of clusters.
#[derive(Clone, Debug, Default)]
pub struct PresentBinding {
    /// Target clusters.
    pub targets: BTreeSet<String>,
    /// Clusters of eviction tasks.
    pub tasks: BTreeSet<String>,
    /// Clusters with a Work that is not being deleted.
    pub works: BTreeSet<String>,
}

/// Result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Copies whose task Karmada ended, and that Bulkhead would still keep.
    pub deleted_by_karmada: Vec<Difference>,
    /// Copies whose task Karmada keeps, and that Bulkhead would have released.
    pub kept_by_karmada: Vec<Difference>,
    /// Evictions that only Karmada began.
    pub evicted_by_karmada: Vec<Difference>,
    /// Evictions that only Bulkhead would have begun.
    pub evicted_by_bulkhead: Vec<Difference>,
    /// Taints that are there or missing against the last decision of Bulkhead.
    pub taints: Vec<TaintDifference>,
    /// Numbers of equal actions.
    pub alike: Alike,
    /// Number of decisions that were compared.
    pub decisions: usize,
    /// Time of the first decision.
    pub first: Option<Time>,
    /// Time of the last decision.
    pub last: Option<Time>,
}

impl Comparison {
    /// Returns true if nothing differs.
    pub fn is_equal(&self) -> bool {
        let lists = [
            &self.deleted_by_karmada,
            &self.kept_by_karmada,
            &self.evicted_by_karmada,
            &self.evicted_by_bulkhead,
        ];
        lists.iter().all(|list| list.is_empty()) && self.taints.is_empty()
    }
}

/// Numbers of equal actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Alike {
    /// Evictions that both began.
    pub evicted: usize,
    /// Tasks that Karmada ended and Bulkhead released or called off.
    pub ended: usize,
    /// Tasks that both keep.
    pub held: usize,
}

/// Difference about one copy of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// Binding, as `namespace/name` or `name`.
    pub binding: String,
    /// Cluster of the copy.
    pub cluster: String,
    /// Reason of Bulkhead, as its code.
    pub reason: String,
    /// Reason of Bulkhead, as a sentence.
    pub why: String,
    /// Time of Bulkhead's decision; absent if it made none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Id of Bulkhead's decision, for `bulkhead explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// True if the Work of the copy still exists, for example because its cluster does not respond.
    pub work_exists: bool,
}

/// Difference about one taint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaintDifference {
    /// Name of the cluster.
    pub cluster: String,
    /// Taint, as `key=value:effect`.
    pub taint: String,
    /// True if the cluster has it and Bulkhead would have removed it; false if Bulkhead would have added it.
    pub exists: bool,
    /// Reason of Bulkhead.
    pub why: String,
    /// Id of Bulkhead's decision.
    pub decision: String,
}

/// Decision of Bulkhead.
#[derive(Clone)]
struct Own {
    decision: Decision,
    at: Time,
    id: DecisionId,
    code: String,
    message: String,
}

impl Own {
    fn of(record: &Record) -> Self {
        let reason = &record.entry.attribution.reason;
        Self {
            decision: record.entry.decision,
            at: record.entry.at,
            id: record.decision_id(),
            code: reason.code.clone(),
            message: reason.message.clone(),
        }
    }

    /// Takes the place of an earlier decision. Of two at the same time, the second record is the later one.
    fn replace(self, known: &mut Option<Self>) {
        if known.as_ref().is_none_or(|known| known.at <= self.at) {
            *known = Some(self);
        }
    }
}

/// Decisions about the eviction of a binding from one cluster.
#[derive(Default)]
struct Passage {
    /// First decision to evict.
    evicted: Option<Own>,
    /// Last reason to leave the binding where it is.
    waits: Option<Own>,
    /// Last decision about the task.
    task: Option<Own>,
    /// True if a decision read a task, which Karmada had made.
    has_task: bool,
}

/// Collector of the decisions of one or more journals.
#[derive(Default)]
pub struct Comparer {
    passages: BTreeMap<(Subject, String), Passage>,
    /// Last decision about each taint, by cluster and taint.
    taints: BTreeMap<(String, String), Option<Own>>,
    decisions: usize,
    first: Option<Time>,
    last: Option<Time>,
}

impl Comparer {
    /// Adds a record. The records of each journal arrive in its order.
    pub fn add(&mut self, stored: &Stored) {
        if let Some(binding) = stored.decision.as_ref().and_then(|kept| kept.decision.binding()) {
            for task in &binding.spec.graceful_eviction_tasks {
                let subject = &stored.record.entry.subject;
                self.passage(subject, task.from_cluster.clone()).has_task = true;
            }
        }
        self.add_record(&stored.record);
    }

    fn passage(&mut self, subject: &Subject, cluster: String) -> &mut Passage {
        self.passages.entry((subject.clone(), cluster)).or_default()
    }

    fn add_record(&mut self, record: &Record) {
        let entry = &record.entry;
        let Some(cluster) = entry.cluster.clone().filter(|_| record.outcome == Outcome::Taken) else {
            return;
        };
        let own = Own::of(record);
        match entry.decision {
            Decision::Tainted | Decision::Untainted => {
                own.replace(self.taints.entry((cluster, entry.effect.clone())).or_default());
            }
            Decision::Evicted => {
                let evicted = &mut self.passage(&entry.subject, cluster).evicted;
                if evicted.as_ref().is_none_or(|known| own.at < known.at) {
                    *evicted = Some(own);
                }
            }
            Decision::EvictionsWait if entry.subject.kind != "Cluster" => {
                own.replace(&mut self.passage(&entry.subject, cluster).waits);
            }
            // A task exists only if Karmada made it.
            Decision::Held | Decision::Released | Decision::CalledOff => {
                let passage = self.passage(&entry.subject, cluster);
                passage.has_task = true;
                own.replace(&mut passage.task);
            }
            _ => return,
        }
        self.decisions += 1;
        self.first = self.first.into_iter().chain([entry.at]).min();
        self.last = self.last.max(Some(entry.at));
    }

    /// Compares the decisions with the control plane. Bindings that are gone are left out.
    pub fn compare(mut self, present: &Present) -> Comparison {
        let mut comparison = Comparison {
            decisions: self.decisions,
            first: self.first,
            last: self.last,
            ..Comparison::default()
        };
        for (subject, binding) in &present.bindings {
            for cluster in &binding.tasks {
                self.passage(subject, cluster.clone());
            }
        }
        for ((subject, cluster), passage) in &self.passages {
            if let Some(binding) = present.bindings.get(subject) {
                judge(subject, cluster, passage, binding, &mut comparison);
            }
        }
        for ((cluster, taint), own) in self.taints {
            let (Some(taints), Some(own)) = (present.taints.get(&cluster), own) else {
                continue;
            };
            let exists = taints.contains(&taint);
            if exists != (own.decision == Decision::Tainted) {
                comparison.taints.push(TaintDifference {
                    cluster,
                    taint,
                    exists,
                    why: own.message,
                    decision: own.id.to_string(),
                });
            }
        }
        comparison
    }
}

/// Compares the passage of one binding from one cluster.
fn judge(subject: &Subject, cluster: &str, passage: &Passage, binding: &PresentBinding, comparison: &mut Comparison) {
    let has_task = binding.tasks.contains(cluster);
    let is_target = binding.targets.contains(cluster);
    let by_karmada = passage.has_task || has_task;
    let not_decided = "no decision to evict; its turn had not come, or it was evicted before the journal begins";
    let difference = |own: Option<&Own>| Difference {
        binding: subject.key(),
        cluster: cluster.to_owned(),
        reason: own.map_or("NotDecided", |own| &own.code).to_owned(),
        why: own.map_or(not_decided, |own| &own.message).to_owned(),
        at: own.map(|own| own.at),
        decision: own.map(|own| own.id.to_string()),
        work_exists: binding.works.contains(cluster),
    };
    match (by_karmada, &passage.evicted) {
        (true, Some(_)) => comparison.alike.evicted += 1,
        (true, None) => comparison.evicted_by_karmada.push(difference(passage.waits.as_ref())),
        (false, Some(own)) if is_target => comparison.evicted_by_bulkhead.push(difference(Some(own))),
        (false, _) => return,
    }
    let task = passage.task.as_ref();
    match (task.map(|own| own.decision), has_task) {
        // The cluster is a target again: the copy was not deleted.
        (_, false) if is_target => comparison.alike.ended += usize::from(by_karmada),
        (Some(Decision::Held | Decision::CalledOff), false) => comparison.deleted_by_karmada.push(difference(task)),
        (Some(Decision::Held), true) => comparison.alike.held += 1,
        (Some(_), true) => comparison.kept_by_karmada.push(difference(task)),
        (Some(_), false) => comparison.alike.ended += 1,
        // The journal has no decision about the task.
        (None, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::combine::Attribution;
    use bulkhead_core::journal::Entry;

    use super::*;

    fn subject(name: &str) -> Subject {
        Subject::new("ResourceBinding", "default", name)
    }

    /// Returns a record of a decision about the copy of a binding on `m1`.
    fn record(id: u64, name: &str, decision: Decision, code: &'static str) -> Record {
        Record {
            id,
            process: String::new(),
            outcome: Outcome::Taken,
            entry: Entry {
                at: Time::from_millis(i64::try_from(id).unwrap() * 1000),
                controller: "c".to_owned(),
                subject: subject(name),
                cluster: Some("m1".to_owned()),
                decision,
                attribution: Attribution::rule(code, format!("message of {code}")),
                effect: String::new(),
                inputs: Vec::new(),
                explanation: None,
            },
        }
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    /// Compares decisions about one binding with its targets, tasks and Works.
    fn compare(decisions: &[(Decision, &'static str)], targets: &[&str], tasks: &[&str], works: &[&str]) -> Comparison {
        let mut comparer = Comparer::default();
        for (id, &(decision, code)) in (1..).zip(decisions) {
            comparer.add_record(&record(id, "web", decision, code));
        }
        let binding = PresentBinding {
            targets: names(targets),
            tasks: names(tasks),
            works: names(works),
        };
        let bindings = BTreeMap::from([(subject("web"), binding)]);
        comparer.compare(&Present {
            bindings,
            taints: BTreeMap::new(),
        })
    }

    #[test]
    fn a_copy_that_karmada_deleted_and_bulkhead_holds_has_the_reason_of_the_last_hold() {
        let evicted = (Decision::Evicted, "TaintUntolerated");
        let decisions = [
            evicted,
            (Decision::Held, "NotHealthy"),
            (Decision::Held, "ReplicasMissing"),
        ];
        let found = compare(&decisions, &["m2"], &[], &["m1"]);
        let [deleted] = found.deleted_by_karmada.as_slice() else {
            panic!("{found:#?}");
        };
        assert_eq!(
            (
                deleted.binding.as_str(),
                deleted.cluster.as_str(),
                deleted.reason.as_str()
            ),
            ("default/web", "m1", "ReplicasMissing")
        );
        assert_eq!(deleted.why, "message of ReplicasMissing");
        assert_eq!((deleted.at, deleted.work_exists), (Some(Time::from_millis(3000)), true));
        assert_eq!(
            found.alike,
            Alike {
                evicted: 1,
                ended: 0,
                held: 0
            }
        );
        assert!(!found.is_equal());
    }

    /// The journal of a second process, which is read first, has the end of the first journal's hold.
    #[test]
    fn journals_are_compared_by_time_in_any_order_of_their_folders() {
        let first = [
            record(1, "web", Decision::Evicted, "TaintUntolerated"),
            record(2, "web", Decision::Held, "NotHealthy"),
        ];
        let second = [record(3, "web", Decision::Released, "Healthy")];
        let binding = PresentBinding {
            targets: names(&["m2"]),
            ..PresentBinding::default()
        };
        let present = Present {
            bindings: BTreeMap::from([(subject("web"), binding)]),
            taints: BTreeMap::new(),
        };
        let compared = |journals: [&[Record]; 2]| {
            let mut comparer = Comparer::default();
            journals
                .into_iter()
                .flatten()
                .for_each(|record| comparer.add_record(record));
            comparer.compare(&present)
        };
        let found = compared([&second, &first]);
        assert!(found.is_equal() && found.alike.ended == 1, "{found:#?}");
        let times = [1000, 3000].map(|at| Some(Time::from_millis(at)));
        assert_eq!([found.first, found.last], times);
        assert_eq!(found, compared([&first, &second]));
    }

    #[test]
    fn ends_that_both_decided_are_alike() {
        let evicted = (Decision::Evicted, "TaintUntolerated");
        let released = [evicted, (Decision::Held, "NotHealthy"), (Decision::Released, "Healthy")];
        let found = compare(&released, &["m2"], &[], &[]);
        assert!(found.is_equal(), "{found:#?}");
        assert_eq!(
            found.alike,
            Alike {
                evicted: 1,
                ended: 1,
                held: 0
            }
        );
        let called_off = [evicted, (Decision::CalledOff, "ClusterReady")];
        let back = compare(&called_off, &["m1"], &[], &["m1"]);
        assert!(back.is_equal() && back.alike.ended == 1, "{back:#?}");
        let lost = compare(&called_off, &["m2"], &[], &[]);
        assert_eq!(lost.deleted_by_karmada.len(), 1, "Bulkhead would have kept the copy");
        let both_hold = compare(&[evicted, (Decision::Held, "NotHealthy")], &["m2"], &["m1"], &["m1"]);
        assert!(both_hold.is_equal() && both_hold.alike.held == 1, "{both_hold:#?}");
        let karmada_holds = compare(&released, &["m2"], &["m1"], &["m1"]);
        assert_eq!(karmada_holds.kept_by_karmada.len(), 1);
    }

    #[test]
    fn evictions_of_one_side_have_the_reason_of_bulkhead() {
        let paused = compare(&[(Decision::EvictionsWait, "EvictionPaused")], &["m2"], &["m1"], &[]);
        assert_eq!(paused.evicted_by_karmada[0].reason, "EvictionPaused");
        let early = compare(&[], &["m2"], &["m1"], &[]);
        assert_eq!(early.evicted_by_karmada[0].reason, "NotDecided");
        assert_eq!(early.evicted_by_karmada[0].decision, None);
        let ours = compare(&[(Decision::Evicted, "TaintUntolerated")], &["m1"], &[], &["m1"]);
        assert_eq!(ours.evicted_by_bulkhead[0].reason, "TaintUntolerated");
        let stays = compare(&[(Decision::EvictionsWait, "NoTarget")], &["m1"], &[], &["m1"]);
        assert!(stays.is_equal(), "{stays:#?}");
    }

    #[test]
    fn abandoned_decisions_and_bindings_that_are_gone_do_not_count() {
        let mut comparer = Comparer::default();
        let abandoned = Record {
            outcome: Outcome::Abandoned,
            ..record(1, "web", Decision::Evicted, "TaintUntolerated")
        };
        comparer.add_record(&abandoned);
        comparer.add_record(&record(2, "gone", Decision::Held, "NotHealthy"));
        let binding = PresentBinding {
            targets: names(&["m1"]),
            ..PresentBinding::default()
        };
        let found = comparer.compare(&Present {
            bindings: BTreeMap::from([(subject("web"), binding)]),
            taints: BTreeMap::new(),
        });
        assert!(found.is_equal(), "{found:#?}");
        assert_eq!(found.decisions, 1);
    }

    #[test]
    fn a_taint_differs_from_the_last_decision_about_it() {
        let taint = |id, decision| {
            let mut record = record(id, "", decision, "RemoveOnConditions");
            record.entry.subject = Subject::new("Cluster", "", "m1");
            "not-ready:NoExecute".clone_into(&mut record.entry.effect);
            record
        };
        let compared = |decisions: &[Decision], taints: &[&str]| {
            let mut comparer = Comparer::default();
            for (id, decision) in (1..).zip(decisions) {
                comparer.add_record(&taint(id, *decision));
            }
            let found = comparer.compare(&Present {
                bindings: BTreeMap::new(),
                taints: BTreeMap::from([("m1".to_owned(), names(taints))]),
            });
            found.taints.into_iter().map(|taint| taint.exists).collect::<Vec<_>>()
        };
        let both = [Decision::Tainted, Decision::Untainted];
        assert_eq!(compared(&both, &["not-ready:NoExecute"]), [true]);
        assert_eq!(compared(&both, &[]), [false; 0]);
        assert_eq!(compared(&both[..1], &[]), [false]);
    }
}
