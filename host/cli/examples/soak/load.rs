//! Load of a federation: workloads, changes of them, and plugins that use most of their wall clock in each call.
//!
//! A script has no clock, so it counts. The count is tuned until some calls exceed their time, which puts the others
//! closely below it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bulkhead_apiserver::{ApiServer, Content};
use bulkhead_core::call::{Call, HealthCall};
use bulkhead_core::manifest::{Budget, EntryPoint};
use bulkhead_core::policy::EngineKind;
use bulkhead_core::time::Time;
use bulkhead_engine_lua::LuaEngine;
use bulkhead_plugin::{Engine as _, Entry, Module, PluginSource};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::outside::federation::create;

/// Namespace of the workloads.
const NAMESPACE: &str = "default";
/// Start of the names of the workloads. Scripts work only for them, so that the checks at their loading take no time.
const PREFIX: &str = "soak-";
/// Interval between two changes of workloads, far below the time that the plugins need for one.
const CHANGE: Duration = Duration::from_millis(100);
/// Share of the wall clock that a call is to use.
const SHARE: f64 = 0.9;
/// Number of loops of the calibration.
const CALIBRATION_LOOPS: u64 = 20_000_000;

const TAINT_POLICY: &str = include_str!("../../../../examples/nginx-divided/taint-policy.yaml");

/// Functions that every script has.
const COMMON: &str = "
local function member(value, name)
  if type(value) == 'table' then return value[name] end
  return nil
end
local function work(name)
  if type(name) ~= 'string' or name:sub(1, 5) ~= 'soak-' then return end
  local sum = 0
  for number = 1, LOOPS do sum = sum + number % 7 end
end
local function work_for(object) work(member(member(object, 'metadata'), 'name')) end
";
const FILTER: &str = "
function Filter(binding, clusters, now)
  work(binding.name)
  local verdicts = {}
  for index in ipairs(clusters) do verdicts[index] = true end
  return verdicts
end
";
const SCORE: &str = "
function Score(binding, clusters, now)
  work(binding.name)
  local scores = {}
  for index in ipairs(clusters) do scores[index] = 50 end
  return scores
end
";
const HEALTH: &str = "
function InterpretHealth(observedObj)
  work_for(observedObj)
  local desired = member(member(observedObj, 'spec'), 'replicas')
  return desired ~= nil and member(member(observedObj, 'status'), 'readyReplicas') == desired
end
";
const STATUS: &str = "
function ReflectStatus(observedObj)
  work_for(observedObj)
  local status = member(observedObj, 'status')
  if type(status) ~= 'table' then return {} end
  return status
end
";

/// A plugin of the load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plugin {
    name: &'static str,
    script: &'static str,
    /// Kinds of `apps/v1` that it handles; empty for a plugin of the scheduler.
    kinds: &'static [&'static str],
}

const BOTH: &[&str] = &["Deployment", "StatefulSet"];

/// Plugins of the control plane's process.
pub(crate) const CONTROL_PLANE: [Plugin; 4] = [
    Plugin {
        name: "soak-filter",
        script: FILTER,
        kinds: &[],
    },
    Plugin {
        name: "soak-score",
        script: SCORE,
        kinds: &[],
    },
    Plugin {
        name: "soak-health",
        script: HEALTH,
        kinds: BOTH,
    },
    Plugin {
        name: "soak-status",
        script: STATUS,
        kinds: BOTH,
    },
];
/// Plugins of an agent, which schedules nothing.
pub(crate) const AGENT: [Plugin; 4] = [
    Plugin {
        name: "soak-health",
        script: HEALTH,
        kinds: &["Deployment"],
    },
    Plugin {
        name: "soak-status",
        script: STATUS,
        kinds: &["Deployment"],
    },
    Plugin {
        name: "soak-health-of-sets",
        script: HEALTH,
        kinds: &["StatefulSet"],
    },
    Plugin {
        name: "soak-status-of-sets",
        script: STATUS,
        kinds: &["StatefulSet"],
    },
];

/// Directory of the plugins of a process.
pub(crate) struct Plugins {
    folder: PathBuf,
    plugins: [Plugin; 4],
    wall_clock_ms: u64,
    loops: u64,
}

/// Calls of one plugin, and those that ended in a fault.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calls {
    pub(crate) total: u64,
    pub(crate) faults: u64,
}

