//! Karmada's native interpreter operations other than health, as one policy.

use bulkhead_core::call::{Call, CallKind, Interpretation, Operation, Reply};
use bulkhead_core::model::AggregatedStatusItem;
use bulkhead_core::pod::Detail;
use bulkhead_core::policy::{Capability, Fault, FaultKind, Policy, PolicyId};
use serde_json::Value;

use crate::aggregate::{self, Aggregated};
use crate::{dependencies, not_asked, reflect, replicas, retain};
use bulkhead_core::shape::Malformed;
use bulkhead_core::time::Time;

/// Karmada's native rules. (Karmada: `pkg/resourceinterpreter/default/native`.)
///
/// It answers for every kind of object, because the whole status of an unknown kind is collected. Without a rule the
/// reply is `Interpret(None)`. A malformed object is a fault, as it is an error in Karmada.
pub struct NativeInterpreter {
    id: PolicyId,
    capabilities: Vec<Capability>,
    detail: Detail,
    has_empty_lists: bool,
}

impl NativeInterpreter {
    /// Creates the policy with the given detail about pods.
    pub fn new(detail: Detail) -> Self {
        let capabilities = vec![Capability::any(CallKind::Interpret)];
        Self {
            id: PolicyId::builtin("NativeInterpreter"),
            capabilities,
            detail,
            has_empty_lists: false,
        }
    }

    /// Takes an empty list of status items for a list. By default it is a missing one, since an API server never
    /// returns an empty one. Karmada's rules distinguish them for Pods, whose status an empty list resets.
    #[must_use]
    pub fn with_empty_lists(self) -> Self {
        Self {
            has_empty_lists: true,
            ..self
        }
    }
}

impl Default for NativeInterpreter {
    fn default() -> Self {
        Self::new(Detail::Plain)
    }
}

impl Policy for NativeInterpreter {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let Call::Interpret(interpret) = call else {
            return Err(not_asked(&self.id, call));
        };
        let operation = &interpret.operation;
        let kind = kind_of(operation.object());
        let interpretation = match *operation {
            Operation::Replicas { object } => replicas::interpret(kind, object, self.detail),
            Operation::Revise { object, replicas } => replicas::revise(kind, object, replicas).map(as_object),
            Operation::ReflectStatus { object } => {
                reflect::status(kind, object).map(|status| Some(Interpretation::Status(status)))
            }
            Operation::AggregateStatus { object, items } => {
                let items = Some(items).filter(|items| self.has_empty_lists || !items.is_empty());
                aggregate_status(kind, object, items, interpret.now).map(as_object)
            }
            Operation::Retain { desired, observed } => retain::retain(kind, desired, observed).map(as_object),
            Operation::Dependencies { object } => {
                dependencies::dependencies(kind, object).map(|found| found.map(Interpretation::Dependencies))
            }
            // None of Karmada's native kinds has several pod templates.
            Operation::Components { .. } => Ok(None),
        };
        let fault = |error: Malformed| Fault::new(FaultKind::GuestError, format!("{}: {error}", operation.name()));
        interpretation.map(Reply::Interpret).map_err(fault)
    }
}

fn kind_of(object: &Value) -> (&str, &str) {
    let field = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
    (field("apiVersion"), field("kind"))
}

fn as_object(object: Option<Value>) -> Option<Interpretation> {
    object.map(Interpretation::Object)
}

/// Returns the object with a new status. Karmada sends it through a typed struct, which drops unknown fields and adds
/// empty ones. The difference has no effect, since only the status is written.
fn aggregate_status(
    kind: (&str, &str),
    object: &Value,
    items: Option<&[AggregatedStatusItem]>,
    now: Time,
) -> Result<Option<Value>, Malformed> {
    let mut aggregated = object.clone();
    match (aggregate::status(kind, object, items, now)?, aggregated.as_object_mut()) {
        (Aggregated::NoRule, _) => return Ok(None),
        (Aggregated::Status(status), Some(members)) => {
            members.insert("status".to_owned(), status);
        }
        (Aggregated::Status(_), None) | (Aggregated::Unchanged, _) => {}
    }
    Ok(Some(aggregated))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bulkhead_core::call::InterpretCall;
    use serde_json::json;

    use super::*;

    fn ask(operation: Operation<'_>) -> Result<Reply, FaultKind> {
        let call = Call::Interpret(InterpretCall {
            operation,
            now: Time::from_millis(0),
        });
        NativeInterpreter::default().call(&call).map_err(|fault| fault.kind)
    }

    #[test]
    fn kinds_without_a_rule_get_no_answer_but_for_their_status() {
        let object = Arc::new(json!({"apiVersion": "example.io/v1", "kind": "Widget", "status": {"ok": true}}));
        assert_eq!(ask(Operation::Replicas { object: &object }), Ok(Reply::Interpret(None)));
        assert_eq!(
            ask(Operation::Revise {
                object: &object,
                replicas: 1
            }),
            Ok(Reply::Interpret(None))
        );
        assert_eq!(
            ask(Operation::AggregateStatus {
                object: &object,
                items: &[]
            }),
            Ok(Reply::Interpret(None))
        );
        let status = Interpretation::Status(Some(json!({"ok": true})));
        assert_eq!(
            ask(Operation::ReflectStatus { object: &object }),
            Ok(Reply::Interpret(Some(status)))
        );
    }

    #[test]
    fn a_malformed_object_is_a_fault_that_names_the_operation() {
        let object = Arc::new(json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": "3"}}));
        let operation = Operation::Replicas { object: &object };
        let call = Call::Interpret(InterpretCall {
            operation,
            now: Time::from_millis(0),
        });
        let fault = NativeInterpreter::default().call(&call).err();
        let message = "InterpretReplica: spec.replicas is a string, not an integer";
        assert_eq!(fault, Some(Fault::new(FaultKind::GuestError, message)));
    }

    #[test]
    fn an_empty_list_resets_the_status_of_a_pod_if_it_is_not_a_missing_one() {
        let object = Arc::new(json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"}}));
        let operation = || Operation::AggregateStatus {
            object: &object,
            items: &[],
        };
        let kept = Interpretation::Object(Value::clone(&object));
        assert_eq!(ask(operation()), Ok(Reply::Interpret(Some(kept))));
        let call = Call::Interpret(InterpretCall {
            operation: operation(),
            now: Time::from_millis(0),
        });
        let reply = NativeInterpreter::default().with_empty_lists().call(&call);
        let reset = json!({"apiVersion": "v1", "kind": "Pod", "status": {}});
        assert_eq!(reply, Ok(Reply::Interpret(Some(Interpretation::Object(reset)))));
    }

    #[test]
    fn aggregation_leaves_the_rest_of_the_object_alone() {
        let object = Arc::new(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {"unknown": []}}));
        let mut expected = Value::clone(&object);
        expected["status"] = json!({"phase": "Bound"});
        let actual = ask(Operation::AggregateStatus {
            object: &object,
            items: &[],
        });
        assert_eq!(actual, Ok(Reply::Interpret(Some(Interpretation::Object(expected)))));
    }
}
