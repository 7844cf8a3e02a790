//! Parsing of the results of Karmada's interpreter functions. (Karmada:
//! `pkg/resourceinterpreter/customized/declarative/luavm/lua.go`.)

use std::collections::BTreeMap;

use bulkhead_core::call::Interpretation;
use bulkhead_core::model::{Component, DependentObjectReference, ReplicaRequirements};
use bulkhead_core::quantity::Quantity;
use serde_json::{Map, Value};

use crate::encode::Conversions;
use crate::kube::QUANTITY_BYTES_MAX;
use crate::reply::lua_type;

/// Parses replicas, truncated to an integer. Beyond 32 bits Karmada's cast depends on the platform; this is an error
/// here, unless Karmada's conversions are selected.
pub(crate) fn replicas(
    replicas: &Value,
    requirements: &Value,
    conversions: Conversions,
) -> Result<Interpretation, String> {
    let number = replicas.as_f64().ok_or_else(|| format!("{}, not a number", lua_type(replicas)))?;
    let cut = number.trunc();
    let in_range = cut >= f64::from(i32::MIN) && cut <= f64::from(i32::MAX);
    let cut = if in_range || conversions == Conversions::Safe { cut } else { f64::from(i32::MIN) };
    if !in_range && conversions == Conversions::Safe {
        return Err(format!("{number}, which is not a number of replicas"));
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

/// Parses requirements. Unknown members are ignored; known ones are checked as strictly as by Karmada's struct.
fn read_requirements(members: &Map<String, Value>) -> Result<ReplicaRequirements, String> {
    let mut needed = ReplicaRequirements::default();
    if let Some(requests) = members.get("resourceRequest") {
        needed.resource_request = table(requests, "resourceRequest")?
            .iter()
            .map(|(name, value)| {
                let bytes = value.as_str().map_or(0, str::len);
                if bytes > QUANTITY_BYTES_MAX {
                    return Err(format!("{name} of {bytes} bytes: a quantity has at most {QUANTITY_BYTES_MAX}"));
                }
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
        Some(_) => return Err("tolerations that are not a list".to_owned()),
    }
    Ok(claim)
}

fn table<'a>(value: &'a Value, name: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("a {name} that is {}, not a table with keys", list_or_type(value)))
}

/// Parses a complete object, which must have a kind.
pub(crate) fn object(result: &Value) -> Result<Interpretation, String> {
    match result {
        Value::Object(members) => match members.get("kind").and_then(Value::as_str) {
            None | Some("") => Err("an object without kind".to_owned()),
            Some(_) => Ok(Interpretation::Object(result.clone())),
        },
        other => Err(format!("{}, not an object", list_or_type(other))),
    }
}

/// Parses a table or a list; nil is an error, as in Karmada.
pub(crate) fn status(result: &Value) -> Result<Interpretation, String> {
    match result {
        Value::Object(_) | Value::Array(_) => Ok(Interpretation::Status(Some(result.clone()))),
        other => Err(format!("{}, not a table", lua_type(other))),
    }
}

/// Parses a list of tables with `name`, `replicas` and `replicaRequirements`. Missing replicas are 0. Empty and
/// repeated names are accepted, as in Karmada.
pub(crate) fn components(result: &Value) -> Result<Interpretation, String> {
    let component = |value: &Value| -> Result<Component, String> {
        let members = table(value, "component")?;
        let count = members.get("replicas").unwrap_or(&Value::Null);
        let replicas = match count {
            Value::Null => 0,
            count => whole(count).ok_or_else(|| format!("{count} as replicas, not a 32-bit integer"))?,
        };
        let requirements = match members.get("replicaRequirements") {
            None | Some(Value::Null) => None,
            Some(needed) => Some(read_requirements(table(needed, "replicaRequirements")?)?),
        };
        Ok(Component { name: text(members, "name")?, replicas, replica_requirements: requirements })
    };
    let components: Result<_, _> = elements(result, "a list of components")?.iter().map(component).collect();
    components.map(Interpretation::Components)
}

/// Parses a list of tables with `apiVersion`, `kind`, `namespace` and `name` or `labelSelector`. The name takes
/// precedence if both are set; unknown members are ignored. (Karmada:
/// `pkg/util/interpreter/validation/validation.go`.)
///
/// Nil is an empty list, since `kube.getPodDependencies` returns nil for a pod without dependencies. It is an error if
/// Karmada's conversions are selected.
pub(crate) fn dependencies(result: &Value, conversions: Conversions) -> Result<Interpretation, String> {
    let dependency = |value: &Value| -> Result<DependentObjectReference, String> {
        let members = table(value, "dependency")?;
        let selector = members.get("labelSelector").filter(|selector| !selector.is_null()).cloned();
        let selector = selector.map(serde_json::from_value).transpose();
        let dependency = DependentObjectReference {
            api_version: text(members, "apiVersion")?,
            kind: text(members, "kind")?,
            namespace: text(members, "namespace")?,
            name: text(members, "name")?,
            label_selector: selector.map_err(|error| format!("a labelSelector that is not valid: {error}"))?,
        };
        match dependency.problem() {
            Some(problem) => Err(format!("a dependency{problem}")),
            None => Ok(dependency),
        }
    };
    if result.is_null() && conversions == Conversions::Karmada {
        return Err("nil, not a list of dependencies".to_owned());
    }
    let dependencies: Result<_, _> = elements(result, "a list of dependencies")?.iter().map(dependency).collect();
    dependencies.map(Interpretation::Dependencies)
}

/// Returns the elements of a list. An empty table is an empty list, and so is nil.
fn elements<'a>(value: &'a Value, wanted: &str) -> Result<&'a [Value], String> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Object(members) if members.is_empty() => Ok(&[]),
        Value::Null => Ok(&[]),
        other => Err(format!("{}, not {wanted}", lua_type(other))),
    }
}

fn text(members: &Map<String, Value>, name: &str) -> Result<String, String> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(format!("a {name} that is {}, not a string", lua_type(other))),
    }
}

fn whole(number: &Value) -> Option<i32> {
    let number = number.as_f64().filter(|number| number.fract() == 0.0)?;
    (number >= f64::from(i32::MIN) && number <= f64::from(i32::MAX)).then_some(number as i32)
}
