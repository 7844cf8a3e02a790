//! Collections: filtering, paging, and the list body assembled from cached bytes.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::kind::{KindId, ResourceKind};
use crate::object::Object;
use crate::request::Query;
use crate::selector::Selector;
use crate::state::State;
use crate::status_error::StatusError;

/// Parameters of a list request.
#[derive(Clone, Debug)]
pub(crate) struct ListRequest {
    pub(crate) kind: KindId,
    pub(crate) namespace: Option<String>,
    pub(crate) selector: Selector,
    limit: Option<usize>,
    position: Option<Position>,
    resource_version: Option<u64>,
    wants_exact_version: bool,
}

/// Start of the next page: after this object, in a list that began at this version.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Position {
    resource_version: u64,
    namespace: String,
    name: String,
}

impl Position {
    /// Returns the continue token. It is opaque to clients; names cannot contain a slash.
    fn token(&self) -> String {
        format!("{}/{}/{}", self.resource_version, self.namespace, self.name)
    }

    fn parse(token: &str) -> Result<Self, StatusError> {
        let mut parts = token.splitn(3, '/');
        let position = (|| {
            Some(Self {
                resource_version: parts.next()?.parse().ok()?,
                namespace: parts.next()?.to_owned(),
                name: parts.next()?.to_owned(),
            })
        })();
        position.ok_or_else(|| StatusError::bad_request("continue key is not valid"))
    }
}

/// One page of a list.
pub(crate) struct Page {
    pub(crate) objects: Vec<Arc<Object>>,
    resource_version: u64,
    next: Option<Position>,
}

impl ListRequest {
    pub(crate) fn parse(
        id: KindId,
        kind: &ResourceKind,
        namespace: Option<&str>,
        query: &Query,
    ) -> Result<Self, StatusError> {
        Ok(Self {
            kind: id,
            namespace: namespace.map(str::to_owned),
            selector: Selector::of(kind, query.get("labelSelector"), query.get("fieldSelector"))?,
            limit: query
                .number("limit")?
                .filter(|&limit| limit > 0)
                .map(|limit| limit as usize),
            position: match query.get("continue") {
                "" => None,
                token => Some(Position::parse(token)?),
            },
            resource_version: query.number("resourceVersion")?,
            wants_exact_version: query.get("resourceVersionMatch") == "Exact",
        })
    }

    /// Reads one page.
    ///
    /// All pages carry the version of the first page. A watch from that version reports every change made while the
    /// pages were read, so the reader converges even though later pages show newer objects.
    pub(crate) fn page(&self, state: &State) -> Result<Page, StatusError> {
        let table = state.table(self.kind);
        self.check_version(state, table.history.dropped())?;
        let after = self
            .position
            .as_ref()
            .map(|position| (position.namespace.as_str(), position.name.as_str()));
        let mut matching = table
            .scan(self.namespace.as_deref(), after)
            .filter(|object| self.selector.is_empty() || self.selector.matches(object.content()))
            .cloned();
        let resource_version = self
            .position
            .as_ref()
            .map_or(state.version, |position| position.resource_version);
        let Some(limit) = self.limit else {
            return Ok(Page {
                objects: matching.collect(),
                resource_version,
                next: None,
            });
        };
        let objects: Vec<_> = matching.by_ref().take(limit).collect();
        let next = matching.next().and_then(|_| objects.last()).map(|last| Position {
            resource_version,
            namespace: last.namespace().to_owned(),
            name: last.name().to_owned(),
        });
        Ok(Page {
            objects,
            resource_version,
            next,
        })
    }

    fn check_version(&self, state: &State, dropped: u64) -> Result<(), StatusError> {
        if let Some(position) = &self.position
            && position.resource_version < dropped
        {
            return Err(StatusError::expired(
                "The provided continue parameter is too old to display a consistent list result",
            ));
        }
        match self.resource_version {
            Some(version) if version > state.version => Err(StatusError::version_too_large(version, state.version)),
            Some(version) if self.wants_exact_version && version != state.version => Err(StatusError::expired(
                format!("The resourceVersion for the provided list is too old: {version}"),
            )),
            _ => Ok(()),
        }
    }
}

impl Page {
    /// Returns the metadata of the list.
    pub(crate) fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.resource_version.to_string()});
        if let Some(next) = &self.next {
            metadata["continue"] = json!(next.token());
        }
        metadata
    }

    /// Returns the body of the list.
    pub(crate) fn body(&self, kind: &ResourceKind) -> Bytes {
        let metadata = self.metadata();
        let items: Vec<Bytes> = self.objects.iter().map(|object| object.bytes()).collect();
        let items_bytes: usize = items.iter().map(|item| item.len() + 1).sum();
        let head = format!(
            "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
            kind.kind,
            kind.api_version()
        );
        let mut body = Vec::with_capacity(head.len() + items_bytes + 2);
        body.extend_from_slice(head.as_bytes());
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            body.extend_from_slice(item);
        }
        body.extend_from_slice(b"]}");
        Bytes::from(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continue_token_survives_the_round_trip() {
        let position = Position {
            resource_version: 12,
            namespace: String::new(),
            name: "system:node".to_owned(),
        };
        assert_eq!(Position::parse(&position.token()), Ok(position));
        assert_eq!(Position::parse("nonsense").expect_err("no token").code, 400);
    }
}
