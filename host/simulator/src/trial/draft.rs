//! Trial as scenario data: a scenario and its faults.
//!
//! Trials are created, run, minimized and stored as scenario files, so that a written file is exactly what was run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bulkhead_controllers::flags::GoDuration;
use bulkhead_plugin::read_document;
use serde_json::{Value, json};

use super::Disruption;
use super::generate::Targets;
use super::timing::Timing;
use crate::scenario::{self, Loaded};

/// Trial that can be modified, run and written.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// Path of the scenario file, which relative file names refer to.
    path: PathBuf,
    pub(super) timing: Timing,
    /// Scenario as data, with its own events and without its expectations.
    pub(super) scenario: Value,
    pub(super) disruptions: Vec<Disruption>,
}

impl Draft {
    /// Creates a trial of a scenario whose relative file names refer to the directory of `path`.
    pub(super) fn new(path: &Path, timing: Timing, mut scenario: Value) -> Self {
        if let Some(members) = scenario.as_object_mut() {
            members.remove("expect");
            members.insert("invariants".to_owned(), json!(true));
        }
        Self {
            path: path.to_path_buf(),
            timing,
            scenario,
            disruptions: Vec::new(),
        }
    }

    /// Reads a trial from a scenario file.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let scenario = read_document(&path.display().to_string(), &text).map_err(anyhow::Error::msg)?;
        Ok(Self::new(path, Timing::LONG, scenario))
    }

    /// Returns the scenario's own events.
    pub(super) fn events(&self) -> &[Value] {
        self.scenario
            .get("events")
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    /// Adds the generated disruptions and the seed.
    pub(super) fn with(
        mut self,
        seed: u64,
        disruptions: impl FnOnce(&Targets<'_>, &Timing) -> Vec<Disruption>,
    ) -> anyhow::Result<Self> {
        let loaded = self.parse(&self.scenario)?;
        let clusters: Vec<_> = loaded.clusters.iter().map(|cluster| cluster.name.clone()).collect();
        let workloads: Vec<_> = loaded
            .manifests
            .iter()
            .filter_map(|object| workload(&object.value))
            .collect();
        self.disruptions = disruptions(
            &Targets {
                clusters: &clusters,
                workloads: &workloads,
            },
            &self.timing,
        );
        self.scenario["seed"] = json!(seed);
        Ok(self)
    }

    fn parse(&self, scenario: &Value) -> anyhow::Result<Loaded> {
        // The scenario's own duration is irrelevant.
        let mut scenario = scenario.clone();
        if scenario.get("duration").is_none() {
            scenario["duration"] = json!("24h");
        }
        Ok(scenario::parse(&self.path, &scenario.to_string())?)
    }

    /// Builds the complete scenario: faults, recovery, and an end that leaves time for every timer.
    pub(super) fn staged(&self) -> anyhow::Result<Value> {
        let loaded = self.parse(&self.scenario)?;
        let last = loaded.events.iter().map(|event| event.at).max().unwrap_or_default();
        let well_s = self.timing.until_s.max(last.0.as_secs() + 1) + if self.timing.counts_timers { 60 } else { 10 };
        let well = GoDuration::from_secs(well_s);
        let mut events = self.events().to_vec();
        events.extend(
            self.disruptions
                .iter()
                .flat_map(|disruption| disruption.events().cloned()),
        );
        for cluster in &loaded.clusters {
            events.push(json!({"at": well, "cluster": cluster.name, "state": "recover"}));
            events.push(json!({"at": well, "cluster": cluster.name, "failureModes": []}));
        }
        if !self.timing.counts_timers && !loaded.plugins.is_empty() {
            // A plugin may hold evictions for as long as the longest timer.
            events.push(json!({"at": well, "plugins": []}));
        }
        let flags = &loaded.flags;
        let timers = if self.timing.counts_timers {
            flags.graceful_eviction_timeout.0 + flags.failover_eviction_timeout.0
        } else {
            std::time::Duration::ZERO
        };
        let mut staged = self.scenario.clone();
        staged["events"] = json!(events);
        staged["duration"] = json!(GoDuration(
            well.0 + GoDuration::from_secs(self.timing.quiet_s).0 + timers
        ));
        Ok(staged)
    }

    /// Loads the complete scenario for a run.
    pub(super) fn load(&self) -> anyhow::Result<Loaded> {
        self.parse(&self.staged()?)
    }

    /// Writes the complete scenario to a file.
    pub(super) fn write(&self, to: &Path) -> anyhow::Result<()> {
        let text = serde_saphyr::to_string(&self.staged()?)?;
        fs::write(to, text).with_context(|| format!("writing {}", to.display()))
    }
}

/// Returns the key of a workload object, as `namespace/name`; `None` for other kinds.
fn workload(object: &Value) -> Option<String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    matches!(text("/kind")?, "Deployment" | "StatefulSet").then(|| {
        format!(
            "{}/{}",
            text("/metadata/namespace").unwrap_or("default"),
            text("/metadata/name").unwrap_or_default()
        )
    })
}
