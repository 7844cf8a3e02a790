//! Karmada's interpreter operations other than health.

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_core::call::{InterpretCall, Interpretation, Operation};
use bulkhead_core::model::{self, DependentObjectReference, ReplicaRequirements};
use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_core::quantity::Quantity;
use bulkhead_plugin::plain;
use serde_json::{Map, Value};
use wasmtime::component::Instance;

use super::{EDITS_MAX, MESSAGE_CHARS_MAX};
use crate::edit;
use crate::host::bindings::exports::bulkhead::policy::interpreter as contract;
use crate::host::{Document, QUANTITY_BYTES_MAX, Reports};
use crate::session::{Session, exported};

/// Returns the interpretation, or `None` if the plugin has no rule for the operation.
pub(crate) fn ask(
    session: &mut Session<'_>,
    of: &Instance,
    call: &InterpretCall<'_>,
) -> Result<Option<Interpretation>, Fault> {
    match answer(session, of, &call.operation) {
        Ok(interpretation) => Ok(Some(interpretation)),
        Err(fault) if fault.kind == FaultKind::Unsupported => Ok(None),
        Err(fault) => Err(fault),
    }
}

fn answer(session: &mut Session<'_>, of: &Instance, operation: &Operation<'_>) -> Result<Interpretation, Fault> {
    let guest = exported(session.code.exports.interpreter.as_ref())?.load(&mut session.store, of);
    let guest = session.loaded(guest)?;
    let template = session.lend(Document::from(Arc::clone(operation.object())))?;
    match operation {
        Operation::Replicas { .. } => {
            let returned = guest.call_interpret_replicas(&mut session.store, template);
            let returned = session.answered(returned)?;
            let requirements = returned.requirements.map(requirements).transpose()?;
            Ok(Interpretation::Replicas {
                replicas: replicas(returned.count)?,
                requirements,
            })
        }
        Operation::Components { .. } => {
            let returned = guest.call_interpret_components(&mut session.store, template);
            let components = session.answered(returned)?.into_iter().map(component);
            Ok(Interpretation::Components(components.collect::<Result<_, _>>()?))
        }
        Operation::Revise { object, replicas } => {
            let beyond = |_| Fault::new(FaultKind::HostBug, format!("{replicas} replicas are beyond 32 bits"));
            let replicas = i32::try_from(*replicas).map_err(beyond)?;
            let edits = guest.call_revise_replicas(&mut session.store, template, replicas);
            let edits = session.answered(edits)?;
            edited(session, object, edits)
        }
        Operation::Retain { desired, observed } => {
            let observed = session.lend(Document::from(Arc::clone(observed)))?;
            let edits = guest.call_retain(&mut session.store, template, observed);
            let edits = session.answered(edits)?;
            edited(session, desired, edits)
        }
        Operation::ReflectStatus { .. } => {
            let returned = guest.call_reflect_status(&mut session.store, template);
            let status = session.answered(returned)?.map(|text| json(&text, "the status"));
            Ok(Interpretation::Status(status.transpose()?))
        }
        Operation::AggregateStatus { object, items } => {
            let reports = session.lend(Reports::new((*items).into()))?;
            let edits = guest.call_aggregate_status(&mut session.store, template, reports);
            let edits = session.answered(edits)?;
            edited(session, object, edits)
        }
        Operation::Dependencies { .. } => {
            let returned = guest.call_interpret_dependencies(&mut session.store, template);
            let dependencies = session.answered(returned)?.into_iter().map(dependency);
            Ok(Interpretation::Dependencies(dependencies.collect::<Result<_, _>>()?))
        }
    }
}

/// Returns a fault for an invalid reply. The message contains names and pointers of the guest, so it is truncated.
fn bad(message: impl AsRef<str>) -> Fault {
    Fault::new(FaultKind::BadReply, plain(message.as_ref(), MESSAGE_CHARS_MAX))
}

fn json(text: &str, what: &str) -> Result<Value, Fault> {
    serde_json::from_str(text).map_err(|error| bad(format!("{what} is not JSON: {error}")))
}

fn edited(session: &Session<'_>, object: &Value, edits: Vec<contract::Edit>) -> Result<Interpretation, Fault> {
    if edits.len() > EDITS_MAX {
        return Err(bad(format!("{} edits, at most {EDITS_MAX} are allowed", edits.len())));
    }
    let mut edited = object.clone();
    for change in edits {
        session.in_time()?;
        match change {
            contract::Edit::Set(assignment) => {
                let value = json(
                    &assignment.json,
                    &format!("the value for {:?}", edit::shown(&assignment.pointer)),
                )?;
                edit::set(&mut edited, &assignment.pointer, value).map_err(|error| bad(error.to_string()))?;
            }
            contract::Edit::Remove(pointer) => {
                edit::remove(&mut edited, &pointer).map_err(|error| bad(error.to_string()))?;
            }
        }
    }
    Ok(Interpretation::Object(edited))
}

fn replicas(count: i32) -> Result<i32, Fault> {
    if count < 0 {
        Err(bad(format!("{count} replicas; must be 0 or more")))
    } else {
        Ok(count)
    }
}

fn requirements(returned: contract::ReplicaRequirements) -> Result<ReplicaRequirements, Fault> {
    let mut resource_request = BTreeMap::new();
    for (name, text) in returned.requests {
        if text.len() > QUANTITY_BYTES_MAX {
            let (name, bytes) = (edit::shown(&name), text.len());
            return Err(bad(format!(
                "the request of {name} has {bytes} bytes; a quantity has at most {QUANTITY_BYTES_MAX}"
            )));
        }
        let quantity: Result<Quantity, _> = text.parse();
        let quantity = quantity.map_err(|error| bad(format!("the request of {}: {error}", edit::shown(&name))))?;
        resource_request.insert(name, quantity.to_string());
    }
    let mut rest = BTreeMap::new();
    if let Some(claim) = returned.node_claim {
        let claim = json(&claim, "the node claim")?;
        let claim: Map<String, Value> =
            serde_json::from_value(claim).map_err(|error| bad(format!("the node claim is not a map: {error}")))?;
        rest.insert("nodeClaim".to_owned(), Value::Object(claim));
    }
    let texts = [
        ("namespace", returned.namespace),
        ("priorityClassName", returned.priority_class_name),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(name, text)| Some((name.to_owned(), Value::String(text?))));
    rest.extend(texts);
    Ok(ReplicaRequirements { resource_request, rest })
}

fn component(returned: contract::Component) -> Result<model::Component, Fault> {
    Ok(model::Component {
        name: returned.name,
        replicas: replicas(returned.replicas)?,
        replica_requirements: returned.requirements.map(requirements).transpose()?,
    })
}

fn dependency(returned: contract::Dependency) -> Result<DependentObjectReference, Fault> {
    let contract::Dependency {
        api_version,
        kind,
        namespace,
        name,
        label_selector,
    } = returned;
    if api_version.is_empty() || kind.is_empty() {
        return Err(bad("a dependency without apiVersion or kind"));
    }
    if name.is_some() == label_selector.is_some() {
        return Err(bad(format!(
            "a dependency on a {kind} needs either a name or a label selector"
        )));
    }
    let selector = label_selector.map(|text| json(&text, "a label selector")).transpose()?;
    let selector = selector.map(serde_json::from_value).transpose();
    let label_selector = selector.map_err(|error| bad(format!("a label selector of a {kind}: {error}")))?;
    Ok(DependentObjectReference {
        api_version,
        kind,
        namespace,
        name: name.unwrap_or_default(),
        label_selector,
    })
}
