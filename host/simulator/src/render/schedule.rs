//! Rendering of a scheduling explanation as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::schedule::{
    AttemptExplanation, CandidateExplanation, DivisionExplanation, Mode, Packing, RegionChoice, ScheduleExplanation,
    SelectionRule, Strategy,
};
use bulkhead_core::model::TargetCluster;

use crate::table::Table;

/// Indentation of every line, in spaces.
const INDENT: usize = 13;

/// Renders the explanation, one block for each affinity group that was tried.
pub fn schedule(explanation: &ScheduleExplanation) -> String {
    let mut out = String::new();
    for attempt in &explanation.attempts {
        let group = attempt
            .affinity_name
            .as_ref()
            .map_or_else(|| "tried".to_owned(), |name| format!("group {name}"));
        let outcome = match (&attempt.targets, &attempt.error) {
            (Some(targets), _) => TargetCluster::list(targets),
            (None, error) => error.clone().unwrap_or_default(),
        };
        line(&mut out, 0, &format!("{group}: {outcome}"));
        rejected(&mut out, attempt);
        candidates(&mut out, attempt);
        regions(&mut out, &attempt.regions);
        if let Some(rule) = attempt.selection {
            line(&mut out, 2, &format!("selected: {}", selection(rule)));
        }
        if let Some(division) = &attempt.division {
            line(&mut out, 2, &format!("divided: {}", describe(division)));
        }
    }
    out
}

fn line(out: &mut String, depth: usize, text: &str) {
    let _ = writeln!(out, "{:width$}{}", "", text.trim_end(), width = INDENT + depth);
}

/// Writes one line for each policy and reason.
fn rejected(out: &mut String, attempt: &AttemptExplanation) {
    let mut clusters: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
    for (cluster, Attribution { policy, reason }) in &attempt.rejected {
        let policy = policy
            .as_ref()
            .map_or_else(|| "scheduler".to_owned(), ToString::to_string);
        clusters.entry((policy, &reason.message)).or_default().push(cluster);
    }
    for ((policy, reason), clusters) in clusters {
        line(
            out,
            2,
            &format!("does not fit: {}: {reason} — {policy}", clusters.join(", ")),
        );
    }
    if !attempt.terminating.is_empty() {
        line(out, 2, &format!("being removed: {}", attempt.terminating.join(", ")));
    }
}

/// Writes the candidates as a table, best first. Columns without values are omitted.
fn candidates(out: &mut String, attempt: &AttemptExplanation) {
    if attempt.candidates.is_empty() {
        return;
    }
    let all = &attempt.candidates;
    let mut columns = vec![
        column("fits", all, |candidate| candidate.cluster.clone()),
        column("score", all, |candidate| candidate.score.to_string()),
        column("from", all, from),
    ];
    let number = |value: Option<i64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    let optional: [(&str, &Number); 5] = [
        ("overflow", &|candidate| {
            (candidate.overflow > 0).then_some(i64::from(candidate.overflow))
        }),
        ("reported room", &|candidate| candidate.general_estimate.map(i64::from)),
        ("accurate room", &|candidate| candidate.accurate_estimate.map(i64::from)),
        ("runs", &|candidate| {
            Some(candidate.available - i64::from(candidate.allocatable)).filter(|runs| *runs != 0)
        }),
        ("weight", &|candidate| candidate.weight),
    ];
    for (title, value) in optional {
        if all.iter().any(|candidate| value(candidate).is_some()) {
            columns.push(column(title, all, |candidate| number(value(candidate))));
        }
    }
    columns.push(column("selected", all, |candidate| {
        if candidate.selected { "yes" } else { "no" }.to_owned()
    }));
    if let Some(targets) = &attempt.targets {
        let gets = |candidate: &CandidateExplanation| {
            let target = targets.iter().find(|target| target.name == candidate.cluster);
            number(target.map(|target| i64::from(target.replicas)))
        };
        columns.push(column("gets", all, gets));
    }
    table(out, &columns);
}

/// Formats the scores by policy, for example `ClusterLocality 100, cheapest 40`.
fn from(candidate: &CandidateExplanation) -> String {
    let given = candidate.scores.iter().filter(|(_, score)| **score != 0);
    let given: Vec<_> = given.map(|(policy, score)| format!("{policy} {score}")).collect();
    if given.is_empty() {
        "-".to_owned()
    } else {
        given.join(", ")
    }
}

