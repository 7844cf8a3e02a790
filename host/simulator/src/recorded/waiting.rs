//! Waits that the records show: the gate, since when, the change that would open it, and the next check.
//!
//! A wait begins with a record such as `EvictionsWait`, and ends with another one, such as `Evicted`. A reason is
//! recorded once, so a wait is as old as the first record with its gate.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bulkhead_controllers::{IN_PROGRESS, NOT_DUE, RATE};
use bulkhead_core::journal::{Decision, DecisionId, Outcome, Record, Subject};
use bulkhead_core::policy::{EngineKind, PolicyId};
use bulkhead_core::time::Time;
use serde::Serialize;

use crate::render;

/// Interval in which the taint manager looks at an eviction again that waits without a time, in milliseconds.
const RESCAN_MS: i64 = 10_000;
/// Time after which a binding that found no cluster is tried again without a change, in milliseconds.
const UNSCHEDULABLE_MS: i64 = 300_000;

/// Step that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// An eviction, or all evictions from a cluster.
    Eviction,
    /// The failover of an unhealthy application.
    Failover,
    /// The removal of the old copy.
    Release,
    /// A placement.
    Placement,
    /// The deletion of an object in a member cluster.
    Deletion,
}

impl Step {
    /// Returns a clause that follows the object.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Eviction => "waits to leave",
            Self::Failover => "counts down to its failover",
            Self::Release => "keeps its old copy",
            Self::Placement => "has no placement",
            Self::Deletion => "waits to be deleted",
        }
    }
}

/// Record that begins, continues or ends a wait.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Process of the decision.
    pub process: &'a str,
    /// Number of the decision in its process.
    pub number: u64,
    /// Object of the decision.
    pub subject: &'a Subject,
    /// Member cluster of the decision.
    pub cluster: Option<&'a str>,
    /// Kind of the decision; [`concerns`] is true for it.
    pub decision: Decision,
    /// Reason code.
    pub gate: &'a str,
    /// State that the gate saw.
    pub message: &'a str,
    /// Policy whose answer closes the gate.
    pub policy: Option<&'a PolicyId>,
    /// Time of the record.
    pub at: Time,
    /// Time until the next check, in milliseconds, as the plan of the decision has it.
    pub again_after_ms: Option<i64>,
}

/// Decision that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// Step that waits.
    pub step: Step,
    /// Object of the decision.
    pub subject: Subject,
    /// Member cluster that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Id of the last record of the wait; absent for one without a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// Reason code of the gate that is closed.
    pub gate: String,
    /// Policy whose answer closes it, if it is no rule of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyId>,
    /// State that the gate saw.
    pub message: String,
    /// Time of the first record of the wait with this gate.
    pub since: Time,
    /// The same in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// Change that would open the gate.
    pub opens: String,
    /// Time between two checks without a change, in milliseconds; absent if only a change leads to a check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked_every_ms: Option<i64>,
    /// Time until the next check, in milliseconds, if the process that checks it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_check_ms: Option<i64>,
    /// True if a taint of the cluster was removed since: the binding may have nothing to wait for any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_have_ended: bool,
}

impl<'a> Event<'a> {
    /// Returns the event of a record; `None` if it neither begins nor ends a wait, or had no effect. `again_after_ms` is
    /// the time until the next check that the plan of its decision has.
    pub fn of(record: &'a Record, again_after_ms: Option<i64>) -> Option<Self> {
        let entry = &record.entry;
        if record.outcome == Outcome::Abandoned || !concerns(entry.decision) {
            return None;
        }
        Some(Self {
            process: &record.process,
            number: record.id,
            subject: &entry.subject,
            cluster: entry.cluster.as_deref(),
            decision: entry.decision,
            gate: &entry.attribution.reason.code,
            message: &entry.attribution.reason.message,
            policy: entry.attribution.policy.as_ref(),
            at: entry.at,
            again_after_ms,
        })
    }

    fn id(&self) -> DecisionId {
        DecisionId {
            process: self.process.to_owned(),
            number: self.number,
        }
    }
}

/// Returns the kinds of decisions that have events.
pub fn decisions() -> Vec<Decision> {
    Decision::ALL
        .into_iter()
        .filter(|decision| concerns(*decision))
        .collect()
}

/// Returns true for a kind of decisions that begins or ends waits, or may have ended one.
pub fn concerns(decision: Decision) -> bool {
    begins(decision).is_some() || !ends(decision).is_empty() || decision == Decision::Untainted
}

