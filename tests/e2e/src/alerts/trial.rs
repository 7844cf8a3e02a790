//! Trial of alerts: a federation whose processes Prometheus scrapes, and the runbook that each alert links to.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use super::prometheus::{Alert, Prometheus};
use super::rules;
use super::runbook::{Runbook, Section, with_values};
use crate::federation::{Federation, Plan};
use crate::site::Site;
use crate::wait;

/// Time limit for an alert to fire or to end. The longest one is a queue whose oldest key must wait for two minutes.
const LIMIT: Duration = Duration::from_mins(5);

/// A federation, the Prometheus server beside it, and the alerts that were tried.
pub(super) struct Trial<'s> {
    pub(super) federation: Federation<'s>,
    pub(super) prometheus: Prometheus,
    pub(super) runbook: Runbook,
    /// Alerts that a group has to try.
    expected: &'static [&'static str],
    fired: BTreeSet<String>,
    over: BTreeSet<String>,
}

impl<'s> Trial<'s> {
    /// Starts the federation and the server. `name` is the name of the log folder.
    pub(super) async fn start(
        site: &'s Site,
        name: &str,
        expected: &'static [&'static str],
        plan: Plan<'_>,
    ) -> anyhow::Result<Self> {
        let program = site.prometheus.as_deref();
        let program = program.context("name the program of Prometheus with --prometheus")?;
        let federation = Box::pin(Federation::start(site, name, plan)).await?;
        let path = site.root.join(rules::PATH);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let directory = federation.logs().join("prometheus");
        let prometheus = Prometheus::start(program, &rules::shortened(&text), &directory).await?;
        let runbook = Runbook::read(&site.root)?;
        Ok(Self {
            federation,
            prometheus,
            runbook,
            expected,
            fired: BTreeSet::new(),
            over: BTreeSet::new(),
        })
    }

    /// Scrapes these processes from now on, by their numbers in start order, and waits until all of them answer. A
    /// process that ends stays a target until the next call, like the pod of a Deployment.
    pub(super) async fn scrape(&self, processes: &[usize]) -> anyhow::Result<()> {
        let mut addresses = Vec::new();
        wait::until("the processes serve metrics", Duration::from_mins(1), async || {
            let found: anyhow::Result<Vec<_>> = processes
                .iter()
                .map(|process| self.federation.address(*process))
                .collect();
            addresses = found.map_err(|error| format!("{error:#}"))?;
            Ok(())
        })
        .await?;
        self.prometheus.scrape(&addresses).await
    }

    /// Waits until an alert fires, and returns the section that its annotation links to.
    pub(super) async fn fires(&mut self, name: &str) -> anyhow::Result<Section> {
        self.fires_with(name, &[]).await
    }

    /// Like [`Self::fires`], for the alert with these labels.
    pub(super) async fn fires_with(&mut self, name: &str, labels: &[(&str, &str)]) -> anyhow::Result<Section> {
        ensure!(self.expected.contains(&name), "{name} is not in the list of its group");
        let has_labels = |alert: &Alert| {
            let mut labels = labels.iter();
            labels.all(|(label, value)| alert.labels.get(*label).is_some_and(|found| found == value))
        };
        let mut runbook = String::new();
        let elapsed = wait::until(&format!("{name} fires"), LIMIT, async || {
            let alerts = self.prometheus.alerts().await.map_err(|error| format!("{error:#}"))?;
            let found = alerts
                .iter()
                .find(|alert| alert.is_firing && alert.name == name && has_labels(alert));
            let found = found.ok_or_else(|| shown(&alerts))?;
            runbook.clone_from(&found.runbook);
            Ok(())
        })
        .await?;
        println!("      {name} fires after {} s", elapsed.as_secs());
        self.fired.insert(name.to_owned());
        self.runbook.linked(&runbook)
    }

    /// Waits until none of the alerts fires, each of which fired before.
    pub(super) async fn end(&mut self, names: &[&str]) -> anyhow::Result<()> {
        if let Some(name) = names.iter().find(|name| !self.fired.contains(**name)) {
            bail!("{name} did not fire");
        }
        let elapsed = self.silent(names).await?;
        println!("      {} over after {} s", names.join(", "), elapsed.as_secs());
        self.over.extend(names.iter().map(|&name| name.to_owned()));
        Ok(())
    }

    /// Waits until none of the alerts fires, and returns the elapsed time.
    pub(super) async fn silent(&self, names: &[&str]) -> anyhow::Result<Duration> {
        let what = format!("{} do not fire", names.join(", "));
        wait::until(&what, LIMIT, async || {
            let mut alerts = self.prometheus.alerts().await.map_err(|error| format!("{error:#}"))?;
            alerts.retain(|alert| alert.is_firing && names.contains(&alert.name.as_str()));
            if alerts.is_empty() { Ok(()) } else { Err(shown(&alerts)) }
        })
        .await
    }

    /// Runs the command of a section that begins with a text, with values in place of words such as `NAME`, and returns
    /// its output. The command must succeed.
    pub(super) fn run(&self, section: &Section, prefix: &str, values: &[(&str, &str)]) -> anyhow::Result<String> {
        let (code, said) = self.try_run(section, prefix, values)?;
        ensure!(code == Some(0), "{prefix}: exit code {code:?}: {said}");
        Ok(said)
    }

    /// Like [`Self::run`], and returns the exit code too.
    pub(super) fn try_run(
        &self,
        section: &Section,
        prefix: &str,
        values: &[(&str, &str)],
    ) -> anyhow::Result<(Option<i32>, String)> {
        let hub = self.federation.hub.kubeconfig().display().to_string();
        let values = [&[("KARMADA", hub.as_str())], values].concat();
        self.federation.shell(&with_values(section.code(prefix)?, &values))
    }

    /// Applies the filter of the section's `kubectl logs` to the log of a process, and returns the lines. There is at
    /// least one.
    pub(super) fn logged(
        &mut self,
        section: &Section,
        process: usize,
        values: &[(&str, &str)],
    ) -> anyhow::Result<String> {
        const LOGS: &str = "kubectl -n karmada-system logs ";
        let command = section.code(LOGS)?;
        let (_, filter) = command
            .split_once(" | ")
            .with_context(|| format!("{command:?} has no filter"))?;
        let process = self.federation.processes().get(process);
        let log = process.context("there is no such process")?.log().display().to_string();
        let filter = format!("{} < {log}", with_values(filter, values));
        let (code, said) = self.federation.shell(&filter)?;
        ensure!(code == Some(0), "{filter}: exit code {code:?}: no such line");
        Ok(said)
    }

    /// Returns an error unless each alert of the group fired and ended.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let missing: Vec<_> = self
            .expected
            .iter()
            .filter(|name| !self.over.contains(**name))
            .collect();
        ensure!(missing.is_empty(), "these alerts were not tried: {missing:?}");
        Ok(())
    }
}

/// Formats alerts for an error.
fn shown(alerts: &[Alert]) -> String {
    let alert = |alert: &Alert| {
        let state = if alert.is_firing { "firing" } else { "pending" };
        format!("{} {state} {:?}", alert.name, alert.labels)
    };
    let alerts: Vec<_> = alerts.iter().map(alert).collect();
    format!("alerts: [{}]", alerts.join("; "))
}
