//! Changes inside of a text that is a JSON or YAML document (Karmada: `overridemanager.go:applyFieldOverriders`).
//!
//! YAML is read as by Karmada's library (`sigs.k8s.io/yaml`): a repeated key is not an error, `yes` and `on` are
//! booleans, and `0644` is octal. Several documents in one text are an error; Karmada drops all but the first.
//! Keys of a changed document are in alphabetical order; Karmada keeps their order in JSON.

use serde_json::Value;
use serde_saphyr::DuplicateKeyPolicy;

use super::patch::{self, Operation};
use crate::model::FieldOverrider;
use crate::shape::type_name;

/// Changes the text at the path of an overrider. With operations of both kinds, those on YAML count.
pub(super) fn override_field(object: &mut Value, overrider: &FieldOverrider) -> Result<(), String> {
    let path = &overrider.field_path;
    if overrider.yaml.is_empty() && overrider.json.is_empty() {
        return Ok(());
    }
    let field = object.pointer_mut(path);
    let field = field.ok_or_else(|| format!("fieldPath {path:?} does not exist"))?;
    let Value::String(text) = field else {
        return Err(format!("fieldPath {path:?} is {}, not a string", type_name(field)));
    };
    if !overrider.yaml.is_empty() {
        let mut document = read_yaml(text).map_err(|error| format!("the text at {path:?} is no YAML: {error}"))?;
        change(&mut document, &overrider.yaml, "yaml")?;
        let written = serde_saphyr::to_string(&document);
        *text = written.map_err(|error| format!("cannot write the YAML at {path:?}: {error}"))?;
    } else if !text.is_empty() {
        // Karmada's library leaves an empty text as it is.
        let document = serde_json::from_str(text);
        let mut document: Value = document.map_err(|error| format!("the text at {path:?} is no JSON: {error}"))?;
        change(&mut document, &overrider.json, "json")?;
        *text = document.to_string();
    }
    Ok(())
}

fn change(document: &mut Value, operations: &[crate::model::FieldPatchOperation], list: &str) -> Result<(), String> {
    let operations: Vec<_> = operations.iter().map(Operation::from).collect();
    patch::apply(document, &operations, &format!(".{list}"))
}

fn read_yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}
