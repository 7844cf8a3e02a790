//! A trial as it is written: a scenario, and what goes wrong.
//!
//! Trials are made, run, made smaller and kept in the form of scenario files, so that what is written in the end is what
//! was run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bulkhead_controllers::flags::GoDuration;
use serde_json::{Value, json};

use super::Trouble;
use super::generate::Targets;
use crate::scenario::{self, Loaded};

/// When things go wrong, and for how long everything is well afterwards. All in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// From when things go wrong: everything has been placed by then.
    pub(super) from_s: u64,
    /// By when all of it is over.
    pub(super) until_s: u64,
    /// How long one thing lasts, at most.
    pub(super) lasts_max_s: u64,
    /// How long everything is well at the end, beyond the timers of the scenario where [`Self::counts_timers`].
    pub(super) quiet_s: u64,
    /// Whether the longest timers of the scenario have to run out, too.
    pub(super) counts_timers: bool,
}

impl Timing {
    /// For scenarios that somebody wrote, with timers as they are in production.
    pub(super) const LONG: Self =
        Self { from_s: 30, until_s: 480, lasts_max_s: 180, quiet_s: 300, counts_timers: true };
    /// For random federations, whose timers are short, or so long that nothing may wait for them.
    pub(super) const SHORT: Self =
        Self { from_s: 20, until_s: 200, lasts_max_s: 80, quiet_s: 180, counts_timers: false };
}

/// A trial.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// The file that names in it are relative to.
    path: PathBuf,
    pub(super) timing: Timing,
    /// The scenario as it is written, with its own events and without what it expects.
    pub(super) scenario: Value,
    pub(super) troubles: Vec<Trouble>,
}

impl Draft {
    /// A trial of a scenario that goes by its file's folder.
    pub(super) fn new(path: &Path, timing: Timing, mut scenario: Value) -> Self {
        if let Some(members) = scenario.as_object_mut() {
            members.remove("expect");
            members.insert("invariants".to_owned(), json!(true));
        }
        Self { path: path.to_path_buf(), timing, scenario, troubles: Vec::new() }
    }

    /// A trial of the scenario in a file.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let scenario = serde_saphyr::from_str(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        Ok(Self::new(path, Timing::LONG, scenario))
    }

    /// The events of the scenario itself.
    pub(super) fn events(&self) -> &[Value] {
        self.scenario.get("events").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Lets things go wrong.
    pub(super) fn with(
        mut self,
        seed: u64,
        troubles: impl FnOnce(&Targets<'_>, &Timing) -> Vec<Trouble>,
    ) -> anyhow::Result<Self> {
        let loaded = self.parse(&self.scenario)?;
        let clusters: Vec<_> = loaded.clusters.iter().map(|cluster| cluster.name.clone()).collect();
        let workloads: Vec<_> = loaded.manifests.iter().filter_map(|object| workload(&object.value)).collect();
        self.troubles = troubles(&Targets { clusters: &clusters, workloads: &workloads }, &self.timing);
        self.scenario["seed"] = json!(seed);
        Ok(self)
    }

    fn parse(&self, scenario: &Value) -> anyhow::Result<Loaded> {
        // The duration of the scenario itself means nothing here.
        let mut scenario = scenario.clone();
        if scenario.get("duration").is_none() {
            scenario["duration"] = json!("24h");
        }
        Ok(scenario::parse(&self.path, &scenario.to_string())?)
    }

    /// The whole scenario: what goes wrong, and an end that leaves time for every timer.
    pub(super) fn staged(&self) -> anyhow::Result<Value> {
        let loaded = self.parse(&self.scenario)?;
        let last = loaded.events.iter().map(|event| event.at).max().unwrap_or_default();
        let well_s = self.timing.until_s.max(last.0.as_secs() + 1) + if self.timing.counts_timers { 60 } else { 10 };
        let well = GoDuration::from_secs(well_s);
        let mut events = self.events().to_vec();
        events.extend(self.troubles.iter().flat_map(|trouble| trouble.events().cloned()));
        for cluster in &loaded.clusters {
            events.push(json!({"at": well, "cluster": cluster.name, "state": "recover"}));
            events.push(json!({"at": well, "cluster": cluster.name, "failureModes": []}));
        }
        if !self.timing.counts_timers && !loaded.plugins.is_empty() {
            // A plugin may hold for as long as the longest timer.
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
        staged["duration"] = json!(GoDuration(well.0 + GoDuration::from_secs(self.timing.quiet_s).0 + timers));
        Ok(staged)
    }

    /// The whole scenario, ready to run.
    pub(super) fn load(&self) -> anyhow::Result<Loaded> {
        self.parse(&self.staged()?)
    }

    /// Writes the whole scenario to a file.
    pub(super) fn write(&self, to: &Path) -> anyhow::Result<()> {
        let text = serde_saphyr::to_string(&self.staged()?)?;
        fs::write(to, text).with_context(|| format!("writing {}", to.display()))
    }
}

/// The workload that an object is, as `namespace/name`; none for anything else.
fn workload(object: &Value) -> Option<String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    matches!(text("/kind")?, "Deployment" | "StatefulSet").then(|| {
        format!("{}/{}", text("/metadata/namespace").unwrap_or("default"), text("/metadata/name").unwrap_or_default())
    })
}
