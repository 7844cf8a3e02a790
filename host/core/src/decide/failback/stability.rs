//! Stability of clusters: the timer of failback.

use serde::{Deserialize, Serialize};

use crate::model::Cluster;
use crate::time::Time;

/// Annotation of a Cluster: time since which it is ready with its current taints, as JSON. Absent while it is not
/// ready.
pub const STABLE: &str = "failover.bulkhead.dev/stable";

/// Time since which a cluster is ready with the given taints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stability {
    /// Time of the last change.
    pub since: Time,
    /// Taints as `key:effect`, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<String>,
}

/// Returns the new stability record of a cluster; `known` is the stored one. `None` while the cluster is not ready or
/// is being removed.
///
/// A cluster without a record starts now. If it became ready again after the recorded time, the transition time of
/// its condition counts. A time in the future, which a clock that was set back can cause, is replaced by `now`.
pub fn stability(cluster: &Cluster, known: Option<&Stability>, now: Time) -> Option<Stability> {
    if !cluster.is_ready() || cluster.is_terminating() {
        return None;
    }
    let mut taints: Vec<_> = cluster.spec.taints.iter().map(crate::model::Taint::identity).collect();
    taints.sort();
    // The API stores no fractions. Rounding up makes the window end slightly later, never too early.
    let start = Time::from_millis(now.as_millis().saturating_add(999)).truncated();
    let ready_since = cluster.ready().and_then(|ready| ready.last_transition_time);
    let since = known
        .filter(|known| known.taints == taints)
        .map_or(start, |known| known.since);
    let since = ready_since
        .map_or(since, |ready_since| since.max(ready_since))
        .min(start);
    Some(Stability { since, taints })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_clock_starts_again_whenever_readiness_or_taints_change() {
        let at = |second: i64| Time::from_millis(second * 1000);
        let check = |ready: &str, ready_s: i64, taints: &[&str], known: Option<(i64, &[&str])>, since: Option<i64>| {
            let spec: Vec<_> = taints
                .iter()
                .map(|key| json!({"key": key, "effect": "NoSchedule"}))
                .collect();
            let ready = json!([{"type": "Ready", "status": ready, "lastTransitionTime": at(ready_s)}]);
            let cluster: Cluster = serde_json::from_value(json!({
                "name": "m1", "spec": {"syncMode": "Push", "taints": spec}, "status": {"conditions": ready},
            }))
            .unwrap();
            let known = known.map(|(since, taints)| Stability {
                since: at(since),
                taints: taints.iter().map(|key| format!("{key}:NoSchedule")).collect(),
            });
            let now = Time::from_millis(100_500);
            let actual = stability(&cluster, known.as_ref(), now).map(|stable| stable.since.as_millis() / 1000);
            assert_eq!(actual, since, "{cluster:?} {known:?}");
        };
        check("True", 10, &[], None, Some(101));
        check("True", 10, &[], Some((20, &[])), Some(20));
        check("True", 10, &["b", "a"], Some((20, &["a", "b"])), Some(20));
        check("True", 10, &["a"], Some((20, &[])), Some(101));
        check("True", 10, &[], Some((20, &["a"])), Some(101));
        // The cluster was not ready for a moment that was not observed.
        check("True", 90, &[], Some((20, &[])), Some(90));
        check("True", 10, &[], Some((900, &[])), Some(101));
        check("False", 10, &[], Some((20, &[])), None);
        check("Unknown", 10, &[], None, None);
    }

    #[test]
    fn a_record_of_another_version_is_read() {
        // The first form that was written; fields that a later version adds are ignored.
        for text in [
            r#"{"since":"2026-01-01T00:00:10Z"}"#,
            r#"{"since":"2026-01-01T00:00:10Z","taints":[],"probes":3}"#,
        ] {
            let stable: Stability = serde_json::from_str(text).expect(text);
            assert_eq!(stable.taints, Vec::<String>::new(), "{text}");
        }
    }
}
