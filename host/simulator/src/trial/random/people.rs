//! Actions of people, all of which end before the fault-free period.

use bulkhead_controllers::controller_names;
use bulkhead_controllers::flags::GoDuration;
use serde_json::{Value, json};

use super::workloads::App;
use crate::trial::seeded_rng::SeededRng;

/// Time range of actions, in seconds. [`UNDONE_S`] is the range of their reversal.
const ACTS_S: (u64, u64) = (20, 140);
const UNDONE_S: (u64, u64) = (150, 190);

pub(super) fn draw(rng: &mut SeededRng, apps: &[App], clusters: &[String]) -> Vec<Value> {
    let mut events = Vec::new();
    let mut touched = std::collections::BTreeSet::new();
    for _ in 0..rng.between(0, 4) {
        let (at, undone) = (rng.seconds(ACTS_S.0, ACTS_S.1), rng.seconds(UNDONE_S.0, UNDONE_S.1));
        let choice = rng.between(1, 6);
        // At most one drain, one pause and one taint per scenario.
        if choice <= 3 && !touched.insert(choice) {
            continue;
        }
        match choice {
            1 => events.extend(drain(rng, clusters, at, undone)),
            2 => events.extend(pause(rng, apps, clusters, at, undone)),
            3 => events.extend(taint(rng, clusters, at)),
            4 | 5 => events.extend(scale(rng, apps, at)),
            _ => events.extend(kill(rng, at)),
        }
    }
    events.sort_by_key(|event| serde_json::from_value::<GoDuration>(event["at"].clone()).unwrap_or_default());
    events
}

fn drain(rng: &mut SeededRng, clusters: &[String], at: GoDuration, undone: GoDuration) -> Vec<Value> {
    let Some(cluster) = rng.one_of(clusters) else {
        return Vec::new();
    };
    vec![
        json!({"at": at, "drain": {"cluster": cluster}}),
        json!({"at": undone, "undrain": cluster}),
    ]
}

fn pause(rng: &mut SeededRng, apps: &[App], clusters: &[String], at: GoDuration, undone: GoDuration) -> Vec<Value> {
    let spec = match rng.between(1, 3) {
        1 => json!({"reason": "holidays"}),
        2 => json!({"clusters": [rng.one_of(clusters)]}),
        _ => match rng.one_of(apps) {
            Some(app) if !app.cluster_scoped => {
                json!({"workloads": [{"kind": app.kind, "namespace": "default", "name": app.name}]})
            }
            _ => json!({"namespaces": ["default"]}),
        },
    };
    let (api_version, kind, name) = ("bulkhead.dev/v1alpha1", "EvictionPause", "pause");
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    vec![
        json!({"at": at, "apply": {"objects": [object]}}),
        json!({"at": undone, "delete": {"apiVersion": api_version, "kind": kind, "name": name}}),
    ]
}

/// Generates a person's taint, sometimes with a key that a policy uses as well.
fn taint(rng: &mut SeededRng, clusters: &[String], at: GoDuration) -> Option<Value> {
    let cluster = rng.one_of(clusters)?;
    let key = rng.one_of(&["example.com/lost", "example.com/maintenance"])?;
    let object = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": cluster},
        "spec": {"taints": [{"key": key, "value": "person", "effect": "NoSchedule"}]},
    });
    Some(json!({"at": at, "apply": {"objects": [object]}}))
}

fn scale(rng: &mut SeededRng, apps: &[App], at: GoDuration) -> Option<Value> {
    let workloads: Vec<_> = apps.iter().filter(|app| app.is_workload()).collect();
    let app = rng.one_of(&workloads)?;
    // The bound keeps the workload within a limited capacity.
    let replicas = rng.between(1, app.replicas + 1).min(6);
    let object = json!({
        "apiVersion": app.api_version, "kind": app.kind,
        "metadata": {"name": app.name, "namespace": "default"}, "spec": {"replicas": replicas},
    });
    Some(json!({"at": at, "apply": {"objects": [object]}}))
}

/// Requests the rescheduling of workloads: one in three federations, with up to three requests, during the faults and after
/// them.
pub(super) fn reschedulings(seed: u64, apps: &[App]) -> Vec<Value> {
    let mut rng = SeededRng::new(seed, 0x000e_5c4e_d01e);
    let named = apps.iter().filter(|app| app.is_workload());
    let bindings: Vec<_> = named
        .map(|app| format!("default/{}-{}", app.name, app.kind.to_lowercase()))
        .collect();
    if !rng.chance(33) {
        return Vec::new();
    }
    let mut events = Vec::new();
    for _ in 0..rng.between(1, 3) {
        let at = rng.seconds(ACTS_S.0, UNDONE_S.1);
        events.extend(
            rng.one_of(&bindings)
                .map(|binding| json!({"at": at, "reschedule": binding})),
        );
    }
    events
}

fn kill(rng: &mut SeededRng, at: GoDuration) -> Option<Value> {
    let names: Vec<_> = controller_names().chain(["*"]).collect();
    Some(json!({"at": at, "kill-controller": rng.one_of(&names)?, "for": rng.seconds(0, 20)}))
}
