//! The admission of objects by the in-process API server: what Karmada's webhooks do, without a network in between.

use bulkhead_api::admission::{self, AdmissionOptions};
use bulkhead_controlplane as controlplane;
use bulkhead_core::time::Time;

/// Karmada's webhooks, in process.
pub struct InProcess(pub AdmissionOptions);

impl controlplane::Admission for InProcess {
    fn admit(&self, request: controlplane::AdmissionRequest<'_>) -> Result<(), controlplane::Denied> {
        let operation = match request.operation {
            controlplane::Operation::Create => admission::Operation::Create,
            controlplane::Operation::Update => admission::Operation::Update,
        };
        let asked = admission::Request {
            group: &request.kind.group,
            kind: &request.kind.kind,
            operation,
            namespace: request.namespace,
            old: request.old,
        };
        admission::admit(&asked, request.object, request.ids, Time::new(request.now), self.0).map_err(|denied| {
            controlplane::Denied { reason: controlplane::DenialReason::Invalid, message: denied.to_string() }
        })
    }
}
