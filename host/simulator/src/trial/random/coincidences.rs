//! Rare combinations that are required to reveal certain mistakes: several tasks of one binding, many workloads that
//! tolerate a loss and one that does not, an interpreter that fails together with the application, writers that race a
//! controller, the loss of all clusters, copies that the scheduler gives up, and steps of the wall clock before a change
//! of leaders.
//!
//! Most of them start when the disruptions of the trial are over, because deadlines are not checked while the
//! controllers are disturbed.

use serde_json::{Value, json};

use crate::trial::seeded_rng::SeededRng;

/// Time at which all disruptions of a trial, and their effects on deadlines, are over, in seconds.
pub(super) const CALM_S: u64 = 200;

/// Adds random combinations to a scenario; with limited capacity, only those without replicas.
pub(super) fn draw(rng: &mut SeededRng, scenario: &mut Value, clusters: &[String], crowded: bool) {
    if rng.chance(10) {
        many_tolerant_workloads(rng, scenario, clusters);
    }
    if rng.chance(10) && !crowded {
        several_tasks(rng, scenario, clusters);
    }
    if rng.chance(10) && !crowded {
        unknown_health(rng, scenario, clusters);
    }
    if rng.chance(10) {
        racing_person(rng, scenario, clusters);
    }
    if rng.chance(10) {
        namesakes(rng, scenario, clusters);
    }
    if rng.chance(10) {
        racing_tasks(rng, scenario, clusters);
    }
    // Each of these loses clusters and needs the others, so a scenario has one of them at most.
    match rng.between(1, 10) {
        1 => all_lost(rng, scenario, clusters),
        2 => other_region(rng, scenario, clusters),
        3 => direct_purge(rng, scenario, clusters),
        4 => long_outage(rng, scenario, clusters),
        5 if !crowded => scaled_while_lost(rng, scenario, clusters),
        6 if !crowded => stepped_takeover(rng, scenario, clusters),
        _ => {}
    }
}

/// Appends items to the list at a pointer of a scenario.
pub(super) fn add(scenario: &mut Value, list: &str, items: impl IntoIterator<Item = Value>) {
    if let Some(list) = scenario.pointer_mut(list).and_then(Value::as_array_mut) {
        list.extend(items);
    }
}

fn state(at_s: u64, cluster: &str, state: &str) -> Value {
    json!({"at": format!("{at_s}s"), "cluster": cluster, "state": state})
}

/// Builds a policy for resources with the label `app`.
pub(super) fn policy(name: &str, api_version: &str, kind: &str, spec: &Value) -> Value {
    let selector = json!({"apiVersion": api_version, "kind": kind, "labelSelector": {"matchLabels": {"app": name}}});
    let mut whole = json!({"resourceSelectors": [selector]});
    if let (Some(whole), Some(spec)) = (whole.as_object_mut(), spec.as_object()) {
        whole.extend(spec.clone());
    }
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "default"}, "spec": whole,
    })
}

fn config_map(name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}}, "data": {"n": name},
    })
}

/// Builds a Deployment with the label `app`.
pub(super) fn deployment(name: &str, replicas: u64) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}},
        },
    })
}

/// Returns affinity groups: the first cluster while it is available, then any.
fn prefer_first(clusters: &[String]) -> Value {
    json!([
        {"affinityName": "first", "clusterNames": clusters.first().map(|first| [first])},
        {"affinityName": "rest", "clusterNames": clusters},
    ])
}

/// Adds many workloads that tolerate the loss of their cluster, and one behind them in the queue that does not, with
/// a low eviction rate.
fn many_tolerant_workloads(rng: &mut SeededRng, scenario: &mut Value, clusters: &[String]) {
    let Some(lost) = clusters.first() else { return };
    let crowd = rng.between(14, 20);
    let tolerations = json!([{"operator": "Exists"}]);
    let placement = json!({"clusterAffinity": {"clusterNames": [lost]}, "clusterTolerations": tolerations});
    let other = json!({"placement": {"clusterAffinities": prefer_first(clusters)}});
    let mut objects: Vec<_> = (1..=crowd)
        .map(|n| config_map(&format!("a-tolerant-{n}"), "a-tolerant"))
        .collect();
    objects.push(policy(
        "a-tolerant",
        "v1",
        "ConfigMap",
        &json!({"placement": placement}),
    ));
    objects.extend([
        config_map("z-other", "z-other"),
        policy("z-other", "v1", "ConfigMap", &other),
    ]);
    add(scenario, "/manifests/0/objects", objects);
    scenario["flags"]["resource-eviction-rate"] = json!(0.1);
    let (at_s, back_s) = (CALM_S + rng.between(0, 20), CALM_S + 200);
    add(
        scenario,
        "/events",
        [state(at_s, lost, "unreachable"), state(back_s, lost, "recover")],
    );
}

