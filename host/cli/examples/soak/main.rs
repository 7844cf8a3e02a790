//! Endurance of the program while plugins use nearly all of their wall clock in each call, measured from outside.
//!
//! `cargo build --workspace --bins --examples`, then `target/debug/examples/soak`. The first part measures
//! `bulkhead run` with two worker threads. The second part measures `bulkhead agent` with one, for a Pull member. Both
//! serve 200 bindings with four plugins, and both run on API servers of the measuring process. That process sees the
//! renewals of the Lease, the probes of each member and the taints of each Cluster. Evictions are counted in the
//! journal. The workloads are healthy at all times, so every eviction would come from a delay.
//!
//! Prints each limit with the measured value, and exits with code 1 if a limit does not hold. Linux only.
#![allow(clippy::print_stdout, reason = "it prints a table")]

mod load;
mod observe;
#[path = "../outside/mod.rs"]
mod outside;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bulkhead_core::journal::Decision;
use bulkhead_journal::visit;
use clap::{Parser, ValueEnum};
use tokio::time::Instant;

use self::load::{Calls, Plugins};
use self::observe::{Observed, Observer};
use self::outside::federation::{self, Federation, SyncMode};
use self::outside::program::{self, Program};

/// Tolerated lateness of a renewal or a probe, in seconds.
const LATE_S: f64 = 1.0;
/// Interval between two renewals of the leader, in seconds: the default of `--leader-elect-retry-period`.
const LEADER_RENEWAL_S: f64 = 2.0;
/// Interval between two renewals of an agent, in seconds: a quarter of the default of `--cluster-lease-duration`.
const AGENT_RENEWAL_S: f64 = 10.0;
/// Interval between two probes, in seconds: the default of `--cluster-status-update-frequency`.
const PROBE_S: f64 = 10.0;
/// Time between two changes of the plugins while they are tuned.
const TUNING: Duration = Duration::from_secs(30);
/// Time limit until all workloads are healthy, before the plugins begin to work.
const PATIENCE: Duration = Duration::from_mins(10);
/// Settings under which clusters are tainted and workloads evicted.
const FAILOVER: [&str; 3] = [
    "--feature-gates=Failover=true",
    "--enable-no-execute-taint-eviction",
    "--allow-no-execute-taint-policy",
];

/// Measure leases, probes, taints and evictions while plugins use nearly all of their time.
#[derive(Parser)]
struct Arguments {
    /// Length of the measurement of each part, in minutes.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Time for the tuning of the plugins before each measurement, in minutes.
    #[arg(long, default_value_t = 3.0)]
    tuning_minutes: f64,
    /// Number of workloads, each with one binding.
    #[arg(long, default_value_t = 200)]
    bindings: usize,
    /// Wall-clock limit of a plugin's call, in milliseconds.
    #[arg(long, default_value_t = 5_000)]
    wall_clock_ms: u64,
    /// Part to measure; both without it.
    #[arg(long)]
    part: Option<Part>,
    /// Program to measure; by default the one that was built beside this example.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// New directory for the logs and the journals; by default they are removed.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// `bulkhead run` with two workers.
    Controllers,
    /// `bulkhead agent` with one worker.
    Agent,
}

impl Part {
    fn members(self) -> &'static [(&'static str, SyncMode)] {
        match self {
            Self::Controllers => &[("member1", SyncMode::Push), ("member2", SyncMode::Push)],
            Self::Agent => &[("pull1", SyncMode::Pull), ("push1", SyncMode::Push)],
        }
    }

    /// Returns the members that the workloads are on, and the other ones.
    fn homes(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Controllers => (&["member1", "member2"], &[]),
            Self::Agent => (&["pull1"], &["push1"]),
        }
    }

    /// Returns the plugins, and the number of calls that the process makes at the same time.
    fn plugins(self) -> ([load::Plugin; 4], usize) {
        match self {
            Self::Controllers => (load::CONTROL_PLANE, 4),
            Self::Agent => (load::AGENT, 8),
        }
    }

    fn workers(self) -> usize {
        match self {
            Self::Controllers => 2,
            Self::Agent => 1,
        }
    }

    /// Returns the observed Lease, and the interval between its renewals in seconds.
    fn lease(self) -> (&'static str, f64) {
        match self {
            Self::Controllers => ("karmada-system/bulkhead", LEADER_RENEWAL_S),
            Self::Agent => ("karmada-cluster/pull1", AGENT_RENEWAL_S),
        }
    }

    /// Returns the members that the measured process probes.
    fn probed(self) -> &'static [&'static str] {
        match self {
            Self::Controllers => &["member1", "member2"],
            Self::Agent => &["pull1"],
        }
    }
}

