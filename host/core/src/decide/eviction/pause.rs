//! Eviction pauses set by an operator: global or per cluster, namespace or workload; until a given time or their
//! deletion.

use crate::combine::Attribution;
use crate::model::{EvictionPauseSpec, ObjectReference};
use crate::time::Time;

/// Eviction pause with its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionPause {
    /// Name of the `EvictionPause` object.
    pub name: String,
    /// Evictions that it selects.
    pub spec: EvictionPauseSpec,
}

/// Properties of an eviction that pauses select on.
#[derive(Clone, Copy, Debug)]
pub struct PauseScope<'a> {
    /// Cluster that the workload would leave.
    pub cluster: &'a str,
    /// Workload that would be evicted.
    pub workload: &'a ObjectReference,
}

/// Reason why an eviction has to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paused {
    /// Name of the pause.
    pub by: String,
    /// Reason given by the operator.
    pub reason: String,
    /// End of the pause; `None` if it has no end.
    pub until: Option<Time>,
}

impl Paused {
    /// Returns the reason with the name and the end of the pause.
    pub fn attribution(&self) -> Attribution {
        let until = self
            .until
            .map_or_else(|| "until it is deleted".to_owned(), |until| format!("until {until}"));
        let why = if self.reason.is_empty() {
            String::new()
        } else {
            format!(": {}", self.reason)
        };
        Attribution::rule(
            "EvictionPaused",
            format!("EvictionPause {} applies {until}{why}", self.by),
        )
    }
}

/// Returns the pause that applies to an eviction. Of several, returns the last one to end, which avoids premature
/// rechecks.
pub fn paused(pauses: &[EvictionPause], scope: PauseScope<'_>, now: Time) -> Option<Paused> {
    let in_force = pauses
        .iter()
        .filter(|pause| pause.spec.is_in_force(now) && covers(&pause.spec, scope));
    // A pause without an end sorts last.
    let last = in_force.max_by_key(|pause| (pause.spec.until.is_none(), pause.spec.until))?;
    Some(Paused {
        by: last.name.clone(),
        reason: last.spec.reason.clone(),
        until: last.spec.until,
    })
}

/// Returns true if every non-empty list contains a match; a pause without lists matches everything.
fn covers(spec: &EvictionPauseSpec, scope: PauseScope<'_>) -> bool {
    let named = |list: &[String], name: &str| list.is_empty() || list.iter().any(|listed| listed == name);
    let same = |wanted: &str, actual: &str| wanted.is_empty() || wanted == actual;
    named(&spec.clusters, scope.cluster)
        && named(&spec.namespaces, &scope.workload.namespace)
        && (spec.workloads.is_empty()
            || spec.workloads.iter().any(|workload| {
                same(&workload.api_version, &scope.workload.api_version)
                    && same(&workload.kind, &scope.workload.kind)
                    && same(&workload.namespace, &scope.workload.namespace)
                    && workload.name == scope.workload.name
            }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(specs: &[Value], by: Option<&str>) {
        let pauses: Vec<_> = specs
            .iter()
            .enumerate()
            .map(|(index, spec)| EvictionPause {
                name: format!("p{index}"),
                spec: serde_json::from_value(spec.clone()).unwrap(),
            })
            .collect();
        let workload = ObjectReference {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: "shop".into(),
            name: "cart".into(),
            ..ObjectReference::default()
        };
        let scope = PauseScope {
            cluster: "member1",
            workload: &workload,
        };
        let paused = paused(&pauses, scope, Time::from_millis(1_700_000_000_000));
        assert_eq!(paused.as_ref().map(|paused| paused.by.as_str()), by, "{specs:?}");
    }

    #[test]
    fn a_pause_covers_what_its_lists_name_and_everything_without_lists() {
        check(&[], None);
        check(&[json!({})], Some("p0"));
        check(&[json!({"clusters": ["member1"]})], Some("p0"));
        check(&[json!({"clusters": ["member2"]})], None);
        check(&[json!({"namespaces": ["shop"]})], Some("p0"));
        check(&[json!({"namespaces": ["bank"]})], None);
        check(&[json!({"clusters": ["member1"], "namespaces": ["bank"]})], None);
        check(
            &[json!({"workloads": [{"kind": "Deployment", "namespace": "shop", "name": "cart"}]})],
            Some("p0"),
        );
        check(&[json!({"workloads": [{"name": "cart"}]})], Some("p0"));
        check(&[json!({"workloads": [{"kind": "Job", "name": "cart"}]})], None);
    }

    #[test]
    fn a_pause_ends_at_its_time_and_the_one_that_lasts_longest_is_named() {
        let (past, soon, later) = ("2023-11-14T22:13:20Z", "2023-11-14T22:14:00Z", "2023-11-15T00:00:00Z");
        check(&[json!({"until": past})], None);
        check(&[json!({"until": soon})], Some("p0"));
        check(&[json!({"until": later}), json!({"until": soon})], Some("p0"));
        check(
            &[json!({"until": later}), json!({}), json!({"until": soon})],
            Some("p1"),
        );
    }
}