/// Adds two kinds of one name, and an object of each that derives the same name of a binding.
fn namesakes(rng: &mut SeededRng, scenario: &mut Value, clusters: &[String]) {
    if !scenario["customKinds"].is_array() {
        scenario["customKinds"] = json!([]);
    }
    let at_s = rng.between(5, 60);
    for (group, is_late) in [("networking.istio.io", false), ("gateway.networking.k8s.io", true)] {
        let Some(cluster) = rng.one_of(clusters) else { return };
        let api_version = format!("{group}/v1");
        add(
            scenario,
            "/customKinds",
            [json!({"apiVersion": api_version, "kind": "Gateway", "plural": "gateways"})],
        );
        let mut gateway = config_map("public", "public");
        gateway["apiVersion"] = json!(api_version);
        gateway["kind"] = json!("Gateway");
        let spec = json!({"placement": {"clusterAffinity": {"clusterNames": [cluster]}}});
        let mut policy = policy("public", &api_version, "Gateway", &spec);
        policy["metadata"]["name"] = json!(if is_late { "public-late" } else { "public" });
        let objects = [gateway, policy];
        if is_late {
            add(
                scenario,
                "/events",
                [json!({"at": format!("{at_s}s"), "apply": {"objects": objects}})],
            );
        } else {
            add(scenario, "/manifests/0/objects", objects);
        }
    }
}

/// Adds a binding with two tasks: a cluster is lost, and the application fails on another one before the slow
/// replacement is ready. Only the second task has its own grace period.
fn several_tasks(rng: &mut SeededRng, scenario: &mut Value, clusters: &[String]) {
    let [failing, lost, slow, spare, ..] = clusters else {
        return;
    };
    let (name, fails_s) = ("two-tasks", CALM_S + rng.between(45, 60));
    let spread = json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2}]);
    let names = [failing, lost, slow, spare];
    let spec = json!({
        "placement": {"clusterAffinity": {"clusterNames": names}, "spreadConstraints": spread},
        "propagateDeps": true,
        "failover": {"application": {
            "decisionConditions": {"tolerationSeconds": 10}, "purgeMode": "Gracefully",
            "gracePeriodSeconds": rng.between(15, 30),
        }},
    });
    add(
        scenario,
        "/manifests/0/objects",
        [deployment(name, 2), policy(name, "apps/v1", "Deployment", &spec)],
    );
    for cluster in scenario["clusters"].as_array_mut().into_iter().flatten() {
        if cluster["name"] == **slow {
            cluster["replicaReadyAfter"] = json!("100s");
        }
    }
    let modes = json!([{"mode": "never-ready", "workload": format!("default/{name}")}]);
    let fails = |at_s: u64, modes: Value| json!({"at": format!("{at_s}s"), "cluster": failing, "failureModes": modes});
    let back_s = CALM_S + 140;
    let moments = [state(CALM_S, lost, "unreachable"), fails(fails_s, modes)];
    add(
        scenario,
        "/events",
        moments
            .into_iter()
            .chain([state(back_s, lost, "recover"), fails(back_s, json!([]))]),
    );
}

/// Adds a failing application whose interpreter fails intermittently, on an odd number of replicas.
fn unknown_health(rng: &mut SeededRng, scenario: &mut Value, clusters: &[String]) {
    let Some(failing) = clusters.first() else { return };
    let (name, file) = ("odd", "odd.lua");
    let script = "function InterpretHealth(object)\n  local status = object.status or {}\n  \
                  if object.metadata.name == 'odd' and object.spec.replicas % 2 == 1 then error('odd') end\n  \
                  return (status.readyReplicas or 0) == object.spec.replicas\nend\n";
    if !scenario["files"].is_object() {
        scenario["files"] = json!({});
    }
    scenario["files"][file] = json!(script);
    if !scenario["plugins"].is_array() {
        scenario["plugins"] = json!([]);
    }
    let kinds = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    add(
        scenario,
        "/plugins",
        [json!({"name": "odd", "lua": file, "kinds": kinds})],
    );
    let spec = json!({
        "placement": {"clusterAffinities": prefer_first(clusters)}, "propagateDeps": true,
        "failover": {"application": {
            "decisionConditions": {"tolerationSeconds": 20}, "purgeMode": "Gracefully", "gracePeriodSeconds": 60,
        }},
    });
    add(
        scenario,
        "/manifests/0/objects",
        [deployment(name, 2), policy(name, "apps/v1", "Deployment", &spec)],
    );
    let modes = json!([{"mode": "never-ready", "workload": format!("default/{name}")}]);
    let fails = |at_s: u64, modes: Value| json!({"at": format!("{at_s}s"), "cluster": failing, "failureModes": modes});
    let scaled = |at_s: u64, replicas: u64| json!({"at": format!("{at_s}s"), "apply": {"objects": [deployment(name, replicas)]}});
    let mut at_s = CALM_S + 25 + rng.between(0, 5);
    let mut events = vec![fails(at_s, modes)];
    for _ in 0..rng.between(5, 7) {
        at_s += rng.between(12, 16);
        events.extend([scaled(at_s, 3), scaled(at_s + 3, 2)]);
    }
    events.push(fails(at_s + 20, json!([])));
    add(scenario, "/events", events);
}

