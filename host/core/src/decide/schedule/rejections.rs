//! Rejections of clusters by the filters of an attempt. Stored in columns; names and texts are created on access.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::combine::Attribution;
use crate::snapshot::ClusterSnapshot;

/// Rejected clusters, each with the first rejection and its reason.
#[derive(Clone, Debug, Default)]
pub struct Rejections {
    pub(super) clusters: Arc<ClusterSnapshot>,
    /// Rows of the filtered clusters; `rejections` has the first rejection of each.
    pub(super) asked: Vec<u32>,
    pub(super) rejections: Vec<Option<Box<Attribution>>>,
}

/// Maximum number of clusters named per reason; above it, only their number is given.
const NAMED_MAX: usize = 3;

impl Rejections {
    /// Returns the rejected clusters, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Attribution)> {
        let asked = self.asked.iter().zip(&self.rejections);
        asked.filter_map(|(row, attribution)| Some((self.clusters.name(*row), attribution.as_deref()?)))
    }

    /// Returns a one-line summary: `member1, member4: <reason>; 40 clusters: <another>`.
    pub fn summary(&self) -> String {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (cluster, attribution) in self.iter() {
            by_reason.entry(&attribution.reason.message).or_default().push(cluster);
        }
        let line = |(reason, clusters): (&str, Vec<&str>)| {
            let who = if clusters.len() > NAMED_MAX {
                format!("{} clusters", clusters.len())
            } else {
                clusters.join(", ")
            };
            format!("{who}: {reason}")
        };
        by_reason.into_iter().map(line).collect::<Vec<_>>().join("; ")
    }

    /// Returns the clusters that are being removed, which are not filtered.
    pub(super) fn terminating(&self) -> Vec<String> {
        let clusters = self
            .clusters
            .clusters()
            .iter()
            .filter(|cluster| cluster.is_terminating());
        clusters.map(|cluster| cluster.name.clone()).collect()
    }

    /// Returns Karmada's message if no cluster fits: a histogram of reasons, sorted as strings. It includes
    /// terminating clusters in the total but not in the reasons.
    pub(super) fn no_cluster_fits(&self) -> String {
        let all = self.clusters.len();
        let mut histogram: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, attribution) in self.iter() {
            *histogram.entry(&attribution.reason.message).or_default() += 1;
        }
        if histogram.is_empty() {
            return format!("0/{all} clusters are available: no cluster exists.");
        }
        let mut reasons: Vec<_> = histogram
            .into_iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        reasons.sort();
        format!("0/{all} clusters are available: {}.", reasons.join(", "))
    }
}
