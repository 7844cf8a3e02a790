use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::List;
use crate::label::{check_key, check_value};

/// Operator of a selector requirement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SelectorOperator {
    /// The value is one of `values`.
    In,
    /// The value is absent or none of `values`.
    NotIn,
    /// The key is present.
    Exists,
    /// The key is absent.
    DoesNotExist,
    /// Any other operator; the whole selector then matches nothing.
    #[serde(untagged)]
    Other(String),
}

/// The wire spelling.
impl fmt::Display for SelectorOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Other(text) => text,
        })
    }
}

/// Requirement of a label or field selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SelectorRequirement {
    /// Label key, or the field `provider`, `region` or `zone`.
    pub key: String,
    /// Comparison operator.
    pub operator: SelectorOperator,
    /// Values for `In` and `NotIn`; must be empty for `Exists` and `DoesNotExist`.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub values: List<String>,
}

impl SelectorRequirement {
    /// Returns true if the number of values fits the operator.
    pub fn is_valid(&self) -> bool {
        match self.operator {
            SelectorOperator::In | SelectorOperator::NotIn => !self.values.is_empty(),
            SelectorOperator::Exists | SelectorOperator::DoesNotExist => self.values.is_empty(),
            SelectorOperator::Other(_) => false,
        }
    }

    /// Returns the first invalid field, as a path from the requirement with the reason.
    fn problem(&self) -> Option<String> {
        if !self.is_valid() {
            let operator = &self.operator;
            return Some(match operator {
                SelectorOperator::Other(_) => format!(".operator: {operator} is not In, NotIn, Exists or DoesNotExist"),
                SelectorOperator::In | SelectorOperator::NotIn => format!(".values: {operator} needs a value"),
                SelectorOperator::Exists | SelectorOperator::DoesNotExist => {
                    format!(".values: {operator} takes no values")
                }
            });
        }
        if let Err(reason) = check_key(&self.key) {
            return Some(format!(".key: {:?}: {reason}", self.key));
        }
        let mut values = self.values.iter().enumerate();
        values.find_map(|(index, value)| Some(format!(".values[{index}]: {value:?}: {}", check_value(value).err()?)))
    }

    /// Matches an optional value with Kubernetes' semantics; an invalid requirement never matches.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|value| self.values.iter().any(|listed| listed == value));
        self.is_valid()
            && match self.operator {
                SelectorOperator::In => listed(),
                SelectorOperator::NotIn => !listed(),
                SelectorOperator::Exists => value.is_some(),
                SelectorOperator::DoesNotExist => value.is_none(),
                SelectorOperator::Other(_) => false,
            }
    }
}

/// `metav1.LabelSelector`; the empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must be present with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Additional requirements; all must match.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub match_expressions: List<SelectorRequirement>,
}

impl LabelSelector {
    /// Returns true if `labels` satisfy all parts.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self
                .match_expressions
                .iter()
                .all(|requirement| requirement.matches(labels.get(&requirement.key).map(String::as_str)))
    }

    /// Returns the first invalid field, as a path from the selector with the reason. (Kubernetes:
    /// `k8s.io/apimachinery/pkg/apis/meta/v1/validation`, without invalid values.)
    pub fn problem(&self) -> Option<String> {
        for (key, value) in &self.match_labels {
            if let Err(reason) = check_key(key).and_then(|()| check_value(value)) {
                return Some(format!(".matchLabels: {key:?}: {value:?}: {reason}"));
            }
        }
        let mut requirements = self.match_expressions.iter().enumerate();
        requirements
            .find_map(|(index, requirement)| Some(format!(".matchExpressions[{index}]{}", requirement.problem()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_follow_kubernetes() {
        let check = |operator, values: &[&str], value, expected| {
            let values = values.iter().map(|&value| value.to_owned()).collect();
            let requirement = SelectorRequirement {
                key: "k".into(),
                operator,
                values,
            };
            assert_eq!(requirement.matches(value), expected, "{requirement:?} on {value:?}");
        };
        check(SelectorOperator::In, &["a"], Some("a"), true);
        check(SelectorOperator::In, &["a"], None, false);
        check(SelectorOperator::In, &[], Some("a"), false);
        check(SelectorOperator::NotIn, &["a"], None, true);
        check(SelectorOperator::NotIn, &["a"], Some("a"), false);
        check(SelectorOperator::NotIn, &[], None, false);
        check(SelectorOperator::Exists, &[], Some(""), true);
        check(SelectorOperator::Exists, &["a"], Some("a"), false);
        check(SelectorOperator::DoesNotExist, &[], None, true);
        check(SelectorOperator::Other("Like".into()), &["a"], Some("a"), false);
    }

    #[test]
    fn an_invalid_selector_names_its_field() {
        let check = |selector: &str, expected: &str| {
            let selector: LabelSelector = serde_json::from_str(selector).unwrap();
            let problem = selector.problem().unwrap_or_default();
            assert!(
                problem.starts_with(expected) && problem.is_empty() == expected.is_empty(),
                "{problem}"
            );
        };
        check("{}", "");
        check(r#"{"matchLabels": {"app.kubernetes.io/name": "web", "empty": ""}}"#, "");
        check(
            r#"{"matchLabels": {"a b": "c"}}"#,
            ".matchLabels: \"a b\": \"c\": name part must consist of",
        );
        check(
            r#"{"matchLabels": {"a": "c d"}}"#,
            ".matchLabels: \"a\": \"c d\": a valid label must",
        );
        let expression =
            |text: &str| format!(r#"{{"matchExpressions": [{{"key": "a", "operator": "Exists"}}, {text}]}}"#);
        let check = |text: &str, expected: &str| check(&expression(text), expected);
        check(r#"{"key": "a", "operator": "In", "values": ["", "b"]}"#, "");
        check(
            r#"{"key": "a", "operator": "Like", "values": ["b"]}"#,
            ".matchExpressions[1].operator: Like is not In",
        );
        check(
            r#"{"key": "a", "operator": "NotIn"}"#,
            ".matchExpressions[1].values: NotIn needs a value",
        );
        check(
            r#"{"key": "a", "operator": "Exists", "values": [""]}"#,
            ".matchExpressions[1].values: Exists takes no",
        );
        check(
            r#"{"key": "", "operator": "Exists"}"#,
            ".matchExpressions[1].key: \"\": name part must be non-empty",
        );
        check(
            r#"{"key": "a", "operator": "In", "values": ["b", "c d"]}"#,
            ".matchExpressions[1].values[1]: \"c d\"",
        );
    }
}
