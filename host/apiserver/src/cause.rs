//! Causes of a 422: the invalid fields of an object, with the messages of Kubernetes (`field.Error`).

use serde_json::{Value, json};

/// One invalid field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cause {
    /// Path of the field.
    pub(crate) field: String,
    /// Machine-readable reason, such as `FieldValueInvalid`.
    pub(crate) reason: &'static str,
    /// Human-readable message without the field.
    pub(crate) message: String,
}

impl Cause {
    pub(crate) fn new(field: impl Into<String>, reason: &'static str, message: String) -> Self {
        Self {
            field: field.into(),
            reason,
            message,
        }
    }

    /// The field is missing; `why` may be empty.
    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        Self::new(field, "FieldValueRequired", with_detail("Required value", why))
    }

    /// The value is invalid.
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self::new(field, "FieldValueInvalid", format!("Invalid value: {value}: {why}"))
    }

    /// The value has another type than `expected`.
    pub(crate) fn mistyped(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self::new(field, "FieldValueTypeInvalid", format!("Invalid value: {value}: {why}"))
    }

    /// The value is none of the supported ones.
    pub(crate) fn not_supported(field: impl Into<String>, value: &Value, supported: &[Value]) -> Self {
        let supported: Vec<String> = supported.iter().map(ToString::to_string).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        Self::new(field, "FieldValueNotSupported", message)
    }

    /// The field must not be set or changed.
    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self::new(field, "FieldValueForbidden", with_detail("Forbidden", why))
    }

    /// The value occurs twice in a list.
    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new(field, "FieldValueDuplicate", format!("Duplicate value: {value}"))
    }

    /// The value is longer than `bytes_max`.
    pub(crate) fn too_long(field: impl Into<String>, bytes_max: usize) -> Self {
        Self::new(
            field,
            "FieldValueTooLong",
            format!("Too long: may not be more than {bytes_max} bytes"),
        )
    }

    /// The list or map has more than `items_max` items.
    pub(crate) fn too_many(field: impl Into<String>, items: usize, items_max: usize) -> Self {
        let noun = if items_max == 1 { "item" } else { "items" };
        Self::new(
            field,
            "FieldValueTooMany",
            format!("Too many: {items}: must have at most {items_max} {noun}"),
        )
    }

    /// Returns the entry of the list `causes` of a `metav1.Status`.
    pub(crate) fn to_value(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

fn with_detail(text: &str, why: &str) -> String {
    if why.is_empty() {
        text.to_owned()
    } else {
        format!("{text}: {why}")
    }
}