/// A limit and the measured value.
struct Row {
    subject: String,
    limit: String,
    measured: String,
    holds: bool,
}

impl Row {
    /// Returns the row of a longest pause.
    fn pause(subject: String, measured: Option<&(f64, u64)>, limit_s: f64) -> Self {
        let text = measured.map_or("never seen".to_owned(), |(longest_s, count)| {
            format!("{longest_s:.2} s, the longest of {count} pauses")
        });
        // One event does not make a pause.
        let holds = measured.is_some_and(|(longest_s, count)| *count > 0 && *longest_s <= limit_s);
        Self {
            subject,
            limit: format!("{limit_s:.0} s"),
            measured: text,
            holds,
        }
    }

    fn none(subject: &str, found: &[String]) -> Self {
        let measured = if found.is_empty() {
            "0".to_owned()
        } else {
            found.join(", ")
        };
        Self {
            subject: subject.to_owned(),
            limit: "0".to_owned(),
            measured,
            holds: found.is_empty(),
        }
    }
}

/// Processes of a part. The measured one is last.
struct Processes {
    running: Vec<Program>,
    /// Address of the metrics of the measured process.
    metrics: String,
}

impl Processes {
    fn measured(&self) -> anyhow::Result<&Program> {
        self.running.last().context("no process runs")
    }

    /// Fails once a process has ended.
    fn check(&mut self) -> anyhow::Result<()> {
        for process in &mut self.running {
            if let Some(status) = process.ended()? {
                bail!("a process ended with {status}:\n{}", process.log());
            }
        }
        Ok(())
    }

    /// Waits, and fails once a process has ended.
    async fn run_for(&mut self, time: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.check()?;
            tokio::time::sleep(Duration::from_secs(1).min(end - Instant::now())).await;
        }
        Ok(())
    }
}

/// Environment of one part.
struct Run<'a> {
    part: Part,
    arguments: &'a Arguments,
    program: &'a Path,
    /// Folder of kubeconfigs, plugins, logs and the journal.
    folder: PathBuf,
}

