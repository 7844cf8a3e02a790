//! Kubernetes servers, built from their published Go modules.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use sha2::{Digest, Sha256};

const KUBERNETES: &str = "v1.36.3";

/// Paths of the built programs.
#[derive(Clone)]
pub(crate) struct Servers {
    /// Directory of the programs.
    pub(crate) programs: PathBuf,
    /// Behaviour of simulated nodes and pods: kwok's published stages.
    pub(crate) stages: PathBuf,
}

/// Builds the servers unless they exist already. The first build takes minutes.
pub(crate) fn build(root: &Path) -> anyhow::Result<Servers> {
    let sources = root.join("tests/e2e/servers");
    let mut hash = Sha256::new();
    for file in ["go.mod", "go.sum"] {
        let path = sources.join(file);
        hash.update(fs::read(&path).with_context(|| format!("reading {}", path.display()))?);
    }
    let key = hash.finalize().iter().take(8).fold(String::new(), |mut key, byte| {
        let _ = write!(key, "{byte:02x}");
        key
    });
    let programs = root.join("target/e2e").join(key);
    let stages = programs.join("stages.yaml");
    if stages.exists() {
        return Ok(Servers { programs, stages });
    }
    if Command::new("go").arg("version").output().is_err() {
        bail!("the end-to-end tests build Kubernetes' servers and need Go 1.26 or later; nothing else does");
    }
    eprintln!("building Kubernetes' servers, which takes minutes the first time");
    fs::create_dir_all(&programs)?;
    let version = "k8s.io/component-base/version";
    let flags = format!("-s -w -X {version}.gitVersion={KUBERNETES} -X {version}.gitMajor=1 -X {version}.gitMinor=36");
    let out = format!("{}/", programs.display());
    // One build of one module: what the programs share is compiled once. Without the tag, most of promtool is clients that
    // discover targets.
    let build = [
        "build",
        "-tags",
        "remove_all_sd",
        // Debug information that the linker would drop.
        "-gcflags",
        "all=-dwarf=false",
        "-ldflags",
        &flags,
        "-o",
        &out,
        "./...",
        "tool",
    ];
    go(&sources, &build)?;
    let module = go(&sources, &["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"])?;
    // Written last: its presence means that the build is complete.
    let text = read_stages(&Path::new(module.trim()).join("kustomize/stage"))?;
    fs::write(&stages, text)?;
    Ok(Servers { programs, stages })
}

fn go(directory: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let shown = format!("go {}", arguments.first().copied().unwrap_or_default());
    let output = Command::new("go")
        .args(arguments)
        .current_dir(directory)
        .env("GOTOOLCHAIN", "local")
        .output();
    let output = output.with_context(|| format!("starting {shown}"))?;
    if !output.status.success() {
        bail!(
            "{shown} in {} failed:\n{}",
            directory.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the stages for nodes that send heartbeats and pods that become ready at once.
fn read_stages(folder: &Path) -> anyhow::Result<String> {
    let mut documents = Vec::new();
    for part in ["node/fast", "node/heartbeat-with-lease", "pod/fast"] {
        let part = folder.join(part);
        let mut files: Vec<_> = fs::read_dir(&part)
            .with_context(|| format!("reading kwok's stages in {}", part.display()))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        files.sort();
        for file in files
            .iter()
            .filter(|file| file.extension().is_some_and(|extension| extension == "yaml"))
        {
            let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
            if text.contains("kind: Stage") {
                documents.push(text);
            }
        }
    }
    Ok(documents.join("\n---\n"))
}
