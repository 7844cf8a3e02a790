//! Tables: the output of `kubectl get`, made by the server as in Kubernetes.
//!
//! Columns of Kubernetes' own kinds are in [`builtin`]; those of other kinds come from their definition.

mod age;
mod builtin;
mod cells;
mod stored;
mod workload;

use std::sync::Arc;

use bulkhead_core::jsonpath::Path;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::json::text;
use crate::kind::{Column, ResourceKind};
use crate::object::Object;

pub(crate) use age::since;

/// Source of the content of a cell.
enum Cell {
    /// Rule of one of Kubernetes' own kinds.
    Rule(fn(&Value, Timestamp) -> Value),
    /// Path of a custom kind, absent if it cannot be parsed, and the type of the column.
    Path(Option<Path>, String),
}

struct Heading {
    name: String,
    type_: String,
    format: &'static str,
    description: String,
    priority: i64,
    cell: Cell,
}

/// Content of a row in addition to its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    /// No object.
    None,
    /// Metadata of the object.
    Metadata,
    /// The complete object.
    Object,
}

impl Include {
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "None" => Self::None,
            "Object" => Self::Object,
            _ => Self::Metadata,
        }
    }
}

/// Builder of the tables of one kind.
pub(crate) struct Tables {
    headings: Vec<Heading>,
    include: Include,
    clock: Clock,
}

impl Tables {
    pub(crate) fn new(kind: &ResourceKind, include: Include, clock: Clock) -> Self {
        let mut headings = vec![Heading {
            name: "Name".to_owned(),
            type_: "string".to_owned(),
            format: "name",
            description: "Name of the object, unique among those of its kind in its namespace.".to_owned(),
            priority: 0,
            cell: Cell::Rule(|object, _| json!(text(object, "/metadata/name"))),
        }];
        match builtin::columns(&kind.group, &kind.kind) {
            Some(columns) => headings.extend(columns),
            None if kind.columns.is_empty() => headings.push(age_heading()),
            None => headings.extend(kind.columns.iter().map(Heading::of)),
        }
        // For events the time is more important than the name.
        if kind.group.is_empty() && kind.kind == "Event" {
            headings[0].priority = 1;
            headings.rotate_left(1);
        }
        Self {
            headings,
            include,
            clock,
        }
    }

    /// Returns a table of objects. `metadata` is that of the list.
    pub(crate) fn table(&self, objects: &[Arc<Object>], metadata: &Value) -> Value {
        let rows: Vec<Value> = objects
            .iter()
            .map(|object| self.row(&object.content().to_value()))
            .collect();
        json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": self.headings.iter().map(Heading::definition).collect::<Vec<_>>(),
            "rows": rows,
        })
    }

    /// Returns a table of one object.
    pub(crate) fn of_one(&self, object: &Value) -> Value {
        let metadata = json!({"resourceVersion": text(object, "/metadata/resourceVersion")});
        let mut table = self.table(&[], &metadata);
        table["rows"] = json!([self.row(object)]);
        table
    }

    fn row(&self, object: &Value) -> Value {
        let now = self.clock.now();
        let cells: Vec<Value> = self.headings.iter().map(|heading| heading.cell(object, now)).collect();
        let mut row = json!({"cells": cells});
        match self.include {
            Include::None => {}
            Include::Metadata => row["object"] = partial(object["metadata"].clone()),
            Include::Object => row["object"] = object.clone(),
        }
        row
    }
}

/// Returns metadata of an object as `PartialObjectMetadata`.
pub(crate) fn partial(metadata: Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

impl Heading {
    fn of(column: &Column) -> Self {
        Self {
            name: column.name.clone(),
            type_: column.type_.clone(),
            format: "",
            description: column.description.clone(),
            priority: column.priority,
            cell: Cell::Path(column.path.parse().ok(), column.type_.clone()),
        }
    }

    fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.type_,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }

    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match &self.cell {
            Cell::Rule(rule) => rule(object, now),
            Cell::Path(None, _) => Value::Null,
            Cell::Path(Some(path), type_) => path.first(object).map_or(Value::Null, |value| shown(value, type_, now)),
        }
    }
}

/// Formats a value for a column type. A value of another type is shown as text, as in Kubernetes.
fn shown(value: &Value, type_: &str, now: Timestamp) -> Value {
    match (type_, value) {
        (_, Value::Null) => Value::Null,
        ("date", Value::String(at)) => match at.parse::<Timestamp>() {
            Ok(at) => json!(since(at, now)),
            Err(_) => json!("<invalid>"),
        },
        ("integer" | "number", Value::Number(_)) | ("boolean", Value::Bool(_)) | (_, Value::String(_)) => value.clone(),
        (_, other) => json!(other.to_string()),
    }
}

fn age_heading() -> Heading {
    builtin::heading("Age", 0, |object, now| json!(age::of(object, now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_shows_what_its_path_leads_to() {
        let column = |name: &str, type_: &str, path: &str| Column {
            name: name.to_owned(),
            type_: type_.to_owned(),
            description: String::new(),
            priority: 0,
            path: path.to_owned(),
        };
        let mut kind = ResourceKind::cluster_scoped("example.io", "v1", "Widget", "widgets");
        kind.columns = vec![
            column("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
            column("Left", "integer", ".status.left"),
            column("Zones", "string", ".spec.zones"),
            column("Missing", "string", ".spec.nothing"),
            column("Age", "date", ".metadata.creationTimestamp"),
        ];
        let object = json!({
            "metadata": {"name": "w", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"zones": ["a", "b"]},
            "status": {"left": 3, "conditions": [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}]},
        });
        let now = "2026-01-01T00:02:05Z".parse().expect("a time");
        let table = Tables::new(&kind, Include::None, Clock::new(now)).of_one(&object);
        assert_eq!(
            table["rows"][0]["cells"],
            json!(["w", "True", 3, "[\"a\",\"b\"]", null, "2m5s"])
        );
        assert_eq!(table["columnDefinitions"][2]["name"], "Left");
    }
}
