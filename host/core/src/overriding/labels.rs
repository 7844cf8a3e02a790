//! Changes of labels and annotations (Karmada: `pkg/util/overridemanager/labelannotationoverrider.go`).

use serde_json::{Value, json};

use crate::model::{LabelAnnotationOverrider, OverriderOperator};
use crate::shape::type_name;

/// Changes `field`, `labels` or `annotations`, of an object. Keys that are absent are neither removed nor replaced.
pub(super) fn override_map(
    object: &mut Value,
    field: &str,
    overrider: &LabelAnnotationOverrider,
) -> Result<(), String> {
    let adds = overrider.operator == OverriderOperator::Add;
    let metadata = object.get_mut("metadata");
    let metadata = metadata.ok_or_else(|| "the object has no metadata".to_owned())?;
    let kind = type_name(metadata);
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(format!("metadata is {kind}, not an object"));
    };
    if metadata.get(field).is_none_or(Value::is_null) {
        if !adds || overrider.value.is_empty() {
            return Ok(());
        }
        metadata.insert(field.to_owned(), json!({}));
    }
    let map = &mut metadata[field];
    let kind = type_name(map);
    let Some(map) = map.as_object_mut() else {
        return Err(format!("metadata.{field} is {kind}, not an object"));
    };
    for (key, value) in &overrider.value {
        match overrider.operator {
            OverriderOperator::Add => drop(map.insert(key.clone(), json!(value))),
            OverriderOperator::Remove => drop(map.remove(key)),
            OverriderOperator::Replace => {
                if let Some(old) = map.get_mut(key) {
                    *old = json!(value);
                }
            }
        }
    }
    Ok(())
}
