//! Record of the rules that changed an object (Karmada: `pkg/util/overridemanager/shadow.go`).

use serde::Serialize;
use serde_json::Value;

use crate::model::{
    CommandArgsOverrider, FieldPatchOperation, ImageOverrider, LabelAnnotationOverrider, OverriderOperator, Overriders,
};

/// Rule that was applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// Namespace of the policy; empty for a ClusterOverridePolicy.
    pub namespace: String,
    /// Name of the policy.
    pub name: String,
    /// Overriders of the rule.
    pub overriders: Overriders,
}

/// Item of the record, with its fields in the order of Karmada's text.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    policy_name: &'a str,
    overriders: Recorded<'a>,
}

/// [`Overriders`] with the operations of Karmada's text.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Recorded<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    plaintext: Vec<Operation<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    image_overrider: &'a [ImageOverrider],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    command_overrider: &'a [CommandArgsOverrider],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    args_overrider: &'a [CommandArgsOverrider],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    labels_overrider: &'a [LabelAnnotationOverrider],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    annotations_overrider: &'a [LabelAnnotationOverrider],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    field_overrider: Vec<Field<'a>>,
}

/// Operation of a JSON patch. As in Karmada's text, an absent value is null.
#[derive(Serialize)]
struct Operation<'a> {
    path: &'a str,
    operator: OverriderOperator,
    value: &'a Value,
}

/// Change inside of a text.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Field<'a> {
    field_path: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    json: Vec<FieldOperation<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    yaml: Vec<FieldOperation<'a>>,
}

/// Operation on a document inside of a text. As in Karmada's text, an absent value is null.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FieldOperation<'a> {
    sub_path: &'a str,
    operator: OverriderOperator,
    value: &'a Value,
}

/// Returns the value of the annotation that records rules: a JSON list of `policyName` and `overriders`, by name of the
/// policy and, for one policy, in the order of application. `None` without rules.
///
/// The text is Karmada's to the byte, so that a take-over rewrites no Work: fields have the order of Karmada's structs
/// (`pkg/apis/policy/v1alpha1/override_types.go`), keys of values are sorted, and `<`, `>` and `&` are escaped.
pub fn record<'a>(applied: impl IntoIterator<Item = &'a Applied>) -> Option<String> {
    let mut applied: Vec<_> = applied.into_iter().collect();
    applied.sort_by(|one, other| one.name.cmp(&other.name));
    let items: Vec<_> = applied.iter().map(|rule| item(rule)).collect();
    // Structs of strings and values can always be serialized.
    let text = serde_json::to_string(&items).ok().filter(|_| !items.is_empty())?;
    Some(escaped(&text))
}

fn item(rule: &Applied) -> Item<'_> {
    let all = &rule.overriders;
    let plaintext = all.plaintext.iter().map(|operation| Operation {
        path: &operation.path,
        operator: operation.operator,
        value: &operation.value,
    });
    let fields = all.field_overrider.iter().map(|field| Field {
        field_path: &field.field_path,
        json: operations(&field.json),
        yaml: operations(&field.yaml),
    });
    Item {
        policy_name: &rule.name,
        overriders: Recorded {
            plaintext: plaintext.collect(),
            image_overrider: &all.image_overrider,
            command_overrider: &all.command_overrider,
            args_overrider: &all.args_overrider,
            labels_overrider: &all.labels_overrider,
            annotations_overrider: &all.annotations_overrider,
            field_overrider: fields.collect(),
        },
    }
}

fn operations(operations: &[FieldPatchOperation]) -> Vec<FieldOperation<'_>> {
    let operations = operations.iter().map(|operation| FieldOperation {
        sub_path: &operation.sub_path,
        operator: operation.operator,
        value: &operation.value,
    });
    operations.collect()
}

/// Escapes the characters that Go's `encoding/json` escapes besides those of JSON. They occur in strings only.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}
