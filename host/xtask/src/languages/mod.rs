//! Plugins in every language and of every kind: create, build, test, with the time of each step; then the example
//! policies and the mistakes.
//!
//! Toolchains come from the package registries, into `target/tools/toolchains`.

mod golden;
mod mistakes;
mod plugin;
mod policies;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use self::plugin::{Plugins, succeed};
use crate::{BUILD, sh, targets};

/// Language, with the commands of its own tests.
type Language = (&'static str, &'static [&'static [&'static str]]);

const LANGUAGES: [Language; 6] = [
    ("rust", &[]),
    ("python", &[&["python3", "-m", "unittest", "--quiet"]]),
    ("javascript", &[&["npm", "test", "--silent"]]),
    (
        "typescript",
        &[
            &["npm", "install", "--silent", "--no-audit", "--no-fund"],
            &["npm", "test", "--silent"],
        ],
    ),
    ("c", &[&["make", "--silent", "test"]]),
    ("go", &[&["go", "test", "./..."]]),
];
const KINDS: [&str; 6] = [
    "health",
    "cluster-taint",
    "filter",
    "score",
    "eviction-check",
    "resource-interpreter",
];
/// Folder of the plugins.
const OUT: &str = "target/languages";
/// Folder of one plugin in each language.
const SAMPLE_OUT: &str = "target/languages-sample";

/// Conformance suite and benchmark of a component.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Suite {
    Runs,
    Skipped,
}

/// Result of one plugin.
struct Row {
    language: &'static str,
    kind: &'static str,
    /// Times of the tests of the language, of the build, and of the conformance suite; none for a part that did not run.
    times: [Option<Duration>; 3],
    bytes: u64,
    error: Option<String>,
}

/// Creates, builds and tests a plugin of each kind in each language, then the example policies and the mistakes.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let program = program(root)?;
    let plugins = Plugins::new(root, &program, OUT)?;
    let of_language = |language| KINDS.into_iter().map(move |kind| (language, kind, Suite::Runs));
    templates(&plugins, LANGUAGES.into_iter().flat_map(of_language))?;
    policies::check(root, &plugins)?;
    mistakes::check(root, &plugins)
}

/// Creates, builds and tests one plugin in each language, each of another kind. The component in TypeScript, whose engine
/// is that of the one in JavaScript, is built and not run, because its compilation takes a minute.
pub(crate) fn sample(root: &Path) -> anyhow::Result<()> {
    let program = program(root)?;
    let plugins = Plugins::new(root, &program, SAMPLE_OUT)?;
    // The suites of filters and scores take long in an interpreter. C and Go get them.
    let kinds = KINDS.into_iter().cycle().skip(4);
    let suite = |language: &Language| {
        if language.0 == "typescript" {
            Suite::Skipped
        } else {
            Suite::Runs
        }
    };
    let selected = LANGUAGES.into_iter().zip(kinds);
    templates(
        &plugins,
        selected.map(|(language, kind)| (language, kind, suite(&language))),
    )
}

/// Builds the program of the demo, and installs the Rust target of its plugins. Returns the path of the program.
fn program(root: &Path) -> anyhow::Result<PathBuf> {
    targets::ensure(targets::PLUGIN, "a plugin in Rust")?;
    sh::cargo(root, BUILD)?;
    Ok(root.join("target/debug/bulkhead"))
}

/// Creates, builds and tests plugins. Prints a table, and fails if one of them fails.
fn templates(
    plugins: &Plugins<'_>,
    selected: impl Iterator<Item = (Language, &'static str, Suite)>,
) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for ((language, own_tests), kind, suite) in selected {
        println!("-- {language} {kind}");
        let mut row = Row {
            language,
            kind,
            times: [None; 3],
            bytes: 0,
            error: None,
        };
        if let Err(error) = one(plugins, own_tests, suite, &mut row) {
            eprintln!("error: {language} {kind}: {error:#}");
            row.error = Some(format!("{error:#}"));
        }
        rows.push(row);
    }
    print!("\n{}", table(&rows));
    let failed = rows.iter().filter(|row| row.error.is_some()).count();
    if failed > 0 {
        bail!("{failed} of {} plugins failed", rows.len());
    }
    Ok(())
}

fn one(plugins: &Plugins<'_>, own_tests: &[&[&str]], suite: Suite, row: &mut Row) -> anyhow::Result<()> {
    let name = format!("{}-{}", row.language, row.kind);
    let folder = plugins.create(&name, row.language, row.kind)?;
    let timed = |run: &mut dyn FnMut() -> anyhow::Result<()>| {
        let start = Instant::now();
        run().map(|()| Some(start.elapsed()))
    };
    row.times[0] = timed(&mut || {
        for line in own_tests {
            let [program, arguments @ ..] = line else { continue };
            let mut command = Command::new(program);
            command.args(arguments).current_dir(&folder);
            succeed(command)?;
        }
        Ok(())
    })?;
    row.times[1] = timed(&mut || plugins.run(&folder, &["build"]).map(drop))?;
    let component = folder.join(format!("{name}.wasm"));
    row.bytes = fs::metadata(&component)
        .with_context(|| format!("reading {}", component.display()))?
        .len();
    if suite == Suite::Runs {
        row.times[2] = timed(&mut || plugins.run(&folder, &["test"]).map(drop))?;
        plugins.run(&folder, &["bench"])?;
    }
    Ok(())
}

fn table(rows: &[Row]) -> String {
    let mut out = format!(
        "{:<10} {:<20} {:>9} {:>9} {:>9} {:>9} RESULT\n",
        "LANGUAGE", "KIND", "OWN TESTS", "BUILD", "TEST", "KIB"
    );
    for row in rows {
        let shown = |time: Duration| format!("{:.1}s", time.as_secs_f64());
        let [own_tests, build, test] = row.times.map(|time| time.map_or_else(|| "–".to_owned(), shown));
        let result = if row.error.is_some() { "failed" } else { "passed" };
        let _ = writeln!(
            out,
            "{:<10} {:<20} {own_tests:>9} {build:>9} {test:>9} {:>9} {result}",
            row.language,
            row.kind,
            row.bytes / 1024
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_plugin() {
        let row = |kind, error: Option<&str>| Row {
            language: "go",
            kind,
            times: [Some(Duration::from_millis(1_250)), Some(Duration::from_secs(8)), None],
            bytes: 2_727_073,
            error: error.map(str::to_owned),
        };
        let expected = [
            "LANGUAGE   KIND                 OWN TESTS     BUILD      TEST       KIB RESULT",
            "go         health                    1.2s      8.0s         –      2663 passed",
            "go         score                     1.2s      8.0s         –      2663 failed",
            "",
        ];
        assert_eq!(
            table(&[row("health", None), row("score", Some("no"))]),
            expected.join("\n")
        );
    }
}
