//! What one pod asks for.

use std::collections::BTreeMap;

use super::super::ScheduleError;
use crate::quantity::{Format, Quantity};

/// An amount of one resource, in whole numbers rounded away from zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) resource: String,
    pub(super) units: i64,
    pub(super) millis: i64,
    pub(super) binary: bool,
}

/// The amounts of a request, in order of name.
pub(super) fn parse(request: &BTreeMap<String, String>) -> Result<Vec<Amount>, ScheduleError> {
    let amount = |(resource, text): (&String, &String)| {
        let quantity: Quantity = text.parse().map_err(|_| {
            ScheduleError::BadInput(format!(
                "the request for {resource} is {text:?}, which is not a quantity such as 500m or 1Gi"
            ))
        })?;
        let whole = |amount: i128| i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX });
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
    /// The number that Karmada divides by: thousandths of cpu, units of everything else.
    pub(super) fn divisor(&self) -> i64 {
        if self.resource == "cpu" { self.millis } else { self.units }
    }

    /// Whether anything is asked for at all.
    pub(super) fn is_positive(&self) -> bool {
        self.units > 0
    }

    /// The number that component sets add up: thousandths, or units of what is written in binary form.
    pub(super) fn set_amount(&self) -> i64 {
        if self.binary { self.units } else { self.millis }
    }
}
