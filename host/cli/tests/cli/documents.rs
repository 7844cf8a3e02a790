//! Shell blocks of README.md and of the pages in `docs/src`: they run, and shown output is compared.
//!
//! A block `sh` is a script. A block `console` has a command in each line that starts with `$ `, with its output below
//! it. A `text` block after a shell block of the same section shows the output of the last command; a line `[…]` in it
//! stands for any number of lines. The blocks of a page run in order, in a copy of a checkout.
//!
//! Two marks exempt a block: `,norun` ([`NOT_RUN`] has the reason) and `,e2e` (`cargo xtask e2e` runs it on a real
//! control plane).

mod block;
mod not_run;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use self::block::{Block, blocks, commands, is_as_shown};
use self::not_run::NOT_RUN;
use crate::embedded::has_kubectl;

/// Timeout of a block, long enough to compile a plugin on a busy machine.
const PATIENCE: Duration = Duration::from_mins(10);
/// Command that builds everything before it runs the main example, and the part of it that a test can run.
const DEMO: (&str, &str) = (
    "cargo xtask demo",
    "bulkhead simulate examples/nginx-divided/scenario.yaml",
);
/// Sorts of blocks without commands.
const OTHER_LANGUAGES: [&str; 11] = [
    "c",
    "go",
    "javascript",
    "json",
    "lua",
    "promql",
    "python",
    "rust",
    "text",
    "typescript",
    "yaml",
];
/// Pages with blocks for `cargo xtask e2e`.
const E2E_PAGES: [&str; 2] = [
    "docs/src/tutorials/beside-karmada.md",
    "docs/src/tutorials/signed-plugin.md",
];

macro_rules! pages {
    ($($test:ident: $page:literal),* $(,)?) => {
        /// Pages with blocks that run.
        const PAGES: &[&str] = &[$($page),*];
        $(
            #[test]
            fn $test() {
                check($page);
            }
        )*
    };
}

pages! {
    the_commands_of_the_readme_work: "README.md",
    the_commands_of_the_introduction_work: "docs/src/introduction.md",
    the_commands_about_evictions_work: "docs/src/concepts/eviction.md",
    the_commands_about_modes_work: "docs/src/concepts/modes.md",
    the_commands_about_plugin_failures_work: "docs/src/concepts/plugin-failures.md",
    the_commands_about_policies_and_plugins_work: "docs/src/concepts/policies-and-plugins.md",
    the_commands_about_promises_work: "docs/src/explanation/promises.md",
    a_plugin_is_debugged_as_shown: "docs/src/how-to/debug-a-plugin.md",
    a_cluster_is_drained_as_shown: "docs/src/how-to/drain-a-cluster.md",
    the_plugin_of_kubectl_is_installed_as_shown: "docs/src/how-to/install.md",
    a_workload_fails_back_as_shown: "docs/src/how-to/fail-back.md",
    evictions_are_paused_as_shown: "docs/src/how-to/pause-evictions.md",
    a_journal_is_read_as_shown: "docs/src/how-to/read-a-journal.md",
    the_logs_are_read_as_shown: "docs/src/how-to/read-the-logs.md",
    an_eviction_is_traced_as_shown: "docs/src/how-to/trace-an-eviction.md",
    a_webhook_interpreter_is_ported_as_shown: "docs/src/how-to/port-a-webhook-interpreter.md",
    a_script_of_argo_cd_is_ported_as_shown: "docs/src/how-to/port-an-argo-cd-script.md",
    priorities_are_set_as_shown: "docs/src/how-to/set-priorities.md",
    the_brake_is_set_as_shown: "docs/src/how-to/set-the-brake.md",
    simulations_and_trials_run_as_shown: "docs/src/how-to/simulate-and-trials.md",
    the_embedded_control_plane_runs_as_shown: "docs/src/how-to/try-with-kubectl.md",
    the_console_has_the_journal_as_shown: "docs/src/how-to/use-the-console.md",
    the_commands_about_interpreters_work: "docs/src/reference/interpreters.md",
    a_schema_is_printed_as_shown: "docs/src/reference/schemas.md",
    the_tutorial_of_the_first_federation_works: "docs/src/tutorials/first-federation.md",
    the_tutorial_of_the_first_script_works: "docs/src/tutorials/first-lua-script.md",
    the_tutorial_of_the_first_component_works: "docs/src/tutorials/first-wasm-check.md",
    the_tutorial_about_c_works: "docs/src/tutorials/plugin-in-c.md",
    the_tutorial_about_go_works: "docs/src/tutorials/plugin-in-go.md",
    the_tutorial_about_javascript_works: "docs/src/tutorials/plugin-in-javascript.md",
    the_tutorial_about_python_works: "docs/src/tutorials/plugin-in-python.md",
    the_tutorial_about_typescript_works: "docs/src/tutorials/plugin-in-typescript.md",
    the_tutorial_about_moving_scripts_works: "docs/src/tutorials/move-lua-scripts.md",
    the_tutorial_of_a_maintenance_works: "docs/src/tutorials/what-if-before-maintenance.md",
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Copies a folder, without build output.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_file() {
            fs::copy(&path, &to).unwrap();
        } else if entry.file_name() != "target" {
            copy(&path, &to);
        }
    }
}

