//! Custom resource definitions: the kinds that they define, and their validation.
//!
//! Each version of a kind is stored separately, because there is no conversion. Deleting a definition deletes its
//! objects immediately, even those with finalizers.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::rfc3339;
use crate::json::{HasFields, array, text};
use crate::kind::{Column, ResourceKind, ScalePaths, Scope, kinds};
use crate::status_error::StatusError;

/// Returns the kinds of a definition, one for each served version.
///
/// # Errors
///
/// 422 with the field that is missing or invalid.
pub(crate) fn kinds(definition: &impl HasFields) -> Result<Vec<ResourceKind>, StatusError> {
    let name = text(definition, "/metadata/name");
    let refuse = |field: &str, why: &str| StatusError::invalid(&kinds::definitions(), name, field, why);
    let needed = |pointer: &str, field: &str| match text(definition, pointer) {
        "" => Err(refuse(field, "Required value")),
        text => Ok(Cow::<'static, str>::Owned(text.to_owned())),
    };
    let group = needed("/spec/group", "spec.group")?;
    let plural = needed("/spec/names/plural", "spec.names.plural")?;
    let kind = needed("/spec/names/kind", "spec.names.kind")?;
    if name != format!("{plural}.{group}") {
        return Err(refuse("metadata.name", "must be spec.names.plural+\".\"+spec.group"));
    }
    let scope = match text(definition, "/spec/scope") {
        "Cluster" => Scope::Cluster,
        "Namespaced" => Scope::Namespaced,
        other => {
            return Err(refuse(
                "spec.scope",
                &format!("Unsupported value: \"{other}\": there are Cluster, Namespaced"),
            ));
        }
    };
    let words = |pointer: &str| -> Vec<Cow<'static, str>> {
        array(definition, pointer)
            .iter()
            .filter_map(Value::as_str)
            .map(|word| Cow::Owned(word.to_owned()))
            .collect()
    };
    let (short_names, categories) = (words("/spec/names/shortNames"), words("/spec/names/categories"));
    let versions = array(definition, "/spec/versions");
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        return Err(refuse(
            "spec.versions",
            "must have exactly one version marked as storage version",
        ));
    }
    let served = versions.iter().filter(|version| version["served"] == true);
    served
        .map(|version| {
            let schema = version.pointer("/schema/openAPIV3Schema");
            let schema = schema.ok_or_else(|| refuse("spec.versions[*].schema.openAPIV3Schema", "Required value"))?;
            Ok(ResourceKind {
                group: group.clone(),
                version: Cow::Owned(text(version, "/name").to_owned()),
                kind: kind.clone(),
                plural: plural.clone(),
                short_names: short_names.clone(),
                categories: categories.clone(),
                scope,
                status_subresource: version.pointer("/subresources/status").is_some(),
                columns: array(version, "/additionalPrinterColumns").iter().map(column).collect(),
                schema: Some(Arc::new(schema.clone())),
                has_rules: has_rules(schema),
                selectable_fields: array(version, "/selectableFields")
                    .iter()
                    .map(|field| text(field, "/jsonPath").trim_start_matches('.').to_owned())
                    .collect(),
                scale: version.pointer("/subresources/scale").map(scale),
            })
        })
        .collect()
}

/// Returns true if a schema has rules at any depth.
fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.contains_key("x-kubernetes-validations") || fields.values().any(has_rules),
        Value::Array(items) => items.iter().any(has_rules),
        _ => false,
    }
}

fn scale(scale: &Value) -> ScalePaths {
    let field = |pointer: &str| text(scale, pointer).to_owned();
    ScalePaths {
        spec_replicas: field("/specReplicasPath"),
        status_replicas: field("/statusReplicasPath"),
        selector: Some(field("/labelSelectorPath")).filter(|path| !path.is_empty()),
    }
}

fn column(column: &Value) -> Column {
    let field = |name: &str| column[name].as_str().unwrap_or_default().to_owned();
    Column {
        name: field("name"),
        type_: field("type"),
        description: field("description"),
        priority: column["priority"].as_i64().unwrap_or(0),
        path: field("jsonPath"),
    }
}

/// Completes a definition and sets its `Established` and `NamesAccepted` conditions.
///
/// # Errors
///
/// 422 if the definition is invalid.
pub(crate) fn accept(definition: &mut Value, now: Timestamp) -> Result<(), StatusError> {
    let names = &mut definition["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    for (field, default) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names[field].as_str().unwrap_or_default().is_empty() {
            names[field] = json!(default);
        }
    }
    kinds(definition)?;
    let known = array(definition, "/status/conditions").to_vec();
    let condition = |type_: &str, reason: &str, message: &str| {
        let before = known
            .iter()
            .find(|known| known["type"] == type_ && known["status"] == "True");
        before.cloned().unwrap_or_else(|| {
            json!({
                "type": type_,
                "status": "True",
                "lastTransitionTime": rfc3339(now),
                "reason": reason,
                "message": message,
            })
        })
    };
    let stored = array(definition, "/spec/versions")
        .iter()
        .filter(|version| version["storage"] == true);
    let stored: Vec<Value> = stored.map(|version| version["name"].clone()).collect();
    definition["status"] = json!({
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "acceptedNames": definition["spec"]["names"],
        "storedVersions": stored,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widgets() -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.io"},
            "spec": {
                "group": "example.io",
                "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["w"]},
                "scope": "Cluster",
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        })
    }

    #[test]
    fn a_definition_says_what_its_kind_is() {
        let mut definition = widgets();
        accept(&mut definition, Timestamp::UNIX_EPOCH).expect("a good definition");
        assert_eq!(definition["status"]["conditions"][1]["type"], "Established");
        assert_eq!(definition["spec"]["names"]["listKind"], "WidgetList");
        let kinds = kinds(&definition).expect("a good definition");
        assert_eq!(
            (&*kinds[0].kind, kinds[0].scope, kinds[0].status_subresource),
            ("Widget", Scope::Cluster, true)
        );
        assert_eq!(kinds[0].columns[0].path, ".spec.size");
        assert!(!kinds[0].has_rules);
    }

    #[test]
    fn rules_scale_and_selectable_fields_belong_to_a_version() {
        let mut definition = widgets();
        let version = &mut definition["spec"]["versions"][0];
        let rules = json!([{"rule": "self.size > 0"}]);
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] = rules;
        version["subresources"]["scale"] = json!({"specReplicasPath": ".spec.size"});
        version["selectableFields"] = json!([{"jsonPath": ".spec.size"}]);
        let kinds = kinds(&definition).expect("a good definition");
        assert!(kinds[0].has_rules && kinds[0].is_scalable());
        assert_eq!(kinds[0].selectable_fields, ["spec.size"]);
    }

    #[test]
    fn a_bad_definition_is_refused_with_the_field() {
        for (pointer, value, field) in [
            ("/metadata/name", json!("other"), "metadata.name"),
            ("/spec/scope", json!("World"), "spec.scope"),
            ("/spec/versions/0/storage", json!(false), "spec.versions"),
            ("/spec/names/kind", json!(""), "spec.names.kind"),
            ("/spec/versions/0/schema", json!({}), "openAPIV3Schema"),
        ] {
            let mut definition = widgets();
            *definition.pointer_mut(pointer).expect(pointer) = value;
            let error = kinds(&definition).expect_err(field);
            assert!(error.code == 422 && error.message.contains(field), "{}", error.message);
        }
    }
}
