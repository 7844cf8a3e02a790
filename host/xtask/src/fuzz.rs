//! Fuzz targets of `tests/fuzz`, built with counters of the executed branches and run by libFuzzer.
//!
//! The compiler of the workspace suffices: no part needs a nightly version. A finding is a file in
//! `target/fuzz/findings`; it becomes an input in `tests/it/corpus`, which the tests read from then on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

use crate::sh;

/// Folder of programs, inputs and findings.
const FOLDER: &str = "target/fuzz";
/// Folder with a source file for each target.
const TARGETS: &str = "tests/fuzz/targets";
/// Inputs to start from, for every target and in folders of their names.
const CORPUS: &str = "tests/it/corpus";
/// Further inputs to start from, by target.
const VALID: &[(&str, &str)] = &[("script", "examples/plugins/lua"), ("yaml", "examples/nginx-divided")];
/// Flags of the compiler that libFuzzer needs, as cargo-fuzz sets them without a sanitizer.
const FLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
];
/// Separator of `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\u{1f}";
/// Maximum length of an input, in bytes.
const LENGTH_MAX: &str = "-max_len=65536";
/// Maximum time of one input, in seconds.
const TIMEOUT: &str = "-timeout=20";
/// Maximum memory of a program, in MiB: the budget of a script, and the tree of a text.
const MEMORY_MAX: &str = "-rss_limit_mb=2048";

/// Runs the targets one after the other, all without a selection, for some seconds each.
///
/// # Errors
///
/// A target does not exist or cannot be built, or an input makes it fail.
pub(crate) fn check(root: &Path, selected: &[String], seconds: u32) -> anyhow::Result<()> {
    let all = targets(root)?;
    let unknown = selected.iter().find(|name| !all.contains(name));
    if let Some(name) = unknown {
        bail!("there is no fuzz target {name}; there are {}", all.join(", "));
    }
    let programs = build(root)?;
    let mut failures = Vec::new();
    for name in all.iter().filter(|name| selected.is_empty() || selected.contains(name)) {
        println!("-- {name}");
        if let Err(error) = run(root, &programs, name, seconds) {
            failures.push(format!("{error:#}"));
        }
    }
    ensure!(
        failures.is_empty(),
        "{}; put each input of {FOLDER}/findings into a folder of {CORPUS}, and run the tests of bulkhead-it",
        failures.join("; ")
    );
    Ok(())
}

/// Returns the names of the targets, in order.
fn targets(root: &Path) -> anyhow::Result<Vec<String>> {
    let folder = root.join(TARGETS);
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// Builds all targets. Returns the folder of the programs. The flags hold for neither build scripts nor macros, because
/// the platform is named.
fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let platform = platform()?;
    let folder = format!("{FOLDER}/build");
    let arguments = [
        "build",
        "--locked",
        "--package",
        "bulkhead-fuzz",
        "--features",
        "targets",
        "--bins",
        "--target",
        &platform,
        "--target-dir",
        &folder,
    ];
    sh::cargo_with(root, &arguments, &[("CARGO_ENCODED_RUSTFLAGS", &FLAGS.join(SEPARATOR))])?;
    Ok(root.join(folder).join(platform).join("debug"))
}

/// Returns the Rust target of this machine.
fn platform() -> anyhow::Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed = std::process::Command::new(rustc)
        .arg("-vV")
        .output()
        .context("asking rustc for its version")?;
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let platform = printed.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(platform.context("rustc -vV names no host")?.to_owned())
}

/// Runs a target. New inputs are kept for the next run.
fn run(root: &Path, programs: &Path, name: &str, seconds: u32) -> anyhow::Result<()> {
    let folder = |part: &str| -> anyhow::Result<PathBuf> {
        let path = root.join(FOLDER).join(part);
        fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(path)
    };
    let (inputs, findings) = (folder(&format!("inputs/{name}"))?, folder("findings")?);
    let mut arguments = vec![
        format!("-max_total_time={seconds}"),
        format!("-artifact_prefix={}/{name}-", findings.display()),
        LENGTH_MAX.to_owned(),
        TIMEOUT.to_owned(),
        MEMORY_MAX.to_owned(),
        inputs.display().to_string(),
    ];
    arguments.extend(seeds(root, name).iter().map(|path| path.display().to_string()));
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    sh::run(root, &programs.join(format!("fuzz-{name}")), &arguments)
}

/// Returns the folders with inputs to start from.
fn seeds(root: &Path, name: &str) -> Vec<PathBuf> {
    let corpus = root.join(CORPUS);
    let valid = VALID.iter().filter(|(target, _)| *target == name);
    let folders = [corpus.join("any"), corpus.join(name)].into_iter();
    let folders = folders.chain(valid.map(|(_, folder)| root.join(folder)));
    folders.filter(|folder| folder.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_program_and_folders_to_start_from() {
        let root = crate::root();
        let manifest = fs::read_to_string(root.join("tests/fuzz/Cargo.toml")).unwrap();
        let targets = targets(&root).unwrap();
        assert!(targets.len() >= 7, "{targets:?}");
        for name in &targets {
            let program = format!("name = \"fuzz-{name}\"\npath = \"targets/{name}.rs\"\n");
            assert!(manifest.contains(&program), "{name}");
            assert!(!seeds(&root, name).is_empty(), "{name}");
        }
        assert_eq!(manifest.matches("[[bin]]").count(), targets.len());
        for (name, folder) in VALID {
            assert!(targets.iter().any(|target| target == name), "{name}");
            assert!(root.join(folder).is_dir(), "{folder}");
        }
    }

    #[test]
    fn a_target_that_does_not_exist_is_refused_with_those_that_do() {
        let error = check(&crate::root(), &["toml".to_owned()], 1).unwrap_err().to_string();
        assert!(error.starts_with("there is no fuzz target toml; there are "), "{error}");
    }
}
