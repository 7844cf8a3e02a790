//! Tenants: workloads in namespaces of their own, and plugins that are asked about some of them only.

use serde_json::{Value, json};

use super::coincidences::{add, deployment, policy};
use crate::trial::seeded_rng::SeededRng;

/// Share of the federations with tenants, in percent. Their workloads take time in every trial that has them.
const SHARE: u64 = 8;

/// Namespaces of tenants. Two of them have one start.
const NAMESPACES: [&str; 3] = ["team-a", "team-a-web", "team-b"];

/// Name of the workload in each namespace.
const NAME: &str = "web";

/// Selectors besides namespaces that fit the calls of a script.
#[derive(Clone, Copy)]
enum Calls {
    /// Calls with an object.
    Objects,
    /// Calls about a binding and all clusters.
    Placements,
    /// Calls about a binding and the cluster that it leaves.
    Evictions,
}

/// Script of a plugin, by the name of the plugin.
type Script = (&'static str, Calls, &'static str);

/// Scripts of plugins with a scope. They answer what is true, or hold, or fail.
const SCOPED: [Script; 7] = [
    (
        "scoped-hold",
        Calls::Evictions,
        "function EvictionCheck(binding, task, observed, now)\n  return {verdict = 'hold', reason = 'Freeze', recheckAfterSeconds = 7}\nend\n",
    ),
    (
        "scoped-broken",
        Calls::Evictions,
        "function EvictionCheck(binding, task, observed, now)\n  error('broken')\nend\n",
    ),
    (
        "scoped-rank",
        Calls::Evictions,
        "function Score(binding, clusters, now)\n  return {50}\nend\n",
    ),
    (
        "scoped-cheapest",
        Calls::Placements,
        "function Score(binding, clusters, now)\n  local scores = {}\n  for index, cluster in ipairs(clusters) do\n    scores[index] = (index * 37) % 101\n  end\n  return scores\nend\n",
    ),
    (
        "scoped-open",
        Calls::Placements,
        "function Filter(binding, clusters, now)\n  local verdicts = {}\n  for index, cluster in ipairs(clusters) do\n    verdicts[index] = {fit = true}\n  end\n  return verdicts\nend\n",
    ),
    (
        "scoped-ready",
        Calls::Objects,
        "function InterpretHealth(object)\n  local status = object.status or {}\n  local spec = object.spec or {}\n  return (status.readyReplicas or 0) == (spec.replicas or 0)\nend\n",
    ),
    (
        "scoped-dependencies",
        Calls::Objects,
        "function GetDependencies(object)\n  return {}\nend\n",
    ),
];

/// Scripts of the plugins of tenants, whose releases and healthy verdicts do not count.
const OF_TENANTS: [Script; 4] = [
    (
        "tenant-hold",
        Calls::Evictions,
        "function EvictionCheck(binding, task, observed, now)\n  return {verdict = 'hold', reason = 'Audit', recheckAfterSeconds = 9}\nend\n",
    ),
    (
        "tenant-release",
        Calls::Evictions,
        "function EvictionCheck(binding, task, observed, now)\n  return {verdict = 'release', reason = 'Impatient'}\nend\n",
    ),
    (
        "tenant-healthy",
        Calls::Objects,
        "function InterpretHealth(object)\n  return true\nend\n",
    ),
    (
        "tenant-both",
        Calls::Objects,
        "function EvictionCheck(binding, task, observed, now)\n  return 'release'\nend\nfunction InterpretHealth(object)\n  return true\nend\n",
    ),
];

/// Adds tenants to some federations without limited capacity, independent of everything else: two or three namespaces
/// with a workload that fails for a time, plugins with a scope, and plugins of a tenant.
pub(super) fn draw(seed: u64, scenario: &mut Value, clusters: &[String]) {
    let mut rng = SeededRng::new(seed, 0x007e_aa47_5000);
    let limited = |cluster: &Value| cluster["capacity"].is_object() || cluster["replicaReadyAfter"] == "100s";
    let is_limited = scenario["clusters"]
        .as_array()
        .is_some_and(|all| all.iter().any(limited));
    if !rng.chance(SHARE) || is_limited {
        return;
    }
    let namespaces = rng.some_of(&NAMESPACES, 2);
    workloads(&mut rng, scenario, &namespaces, clusters);
    for (list, empty) in [("plugins", json!([])), ("files", json!({})), ("tenants", json!({}))] {
        if scenario[list].is_null() {
            scenario[list] = empty;
        }
    }
    for script in some(&mut rng, &SCOPED, (1, 2)) {
        let (name, calls, _) = script;
        let mut plugin = plugin(scenario, script);
        plugin["scope"] = scope(&mut rng, *calls, &namespaces, clusters);
        if *name == "scoped-rank" {
            plugin["scores"] = json!("evictions");
        }
        add(scenario, "/plugins", [plugin]);
    }
    for script in some(&mut rng, &OF_TENANTS, (0, 2)) {
        let plugin = plugin(scenario, script);
        add(scenario, "/plugins", [plugin]);
        scenario["tenants"][script.0] = json!([pattern(&mut rng, &namespaces)]);
    }
    if rng.chance(50) {
        // A release of a tenant's plugin would count although the other checks hold.
        scenario["composition"] = json!({"eviction-check": "any-release-wins"});
    }
}

