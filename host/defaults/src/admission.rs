//! Admission in process: the context of an object that is about to be stored, and Karmada's webhooks.

use bulkhead_api::admission::{self, AdmissionContext, AdmissionOptions};
use bulkhead_apiserver as apiserver;
use bulkhead_core::time::Time;
use bulkhead_engine_lua::check_portable;
use serde_json::Value;

/// Context of an admission request: ids, time and stored objects. Scripts are compiled here.
pub struct AdmissionEnvironment<'a> {
    /// Generates permanent ids.
    pub ids: &'a mut dyn FnMut() -> String,
    /// Current time.
    pub now: Time,
    /// Lists all stored objects of the kind.
    pub others: &'a dyn Fn() -> Vec<Value>,
}

impl AdmissionContext for AdmissionEnvironment<'_> {
    fn new_id(&mut self) -> String {
        (self.ids)()
    }

    fn now(&self) -> Time {
        self.now
    }

    fn others(&self) -> Vec<Value> {
        (self.others)()
    }

    fn script_error(&self, script: &str) -> Option<String> {
        check_portable(script).err().map(|mistake| mistake.to_string())
    }
}

/// Karmada's admission webhooks, called in process.
pub struct InProcess(pub AdmissionOptions);

impl apiserver::Admission for InProcess {
    fn admit(&self, request: apiserver::AdmissionRequest<'_>) -> Result<(), apiserver::Denied> {
        let operation = match request.operation {
            apiserver::Operation::Create => admission::Operation::Create,
            apiserver::Operation::Update => admission::Operation::Update,
        };
        let asked = admission::Request {
            group: &request.kind.group,
            kind: &request.kind.kind,
            operation,
            namespace: request.namespace,
            old: request.old,
        };
        let mut environment = AdmissionEnvironment {
            ids: request.ids,
            now: Time::new(request.now),
            others: request.others,
        };
        admission::admit(&asked, request.object, &mut environment, self.0).map_err(|denied| apiserver::Denied {
            reason: apiserver::DenialReason::Invalid,
            field: denied.field,
            message: denied.message,
        })
    }
}
