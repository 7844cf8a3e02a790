//! The example policies in every language: the same cases, the same verdicts, and a table of their cost.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::golden;
use super::plugin::Plugins;

/// Policy: name, kind, and a field of the manifest of its script. A component describes itself.
type Policy = (&'static str, &'static str, &'static str);
/// Language: name, extension of a source, and its place in a plugin.
type Language = (&'static str, &'static str, &'static str);
/// Replies to the cases, by name.
type Replies = Vec<(String, Value)>;

const POLICIES: [Policy; 15] = [
    (
        "rollout-health",
        "health",
        "kinds: [{apiVersion: argoproj.io/v1alpha1, kind: Rollout}]",
    ),
    (
        "certificate-health",
        "health",
        "kinds: [{apiVersion: cert-manager.io/v1, kind: Certificate}]",
    ),
    (
        "replica-share",
        "health",
        "kinds: [{apiVersion: apps/v1, kind: StatefulSet}]",
    ),
    ("condition-history", "cluster-taint", "taintKeys: [example.io/flapping]"),
    ("nearly-full", "cluster-taint", "taintKeys: [example.io/nearly-full]"),
    ("label-filter", "filter", ""),
    ("version-floor", "filter", ""),
    ("cost-by-region", "score", ""),
    ("free-share", "score", ""),
    ("provider-spread", "score", ""),
    ("business-hours", "eviction-check", ""),
    ("quorum-by-zone", "eviction-check", ""),
    ("backup-first", "eviction-check", ""),
    (
        "game-server",
        "resource-interpreter",
        "kinds: [{apiVersion: example.io/v1, kind: GameServer}]",
    ),
    (
        "pipeline",
        "resource-interpreter",
        "kinds: [{apiVersion: example.io/v1, kind: Pipeline}]",
    ),
];
/// Languages. The first one that replies is the reference.
const LANGUAGES: [Language; 7] = [
    ("rust", "rs", "src/lib.rs"),
    ("lua", "lua", ""),
    ("python", "py", "plugin.py"),
    ("javascript", "js", "src/plugin.js"),
    ("typescript", "ts", "src/plugin.ts"),
    ("c", "c", "plugin.c"),
    ("go", "go", "plugin.go"),
];
/// Budgets of the languages that take many steps for a list, for a template that has none.
const BUDGETS: [(&str, &str); 4] = [
    ("python", "budget: {steps: 100000000}\n"),
    ("javascript", "budget: {steps: 1000000000}\n"),
    ("typescript", "budget: {steps: 1000000000}\n"),
    ("go", "budget: {steps: 100000000}\n"),
];
/// Page with the table.
const PAGE: &str = "docs/src/reference/plugin-languages.md";

/// Cost of a policy in a language.
struct Cost {
    policy: &'static str,
    language: &'static str,
    bytes: u64,
    load: Duration,
    /// Steps, bytes of memory and nanoseconds of a call about the first case.
    steps: u64,
    memory_bytes: u64,
    time_ns: u64,
}

/// Builds and tests all, compares their replies, and writes or prints the table.
pub(super) fn check(root: &Path, plugins: &Plugins<'_>) -> anyhow::Result<()> {
    let (mut costs, mut failed) = (Vec::new(), Vec::new());
    for policy in POLICIES {
        let (name, ..) = policy;
        let mut reference = None;
        for language in LANGUAGES {
            let (language_name, ..) = language;
            println!("-- {name} in {language_name}");
            match one(root, plugins, (policy, language), &mut reference) {
                Ok(cost) => costs.push(cost),
                Err(error) => {
                    eprintln!("error: {name} in {language_name}: {error:#}");
                    failed.push(format!("{name} in {language_name}"));
                }
            }
        }
    }
    let table = table(&costs);
    print!("\n{table}");
    if !failed.is_empty() {
        bail!("{} failed", failed.join(", "));
    }
    // Times differ from run to run, so the table is written on request and never compared.
    if golden::is_update() {
        golden::write(&root.join(PAGE), "cost", &table)?;
    }
    Ok(())
}

/// Builds and tests a policy in one language, and compares its replies with the reference, or sets it.
fn one(
    root: &Path,
    plugins: &Plugins<'_>,
    (policy, language): (Policy, Language),
    reference: &mut Option<Replies>,
) -> anyhow::Result<Cost> {
    let folder = make(root, plugins, policy, language)?;
    let start = Instant::now();
    plugins.run(&folder, &["inspect"])?;
    let load = start.elapsed();
    plugins.run(&folder, &["test"])?;
    let replies = replies(plugins, &folder)?;
    match reference {
        None => *reference = Some(replies),
        Some(expected) if *expected == replies => (),
        Some(expected) => bail!("the replies are\n{replies:#?}\nand in another language\n{expected:#?}"),
    }
    cost(plugins, &folder, (policy.0, language.0), load)
}

/// Creates a plugin from a template with the source and the cases of a policy, and builds it.
fn make(
    root: &Path,
    plugins: &Plugins<'_>,
    (policy, kind, field): Policy,
    (language, extension, place): Language,
) -> anyhow::Result<PathBuf> {
    let folder = plugins.create(&format!("{language}/{policy}"), language, kind)?;
    let examples = root.join("examples/plugins");
    let place = if place.is_empty() {
        format!("{policy}.lua")
    } else {
        place.to_owned()
    };
    copy(
        &examples.join(format!("{language}/{policy}.{extension}")),
        &folder.join(place),
    )?;
    copy(
        &examples.join(format!("cases/{policy}.yaml")),
        &folder.join("cases/cases.yaml"),
    )?;
    if language == "lua" {
        // The manifest of the template is about the object and the taint of the template.
        let manifest = format!("name: {policy}\nlua: {policy}.lua\n{field}\n");
        fs::write(folder.join("plugin.yaml"), manifest).context("writing plugin.yaml")?;
    } else {
        // An object of 1 MiB, which the suite tries, has tens of thousands of elements in a list.
        let file = folder.join("plugin.yaml");
        let mut manifest = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let budget = BUDGETS.iter().find(|(of, _)| *of == language);
        if let Some((_, budget)) = budget.filter(|_| !manifest.contains("budget:")) {
            manifest.push_str(budget);
            fs::write(&file, manifest).with_context(|| format!("writing {}", file.display()))?;
        }
        plugins.run(&folder, &["build"])?;
    }
    Ok(folder)
}

pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Returns the replies of a plugin to its cases, by name.
fn replies(plugins: &Plugins<'_>, folder: &Path) -> anyhow::Result<Replies> {
    let file = folder.join("cases/cases.yaml");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let mut found = Vec::new();
    for name in text.lines().filter_map(|line| line.strip_prefix("  - name: ")) {
        let output = plugins.run(
            folder,
            &["run", "--input", "cases/cases.yaml", "--name", name, "--output", "json"],
        )?;
        let data: Value = serde_json::from_str(&output).with_context(|| format!("reading {output}"))?;
        found.push((name.to_owned(), data["reply"].clone()));
    }
    if found.is_empty() {
        bail!("{} has no cases", file.display());
    }
    Ok(found)
}

fn cost(
    plugins: &Plugins<'_>,
    folder: &Path,
    (policy, language): (&'static str, &'static str),
    load: Duration,
) -> anyhow::Result<Cost> {
    let extension = if language == "lua" { "lua" } else { "wasm" };
    let code = folder.join(format!("{policy}.{extension}"));
    let bytes = fs::metadata(&code)
        .with_context(|| format!("reading {}", code.display()))?
        .len();
    let output = plugins.run(folder, &["bench", "--output", "json"])?;
    let data: Value = serde_json::from_str(&output).with_context(|| format!("reading {output}"))?;
    let number = |field: &str| data[0][field].as_u64().unwrap_or(0);
    Ok(Cost {
        policy,
        language,
        bytes,
        load,
        steps: number("steps"),
        memory_bytes: number("memoryBytes"),
        time_ns: number("timeNs"),
    })
}

/// Returns a Markdown table, with a dash for each number that the program does not report.
fn table(costs: &[Cost]) -> String {
    let mut out = String::from(
        "| policy | language | size | first load | steps | memory | call |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for cost in costs {
        let or_dash = |number: u64, shown: String| if number == 0 { "–".to_owned() } else { shown };
        let _ = writeln!(
            out,
            "| {} | {} | {} KiB | {:.1} s | {} | {} | {:.0} µs |",
            cost.policy,
            cost.language,
            cost.bytes.div_ceil(1024),
            cost.load.as_secs_f64(),
            or_dash(cost.steps, cost.steps.to_string()),
            or_dash(cost.memory_bytes, format!("{} KiB", cost.memory_bytes / 1024)),
            Duration::from_nanos(cost.time_ns).as_secs_f64() * 1e6,
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_a_source_in_every_language_and_cases() {
        let examples = crate::root().join("examples/plugins");
        for (policy, ..) in POLICIES {
            assert!(examples.join(format!("cases/{policy}.yaml")).is_file(), "{policy}");
            for (language, extension, _) in LANGUAGES {
                let source = examples.join(format!("{language}/{policy}.{extension}"));
                assert!(source.is_file(), "{}", source.display());
            }
        }
    }

    #[test]
    fn the_table_has_dashes_for_what_a_language_does_not_report() {
        let cost = Cost {
            policy: "business-hours",
            language: "lua",
            bytes: 900,
            load: Duration::from_millis(120),
            steps: 0,
            memory_bytes: 0,
            time_ns: 14_400,
        };
        let row = "| business-hours | lua | 1 KiB | 0.1 s | – | – | 14 µs |\n";
        assert!(table(&[cost]).ends_with(row));
    }
}
