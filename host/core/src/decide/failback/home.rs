//! Clusters on which a workload ran before its eviction.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::BindingSpec;
use crate::time::Time;

/// Annotation of a binding: clusters on which its workload ran before cluster failover evicted it, as JSON.
pub const HOME: &str = "failover.bulkhead.dev/home";

/// Clusters on which a workload ran before its eviction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Home {
    /// Replicas by cluster; 0 for workloads without replicas.
    pub clusters: BTreeMap<String, i32>,
    /// Time of the eviction.
    pub left_at: Time,
    /// Number of return attempts since then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tries: u32,
    /// Time of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried_at: Option<Time>,
}

fn is_zero(tries: &u32) -> bool {
    *tries == 0
}

impl Home {
    /// Returns the home record for a workload that is about to leave a cluster. A workload that is already away keeps
    /// its recorded home, regardless of the cluster that it leaves now.
    pub fn remember(annotations: &BTreeMap<String, String>, spec: &BindingSpec, now: Time) -> Self {
        let known = Self::read(annotations);
        let away = |home: &Self| {
            spec.clusters
                .iter()
                .any(|target| !home.clusters.contains_key(&target.name))
        };
        known
            .filter(|home| away(home) || spec.clusters.len() < home.clusters.len())
            .unwrap_or_else(|| Self {
                clusters: spec
                    .clusters
                    .iter()
                    .map(|target| (target.name.clone(), target.replicas))
                    .collect(),
                left_at: now.truncated(),
                tries: 0,
                tried_at: None,
            })
    }

    /// Reads the home record. A malformed annotation counts as absent, which disables automatic failback.
    pub fn read(annotations: &BTreeMap<String, String>) -> Option<Self> {
        annotations.get(HOME).and_then(|text| serde_json::from_str(text).ok())
    }

    /// Returns the time of the eviction or of the last attempt, whichever is later.
    pub fn touched_at(&self) -> Time {
        self.tried_at
            .map_or(self.left_at, |tried_at| tried_at.max(self.left_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TargetCluster;

    #[test]
    fn the_first_home_is_kept_until_the_workload_is_back() {
        let at = |second: i64| Time::from_millis(second * 1000);
        let on = |names: &[&str]| BindingSpec {
            clusters: names.iter().map(|name| TargetCluster::new(*name, 2)).collect(),
            ..BindingSpec::default()
        };
        let mut annotations = BTreeMap::new();
        let mut check = |names: &[&str], now_s: i64, expected: &[&str], left_s: i64| {
            let home = Home::remember(&annotations, &on(names), at(now_s));
            let clusters: Vec<_> = home.clusters.keys().map(String::as_str).collect();
            assert_eq!((clusters, home.left_at), (expected.to_vec(), at(left_s)), "{names:?}");
            annotations.insert(HOME.to_owned(), serde_json::to_string(&home).unwrap());
        };
        check(&["m1", "m2"], 10, &["m1", "m2"], 10);
        check(&["m2"], 20, &["m1", "m2"], 10);
        check(&["m2", "m3"], 30, &["m1", "m2"], 10);
        // The workload had returned, so this is a new departure.
        check(&["m1", "m2"], 40, &["m1", "m2"], 40);
        annotations.insert(HOME.to_owned(), "{".to_owned());
        assert_eq!(Home::read(&annotations), None);
    }

    #[test]
    fn the_number_of_attempts_is_written_once_there_was_one() {
        let home = |tries| Home {
            clusters: BTreeMap::new(),
            left_at: Time::from_millis(0),
            tries,
            tried_at: None,
        };
        let written = |tries| serde_json::to_value(home(tries)).unwrap();
        assert_eq!(written(0).get("tries"), None);
        assert_eq!(written(2)["tries"], 2);
    }

    #[test]
    fn a_record_of_another_version_is_read() {
        // The first form that was written; fields that a later version adds are ignored.
        for text in [
            r#"{"clusters":{"m1":2},"leftAt":"2026-01-01T00:00:10Z"}"#,
            r#"{"clusters":{"m1":2},"leftAt":"2026-01-01T00:00:10Z","tries":0,"triedAt":null,"zone":"north"}"#,
        ] {
            let home = Home::read(&BTreeMap::from([(HOME.to_owned(), text.to_owned())])).expect(text);
            assert_eq!((home.clusters["m1"], home.tries, home.tried_at), (2, 0, None), "{text}");
        }
    }
}
