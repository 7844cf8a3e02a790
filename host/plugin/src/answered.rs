use bulkhead_core::call::{Call, Reply};
use bulkhead_core::policy::{Capability, Fault, FaultKind, Policy, PolicyId};

/// What somebody who cannot be asked at once, a webhook for example, said to one call before the decision was made.
///
/// It is one more policy of the set, so that what decides stays synchronous. To any other operation, and on any other
/// kind of object, it has no answer.
pub struct Answered {
    id: PolicyId,
    capabilities: [Capability; 1],
    operation: Option<&'static str>,
    answer: Result<Reply, Fault>,
}

impl Answered {
    /// The policy that always says this to calls like that one.
    pub fn new(id: PolicyId, call: &Call<'_>, answer: Result<Reply, Fault>) -> Self {
        Self { id, capabilities: [Capability::like(call)], operation: call.operation_name(), answer }
    }
}

impl Policy for Answered {
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
        Err(Fault::new(FaultKind::Unsupported, format!("{} was asked something else", self.id.name)))
    }
}
