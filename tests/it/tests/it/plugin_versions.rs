//! A version of a plugin that fails is rehearsed with each of its fallbacks.

use crate::support::{Folder, TAINT_POLICY, assert_held, run};

/// Replaces a version that releases by one that fails before a cluster is lost. The old copy stays for the grace period
/// unless the fallback answers.
#[track_caller]
fn check(fallback: &str, evicting: &str) {
    let guard = |version: &str| {
        format!("plugins: [{{name: guard, lua: {version}.lua, fallback: {fallback}, breaker: {{faults: 2}}}}]")
    };
    let scenario = format!(
        "name: versions\nduration: 8m\nflags: {{feature-gates: {{Failover: true}}, \
         enable-no-execute-taint-eviction: true, allow-no-execute-taint-policy: true}}\n\
         clusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [taint-policy.yaml, {{objects: [{WEB}, {POLICY}]}}]\n{}\nevents:\n\
         - {{at: 1m, {}}}\n- {{at: 2m, cluster: member1, state: unreachable}}\nexpect:\n\
         - {{at: 7m, binding: default/web-deployment, clusters: {{member2: 2}}, evictingFrom: [{evicting}]}}\n",
        guard("works"),
        guard("fails"),
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