impl Plugins {
    /// Writes plugins that do no work yet.
    pub(crate) fn idle(folder: PathBuf, plugins: [Plugin; 4], wall_clock_ms: u64) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let mut list = String::from("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginList\nplugins:\n");
        for Plugin { name, kinds, .. } in &plugins {
            writeln!(list, "- name: {name}\n  lua: {name}.lua\n  breaker: {{faults: 0}}")?;
            writeln!(list, "  budget: {{steps: {}, wallClockMs: {wall_clock_ms}}}", u64::MAX)?;
            if !kinds.is_empty() {
                let kinds: Vec<_> = kinds
                    .iter()
                    .map(|kind| format!("{{apiVersion: apps/v1, kind: {kind}}}"))
                    .collect();
                writeln!(list, "  kinds: [{}]", kinds.join(", "))?;
            }
        }
        let written = Self {
            folder,
            plugins,
            wall_clock_ms,
            loops: 0,
        };
        written.write_scripts()?;
        std::fs::write(written.folder.join("plugins.yaml"), list).context("writing the list of plugins")?;
        Ok(written)
    }

    fn write_scripts(&self) -> anyhow::Result<()> {
        for Plugin { name, script, .. } in &self.plugins {
            let path = self.folder.join(format!("{name}.lua"));
            // The process may read a file at any time, so a complete one takes its place.
            let next = self.folder.join(format!("{name}.next"));
            std::fs::write(&next, source(self.loops, script)).with_context(|| format!("writing {}", next.display()))?;
            std::fs::rename(&next, &path).with_context(|| format!("renaming {}", next.display()))?;
        }
        Ok(())
    }

    /// Returns the directory.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Lets the plugins work. The first count comes from a measurement with a number of threads.
    pub(crate) fn begin(&mut self, threads: usize) -> anyhow::Result<()> {
        let loops_per_ms = loops_per_ms(threads)?;
        self.loops = (SHARE * self.wall_clock_ms as f64 * loops_per_ms) as u64;
        self.write_scripts()
    }

    /// Tunes the work by the calls since the last change.
    pub(crate) fn tune(&mut self, calls: &BTreeMap<String, Calls>) -> anyhow::Result<()> {
        let (total, faults) = calls
            .values()
            .fold((0, 0), |sum, calls| (sum.0 + calls.total, sum.1 + calls.faults));
        if total == 0 {
            return Ok(());
        }
        let factor = match faults * 20 / total {
            // More than half of the calls are late.
            10.. => 0.7,
            2..10 => 0.9,
            1 => return Ok(()),
            0 => 1.15,
        };
        self.loops = (self.loops as f64 * factor) as u64;
        self.write_scripts()
    }
}

fn source(loops: u64, script: &str) -> String {
    format!("local LOOPS = {loops}\n{COMMON}{script}")
}

/// Measures the loops that a script makes in a millisecond while others run on further threads.
fn loops_per_ms(threads: usize) -> anyhow::Result<f64> {
    let object_kind = Some(("apps/v1".to_owned(), "Deployment".to_owned()));
    let entries = vec![Entry {
        point: EntryPoint::Health,
        object_kind,
    }];
    let code = source(CALIBRATION_LOOPS, HEALTH);
    let module = Module {
        origin: "health.lua".to_owned(),
        code: code.into(),
        entries,
    };
    let budget = Budget {
        steps: u64::MAX,
        wall_clock_ms: 600_000,
        ..Budget::default()
    };
    let source = PluginSource {
        budget,
        ..PluginSource::new("health", EngineKind::Lua, vec![module])
    };
    let engine = LuaEngine::default();
    let loaded = engine.load(&source)?;
    let policy = &loaded.policy;
    let name = format!("{PREFIX}0");
    let object =
        &Arc::new(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {}}));
    let started = Instant::now();
    let failed = std::thread::scope(|scope| {
        let call = move || {
            policy
                .call(&Call::Health(HealthCall {
                    object,
                    now: Time::from_millis(0),
                }))
                .err()
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(call)).collect();
        threads.into_iter().find_map(|thread| thread.join().ok().flatten())
    });
    if let Some(fault) = failed {
        bail!("cannot calibrate the plugins: {fault:?}");
    }
    Ok(CALIBRATION_LOOPS as f64 / started.elapsed().as_secs_f64() / 1_000.0)
}

/// Returns the name of a workload.
fn name(number: usize) -> String {
    format!("{PREFIX}{number}")
}

/// True for a workload that is a StatefulSet; the others are Deployments.
fn is_set(number: usize) -> bool {
    number % 2 == 1
}

