//! Text output of `bulkhead top`.

use std::fmt::Write as _;

use bulkhead_simulator::table::Table;
use k8s_openapi::jiff::Timestamp;

use super::gather::View;

/// Maximum number of unplaced bindings listed by name; the number of further ones is printed.
const UNPLACED_MAX: usize = 5;
/// Maximum number of queued evictions listed; the number of further ones is printed.
const QUEUED_MAX: usize = 20;

/// Formats a view as text.
pub(super) fn text(view: &View, address: &str) -> String {
    let mut out = String::new();
    let ready = view.clusters.iter().filter(|cluster| cluster.ready == "True").count();
    let _ = writeln!(out, "{address}  {}", view.at.strftime("%F %T UTC"));
    let _ = write!(
        out,
        "{ready} of {} clusters ready, {} evictions under way",
        view.clusters.len(),
        view.tasks.len()
    );
    match (&view.queue_depth, &view.metrics_problem) {
        (Some(depth), _) => drop(writeln!(out, ", {depth} in the queue")),
        (None, Some(problem)) => drop(writeln!(out, ", queue unknown: {problem}")),
        (None, None) => drop(writeln!(out)),
    }
    for (name, reason) in &view.pauses {
        let _ = writeln!(out, "evictions are paused by {name}: {reason}");
    }
    if let Some(problem) = &view.pause_problem {
        let _ = writeln!(out, "{problem}; pauses are missing below");
    }
    for problem in &view.plugin_problems {
        let _ = writeln!(out, "{problem}; answers of plugins are missing below");
    }
    if !view.unplaced.is_empty() {
        let named: Vec<_> = view.unplaced.iter().take(UNPLACED_MAX).map(String::as_str).collect();
        let more = view.unplaced.len() - named.len();
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let _ = writeln!(out, "placed nowhere: {}{more}", named.join(", "));
    }

    let heading = [
        "CLUSTER", "READY", "FOR", "BINDINGS", "REPLICAS", "HEALTHY", "LEAVING", "TAINTS",
    ];
    let mut table = Table::new(2, &[]);
    table.row(heading);
    for cluster in &view.clusters {
        let ready = if cluster.reason.is_empty() {
            cluster.ready.to_owned()
        } else {
            format!("{} ({})", cluster.ready, cluster.reason)
        };
        let taints = if cluster.taints.is_empty() {
            "-".to_owned()
        } else {
            cluster.taints.join(", ")
        };
        table.row([
            cluster.name.clone(),
            ready,
            age(cluster.since, view.at),
            cluster.bindings.to_string(),
            cluster.replicas.to_string(),
            cluster.healthy.to_string(),
            cluster.leaving.to_string(),
            taints,
        ]);
    }
    let _ = write!(out, "\n{table}");

    if !view.tasks.is_empty() {
        let heading = ["BINDING", "FROM", "TO", "AGE", "REASON", "WAITS FOR"];
        let mut table = Table::new(2, &[]);
        table.row(heading);
        for task in &view.tasks {
            let to: Vec<_> = task
                .to
                .iter()
                .map(|(cluster, replicas)| format!("{cluster}:{replicas}"))
                .collect();
            table.row([
                task.binding.clone(),
                task.from.clone(),
                if to.is_empty() { "-".to_owned() } else { to.join(",") },
                age(task.since, view.at),
                task.reason.clone(),
                task.waits_for.clone(),
            ]);
        }
        let _ = write!(out, "\n{table}");
    }
    out += &queue(view);
    out
}

/// Formats the evictions in the leader's queue.
fn queue(view: &View) -> String {
    if let Some(problem) = &view.queue_problem {
        return format!("\nthe queue of the leader is unknown: {problem}\n");
    }
    let queued = view.queued.as_deref().unwrap_or_default();
    if queued.is_empty() {
        return String::new();
    }
    let mut table = Table::new(2, &[]);
    table.row(["QUEUED", "FROM", "FOR", "WAITS FOR", "NEXT CHECK"]);
    for eviction in queued.iter().take(QUEUED_MAX) {
        let binding = if eviction.namespace.is_empty() {
            eviction.name.clone()
        } else {
            format!("{}/{}", eviction.namespace, eviction.name)
        };
        let next = eviction.next_check_ms;
        table.row([
            binding,
            eviction.cluster.clone(),
            seconds(eviction.waited_ms / 1000),
            eviction.gate.clone(),
            next.map_or_else(
                || "at a change".to_owned(),
                |next_ms| format!("in {}", seconds(next_ms.div_ceil(1000))),
            ),
        ]);
    }
    let more = queued.len().saturating_sub(QUEUED_MAX);
    let more = if more > 0 {
        format!("and {more} more\n")
    } else {
        String::new()
    };
    format!("\n{table}{more}")
}

/// Formats an age in its largest units.
fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    let Some(since) = since else { return "-".to_owned() };
    seconds(u64::try_from(now.as_second() - since.as_second()).unwrap_or(0))
}

/// Formats a time in its largest units.
fn seconds(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m{}s", seconds / 60, seconds % 60),
        7200..172_800 => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bulkhead_controllers::QueuedEviction;

    use super::super::gather::{ClusterRow, TaskRow};
    use super::*;

    #[test]
    fn the_view_shows_evictions_with_the_gate_that_holds_them() {
        let at: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let since: Timestamp = "2026-01-01T00:08:30Z".parse().unwrap();
        let view = View {
            at,
            clusters: vec![ClusterRow {
                name: "member1".to_owned(),
                ready: "False",
                since: Some(since),
                reason: "ClusterNotReachable".to_owned(),
                taints: vec!["cluster.karmada.io/not-ready:NoExecute".to_owned()],
                bindings: 0,
                replicas: 0,
                healthy: 0,
                leaving: 1,
            }],
            tasks: vec![TaskRow {
                binding: "default/nginx-deployment".to_owned(),
                from: "member1".to_owned(),
                to: BTreeMap::from([("member2".to_owned(), 3)]),
                reason: "TaintUntolerated".to_owned(),
                producer: "TaintManager".to_owned(),
                since: Some(since),
                waits_for: "Unhealthy: member2 is not healthy".to_owned(),
            }],
            queue_depth: Some(4),
            queued: Some(vec![QueuedEviction {
                kind: "ResourceBinding".to_owned(),
                namespace: "default".to_owned(),
                name: "shop-deployment".to_owned(),
                cluster: "member1".to_owned(),
                is_failback: false,
                gate: "Rate".to_owned(),
                waited_ms: 185_000,
                next_check_ms: Some(1_500),
            }]),
            queue_problem: None,
            pauses: BTreeMap::new(),
            pause_problem: None,
            unplaced: Vec::new(),
            plugin_problems: Vec::new(),
            metrics_problem: None,
        };
        let expected = "\
https://hub  2026-01-01 00:10:00 UTC
0 of 1 clusters ready, 1 evictions under way, 4 in the queue

CLUSTER  READY                        FOR  BINDINGS  REPLICAS  HEALTHY  LEAVING  TAINTS
member1  False (ClusterNotReachable)  90s  0         0         0        1        cluster.karmada.io/not-ready:NoExecute

BINDING                   FROM     TO         AGE  REASON            WAITS FOR
default/nginx-deployment  member1  member2:3  90s  TaintUntolerated  Unhealthy: member2 is not healthy

QUEUED                   FROM     FOR   WAITS FOR  NEXT CHECK
default/shop-deployment  member1  3m5s  Rate       in 2s
";
        assert_eq!(text(&view, "https://hub"), expected);
    }
}
