//! Refusals of objects, in the format of Kubernetes' field errors.

use serde::Serialize;

use crate::decode::FieldError;

/// Refusal of an object; its text reads `spec.placement.spreadConstraints: Invalid value: ...`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Denied {
    /// Path of the field.
    pub field: String,
    /// Kind of error, value and detail.
    pub message: String,
    /// Detail of the error, without kind and value.
    pub detail: String,
}

impl Denied {
    /// Refuses a value that is malformed, or not allowed next to others.
    pub(super) fn invalid(field: impl Into<String>, value: impl Serialize, detail: impl AsRef<str>) -> Self {
        let detail = detail.as_ref().to_owned();
        Self {
            field: field.into(),
            message: format!("Invalid value: {}: {detail}", json(value)),
            detail,
        }
    }

    /// Refuses a value that is not one of a closed set.
    pub(super) fn not_supported(field: impl Into<String>, value: impl Serialize, supported: &[&str]) -> Self {
        let supported: Vec<_> = supported.iter().map(json).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        Self {
            field: field.into(),
            message: format!("Unsupported value: {}: {detail}", json(value)),
            detail,
        }
    }

    /// Refuses a value that is well-formed but switched off.
    pub(super) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self {
            field: field.into(),
            message: format!("Forbidden: {detail}"),
            detail: detail.to_owned(),
        }
    }

    /// Refuses a value that appears twice.
    pub(super) fn duplicate(field: impl Into<String>, value: impl Serialize) -> Self {
        Self {
            field: field.into(),
            message: format!("Duplicate value: {}", json(value)),
            detail: String::new(),
        }
    }

    /// Refuses a value that is longer than `bytes_max` bytes.
    pub(super) fn too_long(field: impl Into<String>, bytes_max: usize) -> Self {
        let detail = format!("may not be more than {bytes_max} bytes");
        Self {
            field: field.into(),
            message: format!("Too long: {detail}"),
            detail,
        }
    }

    /// Refuses an object because a value is missing.
    pub(super) fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self {
            field: field.into(),
            message,
            detail: detail.to_owned(),
        }
    }

    /// Converts a decoding error below `field`.
    pub(super) fn undecodable(field: &str, error: FieldError) -> Self {
        let separator = if error.path.is_empty() || error.path.starts_with('[') {
            ""
        } else {
            "."
        };
        let field = format!("{field}{separator}{}", error.path);
        match error
            .message
            .strip_prefix("missing field `")
            .and_then(|rest| rest.strip_suffix('`'))
        {
            Some(missing) => Self::required(format!("{field}.{missing}"), ""),
            None => Self {
                field,
                message: format!("Invalid value: {}", error.message),
                detail: error.message.clone(),
            },
        }
    }
}

fn json(value: impl Serialize) -> String {
    serde_json::to_string(&value).unwrap_or_default()
}
