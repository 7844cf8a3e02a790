//! A hub, its member clusters, and the `bulkhead run` processes that connect them.

mod endpoint;
mod state;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use rustix::process::Signal;

use crate::command::{output, said};
use crate::control_plane::{ControlPlane, Role};
use crate::process::{Process, Supervisor};
use crate::site::{Site, set_aside};
use crate::wait;
pub(crate) use endpoint::{http_get, http_response};

/// User name of the account that `host/deploy` creates.
pub(crate) const ACCOUNT: &str = "system:serviceaccount:karmada-system:bulkhead";

/// Settings with which a lost cluster is detected within seconds.
pub(crate) const QUICK: &[&str] = &[
    "--feature-gates=Failover=true",
    "--enable-no-execute-taint-eviction",
    "--allow-no-execute-taint-policy",
    "--cluster-status-update-frequency=1s",
    "--cluster-failure-threshold=4s",
    "--cluster-success-threshold=2s",
    "--resource-eviction-rate=100",
];

/// Setup of a federation.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// Number of members, named `member1`, `member2` and so on.
    pub(crate) members: usize,
    /// Arguments of every `bulkhead run`.
    pub(crate) settings: &'a [&'a str],
    /// Additional arguments of the first process only.
    pub(crate) first: &'a [&'a str],
    /// Members that join in Pull mode, with an agent.
    pub(crate) pull: &'a [&'a str],
    /// Environment variables of every `bulkhead run`.
    pub(crate) variables: &'a [(String, String)],
}

impl Default for Plan<'_> {
    fn default() -> Self {
        Self {
            members: 2,
            settings: QUICK,
            first: &[],
            pull: &[],
            variables: &[],
        }
    }
}

/// A running federation.
pub(crate) struct Federation<'s> {
    site: &'s Site,
    directory: PathBuf,
    settings: Vec<String>,
    variables: Vec<(String, String)>,
    /// Control plane that Bulkhead runs on.
    pub(crate) hub: ControlPlane,
    /// Member clusters by name.
    pub(crate) members: BTreeMap<String, ControlPlane>,
    /// Client for the hub.
    pub(crate) client: Client,
    bulkhead: Vec<Process>,
    agents: BTreeMap<String, Process>,
}

impl<'s> Federation<'s> {
    /// Starts a hub, the members and `bulkhead run`, and waits until the members are ready. `name` is the name of the
    /// log folder.
    pub(crate) async fn start(site: &'s Site, name: &str, plan: Plan<'_>) -> anyhow::Result<Self> {
        let Plan {
            members,
            settings,
            first,
            pull,
            variables,
        } = plan;
        let mut federation = Self::start_planes(site, name, members, settings).await?;
        federation.variables = variables.to_vec();
        federation.apply_definitions()?;
        federation.kubectl(&["create", "namespace", "karmada-system"])?;
        federation.start_bulkhead(first)?;
        federation.join_all(pull).await?;
        Ok(federation)
    }

    /// Starts a hub and the members, without anything of Bulkhead.
    pub(crate) async fn start_planes(
        site: &'s Site,
        name: &str,
        members: usize,
        settings: &[&str],
    ) -> anyhow::Result<Self> {
        let directory = site.logs().join(name);
        if directory.exists() {
            set_aside(&directory, &site.logs().join(format!("{name}-before")))?;
        }
        let hub = ControlPlane::start(&site.servers, &directory, "hub", Role::Hub);
        let start_member = async |number: usize| {
            let name = format!("member{number}");
            let member = ControlPlane::start(&site.servers, &directory, &name, Role::Member).await?;
            anyhow::Ok((name, member))
        };
        let all_members = try_join_all((1..=members).map(start_member));
        let (hub, members) = futures::try_join!(hub, all_members)?;
        let members: BTreeMap<_, _> = members.into_iter().collect();
        let client = hub.client().await?;
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        Ok(Self {
            site,
            directory,
            settings,
            variables: Vec::new(),
            hub,
            members,
            client,
            bulkhead: Vec::new(),
            agents: BTreeMap::new(),
        })
    }

    /// Joins all members, those in `pull` with an agent, and waits until they are ready.
    pub(crate) async fn join_all(&mut self, pull: &[&str]) -> anyhow::Result<()> {
        for name in self.members.keys().cloned().collect::<Vec<_>>() {
            self.join(&name, pull.contains(&name.as_str()))?;
        }
        for name in self.members.keys() {
            self.wait_ready(name, true).await?;
        }
        Ok(())
    }

