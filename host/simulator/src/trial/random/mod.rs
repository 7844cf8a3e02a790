//! Random federations: member clusters, settings, policies, workloads, plugins and actions of people, from a seed.
//!
//! The result is a plausible scenario that can always recover: everything fits somewhere once all faults are over,
//! and people undo their actions.

mod bad_image;
mod coincidences;
mod people;
mod plugins;
mod policies;
mod settings;
mod tenants;
mod workloads;

use std::path::Path;

use serde_json::{Value, json};

use super::draft::Draft;
use super::seeded_rng::SeededRng;
use super::timing::Timing;

/// Minimum and maximum number of member clusters.
const CLUSTERS: (u64, u64) = (2, 8);
/// Maximum number of workloads.
const WORKLOADS_MAX: u64 = 6;

/// Generates the federation of a seed. `path` is the nominal path of its file, which does not have to exist.
pub(super) fn draft(seed: u64, path: &Path) -> Draft {
    let mut rng = SeededRng::new(seed, 0x00fe_de2a_7105);
    // Most federations are small, because most failures need only a few clusters.
    let most = if rng.chance(70) { CLUSTERS.0 + 2 } else { CLUSTERS.1 };
    let count = rng.between(CLUSTERS.0, most);
    let names: Vec<_> = (1..=count).map(|n| format!("member{n}")).collect();
    let mut settings = settings::draw(&mut rng);
    let clusters: Vec<_> = names.iter().map(|name| cluster(&mut rng, name)).collect();
    let apps: Vec<_> = (1..=rng.between(1, WORKLOADS_MAX))
        .map(|n| workloads::draw(&mut rng, n))
        .collect();
    let mut objects = policies::taints(&mut rng, &mut settings);
    let crowded = settings.crowded;
    for app in &apps {
        objects.extend(app.objects.iter().cloned());
        objects.push(policies::propagation(&mut rng, app, &names, &settings));
    }
    let mut scenario = json!({
        "name": format!("random federation {seed}"),
        "seed": seed,
        "flags": settings.flags,
        "clusters": clusters,
        "manifests": [{"objects": objects}],
        "events": people::draw(&mut rng, &apps, &names),
    });
    if crowded {
        crowd(&mut scenario, &apps);
    }
    plugins::draw(&mut rng, &mut scenario);
    coincidences::draw(&mut rng, &mut scenario, &names, crowded);
    bad_image::draw(seed, &mut scenario);
    tenants::draw(seed, &mut scenario, &names);
    if rng.chance(15) {
        scenario["witness"] = json!(true);
    }
    if let Some(events) = scenario["events"].as_array_mut() {
        events.extend(people::reschedulings(seed, &apps));
    }
    Draft::new(path, Timing::SHORT, scenario)
}

fn cluster(rng: &mut SeededRng, name: &str) -> Value {
    let mut cluster = json!({"name": name, "replicaReadyAfter": rng.seconds(1, 10)});
    if rng.chance(40) {
        cluster["replicaReadyJitter"] = json!(rng.seconds(1, 3));
    }
    if rng.chance(50) {
        cluster["region"] = json!(rng.one_of(&["east", "west"]));
        cluster["provider"] = json!("cloud");
    }
    if rng.chance(20) {
        cluster["labels"] = json!({"tier": rng.one_of(&["gold", "silver"])});
    }
    if rng.chance(15) {
        cluster["syncMode"] = json!("Pull");
    }
    cluster
}

/// Limits the capacity: the remaining clusters can run everything after the loss of one, but a single cluster
/// cannot.
fn crowd(scenario: &mut Value, apps: &[workloads::App]) {
    let pods: u64 = apps.iter().map(|app| app.replicas).sum();
    let Some(clusters) = scenario["clusters"].as_array_mut() else {
        return;
    };
    let others = u64::try_from(clusters.len()).unwrap_or(1).saturating_sub(1).max(1);
    let room = pods.div_ceil(others) * 3 / 2 + 2;
    for cluster in clusters {
        cluster["capacity"] = json!({"nodes": 1, "cpu": "64", "memory": "256Gi", "pods": room});
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_federation_loads_and_a_seed_always_gives_the_same() {
        let mut shapes = BTreeSet::new();
        for seed in 0..150 {
            let draft = draft(seed, Path::new("random.yaml"));
            let loaded = draft
                .load()
                .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{:#}", draft.scenario));
            assert_eq!(loaded.warnings, [""; 0], "seed {seed}");
            assert_eq!(draft.scenario, super::draft(seed, Path::new("random.yaml")).scenario);
            shapes.insert(format!(
                "{} clusters, {} plugins",
                loaded.clusters.len(),
                loaded.plugins.len()
            ));
        }
        assert!(shapes.len() > 10, "{shapes:?}");
    }
}