impl Run<'_> {
    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn journal(&self) -> PathBuf {
        self.folder.join("journal")
    }

    /// Starts the processes. Only the measured one gets the plugins.
    async fn start(&self, federation: &Federation, plugins: &Plugins) -> anyhow::Result<Processes> {
        federation.write_kubeconfig(&self.folder.join("hub.kubeconfig"), None)?;
        let plugins = ["--plugin-directory".to_owned(), plugins.folder().display().to_string()];
        let common = |kubeconfig: &str| {
            let words = [
                "--kubeconfig",
                kubeconfig,
                "--health-probe-bind-address=127.0.0.1:0",
                "--plugin-cache=off",
            ];
            words.map(str::to_owned)
        };
        let hub = common(&self.path("hub.kubeconfig"));
        let journal = self.journal().display().to_string();
        let of_run = ["run", "--mode=all", "--journal", &journal].map(str::to_owned);
        let mut run: Vec<_> = of_run
            .into_iter()
            .chain(hub.clone())
            .chain(FAILOVER.map(str::to_owned))
            .collect();
        let mut running = Vec::new();
        if self.part == Part::Agent {
            let controllers = Program::start(self.program, 2, &self.folder.join("run.log"), &run)?;
            running.push(controllers);
            federation.write_kubeconfig(&self.folder.join("pull1.kubeconfig"), Some("pull1"))?;
            let (member, state) = (self.path("pull1.kubeconfig"), self.path("agent-state"));
            let of_agent = ["agent", "--cluster-name=pull1", "--cluster-kubeconfig", &member];
            let of_agent = of_agent
                .into_iter()
                .chain(["--plugin-state-directory", &state])
                .map(str::to_owned);
            run = of_agent.chain(hub).collect();
        }
        run.extend(plugins);
        let mut measured = Program::start(
            self.program,
            self.part.workers(),
            &self.folder.join("measured.log"),
            &run,
        )?;
        let metrics = measured.said("health and metrics at http://").await?;
        running.push(measured);
        Ok(Processes { running, metrics })
    }

    async fn measure(&self) -> anyhow::Result<Vec<Row>> {
        let clock = federation::clock();
        let observer = Arc::new(Observer::new(clock.clone()));
        let probed = Arc::clone(&observer);
        let on_request = Box::new(move |member: &str, path: &str| probed.request(member, path));
        let federation = Federation::start(&clock, self.part.members(), on_request).await?;
        let (listed, threads) = self.part.plugins();
        let plugins = Plugins::idle(self.folder.join("plugins"), listed, self.arguments.wall_clock_ms)?;
        let processes = self.start(&federation, &plugins).await?;
        let (homes, others) = self.part.homes();
        load::create_workloads(&federation.hub, homes, others, self.arguments.bindings)?;
        let measurement = Measurement {
            run: self,
            federation: &federation,
            observer: &observer,
            listed: &listed,
            threads,
        };
        let rows = tokio::select! {
            rows = measurement.measure(plugins, processes) => rows?,
            ended = observer.follow(&federation.hub) => { ended?; bail!("the observation ended") }
            ended = measurement.change_workloads() => { ended?; bail!("the changes of workloads ended") }
        };
        Ok(rows)
    }

    /// Returns the evictions in the journal.
    fn evictions(&self) -> anyhow::Result<Vec<String>> {
        let mut evictions = Vec::new();
        let problems = visit(&self.journal(), |stored| {
            let entry = &stored.record.entry;
            if entry.decision == Decision::Evicted {
                let cluster = entry.cluster.as_deref().unwrap_or_default();
                evictions.push(format!(
                    "{} from {cluster}: {}",
                    entry.subject, entry.attribution.reason.code
                ));
            }
        })?;
        if !problems.is_empty() {
            bail!("the journal is damaged: {problems:?}");
        }
        Ok(evictions)
    }
}

/// Measurement of running processes.
struct Measurement<'a> {
    run: &'a Run<'a>,
    federation: &'a Federation,
    observer: &'a Observer,
    listed: &'a [load::Plugin],
    threads: usize,
}

