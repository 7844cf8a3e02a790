//! Validation of the schemas in a definition: their patterns and rules must be valid.

use serde_json::{Value, json};

use super::{pattern, rules};
use crate::cause::Cause;
use crate::json::array;
use crate::kind::ResourceKind;
use crate::status_error::StatusError;

/// Validates the patterns and rules of a definition.
///
/// # Errors
///
/// 422 with a cause for each mistake.
pub(crate) fn check_definition(kind: &ResourceKind, name: &str, definition: &Value) -> Result<(), StatusError> {
    let mut wrong = Vec::new();
    for (index, version) in array(definition, "/spec/versions").iter().enumerate() {
        let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
        check(&version["schema"]["openAPIV3Schema"], &path, &mut wrong);
    }
    StatusError::refuse(kind, name, &wrong)
}

fn check(schema: &Value, path: &str, wrong: &mut Vec<Cause>) {
    if let Some(text) = schema["pattern"].as_str()
        && let Err(error) = pattern::compile(text)
    {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        wrong.push(Cause::invalid(format!("{path}.pattern"), &json!(text), &why));
    }
    for (index, rule) in schema[rules::RULES].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.{}[{index}].rule", rules::RULES);
        match rule["rule"].as_str().map(str::trim) {
            None | Some("") => wrong.push(Cause::required(path, "rule is not specified")),
            Some(text) => {
                if let Some(mistake) = rules::mistake(text) {
                    wrong.push(Cause::invalid(path, rule, &format!("compilation failed: {mistake}")));
                }
            }
        }
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        check(inner, &format!("{path}.properties[{name}]"), wrong);
    }
    for field in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(field).filter(|inner| inner.is_object()) {
            check(inner, &format!("{path}.{field}"), wrong);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::kinds;

    #[test]
    fn mistakes_are_found_at_any_depth() {
        let spec =
            json!({"properties": {"name": {"pattern": "("}}, "x-kubernetes-validations": [{"rule": "self.a =="}]});
        let schema = json!({"properties": {"spec": spec}});
        let definition = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        let error = check_definition(&kinds::definitions(), "widgets.example.io", &definition).expect_err("mistakes");
        let fields: Vec<_> = array(&error.details, "/causes")
            .iter()
            .filter_map(|cause| cause["field"].as_str())
            .collect();
        let root = "spec.versions[0].schema.openAPIV3Schema.properties[spec]";
        let expected = [
            format!("{root}.x-kubernetes-validations[0].rule"),
            format!("{root}.properties[name].pattern"),
        ];
        assert_eq!(fields, expected);
        assert_eq!(error.code, 422);
    }
}
