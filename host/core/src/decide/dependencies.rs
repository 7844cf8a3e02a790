//! Dependencies of workloads, and the clusters that need them (Karmada: `pkg/dependenciesdistributor`).
//!
//! The binding of a workload has its target clusters. Each object that the workload depends on has a binding too,
//! which stores a snapshot of the workload's clusters. The Works of a dependency follow the snapshots of all its
//! dependants.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{BindingSpec, DependentObjectReference, PurgeMode, TargetCluster};

/// Entry of `spec.requiredBy`: a binding that depends on this one, with its clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Namespace of the dependant binding.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the dependant binding.
    #[serde(default)]
    pub name: String,
    /// Clusters that need the dependency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<TargetCluster>,
}

/// Combined strategies of all workloads that depend on an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strategies {
    /// True if at least one dependant overwrites conflicting objects.
    pub overwrites: bool,
    /// True if at least one dependant preserves its objects on deletion.
    pub preserves: bool,
    /// True if at least one dependant overwrites and another does not.
    pub conflict_resolution_differs: bool,
    /// True if at least one dependant preserves and another does not.
    pub preservation_differs: bool,
}

/// Returns the clusters that need the dependencies of a workload: its targets, and the clusters where an old copy may
/// still run. Karmada omits the old copies, which then lose their dependencies too early.
pub fn clusters(spec: &BindingSpec) -> Vec<TargetCluster> {
    let mut clusters = spec.clusters.clone();
    for task in spec
        .graceful_eviction_tasks
        .iter()
        .filter(|task| task.purge_mode != Some(PurgeMode::Directly))
    {
        if !clusters.iter().any(|existing| existing.name == task.from_cluster) {
            clusters.push(TargetCluster::new(&task.from_cluster, 0));
        }
    }
    clusters
}

/// Returns true if a reference names or selects the object. The selector applies only without a name.
pub fn refers_to(
    reference: &DependentObjectReference,
    (api_version, kind): (&str, &str),
    (namespace, name): (&str, &str),
    labels: &BTreeMap<String, String>,
) -> bool {
    let same_place = (
        reference.api_version.as_str(),
        reference.kind.as_str(),
        reference.namespace.as_str(),
    ) == (api_version, kind, namespace);
    let selects = || {
        reference
            .label_selector
            .as_ref()
            .is_some_and(|selector| selector.matches(labels))
    };
    same_place
        && if reference.name.is_empty() {
            selects()
        } else {
            reference.name == name
        }
}

/// Adds a snapshot, or replaces the existing one of the same binding.
pub fn attach(spec: &mut BindingSpec, snapshot: &Snapshot) {
    let value = serde_json::to_value(snapshot).unwrap_or_default();
    match spec
        .required_by
        .iter_mut()
        .find(|existing| is_of(existing, &snapshot.namespace, &snapshot.name))
    {
        Some(existing) => *existing = value,
        None => spec.required_by.push(value),
    }
}

/// Removes the snapshots of a binding.
pub fn detach(spec: &mut BindingSpec, namespace: &str, name: &str) {
    spec.required_by.retain(|existing| !is_of(existing, namespace, name));
}

