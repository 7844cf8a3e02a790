use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::List;

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
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self
                .match_expressions
                .iter()
                .all(|requirement| requirement.matches(labels.get(&requirement.key).map(String::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_follow_kubernetes() {
        let check = |operator, values: &[&str], value, expected| {
            let values = values.iter().map(|&value| value.to_owned()).collect();
            let requirement = SelectorRequirement { key: "k".into(), operator, values };
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
}
