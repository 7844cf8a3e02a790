//! Validation of `PluginTrust`, which is Bulkhead's own kind, so Karmada has no rules for it.

use bulkhead_core::manifest::trust::object::{TrustObject, read_objects};
use serde_json::Value;

use super::denied::Denied;
use super::{read_spec, text};
use crate::PluginTrustSpec;

/// Refuses an object with a mistake, and names the first one. Prefixes of other objects are left to the status, so that
/// the order of writes does not matter.
pub(super) fn validate(object: &Value) -> Result<(), Denied> {
    let PluginTrustSpec(spec) = read_spec(object)?;
    let name = text(object, "/metadata/name").unwrap_or_default();
    let object = TrustObject {
        name: name.to_owned(),
        generation: 0,
        spec,
    };
    let read = read_objects(std::slice::from_ref(&object));
    match read.into_iter().flat_map(|read| read.mistakes).next() {
        None => Ok(()),
        Some(mistake) => Err(Denied {
            field: mistake.field,
            message: format!("Invalid value: {}", mistake.message),
            detail: mistake.message,
        }),
    }
}