/// Creates the workloads, their policies and a policy that taints clusters that are not ready. The workloads are
/// spread over `homes`, and each may leave its home for another cluster.
pub(crate) fn create_workloads(hub: &ApiServer, homes: &[&str], others: &[&str], count: usize) -> anyhow::Result<()> {
    create(hub, "", serde_saphyr::from_str::<Value>(TAINT_POLICY)?)?;
    for home in homes {
        let refuges: Vec<_> = homes.iter().chain(others).filter(|name| *name != home).collect();
        let selectors = ["Deployment", "StatefulSet"].map(
            |kind| json!({"apiVersion": "apps/v1", "kind": kind, "labelSelector": {"matchLabels": {"home": home}}}),
        );
        let policy = json!({
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": home, "namespace": NAMESPACE},
            "spec": {
                "resourceSelectors": selectors,
                // Admission refuses application failover without it.
                "propagateDeps": true,
                // A workload that looks unhealthy because of a delay would leave its cluster.
                "failover": {"application": {
                    "decisionConditions": {"tolerationSeconds": 30},
                    "purgeMode": "Graciously",
                    "gracePeriodSeconds": 600,
                }},
                "placement": {"clusterAffinities": [
                    {"affinityName": "home", "clusterNames": [home]},
                    {"affinityName": "refuge", "clusterNames": refuges},
                ]},
            },
        });
        create(hub, NAMESPACE, policy)?;
    }
    for number in 0..count {
        let (name, home) = (name(number), homes[number / 2 % homes.len()]);
        let kind = if is_set(number) { "StatefulSet" } else { "Deployment" };
        let mut spec = json!({
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "app"}]},
            },
        });
        if is_set(number) {
            spec["serviceName"] = json!(name);
        }
        let metadata = json!({"name": name, "namespace": NAMESPACE, "labels": {"home": home}});
        let workload = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec});
        create(hub, NAMESPACE, workload)?;
    }
    Ok(())
}

/// Returns the number of bindings whose workload is healthy.
pub(crate) fn healthy(hub: &ApiServer) -> anyhow::Result<usize> {
    let kind = hub
        .kind_id("work.karmada.io/v1alpha2", "ResourceBinding")
        .context("no bindings are served")?;
    let bindings = hub.store().list(kind, Some(NAMESPACE));
    let is_healthy = |binding: &Content| {
        let items = binding["status"]["aggregatedStatus"].as_array();
        items.is_some_and(|items| !items.is_empty() && items.iter().all(|item| item["health"] == "Healthy"))
    };
    Ok(bindings.iter().filter(|binding| is_healthy(binding.content())).count())
}

/// Changes an annotation of one workload after the other. The workloads stay healthy, and every change leads to calls
/// of all plugins.
pub(crate) async fn change_workloads(hub: &ApiServer, count: usize) -> anyhow::Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(hub.client(), NAMESPACE);
    let sets: Api<StatefulSet> = Api::namespaced(hub.client(), NAMESPACE);
    let mut ticks = tokio::time::interval(CHANGE);
    for round in 0_u64.. {
        for number in 0..count {
            ticks.tick().await;
            let patch = Patch::Merge(json!({"metadata": {"annotations": {"round": round.to_string()}}}));
            let (name, params) = (name(number), PatchParams::default());
            let changed = if is_set(number) {
                sets.patch(&name, &params, &patch).await.map(drop)
            } else {
                deployments.patch(&name, &params, &patch).await.map(drop)
            };
            changed.with_context(|| format!("changing {name}"))?;
        }
    }
    Ok(())
}

/// Returns the calls of each plugin so far, from the metrics of the process.
pub(crate) async fn calls(address: &str) -> anyhow::Result<BTreeMap<String, Calls>> {
    let asking = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        anyhow::Ok(text)
    };
    let text = asking
        .await
        .with_context(|| format!("reading the metrics at {address}"))?;
    let mut calls: BTreeMap<String, Calls> = BTreeMap::new();
    for line in text.lines() {
        let Some((metric, value)) = line.rsplit_once(' ') else {
            continue;
        };
        let of = |family: &str| {
            let name = metric
                .strip_prefix(family)?
                .strip_prefix("{plugin=\"")?
                .strip_suffix("\"}")?;
            Some((name.to_owned(), value.parse::<u64>().ok()?))
        };
        if let Some((name, total)) = of("bulkhead_plugin_calls_total") {
            calls.entry(name).or_default().total = total;
        } else if let Some((name, faults)) = of("bulkhead_plugin_faults_total") {
            calls.entry(name).or_default().faults = faults;
        }
    }
    Ok(calls)
}

/// Returns the calls of the listed plugins between two readings. A plugin that was loaded meanwhile counts from its
/// loading.
pub(crate) fn calls_between(
    plugins: &[Plugin],
    before: &BTreeMap<String, Calls>,
    after: &BTreeMap<String, Calls>,
) -> BTreeMap<String, Calls> {
    let of = |plugin: &Plugin| {
        let known = |calls: &BTreeMap<String, Calls>| calls.get(plugin.name).copied().unwrap_or_default();
        let (before, after) = (known(before), known(after));
        let before = if after.total < before.total {
            Calls::default()
        } else {
            before
        };
        let faults = after.faults.saturating_sub(before.faults);
        (
            plugin.name.to_owned(),
            Calls {
                total: after.total - before.total,
                faults,
            },
        )
    };
    plugins.iter().map(of).collect()
}