/// Returns namespace and name of the bindings that depend on this one.
pub fn dependants(spec: &BindingSpec) -> Vec<(String, String)> {
    let text = |snapshot: &Value, field: &str| {
        snapshot
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    spec.required_by
        .iter()
        .map(|snapshot| (text(snapshot, "namespace"), text(snapshot, "name")))
        .collect()
}

fn is_of(snapshot: &Value, namespace: &str, name: &str) -> bool {
    let text = |field: &str| snapshot.get(field).and_then(Value::as_str).unwrap_or_default();
    (text("namespace"), text("name")) == (namespace, name)
}

impl Strategies {
    /// Combines the strategies of the bindings that depend on an object. `Overwrite` takes precedence over `Abort`,
    /// and preserving over not preserving. (Karmada: `pkg/dependenciesdistributor/policy_utils.go`.)
    pub fn of<'a>(dependants: impl IntoIterator<Item = &'a BindingSpec>) -> Self {
        let mut overwrite = [false; 2];
        let mut preserve = [false; 2];
        for spec in dependants {
            overwrite[usize::from(spec.conflict_resolution == "Overwrite")] = true;
            preserve[usize::from(spec.preserve_resources_on_deletion == Some(true))] = true;
        }
        Self {
            overwrites: overwrite[1],
            preserves: preserve[1],
            conflict_resolution_differs: overwrite == [true; 2],
            preservation_differs: preserve == [true; 2],
        }
    }

    /// Writes the strategies to the binding of the object.
    pub fn apply(self, spec: &mut BindingSpec) {
        if self.overwrites { "Overwrite" } else { "Abort" }.clone_into(&mut spec.conflict_resolution);
        spec.preserve_resources_on_deletion = Some(self.preserves);
    }

    /// Describes the strategies on which the dependants disagree; empty if they agree.
    pub fn disagreements(self) -> String {
        let conflict = "ConflictResolution conflicted (Overwrite vs Abort)";
        let preserve = "PreserveResourcesOnDeletion conflicted (true vs false)";
        let found = [
            (self.conflict_resolution_differs, conflict),
            (self.preservation_differs, preserve),
        ];
        found
            .into_iter()
            .filter_map(|(differs, what)| differs.then_some(what))
            .collect::<Vec<_>>()
            .join("; ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(value: Value) -> BindingSpec {
        let mut whole = json!({"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}});
        for (name, member) in value.as_object().into_iter().flatten() {
            whole[name] = member.clone();
        }
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn dependencies_are_where_a_copy_runs_or_may_still_run() {
        let check = |value: Value, expected: &[&str]| {
            let found = clusters(&spec(value.clone()));
            assert_eq!(
                found.iter().map(|target| target.name.as_str()).collect::<Vec<_>>(),
                expected,
                "{value}"
            );
        };
        let task =
            |from: &str, mode: &str| json!({"fromCluster": from, "purgeMode": mode, "reason": "r", "producer": "p"});
        check(json!({}), &[]);
        check(json!({"clusters": [{"name": "m1", "replicas": 2}]}), &["m1"]);
        let tasks = [
            task("m1", "Gracefully"),
            task("m2", "Gracefully"),
            task("m3", "Directly"),
            task("m4", "Never"),
        ];
        check(
            json!({"clusters": [{"name": "m1"}], "gracefulEvictionTasks": tasks}),
            &["m1", "m2", "m4"],
        );
    }

    #[test]
    fn a_name_counts_before_a_selector() {
        let check = |reference: Value, expected: bool| {
            let reference: DependentObjectReference = serde_json::from_value(reference).unwrap();
            let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
            let found = refers_to(&reference, ("v1", "ConfigMap"), ("ns", "settings"), &labels);
            assert_eq!(found, expected, "{reference:?}");
        };
        let of = |more: Value| {
            let mut reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns"});
            for (name, member) in more.as_object().into_iter().flatten() {
                reference[name] = member.clone();
            }
            reference
        };
        let selector = |app: &str| json!({"matchLabels": {"app": app}});
        check(of(json!({"name": "settings"})), true);
        check(of(json!({"name": "other"})), false);
        check(of(json!({"name": "settings", "namespace": "else"})), false);
        check(of(json!({"name": "settings", "kind": "Secret"})), false);
        check(of(json!({"labelSelector": selector("web")})), true);
        check(of(json!({"labelSelector": selector("db")})), false);
        check(of(json!({"name": "other", "labelSelector": selector("web")})), false);
        check(of(json!({})), false);
    }

    #[test]
    fn a_snapshot_replaces_that_of_the_same_binding_only() {
        let snapshot = |name: &str, cluster: &str| Snapshot {
            namespace: "ns".to_owned(),
            name: name.to_owned(),
            clusters: vec![TargetCluster::new(cluster, 1)],
        };
        let mut spec = spec(json!({}));
        for (name, cluster) in [("web", "m1"), ("db", "m1"), ("web", "m2")] {
            attach(&mut spec, &snapshot(name, cluster));
        }
        let expected = json!([
            {"namespace": "ns", "name": "web", "clusters": [{"name": "m2", "replicas": 1}]},
            {"namespace": "ns", "name": "db", "clusters": [{"name": "m1", "replicas": 1}]},
        ]);
        assert_eq!(json!(spec.required_by), expected);
        detach(&mut spec, "else", "web");
        detach(&mut spec, "ns", "web");
        assert_eq!(dependants(&spec), [("ns".to_owned(), "db".to_owned())]);
    }

    #[test]
    fn the_stronger_strategy_of_all_dependants_holds() {
        let check = |dependants: &[(&str, Option<bool>)], expected: (&str, bool), disagrees: bool| {
            let dependants = dependants.iter().map(|(resolution, preserve)| {
                spec(json!({"conflictResolution": resolution, "preserveResourcesOnDeletion": preserve}))
            });
            let dependants: Vec<_> = dependants.collect();
            let (strategies, mut actual) = (Strategies::of(&dependants), spec(json!({})));
            strategies.apply(&mut actual);
            let found = (
                actual.conflict_resolution.as_str(),
                actual.preserve_resources_on_deletion == Some(true),
            );
            assert_eq!(
                (found, !strategies.disagreements().is_empty()),
                (expected, disagrees),
                "{dependants:?}"
            );
        };
        check(&[], ("Abort", false), false);
        check(&[("", None)], ("Abort", false), false);
        check(&[("Abort", None), ("", Some(false))], ("Abort", false), false);
        check(&[("Abort", None), ("Overwrite", None)], ("Overwrite", false), true);
        check(&[("Abort", Some(true)), ("Abort", None)], ("Abort", true), true);
    }
}
