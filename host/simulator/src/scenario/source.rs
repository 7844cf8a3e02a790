//! Texts that a scenario consists of, with the positions of their values, and the origin of each object in them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bulkhead_plugin::{Position, Positions, limits_of_files};

/// Text of the scenario or of a manifest file.
#[derive(Debug)]
pub(super) struct Source {
    name: String,
    text: String,
    positions: OnceLock<Positions>,
}

impl Source {
    pub(super) fn new(name: String, text: String) -> Arc<Self> {
        Arc::new(Self {
            name,
            text,
            positions: OnceLock::new(),
        })
    }

    /// Returns the name of the file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns `file:line:column` of the value at a path in a document; the file if it has no position.
    pub(super) fn value(&self, document: usize, path: &str) -> String {
        self.at(self.positions().value(document, path))
    }

    /// Returns `file:line:column` of the key of a field in a document; the file if it has no position.
    fn key(&self, document: usize, path: &str) -> String {
        self.at(self.positions().key(document, path))
    }

    fn at(&self, position: Option<Position>) -> String {
        position.map_or_else(|| self.name.clone(), |at| format!("{}:{at}", self.name))
    }

    /// Parses the text once, and only if a position is needed.
    fn positions(&self) -> &Positions {
        self.positions
            .get_or_init(|| Positions::read(&self.text, &limits_of_files()))
    }
}

/// Origin of an object, for messages.
#[derive(Clone, Debug)]
pub struct ObjectOrigin {
    part: Part,
    /// Kind and name of the object; empty if it has neither.
    about: String,
}

#[derive(Clone, Debug)]
enum Part {
    /// Document of a file, counted from 0.
    Document(Arc<Source>, usize),
    /// Value of the scenario, with its path.
    Field(Arc<Source>, String),
    /// Object that no file contains.
    Generated,
}

impl ObjectOrigin {
    /// Returns the origin of a document of a file, counted from 0.
    pub(super) fn document(source: &Arc<Source>, index: usize) -> Self {
        Self {
            part: Part::Document(Arc::clone(source), index),
            about: String::new(),
        }
    }

    /// Returns the origin of an object within a scenario, at a path such as `manifests[0].objects[1]`.
    pub(super) fn field(source: &Arc<Source>, path: String) -> Self {
        Self {
            part: Part::Field(Arc::clone(source), path),
            about: String::new(),
        }
    }

    /// Returns the origin of an object that no file contains, with its description.
    pub(crate) fn generated(about: impl Into<String>) -> Self {
        Self {
            part: Part::Generated,
            about: about.into(),
        }
    }

    /// Adds kind and name of the object.
    pub(super) fn about(self, kind: &str, name: &str) -> Self {
        let about = format!("{kind} {name}").trim().to_owned();
        Self { about, ..self }
    }

    /// Formats a message about a field of the object: `web.yaml:6:13: Deployment web: spec.replicas: message`, at the
    /// value of the field, or at the innermost value that would contain it. An empty path means the object.
    pub(crate) fn problem(&self, path: &str, message: impl fmt::Display) -> String {
        let place = match &self.part {
            Part::Document(source, index) => source.value(*index, path),
            Part::Field(source, object) => source.value(0, &within(object, path)),
            Part::Generated => String::new(),
        };
        self.message(place, path, &message)
    }

    /// Formats a message about a field, at its key.
    pub(super) fn problem_at_key(&self, path: &str, message: impl fmt::Display) -> String {
        let place = match &self.part {
            Part::Document(source, index) => source.key(*index, path),
            Part::Field(source, object) => source.key(0, &within(object, path)),
            Part::Generated => String::new(),
        };
        self.message(place, path, &message)
    }

    fn message(&self, place: String, path: &str, message: &dyn fmt::Display) -> String {
        let object = match &self.part {
            Part::Field(_, path) => path.as_str(),
            Part::Document(..) | Part::Generated => "",
        };
        let words = [place.as_str(), object, &self.about, path].into_iter();
        let mut text = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(": ");
        text.push_str(": ");
        text.push_str(&message.to_string());
        text
    }
}

/// Joins the path of an object and a path within it.
fn within(object: &str, path: &str) -> String {
    if path.is_empty() {
        object.to_owned()
    } else {
        format!("{object}.{path}")
    }
}
