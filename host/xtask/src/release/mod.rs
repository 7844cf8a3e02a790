//! `cargo xtask release`: everything that a user installs, from one commit.
//!
//! A release is a function of the commit: two runs give the same bytes, on any machine. It needs package indexes and
//! no other part of the internet, no container runtime and no root. Start reading at [`make`].

mod compile;
mod contents;
mod finished;
mod graph;
mod image;
mod kubernetes;
mod licences;
mod pack;
mod platform;
mod report;
mod sbom;
mod sign;
mod source;
mod toolchain;
pub(crate) mod verify;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};

use self::contents::Inputs;
pub(crate) use self::finished::Finished;
pub(crate) use self::platform::Platform;
pub(crate) use self::sign::{COSIGN, Signer};
use self::source::{Accepts, Source};
use self::toolchain::Toolchain;
use crate::{BUILD, sh};

/// Bound of a compiled program, in bytes.
const PROGRAM_BYTES_MAX: usize = 60_000_000;
/// File with the digests of all other files but the report.
pub(crate) const CHECKSUMS: &str = "SHA256SUMS";
/// File with sizes and start times, which differ between machines.
const REPORT: &str = "report.json";

/// Options of a release.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// Platform to build for; repeatable; all if omitted, and the one of this machine with --quick.
    #[arg(long = "target", value_enum, value_name = "TARGET")]
    platforms: Vec<Platform>,
    /// Folder for the files; its content is replaced [default: target/release-package, or target/release-quick].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Package a program that exists instead of compiling one: checks everything but the compilation.
    #[arg(long)]
    quick: bool,
    /// Program to package [default: the one of the development profile, which is built].
    #[arg(long, value_name = "FILE", requires = "quick")]
    program: Option<PathBuf>,
    /// Repository that the image will be pushed to, as manifests name it.
    #[arg(long, value_name = "REPOSITORY", default_value = "bulkhead")]
    image: String,
    /// URL of the folder that archives will be downloaded from, for the manifest of krew; without it, the manifest
    /// names files.
    #[arg(long, value_name = "URL")]
    download_url: Option<String>,
    /// Build although the checkout has changes that are in no commit.
    #[arg(long)]
    allow_dirty: bool,
    /// Folder for compiled files.
    #[arg(long, value_name = "DIR", default_value = "target")]
    target_dir: PathBuf,
    /// Key of cosign that signs the checksums, as a file or as a URI of a key service. The variable COSIGN_PASSWORD has
    /// the password of a file.
    #[arg(long, value_name = "KEY")]
    sign_key: Option<String>,
}

/// Makes the files of a release, writes and checks them, and prints their sizes.
///
/// # Errors
///
/// A step fails, a program exceeds its bound, or two runs over the same programs differ.
pub(crate) fn make(root: &Path, arguments: &Arguments) -> anyhow::Result<PathBuf> {
    let start = Instant::now();
    let is_any = arguments.allow_dirty || arguments.quick;
    let source = Source::read(root, if is_any { Accepts::Any } else { Accepts::Clean })?;
    let platforms = platforms(arguments)?;
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| root.join(default_out(arguments.quick)));
    ensure_replaceable(&out)?;
    let (programs, licences) = if arguments.quick {
        (packaged(root, arguments, &platforms)?, Vec::new())
    } else {
        let toolchain = Toolchain::ensure(root, &platforms)?;
        let programs = compiled(root, arguments, &toolchain, &source, &platforms)?;
        (programs, toolchain.licences()?)
    };
    let inputs = Inputs {
        source,
        programs,
        licences,
        image: arguments.image.clone(),
        download_url: arguments.download_url.clone(),
        is_quick: arguments.quick,
    };
    let files = contents::of(root, &inputs)?;
    if !arguments.quick {
        repeated(&files, &contents::of(root, &inputs)?)?;
    }
    write(&out, &files)?;
    verify::folder(&out, &inputs.source, &arguments.image)?;
    if let Some(key) = &arguments.sign_key {
        Signer::ensure(root, key)?.files(&out)?;
    }
    let report = report::of(&out, &inputs, &files)?;
    fs::write(out.join(REPORT), report.json()?).with_context(|| format!("writing {REPORT}"))?;
    print!("{}", report.text());
    println!(
        "{} files in {}, checked, {} s",
        files.len(),
        out.display(),
        start.elapsed().as_secs()
    );
    Ok(out)
}

