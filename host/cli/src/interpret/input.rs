//! Input objects of an operation.

use std::fmt::Display;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use bulkhead_api::decode::decode;
use bulkhead_conformance::Request;
use bulkhead_core::model::AggregatedStatusItem;
use bulkhead_core::time::Time;
use bulkhead_plugin::{Positions, limits_of_files, read_documents};
use clap::Args;
use serde_json::Value;

use super::OperationName;

/// File name that stands for standard input.
pub(super) const STDIN: &str = "-";

/// Time that scripts see without --now.
const DEFAULT_NOW: &str = "2026-01-01T00:00:00Z";

/// Input objects in YAML or JSON; - is standard input.
#[derive(Args)]
#[command(next_help_heading = "Objects")]
pub(super) struct Files {
    /// Object in the control plane.
    #[arg(long, value_name = "FILE")]
    desired_file: Option<PathBuf>,

    /// Object in a member cluster.
    #[arg(long, value_name = "FILE")]
    observed_file: Option<PathBuf>,

    /// Status items reported by member clusters, for AggregateStatus; one YAML document each.
    #[arg(long, value_name = "FILE")]
    status_file: Option<PathBuf>,

    /// New number of replicas, for ReviseReplica.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, default_value_t = 0,
          value_parser = clap::value_parser!(i32).range(0..))]
    desired_replica: i32,

    /// Current time as seen by scripts.
    #[arg(long, value_name = "TIME", default_value = DEFAULT_NOW)]
    now: String,
}

impl Files {
    pub(super) fn now(&self) -> anyhow::Result<Time> {
        serde_json::from_value(Value::String(self.now.clone())).with_context(|| {
            format!(
                "--now {:?} is not an RFC 3339 time, such as 2026-01-01T00:00:00Z",
                self.now
            )
        })
    }

    /// Returns true if the time is the one without --now.
    pub(super) fn has_default_now(&self) -> bool {
        self.now == DEFAULT_NOW
    }

    /// Builds the request of an operation from the input files.
    pub(super) fn request(&self, operation: OperationName) -> anyhow::Result<Request> {
        let stdin = |file: &Option<PathBuf>| file.as_deref() == Some(Path::new(STDIN));
        if [&self.desired_file, &self.observed_file, &self.status_file]
            .into_iter()
            .filter(|file| stdin(file))
            .count()
            > 1
        {
            bail!("standard input can be only one of the files");
        }
        Ok(match operation {
            OperationName::InterpretHealth => Request::Health(self.only(operation)?),
            OperationName::InterpretReplica => Request::Replicas(self.only(operation)?),
            OperationName::InterpretComponent => Request::Components(self.only(operation)?),
            OperationName::InterpretStatus => Request::ReflectStatus(self.only(operation)?),
            OperationName::InterpretDependency => Request::Dependencies(self.only(operation)?),
            OperationName::ReviseReplica => Request::Revise(self.only(operation)?, self.desired_replica),
            OperationName::AggregateStatus => Request::AggregateStatus(self.only(operation)?, self.status_items()?),
            OperationName::Retain => match (&self.desired_file, &self.observed_file) {
                (Some(desired), Some(observed)) => Request::Retain(object(desired)?, object(observed)?),
                _ => bail!("Retain needs both --desired-file and --observed-file"),
            },
        })
    }

    /// Returns the input object of an operation that takes one object.
    fn only(&self, operation: OperationName) -> anyhow::Result<Arc<Value>> {
        match (&self.desired_file, &self.observed_file) {
            (Some(file), None) | (None, Some(file)) => object(file),
            (None, None) => bail!("{operation:?} needs --desired-file or --observed-file"),
            (Some(_), Some(_)) => {
                bail!("{operation:?} is about one object; leave out one of --desired-file and --observed-file")
            }
        }
    }

    fn status_items(&self) -> anyhow::Result<Vec<AggregatedStatusItem>> {
        let Some(file) = &self.status_file else {
            return Ok(Vec::new());
        };
        let source = Source::read(file)?;
        let item = |(index, (document, item)): (usize, &(usize, Value))| {
            let about = format!("status item {}", index + 1);
            if item.is_array() {
                let message = format!("{about} is a list; each item is a document of its own");
                return Err(source.problem(*document, "", message));
            }
            decode::<AggregatedStatusItem>(item).map_err(|error| {
                let words = [about.as_str(), &error.path, &error.message];
                let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
                source.problem(*document, &error.path, words.join(": "))
            })
        };
        source.documents.iter().enumerate().map(item).collect()
    }
}

/// Reads a file, or standard input for [`STDIN`].
pub(super) fn read(file: &Path) -> anyhow::Result<String> {
    if file == Path::new(STDIN) {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("reading standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}

/// File of documents.
struct Source {
    name: String,
    text: String,
    /// Documents that are not empty, each with its number in the file, from 0.
    documents: Vec<(usize, Value)>,
}

impl Source {
    /// Reads a file. Prints a warning for YAML that only other programs accept.
    fn read(file: &Path) -> anyhow::Result<Self> {
        let (name, text) = (file.display().to_string(), read(file)?);
        let read = read_documents::<Value>(&name, &text, &limits_of_files()).map_err(anyhow::Error::msg)?;
        for warning in &read.warnings {
            writeln!(anstream::stderr(), "warning: {name}: {warning}")?;
        }
        let numbered = read.documents.into_iter().enumerate();
        let documents = numbered.filter(|(_, document)| !document.is_null()).collect();
        Ok(Self { name, text, documents })
    }

    /// Returns an error about the value at a path in a document, with file, line and column. The text is parsed again
    /// for the position.
    fn problem(&self, document: usize, path: &str, message: impl Display) -> anyhow::Error {
        let position = Positions::read(&self.text, &limits_of_files()).value(document, path);
        let place = position.map_or_else(String::new, |at| format!(":{at}"));
        anyhow!("{}{place}: {message}", self.name)
    }
}

fn object(file: &Path) -> anyhow::Result<Arc<Value>> {
    let mut source = Source::read(file)?;
    if let Some((second, _)) = source.documents.get(1) {
        return Err(source.problem(*second, "", "a second document; the file must contain one object"));
    }
    let Some((document, object)) = source.documents.pop() else {
        bail!("{} must contain one object", file.display());
    };
    for field in ["apiVersion", "kind"] {
        let message = match object.get(field) {
            Some(Value::String(text)) if !text.is_empty() => continue,
            None | Some(Value::Null | Value::String(_)) => format!("not an object: {field} is missing"),
            Some(other) => format!("{field}: {other} is not a string"),
        };
        return Err(source.problem(document, field, message));
    }
    Ok(Arc::new(object))
}
