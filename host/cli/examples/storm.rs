//! Cost of a storm: one cluster with many bindings is lost, and all of them leave at an unlimited rate, on the embedded
//! control plane and on virtual time.
//!
//! `cargo run --release --example storm -- 5000` prints how many evictions a second of real time were made, and how many
//! writes and conflicts each of them took. What the same federation writes when nothing is lost is subtracted, so the
//! numbers are those of the storm alone. `BENCHMARKS.md` holds the figures.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, bail};
use bulkhead_simulator::report::{Report, WriteRow};
use bulkhead_simulator::scenario;
use bulkhead_simulator::simulation::{self, Detail, RunOptions};

/// Allocator of the program, whose figures these are.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// When the cluster is lost, in virtual seconds from the start.
const LOST_AT_S: i64 = 120;

const TAINT_POLICY: &str = include_str!("../../../examples/nginx-divided/taint-policy.yaml");

const APP: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: 'app-{n}', namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: 'app-{n}'}}
  template:
    metadata: {labels: {app: 'app-{n}'}}
    spec: {containers: [{name: app, image: app}]}
";

const POLICY: &str = "\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: apps, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    clusterAffinities:
    - {affinityName: first, clusterNames: [member1]}
    - {affinityName: rest, clusterNames: [member1, member2, member3, member4, member5]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
";

/// The scenario, with or without its fault. The scheduler's write budget is as unlimited as the rate of evictions.
fn scenario_text(bindings: u32, is_lost: bool) -> String {
    let event = format!("events: [{{at: {LOST_AT_S}s, cluster: member1, state: unreachable}}]\n");
    format!(
        "name: storm\nduration: 5m\nflags:\n  feature-gates: {{Failover: true}}\n  \
         enable-no-execute-taint-eviction: true\n  allow-no-execute-taint-policy: true\n  \
         resource-eviction-rate: 1000000\n  kube-api-qps: 1000000\n  kube-api-burst: 1000000\n\
         clusters:\n- {{name: member, count: 5, capacity: {{nodes: 20, cpu: '100000', memory: 100Ti, pods: 100000}}}}\n\
         manifests: [taint-policy.yaml, policy.yaml, {{file: app.yaml, count: {bindings}}}]\n{}",
        if is_lost { event.as_str() } else { "" }
    )
}

/// A finished run, with the real time at which each second of virtual time was reached.
struct Run {
    report: Report,
    clock: BTreeMap<i64, Instant>,
}

fn run(folder: &Path, bindings: u32, is_lost: bool) -> anyhow::Result<Run> {
    let files = [
        ("taint-policy.yaml", TAINT_POLICY.to_owned()),
        ("app.yaml", APP.to_owned()),
        ("policy.yaml", POLICY.to_owned()),
        ("scenario.yaml", scenario_text(bindings, is_lost)),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text).with_context(|| format!("writing {name}"))?;
    }
    let loaded = scenario::load(&folder.join("scenario.yaml"))?;
    let clock = Arc::new(Mutex::new(BTreeMap::new()));
    let noted = Arc::clone(&clock);
    let progress = move |at: bulkhead_controllers::flags::GoDuration, _| {
        let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.entry(at.as_secs()).or_insert_with(Instant::now);
    };
    let options = RunOptions {
        seed: Some(1),
        engines: Vec::new(),
        detail: Detail::Everything,
        explain: None,
        progress: Some(Box::new(progress)),
        sink: None,
        is_last: false,
    };
    let report = simulation::run(&loaded, options)?.report;
    let clock = clock.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Run { report, clock })
}

/// Virtual milliseconds of the first and the last entry of a sort since the cluster was lost, and their number.
fn span(report: &Report, what: &str) -> Option<(i64, i64, usize)> {
    let entries = report
        .timeline
        .iter()
        .filter(|entry| entry.what == what && entry.at_ms >= LOST_AT_S * 1000);
    let times: Vec<_> = entries.map(|entry| entry.at_ms).collect();
    Some((*times.first()?, *times.last()?, times.len()))
}

