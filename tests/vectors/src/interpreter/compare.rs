//! Comparison of outcomes with the expectations of cases.
//!
//! Values are compared by structure, numbers and quantities by value. Lists at the pointers in `unordered` are
//! compared without regard to order. `{{NOW}}` matches any time; other placeholders match any text. Of an error, only
//! the class is compared. For dependencies and components, an empty list equals null.

use bulkhead_core::quantity::Quantity;
use bulkhead_core::time::Time;
use serde_json::{Value, json};

use super::case::Case;
use super::outcome::Outcome;

/// True if the outcome is the expected one, or one of several that the case allows.
pub(super) fn is_expected(case: &Case, outcome: &Outcome) -> bool {
    let variants = case.nondeterministic_variants.iter();
    expectations(case)
        .iter()
        .chain(variants)
        .any(|expected| same(case, expected, outcome))
}

/// Returns the expectation in printable form.
pub(super) fn printed(case: &Case) -> Value {
    match expectations(case).as_slice() {
        [] => json!({"oneOf": case.nondeterministic_variants}),
        [one] => one.clone(),
        many => json!(many),
    }
}

fn expectations(case: &Case) -> Vec<Value> {
    if let Some(error) = &case.error {
        return vec![json!({"error": {"class": error.class, "message": error.message}})];
    }
    case.expected.iter().cloned().collect()
}

/// True if the outcome matches. A variant may also be an error, in a field beside its message.
fn same(case: &Case, expected: &Value, outcome: &Outcome) -> bool {
    let error = expected
        .get("error")
        .filter(|error| error.is_object() || error.is_string());
    match (error, outcome) {
        (Some(error), Outcome::Failed(classes, _)) => match error.get("class").and_then(Value::as_str) {
            Some(class) => classes.contains(&class),
            None => true,
        },
        (None, Outcome::Result(actual)) => same_results(case, expected, actual),
        _ => false,
    }
}

/// True if two results are equal after normalization.
pub(super) fn same_results(case: &Case, expected: &Value, actual: &Value) -> bool {
    same_values(&normal(case, expected.clone()), &normal(case, actual.clone()))
}

/// Normalizes a result: sorts the unordered lists, uses one notation for quantities, and replaces null lists with
/// empty ones.
fn normal(case: &Case, mut value: Value) -> Value {
    for name in ["dependencies", "components"] {
        if let Some(list) = value.get_mut(name).filter(|list| list.is_null()) {
            *list = json!([]);
        }
    }
    for name in ["requires", "components"] {
        if let Some(part) = value.get_mut(name) {
            plain_quantities(part);
        }
    }
    for pointer in &case.unordered {
        if let Some(Value::Array(list)) = value.pointer_mut(pointer) {
            list.sort_by_cached_key(Value::to_string);
        }
    }
    value
}

fn plain_quantities(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(plain_quantities),
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::Object(requests) if name == "resourceRequest" => {
                        for amount in requests.values_mut() {
                            if let Ok(quantity) = Quantity::from_json(amount) {
                                *amount = json!(quantity.as_f64());
                            }
                        }
                    }
                    other => plain_quantities(other),
                }
            }
        }
        _ => {}
    }
}

/// True if both values are equal except for placeholders in `expected`.
pub(super) fn same_values(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::String(pattern), Value::String(text)) => same_texts(pattern, text),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_values(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, left)| right.get(name).is_some_and(|right| same_values(left, right)))
        }
        _ => expected == got,
    }
}

fn same_texts(pattern: &str, text: &str) -> bool {
    if pattern == text {
        return true;
    }
    if pattern == "{{NOW}}" {
        return serde_json::from_value::<Time>(text.into()).is_ok();
    }
    let Some((start, rest)) = pattern.split_once("{{") else {
        return false;
    };
    let end = rest.split_once("}}").map_or("", |(_, end)| end);
    text.strip_prefix(start).is_some_and(|text| text.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_and_spellings_do_not_matter() {
        let check =
            |expected: Value, got: Value, same: bool| assert_eq!(same_values(&expected, &got), same, "{expected}");
        check(json!(1), json!(1.0), true);
        check(json!({"a": [1]}), json!({"a": [2]}), false);
        check(json!({"a": null}), json!({}), false);
        check(json!("{{NOW}}"), json!("2026-01-01T00:00:00Z"), true);
        check(json!("{{NOW}}"), json!("yesterday"), false);
        check(json!("table: 0x{{PTR}}"), json!("table: 0x0"), true);
        check(json!("a"), json!("b"), false);
    }
}
