//! Misbehaving plugins delay evictions and cause none.

use bulkhead_simulator::report::Report;

use crate::support::{Folder, assert_held, root, run, try_run};

/// Runs `nginx-divided` with another health script and additional expectations.
fn with_health_script(name: &str, script: &str, expectations: &str) -> Report {
    try_health_script(name, script, expectations).unwrap()
}

fn try_health_script(name: &str, script: &str, expectations: &str) -> Result<Report, String> {
    let script: Vec<_> = script.lines().map(|line| format!("        {line}")).collect();
    let health = format!(
        "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {{name: health}}\n\
         spec:\n  target: {{apiVersion: apps/v1, kind: Deployment}}\n  customizations:\n    healthInterpretation:\n      \
         luaScript: |\n{}\n",
        script.join("\n")
    );
    let examples = root().join("examples/nginx-divided");
    let examples = examples.display();
    let scenario = format!(
        "name: {name}\nduration: 5m\nflags: {{feature-gates: {{Failover: true}}, enable-no-execute-taint-eviction: true, \
         allow-no-execute-taint-policy: true}}\nclusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [health.yaml, {examples}/taint-policy.yaml, {examples}/nginx.yaml, {examples}/policy.yaml]\n\
         events: [{{at: 60s, cluster: member1, state: unreachable}}]\nexpect:\n\
         - {{binding: default/nginx-deployment, clusters: {{member2: 3}}, evictingFrom: [member1], worksIn: [member1, member2]}}\n\
         - {{decision: {{decision: Released, absent: true}}}}\n{expectations}"
    );
    let folder = Folder::new(name, &[("scenario.yaml", &scenario), ("health.yaml", &health)]);
    try_run(&folder.load()?, None)
}

fn fault(code: &str) -> String {
    format!("- {{decision: {{decision: HealthChanged, reason: {code}, plugin: health}}}}\n")
}

#[test]
fn an_endless_script_is_contained_and_the_old_copy_is_held() {
    let script = "function InterpretHealth(obj)\n  while true do end\nend";
    assert_held(&with_health_script("loops", script, &fault("PluginOutOfFuel")));
}

#[test]
fn a_script_that_swallows_all_errors_is_contained() {
    let script = "function InterpretHealth(obj)\n  while true do pcall(function() while true do end end) end\nend";
    assert_held(&with_health_script("swallows", script, &fault("PluginOutOfFuel")));
}

#[test]
fn a_script_that_eats_memory_is_contained() {
    let script = "function InterpretHealth(obj)\n  local s = 'x'\n  while true do s = s .. s end\nend";
    assert_held(&with_health_script("eats-memory", script, &fault("PluginOutOfMemory")));
}

#[test]
fn a_script_that_answers_nonsense_is_a_fault_and_not_a_verdict() {
    let script = "function InterpretHealth(obj)\n  return 42\nend";
    assert_held(&with_health_script("nonsense", script, &fault("PluginBadReply")));
}

#[test]
fn a_customization_that_does_not_compile_is_not_stored() {
    let error = try_health_script("does-not-compile", "function InterpretHealth(obj", "").unwrap_err();
    let place = "spec.customizations.healthInterpretation.luaScript: Lua script error: 2:1: Expected ')'";
    assert!(error.contains(place), "{error}");
}

#[test]
fn a_customization_with_jumps_is_stored_as_in_karmada() {
    let script = "function InterpretHealth(obj)\n  if obj.status == nil then goto unknown end\n  do\n    return \
                  obj.status.readyReplicas == obj.spec.replicas\n  end\n  ::unknown::\n  return false\nend";
    assert!(try_health_script("jumps", script, "").is_ok());
}

#[test]
fn a_customization_without_its_function_is_refused_and_faults_when_it_is_asked() {
    let refused = "- {decision: {decision: PluginsChanged, reason: CustomizationRefused}}\n";
    let expected = format!("{refused}{}", fault("PluginMissingExport"));
    let script = "local function InterpretHealth(obj)\n  return true\nend";
    assert_held(&with_health_script("function-is-local", script, &expected));
}