/// Copy of the parts of a checkout that the blocks of a page use.
struct Checkout {
    folder: PathBuf,
}

impl Checkout {
    fn new(page: &str) -> Self {
        let name = page.trim_end_matches(".md").replace('/', "-");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("documents").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("target")).unwrap();
        copy(&root().join("examples"), &folder.join("examples"));
        let guests = root().join("target/guests");
        assert!(
            guests.is_dir(),
            "{} is missing; run `cargo xtask guests`",
            guests.display()
        );
        symlink(guests, folder.join("target/guests")).unwrap();
        Self { folder }
    }

    /// Runs a script with the program in the path. Returns the exit code, and both streams as a terminal shows them.
    #[expect(clippy::disallowed_methods, reason = "it waits for another process")]
    fn run(&self, script: &str) -> (Option<i32>, String) {
        let shared = |name: &str| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let programs = Path::new(env!("CARGO_BIN_EXE_bulkhead")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let output = self.folder.join("target/output.txt");
        let file = File::create(&output).unwrap();
        let mut child = Command::new("bash")
            .args(["-c", &format!("set -euo pipefail\n{script}")])
            .current_dir(&self.folder)
            .env("PATH", path)
            .env("XDG_CACHE_HOME", shared("caches"))
            .env("XDG_STATE_HOME", self.folder.join("target/state"))
            .env("CARGO_TARGET_DIR", shared("plugin-builds"))
            .env("KUBECACHEDIR", self.folder.join("target/kubectl-cache"))
            .env_remove("KUBECONFIG")
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .process_group(0)
            .spawn()
            .unwrap();
        let started = Instant::now();
        let mut status = child.try_wait().unwrap();
        while status.is_none() && started.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
            status = child.try_wait().unwrap();
        }
        // A failed block leaves its background processes behind; they are in the process group of the shell.
        let group = format!("-{}", child.id());
        let _ = Command::new("kill")
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        let _ = child.wait();
        let text = String::from_utf8_lossy(&fs::read(output).unwrap()).into_owned();
        (status.and_then(|status| status.code()), text)
    }
}