fn regions(out: &mut String, regions: &[RegionChoice]) {
    if regions.is_empty() {
        return;
    }
    let columns = [
        column("region", regions, |region| region.name.clone()),
        column("clusters", regions, |region| region.clusters.to_string()),
        column("score", regions, |region| region.score.to_string()),
        column("chosen", regions, |region| {
            if region.chosen { "yes" } else { "no" }.to_owned()
        }),
    ];
    table(out, &columns);
}

/// Optional number of a candidate.
type Number = dyn Fn(&CandidateExplanation) -> Option<i64>;

/// Builds a column: a title and a cell for each row.
fn column<T>(title: &str, rows: &[T], cell: impl Fn(&T) -> String) -> Vec<String> {
    std::iter::once(title.to_owned()).chain(rows.iter().map(cell)).collect()
}

fn table(out: &mut String, columns: &[Vec<String>]) {
    let mut table = Table::new(2, &[]);
    for row in 0..columns.first().map_or(0, Vec::len) {
        table.row(columns.iter().filter_map(|cells| cells.get(row)));
    }
    for row in table.lines() {
        line(out, 2, &row);
    }
}

fn selection(rule: SelectionRule) -> String {
    match rule {
        SelectionRule::Everything => "every cluster that fits".to_owned(),
        SelectionRule::ByCluster { min, max } => {
            format!("{min} to {max} clusters, the first ones, or larger ones where the replicas need the room")
        }
        SelectionRule::ByRegion {
            regions_min,
            regions_max,
            clusters_min,
            clusters_max,
        } => format!(
            "{regions_min} to {regions_max} regions with {clusters_min} to {clusters_max} clusters, those with the \
             highest scores; one cluster of each, then the best of the others"
        ),
    }
}

