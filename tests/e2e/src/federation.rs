//! A hub, member clusters, and `bulkhead run` between them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use bulkhead_api::{Cluster, ResourceBinding};
use bulkhead_core::model::Health;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client};

use crate::control_plane::{ControlPlane, Role};
use crate::process::Process;
use crate::servers::Servers;
use crate::wait;

/// What the scenarios are run with.
pub(crate) struct Site {
    /// The servers.
    pub(crate) servers: Servers,
    /// The `bulkhead` program.
    pub(crate) program: PathBuf,
    /// The workspace.
    pub(crate) root: PathBuf,
}

/// Settings with which a lost cluster is noticed within seconds.
pub(crate) const QUICK: &[&str] = &[
    "--feature-gates=Failover=true",
    "--enable-no-execute-taint-eviction",
    "--allow-no-execute-taint-policy",
    "--cluster-status-update-frequency=1s",
    "--cluster-failure-threshold=4s",
    "--cluster-success-threshold=2s",
    "--resource-eviction-rate=100",
];

/// A running federation.
pub(crate) struct Federation<'s> {
    site: &'s Site,
    directory: PathBuf,
    settings: Vec<String>,
    /// The control plane that Bulkhead runs on.
    pub(crate) hub: ControlPlane,
    /// The member clusters by name.
    pub(crate) members: BTreeMap<String, ControlPlane>,
    /// A client of the hub.
    pub(crate) client: Client,
    bulkhead: Vec<Process>,
}

