//! Containers of workloads: their place, and changes of command and arguments (Karmada:
//! `pkg/util/overridemanager/commandargsoverride.go`).

use serde_json::{Value, json};

use crate::model::{CommandArgsOperator, CommandArgsOverrider};
use crate::shape::type_name;

/// Returns the containers of an object; none for kinds without a known place. Only the kind counts, not the API group,
/// as in Karmada.
pub(super) fn containers(object: &mut Value) -> Result<&mut [Value], String> {
    let path: &[&str] = match object.get("kind").and_then(Value::as_str) {
        Some("Pod") => &["spec", "containers"],
        Some("ReplicaSet" | "Deployment" | "DaemonSet" | "StatefulSet" | "Job") => {
            &["spec", "template", "spec", "containers"]
        }
        _ => return Ok(&mut []),
    };
    let mut at = object;
    for (depth, field) in path.iter().enumerate() {
        let parent = path[..depth].join(".");
        let kind = type_name(at);
        let Some(fields) = at.as_object_mut() else {
            return Err(format!("{parent} is {kind}, not an object"));
        };
        match fields.get_mut(*field) {
            Some(value) if !value.is_null() => at = value,
            _ => return Ok(&mut []),
        }
    }
    let kind = type_name(at);
    let list = at.as_array_mut().map(Vec::as_mut_slice);
    list.ok_or_else(|| format!("{} is {kind}, not a list", path.join(".")))
}

/// Changes `field`, `command` or `args`, of every container with the name. An absent list becomes an empty one before
/// it is changed, as in Karmada.
pub(super) fn override_list(object: &mut Value, field: &str, overrider: &CommandArgsOverrider) -> Result<(), String> {
    let is_named = |container: &&mut Value| container["name"] == *overrider.container_name;
    for container in containers(object)?.iter_mut().filter(is_named) {
        let name = &overrider.container_name;
        let value = container.get_mut(field).map_or(Value::Null, Value::take);
        let mut items = match value {
            Value::Null => Vec::new(),
            Value::Array(items) => items,
            other => {
                return Err(format!(
                    "{field} of container {name:?} is {}, not a list",
                    type_name(&other)
                ));
            }
        };
        match overrider.operator {
            CommandArgsOperator::Add => items.extend(overrider.value.iter().map(|item| json!(item))),
            CommandArgsOperator::Remove => {
                items.retain(|item| {
                    !item
                        .as_str()
                        .is_some_and(|item| overrider.value.iter().any(|gone| gone == item))
                });
            }
        }
        container[field] = items.into();
    }
    Ok(())
}