#[test]
fn a_killed_controller_comes_back_and_finishes_the_job() {
    for controller in [
        "scheduler",
        "taintManager",
        "gracefulEviction",
        "binding",
        "execution",
        "workStatus",
        "*",
    ] {
        for at in ["99s", "102s", "120s"] {
            let folder = root().join("examples/nginx-divided");
            let folder = folder.display();
            let killed = format!(
                "name: killed\nduration: 10m\nflags: {{feature-gates: {{Failover: true}}, \
                 enable-no-execute-taint-eviction: true, allow-no-execute-taint-policy: true}}\n\
                 clusters: [{{name: member1}}, {{name: member2}}]\n\
                 manifests: [{folder}/taint-policy.yaml, {folder}/nginx.yaml, {folder}/policy.yaml]\nevents:\n\
                 - {{at: 60s, cluster: member1, state: unreachable}}\n\
                 - {{at: {at}, kill-controller: \"{controller}\", for: 15s}}\n\
                 - {{at: 5m, cluster: member1, state: recover}}\nexpect:\n\
                 - {{binding: default/nginx-deployment, clusters: {{member2: 3}}, evictingFrom: [], worksIn: [member2]}}\n\
                 - {{workload: Deployment default/nginx, readyReplicas: {{member2: 3}}}}\n"
            );
            let name = format!("killed-{}-{at}", controller.replace('*', "all"));
            let folder = Folder::new(&name, &[("scenario.yaml", &killed)]);
            assert_held(&run(&folder.load().unwrap(), None));
        }
    }
}

#[test]
fn what_is_not_known_yet_is_not_taken_for_what_is_not_there() {
    let folder = root().join("examples/nginx-divided");
    let folder = folder.display();
    let late = [
        "clusters",
        "resourcebindings",
        "works",
        "propagationpolicies",
        "clusterpropagationpolicies",
    ];
    for resource in late.into_iter().map(Some).chain([None]) {
        let what = resource
            .map(|resource| format!(", resource: {resource}"))
            .unwrap_or_default();
        // Without the namespaced policy, the cluster-wide one would place the workload on a single cluster.
        let scenario = format!(
            "name: late\nduration: 3m\nclusters: [{{name: member1}}, {{name: member2}}]\n\
             manifests: [{folder}/nginx.yaml, {folder}/policy.yaml, everywhere.yaml]\nevents:\n\
             - {{at: 60s, fault: {{kind: late-lists, for: 20s{what}}}}}\nexpect:\n\
             - {{from: 40s, binding: default/nginx-deployment, clusters: {{member1: 1, member2: 2}}, \
             worksIn: [member1, member2]}}\n\
             - {{from: 40s, workload: Deployment default/nginx, readyReplicas: {{member1: 1, member2: 2}}}}\n"
        );
        let everywhere = "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\n\
             metadata: {name: everywhere}\nspec:\n  placement: {clusterAffinity: {clusterNames: [member2]}}\n  \
             resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]\n";
        let files = [("scenario.yaml", scenario.as_str()), ("everywhere.yaml", everywhere)];
        let name = format!("late-{}", resource.unwrap_or("lists"));
        let report = run(&Folder::new(&name, &files).load().unwrap(), None);
        assert_held(&report);
        let decided: Vec<_> = report
            .timeline
            .iter()
            .filter(|entry| entry.at_ms > 60_000 && entry.what != "goes wrong")
            .collect();
        assert!(decided.is_empty(), "{resource:?}: {decided:#?}");
    }
}

#[test]
fn a_pull_cluster_whose_agent_is_silent_becomes_unknown_and_is_left() {
    let folder = root().join("examples/nginx-divided");
    let folder = folder.display();
    let scenario = format!(
        "name: pull\nduration: 10m\nflags: {{feature-gates: {{Failover: true}}, enable-no-execute-taint-eviction: true, \
         allow-no-execute-taint-policy: true}}\nclusters: [{{name: member1, syncMode: Pull}}, {{name: member2}}]\n\
         manifests: [{folder}/taint-policy.yaml, {folder}/nginx.yaml, {folder}/policy.yaml]\nevents:\n\
         - {{at: 60s, cluster: member1, state: unreachable}}\n- {{at: 5m, cluster: member1, state: recover}}\nexpect:\n\
         - {{at: 55s, workload: Deployment default/nginx, readyReplicas: {{member1: 1, member2: 2}}}}\n\
         - {{at: 3m, cluster: member1, ready: Unknown, taints: [\"cluster.karmada.io/unreachable:NoSchedule\", \
         \"cluster.karmada.io/not-ready:NoExecute\"]}}\n\
         - {{at: 3m, binding: default/nginx-deployment, clusters: {{member2: 3}}}}\n\
         - {{cluster: member1, ready: \"True\", taints: []}}\n\
         - {{workload: Deployment default/nginx, readyReplicas: {{member2: 3}}}}\n"
    );
    let folder = Folder::new("pull", &[("scenario.yaml", &scenario)]);
    assert_held(&run(&folder.load().unwrap(), None));
}