/// Adds another writer of eviction tasks that writes in the same moment as a controller.
fn racing_tasks(rng: &mut SeededRng, scenario: &mut Value, clusters: &[String]) {
    let Some(cluster) = rng.one_of(clusters) else { return };
    let lost_s = CALM_S + rng.between(0, 20);
    let race = |at_s: u64| {
        let fault = json!({"kind": "racing-write", "resource": "resourcebindings"});
        json!({"at": format!("{at_s}s"), "fault": fault})
    };
    let times = rng.between(2, 4);
    let races: Vec<_> = (0..times).map(|_| race(lost_s + rng.between(10, 60))).collect();
    let moments = [
        state(lost_s, cluster, "unreachable"),
        state(lost_s + 90, cluster, "recover"),
    ];
    add(scenario, "/events", moments.into_iter().chain(races));
}

/// Adds the loss of all clusters for longer than any threshold, without a check for another target.
fn all_lost(rng: &mut SeededRng, scenario: &mut Value, clusters: &[String]) {
    scenario["flags"]["eviction-pre-check"] = json!("none");
    let (lost_s, lasts_s) = (CALM_S + rng.between(0, 20), rng.between(80, 110));
    for cluster in clusters {
        add(
            scenario,
            "/events",
            [
                state(lost_s, cluster, "unreachable"),
                state(lost_s + lasts_s, cluster, "recover"),
            ],
        );
    }
}

/// Adds a workload on all clusters of one region, which has too few of them after a loss, so that the scheduler gives up
/// the copy on the other cluster of that region.
fn other_region(rng: &mut SeededRng, scenario: &mut Value, clusters: &[String]) {
    let [lost, given_up, third, fourth, ..] = clusters else {
        return;
    };
    let regions = [
        (lost, "north"),
        (given_up, "north"),
        (third, "south"),
        (fourth, "south"),
    ];
    for cluster in scenario["clusters"].as_array_mut().into_iter().flatten() {
        if let Some((_, region)) = regions.iter().find(|(name, _)| cluster["name"] == **name) {
            cluster["region"] = json!(region);
        }
    }
    let name = "one-region";
    let spread = json!([
        {"spreadByField": "region", "minGroups": 1, "maxGroups": 1},
        {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2},
    ]);
    let names = [lost, given_up, third, fourth];
    let spec = json!({"placement": {"clusterAffinity": {"clusterNames": names}, "spreadConstraints": spread}});
    add(
        scenario,
        "/manifests/0/objects",
        [config_map(name, name), policy(name, "v1", "ConfigMap", &spec)],
    );
    // One of the two regions is chosen; each loses a cluster at a time of its own.
    let lost_s = CALM_S + rng.between(0, 20);
    for (at_s, cluster) in [(lost_s, lost), (lost_s + 130, third)] {
        add(
            scenario,
            "/events",
            [
                state(at_s, cluster, "unreachable"),
                state(at_s + 80, cluster, "recover"),
            ],
        );
    }
}

/// Adds a workload that is purged directly from a cluster that stays lost for longer than its purge may take.
fn direct_purge(rng: &mut SeededRng, scenario: &mut Value, clusters: &[String]) {
    let Some(lost) = clusters.first() else { return };
    let name = "purged";
    let spec = json!({
        "placement": {"clusterAffinities": prefer_first(clusters)}, "propagateDeps": true,
        "failover": {"cluster": {"purgeMode": "Directly"}},
    });
    add(
        scenario,
        "/manifests/0/objects",
        [config_map(name, name), policy(name, "v1", "ConfigMap", &spec)],
    );
    scenario["flags"]["graceful-eviction-timeout"] = json!("15s");
    scenario["flags"]["purge-without-replacement"] = json!("only-by-policy");
    let lost_s = CALM_S + rng.between(0, 10);
    add(
        scenario,
        "/events",
        [state(lost_s, lost, "unreachable"), state(lost_s + 180, lost, "recover")],
    );
}

