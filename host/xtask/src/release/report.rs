//! Sizes of the files of a release, and the start time of the program of this machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde::Serialize;

use super::contents::Inputs;
use super::finished::read_from;
use super::platform::Platform;
use super::source::Source;

/// Starts of a program that are measured.
const STARTS: usize = 20;

/// Figures of a release.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    version: String,
    commit: String,
    /// Time of the commit, in seconds since 1970.
    source_date_epoch: u64,
    /// True if the programs were not compiled for a release.
    quick: bool,
    programs: Vec<Program>,
    /// Size of each file, in bytes.
    files: BTreeMap<String, usize>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Program {
    target: &'static str,
    bytes: usize,
    /// Time of `bulkhead --version`, the median in milliseconds; only for the platform of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_ms: Option<f64>,
}

/// Measures the files of a release. The program of this machine is taken out of its archive.
///
/// # Errors
///
/// The program does not start, or prints another version.
pub(crate) fn of(out: &Path, inputs: &Inputs, files: &BTreeMap<String, Vec<u8>>) -> anyhow::Result<Report> {
    let source = &inputs.source;
    let mut programs = Vec::new();
    for (platform, program) in &inputs.programs {
        let is_native = Platform::native() == Some(*platform);
        programs.push(Program {
            target: platform.triple(),
            bytes: program.len(),
            start_ms: if is_native {
                Some(started(out, source, *platform)?)
            } else {
                None
            },
        });
    }
    Ok(Report {
        version: source.version.clone(),
        commit: source.commit.clone(),
        source_date_epoch: source.epoch_s,
        quick: inputs.is_quick,
        programs,
        files: files
            .iter()
            .map(|(name, content)| (name.clone(), content.len()))
            .collect(),
    })
}

/// Starts the program of an archive, and checks its version. Returns the median time in milliseconds.
fn started(out: &Path, source: &Source, platform: Platform) -> anyhow::Result<f64> {
    let name = format!("bulkhead-{}-{}", source.version, platform.triple());
    let archive = out.join(format!("{name}.tar.gz"));
    let folder = tempfile::tempdir().context("making a folder")?;
    let program = folder.path().join("bulkhead");
    unpack(&archive, &format!("{name}/bulkhead"), &program)?;
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let start = Instant::now();
        let output = Command::new(&program).arg("--version").output();
        let output = output.with_context(|| format!("starting the program of {}", archive.display()))?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        let printed = String::from_utf8_lossy(&output.stdout);
        let expected = format!("bulkhead {} ({}, bulkhead:policy@", source.version, source.commit);
        ensure!(
            output.status.success() && printed.starts_with(&expected),
            "the program of {} prints {:?} instead of \"{expected}…)\"; build it from this commit",
            archive.display(),
            printed.trim()
        );
    }
    times.sort_by(f64::total_cmp);
    Ok((times[STARTS / 2] * 10.0).round() / 10.0)
}

fn unpack(archive: &Path, path: &str, to: &Path) -> anyhow::Result<()> {
    fs::write(to, read_from(archive, path)?)?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o755))?)
}

impl Report {
    /// Returns the report as JSON.
    ///
    /// # Errors
    ///
    /// None; the type is the library's.
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Returns the report as tables.
    pub(crate) fn text(&self) -> String {
        let mut out = format!("bulkhead {} ({})\n\n", self.version, self.commit);
        if self.quick {
            out.push_str("Do not publish: the programs were not compiled for a release.\n\n");
        }
        let _ = writeln!(out, "{:<28} {:>12} {:>9}", "TARGET", "BYTES", "START");
        for program in &self.programs {
            let start = program
                .start_ms
                .map_or_else(|| "-".to_owned(), |time| format!("{time:.1} ms"));
            let _ = writeln!(out, "{:<28} {:>12} {start:>9}", program.target, program.bytes);
        }
        let _ = writeln!(out, "\n{:<52} {:>12}", "FILE", "BYTES");
        for (name, bytes) in &self.files {
            let _ = writeln!(out, "{name:<52} {bytes:>12}");
        }
        out.push('\n');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_start_times_of_this_machine_only_and_marks_quick_ones() {
        let program = |target, start_ms| Program {
            target,
            bytes: 40_000_000,
            start_ms,
        };
        let report = Report {
            version: "0.1.0".to_owned(),
            commit: "3f9a1c2e55ab".to_owned(),
            source_date_epoch: 1_700_000_000,
            quick: true,
            programs: vec![
                program("x86_64-unknown-linux-musl", Some(7.25)),
                program("aarch64-unknown-linux-musl", None),
            ],
            files: BTreeMap::from([("SHA256SUMS".to_owned(), 900)]),
        };
        let text = report.text();
        assert!(
            text.contains("x86_64-unknown-linux-musl        40000000    7.2 ms\n"),
            "{text}"
        );
        assert!(
            text.contains("aarch64-unknown-linux-musl       40000000         -\n"),
            "{text}"
        );
        assert!(text.contains("Do not publish"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert_eq!(
            json["programs"][1],
            serde_json::json!({"target": "aarch64-unknown-linux-musl", "bytes": 40_000_000})
        );
        assert_eq!(json["sourceDateEpoch"], 1_700_000_000);
    }
}