fn platforms(arguments: &Arguments) -> anyhow::Result<Vec<Platform>> {
    let mut platforms = arguments.platforms.clone();
    if platforms.is_empty() && arguments.quick {
        platforms.extend(Platform::native());
        ensure!(
            !platforms.is_empty(),
            "a release has no program for this machine; name one with --target"
        );
    } else if platforms.is_empty() {
        platforms = vec![Platform::X86, Platform::Arm];
    }
    platforms.sort();
    platforms.dedup();
    Ok(platforms)
}

/// Programs by platform.
type Programs = BTreeMap<Platform, Vec<u8>>;

/// Builds the program for each platform.
fn compiled(
    root: &Path,
    arguments: &Arguments,
    toolchain: &Toolchain,
    source: &Source,
    platforms: &[Platform],
) -> anyhow::Result<Programs> {
    let (folder, mut programs) = (root.join(&arguments.target_dir), Programs::new());
    for platform in platforms {
        let program = compile::build(root, toolchain, source, *platform, &folder)?;
        let content = fs::read(&program).with_context(|| format!("reading {}", program.display()))?;
        ensure!(
            content.len() <= PROGRAM_BYTES_MAX,
            "{}: {} bytes exceed the bound of {PROGRAM_BYTES_MAX}",
            program.display(),
            content.len()
        );
        programs.insert(*platform, content);
    }
    Ok(programs)
}

/// Reads one program that exists, for each platform.
fn packaged(root: &Path, arguments: &Arguments, platforms: &[Platform]) -> anyhow::Result<Programs> {
    let program = if let Some(program) = &arguments.program {
        program.clone()
    } else {
        sh::cargo(root, BUILD)?;
        root.join("target/debug/bulkhead")
    };
    let content = fs::read(&program).with_context(|| format!("reading {}", program.display()))?;
    Ok(platforms.iter().map(|platform| (*platform, content.clone())).collect())
}

/// Compares two runs over the same programs.
fn repeated(first: &BTreeMap<String, Vec<u8>>, second: &BTreeMap<String, Vec<u8>>) -> anyhow::Result<()> {
    let differ: Vec<_> = first
        .iter()
        .filter(|(name, content)| second.get(*name) != Some(content))
        .map(|(name, _)| name.as_str())
        .collect();
    ensure!(
        differ.is_empty(),
        "two runs over the same programs differ in {}",
        differ.join(", ")
    );
    Ok(())
}

/// Returns the folder for the files of a release. Cargo uses no folder of this name.
fn default_out(is_quick: bool) -> &'static str {
    if is_quick {
        "target/release-quick"
    } else {
        "target/release-package"
    }
}

/// Refuses a folder that has files of something else.
fn ensure_replaceable(out: &Path) -> anyhow::Result<()> {
    if !out.exists() {
        return Ok(());
    }
    let mut entries = fs::read_dir(out).with_context(|| format!("reading {}", out.display()))?;
    if entries.next().is_some() && !out.join(CHECKSUMS).is_file() {
        bail!(
            "{} is not empty and has no {CHECKSUMS} of a release; name another folder with --out",
            out.display()
        );
    }
    Ok(())
}

/// Replaces the content of a folder, unless it has files of something else.
fn write(out: &Path, files: &BTreeMap<String, Vec<u8>>) -> anyhow::Result<()> {
    let about = || format!("writing to {}", out.display());
    ensure_replaceable(out)?;
    if out.exists() {
        fs::remove_dir_all(out).with_context(about)?;
    }
    fs::create_dir_all(out).with_context(about)?;
    for (name, content) in files {
        fs::write(out.join(name), content).with_context(|| format!("writing {name}"))?;
    }
    Ok(())
}

/// Returns the release in the folder of the environment variable `RELEASE`, or else the one of this commit, which is made
/// for one platform if it is missing.
///
/// # Errors
///
/// The release cannot be made, or a check of it fails.
pub(crate) fn of_commit(root: &Path, platform: Platform) -> anyhow::Result<Finished> {
    if let Some(folder) = std::env::var_os("RELEASE") {
        return Finished::read(&root.join(folder));
    }
    let commit = Source::read(root, Accepts::Any)?.commit;
    for name in [default_out(false), "target/release-check/1"] {
        let Ok(release) = Finished::read(&root.join(name)) else {
            continue;
        };
        if release.commit == commit && !release.is_quick && release.archive(platform).0.is_file() {
            return Ok(release);
        }
    }
    let arguments = Arguments {
        platforms: vec![platform],
        image: "bulkhead".to_owned(),
        allow_dirty: true,
        target_dir: PathBuf::from("target"),
        ..Arguments::default()
    };
    Finished::read(&make(root, &arguments)?)
}

