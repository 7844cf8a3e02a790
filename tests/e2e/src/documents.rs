//! Manifests of the documents, in `tests/documents`, on a real API server.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};

use crate::federation::{Federation, Plan, QUICK};
use crate::site::Site;

/// A manifest that a document shows is stored, or refused with the reason. The webhook refuses a policy with a misspelt
/// target, independent of the field validation that kubectl asks for.
pub(crate) async fn manifests(site: &Site) -> anyhow::Result<()> {
    let gates = ["--feature-gates=Failover=true,PreferNoExecute=true"];
    let others = QUICK
        .iter()
        .copied()
        .filter(|setting| !setting.starts_with("--feature-gates"));
    let settings: Vec<_> = gates.into_iter().chain(others).collect();
    let plan = Plan {
        members: 1,
        settings: &settings,
        ..Plan::default()
    };
    let federation = Box::pin(Federation::start(site, "documents", plan)).await?;
    for path in files(site, "accepted")? {
        apply(&federation, &path)?;
    }
    for path in [files(site, "refused")?, files(site, "refused-by-admission")?].concat() {
        ensure!(apply(&federation, &path).is_err(), "{} is stored", path.display());
    }
    let policy = federation.kubectl(&["get", "clustertaintpolicy", "detect-cluster-not-ready", "-o", "json"])?;
    ensure!(
        policy.contains("\"targetCluster\"") && policy.contains("\"member2\""),
        "{policy}"
    );
    let path = site.root.join("tests/documents/accepted/optimized-248.yaml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let misspelt = text
        .replace("targetCluster:", "targetClustrs:")
        .replace("detect-cluster-not-ready", "misspelt");
    for validation in ["strict", "warn", "ignore"] {
        let validate = format!("--validate={validation}");
        let refused = federation.kubectl_with(&["apply", "--server-side", &validate, "-f", "-"], &misspelt);
        let error = refused.err().map(|error| format!("{error:#}")).unwrap_or_default();
        ensure!(
            error.contains("spec.targetClustrs: Forbidden: unknown field"),
            "{validation}: {error:?}"
        );
    }
    Ok(())
}

fn apply(federation: &Federation<'_>, path: &std::path::Path) -> anyhow::Result<String> {
    let path = path.display().to_string();
    federation.kubectl(&[
        "apply",
        "--server-side",
        "--force-conflicts",
        "--validate=strict",
        "-f",
        &path,
    ])
}

/// Returns the files of a folder of `tests/documents`, in order of name.
fn files(site: &Site, folder: &str) -> anyhow::Result<Vec<PathBuf>> {
    let folder = site.root.join("tests/documents").join(folder);
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut found = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    found.sort();
    Ok(found)
}