/// Real seconds from the last whole virtual second before `from_ms` to the first one after `to_ms`.
fn real_seconds(run: &Run, from_ms: i64, to_ms: i64) -> Option<f64> {
    let (_, start) = run.clock.range(..=from_ms.div_euclid(1000)).next_back()?;
    let (_, end) = run.clock.range(to_ms.div_euclid(1000) + 1..).next()?;
    Some(end.duration_since(*start).as_secs_f64())
}

/// Returns the writes of the storm that a calm run does not make.
fn beyond(storm: &[WriteRow], calm: &[WriteRow]) -> BTreeMap<(String, u16), i64> {
    let mut rows = BTreeMap::new();
    for (writes, sign) in [(storm, 1), (calm, -1)] {
        for row in writes {
            let count = i64::try_from(row.count).unwrap_or(i64::MAX);
            *rows.entry((row.resource.clone(), row.code)).or_default() += sign * count;
        }
    }
    rows
}

fn table(storm: &Run, calm: &Run) -> anyhow::Result<String> {
    let (first, last, evictions) = span(&storm.report, "evicted").context("nothing was evicted")?;
    let (_, settled, releases) = span(&storm.report, "released").context("no old copy was released")?;
    if releases != evictions {
        bail!("{evictions} bindings were evicted and {releases} old copies released");
    }
    let evicting = real_seconds(storm, first, last).context("the run ended too early")?;
    let settling = real_seconds(storm, first, settled).context("the run ended too early")?;
    let writes = beyond(&storm.report.writes, &calm.report.writes);
    // Events and records delay no other write.
    let (accounts, counted): (Vec<_>, Vec<_>) = writes
        .iter()
        .partition(|((resource, _), _)| resource.starts_with("events") || resource.starts_with("failoverrecords"));
    let total = |rows: &[(&(String, u16), &i64)]| rows.iter().map(|(_, count)| **count).sum::<i64>();
    let (accounts, all) = (total(&accounts), total(&counted));
    let conflicts: i64 = counted
        .iter()
        .filter(|((_, code), _)| *code == 409)
        .map(|(_, count)| **count)
        .sum();
    let each = |count: i64| count as f64 / evictions as f64;
    let mut text = String::from("| what | value |\n| --- | --- |\n");
    writeln!(text, "| evictions | {evictions} |")?;
    writeln!(
        text,
        "| evictions per second, with all that follows from them meanwhile | {:.0} |",
        evictions as f64 / evicting
    )?;
    writeln!(
        text,
        "| until every replacement is healthy and every old copy released | {settling:.1} s |"
    )?;
    writeln!(
        text,
        "| writes of events and failover records per eviction | {:.2} |",
        each(accounts)
    )?;
    writeln!(text, "| other writes per eviction | {:.2} |", each(all))?;
    for ((resource, code), count) in counted.iter().filter(|(_, count)| **count != 0) {
        writeln!(
            text,
            "| of those to `{resource}`, answered {code} | {:.2} |",
            each(**count)
        )?;
    }
    writeln!(
        text,
        "| answered 409 | {conflicts}, {:.2} % |",
        100.0 * conflicts as f64 / all.max(1) as f64
    )?;
    Ok(text)
}

fn main() -> anyhow::Result<()> {
    let bindings = match std::env::args().nth(1) {
        None => 1_000,
        Some(text) => text
            .parse()
            .with_context(|| format!("{text:?} is not a number of bindings"))?,
    };
    let folder = std::env::temp_dir().join(format!("bulkhead-storm-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let runs = run(&folder, bindings, false).and_then(|calm| Ok((calm, run(&folder, bindings, true)?)));
    std::fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    let (calm, storm) = runs?;
    write!(std::io::stdout(), "{}", table(&storm, &calm)?)?;
    Ok(())
}
