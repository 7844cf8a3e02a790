//! A trial as a scenario file.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::scenario::{ClusterState, EventAction, Loaded, LoadedEvent};

/// Writes a scenario that does again what a trial did: the one in `from` with other events.
pub(super) fn scenario(from: &Path, to: &Path, staged: &Loaded, seed: u64) -> anyhow::Result<()> {
    let text = fs::read_to_string(from).with_context(|| format!("reading {}", from.display()))?;
    let mut scenario: Value =
        serde_saphyr::from_str(&text).map_err(|error| anyhow::anyhow!("{}: {error}", from.display()))?;
    let own = scenario["events"].as_array().cloned().unwrap_or_default();
    let added = staged.events.iter().filter_map(event);
    let events: Vec<_> = own.into_iter().filter(|event| !is_state(event)).chain(added).collect();
    scenario["seed"] = json!(seed);
    scenario["duration"] = json!(staged.duration);
    scenario["invariants"] = json!(true);
    scenario["events"] = json!(events);
    if let Some(members) = scenario.as_object_mut() {
        members.remove("expect");
    }
    let text = serde_saphyr::to_string(&scenario)?;
    fs::write(to, text).with_context(|| format!("writing {}", to.display()))
}

/// The staged scenario has these too.
fn is_state(event: &Value) -> bool {
    event.get("state").is_some() || event.get("fault").is_some()
}

/// An event as it is written; none for those that the scenario itself has.
fn event(event: &LoadedEvent) -> Option<Value> {
    let at = event.at;
    match &event.action {
        EventAction::ClusterState(cluster, state) => {
            let state = match state {
                ClusterState::Unreachable => "unreachable",
                ClusterState::ReadyzFailing => "readyz-failing",
                ClusterState::ReadyzDegraded => "readyz-degraded",
                ClusterState::Recover => "recover",
            };
            Some(json!({"at": at, "cluster": cluster, "state": state}))
        }
        EventAction::FailureModes(cluster, modes) if modes.is_empty() => {
            Some(json!({"at": at, "cluster": cluster, "failureModes": []}))
        }
        EventAction::Fault(fault) => Some(json!({"at": at, "fault": fault})),
        EventAction::FailureModes(..)
        | EventAction::Apply(..)
        | EventAction::Delete(_)
        | EventAction::KillController(..)
        | EventAction::Plugins(_) => None,
    }
}
