//! Bounds on the results of interpreters.

use bulkhead_core::call::Interpretation;
use bulkhead_core::model::ReplicaRequirements;
use serde_json::{Map, Value};

/// Maximum nesting of an object or a status, in levels. Objects from the API are far flatter; code that recurses into
/// a deeper one could overflow its stack.
pub const JSON_DEPTH_MAX: usize = 128;
/// Maximum number of labels, and of annotations, of an object.
const METADATA_ENTRIES_MAX: usize = 4_096;
/// Maximum number of components of a workload.
const COMPONENTS_MAX: usize = 1_024;
/// Maximum number of dependencies of a workload.
const DEPENDENCIES_MAX: usize = 4_096;
/// Maximum number of resources that one replica requests.
const RESOURCES_MAX: usize = 256;

/// Returns a description of the exceeded bound, if any.
pub(super) fn excess(answer: &Interpretation) -> Option<String> {
    match answer {
        Interpretation::Replicas { requirements, .. } => requirements.as_ref().and_then(of_requirements),
        Interpretation::Components(components) => {
            let mut requirements = components
                .iter()
                .filter_map(|component| component.replica_requirements.as_ref());
            over("components", components.len(), COMPONENTS_MAX).or_else(|| requirements.find_map(of_requirements))
        }
        Interpretation::Object(object) => of_json("an object", object).or_else(|| of_metadata(object)),
        Interpretation::Status(status) => status.as_ref().and_then(|status| of_json("a status", status)),
        Interpretation::Dependencies(dependencies) => over("dependencies", dependencies.len(), DEPENDENCIES_MAX),
    }
}

fn over(what: &str, count: usize, max: usize) -> Option<String> {
    (count > max).then(|| format!("{count} {what}, at most {max} are allowed"))
}

fn of_requirements(requirements: &ReplicaRequirements) -> Option<String> {
    let rest = requirements
        .rest
        .values()
        .find_map(|value| of_json("a requirement", value));
    over(
        "resources of one replica",
        requirements.resource_request.len(),
        RESOURCES_MAX,
    )
    .or(rest)
}

fn of_json(what: &str, value: &Value) -> Option<String> {
    is_deeper(value, JSON_DEPTH_MAX).then(|| format!("{what} that is nested deeper than {JSON_DEPTH_MAX}"))
}

fn of_metadata(object: &Value) -> Option<String> {
    let entries = |name: &str| object.get("metadata")?.get(name)?.as_object().map(Map::len);
    ["labels", "annotations"]
        .into_iter()
        .find_map(|name| over(name, entries(name)?, METADATA_ENTRIES_MAX))
}

/// Returns true if the value has more than `levels` levels of lists and maps. Does not recurse deeper than that.
fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(members) => members.values().any(|member| is_deeper(member, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::model::{Component, DependentObjectReference};
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |value, level| {
            if level % 2 == 0 {
                json!([value])
            } else {
                json!({ "a": value })
            }
        })
    }

    #[test]
    fn an_interpretation_has_bounds() {
        let check = |actual: &Interpretation, expected: Option<&str>| assert_eq!(excess(actual).as_deref(), expected);
        check(&Interpretation::Object(nested(128)), None);
        check(
            &Interpretation::Object(nested(129)),
            Some("an object that is nested deeper than 128"),
        );
        check(
            &Interpretation::Status(Some(nested(129))),
            Some("a status that is nested deeper than 128"),
        );
        check(&Interpretation::Status(None), None);
        let annotated = |count: usize| {
            let annotations: Map<_, _> = (0..count).map(|index| (index.to_string(), json!(""))).collect();
            Interpretation::Object(json!({"metadata": {"annotations": annotations}}))
        };
        check(&annotated(4_096), None);
        check(&annotated(4_097), Some("4097 annotations, at most 4096 are allowed"));
        let dependencies = |count| Interpretation::Dependencies(vec![DependentObjectReference::default(); count]);
        check(&dependencies(4_096), None);
        check(
            &dependencies(4_097),
            Some("4097 dependencies, at most 4096 are allowed"),
        );
        let components = vec![Component::default(); 1_025];
        check(
            &Interpretation::Components(components),
            Some("1025 components, at most 1024 are allowed"),
        );
        let resource_request = (0..257).map(|index| (index.to_string(), "1".to_owned())).collect();
        let requirements = ReplicaRequirements {
            resource_request,
            ..ReplicaRequirements::default()
        };
        let replicas = Interpretation::Replicas {
            replicas: 1,
            requirements: Some(requirements),
        };
        check(&replicas, Some("257 resources of one replica, at most 256 are allowed"));
    }
}
