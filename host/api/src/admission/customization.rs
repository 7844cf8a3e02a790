//! Validation of customizations (Karmada: `pkg/webhook/resourceinterpretercustomization`).

use serde_json::Value;

use super::denied::Denied;
use super::{AdmissionContext, read_spec};
use crate::ResourceInterpreterCustomization;
use crate::decode::decode;
use crate::interpreter::{CustomizationSpec, conflict};

/// Refuses scripts that do not compile, and scripts for an operation that another customization of the same target
/// has a script for. Stored customizations that cannot be decoded are ignored.
pub(super) fn validate(object: &Value, around: &dyn AdmissionContext) -> Result<(), Denied> {
    let spec: CustomizationSpec = read_spec(object)?;
    let mut new = ResourceInterpreterCustomization {
        spec,
        ..ResourceInterpreterCustomization::default()
    };
    new.metadata.name = object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let others: Vec<_> = around.others().iter().filter_map(|other| decode(other).ok()).collect();
    if let Some(message) = conflict(&new, &others) {
        return Err(Denied {
            field: "spec.target".to_owned(),
            message: message.clone(),
            detail: message,
        });
    }
    for (rule, script) in new.spec.customizations.scripts() {
        if let Some(mistake) = around.script_error(script) {
            let (field, message) = (
                format!("spec.customizations.{rule}.luaScript"),
                format!("Lua script error: {mistake}"),
            );
            return Err(Denied {
                field,
                message,
                detail: mistake,
            });
        }
    }
    Ok(())
}
