//! Cases of the validation of placements, which is part of `bulkhead-api`.

use bulkhead_api::admission::validate_placement;
use bulkhead_core::model::Placement;
use serde_json::{Value, json};

use crate::recorded::Table;

/// Returns the function that runs a table, or `None` if the table is unknown.
pub(crate) fn table(name: &str) -> Option<Table> {
    (name == "placementValidation").then_some(placement_validation as Table)
}

fn placement_validation(case: &Value) -> Result<Value, String> {
    let placement = case.get("placement").cloned().unwrap_or_default();
    let placement: Placement = serde_json::from_value(placement).map_err(|error| format!("placement: {error}"))?;
    let denied = validate_placement(&placement, "spec.placement");
    Ok(json!(
        denied
            .iter()
            .map(|denied| format!("{}: {}", denied.field, denied.detail))
            .collect::<Vec<_>>()
    ))
}
