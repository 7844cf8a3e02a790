//! Results of interpreter operations, keyed by the names that Karmada's tools use.

use std::collections::BTreeMap;

use bulkhead_core::call::{Interpretation, Reply};
use bulkhead_core::model::{DependentObjectReference, Health};
use bulkhead_core::quantity::Quantity;
use serde_json::{Map, Value, json};

use crate::owned_call::Request;

/// All result names: Karmada's first, then Bulkhead's.
pub(crate) const NAMES: [&str; 12] = [
    "retained",
    "replica",
    "requires",
    "components",
    "revised",
    "status",
    "aggregatedStatus",
    "healthy",
    "dependencies",
    "health",
    "reason",
    "message",
];
/// Placeholder for any value, including a missing one.
const EXCLUDED: &str = "{{EXCLUDE}}";

/// Results by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs(BTreeMap<String, Value>);

impl Outputs {
    /// Returns all results of a reply to `request`. Replies of other call kinds have no results.
    ///
    /// Health is returned both as Karmada's boolean and as Bulkhead's `health`. Unknown health has no boolean.
    pub fn of(request: &Request, reply: &Reply) -> Self {
        let actual = match reply {
            Reply::Health(verdict) => {
                let healthy = match verdict.health {
                    Health::Healthy => Some(true),
                    Health::Unhealthy => Some(false),
                    Health::Unknown => None,
                };
                let mut actual = json!({"health": verdict.health, "reason": verdict.reason.code});
                if let Some(healthy) = healthy {
                    actual["healthy"] = json!(healthy);
                }
                if !verdict.reason.message.is_empty() {
                    actual["message"] = json!(verdict.reason.message);
                }
                actual
            }
            Reply::Interpret(Some(actual)) => match actual {
                Interpretation::Replicas { replicas, requirements } => {
                    json!({"replica": replicas, "requires": requirements})
                }
                Interpretation::Components(components) => json!({ "components": components }),
                Interpretation::Status(status) => json!({ "status": status }),
                Interpretation::Dependencies(dependencies) => json!({ "dependencies": united(dependencies) }),
                Interpretation::Object(object) => match request {
                    Request::Retain(..) => json!({ "retained": object }),
                    Request::Revise(..) => json!({ "revised": object }),
                    _ => json!({ "aggregatedStatus": object }),
                },
            },
            _ => Value::Null,
        };
        match actual {
            Value::Object(members) => Self(members.into_iter().collect()),
            _ => Self::default(),
        }
    }

    /// Validates results written in a file. Returns an error if a name is unknown.
    pub(crate) fn named(written: &BTreeMap<String, Value>) -> Result<Self, String> {
        match written.keys().find(|name| !NAMES.contains(&name.as_str())) {
            None => Ok(Self(written.clone())),
            Some(name) => Err(format!("there is no result {name:?}; there are {}", NAMES.join(", "))),
        }
    }

    /// Returns all results as a JSON object.
    pub fn to_json(&self) -> Value {
        Value::Object(
            self.0
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// True if every result in `self` equals its counterpart. Further results of the counterpart are ignored.
    pub(crate) fn fit(&self, actual: &Self) -> bool {
        self.0.iter().all(|(name, expected)| {
            let got = actual.0.get(name).cloned().unwrap_or_default();
            let (expected, got) = excluded(expected, &got);
            canonical(&expected, name) == canonical(&got, name)
        })
    }

    /// Formats the results in one line.
    pub(crate) fn shown(&self) -> String {
        self.to_json().to_string()
    }
}

/// Removes from both values the members that `expected` excludes from the comparison.
fn excluded(expected: &Value, got: &Value) -> (Value, Value) {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            let spared = |name: &str| expected.get(name).and_then(Value::as_str) == Some(EXCLUDED);
            let mut rest: Map<_, _> = got.iter().filter(|(name, _)| !spared(name)).map(clone_of).collect();
            let mut wanted = Map::new();
            for (name, value) in expected.iter().filter(|(name, _)| !spared(name)) {
                let (value, other) = match rest.get(name) {
                    Some(other) => excluded(value, other),
                    None => (value.clone(), Value::Null),
                };
                if rest.contains_key(name) {
                    rest.insert(name.clone(), other);
                }
                wanted.insert(name.clone(), value);
            }
            (Value::Object(wanted), Value::Object(rest))
        }
        (Value::Array(expected), Value::Array(got)) if expected.len() == got.len() => {
            let pairs = expected.iter().zip(got).map(|(expected, got)| excluded(expected, got));
            let (expected, got): (Vec<_>, Vec<_>) = pairs.unzip();
            (Value::Array(expected), Value::Array(got))
        }
        (expected, got) => (expected.clone(), got.clone()),
    }
}

