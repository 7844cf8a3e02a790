//! Tutorials of the documents, whose blocks with the mark `e2e` are executed literally.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bulkhead_api::ResourceBinding;
use bulkhead_core::model::FailoverState;
use kube::Api;
use tokio::sync::{Mutex, MutexGuard};

use crate::federation::{Federation, Plan};
use crate::process::Process;
use crate::site::Site;
use crate::wait;

/// Prefix of commands that run until they are interrupted.
const RUNS: &str = "bulkhead run ";
/// Address of the endpoints of a process with the default settings.
const ENDPOINTS: &str = "127.0.0.1:10370";

/// Default ports of `bulkhead run`: one tutorial at a time uses them.
static PORTS: Mutex<()> = Mutex::const_new(());

/// A control plane with Karmada's kinds and without Bulkhead's, and the folder and the process of a reader.
pub(crate) struct Tutorial<'s> {
    pub(crate) federation: Federation<'s>,
    folder: PathBuf,
    variables: Vec<(String, String)>,
    program: PathBuf,
    running: Option<Process>,
    /// Number of processes that were started.
    pub(crate) runs: usize,
    _ports: MutexGuard<'static, ()>,
}

/// Returns the blocks of a page with the mark `e2e`, in order.
pub(crate) fn blocks(page: &str) -> Vec<String> {
    let blocks = page
        .split("```sh,e2e\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap_or_default().to_owned());
    blocks.collect()
}

impl<'s> Tutorial<'s> {
    /// Starts the control plane. `name` is that of its folder.
    pub(crate) async fn start(site: &'s Site, name: &str) -> anyhow::Result<Self> {
        let ports = PORTS.lock().await;
        let plan = Plan {
            members: 0,
            ..Plan::default()
        };
        let mut federation = Box::pin(Federation::start(site, name, plan)).await?;
        if let Some(process) = federation.processes().first_mut() {
            process.kill();
        }
        delete_installed(&federation)?;
        let folder = federation.logs().join("clone");
        fs::create_dir_all(folder.join("bin"))?;
        std::os::unix::fs::symlink(&site.program, folder.join("bin/bulkhead"))?;
        fs::copy(federation.hub.kubeconfig(), folder.join("karmada.kubeconfig"))?;
        Ok(Self {
            federation,
            folder,
            variables: Vec::new(),
            program: site.program.clone(),
            running: None,
            runs: 0,
            _ports: ports,
        })
    }

    /// Returns the path of a file of the reader.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Sets an environment variable of the reader.
    pub(crate) fn set(&mut self, name: &str, value: &Path) {
        self.variables.push((name.to_owned(), value.display().to_string()));
    }

    /// Executes a block. The process that it starts runs until another block starts one.
    pub(crate) async fn follow(&mut self, block: &str) -> anyhow::Result<()> {
        let (script, run): (Vec<_>, Vec<_>) = block.lines().partition(|line| !line.starts_with(RUNS));
        if !run.is_empty() {
            drop(self.running.take());
        }
        if !script.is_empty() {
            self.shell(&script.join("\n"))?;
        }
        for line in run {
            let words: Vec<_> = line.split_whitespace().skip(1).map(str::to_owned).collect();
            let log = self.path(&format!("run-{}.log", self.runs));
            let process = Process::start_with(&self.folder, &self.program, &words, &self.variables, log)?;
            self.running = Some(process);
            self.runs += 1;
            wait::until(&format!("{line} is ready"), Duration::from_mins(1), async || {
                let ready = crate::federation::http_get(ENDPOINTS, "/readyz").await;
                let ready = ready.map_err(|error| error.to_string())?;
                if ready == "ok\n" { Ok(()) } else { Err(ready) }
            })
            .await?;
        }
        Ok(())
    }

    /// Runs a block in a shell like a reader, stops at the first failure, and returns the output.
    pub(crate) fn shell(&self, script: &str) -> anyhow::Result<String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.path("bin").display());
        let script = format!("set -euo pipefail\n{script}\n");
        let mut command = Command::new("bash");
        command.arg("-c").arg(&script).current_dir(&self.folder);
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        let output = command.envs(variables).env("PATH", path).output();
        let output = output.context("starting bash")?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        ensure!(output.status.success(), "{script}failed: {said}");
        Ok(said)
    }

    /// Creates the binding `till` with a task as Karmada creates it and a healthy replacement, and waits until the process
    /// ends the task.
    pub(crate) async fn end_task(&self) -> anyhow::Result<()> {
        let federation = &self.federation;
        federation.kubectl_with(&["apply", "-f", "-"], BINDING)?;
        for (kind, name, status) in [("cluster", "member2", READY), ("resourcebinding", "till", STATUS)] {
            let patch = [
                "patch",
                kind,
                name,
                "--subresource=status",
                "--type=merge",
                "-p",
                status,
            ];
            federation.kubectl(&patch)?;
        }
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
        federation
            .wait_recorded("till", &[(FailoverState::Released, "member1")])
            .await
    }
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
