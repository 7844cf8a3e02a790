//! Changes that trigger scheduling, and the bindings that they affect (Karmada: `pkg/scheduler/event_handler.go`).
//!
//! | change | scheduled bindings |
//! | --- | --- |
//! | a binding is added, or becomes this scheduler's, for example because it is no longer suspended | that binding |
//! | the spec of a binding changes | that binding |
//! | labels or spec (including taints) of a cluster change, or it is being deleted | bindings that may be there |
//! | a cluster serves a new API; in Karmada a binding that no cluster could take waits up to five minutes | bindings of its kinds |
//! | anything else, including the rest of the status of clusters | none |

use std::collections::BTreeSet;

use bulkhead_api::{AnyBinding, Cluster};
use bulkhead_core::affinity;
use bulkhead_core::model::{self, ApiEnablement};
use bulkhead_runtime::store::Change;
use kube::ResourceExt;

/// True if a change of a binding triggers the scheduler of that name.
pub(super) fn brings_binding<B: AnyBinding>(change: &Change<'_, B>, scheduler_name: &str) -> bool {
    if !is_responsible(change.object(), scheduler_name) {
        return false;
    }
    match change {
        Change::Updated { old, .. } => change.is_generation_change() || !is_responsible(&***old, scheduler_name),
        Change::Added(_) | Change::Deleted(_) => change.is_generation_change(),
    }
}

/// True if a binding belongs to this scheduler, is not suspended, and is managed by a policy or another manager.
pub(super) fn is_responsible<B: AnyBinding>(binding: &B, scheduler_name: &str) -> bool {
    let spec = binding.spec();
    let named = if spec.scheduler_name.is_empty() {
        "default-scheduler"
    } else {
        &spec.scheduler_name
    };
    named == scheduler_name && !spec.scheduling_suspended() && binding.is_managed()
}

/// Returns the kinds that a cluster serves since a change, each with its API version.
pub(super) fn new_apis(change: &Change<'_, Cluster>) -> BTreeSet<(String, String)> {
    let Change::Updated { old, new } = change else {
        return BTreeSet::new();
    };
    let (before, now) = (&old.status.api_enablements, &new.status.api_enablements);
    // Before its first listing a cluster has none, and after it every kind would be new.
    if before == now || before.is_empty() {
        return BTreeSet::new();
    }
    let kinds = |enablements: &[ApiEnablement]| -> BTreeSet<(String, String)> {
        let pairs = enablements.iter().flat_map(|group| {
            let kinds = group.resources.iter().map(|resource| resource.kind.clone());
            kinds.map(|kind| (group.group_version.clone(), kind))
        });
        pairs.collect()
    };
    &kinds(now) - &kinds(before)
}

/// Returns the cluster before and after a change that may affect bindings. More room or readiness do not, as in
/// Karmada.
pub(super) fn changed_cluster(change: &Change<'_, Cluster>) -> Option<[model::Cluster; 2]> {
    let Change::Updated { old, new } = change else {
        return None;
    };
    let terminating = old.metadata.deletion_timestamp.is_none() && new.metadata.deletion_timestamp.is_some();
    let matters = terminating || old.labels() != new.labels() || old.metadata.generation != new.metadata.generation;
    matters.then(|| [old.to_model(), new.to_model()])
}

/// True if a binding is of one of these kinds, each with its API version.
pub(super) fn is_of_kind<B: AnyBinding>(binding: &B, kinds: &BTreeSet<(String, String)>) -> bool {
    let resource = &binding.spec().resource;
    let is_it = |(version, kind): &(String, String)| *version == resource.api_version && *kind == resource.kind;
    kinds.iter().any(is_it)
}

/// True if a binding may be on one of these clusters.
pub(super) fn is_affected<B: AnyBinding>(binding: &B, clusters: &[model::Cluster]) -> bool {
    clusters.iter().any(|cluster| may_be_on(binding, cluster))
}

