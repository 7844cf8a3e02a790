//! Requests to accurate estimators before a decision, and their results.

use std::collections::BTreeMap;

use crate::decide::schedule::components;
use crate::decide::schedule::options::SchedulerOptions;
use crate::model::{BindingSpec, Component, Placement};
use crate::snapshot::ClusterSnapshot;

/// Results of accurate estimators by cluster; an error is the message of a failed call.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AccurateEstimates(pub BTreeMap<String, Result<i32, String>>);

/// Request to accurate estimators.
#[derive(Clone, Debug, PartialEq)]
pub struct EstimateRequest {
    /// Clusters whose estimators are called, sorted by name.
    pub clusters: Vec<String>,
    /// Components, if complete sets are to be placed; absent for replicas of one pod template.
    pub components: Option<Vec<Component>>,
}

/// Returns the request for a binding; `None` if capacity does not matter.
///
/// Karmada calls the estimators of clusters that passed the filters. Here, the request precedes the filters, so it
/// includes every cluster that an affinity of the placement selects. The decision uses only clusters that pass the
/// filters.
pub fn estimate_request(
    spec: &BindingSpec,
    placement: &Placement,
    clusters: &ClusterSnapshot,
    options: &SchedulerOptions,
) -> Option<EstimateRequest> {
    if spec.replicas == 0 && spec.components.is_empty() {
        return None;
    }
    // Malformed components are an error of the decision, which needs no estimates then.
    let components = if components::placed_as_sets(spec, placement, options) {
        Some(components::parse(spec).ok()?)
    } else {
        None
    };
    let terms = placement.cluster_affinities.iter().flatten();
    let of_terms = terms.flat_map(|term| {
        let overflow = term
            .overflow()
            .into_iter()
            .map(|entry| clusters.selected_by(&entry.affinity));
        std::iter::once(clusters.selected_by(&term.affinity))
            .chain(overflow)
            .collect::<Vec<_>>()
    });
    let own = placement
        .cluster_affinity
        .as_ref()
        .map(|affinity| clusters.selected_by(affinity));
    let affinities: Vec<Vec<bool>> = own.into_iter().chain(of_terms).collect();
    let matches =
        |row: u32| affinities.is_empty() || affinities.iter().any(|rows| rows.get(row as usize) == Some(&true));
    let asked = clusters.present().rows().iter().filter(|row| matches(**row));
    Some(EstimateRequest {
        clusters: asked.map(|row| clusters.name(*row).to_owned()).collect(),
        components,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::model::Cluster;

    #[test]
    fn estimators_of_clusters_that_an_affinity_matches_are_asked_if_room_matters() {
        let cluster = |name: &str| {
            Arc::new(Cluster {
                name: name.to_owned(),
                ..Cluster::default()
            })
        };
        let clusters = ClusterSnapshot::new(["m1", "m2", "m3"].map(cluster));
        let check = |spec: Value, expected: Option<&[&str]>| {
            let mut whole = spec.clone();
            whole["resource"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"});
            let spec: BindingSpec = serde_json::from_value(whole).unwrap();
            let placement = spec.placement.clone().unwrap_or_default();
            let options = SchedulerOptions {
                multiple_pod_templates: true,
                ..SchedulerOptions::default()
            };
            let request = estimate_request(&spec, &placement, &clusters, &options);
            let asked = request
                .as_ref()
                .map(|request| request.clusters.iter().map(String::as_str).collect());
            assert_eq!(asked, expected.map(<[&str]>::to_vec), "{request:?}");
            request
                .and_then(|request| request.components)
                .map(|components| components.len())
        };
        check(json!({}), None);
        check(json!({"replicas": 1}), Some(&["m1", "m2", "m3"]));
        let named = |names: Value| json!({"clusterAffinity": {"clusterNames": names}});
        check(json!({"replicas": 1, "placement": named(json!(["m2"]))}), Some(&["m2"]));
        let overflow = json!([{"affinityName": "o", "clusterNames": ["m3"]}]);
        let terms = json!({"clusterAffinities": [
            {"affinityName": "a", "clusterNames": ["m1"], "overflowAffinities": overflow},
        ]});
        check(json!({"replicas": 1, "placement": terms}), Some(&["m1", "m3"]));
        let mut placement = named(json!(["m1"]));
        placement["spreadConstraints"] = json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]);
        let set = json!([{"name": "c", "replicas": 1}]);
        assert_eq!(
            check(json!({"components": set, "placement": placement}), Some(&["m1"])),
            Some(1)
        );
        check(json!({"components": ["c"], "placement": placement}), None);
    }
}
