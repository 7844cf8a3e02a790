//! Cases: inputs with their expected verdicts, in YAML.
//!
//! A file has a list `cases`; a directory of cases consists of every `.yaml` and `.yml` file in it. Fields of a case:
//!
//! | field | meaning |
//! | --- | --- |
//! | `name` | sentence, unique in its file |
//! | `kind` | `health`, `cluster-taint`, `filter`, `score`, `eviction-check` or `interpret` |
//! | `operation` | `interpret` only: `InterpretReplica`, `InterpretComponent`, `ReviseReplica`, `Retain`, `InterpretStatus`, `AggregateStatus`, `InterpretDependency` |
//! | `config` | configuration to load the plugin with; without it, the plugin is used as loaded |
//! | `input` | input of the call, see below |
//! | `expect` | expected answer, see below |
//! | `budget` | `steps`: maximum cost of the answer |
//!
//! | kind | `input` | `expect` |
//! | --- | --- | --- |
//! | `health` | `object` | `health`, and optionally `reason` and `message` |
//! | `cluster-taint` | `cluster` | `taints`: a list of `{add: {key, value, effect}, reason, message}` and `{remove: {key, effect}, …}` |
//! | `filter` | `binding`, `clusters` | `clusters`: by name `fit`, `abstain`, `unfit` or `{verdict: unfit, reason, message}` |
//! | `score` | `binding`, `clusters` | `scores` by name, or `order` from best to worst, or both |
//! | `eviction-check` | `binding`, `task`, `reports` | `verdict`: `release`, `hold` or `abstain`; optionally `reason`, `message`, `recheckAfterSeconds` |
//! | `interpret` | `object`, for `ReviseReplica` with `replicas`, for `AggregateStatus` with `reports`; for `Retain` `desired` and `observed` | `result`, or `contains` for a part of it, or `noRule: true` |
//!
//! `now` in `input` is an RFC 3339 time, by default 2026-01-01T00:00:00Z. `expect` may instead be a `fault`, by kind,
//! such as `guest-error`. Bindings and clusters are written with `name`, `labels`, `spec` and `status` at the top
//! level, or as Kubernetes shows them, with `metadata`. An unknown field is an error, because it is most likely
//! misspelt.
//!
//! Files in the format of Karmada's own interpreter test data are accepted too; `karmada.rs` describes that format.

mod build;
mod expect;
mod format;
mod input;
mod karmada;
mod model;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bulkhead_core::policy::Policy;
use bulkhead_plugin::{Bounded, LoadError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::call_result::ask;
use crate::expectation::Expectation;
use crate::owned_call::OwnedCall;
use crate::report::{Check, Outcome};
use crate::subject::Subject;

/// A parsed case, ready to run.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the case.
    pub name: String,
    /// Source position: file and line.
    pub origin: String,
    /// Configuration to load the plugin with; `None` if the plugin is used as loaded.
    pub config: Option<Value>,
    /// Call of the case.
    pub call: OwnedCall,
    /// Expected answer.
    pub expected: Expectation,
    /// Maximum cost of the answer, in steps of the engine.
    pub steps_max: Option<u64>,
    /// True if the case gives an empty list of status items, which is not the same as no list for Karmada's scripts.
    pub has_empty_list: bool,
}

/// JSON Schema of a case file. A document with an `operation` at its top level is in Karmada's format.
pub struct CaseSchema;

impl JsonSchema for CaseSchema {
    fn schema_name() -> Cow<'static, str> {
        "Cases".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Test cases of a plugin or of an interpreter.",
            "type": "object",
            "if": {"required": ["operation"]},
            "then": generator.subschema_for::<karmada::Document>(),
            "else": generator.subschema_for::<format::CaseFile>(),
        })
    }
}

/// Errors in case files. Each problem names the file, the line and the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.join("\n"))]
pub struct CaseErrors {
    /// Problems; at least one.
    pub problems: Vec<String>,
}

/// Reads a case file, or every case file of a directory in order of name. Subdirectories are ignored.
pub fn read_cases(path: &Path) -> Result<Vec<Case>, CaseErrors> {
    read_cases_with(path, &mut Vec::new())
}

