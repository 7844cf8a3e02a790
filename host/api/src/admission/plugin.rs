//! Validation of `Plugin`, which is Bulkhead's own kind, so Karmada has no rules for it.

use bulkhead_core::manifest::{PluginManifest, PluginObject};
use serde_json::Value;

use super::denied::Denied;
use super::read_spec;
use crate::PluginSpec;
use crate::decode::decode;

/// Checks a plugin without loading it: the fields are known and consistent, and the code is present and has the
/// expected digest. The status reports whether it loads.
pub(super) fn validate(object: &Value) -> Result<(), Denied> {
    let PluginSpec(spec) = read_spec(object)?;
    let name = object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let mut fields = spec.clone();
    fields.insert("name".to_owned(), name.clone().into());
    decode::<PluginManifest>(&Value::Object(fields)).map_err(|error| Denied::undecodable("spec", error))?;
    let Err(detail) = (PluginObject {
        name,
        generation: 0,
        spec,
    })
    .check() else {
        return Ok(());
    };
    Err(Denied {
        field: "spec".to_owned(),
        message: format!("Invalid value: {detail}"),
        detail,
    })
}