/// Adds an outage of the writes of bindings that is over long before the lost cluster recovers.
fn long_outage(rng: &mut SeededRng, scenario: &mut Value, clusters: &[String]) {
    let Some(lost) = clusters.first() else { return };
    let name = "held-up";
    let spec = json!({"placement": {"clusterAffinities": prefer_first(clusters)}});
    add(
        scenario,
        "/manifests/0/objects",
        [config_map(name, name), policy(name, "v1", "ConfigMap", &spec)],
    );
    // Longer than the whole back-off of a retry would take.
    let (lost_s, lasts_s) = (rng.between(40, 50), rng.between(220, 230));
    let fault = json!({"kind": "write-outage", "resource": "resourcebindings", "for": format!("{lasts_s}s")});
    let outage = json!({"at": format!("{lost_s}s"), "fault": fault});
    add(
        scenario,
        "/events",
        [
            state(lost_s, lost, "unreachable"),
            outage,
            state(lost_s + 400, lost, "recover"),
        ],
    );
}

/// Adds a workload that tolerates the loss of its cluster, and a person who scales it up meanwhile.
fn scaled_while_lost(rng: &mut SeededRng, scenario: &mut Value, clusters: &[String]) {
    let Some(lost) = rng.one_of(clusters) else { return };
    let name = "scaled-up";
    let tolerations = json!([{"operator": "Exists", "effect": "NoExecute"}]);
    let spec = json!({"placement": {"clusterTolerations": tolerations}});
    add(
        scenario,
        "/manifests/0/objects",
        [deployment(name, 1), policy(name, "apps/v1", "Deployment", &spec)],
    );
    let lost_s = CALM_S + rng.between(0, 10);
    let scaled =
        json!({"at": format!("{}s", lost_s + rng.between(50, 60)), "apply": {"objects": [deployment(name, 2)]}});
    add(
        scenario,
        "/events",
        [
            state(lost_s, lost, "unreachable"),
            scaled,
            state(lost_s + 120, lost, "recover"),
        ],
    );
}

/// Adds a drain whose replacement is slow, a step of the wall clock during it, and a change of leaders after that.
fn stepped_takeover(rng: &mut SeededRng, scenario: &mut Value, clusters: &[String]) {
    let [drained, slow, ..] = clusters else { return };
    // An application that fails over in less time than the slow cluster takes would never become ready.
    let mut objects = scenario["manifests"][0]["objects"].as_array().into_iter().flatten();
    if objects.any(|object| object.pointer("/spec/failover/application").is_some()) {
        return;
    }
    let name = "outlives-leader";
    let pair = [drained.clone(), slow.clone()];
    let spec = json!({"placement": {"clusterAffinities": prefer_first(&pair)}});
    add(
        scenario,
        "/manifests/0/objects",
        [deployment(name, 1), policy(name, "apps/v1", "Deployment", &spec)],
    );
    for cluster in scenario["clusters"].as_array_mut().into_iter().flatten() {
        if cluster["name"] == **slow {
            cluster["replicaReadyAfter"] = json!("100s");
        }
    }
    scenario["flags"]["graceful-eviction-timeout"] = json!("80s");
    let drained_s = CALM_S + rng.between(0, 10);
    let stepped_s = drained_s + rng.between(5, 30);
    let kind = if rng.chance(50) {
        "clock-step-ahead"
    } else {
        "clock-step-back"
    };
    let step = json!({"kind": kind, "by": format!("{}s", rng.between(100, 600))});
    let moments = [
        json!({"at": format!("{drained_s}s"), "drain": {"cluster": drained}}),
        json!({"at": format!("{stepped_s}s"), "fault": step}),
        json!({"at": format!("{}s", stepped_s + rng.between(1, 20)), "fault": {"kind": "leader-change"}}),
        json!({"at": format!("{}s", drained_s + 150), "undrain": drained}),
    ];
    add(scenario, "/events", moments);
}

/// Adds a person who taints a cluster while controllers write its taints.
fn racing_person(rng: &mut SeededRng, scenario: &mut Value, clusters: &[String]) {
    let Some(cluster) = rng.one_of(clusters) else { return };
    let (at_s, lost_s) = (rng.between(20, 100), rng.between(40, 80));
    let fault = json!({"kind": "racing-write", "resource": "clusters"});
    let race = json!({"at": format!("{at_s}s"), "fault": fault});
    let back_s = at_s + lost_s;
    add(
        scenario,
        "/events",
        [
            race,
            state(at_s, cluster, "unreachable"),
            state(back_s, cluster, "recover"),
        ],
    );
}
