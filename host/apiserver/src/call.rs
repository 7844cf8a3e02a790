//! A request for a resource and its parsed parameters.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, header};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::clock::Clock;
use crate::delete::{DeleteOptions, Propagation};
use crate::json::{array, text};
use crate::kind::ResourceKind;
use crate::kubectl::form::Form;
use crate::kubectl::schema::UnknownFields;
use crate::patch;
use crate::request::{Query, ResourceRequest, Verb};
use crate::shape::{Part, STATUS_FIELDS};
use crate::status_error::StatusError;
use crate::write::Terms;

/// Maximum length of a field manager's name, in characters.
const MANAGER_LENGTH_MAX: usize = 128;

/// [`STATUS_FIELDS`] of an object. The last one of repeated fields counts, as in a [`Value`].
struct StatusFields(Map<String, Value>);

impl<'de> Deserialize<'de> for StatusFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = StatusFields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StatusFields, A::Error> {
                let mut fields = Map::new();
                while let Some(name) = map.next_key::<String>()? {
                    if STATUS_FIELDS.contains(&name.as_str()) {
                        fields.insert(name, map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(StatusFields(fields))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// Request for a resource with everything needed to answer it.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    pub(crate) body: Bytes,
    pub(crate) resource: ResourceRequest,
}

impl Call {
    /// Returns the part of the object that the request addresses, or an error for a subresource or verb that is not
    /// served.
    pub(crate) fn part(&self, kind: &ResourceKind) -> Result<Part, StatusError> {
        let verb = self.resource.verb;
        match self.resource.subresource.as_deref() {
            None if verb == Verb::Create && self.resource.name.is_some() => Err(self.not_allowed()),
            None => Ok(Part::Main),
            Some("status") if !kind.status_subresource => Err(StatusError::unknown_path(&self.path)),
            Some("status") if matches!(verb, Verb::Get | Verb::Update | Verb::Patch) => Ok(Part::Status),
            Some("status") => Err(self.not_allowed()),
            Some("scale") if kind.is_scalable() && matches!(verb, Verb::Get | Verb::Update | Verb::Patch) => {
                Ok(Part::Main)
            }
            Some(other) => Err(StatusError::not_implemented(&format!(
                "the {other} subresource of {}",
                kind.group_resource()
            ))),
        }
    }

    fn not_allowed(&self) -> StatusError {
        StatusError::method_not_allowed(self.method.as_str(), &self.path)
    }

    /// Returns true if the request reads a collection over all namespaces, so that the path needs no namespace.
    pub(crate) fn is_over_all_namespaces(&self) -> bool {
        let reads = matches!(self.resource.verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
        reads && self.resource.name.is_none() && self.resource.namespace.is_none()
    }

    pub(crate) fn content_type(&self) -> &str {
        self.header(&header::CONTENT_TYPE)
    }

    pub(crate) fn object(&self) -> Result<Value, StatusError> {
        self.parse()
    }

    /// Returns the fields of the object that an update of its status reads, without building the rest.
    pub(crate) fn object_with_status(&self) -> Result<Value, StatusError> {
        self.parse().map(|StatusFields(fields)| Value::Object(fields))
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, StatusError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| StatusError::bad_request(format!("cannot parse the body: {error}")))
    }

    /// Returns the configuration of an apply, which may be YAML.
    pub(crate) fn configuration(&self) -> Result<Value, StatusError> {
        let configuration = serde_json::from_slice(&self.body).or_else(|_| {
            let text = std::str::from_utf8(&self.body).map_err(|error| error.to_string())?;
            serde_saphyr::from_str::<Value>(text).map_err(|error| error.to_string())
        });
        configuration.map_err(|error| StatusError::bad_request(format!("error decoding YAML: {error}")))
    }

    fn optional_body(&self) -> Result<Value, StatusError> {
        if self.body.is_empty() {
            Ok(Value::Null)
        } else {
            self.object()
        }
    }

    /// Returns the write options of the client.
    ///
    /// # Errors
    ///
    /// 400 for unsupported values, and for an apply without a field manager.
    pub(crate) fn terms(&self) -> Result<Terms, StatusError> {
        let mut dry_run = self.query.get("dryRun").to_owned();
        if dry_run.is_empty() && matches!(self.resource.verb, Verb::Delete | Verb::DeleteCollection) {
            let body = self.optional_body()?;
            array(&body, "/dryRun")
                .first()
                .and_then(Value::as_str)
                .unwrap_or_default()
                .clone_into(&mut dry_run);
        }
        if !matches!(dry_run.as_str(), "" | "All") {
            let why = format!("dryRun: Unsupported value: \"{dry_run}\": supported values: \"All\"");
            return Err(StatusError::bad_request(why));
        }
        let manager = self.query.get("fieldManager");
        let applies = self.resource.verb == Verb::Patch && patch::is_apply(self.content_type());
        if applies && manager.is_empty() {
            return Err(StatusError::bad_request(
                "fieldManager: Required value: is required for apply patch",
            ));
        }
        // As in Kubernetes, the default manager is the user agent without its version.
        let agent = self.header(&header::USER_AGENT).split('/').next().unwrap_or_default();
        let named = [manager, agent]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or("unknown");
        Ok(Terms {
            manager: named.chars().take(MANAGER_LENGTH_MAX).collect(),
            dry_run: !dry_run.is_empty(),
            applies: false,
            unknown_fields: UnknownFields::parse(self.query.get("fieldValidation"))?,
        })
    }

    /// Negotiates the representation of the response.
    pub(crate) fn form(&self, kind: &ResourceKind, clock: &Clock) -> Result<Form, StatusError> {
        Form::negotiate(
            self.header(&header::ACCEPT),
            self.query.get("includeObject"),
            kind,
            clock,
        )
    }

    fn header(&self, name: &HeaderName) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    pub(crate) fn delete_options(&self) -> Result<DeleteOptions, StatusError> {
        let body = self.optional_body()?;
        let mut options = DeleteOptions::parse(&body);
        if text(&body, "/propagationPolicy").is_empty() {
            options.propagation = Propagation::parse(self.query.get("propagationPolicy"));
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_update_of_a_status_reads_the_fields_that_it_needs() {
        let read = |text: &str| serde_json::from_str::<StatusFields>(text).map(|StatusFields(fields)| fields.into());
        let check =
            |text: &str, expected: Value| assert_eq!(read(text).unwrap_or(json!("refused")), expected, "{text}");
        check(
            r#"{"kind": "Job", "metadata": {"name": "a"}, "spec": {"x": [1]}, "status": {"failed": 1}}"#,
            json!({"kind": "Job", "metadata": {"name": "a"}, "status": {"failed": 1}}),
        );
        check(r#"{"status": {}, "status": null}"#, json!({"status": null}));
        check(r#"["v1", "Pod", {"name": "a"}, {}]"#, json!("refused"));
        check(r#"{"spec": {"x": }}"#, json!("refused"));
    }
}