/// Returns the step whose wait a decision begins.
fn begins(decision: Decision) -> Option<Step> {
    match decision {
        Decision::EvictionsWait => Some(Step::Eviction),
        Decision::Tolerated => Some(Step::Failover),
        Decision::Held => Some(Step::Release),
        Decision::NotScheduled => Some(Step::Placement),
        Decision::RemovalWaits => Some(Step::Deletion),
        _ => None,
    }
}

/// Returns the steps whose waits a decision ends.
fn ends(decision: Decision) -> &'static [Step] {
    match decision {
        Decision::Evicted => &[Step::Eviction, Step::Failover],
        Decision::EvictionsResumed => &[Step::Eviction],
        Decision::Released | Decision::CalledOff => &[Step::Release],
        Decision::Scheduled => &[Step::Placement],
        Decision::Removed => &[Step::Deletion],
        Decision::Unbound => &[Step::Eviction, Step::Failover, Step::Release, Step::Placement],
        Decision::HealthChanged => &[Step::Failover],
        _ => &[],
    }
}

/// Returns what waits after these events, which are in order of time, oldest first.
pub fn waiting<'a>(events: impl IntoIterator<Item = Event<'a>>) -> Vec<Waiting> {
    let mut open = BTreeMap::<(Step, &Subject, Option<&str>), Open<'_>>::new();
    for event in events {
        let (subject, cluster) = (event.subject, event.cluster);
        let is_everywhere = matches!(event.decision, Decision::Unbound | Decision::Scheduled);
        for &step in ends(event.decision) {
            if is_everywhere {
                let of_subject = open.range((step, subject, None)..).map(|(key, _)| *key);
                let of_subject = of_subject.take_while(|(of, other, _)| *of == step && *other == subject);
                for key in of_subject.collect::<Vec<_>>() {
                    open.remove(&key);
                }
            } else {
                open.remove(&(step, subject, cluster));
            }
        }
        if event.decision == Decision::Untainted {
            let of_cluster = open
                .iter_mut()
                .filter(|((step, _, cluster), _)| *step == Step::Eviction && *cluster == Some(subject.name.as_str()));
            of_cluster.for_each(|(_, waiting)| waiting.may_have_ended = true);
        }
        let Some(step) = begins(event.decision) else { continue };
        let key = (step, subject, cluster);
        let before = open.get(&key).filter(|before| before.event.gate == event.gate);
        let since = before.map_or(event.at, |before| before.since);
        open.insert(
            key,
            Open {
                event,
                since,
                may_have_ended: false,
            },
        );
    }
    let waiting = open.into_iter().map(|((step, ..), open)| open.waiting(step));
    let mut waiting: Vec<_> = waiting.collect();
    waiting.sort_by(|a, b| (a.since, &a.subject, &a.cluster).cmp(&(b.since, &b.subject, &b.cluster)));
    waiting
}

/// Wait that no event has ended yet.
struct Open<'a> {
    /// Last event of the wait.
    event: Event<'a>,
    since: Time,
    may_have_ended: bool,
}

impl Open<'_> {
    fn waiting(&self, step: Step) -> Waiting {
        let event = &self.event;
        let checked_every_ms = match step {
            Step::Eviction => Some(event.again_after_ms.unwrap_or(RESCAN_MS)),
            Step::Failover | Step::Release => event.again_after_ms,
            Step::Placement => Some(UNSCHEDULABLE_MS),
            Step::Deletion => None,
        };
        Waiting {
            step,
            subject: event.subject.clone(),
            cluster: event.cluster.map(str::to_owned),
            decision: Some(event.id().to_string()),
            gate: event.gate.to_owned(),
            policy: event.policy.cloned(),
            message: event.message.to_owned(),
            since: self.since,
            since_ms: self.since.as_millis(),
            opens: opens(event.gate, step, event.policy),
            checked_every_ms,
            next_check_ms: None,
            may_have_ended: self.may_have_ended,
        }
    }
}

