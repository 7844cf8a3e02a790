//! Requests of one pod.

use std::collections::BTreeMap;

use super::super::ScheduleError;
use crate::quantity::{Format, Quantity, whole};

/// Amount of one resource, in whole numbers rounded away from zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) resource: String,
    pub(super) units: i64,
    pub(super) millis: i64,
    pub(super) binary: bool,
}

/// Parses the amounts of a request, sorted by name.
pub(super) fn parse(request: &BTreeMap<String, String>) -> Result<Vec<Amount>, ScheduleError> {
    let amount = |(resource, text): (&String, &String)| {
        let quantity: Quantity = text.parse().map_err(|_| {
            ScheduleError::BadInput(format!(
                "the request for {resource} is {text:?}, which is not a quantity such as 500m or 1Gi"
            ))
        })?;
        Ok(Amount {
            resource: resource.clone(),
            units: whole(quantity.units()),
            millis: whole(quantity.millis()),
            binary: quantity.format() == Format::Binary,
        })
    };
    request.iter().map(amount).collect()
}

impl Amount {
    /// Returns the divisor that Karmada uses: thousandths of cpu, units of all others.
    pub(super) fn divisor(&self) -> i64 {
        if self.resource == "cpu" {
            self.millis
        } else {
            self.units
        }
    }

    /// Returns true if the requested amount is positive.
    pub(super) fn is_positive(&self) -> bool {
        self.units > 0
    }

    /// Returns the amount that component sets add up: units in binary format, otherwise thousandths.
    pub(super) fn set_amount(&self) -> i64 {
        if self.binary { self.units } else { self.millis }
    }
}