fn describe(division: &DivisionExplanation) -> String {
    let DivisionExplanation {
        strategy,
        mode,
        replicas,
        assigned,
    } = *division;
    let by = match strategy {
        Strategy::Whole => return "the workload has no replicas to divide, and runs on each unchanged".to_owned(),
        Strategy::Duplicated => return format!("{replicas} replicas on each, regardless of room"),
        Strategy::StaticWeight => return format!("{replicas} replicas by fixed weight, regardless of room"),
        Strategy::Dynamic(Packing::Spread) => "in proportion to the available room",
        Strategy::Dynamic(Packing::Aggregated) => {
            "onto the fewest clusters with enough room, those in use first, in proportion to it"
        }
    };
    match mode {
        Mode::Fresh => format!("{replicas} replicas from scratch, as requested, {by}"),
        Mode::Steady if assigned == replicas => format!("all {replicas} replicas stay where they run"),
        Mode::Steady if assigned > replicas => {
            format!("down from {assigned} to {replicas} replicas, in proportion to what runs")
        }
        Mode::Steady if assigned == 0 => format!("{replicas} replicas {by}"),
        Mode::Steady => {
            let missing = i64::from(replicas) - i64::from(assigned);
            format!("{assigned} of {replicas} replicas stay where they run; {missing} more {by}")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(explanation: Value, expected: &str) {
        let explanation: ScheduleExplanation = serde_json::from_value(explanation).unwrap();
        let rendered = schedule(&explanation);
        let rendered: Vec<_> = rendered
            .lines()
            .map(|line| line.get(INDENT..).unwrap_or_default())
            .collect();
        assert_eq!(rendered.join("\n"), expected.trim());
    }

    fn builtin(name: &str) -> Value {
        json!({"name": name, "version": "1", "engine": "builtin"})
    }

    fn rejected(policy: &str, message: &str) -> Value {
        json!({"policy": builtin(policy), "reason": {"code": "C", "message": message}})
    }

    #[test]
    fn affinity_groups_are_listed_in_the_order_of_attempts() {
        let one = rejected("TaintToleration", "cluster(s) had untolerated taint {k:NoExecute}");
        let other = rejected("ClusterAffinity", "cluster(s) did not match");
        let candidate = json!({
            "cluster": "cloud1", "scores": {"ClusterLocality": 0}, "score": 0, "generalEstimate": 220,
            "allocatable": 220, "available": 220, "selected": true,
        });
        let division = json!({"strategy": "duplicated", "mode": "steady", "replicas": 2, "assigned": 0});
        check(
            json!({"attempts": [
                {
                    "affinityName": "on-premises", "error": "0/4 clusters are available: …",
                    "rejected": {"cloud1": other, "rack1": one, "rack2": one}, "terminating": ["rack3"],
                },
                {
                    "affinityName": "cloud", "rejected": {"rack1": other, "rack2": other},
                    "candidates": [candidate], "selection": {"rule": "everything"}, "division": division,
                    "targets": [{"name": "cloud1", "replicas": 2}],
                },
            ]}),
            "
group on-premises: 0/4 clusters are available: …
  does not fit: cloud1: cluster(s) did not match — ClusterAffinity
  does not fit: rack1, rack2: cluster(s) had untolerated taint {k:NoExecute} — TaintToleration
  being removed: rack3
group cloud: cloud1:2
  does not fit: rack1, rack2: cluster(s) did not match — ClusterAffinity
  fits    score  from  reported room  selected  gets
  cloud1  0      -     220            yes       2
  selected: every cluster that fits
  divided: 2 replicas on each, regardless of room",
        );
    }

    #[test]
    fn estimates_scores_regions_and_weights_have_columns_when_there_are_any() {
        let candidate = |cluster: &str, score: i64, accurate: i64, available: i64, selected: bool| {
            json!({
                "cluster": cluster, "scores": {"ClusterLocality": score, "cheapest": 5}, "score": score + 5,
                "generalEstimate": 20, "accurateEstimate": accurate, "allocatable": accurate,
                "available": available, "selected": selected,
            })
        };
        let region = |name: &str, score: i64, chosen: bool| json!({"name": name, "clusters": 1, "score": score, "chosen": chosen});
        let rule = json!({"rule": "byRegion", "regionsMin": 1, "regionsMax": 1, "clustersMin": 1, "clustersMax": 2});
        let strategy = json!({"dynamic": "aggregated"});
        check(
            json!({"attempts": [{
                "candidates": [candidate("m1", 100, 7, 10, true), candidate("m2", 0, 20, 20, false)],
                "regions": [region("east", 5100, true), region("west", 5005, false)],
                "selection": rule,
                "division": {"strategy": strategy, "mode": "steady", "replicas": 5, "assigned": 3},
                "targets": [{"name": "m1", "replicas": 5}],
            }]}),
            "
tried: m1:5
  fits  score  from                             reported room  accurate room  runs  selected  gets
  m1    105    ClusterLocality 100, cheapest 5  20             7              3     yes       5
  m2    5      cheapest 5                       20             20             -     no        -
  region  clusters  score  chosen
  east    1         5100   yes
  west    1         5005   no
  selected: 1 to 1 regions with 1 to 2 clusters, those with the highest scores; one cluster of each, then the best of the others
  divided: 3 of 5 replicas stay where they run; 2 more onto the fewest clusters with enough room, those in use first, in proportion to it",
        );
    }

    #[test]
    fn every_way_to_divide_has_its_words() {
        let check = |strategy: Value, mode: &str, replicas: i32, assigned: i32, expected: &str| {
            let division = json!({"strategy": strategy, "mode": mode, "replicas": replicas, "assigned": assigned});
            check(
                json!({"attempts": [{"targets": [], "division": division}]}),
                &format!("tried: nowhere\n  divided: {expected}"),
            );
        };
        let spread = json!({"dynamic": "spread"});
        check(
            json!("whole"),
            "steady",
            0,
            0,
            "the workload has no replicas to divide, and runs on each unchanged",
        );
        check(
            json!("staticWeight"),
            "steady",
            3,
            1,
            "3 replicas by fixed weight, regardless of room",
        );
        check(
            spread.clone(),
            "steady",
            3,
            0,
            "3 replicas in proportion to the available room",
        );
        check(spread.clone(), "steady", 3, 3, "all 3 replicas stay where they run");
        check(
            spread.clone(),
            "steady",
            3,
            5,
            "down from 5 to 3 replicas, in proportion to what runs",
        );
        check(
            spread,
            "fresh",
            3,
            3,
            "3 replicas from scratch, as requested, in proportion to the available room",
        );
    }
}
