//! Handwritten JSON Schemas of a taint policy.

use std::borrow::Cow;

use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::{ADD_ON_MATCH_SECONDS, REMOVE_ON_MISMATCH_SECONDS, TargetClusters};
use crate::model::ClusterAffinity;

/// Sets the defaults of the proposal "Optimize Cluster Failover" for the windows of a taint.
pub(super) fn default_windows(schema: &mut Schema) {
    let windows = [
        ("addOnMatchSeconds", ADD_ON_MATCH_SECONDS),
        ("removeOnMismatchSeconds", REMOVE_ON_MISMATCH_SECONDS),
    ];
    for (name, seconds) in windows {
        let field = schema
            .as_object_mut()
            .and_then(|list| list.get_mut("items")?.get_mut("properties")?.get_mut(name));
        if let Some(field) = field.and_then(Value::as_object_mut) {
            field.insert("default".to_owned(), json!(seconds));
        }
    }
}

/// Requires an operator that a cluster can match.
pub(super) fn known_operators(schema: &mut Schema) {
    let items = schema
        .as_object_mut()
        .and_then(|list| list.get_mut("items")?.get_mut("properties"));
    if let Some(operator) = items.and_then(|fields| fields.get_mut("operator")?.as_object_mut()) {
        operator.insert("enum".to_owned(), json!(["In", "NotIn"]));
    }
}

/// Keeps unknown fields at every level, so that a policy with a misspelt target is not stored without one.
impl JsonSchema for TargetClusters {
    fn schema_name() -> Cow<'static, str> {
        "TargetClusters".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = ClusterAffinity::json_schema(generator);
        KeepUnknown.transform(&mut schema);
        schema
    }
}

struct KeepUnknown;

impl Transform for KeepUnknown {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if schema.get("properties").is_some() {
            schema.insert("additionalProperties".to_owned(), json!(true));
        }
    }
}
