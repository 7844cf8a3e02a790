//! OpenAPI v3 documents. `kubectl explain` shows them; clients read from them that the server validates requests.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::kind::ResourceKind;
use crate::kubectl::schema::builtin::{self, gvk};
use crate::state::State;
use crate::status_error::StatusError;

/// Returns the body of `/openapi/v3`: the URLs of the documents of each group and version.
pub(crate) fn index(state: &State) -> Value {
    let mut paths = Map::new();
    for (group, version) in group_versions(state).into_keys() {
        let path = path(&group, &version);
        // The hash changes with the kinds; clients may cache a document as long as its hash is unchanged.
        let hash = crate::rng::stable_hash(0, &[&document(state, &group, &version).unwrap_or_default().to_string()]);
        paths.insert(
            path.clone(),
            json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash:016X}")}),
        );
    }
    json!({"paths": paths})
}

/// Returns the body of `/openapi/v3/api/{version}` and `/openapi/v3/apis/{group}/{version}`.
///
/// # Errors
///
/// 404 if the version is not served.
pub(crate) fn document(state: &State, group: &str, version: &str) -> Result<Value, StatusError> {
    let versions = group_versions(state);
    let kinds = versions
        .get(&(group.to_owned(), version.to_owned()))
        .ok_or_else(|| StatusError::unknown_path(&format!("/openapi/v3/{}", path(group, version))))?;
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for kind in kinds {
        let name = add_schema(kind, &mut schemas);
        add_paths(kind, &name, &mut paths);
    }
    Ok(json!({
        "openapi": "3.0.0",
        "info": {"title": "Bulkhead", "version": crate::kubectl::discovery::OPENAPI_VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

fn group_versions(state: &State) -> BTreeMap<(String, String), Vec<&ResourceKind>> {
    let mut found: BTreeMap<(String, String), Vec<&ResourceKind>> = BTreeMap::new();
    for (_, table) in state.tables().filter(|(_, table)| table.is_served) {
        let kind = &*table.kind;
        found
            .entry((kind.group.to_string(), kind.version.to_string()))
            .or_default()
            .push(kind);
    }
    found
}

fn path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// Adds the schema of a kind and all schemas that it references. Returns its name.
fn add_schema(kind: &ResourceKind, schemas: &mut Map<String, Value>) -> String {
    if let Some(name) = builtin::name(kind) {
        add_referenced(name, schemas);
        return name.to_owned();
    }
    let reversed: Vec<&str> = kind.group.split('.').rev().collect();
    let name = format!("{}.{}.{}", reversed.join("."), kind.version, kind.kind);
    let mut schema = kind.schema.as_ref().map_or_else(
        || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {}}),
        |schema| Value::clone(schema),
    );
    let metadata = builtin::METADATA;
    add_referenced(metadata, schemas);
    if let Some(properties) = schema["properties"].as_object_mut() {
        let text = |description: &str| json!({"type": "string", "description": description});
        properties.insert("apiVersion".to_owned(), text("Group and version of the kind."));
        properties.insert("kind".to_owned(), text("The kind."));
        properties.insert(
            "metadata".to_owned(),
            json!({
                "description": "Standard metadata of every object: name, labels and so on.",
                "allOf": [{"$ref": format!("#/components/schemas/{metadata}")}],
            }),
        );
    }
    schema["x-kubernetes-group-version-kind"] = json!([gvk(&kind.group, &kind.version, &kind.kind)]);
    schemas.insert(name.clone(), schema);
    name
}

fn add_referenced(name: &str, schemas: &mut Map<String, Value>) {
    let Some(schema) = builtin::schemas().get(name).filter(|_| !schemas.contains_key(name)) else {
        return;
    };
    schemas.insert(name.to_owned(), schema.clone());
    let mut references = Vec::new();
    collect_references(schema, &mut references);
    for reference in references {
        add_referenced(reference, schemas);
    }
}

fn collect_references<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    match schema {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                found.extend(reference.strip_prefix(builtin::PREFIX));
            }
            fields.values().for_each(|inner| collect_references(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| collect_references(inner, found)),
        _ => {}
    }
}

fn add_paths(kind: &ResourceKind, schema: &str, paths: &mut Map<String, Value>) {
    let root = format!("/{}", path(&kind.group, &kind.version));
    let collection = if kind.is_namespaced() {
        format!("{root}/namespaces/{{namespace}}/{}", kind.plural)
    } else {
        format!("{root}/{}", kind.plural)
    };
    let operation = |action: &str, parameters: &[&str]| {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
            .collect();
        json!({
            "operationId": format!("{action}{}{}", kind.version, kind.kind),
            "parameters": parameters,
            "responses": {"200": {
                "description": "OK",
                "content": {"application/json": {"schema": {"$ref": format!("#/components/schemas/{schema}")}}},
            }},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk(&kind.group, &kind.version, &kind.kind),
        })
    };
    let writes = ["dryRun", "fieldManager", "fieldValidation"];
    let mut one = json!({
        "get": operation("get", &[]),
        "put": operation("put", &writes),
        "patch": operation("patch", &["dryRun", "fieldManager", "fieldValidation", "force"]),
        "delete": operation("delete", &["dryRun", "gracePeriodSeconds", "propagationPolicy"]),
    });
    let mut many = json!({
        "get": operation("list", &["continue", "fieldSelector", "labelSelector", "limit", "watch"]),
        "post": operation("post", &writes),
        "delete": operation("deletecollection", &["dryRun", "labelSelector"]),
    });
    let parameter = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    let mut in_path: Vec<Value> = kind
        .is_namespaced()
        .then(|| parameter("namespace"))
        .into_iter()
        .collect();
    many["parameters"] = json!(in_path);
    in_path.push(parameter("name"));
    one["parameters"] = json!(in_path);
    paths.insert(collection.clone(), many);
    paths.insert(format!("{collection}/{{name}}"), one);
}
