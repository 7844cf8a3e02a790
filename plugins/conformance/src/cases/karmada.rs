//! Cases in the format of Karmada's own test data for interpreters: a stream of YAML documents.
//!
//! | key | meaning |
//! | --- | --- |
//! | `name`, `description` | free text |
//! | `operation` | operation, case-insensitive |
//! | `desiredObj`, `observedObj` | objects; an operation on one object takes either of them |
//! | `statusItems` | `AggregateStatus` only: statuses reported by the member clusters |
//! | `inputReplicas` | `ReviseReplica` only: desired replicas |
//! | `output` | expected results by name: `retained`, `replica`, `requires`, `components`, `revised`, `status`, `aggregatedStatus`, `healthy`, `dependencies`; Bulkhead adds `health`, `reason`, `message` |
//! | `fault` | Bulkhead only: the expected kind of fault |
//!
//! Results that `output` does not name are not compared. The order of dependencies and components is ignored,
//! quantities are compared by value, and the text `{{EXCLUDE}}` matches any value or none. (Karmada:
//! `pkg/resourceinterpreter/default/thirdparty/thirdparty_test.go`.)

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_core::model::AggregatedStatusItem;
use bulkhead_core::policy::FaultKind;
use bulkhead_core::time::Time;
use bulkhead_plugin::{Position, limits_of_files, read_documents};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::Case;
use super::build::position_of;
use crate::expectation::Expectation;
use crate::outputs::{NAMES, Outputs};
use crate::owned_call::{NOW, OwnedCall, Request};

/// All operations, in Karmada's spelling.
const OPERATIONS: [&str; 8] = [
    "InterpretHealth",
    "InterpretReplica",
    "InterpretComponent",
    "ReviseReplica",
    "Retain",
    "InterpretStatus",
    "AggregateStatus",
    "InterpretDependency",
];

/// One YAML document of the stream.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "KarmadaCase")]
pub(super) struct Document {
    /// Name of the case.
    #[schemars(with = "String")]
    name: Spanned<String>,
    /// Description of the case.
    #[serde(default, rename = "description")]
    _description: Option<String>,
    /// Operation of the interpreter.
    #[schemars(with = "String", extend("enum" = OPERATIONS))]
    operation: Spanned<String>,
    /// Object of the control plane.
    #[schemars(with = "Option<Map<String, Value>>")]
    desired_obj: Option<Spanned<Value>>,
    /// Object of a member cluster.
    #[schemars(with = "Option<Map<String, Value>>")]
    observed_obj: Option<Spanned<Value>>,
    /// Statuses that the member clusters reported, for `AggregateStatus`.
    #[schemars(with = "Option<Vec<AggregatedStatusItem>>")]
    status_items: Option<Spanned<Vec<AggregatedStatusItem>>>,
    /// Desired replicas, for `ReviseReplica`.
    #[schemars(with = "Option<i32>")]
    input_replicas: Option<Spanned<i32>>,
    /// Expected results by name.
    #[schemars(with = "Option<Map<String, Value>>", extend("propertyNames" = {"enum": NAMES}))]
    output: Option<Spanned<BTreeMap<String, Value>>>,
    /// Fault in place of a result.
    #[schemars(with = "Option<FaultKind>")]
    fault: Option<Spanned<FaultKind>>,
}

/// True if a text is in Karmada's format: one of its documents has a top-level `operation`.
pub(super) fn is_format_of(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("operation:"))
}

/// Returns the cases of a file, or everything that is wrong with it.
pub(super) fn cases(origin: &str, text: &str, warnings: &mut Vec<String>) -> Result<Vec<Case>, Vec<String>> {
    let read = read_documents::<Option<Document>>(origin, text, &limits_of_files()).map_err(|error| vec![error])?;
    warnings.extend(read.warnings.iter().map(|warning| format!("{origin}: {warning}")));
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    for document in read.documents.into_iter().flatten() {
        match case(origin, &document) {
            Ok(case) => cases.push(case),
            Err((at, field, message)) => problems.push(format!("{origin}:{at}: {field}: {message}")),
        }
    }
    if problems.is_empty() { Ok(cases) } else { Err(problems) }
}

/// Position, field and message.
type Problem = (Position, &'static str, String);

fn case(origin: &str, document: &Document) -> Result<Case, Problem> {
    let at = position_of(&document.name);
    let request = request(document)?;
    let expected = match (&document.output, &document.fault) {
        (Some(output), None) => {
            let named = Outputs::named(&output.value).map_err(|message| (position_of(output), "output", message))?;
            Expectation::Outputs(named)
        }
        (None, Some(fault)) => Expectation::Fault(fault.value),
        (None, None) => return Err((at, "output", "is missing; without it nothing is expected".to_owned())),
        (Some(_), Some(fault)) => {
            return Err((
                position_of(fault),
                "fault",
                "is the whole answer, there can be no output beside it".to_owned(),
            ));
        }
    };
    let call = OwnedCall {
        request,
        now: Time::from_millis(NOW),
    };
    let origin = format!("{origin}:{}", at.line);
    let has_empty_list = document
        .status_items
        .as_ref()
        .is_some_and(|items| items.value.is_empty());
    let name = document.name.value.clone();
    Ok(Case {
        name,
        origin,
        config: None,
        call,
        expected,
        steps_max: None,
        has_empty_list,
    })
}

fn request(document: &Document) -> Result<Request, Problem> {
    let operation = document.operation.value.to_ascii_lowercase();
    Ok(match operation.as_str() {
        "interprethealth" => Request::Health(only(document)?),
        "interpretreplica" => Request::Replicas(only(document)?),
        "interpretcomponent" => Request::Components(only(document)?),
        "interpretstatus" => Request::ReflectStatus(only(document)?),
        "interpretdependency" => Request::Dependencies(only(document)?),
        "revisereplica" => {
            let replicas = document.input_replicas.as_ref();
            let replicas = replicas.ok_or_else(|| missing(document, "inputReplicas"))?;
            Request::Revise(only(document)?, replicas.value)
        }
        "aggregatestatus" => {
            let items = document.status_items.as_ref().map(|items| items.value.clone());
            Request::AggregateStatus(only(document)?, items.unwrap_or_default())
        }
        "retain" => {
            let object = |given: &Option<Spanned<Value>>, field| {
                given
                    .as_ref()
                    .map(|object| Arc::new(object.value.clone()))
                    .ok_or_else(|| missing(document, field))
            };
            Request::Retain(
                object(&document.desired_obj, "desiredObj")?,
                object(&document.observed_obj, "observedObj")?,
            )
        }
        _ => {
            let message = format!(
                "there is no {:?}; there are {}",
                document.operation.value,
                OPERATIONS.join(", ")
            );
            return Err((position_of(&document.operation), "operation", message));
        }
    })
}

fn missing(document: &Document, field: &'static str) -> Problem {
    (
        position_of(&document.operation),
        field,
        format!("is missing; {} needs it", document.operation.value),
    )
}

/// Returns the object of an operation that takes a single object.
fn only(document: &Document) -> Result<Arc<Value>, Problem> {
    match (&document.desired_obj, &document.observed_obj) {
        (Some(object), None) | (None, Some(object)) => Ok(Arc::new(object.value.clone())),
        (None, None) => Err(missing(document, "desiredObj or observedObj")),
        (Some(_), Some(observed)) => {
            let message = format!(
                "{} is about one object; leave out one of the two",
                document.operation.value
            );
            Err((position_of(observed), "observedObj", message))
        }
    }
}
