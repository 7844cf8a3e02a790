//! Labels that carry over state from the old copy's status to the new copy (Karmada: `pkg/util/helper/failover.go`).

use std::collections::BTreeMap;

use crate::jsonpath::{PathError, Template};
use crate::model::{AggregatedStatusItem, StatePreservationRule};

/// Maximum length of a label value, in bytes.
const LABEL_VALUE_BYTES_MAX: usize = 63;

/// Reason why a label could not be computed. The workload stays in place, because a new copy without its state may do
/// harm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PreserveError {
    /// The cluster has not reported a status. The message is Karmada's.
    #[error("the application status has not yet been collected from Cluster({cluster})")]
    NoStatus {
        /// Cluster that the workload leaves.
        cluster: String,
    },
    /// The path cannot be parsed or matches nothing.
    #[error("jsonPath {path:?} of the label {label}: {problem}")]
    Path {
        /// Name of the label.
        label: String,
        /// JSONPath template.
        path: String,
        /// Error of the path.
        problem: PathError,
    },
    /// The text is not a valid label value, so the member cluster would reject the new copy.
    #[error(
        "{value:?} cannot be the value of the label {label}: at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
    )]
    NoLabelValue {
        /// Name of the label.
        label: String,
        /// Text that the path returned.
        value: String,
    },
}

/// Computes the labels that `rules` derive from the status reported by a cluster.
pub fn labels(
    observed: &[AggregatedStatusItem],
    cluster: &str,
    rules: &[StatePreservationRule],
) -> Result<BTreeMap<String, String>, PreserveError> {
    let item = observed.iter().find(|item| item.cluster_name == cluster);
    let status = item
        .and_then(|item| item.status.as_ref())
        .filter(|status| !status.is_null());
    let status = status.ok_or_else(|| PreserveError::NoStatus {
        cluster: cluster.to_owned(),
    })?;
    let label = |rule: &StatePreservationRule| {
        let label = rule.alias_label_name.clone();
        let evaluated = rule
            .json_path
            .parse::<Template>()
            .and_then(|template| template.evaluate(status));
        match evaluated {
            Err(problem) => Err(PreserveError::Path {
                label,
                path: rule.json_path.clone(),
                problem,
            }),
            Ok(value) if !is_label_value(&value) => Err(PreserveError::NoLabelValue { label, value }),
            Ok(value) => Ok((label, value)),
        }
    };
    rules.iter().map(label).collect()
}

fn is_label_value(value: &str) -> bool {
    let ends = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    value.len() <= LABEL_VALUE_BYTES_MAX
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && ends(value.chars().next())
        && ends(value.chars().next_back())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(status: Value, path: &str, expected: Result<&str, &str>) {
        let item = AggregatedStatusItem {
            cluster_name: "m1".to_owned(),
            status: Some(status),
            ..AggregatedStatusItem::default()
        };
        let rule = StatePreservationRule {
            alias_label_name: "job".to_owned(),
            json_path: path.to_owned(),
        };
        let actual = labels(&[item], "m1", &[rule]).map(|labels| labels["job"].clone());
        let actual = actual.as_deref().map_err(ToString::to_string);
        assert_eq!(
            actual.map_err(|text| text.split(':').next().unwrap_or_default().to_owned()),
            expected.map_err(str::to_owned)
        );
    }

    #[test]
    fn a_piece_of_the_status_becomes_a_label() {
        check(
            json!({"jobStatus": {"jobID": "a1b2"}}),
            "{.jobStatus.jobID}",
            Ok("a1b2"),
        );
        check(json!({"replicas": 2}), "{.replicas}", Ok("2"));
        // Karmada formats this number with an exponent, which is not a valid label value.
        check(
            json!({"startTime": 1_734_462_491_693_i64}),
            "{.startTime}",
            Ok("1734462491693"),
        );
        check(
            json!({}),
            "{.replicas}",
            Err("jsonPath \"{.replicas}\" of the label job"),
        );
        check(
            json!({"a": "x y"}),
            "{.a}",
            Err("\"x y\" cannot be the value of the label job"),
        );
        check(
            Value::Null,
            "{.a}",
            Err("the application status has not yet been collected from Cluster(m1)"),
        );
    }
}
