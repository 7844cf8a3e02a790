//! Rules of a schema in the Common Expression Language (`x-kubernetes-validations`). This module is the only user of
//! `kube-cel`.

use kube_cel::ErrorKind;
use kube_cel::cel::Program;
use serde_json::{Value, json};

use super::{Checked, type_name};
use crate::cause::Cause;

/// Name of the field of a schema that has the rules.
pub(super) const RULES: &str = "x-kubernetes-validations";

/// Reasons that prevent the evaluation of rules.
const BLOCKING: [&str; 5] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];

/// Evaluates the rules of a schema, unless the object is invalid in a way that rules need not expect. As in
/// Kubernetes, a rule about a value that equals the stored one does not count. Rules with functions that `kube-cel`
/// lacks are warnings.
pub(super) fn check(schema: &Value, object: &Value, old: Option<&Value>, checked: &mut Checked) {
    if checked.causes.iter().any(|cause| BLOCKING.contains(&cause.reason)) {
        let why = "some validation rules were not checked because the object was invalid; correct the existing errors \
                   to complete validation";
        checked.causes.push(Cause::invalid("<nil>", &Value::Null, why));
        return;
    }
    for error in kube_cel::validate(schema, object, old) {
        let path = error.field_path.trim_start_matches('.');
        if error.kind == ErrorKind::UnsupportedReference {
            checked.warnings.push(format!(
                "rule \"{}\" of {path} is not evaluated: {}",
                error.rule, error.message
            ));
            continue;
        }
        let owner = owner(schema, path, &error.rule);
        let value = at(object, owner);
        if value.is_some() && old.is_some_and(|old| at(old, owner) == value) {
            continue;
        }
        let field = if path.is_empty() { "<nil>" } else { path };
        let type_ = json!(value.map_or("object", type_name));
        checked.causes.push(match error.reason.as_deref() {
            Some("FieldValueRequired") => Cause::required(field, &error.message),
            Some("FieldValueForbidden") => Cause::forbidden(field, &error.message),
            Some("FieldValueDuplicate") => Cause::duplicate(field, &type_),
            _ => Cause::invalid(field, &type_, &error.message),
        });
    }
}

/// Returns the syntax error of a rule.
pub(super) fn mistake(rule: &str) -> Option<String> {
    Program::compile(rule).err().map(|error| error.to_string())
}

/// Returns the path of the value that a rule is about. The path of an error is longer if the rule has a `fieldPath`.
fn owner<'a>(schema: &Value, path: &'a str, rule: &str) -> &'a str {
    let mut owner = path;
    loop {
        let rules = described(schema, owner).and_then(|node| node[RULES].as_array());
        if owner.is_empty() || rules.into_iter().flatten().any(|known| known["rule"] == rule) {
            return owner;
        }
        owner = &owner[..owner.rfind(['.', '[']).unwrap_or(0)];
    }
}

fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.split(['.', '[', ']']).filter(|step| !step.is_empty())
}

/// Returns the schema of the value at a path.
fn described<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    steps(path).try_fold(schema, |node, step| {
        let property = node["properties"].get(step);
        property
            .or_else(|| node.get("items"))
            .or_else(|| node.get("additionalProperties"))
    })
}

/// Returns the value at a path such as `spec.parts[0].name`.
fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    steps(path).try_fold(object, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {"spec": {
            "type": "object",
            "x-kubernetes-validations": [
                {"rule": "self.least <= self.most", "message": "least must not exceed most"},
                {"rule": "self.name == oldSelf.name", "message": "name is immutable", "fieldPath": ".name"},
            ],
            "properties": {
                "least": {"type": "integer"}, "most": {"type": "integer"}, "name": {"type": "string"},
            },
        }}})
    }

    fn check(object: &Value, old: Option<&Value>, expected: &[&str]) {
        let mut checked = Checked::default();
        super::check(&schema(), object, old, &mut checked);
        let messages: Vec<_> = checked
            .causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        assert_eq!(messages, expected, "{object}");
    }

    fn spec(least: i64, most: i64, name: &str) -> Value {
        json!({"spec": {"least": least, "most": most, "name": name}})
    }

    #[test]
    fn rules_refuse_what_they_do_not_allow() {
        check(&spec(1, 2, "a"), None, &[]);
        check(
            &spec(3, 2, "a"),
            None,
            &["spec: Invalid value: \"object\": least must not exceed most"],
        );
        let renamed = "spec.name: Invalid value: \"object\": name is immutable";
        check(&spec(1, 2, "b"), Some(&spec(1, 2, "a")), &[renamed]);
        // Unchanged values are not judged again.
        check(&spec(3, 2, "a"), Some(&spec(3, 2, "a")), &[]);
    }

    #[test]
    fn rules_wait_until_the_values_are_valid() {
        let mut checked = Checked {
            causes: vec![Cause::required("spec.name", "")],
            warnings: Vec::new(),
        };
        super::check(&schema(), &spec(3, 2, "a"), None, &mut checked);
        assert_eq!(checked.causes.len(), 2);
        assert!(
            checked.causes[1]
                .message
                .contains("some validation rules were not checked")
        );
    }

    #[test]
    fn a_rule_that_cannot_be_parsed_has_a_mistake() {
        assert!(mistake("self.a <= ").is_some());
        assert_eq!(mistake("self.a <= self.b"), None);
    }
}