impl Measurement<'_> {
    /// Changes the workloads once all of them are healthy.
    async fn change_workloads(&self) -> anyhow::Result<()> {
        self.all_healthy().await?;
        load::change_workloads(&self.federation.hub, self.run.arguments.bindings).await
    }

    async fn all_healthy(&self) -> anyhow::Result<()> {
        let (started, wanted) = (Instant::now(), self.run.arguments.bindings);
        loop {
            let healthy = load::healthy(&self.federation.hub)?;
            if healthy >= wanted {
                return Ok(());
            }
            if started.elapsed() > PATIENCE {
                bail!(
                    "only {healthy} of {wanted} workloads are healthy after {} s",
                    PATIENCE.as_secs()
                );
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn measure(&self, mut plugins: Plugins, mut processes: Processes) -> anyhow::Result<Vec<Row>> {
        let (arguments, hub) = (self.run.arguments, &self.federation.hub);
        self.all_healthy().await?;
        println!("{} workloads are healthy; tuning the plugins", arguments.bindings);
        tokio::task::block_in_place(|| plugins.begin(self.threads))?;
        let tuned = Instant::now() + Duration::from_secs_f64(arguments.tuning_minutes * 60.0);
        while Instant::now() < tuned {
            let before = load::calls(&processes.metrics).await?;
            processes.run_for(TUNING).await?;
            let after = load::calls(&processes.metrics).await?;
            plugins.tune(&load::calls_between(self.listed, &before, &after))?;
        }
        // The last change of the plugins takes effect before the measurement.
        processes.run_for(TUNING).await?;

        self.observer.restart(hub)?;
        let (calls, used_s) = (
            load::calls(&processes.metrics).await?,
            processes.measured()?.processor_seconds()?,
        );
        let time = Duration::from_secs_f64(arguments.minutes * 60.0);
        println!("measuring for {} s", time.as_secs());
        processes.run_for(time).await?;
        let observed = self.observer.observed();
        let calls = load::calls_between(self.listed, &calls, &load::calls(&processes.metrics).await?);
        let used_s = processes.measured()?.processor_seconds()? - used_s;
        while let Some(process) = processes.running.pop() {
            process.stop().await?;
        }
        let mut rows = self.rows(&observed);
        rows.push(Row::none("evictions in the journal", &self.run.evictions()?));
        rows.extend(load_rows(&calls, used_s, time));
        Ok(rows)
    }

    fn rows(&self, observed: &Observed) -> Vec<Row> {
        let part = self.run.part;
        let (lease, period_s) = part.lease();
        let subject = format!("pause between renewals of the Lease {lease}");
        let mut rows = vec![Row::pause(subject, observed.leases.get(lease), period_s + LATE_S)];
        for member in part.probed() {
            let subject = format!("pause between probes of {member}");
            rows.push(Row::pause(subject, observed.probes.get(*member), PROBE_S + LATE_S));
        }
        let taints: Vec<_> = observed.taints.iter().cloned().collect();
        rows.push(Row::none("taints of Clusters", &taints));
        rows
    }
}

/// Returns rows that show that the plugins worked. Without calls the other limits would hold for nothing.
fn load_rows(calls: &BTreeMap<String, Calls>, used_s: f64, time: Duration) -> Vec<Row> {
    let of_plugin = |(name, calls): (&String, &Calls)| Row {
        subject: format!("calls of plugin {name}"),
        limit: "at least 1".to_owned(),
        measured: format!("{}, of which {} faults", calls.total, calls.faults),
        holds: calls.total > 0,
    };
    let cores = used_s / time.as_secs_f64();
    let busy = Row {
        subject: "processor time of the process".to_owned(),
        limit: "at least 0.5 cores".to_owned(),
        measured: format!("{cores:.2} cores"),
        holds: cores >= 0.5,
    };
    calls.iter().map(of_plugin).chain([busy]).collect()
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let program = arguments.program.clone().map_or_else(program::beside_this, Ok)?;
    let temporary = tempfile::tempdir()?;
    let root = arguments.keep.as_deref().unwrap_or(temporary.path());
    let mut all_hold = true;
    for part in [Part::Controllers, Part::Agent] {
        if arguments.part.is_some_and(|wanted| wanted != part) {
            continue;
        }
        let folder = root.join(format!("{part:?}").to_lowercase());
        // The journal of an earlier run would count.
        std::fs::create_dir_all(root)?;
        std::fs::create_dir(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let run = Run {
            part,
            arguments: &arguments,
            program: &program,
            folder,
        };
        let rows = Box::pin(run.measure())
            .await
            .with_context(|| format!("measuring {part:?}"))?;
        println!("\n{part:?}\n\n| subject | limit | measured | |\n| --- | --- | --- | --- |");
        for Row {
            subject,
            limit,
            measured,
            holds,
        } in rows
        {
            println!(
                "| {subject} | {limit} | {measured} | {} |",
                if holds { "holds" } else { "does not hold" }
            );
            all_hold &= holds;
        }
        println!();
    }
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
