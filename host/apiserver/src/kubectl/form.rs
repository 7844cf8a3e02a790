//! Representation of objects in a response: complete, as a table, or metadata only.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::kind::ResourceKind;
use crate::kubectl::table::{Include, Tables, partial};
use crate::list::Page;
use crate::object::{ChangeType, Object, event_line};
use crate::status_error::StatusError;

/// Representation of objects.
pub(crate) enum Form {
    /// Complete objects.
    Whole,
    /// Rows of a table.
    Table(Tables),
    /// `PartialObjectMetadata`.
    Metadata,
}

impl Form {
    /// Selects the representation that the `Accept` header asks for. `include` is the query parameter
    /// `includeObject`.
    ///
    /// # Errors
    ///
    /// 406 if the client accepts only media types that this server does not support, such as protobuf.
    pub(crate) fn negotiate(
        accept: &str,
        include: &str,
        kind: &ResourceKind,
        clock: &Clock,
    ) -> Result<Self, StatusError> {
        if accept.trim().is_empty() {
            return Ok(Self::Whole);
        }
        for media in accept.split(',') {
            let mut parts = media.split(';').map(str::trim);
            if !matches!(parts.next(), Some("application/json" | "application/*" | "*/*")) {
                continue;
            }
            match parts.find_map(|part| part.strip_prefix("as=")) {
                None => return Ok(Self::Whole),
                Some("Table") => return Ok(Self::Table(Tables::new(kind, Include::parse(include), clock.clone()))),
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => return Ok(Self::Metadata),
                Some(_) => {}
            }
        }
        Err(StatusError::not_acceptable())
    }

    /// Returns the body for one object.
    pub(crate) fn one(&self, object: &Object) -> Bytes {
        match self {
            Self::Whole => object.bytes(),
            _ => Bytes::from(self.value(object).to_string()),
        }
    }

    /// Returns the body for a page of a list.
    pub(crate) fn page(&self, kind: &ResourceKind, page: &Page) -> Bytes {
        match self {
            Self::Whole => page.body(kind),
            Self::Table(tables) => Bytes::from(tables.table(&page.objects, &page.metadata()).to_string()),
            Self::Metadata => {
                let items: Vec<Value> = page
                    .objects
                    .iter()
                    .map(|object| partial(object.content().metadata()))
                    .collect();
                let list = json!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": page.metadata(),
                    "items": items,
                });
                Bytes::from(list.to_string())
            }
        }
    }

    /// Returns the watch line for an event.
    pub(crate) fn event(&self, type_: ChangeType, object: &Object) -> Bytes {
        if matches!(self, Self::Whole) {
            return event_line(type_, object);
        }
        let event = json!({"type": type_.wire_name(), "object": self.value(object)});
        Bytes::from(format!("{event}\n"))
    }

    /// Returns the content of a bookmark. `object` is the empty object with the resourceVersion.
    pub(crate) fn bookmark(&self, object: Value) -> Value {
        match self {
            Self::Whole => object,
            Self::Table(tables) => tables.table(&[], &object["metadata"]),
            Self::Metadata => partial(object["metadata"].clone()),
        }
    }

    fn value(&self, object: &Object) -> Value {
        match self {
            Self::Whole => object.content().to_value(),
            Self::Table(tables) => tables.of_one(&object.content().to_value()),
            Self::Metadata => partial(object.content().metadata()),
        }
    }
}
