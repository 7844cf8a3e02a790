//! End-to-end tests: the `bulkhead` program on real Kubernetes control planes, started by `cargo xtask e2e`.
//!
//! Start reading at [`federation`] (setup), then [`scenarios`] (assertions).

mod alerts;
mod annotations;
mod bench;
mod certificates;
mod command;
mod comparison;
mod control_plane;
#[path = "../../distribution/mod.rs"]
mod distribution;
mod documents;
mod faults;
mod federation;
mod idle;
mod install;
mod kubectl;
mod losses;
mod modes;
mod neighbour;
mod pair;
mod plugins;
mod policies;
mod process;
mod proxy;
mod registry;
#[path = "../../registry/mod.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "its users are tests, which inject faults")]
mod registry_in_process;
mod requests;
mod runner;
mod scenarios;
mod servers;
mod sidecar;
mod signed_plugin;
mod site;
mod soundness;
mod storm;
mod successions;
mod takeover;
mod telemetry;
mod tools;
#[path = "../../kubectl/transcript.rs"]
mod transcript;
mod tutorial;
mod upgrade;
mod wait;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::telemetry::Choice;

/// Run Bulkhead on real control planes.
#[derive(Parser)]
struct Arguments {
    /// Path of the `bulkhead` program.
    #[arg(long)]
    program: PathBuf,
    /// Root of the workspace.
    #[arg(long)]
    root: PathBuf,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run the scenarios whose names contain the filter.
    Run {
        /// Part of a scenario name; without it, all scenarios run.
        #[arg(default_value = "")]
        filter: String,
        /// Maximum attempts per scenario. On a busy machine, real servers occasionally miss their time limits.
        #[arg(long, default_value_t = 1)]
        attempts: u32,
        /// Number of scenarios that run at the same time.
        #[arg(long, default_value_t = 1)]
        jobs: usize,
        /// Run scenarios with two forms in the long one.
        #[arg(long)]
        long: bool,
    },
    /// Raise each alert of the chart, and follow the runbook until it is over.
    Alerts {
        /// Part of the name of a group, or of an alert, whose group runs; without it, all groups run.
        #[arg(default_value = "")]
        filter: String,
        /// Path of the program `prometheus`.
        #[arg(long)]
        prometheus: PathBuf,
        /// Maximum attempts per group.
        #[arg(long, default_value_t = 1)]
        attempts: u32,
    },
    /// Measure a storm of evictions.
    Bench {
        /// Number of Deployments, each with three replicas.
        #[arg(long, default_value_t = 300)]
        deployments: usize,
        #[command(flatten)]
        choice: Choice,
    },
    /// Measure the resource usage without changes.
    Idle {
        /// Number of bindings.
        #[arg(long, default_value_t = 5000)]
        bindings: usize,
        #[command(flatten)]
        choice: Choice,
    },
    /// Install a release by chart and by kustomize, with an upgrade and a rollback in a storm.
    Install(install::Release),
    /// Push, sign and pull plugins through a registry, also with faults of it in the middle of a storm.
    Registry(tools::Tools),
    /// Upgrade from another version and roll back to it, in the middle of a storm.
    Upgrade {
        /// Path of the other version's `bulkhead` program.
        #[arg(long)]
        previous: PathBuf,
        /// Checkout that the other program was built from.
        #[arg(long)]
        previous_root: PathBuf,
        /// Modes of the processes.
        #[arg(long, value_delimiter = ',', default_value = "evict,all")]
        modes: Vec<String>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    match Box::pin(run(Arguments::parse())).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<bool> {
    let root = arguments.root.canonicalize()?;
    let servers = servers::build(&root)?;
    let mut site = site::Site::new(servers, &arguments.program, &root)?;
    match arguments.task {
        Task::Alerts {
            filter,
            prometheus,
            attempts,
        } => {
            site.prometheus = Some(prometheus);
            runner::run(&site, alerts::all(&site.root)?, &filter, attempts, 1)
        }
        Task::Bench { deployments, choice } => {
            Box::pin(bench::run(&site, deployments, &choice)).await?;
            Ok(true)
        }
        Task::Idle { bindings, choice } => {
            Box::pin(idle::run(&site, bindings, &choice)).await?;
            Ok(true)
        }
        Task::Install(release) => Box::pin(install::run(&site, &release)).await,
        Task::Registry(tools) => {
            let scenarios = registry::all(&tools);
            let filter = tools.filter.clone();
            site.registry_tools = Some(tools);
            runner::run(&site, scenarios, &filter, 1, 1)
        }
        Task::Upgrade {
            previous,
            previous_root,
            modes,
        } => {
            let previous = site.of_version(&previous, &previous_root)?;
            Box::pin(upgrade::run(&site, &previous, &modes)).await
        }
        Task::Run {
            filter,
            attempts,
            jobs,
            long,
        } => {
            site.is_long = long;
            runner::run(&site, scenarios::all(), &filter, attempts, jobs)
        }
    }
}