/// Returns the change that opens a gate.
pub(super) fn opens(gate: &str, step: Step, policy: Option<&PolicyId>) -> String {
    let of_plugin = policy.filter(|policy| policy.engine != EngineKind::Builtin);
    let fixed = match gate {
        NOT_DUE => "the end of the toleration, or of the pause after a failed attempt",
        RATE => "the next slot of the eviction rates",
        IN_PROGRESS => "the end of the attempt in progress",
        "EvictionPaused" => "the deletion or the end of the EvictionPause",
        "NoTargetCluster" => "another cluster that is ready, selected by the placement and tolerated",
        "WouldReturn" => "a cluster that is new to the workload, blockPredecessorSeconds, or a spread constraint",
        "LastTarget" => "the placement of the other targets",
        "ToleratedWithoutEnd" => "a placement that tolerates the taint for a limited time",
        "NoClusterFailover" => "failover.cluster in the policy",
        "EvictionOff" => "the feature gates and flags that the message names",
        "StateNotPreserved" => "a status with the fields of statePreservation",
        "TooManyClustersFailed" | "TooManyOfFewClustersFailed" => "fewer failed clusters",
        "EveryClusterLooksDead" => "a cluster that is ready",
        "ApplicationUnhealthy" => "the end of the toleration; a healthy report ends the wait",
        "Stabilizing" => "the end of the stabilization window",
        "HomeNotWell" => "a home cluster that is ready and without taints",
        "MoveUnderWay" => "the end of the other move of the workload",
        "SchedulePending" => "the scheduler's result for the newest generation",
        "SchedulingSuspended" => "the end of the suspension of scheduling",
        "SeveralStandIns" => "one stand-in in place of several",
        "NoReplacement" => "a placement on another cluster",
        "ReplacementNotHealthy" => {
            "a healthy report of every target with all its replicas, or the end of the grace period"
        }
        "ReplacementUnconfirmed" => "an answer of a target cluster, with a report about the current object",
        "DeletionSuppressed" | "UnknownPurgeMode" => "suppressDeletion: false in the eviction task",
        "NoQuorum" | "NoOpinion" => "a release by more eviction checks, or the end of the grace period",
        _ => "",
    };
    match (fixed, of_plugin, step) {
        ("", Some(plugin), _) => format!("another answer of {plugin}, or the end of the grace period"),
        ("", None, Step::Placement) => "a change of the clusters, of the placement or of the workload".to_owned(),
        ("", None, Step::Deletion) => "a cluster that is ready".to_owned(),
        ("", None, Step::Release) => "another answer of the eviction checks, or the end of the grace period".to_owned(),
        ("", None, _) => "a change of what the message names".to_owned(),
        (fixed, _, _) => fixed.to_owned(),
    }
}

impl Waiting {
    /// Formats the wait as text; `now` is the time that its age is counted to.
    pub fn text(&self, now: Time) -> String {
        let on = self.cluster.as_ref().filter(|cluster| **cluster != self.subject.name);
        let on = on.map(|cluster| format!(" on {cluster}")).unwrap_or_default();
        let mut text = format!("{}{on} {}\n", self.subject, self.step.describe());
        let policy = self
            .policy
            .as_ref()
            .map(|policy| format!(" by {policy}"))
            .unwrap_or_default();
        let _ = writeln!(text, "  gate   {}{policy}: {}", self.gate, self.message);
        let age = render::duration(now.millis_since(self.since).max(0));
        let decision = self.decision.as_ref().map(|id| format!(", decision {id}"));
        let _ = writeln!(text, "  since  {} ({age}){}", self.since, decision.unwrap_or_default());
        let _ = writeln!(text, "  opens  {}", self.opens);
        let _ = writeln!(text, "  next   {}", self.next_check());
        if self.may_have_ended {
            let cluster = self.cluster.as_deref().unwrap_or_default();
            let _ = writeln!(
                text,
                "  note   a taint of {cluster} was removed since, so the wait may have ended"
            );
        }
        text
    }

    /// Formats the state of the wait, below the decision that began it.
    pub(super) fn remains(&self) -> String {
        let mut text = format!("  still {}, since {}\n", self.step.describe(), self.since);
        let _ = writeln!(text, "    opens  {}", self.opens);
        let _ = writeln!(text, "    next   {}", self.next_check());
        text
    }