fn clone_of((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// Sorts dependencies and removes duplicates, as Karmada does before it uses them. References by selector are never
/// duplicates. (Karmada: `pkg/resourceinterpreter/customized/declarative/configurable.go`.)
fn united(dependencies: &[DependentObjectReference]) -> Vec<DependentObjectReference> {
    let mut united = dependencies.to_vec();
    let key = |one: &DependentObjectReference| {
        (
            one.api_version.clone(),
            one.kind.clone(),
            one.namespace.clone(),
            one.name.clone(),
        )
    };
    united.sort_by_key(key);
    united.dedup_by(|one, other| one == other && one.label_selector.is_none());
    united
}

/// Returns a normal form that is equal for equivalent values. `name` is the key of the value.
fn canonical(value: &Value, name: &str) -> Value {
    match value {
        Value::Object(members) => {
            let quantities = name == "resourceRequest";
            let member = |(key, member): (&String, &Value)| {
                let member = if quantities {
                    by_value(member)
                } else {
                    canonical(member, key)
                };
                (key.clone(), member)
            };
            Value::Object(members.iter().map(member).collect())
        }
        Value::Array(elements) => {
            let mut elements: Vec<_> = elements.iter().map(|element| canonical(element, "")).collect();
            if matches!(name, "dependencies" | "components") {
                elements.sort_by_key(Value::to_string);
            }
            Value::Array(elements)
        }
        Value::Number(number) => json!(number.as_f64()),
        other => other.clone(),
    }
}

fn by_value(quantity: &Value) -> Value {
    Quantity::from_json(quantity).map_or_else(|_| quantity.clone(), |quantity| json!(quantity.as_f64()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn check(expected: Value, got: Value, fits: bool) {
        let outputs = |value: &Value| Outputs(serde_json::from_value(value.clone()).unwrap());
        assert_eq!(outputs(&expected).fit(&outputs(&got)), fits, "{expected} and {got}");
    }

    #[test]
    fn what_is_not_named_is_not_compared() {
        check(
            json!({"replica": 2}),
            json!({"replica": 2, "requires": {"namespace": "a"}}),
            true,
        );
        check(json!({"replica": 2, "requires": null}), json!({"replica": 2}), true);
        check(json!({"replica": 2.0}), json!({"replica": 2}), true);
        check(json!({"replica": 3}), json!({"replica": 2}), false);
        check(json!({"healthy": true}), json!({"health": "Unknown"}), false);
    }

    #[test]
    fn quantities_are_compared_by_value() {
        let requires = |cpu: Value| json!({"requires": {"resourceRequest": {"cpu": cpu}}});
        check(requires(json!("1")), requires(json!("1000m")), true);
        check(requires(json!(1)), requires(json!("1")), true);
        check(requires(json!("1")), requires(json!("1001m")), false);
        check(
            json!({"status": {"cpu": "1"}}),
            json!({"status": {"cpu": "1000m"}}),
            false,
        );
    }

    #[test]
    fn dependencies_are_sorted_and_each_is_there_once() {
        let secret = |name: &str| DependentObjectReference {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            name: name.to_owned(),
            ..DependentObjectReference::default()
        };
        let request = Request::Dependencies(Arc::new(json!({})));
        let found = Interpretation::Dependencies(vec![secret("b"), secret("a"), secret("b")]);
        let actual = Outputs::of(&request, &Reply::Interpret(Some(found))).to_json();
        let expected = [secret("a"), secret("b")];
        assert_eq!(actual, json!({ "dependencies": expected }));
    }

    #[test]
    fn the_order_of_dependencies_and_components_does_not_matter() {
        let list =
            |names: [&str; 2]| json!({"dependencies": names.map(|name| json!({"kind": "Secret", "name": name}))});
        check(list(["a", "b"]), list(["b", "a"]), true);
        check(list(["a", "b"]), list(["a", "a"]), false);
        check(
            json!({"status": {"list": [1, 2]}}),
            json!({"status": {"list": [2, 1]}}),
            false,
        );
    }

    #[test]
    fn an_excluded_place_may_hold_anything_or_nothing() {
        let status = |condition: Value| json!({"aggregatedStatus": {"kind": "A", "conditions": [condition]}});
        let expected = status(json!({"type": "Failed", "lastTransitionTime": EXCLUDED}));
        check(
            expected.clone(),
            status(json!({"type": "Failed", "lastTransitionTime": "2026"})),
            true,
        );
        check(expected.clone(), status(json!({"type": "Failed"})), true);
        check(
            expected.clone(),
            status(json!({"type": "Done", "lastTransitionTime": "2026"})),
            false,
        );
        check(expected, json!({"aggregatedStatus": {"kind": "A"}}), false);
    }
}
