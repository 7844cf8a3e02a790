//! Parsing of the results of Karmada's interpreter functions. (Karmada:
//! `pkg/resourceinterpreter/customized/declarative/luavm/lua.go`.)

use bulkhead_core::call::Interpretation;
use bulkhead_core::model::{Component, DependentObjectReference, ReplicaRequirements};
use serde_json::{Map, Value};

use crate::encode::Conversions;
use crate::reply::lua_type;

/// Parses replicas, truncated to an integer. Beyond 32 bits Karmada's cast depends on the platform; this is an error
/// here, unless Karmada's conversions are selected.
pub(crate) fn replicas(
    replicas: &Value,
    requirements: &Value,
    conversions: Conversions,
) -> Result<Interpretation, String> {
    let number = replicas
        .as_f64()
        .ok_or_else(|| format!("{}, not a number", lua_type(replicas)))?;
    let cut = number.trunc();
    let in_range = cut >= f64::from(i32::MIN) && cut <= f64::from(i32::MAX);
    let cut = if in_range || conversions == Conversions::Safe {
        cut
    } else {
        f64::from(i32::MIN)
    };
    if !in_range && conversions == Conversions::Safe {
        return Err(format!("{number}, which is not a number of replicas"));
    }
    let requirements = match requirements {
        Value::Null => None,
        Value::Object(members) => Some(ReplicaRequirements::from_json(members)?),
        other => return Err(format!("{} as requirements, not a table", list_or_type(other))),
    };
    Ok(Interpretation::Replicas {
        replicas: cut as i32,
        requirements,
    })
}

fn list_or_type(value: &Value) -> &'static str {
    if value.is_array() { "a list" } else { lua_type(value) }
}

fn table<'a>(value: &'a Value, name: &str) -> Result<&'a Map<String, Value>, String> {
    value
        .as_object()
        .ok_or_else(|| format!("a {name} that is {}, not a table with keys", list_or_type(value)))
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
            Some(needed) => Some(ReplicaRequirements::from_json(table(needed, "replicaRequirements")?)?),
        };
        Ok(Component {
            name: text(members, "name")?,
            replicas,
            replica_requirements: requirements,
        })
    };
    let components: Result<_, _> = elements(result, "a list of components")?
        .iter()
        .map(component)
        .collect();
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
        let selector = members
            .get("labelSelector")
            .filter(|selector| !selector.is_null())
            .cloned();
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
    let dependencies: Result<_, _> = elements(result, "a list of dependencies")?
        .iter()
        .map(dependency)
        .collect();
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