#[test]
fn a_pull_cluster_whose_api_server_is_not_ready_is_left() {
    let folder = root().join("examples/nginx-divided");
    let folder = folder.display();
    let scenario = format!(
        "name: pull\nduration: 6m\nflags: {{feature-gates: {{Failover: true}}, enable-no-execute-taint-eviction: true, \
         allow-no-execute-taint-policy: true}}\nclusters: [{{name: member1, syncMode: Pull}}, {{name: member2}}]\n\
         manifests: [{folder}/taint-policy.yaml, {folder}/nginx.yaml, {folder}/policy.yaml]\nevents:\n\
         - {{at: 60s, cluster: member1, state: readyz-failing}}\nexpect:\n\
         - {{at: 55s, workload: Deployment default/nginx, readyReplicas: {{member1: 1, member2: 2}}}}\n\
         - {{at: 3m, cluster: member1, ready: \"False\", taints: [\"cluster.karmada.io/not-ready:NoSchedule\", \
         \"cluster.karmada.io/not-ready:NoExecute\"]}}\n\
         - {{at: 3m, binding: default/nginx-deployment, clusters: {{member2: 3}}}}\n"
    );
    let folder = Folder::new("pull-readyz", &[("scenario.yaml", &scenario)]);
    assert_held(&run(&folder.load().unwrap(), None));
}

#[test]
fn an_agent_renews_its_lease_after_the_configured_part_of_its_duration() {
    let check = |name: &str, fraction: &str, expect: &str| {
        let scenario = format!(
            "name: {name}\nduration: 3m\nflags: {{cluster-monitor-grace-period: 20s{fraction}}}\n\
             clusters: [{{name: member1, syncMode: Pull}}]\nexpect:\n{expect}"
        );
        let folder = Folder::new(name, &[("scenario.yaml", &scenario)]);
        assert_held(&run(&folder.load().unwrap(), None));
    };
    // A quarter of 40 s, and 36 s.
    check("lease", "", "- {from: 40s, cluster: member1, ready: \"True\"}\n");
    let silent = "- {decision: {decision: ReadyChanged, cluster: member1, reason: ClusterStatusUnknown}}\n";
    check("lease-rarely", ", cluster-lease-renew-interval-fraction: 0.9", silent);
}

#[test]
fn the_classic_flag_taints_a_lost_cluster_automatically() {
    let folder = root().join("examples/nginx-divided");
    let folder = folder.display();
    let scenario = format!(
        "name: classic\nduration: 10m\nflags: {{feature-gates: {{Failover: true}}, enable-no-execute-taint-eviction: true, \
         failover-eviction-timeout: 2m}}\nclusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [{folder}/nginx.yaml, {folder}/policy.yaml]\nevents:\n\
         - {{at: 60s, cluster: member1, state: readyz-failing}}\n- {{at: 7m, cluster: member1, state: recover}}\nexpect:\n\
         - {{at: 3m, cluster: member1, ready: \"False\", taints: [\"cluster.karmada.io/not-ready:NoSchedule\"]}}\n\
         - {{at: 3m, binding: default/nginx-deployment, clusters: {{member1: 1, member2: 2}}}}\n\
         - {{at: 5m, binding: default/nginx-deployment, clusters: {{member2: 3}}}}\n\
         - {{cluster: member1, ready: \"True\", taints: []}}\n"
    );
    let folder = Folder::new("classic", &[("scenario.yaml", &scenario)]);
    assert_held(&run(&folder.load().unwrap(), None));
}