/// Adds a workload to each namespace, all of which fail in one cluster for a time.
fn workloads(rng: &mut SeededRng, scenario: &mut Value, namespaces: &[&str], clusters: &[String]) {
    let Some(failing) = clusters.last() else { return };
    for namespace in namespaces {
        let placement = if rng.chance(60) {
            json!({"clusterAffinities": [
                {"affinityName": "first", "clusterNames": [failing]},
                {"affinityName": "rest", "clusterNames": clusters},
            ]})
        } else {
            json!({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]})
        };
        let application = json!({
            "decisionConditions": {"tolerationSeconds": rng.between(5, 20)}, "purgeMode": "Gracefully",
            "gracePeriodSeconds": rng.between(30, 60),
        });
        let spec = json!({"placement": placement, "propagateDeps": true, "failover": {"application": application}});
        let namespaced = |mut object: Value| {
            object["metadata"]["namespace"] = json!(namespace);
            object
        };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let workload = namespaced(deployment(NAME, rng.between(1, 2)));
        let policy = namespaced(policy(NAME, "apps/v1", "Deployment", &spec));
        add(scenario, "/manifests/0/objects", [object, workload, policy]);
    }
    let modes: Vec<_> = namespaces
        .iter()
        .map(|namespace| json!({"mode": "never-ready", "workload": format!("{namespace}/{NAME}")}))
        .collect();
    let fails = |at_s: u64, modes: Value| json!({"at": format!("{at_s}s"), "cluster": failing, "failureModes": modes});
    // It ends before the fault-free period, so that trials take no longer.
    let (fails_s, well_s) = (rng.between(40, 80), rng.between(160, 185));
    add(
        scenario,
        "/events",
        [fails(fails_s, json!(modes)), fails(well_s, json!([]))],
    );
}

/// Draws scripts, a number of times between the bounds. One that is drawn twice counts once.
fn some<'a>(rng: &mut SeededRng, scripts: &'a [Script], (least, most): (u64, u64)) -> Vec<&'a Script> {
    let mut some: Vec<&Script> = Vec::new();
    for _ in 0..rng.between(least, most) {
        let script = rng.one_of(scripts);
        some.extend(script.filter(|script| !some.iter().any(|other| other.0 == script.0)));
    }
    some
}

/// Adds the file of a script. Returns its plugin.
fn plugin(scenario: &mut Value, (name, _, script): &Script) -> Value {
    let file = format!("{name}.lua");
    scenario["files"][&file] = json!(script);
    json!({"name": name, "lua": file})
}

/// Returns a scope that contains at least one of the namespaces, sometimes with a second selector.
fn scope(rng: &mut SeededRng, calls: Calls, namespaces: &[&str], clusters: &[String]) -> Value {
    let mut scope = json!({"namespaces": [pattern(rng, namespaces)]});
    if rng.chance(30) {
        match calls {
            Calls::Objects => scope["labels"] = json!({"app": NAME}),
            Calls::Placements => scope["kinds"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]),
            Calls::Evictions => scope["clusters"] = json!([clusters.last()]),
        }
    }
    scope
}

/// Returns one of the namespaces, or the start of several.
fn pattern(rng: &mut SeededRng, namespaces: &[&str]) -> String {
    if rng.chance(25) {
        return "team-a*".to_owned();
    }
    rng.one_of(namespaces).copied().unwrap_or(NAMESPACES[0]).to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn some_federations_have_tenants_with_plugins_of_their_own() {
        let (mut with, mut limited) = (0, 0);
        for seed in 0..400 {
            let draft = super::super::draft(seed, Path::new("random.yaml"));
            if draft.scenario["tenants"].is_null() {
                continue;
            }
            with += 1;
            let loaded = draft.load().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let scoped = loaded.plugins.iter().filter(|one| !one.manifest.scope.is_everything());
            assert!(scoped.count() > 0, "seed {seed}");
            let tenants = draft.scenario["tenants"].as_object().map_or(0, serde_json::Map::len);
            let of_tenants = loaded.plugins.iter().filter(|one| one.grant.tenancy.is_some());
            assert_eq!(of_tenants.count(), tenants, "seed {seed}");
            limited += tenants;
        }
        assert!((15..40).contains(&with), "{with} of 400");
        assert!(
            limited >= with / 2,
            "{limited} plugins of tenants in {with} federations"
        );
    }

    #[test]
    fn tenants_are_drawn_apart_from_everything_else() {
        let base = json!({"clusters": [], "manifests": [{"objects": []}], "events": [], "plugins": [{"name": "hold"}]});
        let clusters = ["member1".to_owned(), "member2".to_owned()];
        let mut drawn = 0;
        for seed in 0..100 {
            let mut scenario = base.clone();
            draw(seed, &mut scenario, &clusters);
            drawn += u64::from(scenario != base);
            assert_eq!(
                scenario["plugins"][0], base["plugins"][0],
                "seed {seed}: others keep their place"
            );
        }
        assert!((2..20).contains(&drawn), "{drawn} of 100");
    }
}