    /// Uses the program and the manifests of another version from now on.
    pub(crate) fn switch_to(&mut self, site: &'s Site) {
        self.site = site;
    }

    /// Applies the definitions of the kinds.
    pub(crate) fn apply_definitions(&self) -> anyhow::Result<()> {
        let definitions = self.bulkhead(&["crds"])?;
        self.kubectl_with(&["apply", "--server-side", "-f", "-"], &definitions)?;
        self.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])
            .map(drop)
    }

    /// Joins a member again, with its current credentials.
    pub(crate) fn rejoin(&mut self, name: &str) -> anyhow::Result<()> {
        self.join(name, false)
    }

    fn join(&mut self, name: &str, pull: bool) -> anyhow::Result<()> {
        let member = self.members.get(name).context("there is no such member")?.kubeconfig();
        let (hub, member) = (
            self.hub.kubeconfig().display().to_string(),
            member.display().to_string(),
        );
        let agent = self
            .directory
            .join(format!("kubeconfig-agent-{name}"))
            .display()
            .to_string();
        let mut join = vec!["join", name, "--kubeconfig", &hub, "--member-kubeconfig", &member];
        if pull {
            join.extend(["--pull", &agent]);
        }
        self.bulkhead(&join)?;
        if pull { self.start_agent(name) } else { Ok(()) }
    }

    /// Creates the agent's account and role from `host/deploy` in a member, and returns a kubeconfig for it.
    fn agent_kubeconfig(&self, name: &str) -> anyhow::Result<PathBuf> {
        let member = self.members.get(name).context("there is no such member")?;
        let kubectl = |arguments: &[&str]| {
            output(
                Command::new("kubectl")
                    .arg("--kubeconfig")
                    .arg(member.kubeconfig())
                    .args(arguments),
                "",
            )
        };
        let manifest = |file: &str| {
            self.site
                .root
                .join("host/deploy/kustomize/agent")
                .join(file)
                .display()
                .to_string()
        };
        let namespace = ["-n", "karmada-system"];
        if kubectl(&["get", "namespace", "karmada-system"]).is_err() {
            kubectl(&["create", "namespace", "karmada-system"])?;
        }
        kubectl(&[&["apply", "-f", &manifest("account.yaml")], &namespace[..]].concat())?;
        kubectl(&["apply", "-f", &manifest("rbac.yaml")])?;
        let token = kubectl(&[&["create", "token", "bulkhead-agent"], &namespace[..]].concat())?;
        member.write_kubeconfig("bulkhead-agent", token.trim())
    }

    /// Starts the agent of a Pull member.
    pub(crate) fn start_agent(&mut self, name: &str) -> anyhow::Result<()> {
        let member = self.agent_kubeconfig(name)?;
        let mut arguments = vec![
            "agent".to_owned(),
            format!("--cluster-name={name}"),
            format!(
                "--kubeconfig={}",
                self.directory.join(format!("kubeconfig-agent-{name}")).display()
            ),
            format!("--member-kubeconfig={}", member.display()),
            "--health-probe-bind-address=127.0.0.1:0".to_owned(),
        ];
        arguments.extend(self.state_directory(&format!("agent-{name}")));
        arguments.extend(self.settings.iter().cloned());
        let log = self.directory.join(format!("agent-{name}.log"));
        self.agents
            .insert(name.to_owned(), Process::start(&self.site.program, &arguments, log)?);
        Ok(())
    }

    /// Returns the argument for a process's own state, for versions that have one.
    fn state_directory(&self, process: &str) -> Option<String> {
        let argument = "--plugin-state-directory";
        let directory = self.directory.join(format!("{process}-state"));
        let has = self.site.accepts(argument);
        has.then(|| format!("{argument}={}", directory.display()))
    }

    /// Kills the agent of a member.
    pub(crate) fn kill_agent(&mut self, name: &str) {
        self.agents.remove(name);
    }

    /// Starts another `bulkhead run` like the first one, with additional arguments.
    pub(crate) fn start_bulkhead(&mut self, more: &[&str]) -> anyhow::Result<()> {
        let webhook = "--webhook-bind-address=127.0.0.1:0";
        let more: Vec<_> = std::iter::once(webhook).chain(more.iter().copied()).collect();
        let kubeconfig = self.hub.kubeconfig();
        self.start_bulkhead_with(&kubeconfig, &more)
    }

    /// Starts another `bulkhead run` with additional arguments in a mode, or in several separated by commas, with the
    /// corresponding roles from `host/deploy`. Returns its user name in the audit log.
    pub(crate) async fn start_bulkhead_in(&mut self, mode: &str, more: &[&str]) -> anyhow::Result<String> {
        mode.split(',').try_for_each(|mode| self.apply_role(mode))?;
        self.start_bulkhead_as_account(mode, more).await?;
        Ok(ACCOUNT.to_owned())
    }

    fn rbac(&self, name: &str) -> String {
        self.site
            .root
            .join("host/deploy/chart/rbac")
            .join(name)
            .display()
            .to_string()
    }

    /// Creates the account from `host/deploy`, with the role of a mode.
    pub(crate) fn apply_role(&self, mode: &str) -> anyhow::Result<()> {
        self.kubectl(&["apply", "-f", &self.rbac("account.yaml")])?;
        self.kubectl(&["apply", "-k", &self.rbac(mode)]).map(drop)
    }

    /// Applies a merge patch to the Lease of the processes.
    pub(crate) fn patch_lease(&self, patch: &str) -> anyhow::Result<()> {
        let lease = [
            "patch",
            "lease",
            "bulkhead",
            "-n",
            "karmada-system",
            "--type=merge",
            "-p",
        ];
        self.kubectl(&[&lease[..], &[patch]].concat()).map(drop)
    }

    /// Removes the role of a mode from the account.
    pub(crate) fn remove_role(&self, mode: &str) -> anyhow::Result<()> {
        self.kubectl(&["delete", "-k", &self.rbac(mode), "--ignore-not-found"])
            .map(drop)
    }

    /// Removes one verb from the role of a mode.
    pub(crate) fn take_verb(&self, mode: &str, resource: &str, group: &str, verb: &str) -> anyhow::Result<()> {
        let name = format!("bulkhead-{mode}");
        let text = self.kubectl(&["get", "clusterrole", &name, "-o", "json"])?;
        let mut role: serde_json::Value = serde_json::from_str(&text)?;
        let has = |list: &serde_json::Value, wanted: &str| {
            list.as_array()
                .is_some_and(|list| list.iter().any(|item| item == wanted))
        };
        let mut taken = 0;
        for rule in role["rules"].as_array_mut().into_iter().flatten() {
            if has(&rule["apiGroups"], group) && has(&rule["resources"], resource) && has(&rule["verbs"], verb) {
                let verbs = rule["verbs"].as_array_mut().context("verbs is a list")?;
                verbs.retain(|known| known != verb);
                taken += 1;
            }
        }
        // The API server rejects rules without verbs.
        if let Some(rules) = role["rules"].as_array_mut() {
            rules.retain(|rule| rule["verbs"].as_array().is_some_and(|verbs| !verbs.is_empty()));
        }
        anyhow::ensure!(
            taken == 1,
            "the role {name} has {verb} {resource}.{group} {taken} times"
        );
        self.kubectl_with(&["replace", "-f", "-"], &role.to_string()).map(drop)
    }

    /// Starts another `bulkhead run` in a mode with the account from `host/deploy` and its current permissions.
    pub(crate) async fn start_bulkhead_as_account(&mut self, mode: &str, more: &[&str]) -> anyhow::Result<()> {
        let kubeconfig = self.account_kubeconfig().await?;
        let mode = format!("--mode={mode}");
        let more: Vec<_> = std::iter::once(mode.as_str()).chain(more.iter().copied()).collect();
        self.start_bulkhead_with(&kubeconfig, &more)
    }

    /// Writes a kubeconfig for the account.
    pub(crate) async fn account_kubeconfig(&self) -> anyhow::Result<PathBuf> {
        let token = self.account_token("bulkhead-token").await?;
        self.hub.write_kubeconfig("bulkhead", &token)
    }

    /// Waits for the token in a Secret of the account and returns it.
    pub(crate) async fn account_token(&self, secret: &str) -> anyhow::Result<String> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), "karmada-system");
        let mut token = String::new();
        wait::until("the account has a token", Duration::from_secs(30), async || {
            let secret = secrets.get(secret).await.map_err(|error| error.to_string())?;
            let data = secret
                .data
                .and_then(|mut data| data.remove("token"))
                .ok_or("it has none")?;
            token = String::from_utf8(data.0).map_err(|error| error.to_string())?;
            Ok(())
        })
        .await?;
        Ok(token)
    }

    /// Starts `count` `bulkhead run` processes with the settings of the first one, and restarts each of them whenever
    /// it ends.
    pub(crate) fn supervise(&mut self, kubeconfig: &Path, count: usize) -> anyhow::Result<Supervisor> {
        for _ in 0..count {
            self.start_bulkhead_with(kubeconfig, &["--webhook-bind-address=127.0.0.1:0"])?;
        }
        Ok(Supervisor::of(self.bulkhead.split_off(self.bulkhead.len() - count)))
    }

    /// Starts another `bulkhead run` with the settings of the first one and additional arguments.
    pub(crate) fn start_bulkhead_with(&mut self, kubeconfig: &Path, more: &[&str]) -> anyhow::Result<()> {
        let number = self.bulkhead.len();
        let mut arguments = vec![
            "run".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            "--health-probe-bind-address=127.0.0.1:0".to_owned(),
        ];
        arguments.extend(self.state_directory(&format!("bulkhead-{number}")));
        arguments.extend(self.settings.iter().cloned());
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        let log = self.directory.join(format!("bulkhead-{number}.log"));
        let (folder, program) = (Path::new("."), &self.site.program);
        self.bulkhead
            .push(Process::start_with(folder, program, &arguments, &self.variables, log)?);
        Ok(())
    }

    /// Sends a signal to a `bulkhead run` process, by its number in start order.
    pub(crate) fn signal(&self, process: usize, signal: Signal) -> anyhow::Result<()> {
        let process = self.bulkhead.get(process).context("there is no such process")?;
        process.signal(signal)
    }

    /// Waits until a `bulkhead run` process has ended.
    pub(crate) async fn wait_ended(&mut self, process: usize) -> anyhow::Result<()> {
        let process = self.bulkhead.get_mut(process).context("there is no such process")?;
        wait::until("the process ends", Duration::from_secs(30), async || {
            if process.ended() {
                Ok(())
            } else {
                Err("it runs".to_owned())
            }
        })
        .await
        .map(drop)
    }

    /// Returns the `bulkhead run` processes, in start order.
    pub(crate) fn processes(&mut self) -> &mut [Process] {
        &mut self.bulkhead
    }

    /// Runs `bulkhead` with arguments and returns its output.
    pub(crate) fn bulkhead(&self, arguments: &[&str]) -> anyhow::Result<String> {
        output(Command::new(&self.site.program).args(arguments), "")
    }

    /// Runs `bulkhead` with arguments and returns its exit code and output.
    pub(crate) fn bulkhead_with_code(&self, arguments: &[&str]) -> anyhow::Result<(Option<i32>, String)> {
        said(Command::new(&self.site.program).args(arguments))
    }

    /// Runs a shell command with `bulkhead` in the path and the hub in `$KUBECONFIG`, and returns its exit code and
    /// output.
    pub(crate) fn shell(&self, command: &str) -> anyhow::Result<(Option<i32>, String)> {
        let programs = self.site.program.parent().context("the program has no folder")?;
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.env("PATH", path).env("KUBECONFIG", self.hub.kubeconfig());
        said(shell.args(["-c", command]))
    }

    /// Runs `kubectl` on the hub.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.kubectl_with(arguments, "")
    }

    /// Runs `kubectl` on the hub with standard input.
    pub(crate) fn kubectl_with(&self, arguments: &[&str], input: &str) -> anyhow::Result<String> {
        output(
            Command::new("kubectl")
                .arg("--kubeconfig")
                .arg(self.hub.kubeconfig())
                .args(arguments),
            input,
        )
    }

    /// Applies files of an example.
    pub(crate) fn apply_example(&self, example: &str, files: &[&str]) -> anyhow::Result<()> {
        for file in files {
            let path = self.site.root.join("examples").join(example).join(file);
            self.kubectl(&["apply", "-f", &path.display().to_string()])?;
        }
        Ok(())
    }

    /// Like [`Self::apply_example`], but retries while processes are being replaced: until the next process holds the
    /// lease, the webhook configuration points to the previous one.
    pub(crate) async fn apply_example_when_admitted(&self, example: &str, files: &[&str]) -> anyhow::Result<()> {
        wait::until("the next process admits objects", Duration::from_mins(1), async || {
            self.apply_example(example, files).map_err(|error| error.to_string())
        })
        .await
        .map(drop)
    }

    /// Returns the log folder of this federation.
    pub(crate) fn logs(&self) -> &Path {
        &self.directory
    }

    /// Returns a member for modification.
    pub(crate) fn member(&mut self, name: &str) -> anyhow::Result<&mut ControlPlane> {
        self.members
            .get_mut(name)
            .with_context(|| format!("there is no member {name}"))
    }
}