/// Runs the blocks of a page in order.
fn check(page: &str) {
    let blocks = blocks(&read(page));
    let runs = |block: &&Block| block.language == "sh" || block.language == "console";
    if blocks.iter().filter(runs).any(|block| block.text.contains("kubectl ")) && !has_kubectl(page) {
        return;
    }
    let checkout = Checkout::new(page);
    for (at, block) in blocks.iter().enumerate() {
        let next = blocks
            .get(at + 1)
            .filter(|next| next.language == "text" && next.section == block.section);
        let below = next.map(|next| next.text.as_str());
        let mut steps = match block.language.as_str() {
            "sh" => vec![(block.text.clone(), String::new())],
            "console" => commands(&block.text),
            _ => continue,
        };
        if let (Some(below), Some((_, shown))) = (below, steps.last_mut()) {
            *shown += below;
        }
        for (script, shown) in steps {
            let script = if script == DEMO.0 { DEMO.1.to_owned() } else { script };
            let (code, output) = checkout.run(&script);
            let place = format!("{page}:{}:\n{script}\n", block.line);
            // A command whose answer is no has exit code 1, and its page shows that answer.
            let ends_well = code == Some(0) || (code == Some(1) && block.language == "console" && !shown.is_empty());
            assert!(ends_well, "{place}exit code {code:?}:\n{output}");
            assert!(
                shown.is_empty() || is_as_shown(&output, &shown),
                "{place}prints:\n{output}\nthe page shows:\n{shown}"
            );
        }
    }
}

/// Collects the pages below a folder.
fn pages_below(folder: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            pages_below(&name, found);
        } else if entry.path().extension().is_some_and(|extension| extension == "md") {
            found.push(name);
        }
    }
}

/// Returns every page with its blocks.
fn all() -> Vec<(String, Vec<Block>)> {
    let mut names = vec!["README.md".to_owned()];
    pages_below("docs/src", &mut names);
    names.sort();
    let with_blocks = |name: String| {
        let found = blocks(&read(&name));
        (name, found)
    };
    names.into_iter().map(with_blocks).collect()
}

/// Returns the pages that have a block of one of these languages.
fn pages_with(languages: &[&str]) -> Vec<String> {
    let has = |blocks: &[Block]| blocks.iter().any(|block| languages.contains(&block.language.as_str()));
    all()
        .into_iter()
        .filter(|(_, blocks)| has(blocks))
        .map(|(page, _)| page)
        .collect()
}

#[test]
fn every_page_with_commands_has_a_test() {
    let mut pages = PAGES.to_vec();
    pages.sort_unstable();
    assert_eq!(pages_with(&["sh", "console"]), pages);
    assert_eq!(pages_with(&["sh,e2e", "console,e2e"]), E2E_PAGES);
}

#[test]
fn every_block_that_is_not_run_has_a_reason() {
    let mut found = Vec::new();
    for (page, blocks) in all() {
        let not_run = blocks
            .iter()
            .filter(|block| ["sh,norun", "console,norun"].contains(&block.language.as_str()));
        found.extend(not_run.map(|block| (page.clone(), block.text.lines().next().unwrap_or_default().to_owned())));
    }
    found.sort();
    let mut listed: Vec<_> = NOT_RUN
        .iter()
        .map(|(page, line, _)| ((*page).to_owned(), (*line).to_owned()))
        .collect();
    listed.sort();
    assert_eq!(
        found, listed,
        "NOT_RUN must list exactly the blocks with the mark norun"
    );
    let without: Vec<_> = NOT_RUN.iter().filter(|(_, _, reason)| reason.is_empty()).collect();
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn every_block_has_a_known_sort() {
    let shell: BTreeSet<String> = ["sh", "console"]
        .iter()
        .flat_map(|language| ["", ",norun", ",e2e"].map(|mark| format!("{language}{mark}")))
        .collect();
    let is_known =
        |block: &&Block| shell.contains(&block.language) || OTHER_LANGUAGES.contains(&block.language.as_str());
    let mut unknown = Vec::new();
    for (page, blocks) in all() {
        let strange = blocks.iter().filter(|block| !is_known(block));
        unknown.extend(strange.map(|block| format!("{page}:{}: {:?}", block.line, block.language)));
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn the_demo_runs_the_example_that_stands_in_for_it() {
    let example = DEMO.1.split_whitespace().last().unwrap();
    assert!(
        read("host/xtask/src/main.rs").contains(&format!("\"{example}\"")),
        "{example}"
    );
}
