//! Grades of nodes: `spec.resourceModels` defines the grades, and `status.resourceSummary.allocatableModelings`
//! counts the nodes of each grade.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::quantity::{Quantity, whole};

/// Grades that several clusters define identically, in ascending order. Empty if absent or malformed.
#[derive(Debug, Default)]
pub struct Grades {
    source: Vec<Value>,
    grades: Vec<Grade>,
}

/// Grade of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grade {
    /// Number of the grade.
    pub grade: u64,
    /// Minimum resources of a node of this grade: cpu in thousandths, all others in units.
    pub capacity: BTreeMap<String, i64>,
}

#[derive(Deserialize)]
struct ResourceModel {
    #[serde(default)]
    grade: u64,
    #[serde(default)]
    ranges: Vec<ResourceRange>,
}

#[derive(Deserialize)]
struct ResourceRange {
    #[serde(default)]
    name: String,
    #[serde(default)]
    min: Value,
}

impl Grades {
    pub(super) fn new(models: &[Value]) -> Self {
        let grades = parse(models).unwrap_or_default();
        Self {
            source: models.to_vec(),
            grades,
        }
    }

    pub(super) fn is_of(&self, models: &[Value]) -> bool {
        self.source == models
    }

    /// Returns the grades in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &Grade> {
        self.grades.iter()
    }
}

/// Parses the grades. If a number occurs twice, its last definition counts.
fn parse(models: &[Value]) -> Option<Vec<Grade>> {
    let mut grades = BTreeMap::new();
    for model in models {
        let model = ResourceModel::deserialize(model).ok()?;
        let mut capacity = BTreeMap::new();
        for range in model.ranges {
            let min = if range.min.is_null() {
                Quantity::default()
            } else {
                Quantity::from_json(&range.min).ok()?
            };
            let amount = if range.name == "cpu" { min.millis() } else { min.units() };
            capacity.insert(range.name, whole(amount));
        }
        grades.insert(model.grade, capacity);
    }
    Some(
        grades
            .into_iter()
            .map(|(grade, capacity)| Grade { grade, capacity })
            .collect(),
    )
}

/// Number of nodes of each grade in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NodeCounts {
    /// The status has no node counts; models do not apply.
    None,
    /// The status has node counts, but the grade definitions are unusable or a count is negative.
    Unusable,
    /// One count per grade of the definition.
    Counts(Vec<i64>),
}

impl NodeCounts {
    /// Reads the counts. Ignores grades that are missing in the definition.
    pub(super) fn new(grades: &Grades, modelings: &[Value]) -> Self {
        #[derive(Deserialize)]
        struct Modeling {
            #[serde(default)]
            grade: u64,
            #[serde(default)]
            count: i64,
        }
        if modelings.is_empty() {
            return Self::None;
        }
        let mut counts = vec![0_i64; grades.grades.len()];
        for modeling in modelings {
            let Ok(Modeling {
                grade,
                count: count @ 0..,
            }) = Modeling::deserialize(modeling)
            else {
                return Self::Unusable;
            };
            if let Ok(index) = grades.grades.binary_search_by_key(&grade, |grade| grade.grade) {
                counts[index] = counts[index].saturating_add(count);
            }
        }
        if counts.is_empty() {
            Self::Unusable
        } else {
            Self::Counts(counts)
        }
    }
}

/// Resource models of one cluster, as used by capacity estimation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelColumn<'a> {
    /// Models do not apply; the resource summary is used.
    None,
    /// Models apply but are invalid; the resource summary is used instead.
    Unusable,
    /// Index of the definition, and the node count of each of its grades.
    Counts {
        /// Index into the definitions of the snapshot.
        definition: u32,
        /// One count per grade, not negative.
        nodes: &'a [i64],
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn grades_ascend_and_counts_follow_them() {
        let model = |grade: u64, cpu: &str| json!({"grade": grade, "ranges": [{"name": "cpu", "min": cpu}]});
        let grades = Grades::new(&[model(2, "4"), model(0, "0"), model(1, "1500m")]);
        let actual: Vec<_> = grades
            .iter()
            .map(|grade| (grade.grade, grade.capacity["cpu"]))
            .collect();
        assert_eq!(actual, [(0, 0), (1, 1500), (2, 4000)]);
        let check = |modelings: Value, expected: NodeCounts| {
            let list = modelings.as_array().cloned().unwrap_or_default();
            assert_eq!(NodeCounts::new(&grades, &list), expected, "{modelings}");
        };
        check(json!([]), NodeCounts::None);
        check(
            json!([{"grade": 1, "count": 3}, {"grade": 7, "count": 9}]),
            NodeCounts::Counts(vec![0, 3, 0]),
        );
        check(
            json!([{"grade": 1, "count": 3}, {"grade": 1, "count": 2}]),
            NodeCounts::Counts(vec![0, 5, 0]),
        );
        check(json!([{"grade": 1, "count": -1}]), NodeCounts::Unusable);
        assert_eq!(
            NodeCounts::new(&Grades::default(), &[json!({"count": 1})]),
            NodeCounts::Unusable
        );
    }
}
