//! The tutorial "Beside Karmada", executed literally.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bulkhead_api::ResourceBinding;
use bulkhead_core::model::FailoverState;
use kube::Api;

use crate::federation::{ACCOUNT, Federation, Plan};
use crate::process::Process;
use crate::site::Site;
use crate::wait;

/// Page of the tutorial. Its blocks with the mark `e2e` are executed.
const PAGE: &str = "docs/src/tutorials/beside-karmada.md";
/// Prefix of commands that run until they are interrupted.
const RUNS: &str = "bulkhead run ";

/// Returns the blocks of a page with the mark `e2e`, in order.
fn blocks(page: &str) -> Vec<String> {
    let blocks = page
        .split("```sh,e2e\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap_or_default().to_owned());
    blocks.collect()
}

/// Follows the tutorial on a control plane with Karmada's kinds and without Bulkhead's.
pub(crate) async fn follow(site: &Site) -> anyhow::Result<()> {
    let mut federation = Box::pin(Federation::start(
        site,
        "sidecar",
        Plan {
            members: 0,
            ..Plan::default()
        },
    ))
    .await?;
    if let Some(process) = federation.processes().first_mut() {
        process.kill();
    }
    delete_installed(&federation)?;
    let folder = federation.logs().join("clone");
    fs::create_dir_all(folder.join("bin"))?;
    std::os::unix::fs::symlink(&site.program, folder.join("bin/bulkhead"))?;
    fs::copy(federation.hub.kubeconfig(), folder.join("karmada.kubeconfig"))?;

    let page = fs::read_to_string(site.root.join(PAGE)).with_context(|| format!("reading {PAGE}"))?;
    let (mut running, mut runs) = (None::<Process>, 0);
    for block in blocks(&page) {
        let (script, run): (Vec<_>, Vec<_>) = block.lines().partition(|line| !line.starts_with(RUNS));
        if !script.is_empty() {
            // "Stop the process, and start it in the next mode."
            drop(running.take());
            shell(&folder, &script.join("\n"))?;
        }
        for line in run {
            let words: Vec<_> = line.split_whitespace().skip(1).map(str::to_owned).collect();
            let process = Process::start_in(&folder, &site.program, &words, folder.join(format!("run-{runs}.log")))?;
            running = Some(process);
            runs += 1;
            wait::until(&format!("{line} is ready"), Duration::from_mins(1), async || {
                let ready = crate::federation::http_get("127.0.0.1:10370", "/readyz").await;
                let ready = ready.map_err(|error| error.to_string())?;
                if ready == "ok\n" { Ok(()) } else { Err(ready) }
            })
            .await?;
        }
    }
    ensure!(runs == 2, "the tutorial runs the program {runs} times");
    // The process now runs in mode finish, so a task that Karmada created is completed.
    federation.kubectl_with(&["apply", "-f", "-"], BINDING)?;
    federation.kubectl(&[
        "patch",
        "cluster",
        "member2",
        "--subresource=status",
        "--type=merge",
        "-p",
        READY,
    ])?;
    let status = [
        "patch",
        "resourcebinding",
        "till",
        "--subresource=status",
        "--type=merge",
        "-p",
        STATUS,
    ];
    federation.kubectl(&status)?;
    let api: Api<ResourceBinding> = Api::namespaced(federation.client.clone(), "default");
    wait::until("the task is ended", Duration::from_mins(1), async || {
        let binding = api.get("till").await.map_err(|error| error.to_string())?;
        let tasks = binding.spec.graceful_eviction_tasks.len();
        if tasks == 0 {
            Ok(())
        } else {
            Err(format!("{tasks} tasks"))
        }
    })
    .await?;
    let requests = federation.hub.requests_of(ACCOUNT)?;
    ensure!(
        !requests.is_empty(),
        "the process does not use the account of the tutorial"
    );
    federation
        .wait_recorded("till", &[(FailoverState::Released, "member1")])
        .await?;
    // Commands of the tutorial that read the journal.
    let journal = folder.join("journal").display().to_string();
    let history = federation.bulkhead(&["history", "--journal", &journal])?;
    ensure!(
        history.contains("default/till"),
        "the history has no decision about it: {history}"
    );
    let why = federation.bulkhead(&["explain", "--journal", &journal, "default/till"])?;
    ensure!(
        why.contains("member1"),
        "the explanation does not name the cluster: {why}"
    );
    Ok(())
}

/// Deletes the objects of Bulkhead that the federation created at its start.
fn delete_installed(federation: &Federation<'_>) -> anyhow::Result<()> {
    for ours in ["lease/bulkhead", "secret/bulkhead-webhook"] {
        federation.kubectl(&["delete", ours, "-n", "karmada-system", "--ignore-not-found"])?;
    }
    federation.kubectl(&[
        "delete",
        "mutatingwebhookconfiguration",
        "bulkhead",
        "--ignore-not-found",
    ])?;
    let ours = [
        "evictionpauses.bulkhead.dev",
        "clusterdrains.bulkhead.dev",
        "plugins.bulkhead.dev",
        "plugintrusts.bulkhead.dev",
        "failoverrecords.bulkhead.dev",
        "clusterfailoverrecords.bulkhead.dev",
    ];
    federation.kubectl(&[&["delete", "crd"], &ours[..]].concat())?;
    Ok(())
}

/// Runs a block in a shell like a user and stops at the first failure.
fn shell(folder: &Path, script: &str) -> anyhow::Result<()> {
    let path = format!(
        "{}:{}",
        folder.join("bin").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let script = format!("set -euo pipefail\n{script}\n");
    let output = Command::new("bash")
        .arg("-c")
        .arg(&script)
        .current_dir(folder)
        .env("PATH", path)
        .output();
    let output = output.context("starting bash")?;
    let said = [output.stdout, output.stderr].concat();
    ensure!(
        output.status.success(),
        "{script}failed: {}",
        String::from_utf8_lossy(&said)
    );
    Ok(())
}

const BINDING: &str = r#"
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: member2}
spec: {syncMode: Push, apiEndpoint: "https://127.0.0.1:1"}
---
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: till, namespace: default}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: till}
  replicas: 1
  clusters: [{name: member2, replicas: 1}]
  gracefulEvictionTasks:
  - {fromCluster: member1, reason: TaintUntolerated, producer: TaintManager, purgeMode: Gracefully,
    creationTimestamp: "2026-01-01T00:00:00Z"}
"#;

/// Status of the target cluster. A report of a cluster that is not ready does not count.
const READY: &str = r#"{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "ClusterReady",
    "message": "ok", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}"#;

const STATUS: &str = r#"{"status": {"schedulerObservedGeneration": 1, "conditions": [{"type": "Scheduled",
    "status": "True", "reason": "Success", "message": "ok", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    "aggregatedStatus": [{"clusterName": "member2", "applied": true, "health": "Healthy",
    "status": {"readyReplicas": 1, "availableReplicas": 1, "replicas": 1}}]}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_with_the_mark_e2e() {
        let page = "```sh,e2e\none\ntwo\n```\n```sh\nno\n```\n```console\n$ no\n```\n```sh,e2e\nthree\n```\n";
        assert_eq!(blocks(page), ["one\ntwo\n", "three\n"]);
    }
}
