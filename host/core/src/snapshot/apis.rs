//! Kinds served by each cluster. Clusters with the same Kubernetes version serve the same kinds, so each distinct
//! list is indexed once and shared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::{ApiEnablement, Cluster};

/// List of served kinds.
#[derive(Debug, Default)]
pub(super) struct ApiSet {
    /// First cluster with this list, which owns the list.
    source: Arc<Cluster>,
    kinds: BTreeMap<String, BTreeSet<String>>,
}

impl ApiSet {
    pub(super) fn new(cluster: &Arc<Cluster>) -> Self {
        let mut kinds: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for enablement in &cluster.status.api_enablements {
            let of_group = kinds.entry(enablement.group_version.clone()).or_default();
            of_group.extend(enablement.resources.iter().map(|resource| resource.kind.clone()));
        }
        Self {
            source: Arc::clone(cluster),
            kinds,
        }
    }

    pub(super) fn is_of(&self, enablements: &[ApiEnablement]) -> bool {
        self.source.status.api_enablements == enablements
    }

    fn serves(&self, group_version: &str, kind: &str) -> bool {
        self.kinds.get(group_version).is_some_and(|kinds| kinds.contains(kind))
    }
}

/// Index of the list of served kinds, for each row.
#[derive(Debug, Default)]
pub(super) struct ApiColumn {
    sets: Vec<Arc<ApiSet>>,
    set_of: Vec<u32>,
}

impl ApiColumn {
    /// Creates the column from the list of each row.
    pub(super) fn new<'a>(rows: impl IntoIterator<Item = &'a Arc<ApiSet>>) -> Self {
        let mut column = Self::default();
        let mut numbers: BTreeMap<*const ApiSet, u32> = BTreeMap::new();
        for set in rows {
            let number = *numbers.entry(Arc::as_ptr(set)).or_insert_with(|| {
                column.sets.push(Arc::clone(set));
                column.sets.len() as u32 - 1
            });
            column.set_of.push(number);
        }
        column
    }

    pub(super) fn serving(&self, api_version: &str, kind: &str) -> Serving<'_> {
        let group_version = normalised(api_version);
        let serves = self.sets.iter().map(|set| set.serves(group_version, kind)).collect();
        Serving {
            serves,
            set_of: &self.set_of,
        }
    }
}

/// Clusters that serve one kind.
#[derive(Debug)]
pub struct Serving<'a> {
    serves: Vec<bool>,
    set_of: &'a [u32],
}

impl Serving<'_> {
    /// Returns true if the cluster in the row serves the kind.
    pub fn contains(&self, row: u32) -> bool {
        let set = self.set_of.get(row as usize);
        set.and_then(|set| self.serves.get(*set as usize))
            .copied()
            .unwrap_or(false)
    }
}

/// Normalizes `group/version` as Kubernetes does: an empty group is dropped, and text with more than one slash is not
/// a group version (Kubernetes: `schema.FromAPIVersionAndKind`).
fn normalised(api_version: &str) -> &str {
    match api_version.split_once('/') {
        Some((_, version)) if version.contains('/') => "",
        Some(("", version)) => version,
        _ => api_version,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::snapshot::ClusterSnapshot;

    #[test]
    fn a_kind_is_served_in_its_own_group_version_only() {
        let cluster = |(name, group_version): (&str, &str)| {
            let resources = json!([{"name": "deployments", "kind": "Deployment"}]);
            let status = json!({"apiEnablements": [{"groupVersion": group_version, "resources": resources}]});
            serde_json::from_value(json!({"name": name, "spec": {"syncMode": "Push"}, "status": status})).unwrap()
        };
        let snapshot = ClusterSnapshot::new([("a", "apps/v1"), ("b", "apps/v1"), ("c", "v1")].map(cluster));
        let check = |api_version: &str, kind: &str, expected: [bool; 3]| {
            let serving = snapshot.serving(api_version, kind);
            assert_eq!(
                [0, 1, 2].map(|row| serving.contains(row)),
                expected,
                "{api_version} {kind}"
            );
        };
        assert_eq!(snapshot.apis.sets.len(), 2, "equal lists are indexed once");
        check("apps/v1", "Deployment", [true, true, false]);
        check("apps/v1", "DaemonSet", [false; 3]);
        check("v1", "Deployment", [false, false, true]);
        check("/v1", "Deployment", [false, false, true]);
        check("apps/v1/x", "Deployment", [false; 3]);
    }
}
