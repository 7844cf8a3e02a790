use bulkhead_core::call::{Call, Reply};
use bulkhead_core::policy::{Capability, Fault, FaultKind, Policy, PolicyId};

/// Policy with a precomputed answer to one call, for example the response of a webhook.
///
/// It is one more policy of the set, so that decisions stay synchronous. It has no answer to any other operation or
/// kind of object.
pub struct PrecomputedPolicy {
    id: PolicyId,
    capabilities: [Capability; 1],
    operation: Option<&'static str>,
    answer: Result<Reply, Fault>,
}

impl PrecomputedPolicy {
    /// Creates a policy that gives this answer to calls like the given one.
    pub fn new(id: PolicyId, call: &Call<'_>, answer: Result<Reply, Fault>) -> Self {
        Self {
            id,
            capabilities: [Capability::like(call)],
            operation: call.operation_name(),
            answer,
        }
    }
}

impl Policy for PrecomputedPolicy {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        if call.operation_name() == self.operation {
            return self.answer.clone();
        }
        Err(Fault::new(
            FaultKind::Unsupported,
            format!("{} has no answer to this call", self.id.name),
        ))
    }
}