/// Reads cases as [`read_cases`] does, and adds what is unusual in files of Karmada's format to `warnings`, such as a
/// repeated key.
pub fn read_cases_with(path: &Path, warnings: &mut Vec<String>) -> Result<Vec<Case>, CaseErrors> {
    let problem = |error: std::io::Error| CaseErrors {
        problems: vec![format!("{}: {error}", path.display())],
    };
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(problem)? {
            let file = entry.map_err(problem)?.path();
            let extension = file.extension().and_then(|extension| extension.to_str());
            if matches!(extension, Some("yaml" | "yml")) && file.is_file() {
                files.push(file);
            }
        }
        files.sort();
        if files.is_empty() {
            let problem = format!("{}: there is no .yaml file with cases in it", path.display());
            return Err(CaseErrors {
                problems: vec![problem],
            });
        }
    } else {
        files.push(path.to_path_buf());
    }
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    for file in files {
        let origin = file.display().to_string();
        match std::fs::read_to_string(&file) {
            Ok(text) => match parse(&origin, &text, warnings) {
                Ok(read) => cases.extend(read),
                Err(error) => problems.extend(error.problems),
            },
            Err(error) => problems.push(format!("{origin}: {error}")),
        }
    }
    if problems.is_empty() {
        Ok(cases)
    } else {
        Err(CaseErrors { problems })
    }
}

/// Parses cases from the text of a file; `origin` is its name in messages.
pub fn parse_cases(origin: &str, text: &str) -> Result<Vec<Case>, CaseErrors> {
    parse(origin, text, &mut Vec::new())
}

fn parse(origin: &str, text: &str, warnings: &mut Vec<String>) -> Result<Vec<Case>, CaseErrors> {
    if karmada::is_format_of(text) {
        return karmada::cases(origin, text, warnings).map_err(|problems| CaseErrors { problems });
    }
    let file: format::CaseFile =
        bulkhead_plugin::read_document(origin, text).map_err(|error| CaseErrors { problems: vec![error] })?;
    build::cases(origin, text, file).map_err(|problems| CaseErrors { problems })
}

/// Runs every case.
pub(crate) fn run(subject: &Subject<'_>, cases: &[Case]) -> Vec<Check> {
    let mut loaded = Configured {
        subject,
        policies: BTreeMap::new(),
    };
    cases.iter().map(|case| check(&mut loaded, case)).collect()
}

/// Runs one case.
pub fn one(subject: &Subject<'_>, case: &Case) -> Check {
    check(
        &mut Configured {
            subject,
            policies: BTreeMap::new(),
        },
        case,
    )
}

fn check(loaded: &mut Configured<'_>, case: &Case) -> Check {
    let finished = |outcome, steps| Check {
        name: case.name.clone(),
        kind: Some(case.call.kind()),
        outcome,
        steps,
    };
    let at = |why: String| Outcome::failed(format!("{}: {why}", case.origin));
    let own;
    let policy = match &case.config {
        None => loaded.subject.policy(),
        Some(config) => match loaded.with(config) {
            None => return finished(Outcome::skipped("it cannot be loaded with another configuration"), 0),
            Some(Err(error)) => return finished(at(format!("does not load with {config}: {error}")), 0),
            Some(Ok(policy)) => {
                own = policy;
                &*own
            }
        },
    };
    let unanswered = case.call.with_call(|call| {
        let answers = policy.capabilities().iter().any(|capability| capability.answers(call));
        (!answers).then(|| format!("it does not answer {} calls{}", call.kind(), about(call)))
    });
    if let Some(why) = unanswered {
        return finished(at(why), 0);
    }
    let answer = ask(policy, &case.call);
    let dear = case.steps_max.filter(|most| answer.steps > *most);
    let outcome = match (case.expected.objection(&case.call, &answer.reply), dear) {
        (Some(why), _) => at(format!("\n{why}")),
        (None, Some(most)) => at(format!("took {} steps, at most {most} were expected", answer.steps)),
        (None, None) => Outcome::Passed,
    };
    finished(outcome, answer.steps)
}

/// Returns ` about v1 Pod` for calls about an object, otherwise an empty string.
fn about(call: &bulkhead_core::call::Call<'_>) -> String {
    let field = |object: &Value, name| object.get(name).and_then(Value::as_str).unwrap_or("?").to_owned();
    call.object().map_or_else(String::new, |object| {
        format!(" about {} {}", field(object, "apiVersion"), field(object, "kind"))
    })
}

/// Cache of the plugin by configuration, so that each configuration is loaded once.
struct Configured<'a> {
    subject: &'a Subject<'a>,
    policies: BTreeMap<String, Result<Arc<dyn Policy>, LoadError>>,
}

impl Configured<'_> {
    /// Returns the plugin loaded with a configuration, or `None` without a loader.
    fn with(&mut self, config: &Value) -> Option<Result<Arc<dyn Policy>, LoadError>> {
        let loader = self.subject.loader()?;
        let load = || loader(config).map(|policy| Arc::new(Bounded::new(policy)) as Arc<dyn Policy>);
        Some(self.policies.entry(config.to_string()).or_insert_with(load).clone())
    }
}