    /// Describes the next check.
    pub fn next_check(&self) -> String {
        if let Some(next_ms) = self.next_check_ms {
            return format!(
                "checked in {}, or when something it depends on changes",
                render::duration(next_ms)
            );
        }
        match self.checked_every_ms {
            Some(every_ms) => format!(
                "checked when something it depends on changes, and {} after the last check",
                render::duration(every_ms)
            ),
            None => "checked when something it depends on changes".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    /// Event of the binding default/web on m1, or of the cluster m1.
    fn event(decision: Decision, gate: &'static str, at_s: i64) -> Event<'static> {
        static SUBJECTS: LazyLock<[Subject; 2]> = LazyLock::new(|| {
            [
                Subject::new("Cluster", "", "m1"),
                Subject::new("ResourceBinding", "default", "web"),
            ]
        });
        let of_cluster = matches!(decision, Decision::Untainted | Decision::EvictionsResumed);
        let [cluster, binding] = &*SUBJECTS;
        let is_everywhere = matches!(
            decision,
            Decision::Scheduled | Decision::NotScheduled | Decision::Unbound
        );
        Event {
            process: "",
            number: at_s.unsigned_abs(),
            subject: if of_cluster { cluster } else { binding },
            cluster: (!is_everywhere).then_some("m1"),
            decision,
            gate,
            message: "message",
            policy: None,
            at: Time::from_millis(at_s * 1000),
            again_after_ms: None,
        }
    }

    fn check(events: &[(Decision, &'static str)], expected: &[(Step, &str, i64)]) {
        let recorded = (0..).zip(events);
        let recorded: Vec<_> = recorded
            .map(|(at, (decision, gate))| event(*decision, gate, at))
            .collect();
        let found = waiting(recorded);
        let found: Vec<_> = found
            .iter()
            .map(|waiting| (waiting.step, waiting.gate.as_str(), waiting.since_ms / 1000))
            .collect();
        assert_eq!(found, expected, "{events:?}");
    }

    #[test]
    fn a_wait_lasts_from_the_first_record_of_its_gate_to_the_record_that_ends_it() {
        use Decision as D;
        check(
            &[(D::EvictionsWait, "EvictionPaused")],
            &[(Step::Eviction, "EvictionPaused", 0)],
        );
        check(
            &[(D::EvictionsWait, "EvictionPaused"), (D::Evicted, "TaintUntolerated")],
            &[],
        );
        let another_gate = [
            (D::EvictionsWait, "EvictionPaused"),
            (D::EvictionsWait, "NoTargetCluster"),
        ];
        check(&another_gate, &[(Step::Eviction, "NoTargetCluster", 1)]);
        let again = [
            (D::Held, "ReplacementNotHealthy"),
            (D::Scheduled, "Success"),
            (D::Held, "ReplacementNotHealthy"),
        ];
        check(&again, &[(Step::Release, "ReplacementNotHealthy", 0)]);
        check(&[(D::Held, "NoReplacement"), (D::CalledOff, "SourceRecovered")], &[]);
        check(&[(D::NotScheduled, "NoClusterFit"), (D::Scheduled, "Success")], &[]);
        check(&[(D::RemovalWaits, "ClusterNotReady"), (D::Removed, "Gone")], &[]);
        check(
            &[(D::Tolerated, "ApplicationUnhealthy"), (D::HealthChanged, "Healthy")],
            &[],
        );
        check(
            &[
                (D::Held, "NoReplacement"),
                (D::NotScheduled, "NoClusterFit"),
                (D::Unbound, "Deleted"),
            ],
            &[],
        );
    }

    #[test]
    fn a_wait_on_a_cluster_that_loses_a_taint_may_have_ended() {
        let events = [
            event(Decision::EvictionsWait, "NoTargetCluster", 0),
            event(Decision::Untainted, "ReadyTrue", 9),
        ];
        let found = waiting(events);
        assert!(found[0].may_have_ended);
        assert!(
            found[0]
                .text(Time::from_millis(20_000))
                .contains("a taint of m1 was removed since")
        );
    }

    #[test]
    fn the_text_answers_which_gate_since_when_what_opens_it_and_when_it_is_checked() {
        let found = waiting([event(Decision::EvictionsWait, "EvictionPaused", 60)]);
        let expected = "\
ResourceBinding default/web on m1 waits to leave
  gate   EvictionPaused: message
  since  1970-01-01T00:01:00Z (4m), decision 60
  opens  the deletion or the end of the EvictionPause
  next   checked when something it depends on changes, and 10s after the last check
";
        assert_eq!(found[0].text(Time::from_millis(300_000)), expected);
    }

    #[test]
    fn every_documented_reason_of_a_wait_has_a_change_that_opens_it() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/reference/reasons.md");
        let page = std::fs::read_to_string(page).unwrap();
        let section = page.split("## Evictions that wait\n").nth(1).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let reasons = rows.flat_map(|row| row.split(" | ").next().unwrap().split('`').skip(1).step_by(2));
        let reasons: Vec<_> = reasons.collect();
        assert!(reasons.len() > 12, "{reasons:?}");
        for reason in reasons {
            let opens = opens(reason, Step::Eviction, None);
            assert_ne!(opens, "a change of what the message names", "{reason}");
        }
    }
}
