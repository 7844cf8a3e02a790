//! Scopes of plugins and tenants of trust rules: what concerns one namespace leaves the others alone.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use bulkhead_core::call::{EvictionCheckCall, HealthCall};
use bulkhead_core::combine;
use bulkhead_core::model::{Binding, GracefulEvictionTask, Health};
use bulkhead_core::time::Time;
use bulkhead_plugin::Plugins;
use serde_json::json;

use crate::images::{Place, refused, until};
use crate::support::{Folder, TAINT_POLICY, assert_held, run, try_run};

/// Returns the loss of member1 with the same workload in the namespaces `a` and `b`, and the plugin `hold`. `limits` is the
/// end of its entry, and the fields of the scenario after it.
fn scenario(name: &str, script: &str, limits: &str, evicting_in_b: &str) -> Folder {
    let objects = ["a", "b"].map(|namespace| {
        let meta = format!("metadata: {{name: web, namespace: {namespace}}}");
        let template = "{metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: app}]}}";
        let spec = format!("{{replicas: 2, selector: {{matchLabels: {{app: web}}}}, template: {template}}}");
        let placement = "{clusterAffinities: [{affinityName: first, clusterNames: [member1]}, \
                         {affinityName: rest, clusterNames: [member2]}]}";
        let selectors = "[{apiVersion: apps/v1, kind: Deployment}]";
        format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}, \
             {{apiVersion: apps/v1, kind: Deployment, {meta}, spec: {spec}}}, \
             {{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, {meta}, \
             spec: {{resourceSelectors: {selectors}, placement: {placement}}}}}"
        )
    });
    let scenario = format!(
        "name: {name}\nduration: 6m\nflags: {{feature-gates: {{Failover: true}}, enable-no-execute-taint-eviction: true, \
         resource-eviction-rate: 10, allow-no-execute-taint-policy: true}}\nclusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [taint-policy.yaml, {{objects: [{}]}}]\n\
         plugins: [{{name: hold, lua: hold.lua{limits}\n\
         events: [{{at: 2m, cluster: member1, state: unreachable}}]\nexpect:\n\
         - {{at: 110s, binding: a/web-deployment, clusters: {{member1: 2}}}}\n\
         - {{at: 4m, binding: a/web-deployment, clusters: {{member2: 2}}, evictingFrom: [member1]}}\n\
         - {{at: 4m, binding: b/web-deployment, clusters: {{member2: 2}}, evictingFrom: [{evicting_in_b}]}}\n",
        objects.join(", ")
    );
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
        ("hold.lua", script),
    ];
    Folder::new(&format!("tenancy-{name}"), &files)
}

/// Runs the scenario with a plugin that has a scope.
#[track_caller]
fn check(name: &str, script: &str, scope: &str, evicting_in_b: &str) {
    let folder = scenario(name, script, &format!(", scope: {scope}}}]"), evicting_in_b);
    assert_held(&run(&folder.load().unwrap(), None));
}

const HOLD: &str = "function EvictionCheck(binding, task, observed, now) return 'hold' end\n";

#[test]
fn a_plugin_holds_inside_of_its_scope_only() {
    check("namespaces", HOLD, "{namespaces: [a]}", "");
    check("everything", HOLD, "{clusters: [member1]}", "member1");
    check(
        "fault",
        "function EvictionCheck(binding, task, observed, now) error('no') end\n",
        "{namespaces: ['a*']}",
        "",
    );
}

#[test]
fn a_plugin_of_a_tenant_holds_inside_of_its_namespaces_only() {
    for tenants in ["{hold: [a]}", "{hold: [a, 'a-*']}"] {
        let folder = scenario("tenant", HOLD, &format!("}}]\ntenants: {tenants}"), "");
        assert_held(&run(&folder.load().unwrap(), None));
    }
}

#[test]
fn a_plugin_of_a_tenant_with_other_calls_is_refused_in_a_scenario() {
    let script = "function Filter(binding, clusters, now) return {} end\n";
    let folder = scenario("tenant-refused", script, "}]\ntenants: {hold: [a]}", "");
    let error = try_run(&folder.load().unwrap(), None).unwrap_err();
    assert!(
        error.contains("it answers filter calls, and the plugin of a tenant answers"),
        "{error}"
    );
}