/// True if a binding may be on a cluster. Of several affinity groups only the observed one counts, and of that only
/// the part without overflow (Karmada: `enqueueAffectedBindings`).
fn may_be_on<B: AnyBinding>(binding: &B, cluster: &model::Cluster) -> bool {
    let Some(placement) = &binding.spec().placement else {
        return false;
    };
    let status = binding.status();
    if let Some(terms) = &placement.cluster_affinities {
        let observed = terms
            .iter()
            .find(|term| term.affinity_name == status.scheduler_observed_affinity_name);
        // In Karmada an empty list of groups crashes the scheduler here.
        let Some(term) = observed.or(terms.first()) else {
            return false;
        };
        return Some(status.scheduler_observed_generation) != binding.meta().generation
            || affinity::matches(&term.affinity, cluster);
    }
    placement
        .cluster_affinity
        .as_ref()
        .is_none_or(|affinity| affinity::matches(affinity, cluster))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bulkhead_api::ResourceBinding;
    use bulkhead_core::names::keys;
    use serde_json::{Value, json};

    use super::*;

    fn binding(generation: i64, spec: Value, status: Value, labels: Value) -> Arc<ResourceBinding> {
        let mut whole = json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": "b", "namespace": "ns", "generation": generation, "labels": labels},
            "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}},
            "status": status,
        });
        for (name, value) in spec.as_object().unwrap() {
            whole["spec"][name] = value.clone();
        }
        Arc::new(serde_json::from_value(whole).unwrap())
    }

    fn managed() -> Value {
        json!({(keys::PROPAGATION_POLICY_ID): "id"})
    }

    #[test]
    fn a_binding_comes_when_its_spec_changes_or_it_becomes_ours() {
        let check = |old: &Arc<ResourceBinding>, new: &Arc<ResourceBinding>, expected: bool| {
            let change = Change::Updated { old, new };
            assert_eq!(
                brings_binding(&change, "default-scheduler"),
                expected,
                "{old:?} {new:?}"
            );
        };
        let ours = |generation: i64, spec: Value| binding(generation, spec, json!({}), managed());
        let plain = ours(1, json!({}));
        check(&plain, &ours(2, json!({"replicas": 2})), true);
        check(
            &plain,
            &binding(1, json!({}), json!({"schedulerObservedGeneration": 1}), managed()),
            false,
        );
        // Not this scheduler's: named for another one, suspended, or unmanaged.
        let named = ours(2, json!({"schedulerName": "other"}));
        let suspended = ours(2, json!({"suspension": {"scheduling": true}}));
        let unmanaged = binding(2, json!({}), json!({}), json!({}));
        for not_ours in [&named, &suspended, &unmanaged] {
            check(&plain, not_ours, false);
            check(not_ours, &ours(2, json!({})), true);
            assert!(!brings_binding(&Change::Added(not_ours), "default-scheduler"));
        }
        assert!(brings_binding(&Change::Added(&plain), "default-scheduler"));
        assert!(brings_binding(&Change::Added(&named), "other"));
    }

    #[test]
    fn a_cluster_counts_when_labels_or_spec_change_or_it_is_being_deleted() {
        let cluster = |metadata: Value, status: Value| -> Arc<Cluster> {
            let mut metadata = metadata;
            metadata["name"] = json!("m1");
            let kind = json!({
                "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": metadata,
                "spec": {"syncMode": "Push"}, "status": status,
            });
            Arc::new(serde_json::from_value(kind).unwrap())
        };
        let old = cluster(json!({"generation": 1}), json!({}));
        let check = |new: Arc<Cluster>, expected: bool| {
            assert_eq!(
                changed_cluster(&Change::Updated { old: &old, new: &new }).is_some(),
                expected,
                "{new:?}"
            );
        };
        check(cluster(json!({"generation": 2}), json!({})), true);
        check(cluster(json!({"generation": 1, "labels": {"a": "b"}}), json!({})), true);
        check(
            cluster(
                json!({"generation": 1, "deletionTimestamp": "2026-01-01T00:00:00Z"}),
                json!({}),
            ),
            true,
        );
        check(
            cluster(json!({"generation": 1}), json!({"kubernetesVersion": "v1"})),
            false,
        );
        check(
            cluster(json!({"generation": 1, "annotations": {"a": "b"}}), json!({})),
            false,
        );
        assert!(changed_cluster(&Change::Added(&old)).is_none());
        assert!(changed_cluster(&Change::Deleted(&old)).is_none());
    }

    #[test]
    fn a_kind_that_a_cluster_begins_to_serve_counts() {
        let cluster = |enablements: Value| -> Arc<Cluster> {
            let kind = json!({
                "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"},
                "spec": {"syncMode": "Push"}, "status": {"apiEnablements": enablements},
            });
            Arc::new(serde_json::from_value(kind).unwrap())
        };
        let group = |version: &str, kinds: &[&str]| {
            let resources: Vec<_> = kinds
                .iter()
                .map(|kind| json!({"name": kind.to_lowercase(), "kind": kind}))
                .collect();
            json!({"groupVersion": version, "resources": resources})
        };
        let found = |old: &Value, new: &Value| {
            let (old, new) = (cluster(old.clone()), cluster(new.clone()));
            let new_apis = new_apis(&Change::Updated { old: &old, new: &new });
            new_apis
                .into_iter()
                .map(|(version, kind)| format!("{version} {kind}"))
                .collect::<Vec<_>>()
        };
        let before = json!([group("apps/v1", &["Deployment"]), group("example.io/v1", &["Gadget"])]);
        let after = json!([
            group("apps/v1", &["Deployment"]),
            group("example.io/v1", &["Gadget", "Widget"])
        ]);
        assert_eq!(found(&before, &after), ["example.io/v1 Widget"]);
        assert_eq!(found(&after, &before), [""; 0]);
        assert_eq!(found(&before, &before), [""; 0]);
        assert_eq!(found(&json!([]), &after), [""; 0]);
        assert!(new_apis(&Change::Added(&cluster(after))).is_empty());
    }

    #[test]
    fn of_several_groups_the_observed_one_counts() {
        let check = |placement: Value, status: Value, expected: bool| {
            let cluster = model::Cluster {
                name: "m1".to_owned(),
                ..model::Cluster::default()
            };
            let binding = binding(3, json!({"placement": placement}), status.clone(), managed());
            assert_eq!(may_be_on(&*binding, &cluster), expected, "{placement} {status}");
        };
        check(json!({}), json!({}), true);
        check(json!({"clusterAffinity": {"clusterNames": ["m1"]}}), json!({}), true);
        check(json!({"clusterAffinity": {"clusterNames": ["m2"]}}), json!({}), false);
        let groups = json!({"clusterAffinities": [
            {"affinityName": "a", "clusterNames": ["m1"]},
            {"affinityName": "b", "clusterNames": ["m2"], "overflowAffinities": [{"affinityName": "o", "clusterNames": ["m1"]}]},
        ]});
        let seen = |name: &str, generation: i64| json!({"schedulerObservingAffinityName": name, "schedulerObservedGeneration": generation});
        check(groups.clone(), seen("a", 3), true);
        check(groups.clone(), seen("", 3), true);
        check(groups.clone(), seen("b", 3), false);
        check(groups, seen("b", 2), true);
        check(json!({"clusterAffinities": []}), json!({}), false);
    }
}