/// Builds the program for this machine twice, in two folders, and compares all files: the step `release` of
/// `cargo xtask full`.
///
/// # Errors
///
/// A release fails, or the two differ.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let native = Platform::native().context("a release has no program for this machine")?;
    let made = |number: u8| {
        let arguments = Arguments {
            platforms: vec![native],
            out: Some(root.join(format!("target/release-check/{number}"))),
            image: "bulkhead".to_owned(),
            allow_dirty: true,
            target_dir: PathBuf::from(format!("target/release-check/build-{number}")),
            ..Arguments::default()
        };
        make(root, &arguments)
    };
    let checksums = |folder: PathBuf| {
        let path = folder.join(CHECKSUMS);
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    };
    let (first, second) = (checksums(made(1)?)?, checksums(made(2)?)?);
    ensure!(first == second, "two builds differ:\n{first}\n{second}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Writes a program that answers `--version` as a release does.
    fn program(folder: &Path, source: &Source) -> PathBuf {
        let path = folder.join("program");
        let text = format!(
            "#!/bin/sh\necho 'bulkhead {} ({}, bulkhead:policy@0.1.0)'\n",
            source.version, source.commit
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn quick(folder: &Path, out: &str) -> Arguments {
        let source = Source::read(&crate::root(), Accepts::Any).unwrap();
        Arguments {
            platforms: vec![Platform::Arm, Platform::X86],
            out: Some(folder.join(out)),
            quick: true,
            program: Some(program(folder, &source)),
            image: "registry.example.com/bulkhead".to_owned(),
            download_url: Some("https://example.com/v0.1.0".to_owned()),
            ..Arguments::default()
        }
    }

    #[test]
    fn two_releases_of_the_same_program_have_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let checksums = |out| {
            let made = make(&crate::root(), &quick(folder.path(), out)).unwrap();
            fs::read_to_string(made.join(CHECKSUMS)).unwrap()
        };
        let first = checksums("first");
        assert_eq!(first, checksums("second"));
        for part in [
            "x86_64-unknown-linux-musl.tar.gz",
            "aarch64-unknown-linux-musl.tar.gz",
            "image.tar",
            "bulkhead-0.1.0.tgz",
            "kustomize.tar.gz",
            "crds.yaml",
            "krew.yaml",
            "THIRD-PARTY-LICENSES",
            "aarch64-unknown-linux-musl.cdx.json",
        ] {
            assert!(first.lines().any(|line| line.ends_with(part)), "no {part} in\n{first}");
        }
        let release = Finished::read(&folder.path().join("first")).unwrap();
        assert_eq!(
            (release.version.as_str(), release.is_quick),
            (env!("CARGO_PKG_VERSION"), true)
        );
        assert_eq!(release.repository, "registry.example.com/bulkhead");
        assert!(release.archive(Platform::Arm).0.is_file());
        fs::write(release.folder.join("SHA256SUMS.sigstore.json"), "{}").unwrap();
        Finished::read(&release.folder).unwrap();
        fs::write(release.folder.join("bulkhead-0.1.0-crds.yaml"), "").unwrap();
        let error = format!("{:#}", Finished::read(&release.folder).unwrap_err());
        assert!(error.starts_with("bulkhead-0.1.0-crds.yaml has the digest"), "{error}");
        assert!(!first.contains(REPORT));
    }

    #[test]
    fn a_folder_with_other_files_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "").unwrap();
        let error = write(folder.path(), &BTreeMap::new()).unwrap_err().to_string();
        assert!(error.contains("is not empty") && error.contains("--out"), "{error}");
        assert!(folder.path().join("thesis.tex").is_file());
    }

    #[test]
    fn cargo_builds_into_no_folder_of_the_files() {
        let profile = format!("target/{}", compile::PROFILE);
        let manifest = fs::read_to_string(crate::root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("\n[profile.{}]\n", compile::PROFILE)));
        for out in [true, false].map(default_out) {
            assert_ne!(out, profile);
        }
    }

    #[test]
    fn a_difference_between_two_runs_is_named() {
        let files = |content: &str| BTreeMap::from([("chart.tgz".to_owned(), content.as_bytes().to_vec())]);
        repeated(&files("1"), &files("1")).unwrap();
        let error = repeated(&files("1"), &files("2")).unwrap_err().to_string();
        assert_eq!(error, "two runs over the same programs differ in chart.tgz");
    }

    #[test]
    fn a_release_is_for_all_platforms_and_a_quick_one_for_this_machine() {
        let all = platforms(&Arguments::default()).unwrap();
        assert_eq!(all, [Platform::X86, Platform::Arm]);
        let arguments = Arguments {
            quick: true,
            ..Arguments::default()
        };
        assert_eq!(platforms(&arguments).unwrap(), Vec::from_iter(Platform::native()));
    }
}
