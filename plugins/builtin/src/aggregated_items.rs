//! Statuses that member clusters report, read for an aggregate.

use bulkhead_core::model::AggregatedStatusItem;
use bulkhead_core::shape::{Malformed, count, field, members, text};
use bulkhead_core::time::Time;
use serde_json::{Map, Value};

/// Returns the collected statuses, each with its cluster.
pub(crate) fn collected(items: &[AggregatedStatusItem]) -> impl Iterator<Item = (&str, &Value)> {
    items
        .iter()
        .filter_map(|item| item.status.as_ref().map(|status| (item.cluster_name.as_str(), status)))
}

/// Returns the number in a field that was checked; 0 if it is null.
pub(crate) fn number(value: &Value) -> Result<i64, Malformed> {
    match value.as_i64() {
        Some(number) => Ok(number),
        None if value.is_null() => Ok(0),
        None => count(value, &[]),
    }
}

/// Sums of counters over all clusters. Counters have 32 bits, and their sum wraps around, as in Karmada.
pub(crate) struct Sums<'a> {
    names: &'a [&'a str],
    totals: Vec<i32>,
}

impl<'a> Sums<'a> {
    pub(crate) fn of(names: &'a [&'a str]) -> Self {
        Self {
            names,
            totals: vec![0; names.len()],
        }
    }

    /// Adds a field of a status if it is one of the counters.
    pub(crate) fn add(&mut self, name: &str, value: &Value) -> Result<(), Malformed> {
        let mut totals = self.names.iter().zip(&mut self.totals);
        if let Some((_, total)) = totals.find(|(counter, _)| **counter == name) {
            let counter = i32::try_from(number(value)?);
            let counter = counter.map_err(|_| Malformed::new(format!("{name} is outside of 32 bits")))?;
            *total = total.wrapping_add(counter);
        }
        Ok(())
    }

    /// Returns the sums by counter.
    pub(crate) fn into_fields(self) -> Map<String, Value> {
        let totals = self.names.iter().zip(self.totals);
        totals.map(|(name, total)| ((*name).to_owned(), total.into())).collect()
    }
}

/// Returns the sums of several counters.
pub(crate) fn sums(items: &[AggregatedStatusItem], names: &[&str]) -> Result<Map<String, Value>, Malformed> {
    let mut sums = Sums::of(names);
    for (_, status) in collected(items) {
        for (name, value) in members(status, &[])?.into_iter().flatten() {
            sums.add(name, value)?;
        }
    }
    Ok(sums.into_fields())
}

/// Returns the time in a field.
pub(crate) fn time(object: &Value, name: &str) -> Result<Option<Time>, Malformed> {
    let Some(value) = field(object, &[name])? else {
        return Ok(None);
    };
    let malformed = |_| Malformed::new(format!("{name} is not a time"));
    serde_json::from_value(value.clone()).map(Some).map_err(malformed)
}

/// Returns the first phase of `priorities` that any cluster is in, or an empty one; a missing status counts as
/// Pending.
pub(crate) fn leading_phase(
    items: &[AggregatedStatusItem],
    priorities: &[&'static str],
) -> Result<&'static str, Malformed> {
    let mut phases = Vec::new();
    for item in items {
        phases.push(
            item.status
                .as_ref()
                .map_or(Ok("Pending"), |status| text(status, &["phase"]))?,
        );
    }
    Ok(priorities
        .iter()
        .find(|phase| phases.contains(*phase))
        .copied()
        .unwrap_or_default())
}

/// Returns items for tests from a cluster's name and its status; null for none.
#[cfg(test)]
pub(crate) fn items(statuses: &[(&str, Value)]) -> Vec<AggregatedStatusItem> {
    let item = |(cluster, status): &(&str, Value)| AggregatedStatusItem {
        cluster_name: (*cluster).to_owned(),
        status: Some(status.clone()).filter(|status| !status.is_null()),
        ..AggregatedStatusItem::default()
    };
    statuses.iter().map(item).collect()
}