impl<'s> Federation<'s> {
    /// Starts everything and waits until the members are ready. `name` is that of the folder with the logs.
    pub(crate) async fn start(site: &'s Site, name: &str, settings: &[&str]) -> anyhow::Result<Self> {
        let directory = site.root.join("target/e2e/run").join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        let start = |name: &'static str, role| ControlPlane::start(&site.servers, &directory, name, role);
        let (hub, member1, member2) = futures::try_join!(
            start("hub", Role::Hub),
            start("member1", Role::Member),
            start("member2", Role::Member)
        )?;
        let client = hub.client().await?;
        let members = BTreeMap::from([("member1".to_owned(), member1), ("member2".to_owned(), member2)]);
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut federation = Self { site, directory, settings, hub, members, client, bulkhead: Vec::new() };
        let definitions = federation.bulkhead(&["crds"])?;
        federation.kubectl_with(&["apply", "--server-side", "-f", "-"], &definitions)?;
        federation.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])?;
        federation.kubectl(&["create", "namespace", "karmada-system"])?;
        federation.start_bulkhead()?;
        for (name, member) in &federation.members {
            let (hub, member) = (federation.hub.kubeconfig(), member.kubeconfig());
            let (hub, member) = (hub.display().to_string(), member.display().to_string());
            federation.bulkhead(&["join", name, "--kubeconfig", &hub, "--member-kubeconfig", &member])?;
        }
        for name in federation.members.keys() {
            federation.wait_ready(name, true).await?;
        }
        Ok(federation)
    }

    /// Starts another `bulkhead run`.
    pub(crate) fn start_bulkhead(&mut self) -> anyhow::Result<()> {
        let mut arguments = vec![
            "run".to_owned(),
            format!("--kubeconfig={}", self.hub.kubeconfig().display()),
            "--health-probe-bind-address=127.0.0.1:0".to_owned(),
            "--webhook-bind-address=127.0.0.1:0".to_owned(),
        ];
        arguments.extend(self.settings.iter().cloned());
        let log = self.directory.join(format!("bulkhead-{}.log", self.bulkhead.len()));
        self.bulkhead.push(Process::start(&self.site.program, &arguments, log)?);
        Ok(())
    }

    /// The processes of `bulkhead run`, in the order in which they were started.
    pub(crate) fn processes(&mut self) -> &mut [Process] {
        &mut self.bulkhead
    }

    /// Runs `bulkhead` with arguments and returns what it prints.
    pub(crate) fn bulkhead(&self, arguments: &[&str]) -> anyhow::Result<String> {
        output(Command::new(&self.site.program).args(arguments), "")
    }

    /// Runs `kubectl` on the hub.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.kubectl_with(arguments, "")
    }

    /// Runs `kubectl` on the hub with an input.
    pub(crate) fn kubectl_with(&self, arguments: &[&str], input: &str) -> anyhow::Result<String> {
        output(Command::new("kubectl").arg("--kubeconfig").arg(self.hub.kubeconfig()).args(arguments), input)
    }

    /// Applies files of an example.
    pub(crate) fn apply_example(&self, example: &str, files: &[&str]) -> anyhow::Result<()> {
        for file in files {
            let path = self.site.root.join("examples").join(example).join(file);
            self.kubectl(&["apply", "-f", &path.display().to_string()])?;
        }
        Ok(())
    }

    /// Waits until a member's Ready condition is as wanted; returns how long that took.
    pub(crate) async fn wait_ready(&self, name: &str, ready: bool) -> anyhow::Result<Duration> {
        let api: Api<Cluster> = Api::all(self.client.clone());
        let what = format!("{name} is {}", if ready { "ready" } else { "not ready" });
        wait::until(&what, Duration::from_secs(90), async || {
            let cluster = api.get(name).await.map_err(|error| error.to_string())?.to_model();
            if cluster.is_ready() == ready { Ok(()) } else { Err(format!("{:?}", cluster.ready())) }
        })
        .await
    }

    /// Waits until a binding has these replicas per cluster, all of them healthy and no eviction left.
    pub(crate) async fn wait_placed(&self, binding: &str, expected: &[(&str, i32)]) -> anyhow::Result<Duration> {
        let what = format!("{binding} is healthy on {expected:?}");
        wait::until(&what, Duration::from_secs(90), async || self.placed(binding, expected).await).await
    }

    /// Whether a binding has these replicas per cluster, all of them healthy.
    pub(crate) async fn placed(&self, binding: &str, expected: &[(&str, i32)]) -> Result<(), String> {
        let api: Api<ResourceBinding> = Api::namespaced(self.client.clone(), "default");
        let binding = api.get(binding).await.map_err(|error| error.to_string())?;
        let mut targets: Vec<_> = binding.spec.clusters.iter().map(|t| (t.name.as_str(), t.replicas)).collect();
        targets.sort_unstable();
        let health = |cluster: &str| {
            let items = &binding.status.aggregated_status;
            items.iter().find(|item| item.cluster_name == cluster).and_then(|item| item.health)
        };
        if targets != expected {
            return Err(format!("placed on {targets:?}"));
        }
        if let Some((cluster, _)) = targets.iter().find(|(cluster, _)| health(cluster) != Some(Health::Healthy)) {
            return Err(format!("health on {cluster} is {:?}", health(cluster)));
        }
        Ok(())
    }

    /// Waits until a Deployment has that many ready replicas in a member; none means that it is not there.
    pub(crate) async fn wait_deployed(&self, member: &str, name: &str, ready: Option<i32>) -> anyhow::Result<()> {
        let plane = self.members.get(member).with_context(|| format!("there is no member {member}"))?;
        let api: Api<Deployment> = Api::namespaced(plane.client().await?, "default");
        let what = format!("{name} in {member} has {ready:?} ready replicas");
        wait::until(&what, Duration::from_mins(1), async || {
            let found = api.get_opt(name).await.map_err(|error| error.to_string())?;
            let seen = found.map(|found| found.status.and_then(|status| status.ready_replicas).unwrap_or(0));
            if seen == ready { Ok(()) } else { Err(format!("{seen:?}")) }
        })
        .await?;
        Ok(())
    }

    /// The folder with the logs.
    pub(crate) fn logs(&self) -> &Path {
        &self.directory
    }

    /// A member, to do something to it.
    pub(crate) fn member(&mut self, name: &str) -> anyhow::Result<&mut ControlPlane> {
        self.members.get_mut(name).with_context(|| format!("there is no member {name}"))
    }
}

fn output(command: &mut Command, input: &str) -> anyhow::Result<String> {
    use std::io::Write;
    let shown = format!("{command:?}");
    let about = || format!("running {shown}");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().with_context(about)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).with_context(about)?;
    }
    let output = child.wait_with_output().with_context(about)?;
    if !output.status.success() {
        bail!("{shown} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
