//! Labels by key, and evaluation of an affinity for all clusters at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::affinity::matches_fields;
use crate::model::{Cluster, ClusterAffinity, LabelSelector, SelectorOperator, SelectorRequirement};

/// Clusters and values of each label key. Lists only the clusters that have the label.
#[derive(Debug, Default)]
pub(super) struct Labels {
    keys: BTreeMap<String, LabelColumn>,
}

#[derive(Debug, Default)]
struct LabelColumn {
    values: BTreeMap<String, u32>,
    /// Row and value number, ascending by row.
    entries: Vec<(u32, u32)>,
}

impl Labels {
    pub(super) fn new(clusters: &[Arc<Cluster>]) -> Self {
        let mut labels = Self::default();
        for (cluster, row) in clusters.iter().zip(0..) {
            for (key, value) in &cluster.labels {
                labels.insert(row, key, value);
            }
        }
        labels
    }

    fn insert(&mut self, row: u32, key: &str, value: &str) {
        if !self.keys.contains_key(key) {
            self.keys.insert(key.to_owned(), LabelColumn::default());
        }
        let Some(column) = self.keys.get_mut(key) else { return };
        let next = column.values.len() as u32;
        let number = match column.values.get(value) {
            Some(number) => *number,
            None => *column.values.entry(value.to_owned()).or_insert(next),
        };
        column.entries.push((row, number));
    }

    /// Keeps the rows that satisfy all parts of a selector.
    fn narrow(&self, selector: &LabelSelector, rows: &mut [bool]) {
        for (key, value) in &selector.match_labels {
            self.keep_listed(key, std::slice::from_ref(value), rows);
        }
        for requirement in &selector.match_expressions {
            self.narrow_by(requirement, rows);
        }
    }

    fn narrow_by(&self, requirement: &SelectorRequirement, rows: &mut [bool]) {
        if !requirement.is_valid() {
            return rows.fill(false);
        }
        let SelectorRequirement { key, operator, values } = requirement;
        let entries = self.keys.get(key).map_or(&[][..], |column| &column.entries);
        match operator {
            SelectorOperator::In => self.keep_listed(key, values, rows),
            SelectorOperator::NotIn => {
                let numbers = self.numbers(key, values);
                drop_rows(rows, entries.iter().filter(|(_, value)| numbers.contains(value)));
            }
            SelectorOperator::Exists => keep_rows(rows, entries.iter()),
            SelectorOperator::DoesNotExist => drop_rows(rows, entries.iter()),
            SelectorOperator::Other(_) => rows.fill(false),
        }
    }

    fn keep_listed(&self, key: &str, values: &[String], rows: &mut [bool]) {
        let numbers = self.numbers(key, values);
        let entries = self.keys.get(key).map_or(&[][..], |column| &column.entries);
        keep_rows(rows, entries.iter().filter(|(_, value)| numbers.contains(value)));
    }

    fn numbers(&self, key: &str, values: &[String]) -> Vec<u32> {
        let column = self.keys.get(key);
        values
            .iter()
            .filter_map(|value| column?.values.get(value).copied())
            .collect()
    }
}

/// Clears all rows that are not in `entries`, which must be in ascending order.
fn keep_rows<'a>(rows: &mut [bool], entries: impl Iterator<Item = &'a (u32, u32)>) {
    let mut from = 0;
    for (row, _) in entries {
        let row = *row as usize;
        if let Some(skipped) = rows.get_mut(from..row) {
            skipped.fill(false);
        }
        from = row + 1;
    }
    if let Some(skipped) = rows.get_mut(from..) {
        skipped.fill(false);
    }
}

fn drop_rows<'a>(rows: &mut [bool], entries: impl Iterator<Item = &'a (u32, u32)>) {
    for (row, _) in entries {
        if let Some(row) = rows.get_mut(*row as usize) {
            *row = false;
        }
    }
}

impl super::ClusterSnapshot {
    /// Evaluates an affinity for all rows; equivalent to [`crate::affinity::matches`] for each cluster.
    pub fn selected_by(&self, affinity: &ClusterAffinity) -> Vec<bool> {
        let ClusterAffinity {
            label_selector,
            field_selector,
            cluster_names,
            exclude,
        } = affinity;
        let named = !cluster_names.is_empty();
        let mut rows = vec![!named; self.len()];
        for name in cluster_names {
            self.set(&mut rows, name, true);
        }
        for name in exclude {
            self.set(&mut rows, name, false);
        }
        if let Some(selector) = label_selector {
            self.labels.narrow(selector, &mut rows);
        }
        if let Some(selector) = field_selector {
            for (row, cluster) in rows.iter_mut().zip(self.clusters()) {
                *row = *row && matches_fields(selector, cluster);
            }
        }
        rows
    }

    fn set(&self, rows: &mut [bool], name: &str, value: bool) {
        if let Some(row) = self.row(name).and_then(|row| rows.get_mut(row as usize)) {
            *row = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::affinity::matches;
    use crate::model::ClusterAffinity;
    use crate::snapshot::ClusterSnapshot;

    #[test]
    fn all_at_once_is_the_same_as_one_by_one() {
        let clusters = [
            json!({"name": "m1", "labels": {"env": "prod", "tier": "1"}, "spec": {"syncMode": "Push", "region": "r1"}}),
            json!({"name": "m2", "labels": {"env": "dev"}, "spec": {"syncMode": "Push", "zones": ["z1"]}}),
            json!({"name": "m3", "spec": {"syncMode": "Push", "region": "r2"}}),
        ];
        let snapshot = ClusterSnapshot::new(clusters.map(|cluster| serde_json::from_value(cluster).unwrap()));
        let check = |affinity: Value| {
            let parsed: ClusterAffinity = serde_json::from_value(affinity.clone()).unwrap();
            let expected: Vec<_> = snapshot
                .clusters()
                .iter()
                .map(|cluster| matches(&parsed, cluster))
                .collect();
            assert_eq!(snapshot.selected_by(&parsed), expected, "{affinity}");
        };
        let expressions =
            |key: &str, operator: &str, values: &[&str]| json!([{"key": key, "operator": operator, "values": values}]);
        check(json!({}));
        check(json!({"clusterNames": ["m1", "m3", "m9"], "exclude": ["m3"]}));
        check(json!({"labelSelector": {"matchLabels": {"env": "prod"}}}));
        check(json!({"labelSelector": {"matchLabels": {"env": "none"}}}));
        check(json!({"labelSelector": {"matchLabels": {"env": "prod", "tier": "2"}}}));
        for (key, operator, values) in [
            ("env", "In", &["prod", "dev"][..]),
            ("env", "In", &[]),
            ("env", "NotIn", &["prod"]),
            ("gone", "NotIn", &["prod"]),
            ("tier", "Exists", &[]),
            ("tier", "DoesNotExist", &[]),
            ("tier", "Like", &["1"]),
        ] {
            check(json!({"labelSelector": {"matchExpressions": expressions(key, operator, values)}}));
        }
        check(json!({"fieldSelector": {"matchExpressions": expressions("region", "In", &["r1"])}}));
        check(json!({"fieldSelector": {"matchExpressions": expressions("zone", "In", &["z1"])}, "exclude": ["m2"]}));
    }
}
