//! Clusters that a workload was evicted from after a failure, and the duration of their exclusion.
//!
//! The history follows Karmada's proposal for application failover: `spec.activeEvictionHistory` of the binding and
//! `blockPredecessorSeconds` of the policy. Neither is in a Karmada release.

use serde::Deserialize;

use crate::model::Binding;
use crate::time::Time;

/// Field of a binding's spec that lists the clusters that it was evicted from.
pub const EVICTION_HISTORY: &str = "activeEvictionHistory";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Eviction {
    cluster_name: String,
    #[serde(alias = "createTimestamp")]
    creation_timestamp: Option<Time>,
}

/// Returns the clusters excluded for a binding at `now`, each with the end of its exclusion, which is absent if
/// permanent. An entry without a time applies only to permanent exclusions; a malformed entry is ignored.
pub fn blocked_until(binding: &Binding, now: Time) -> Vec<(String, Option<Time>)> {
    let application = binding
        .spec
        .failover
        .as_ref()
        .and_then(|failover| failover.application.as_ref());
    let Some(seconds) = application.and_then(|application| application.block_predecessor_seconds) else {
        return Vec::new();
    };
    let history = binding
        .spec
        .rest
        .get(EVICTION_HISTORY)
        .and_then(serde_json::Value::as_array);
    let evictions = history
        .into_iter()
        .flatten()
        .filter_map(|entry| Eviction::deserialize(entry).ok());
    let block = |eviction: Eviction| match (seconds, eviction.creation_timestamp) {
        (0, _) => Some((eviction.cluster_name, None)),
        (seconds, Some(at)) => {
            let until = at.plus_seconds(seconds.into());
            (until > now).then_some((eviction.cluster_name, Some(until)))
        }
        (_, None) => None,
    };
    evictions.filter_map(block).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_evicted_cluster_is_blocked_for_as_long_as_the_policy_says() {
        let check = |application: Value, entry: Value, expected: &[Option<i64>]| {
            let spec = json!({
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
                "failover": {"application": application},
                EVICTION_HISTORY: [entry],
            });
            let binding: Binding = serde_json::from_value(json!({"name": "b", "spec": spec})).unwrap();
            let blocked = blocked_until(&binding, Time::from_millis(1_000_000));
            let until: Vec<_> = blocked.iter().map(|(_, until)| until.map(Time::as_millis)).collect();
            assert_eq!(until, expected, "{application} {entry}");
        };
        let failover = |seconds: Value| json!({"decisionConditions": {}, "blockPredecessorSeconds": seconds});
        let evicted = json!({"clusterName": "m1", "creationTimestamp": "1970-01-01T00:16:30Z"});
        check(failover(json!(null)), evicted.clone(), &[]);
        check(failover(json!(10)), evicted.clone(), &[]);
        check(failover(json!(11)), evicted.clone(), &[Some(1_001_000)]);
        let other_spelling = json!({"clusterName": "m1", "createTimestamp": "1970-01-01T00:16:30Z"});
        check(failover(json!(11)), other_spelling, &[Some(1_001_000)]);
        check(failover(json!(0)), evicted, &[None]);
        check(failover(json!(60)), json!({"clusterName": "m1"}), &[]);
        check(failover(json!(60)), json!("m1"), &[]);
    }
}
