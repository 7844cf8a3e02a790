//! What Karmada's interpreter functions may return.
//! (Karmada: `pkg/resourceinterpreter/customized/declarative/luavm/lua.go`.)

use std::collections::BTreeMap;

use bulkhead_core::call::Interpretation;
use bulkhead_core::model::ReplicaRequirements;
use bulkhead_core::quantity::Quantity;
use serde_json::{Map, Value};

use crate::reply::lua_type;

/// The replicas are cut to an integer. Where Karmada's cast depends on the platform, beyond 32 bits, this is an
/// error.
pub(crate) fn replicas(replicas: &Value, requirements: &Value) -> Result<Interpretation, String> {
    let number = replicas.as_f64().ok_or_else(|| format!("{}, not a number", lua_type(replicas)))?;
    let cut = number.trunc();
    if cut < f64::from(i32::MIN) || cut > f64::from(i32::MAX) {
        return Err(format!("{number}, which is no number of replicas"));
    }
    let requirements = match requirements {
        Value::Null => None,
        Value::Object(members) => Some(read_requirements(members)?),
        other => return Err(format!("{} as requirements, not a table", list_or_type(other))),
    };
    Ok(Interpretation::Replicas { replicas: cut as i32, requirements })
}

fn list_or_type(value: &Value) -> &'static str {
    if value.is_array() { "a list" } else { lua_type(value) }
}

/// Unknown members are ignored, the shape of the known ones is checked as far as Karmada's struct does.
fn read_requirements(members: &Map<String, Value>) -> Result<ReplicaRequirements, String> {
    let mut needed = ReplicaRequirements::default();
    if let Some(requests) = members.get("resourceRequest") {
        needed.resource_request = table(requests, "resourceRequest")?
            .iter()
            .map(|(name, value)| {
                let quantity = Quantity::from_json(value).map_err(|error| format!("{name} of {value}: {error}"))?;
                Ok((name.clone(), quantity.to_string()))
            })
            .collect::<Result<BTreeMap<_, _>, String>>()?;
    }
    if let Some(claim) = members.get("nodeClaim") {
        needed.rest.insert("nodeClaim".to_owned(), Value::Object(node_claim(table(claim, "nodeClaim")?)?));
    }
    for name in ["namespace", "priorityClassName"] {
        match members.get(name) {
            None => {}
            Some(Value::String(text)) if text.is_empty() => {}
            Some(text @ Value::String(_)) => {
                needed.rest.insert(name.to_owned(), text.clone());
            }
            Some(other) => return Err(format!("a {name} that is {}", lua_type(other))),
        }
    }
    Ok(needed)
}

fn node_claim(members: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut claim = Map::new();
    if let Some(affinity) = members.get("hardNodeAffinity") {
        claim.insert("hardNodeAffinity".to_owned(), Value::Object(table(affinity, "hardNodeAffinity")?.clone()));
    }
    if let Some(selector) = members.get("nodeSelector") {
        let selector = table(selector, "nodeSelector")?;
        if let Some(value) = selector.values().find(|value| !value.is_string()) {
            return Err(format!("{} in nodeSelector, not a string", lua_type(value)));
        }
        claim.insert("nodeSelector".to_owned(), Value::Object(selector.clone()));
    }
    match members.get("tolerations") {
        None => {}
        Some(list @ Value::Array(_)) => {
            claim.insert("tolerations".to_owned(), list.clone());
        }
        Some(_) => return Err("tolerations that are no list".to_owned()),
    }
    Ok(claim)
}

fn table<'a>(value: &'a Value, name: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("a {name} that is {}, not a table with keys", list_or_type(value)))
}

/// A complete object, which has to have a kind.
pub(crate) fn object(result: &Value) -> Result<Interpretation, String> {
    match result {
        Value::Object(members) => match members.get("kind").and_then(Value::as_str) {
            None | Some("") => Err("an object without kind".to_owned()),
            Some(_) => Ok(Interpretation::Object(result.clone())),
        },
        other => Err(format!("{}, not an object", list_or_type(other))),
    }
}

/// A table or a list; nil is an error, as in Karmada.
pub(crate) fn status(result: &Value) -> Result<Interpretation, String> {
    match result {
        Value::Object(_) | Value::Array(_) => Ok(Interpretation::Status(Some(result.clone()))),
        other => Err(format!("{}, not a table", lua_type(other))),
    }
}
