//! A bad image that is corrected during the evictions that follow from it.

use serde_json::{Value, json};

use super::coincidences::{CALM_S, add, deployment, policy};
use crate::trial::seeded_rng::SeededRng;

/// Adds a workload whose new image no cluster can pull, and a person who corrects it while its evictions are in
/// progress: one in ten federations without limited capacity, and most of those without a pre-check of evictions,
/// independent of the other combinations.
pub(super) fn draw(seed: u64, scenario: &mut Value) {
    let mut rng = SeededRng::new(seed, 0x0000_bad1_3a6e);
    // Without the pre-check an application leaves its last place, as in Karmada. Only the correction brings it back in
    // time, because its grace period is longer than a correction may take.
    let leaves_last_place = scenario["flags"]["eviction-pre-check"] == "none";
    let clusters = scenario["clusters"].as_array_mut().into_iter().flatten();
    let clusters: Vec<_> = clusters.collect();
    let is_limited = |cluster: &&mut Value| cluster["capacity"].is_object() || cluster["replicaReadyAfter"] == "100s";
    let likely = if leaves_last_place { 80 } else { 10 };
    if !rng.chance(likely) || clusters.iter().any(is_limited) {
        return;
    }
    let first = clusters.first().map(|cluster| cluster["name"].clone());
    for cluster in clusters {
        cluster["unpullableImages"] = json!(["app:bad"]);
    }
    let name = "bad-image";
    let with_image = |image: &str| {
        let mut deployment = deployment(name, 2);
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        deployment
    };
    let placement = match rng.between(1, 3) {
        1 if leaves_last_place => json!({"clusterAffinity": {"clusterNames": [first]}}),
        1 => json!({}),
        2 => json!({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}),
        _ => {
            json!({"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}})
        }
    };
    let conditions = json!({"tolerationSeconds": rng.between(0, 15)});
    let (shortest_s, longest_s) = if leaves_last_place { (110, 140) } else { (30, 60) };
    let application = if rng.chance(50) {
        let grace_s = rng.between(shortest_s, longest_s);
        json!({"decisionConditions": conditions, "purgeMode": "Gracefully", "gracePeriodSeconds": grace_s})
    } else {
        json!({"decisionConditions": conditions, "purgeMode": "Directly"})
    };
    let spec = json!({"placement": placement, "propagateDeps": true, "failover": {"application": application}});
    add(
        scenario,
        "/manifests/0/objects",
        [with_image("app:1"), policy(name, "apps/v1", "Deployment", &spec)],
    );
    let bad_s = CALM_S + rng.between(0, 20);
    let good_s = bad_s + rng.between(15, 60);
    let apply = |at_s: u64, image: &str| json!({"at": format!("{at_s}s"), "apply": {"objects": [with_image(image)]}});
    add(scenario, "/events", [apply(bad_s, "app:bad"), apply(good_s, "app:2")]);
}
