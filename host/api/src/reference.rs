//! Reference page of the custom resources, generated from their definitions.

#[path = "../../../tests/reference/golden.rs"]
mod golden;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::definition::definitions;

/// API group of Bulkhead's own kinds.
const OWN: &str = "bulkhead.dev";

/// Returns the properties of a schema by name, in alphabetical order.
fn properties(schema: &Value) -> Vec<(&str, &Value)> {
    let mut all: Vec<_> = schema["properties"].as_object().into_iter().flatten().collect();
    all.sort_by_key(|(name, _)| *name);
    all.into_iter().map(|(name, schema)| (name.as_str(), schema)).collect()
}

/// Returns the type of a field in words.
fn type_of(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", type_of(&schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("map of {}", type_of(&schema["additionalProperties"]))
        }
        Some("string") if schema["format"] == "date-time" => "time".to_owned(),
        Some(name) => name.to_owned(),
        None => "any".to_owned(),
    }
}

/// Returns the description of a field with its possible values.
fn meaning(schema: &Value) -> String {
    let description = golden::prose(schema["description"].as_str().unwrap_or_default());
    let values: Vec<_> = schema["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if values.is_empty() {
        return description;
    }
    format!("{description} Values: `{}`.", values.join("`, `"))
        .trim()
        .to_owned()
}

/// Adds a row for each field below a schema.
fn add(schema: &Value, path: &str, rows: &mut Vec<Vec<String>>) {
    let required: Vec<_> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, field) in properties(schema) {
        let path = if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        };
        let need = if required.contains(&name) { "required" } else { "–" };
        rows.push(vec![
            format!("`{path}`"),
            type_of(field),
            need.to_owned(),
            meaning(field),
        ]);
        let (mut inner, mut inner_path) = (field, path);
        loop {
            if inner["items"].is_object() {
                (inner, inner_path) = (&inner["items"], format!("{inner_path}[]"));
            } else if inner["additionalProperties"].is_object() {
                (inner, inner_path) = (&inner["additionalProperties"], format!("{inner_path}.*"));
            } else {
                break;
            }
        }
        add(inner, &inner_path, rows);
    }
}

/// Returns the schema of a kind.
pub(crate) fn schema_of(definition: &CustomResourceDefinition) -> Value {
    serde_json::to_value(&definition.spec.versions[0].schema).unwrap()["openAPIV3Schema"].clone()
}

/// Returns the rows of a kind, without its type and metadata. The first cell has the path of the field.
pub(crate) fn fields(schema: &Value) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    add(schema, "", &mut rows);
    rows.retain(|row| !["`apiVersion`", "`kind`", "`metadata`"].contains(&row[0].as_str()));
    rows
}

/// Returns the sections of the kinds of a group, or of all other groups.
fn sections(is_own: bool) -> String {
    let mut done: Vec<(String, Vec<Vec<String>>)> = Vec::new();
    let mut parts = Vec::new();
    for definition in definitions()
        .iter()
        .filter(|definition| (definition.spec.group == OWN) == is_own)
    {
        let spec = &definition.spec;
        let (kind, version) = (&spec.names.kind, &spec.versions[0]);
        let schema = schema_of(definition);
        let rows = fields(&schema);
        assert!(!rows.is_empty(), "{kind} has no fields");
        let description = golden::prose(schema["description"].as_str().unwrap_or_default());
        let (group, name, plural, scope) = (&spec.group, &version.name, &spec.names.plural, &spec.scope);
        parts.push(format!("### {kind}\n\n{description}\n\n"));
        parts.push(format!(
            "Version `{group}/{name}`, plural `{plural}`, scope `{scope}`.\n\n"
        ));
        parts.push(match done.iter().find(|(_, other)| *other == rows) {
            Some((other, _)) => format!("The fields are those of [{other}](#{}).\n\n", other.to_lowercase()),
            None => format!("{}\n", golden::table(&["field", "type", "need", "meaning"], &rows)),
        });
        done.push((kind.clone(), rows));
    }
    parts.concat()
}

#[test]
fn the_page_of_custom_resources_is_generated_from_the_definitions() {
    golden::check(
        "custom-resources.md",
        &[("bulkhead", sections(true)), ("karmada", sections(false))],
    );
}
