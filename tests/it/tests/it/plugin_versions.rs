//! Rehearsals of plugins: a version that fails with each of its fallbacks, and a plugin in shadow mode.

use crate::support::{Folder, TAINT_POLICY, assert_held, run};

/// Returns a scenario in which member1 is lost after two minutes. `plugins` is a member of the scenario, `events` are items
/// before the loss, and `evicting` lists the clusters with an old copy at the end.
fn scenario(plugins: &str, events: &str, evicting: &str) -> String {
    format!(
        "name: versions\nduration: 8m\nflags: {{feature-gates: {{Failover: true}}, \
         enable-no-execute-taint-eviction: true, allow-no-execute-taint-policy: true}}\n\
         clusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [taint-policy.yaml, {{objects: [{WEB}, {POLICY}]}}]\n{plugins}\nevents:\n{events}\
         - {{at: 2m, cluster: member1, state: unreachable}}\nexpect:\n\
         - {{at: 7m, binding: default/web-deployment, clusters: {{member2: 2}}, evictingFrom: [{evicting}]}}\n"
    )
}

/// Replaces a version that releases by one that fails before a cluster is lost. The old copy stays for the grace period
/// unless the fallback answers.
#[track_caller]
fn check(fallback: &str, evicting: &str) {
    let guard = |version: &str| {
        format!("plugins: [{{name: guard, lua: {version}.lua, fallback: {fallback}, breaker: {{faults: 2}}}}]")
    };
    let scenario = scenario(
        &guard("works"),
        &format!("- {{at: 1m, {}}}\n", guard("fails")),
        evicting,
    );
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
        ("works.lua", "function EvictionCheck() return 'release' end\n"),
        ("fails.lua", "function EvictionCheck() error('on purpose') end\n"),
    ];
    let name = format!(
        "versions-{}",
        fallback.chars().filter(char::is_ascii_alphabetic).collect::<String>()
    );
    assert_held(&run(&Folder::new(&name, &files).load().unwrap(), None));
}

const WEB: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: 2, \
                   selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: \
                   [{name: app, image: app}]}}}}";

const POLICY: &str = "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: \
                      default}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: \
                      {spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]}}}";

#[test]
fn a_version_that_fails_is_replaced_by_its_fallback() {
    check("previous", "");
    check("abstain", "");
    check("{builtin: ResourceHealth}", "");
    check("fail-static", "member1");
}

#[test]
fn a_plugin_in_shadow_that_would_differ_is_in_the_timeline_and_changes_nothing() {
    let plugins = "plugins: [{name: eager, lua: eager.lua, mode: shadow}]";
    let scenario = scenario(plugins, "", "");
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
        ("eager.lua", "function EvictionCheck() return 'release' end\n"),
    ];
    let report = run(&Folder::new("shadow", &files).load().unwrap(), None);
    assert_held(&report);
    let first = |what: &str| report.timeline.iter().position(|entry| entry.what == what);
    let differs = first("a shadow would differ").expect("the built-in check holds until the new copy is healthy");
    let entry = &report.timeline[differs];
    assert_eq!(entry.plugin.as_deref(), Some("eager (lua)"), "{entry:?}");
    assert!(Some(differs) < first("released"), "the shadow releases nothing");
}
