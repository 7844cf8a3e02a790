//! Setup and checks. `cargo xtask demo` and `cargo xtask test` do everything that a fresh machine needs;
//! `cargo xtask docs` builds the documentation site, `cargo xtask vectors` compares with Karmada,
//! `cargo xtask full` runs what takes too long for CI, and `cargo xtask release` makes what a user installs.

mod browser;
mod digest;
#[path = "../../../tests/distribution/mod.rs"]
#[allow(dead_code, reason = "the end-to-end tests use other parts")]
mod distribution;
mod docs;
mod full;
mod fuzz;
mod guests;
mod install;
mod languages;
mod mutants;
mod mutations;
mod promtool;
mod publish;
mod registry;
mod release;
mod semver;
mod sh;
mod supply;
mod targets;
mod test;
mod tools;
mod upgrade;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build host and guests, then run the main example: a federation that survives a cluster failure.
    Demo {
        /// Arguments for `bulkhead simulate`, instead of the example.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        simulate: Vec<String>,
    },
    /// Build the guests and run all tests.
    Test,
    /// Check the reference pages and build the documentation site into target/book; installs mdBook if it is missing.
    Docs,
    /// Run Bulkhead on real Kubernetes control planes; needs Go and kubectl.
    E2e {
        /// `run [NAME]` to run the scenarios with such a name, `alerts --prometheus PATH` to raise alerts, `bench` or
        /// `idle` to measure.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Introduce bugs on purpose, one at a time, and print the seed in which the simulation finds each.
    Mutations {
        /// Only check that the bugs compile.
        #[arg(long)]
        check: bool,
        /// Only introduce the bugs in files that changed since this revision.
        #[arg(long, value_name = "REVISION", conflicts_with = "check")]
        changed: Option<String>,
        /// `--seeds NUMBER`, `--only NAME`, `--verbose`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Change conditions and results of the decisions in core, one at a time; fail if its tests miss more than 5 %.
    Mutants {
        /// Part of all changes: the K-th of N, counted from 0.
        #[arg(long, value_name = "K/N", default_value = "0/1")]
        shard: String,
    },
    /// Pass inputs that reach new code to readers of foreign data, with libFuzzer.
    Fuzz {
        /// Targets to run, by the names of the files in tests/fuzz/targets; all if omitted.
        #[arg(value_name = "TARGET")]
        targets: Vec<String>,
        /// Seconds for each target.
        #[arg(long, value_name = "SECONDS", default_value_t = 60)]
        seconds: u32,
    },
    /// Run the checks that take too long for CI, and print a table of their results.
    Full {
        /// Steps to run; all if omitted.
        #[arg(value_name = "STEP")]
        steps: Vec<full::Step>,
        /// List the steps without running them.
        #[arg(long)]
        list: bool,
    },
    /// Build the example plugins and the guests for the tests as WebAssembly components into target/guests.
    Guests,
    /// Create, build and test a plugin in each language with the program of the demo, each plugin of another kind; needs
    /// Python, Node.js, Go and make.
    Languages,
    /// Build static programs, image, chart, manifests, checksums and bill of materials into target/release-package.
    Release(release::Arguments),
    /// Push image and chart of a release to a registry, and sign them.
    Publish(publish::Arguments),
    /// Compare the public interfaces of the published crates with the last release.
    Semver {
        /// Revision to compare with, in place of the last release.
        #[arg(long, value_name = "REVISION")]
        baseline: Option<String>,
    },
    /// Run a file of cases that were recorded from Karmada's own code; fail if a result differs.
    Vectors {
        /// `scheduler FILE` or `interpreter FILE [--customizations DIR]`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// All programs at once: for single packages, cargo would select other features of shared dependencies and rebuild
/// wasmtime and Luau.
const BUILD: &[&str] = &["build", "--workspace", "--bins"];
/// The program alone, with the same features of shared dependencies.
const BUILD_PROGRAM: &[&str] = &["build", "--workspace", "--bin", "bulkhead"];

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<ExitCode> {
    let root = root();
    match task {
        Task::Guests => {
            for component in guests::build(&root)? {
                println!("{}", component.strip_prefix(&root).unwrap_or(&component).display());
            }
            Ok(ExitCode::SUCCESS)
        }
        Task::Demo { simulate } => {
            guests::build(&root)?;
            sh::cargo(&root, BUILD_PROGRAM)?;
            let program = root.join("target/debug/bulkhead");
            let example = ["examples/nginx-divided/scenario.yaml".to_owned()];
            let arguments = if simulate.is_empty() {
                &example[..]
            } else {
                &simulate[..]
            };
            let all: Vec<_> = std::iter::once("simulate".to_owned())
                .chain(arguments.iter().cloned())
                .collect();
            sh::exit_code(&root, &program, &all)
        }
        Task::Test => {
            guests::build(&root)?;
            test::run(&root)?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Docs => {
            let page = docs::build(&root)?;
            println!("{}", page.strip_prefix(&root).unwrap_or(&page).display());
            Ok(ExitCode::SUCCESS)
        }
        Task::Mutations { check: true, .. } => {
            mutations::check(&root)?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Mutations {
            changed: Some(revision),
            mut arguments,
            ..
        } => {
            let mistakes = mutations::changed(&root, &revision)?;
            if mistakes.is_empty() {
                println!("no bug belongs to a file that changed since {revision}");
                return Ok(ExitCode::SUCCESS);
            }
            arguments.extend(mistakes.into_iter().flat_map(|name| ["--only".to_owned(), name]));
            sh::exit_code(&root, &mutations::build(&root)?, &arguments)
        }
        Task::Mutations { arguments, .. } => sh::exit_code(&root, &mutations::build(&root)?, &arguments),
        Task::Mutants { shard } => {
            mutants::check(&root, &shard)?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Fuzz { targets, seconds } => {
            fuzz::check(&root, &targets, seconds)?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Full { list: true, .. } => {
            print!("{}", full::list());
            Ok(ExitCode::SUCCESS)
        }
        Task::Full { steps, list: false } => Ok(full::run(&root, &steps)),
        Task::E2e { arguments } => {
            sh::cargo(&root, BUILD)?;
            let path = |path: &Path| path.display().to_string();
            let program = path(&root.join("target/debug/bulkhead"));
            let fixed = ["--program".to_owned(), program, "--root".to_owned(), path(&root)];
            let given = if arguments.is_empty() {
                vec!["run".to_owned()]
            } else {
                arguments
            };
            let all: Vec<_> = fixed.into_iter().chain(given).collect();
            sh::exit_code(&root, &root.join("target/debug/bulkhead-e2e"), &all)
        }
        Task::Languages => languages::sample(&root).map(|()| ExitCode::SUCCESS),
        Task::Release(arguments) => {
            release::make(&root, &arguments)?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Publish(arguments) => {
            publish::run(&root, &arguments)?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Semver { baseline } => {
            semver::check(&root, baseline.as_deref())?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Vectors { arguments } => {
            sh::cargo(&root, BUILD)?;
            let here = std::env::current_dir()?;
            let program = root.join("target/debug/bulkhead").display().to_string();
            let all: Vec<_> = arguments.into_iter().chain(["--program".to_owned(), program]).collect();
            sh::exit_code(&here, &root.join("target/debug/bulkhead-vectors"), &all)
        }
    }
}

/// Returns the folder of the workspace, regardless of the current directory.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}
