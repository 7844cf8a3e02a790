//! Decoding of replica requirements that an interpreter returned.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::ReplicaRequirements;
use crate::quantity::{QUANTITY_BYTES_MAX, Quantity};
use crate::shape::type_name;

impl ReplicaRequirements {
    /// Decodes requirements as strictly as Go decodes Karmada's struct: null is absent, unknown fields are ignored, and
    /// a quantity is a string or a number. The error names the field that does not fit. Quantities are printed in their
    /// canonical form.
    pub fn from_json(members: &Map<String, Value>) -> Result<Self, String> {
        let mut needed = Self::default();
        if let Some(requests) = member(members, "resourceRequest") {
            let requests = object(requests, "resourceRequest")?;
            needed.resource_request = requests
                .iter()
                .map(request)
                .collect::<Result<BTreeMap<_, _>, String>>()?;
        }
        if let Some(claim) = member(members, "nodeClaim") {
            needed.rest.insert(
                "nodeClaim".to_owned(),
                Value::Object(node_claim(object(claim, "nodeClaim")?)?),
            );
        }
        for name in ["namespace", "priorityClassName"] {
            match member(members, name) {
                None => {}
                Some(Value::String(text)) if text.is_empty() => {}
                Some(text @ Value::String(_)) => {
                    needed.rest.insert(name.to_owned(), text.clone());
                }
                Some(other) => return Err(format!("a {name} that is {}", type_name(other))),
            }
        }
        Ok(needed)
    }
}

/// Returns a member that is not null.
fn member<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| !value.is_null())
}

fn object<'a>(value: &'a Value, name: &str) -> Result<&'a Map<String, Value>, String> {
    value
        .as_object()
        .ok_or_else(|| format!("a {name} that is {}, not an object", type_name(value)))
}

fn request((name, value): (&String, &Value)) -> Result<(String, String), String> {
    let bytes = value.as_str().map_or(0, str::len);
    if bytes > QUANTITY_BYTES_MAX {
        return Err(format!(
            "{name} of {bytes} bytes: a quantity has at most {QUANTITY_BYTES_MAX}"
        ));
    }
    // Go decodes null as the quantity 0.
    let quantity = if value.is_null() {
        Ok(Quantity::default())
    } else {
        Quantity::from_json(value)
    };
    let quantity = quantity.map_err(|error| format!("{name} of {value}: {error}"))?;
    Ok((name.clone(), quantity.to_string()))
}

fn node_claim(members: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut claim = Map::new();
    if let Some(affinity) = member(members, "hardNodeAffinity") {
        claim.insert(
            "hardNodeAffinity".to_owned(),
            Value::Object(object(affinity, "hardNodeAffinity")?.clone()),
        );
    }
    if let Some(selector) = member(members, "nodeSelector") {
        let selector = object(selector, "nodeSelector")?;
        if let Some(value) = selector.values().find(|value| !value.is_string()) {
            return Err(format!("{} in nodeSelector, not a string", type_name(value)));
        }
        claim.insert("nodeSelector".to_owned(), Value::Object(selector.clone()));
    }
    match member(members, "tolerations") {
        None => {}
        Some(list @ Value::Array(_)) => {
            claim.insert("tolerations".to_owned(), list.clone());
        }
        Some(_) => return Err("tolerations that are not a list".to_owned()),
    }
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requirements_are_decoded_as_by_go() {
        let check = |given: Value, expected: Result<Value, &str>| {
            let decoded = ReplicaRequirements::from_json(given.as_object().unwrap());
            let decoded = decoded.map(|needed| serde_json::to_value(needed).unwrap());
            assert_eq!(decoded, expected.map_err(str::to_owned), "{given}");
        };
        check(json!({}), Ok(json!({})));
        check(
            json!({"resourceRequest": null, "nodeClaim": null, "namespace": null, "extra": 1}),
            Ok(json!({})),
        );
        let given = json!({"resourceRequest": {"cpu": 1, "memory": "1024Mi", "pods": null}, "namespace": "", "nodeClaim": {"nodeSelector": {"a": "b"}, "tolerations": []}});
        let expected = json!({"resourceRequest": {"cpu": "1", "memory": "1Gi", "pods": "0"}, "nodeClaim": {"nodeSelector": {"a": "b"}, "tolerations": []}});
        check(given, Ok(expected));
        check(
            json!({"nodeClaim": []}),
            Err("a nodeClaim that is a list, not an object"),
        );
        check(
            json!({"nodeClaim": {"nodeSelector": {"a": 1}}}),
            Err("a number in nodeSelector, not a string"),
        );
        check(
            json!({"nodeClaim": {"tolerations": {}}}),
            Err("tolerations that are not a list"),
        );
        check(
            json!({"priorityClassName": 1}),
            Err("a priorityClassName that is a number"),
        );
        let long = json!({"resourceRequest": {"cpu": "1".repeat(64)}});
        check(long, Err("cpu of 64 bytes: a quantity has at most 63"));
        let bad = ReplicaRequirements::from_json(json!({"resourceRequest": {"cpu": "much"}}).as_object().unwrap());
        assert!(bad.is_err_and(|error| error.starts_with("cpu of \"much\": ")));
    }
}
