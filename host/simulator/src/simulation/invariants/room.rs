//! Room in member clusters for workloads that are placed by it.

use bulkhead_core::model::{Binding, BindingSpec, ReplicaDivisionPreference, ReplicaSchedulingType};

use super::hub::Hub;
use crate::simulation::federation::Federation;

/// Returns a cluster that has room for pods of a binding that are pending in one of its targets. `None` if its placement
/// does not depend on room alone, or on summaries that are older than earlier placements.
pub(super) fn elsewhere<'a>(
    hub: &'a Hub,
    federation: &Federation,
    binding: &'a Binding,
    target: &str,
    pending: i64,
) -> Option<&'a str> {
    let spec = &binding.spec;
    let depends_on_room = is_placed_by_room(spec) && spec.graceful_eviction_tasks.is_empty();
    if !depends_on_room || federation.has_succeeding_scheduler() {
        return None;
    }
    let mut others = hub.places(binding).filter(|cluster| *cluster != target);
    others.find(|cluster| federation.free_pods(cluster) >= pending)
}

/// True if a placement divides replicas by the room of clusters, and nothing else restricts it to some of them.
fn is_placed_by_room(spec: &BindingSpec) -> bool {
    let Some(placement) = &spec.placement else {
        return false;
    };
    let is_free = placement.cluster_affinities.is_none() && placement.spread_constraints.is_empty();
    let scheduling = placement.replica_scheduling.as_ref();
    is_free
        && scheduling.is_some_and(|scheduling| {
            let weights = scheduling.weight_preference.as_ref();
            let by_room = match scheduling.replica_division_preference {
                Some(ReplicaDivisionPreference::Aggregated) => true,
                _ => weights.is_some_and(|weights| weights.dynamic_weight == "AvailableReplicas"),
            };
            scheduling.replica_scheduling_type == ReplicaSchedulingType::Divided && by_room
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_placement_depends_on_room_if_it_divides_by_room_among_all_clusters() {
        let check = |placement: Value, expected: bool| {
            let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
            let spec = json!({"resource": resource, "placement": placement});
            let spec: BindingSpec = serde_json::from_value(spec).unwrap();
            assert_eq!(is_placed_by_room(&spec), expected, "{placement}");
        };
        let divided = |preference: &str, weights: Value| {
            json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": preference,
                "weightPreference": weights})
        };
        let by_room = json!({"dynamicWeight": "AvailableReplicas"});
        check(json!({"replicaScheduling": divided("Aggregated", json!({}))}), true);
        check(json!({"replicaScheduling": divided("Weighted", by_room.clone())}), true);
        check(json!({"replicaScheduling": divided("Weighted", json!({}))}), false);
        check(
            json!({"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}),
            false,
        );
        check(json!({}), false);
        let groups = json!([{"affinityName": "first", "clusterNames": ["m1"]}]);
        let scheduling = divided("Weighted", by_room);
        check(
            json!({"replicaScheduling": scheduling, "clusterAffinities": groups}),
            false,
        );
    }
}
