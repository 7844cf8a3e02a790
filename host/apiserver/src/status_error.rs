//! Errors as Kubernetes reports them: a `metav1.Status` with code, reason, message and details.

use bytes::Bytes;
use serde_json::{Value, json};
use thiserror::Error;

use crate::cause::Cause;
use crate::kind::ResourceKind;

/// Failed request, convertible to the `metav1.Status` body that a client receives.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{message}")]
pub struct StatusError {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `NotFound`.
    pub reason: &'static str,
    /// Human-readable message.
    pub message: String,
    /// The `details` object; null if there are none.
    pub details: Value,
    /// Invalid fields, also those that Kubernetes names in the message only.
    causes: Vec<Cause>,
}

impl StatusError {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self {
            code,
            reason,
            message,
            details: Value::Null,
            causes: Vec::new(),
        }
    }

    fn about(mut self, kind: &ResourceKind, name: &str) -> Self {
        self.details = json!({"name": name, "group": kind.group, "kind": kind.plural});
        self
    }

    /// Returns 404: the object does not exist.
    pub fn not_found(kind: &ResourceKind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.group_resource());
        Self::new(404, "NotFound", message).about(kind, name)
    }

    /// Returns 404: the path is not a resource that this server serves.
    pub fn unknown_path(path: &str) -> Self {
        let message = format!("the server could not find the requested resource ({path})");
        Self::new(404, "NotFound", message)
    }

    /// Returns 409: an object with this name exists.
    pub fn already_exists(kind: &ResourceKind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.group_resource());
        Self::new(409, "AlreadyExists", message).about(kind, name)
    }

    /// Returns 409: a precondition on uid or resourceVersion does not hold.
    pub fn conflict(kind: &ResourceKind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            kind.group_resource()
        );
        Self::new(409, "Conflict", message).about(kind, name)
    }

    /// Returns 422: `field` of the object is invalid.
    pub fn invalid(kind: &ResourceKind, name: &str, field: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is invalid: {field}: {why}", kind.kind);
        let mut error = Self::new(422, "Invalid", message).about(kind, name);
        error.details["kind"] = json!(kind.kind);
        error.causes = vec![Cause::new(field, "FieldValueInvalid", why.to_owned())];
        error.details["causes"] = error.causes.iter().map(Cause::to_value).collect();
        error
    }

    /// Returns 422: fields of the object are invalid, each with its own cause. Returns `Ok` without causes.
    pub(crate) fn refuse(kind: &ResourceKind, name: &str, causes: &[Cause]) -> Result<(), Self> {
        if causes.is_empty() {
            return Ok(());
        }
        let messages: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        let messages = if let [only] = messages.as_slice() {
            only.clone()
        } else {
            format!("[{}]", messages.join(", "))
        };
        let named = if kind.group.is_empty() {
            kind.kind.to_string()
        } else {
            format!("{}.{}", kind.kind, kind.group)
        };
        let mut error =
            Self::new(422, "Invalid", format!("{named} \"{name}\" is invalid: {messages}")).about(kind, name);
        error.details["kind"] = json!(kind.kind);
        error.details["causes"] = causes.iter().map(Cause::to_value).collect();
        error.causes = causes.to_vec();
        Err(error)
    }

    /// Returns 400: values of the object cannot be decoded. The message is about the first one.
    pub(crate) fn undecodable(kind: &ResourceKind, why: &str, causes: Vec<Cause>) -> Self {
        let (name, version) = (&kind.kind, &kind.version);
        let message = format!("{name} in version \"{version}\" cannot be handled as a {name}: {why}");
        Self {
            causes,
            ..Self::bad_request(message)
        }
    }

    /// Returns the invalid fields: path and message of each. There are none unless the object was refused because of
    /// its fields.
    pub fn invalid_fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.causes
            .iter()
            .map(|cause| (cause.field.as_str(), cause.message.as_str()))
    }

    /// Returns 409: an apply would change fields owned by other managers.
    pub(crate) fn apply_conflict(message: String, causes: Vec<Value>) -> Self {
        let mut error = Self::new(409, "Conflict", message);
        error.details = json!({"causes": causes});
        error
    }

    /// Returns 403: the request is well-formed but not allowed.
    pub fn forbidden(kind: &ResourceKind, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.group_resource());
        Self::new(403, "Forbidden", message).about(kind, name)
    }

    /// Returns 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into())
    }

    /// Returns 401: the client is not authenticated.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized".to_owned())
    }

    /// Returns 405: the resource exists but does not support this method.
    pub fn method_not_allowed(method: &str, path: &str) -> Self {
        let message = format!("{method} is not allowed on {path}");
        Self::new(405, "MethodNotAllowed", message)
    }

    /// Returns 410: the requested resourceVersion is older than the retained history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message.into())
    }

    /// Returns 406: the server supports none of the media types that the client accepts.
    pub fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json".to_owned();
        Self::new(406, "NotAcceptable", message)
    }

    /// Returns 413: the request exceeds the size limit.
    pub fn too_large(bytes_max: usize) -> Self {
        Self::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {bytes_max}"),
        )
    }

    /// Returns 415: the content type is not supported for this resource.
    pub fn unsupported_media_type(media_type: &str, supported: &[&str]) -> Self {
        let message = format!(
            "the body has content type \"{media_type}\"; supported here: {}",
            supported.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// Returns 500: the request cannot be answered for a reason that the client did not cause.
    pub(crate) fn internal(why: &str) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {why}"))
    }

    /// Returns 501: Kubernetes supports the request, this server does not.
    pub fn not_implemented(what: &str) -> Self {
        let message = format!("{what} is not implemented by this in-process API server");
        Self::new(501, "NotImplemented", message)
    }

    /// Returns 504: the requested resourceVersion is newer than the current one.
    pub fn version_too_large(requested: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {requested}, current: {current}");
        let mut error = Self::new(504, "Timeout", message);
        error.details = json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        });
        error
    }

    /// Returns the status for an injected fault. Codes without a well-known reason become `InternalError`.
    pub fn injected(code: u16) -> Self {
        let reason = match code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Expired",
            422 => "Invalid",
            429 => "TooManyRequests",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "InternalError",
        };
        let mut error = Self::new(code, reason, format!("injected fault: status {code}"));
        if matches!(code, 429 | 503) {
            error.details = json!({"retryAfterSeconds": 1});
        }
        error
    }

    /// Returns the `metav1.Status` object.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }

    /// Returns the body of a response.
    pub fn to_bytes(&self) -> Bytes {
        Bytes::from(self.to_value().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_names_the_resource_it_is_about() {
        let kind = ResourceKind::namespaced("apps", "v1", "Deployment", "deployments");
        let status = StatusError::not_found(&kind, "web").to_value();
        assert_eq!(status["message"], "deployments.apps \"web\" not found");
        assert_eq!(
            status["details"],
            json!({"name": "web", "group": "apps", "kind": "deployments"})
        );
    }
}