/// Outcome of policies about a workload in a namespace.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    /// True if the old copy is released.
    is_released: bool,
    /// True if the plugin decided about it.
    is_by_plugin: bool,
    health: Health,
}

/// The plugin was not asked, or nothing that it said counts.
const WITHOUT: Outcome = Outcome {
    is_released: false,
    is_by_plugin: false,
    health: Health::Healthy,
};

fn outcome(plugins: &Plugins, namespace: &str) -> Outcome {
    let policies = plugins.registry().policies();
    let binding = json!({"namespace": namespace, "name": "web",
                         "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    let binding: Binding = serde_json::from_value(binding).unwrap();
    let now = Time::from_millis(0);
    let task = GracefulEvictionTask::default();
    let call = EvictionCheckCall {
        binding: &binding,
        task: &task,
        observed: &[],
        now,
    };
    let checked = combine::eviction_check(&policies, call);
    let object =
        Arc::new(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": namespace}}));
    Outcome {
        is_released: checked.released,
        is_by_plugin: checked.attribution.policy.is_some(),
        health: combine::health(&policies, HealthCall { object: &object, now }).health,
    }
}

/// Writes a trust file with one rule for the registry.
fn trust(place: &Place, rest: &str) -> PathBuf {
    let (path, host) = (place.path("trust.yaml"), place.registry.address);
    let rule = format!("{{images: '{host}', unsigned: true{rest}}}");
    let text = format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules: [{rule}]\n");
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_plugin_that_a_trust_rule_limits_to_a_tenant_holds_nothing_of_another_one() {
    let place = Place::new();
    let file = trust(&place, ", namespaces: [a, 'a-*']");
    place.list("");
    let plugins = place.start(Some(&file));
    let held = |health| Outcome {
        is_released: false,
        is_by_plugin: true,
        health,
    };
    // While the image is missing, its placeholder is limited as well.
    let missing = until(&plugins, |status| refused(status).contains("ImageNotFound"));
    assert!(missing.active.is_none(), "{missing}");
    assert_eq!(outcome(&plugins, "a"), held(Health::Healthy));
    assert_eq!(outcome(&plugins, "b"), WITHOUT);
    place.push("function EvictionCheck() return 'hold' end\nfunction InterpretHealth(obj) return false end");
    until(&plugins, |status| status.active.is_some() && status.refused.is_none());
    assert_eq!(outcome(&plugins, "a-web"), held(Health::Unhealthy));
    assert_eq!(outcome(&plugins, "b"), WITHOUT);
    // A change of the tenant counts at once.
    trust(&place, ", namespaces: [b]");
    plugins.look();
    assert_eq!(outcome(&plugins, "a-web"), WITHOUT);
    assert_eq!(outcome(&plugins, "b"), held(Health::Unhealthy));
    // A withdrawal holds nothing that the plugin could not hold.
    let none = "apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules: []\n";
    fs::write(&file, none).unwrap();
    until(&plugins, |status| status.active.is_none());
    assert_eq!(outcome(&plugins, "b"), held(Health::Unknown));
    assert_eq!(outcome(&plugins, "a"), WITHOUT);
}

#[test]
fn a_plugin_of_a_tenant_releases_nothing_and_makes_nothing_healthy() {
    let place = Place::new();
    place.push("function EvictionCheck() return 'release' end\nfunction InterpretHealth(obj) return true end");
    place.list("");
    let plugins = place.start(Some(&trust(&place, "")));
    until(&plugins, |status| status.active.is_some());
    assert!(outcome(&plugins, "a").is_released, "without a tenant it releases");
    trust(&place, ", namespaces: ['*']");
    until(&plugins, |status| {
        status.active.is_some() && outcome(&plugins, "a") == WITHOUT
    });
    // A plugin that answers another kind of call is refused.
    place.push("function EvictionCheck() return 'release' end\nfunction Filter(binding, clusters) return {} end");
    place.list(", movedTag: follow");
    let denied = until(&plugins, |status| {
        refused(status).contains("the rule that trusts its image permits")
    });
    assert!(
        refused(&denied)
            .contains("it answers filter calls, and the rule that trusts its image permits health, eviction-check"),
        "{denied}"
    );
}
