//! Recording of decisions with their inputs. Costs nothing without a journal that keeps them.

use std::sync::Arc;

use bulkhead_core::journal::{CallRecorder, Decided, DecisionInput, DecisionRecord};
use bulkhead_core::model::{self, Cluster};
use bulkhead_core::names::keys;
use bulkhead_core::policy::PolicySet;
use bulkhead_core::time::Time;
use serde_json::Value;

/// Policies for one decision, with the recorder of their calls.
pub(crate) struct DecisionRecorder {
    policies: Arc<PolicySet>,
    recorder: Option<CallRecorder>,
}

/// Inputs and result of a decision.
pub(crate) struct DecisionInputs {
    /// Reason why it was made at this moment.
    pub(crate) trigger: &'static str,
    pub(crate) now: Time,
    pub(crate) input: DecisionInput,
    /// Clusters that it considered.
    pub(crate) clusters: Vec<Arc<Cluster>>,
    /// The plan, in canonical form.
    pub(crate) plan: Value,
}

impl DecisionRecorder {
    /// Returns the policies to decide with.
    pub(crate) fn policies(&self) -> &PolicySet {
        &self.policies
    }

    /// Returns the policies to decide with, for another thread.
    pub(crate) fn shared(&self) -> Arc<PolicySet> {
        Arc::clone(&self.policies)
    }

    /// Wraps policies whose calls are not recorded.
    pub(crate) fn unrecorded(policies: Arc<PolicySet>) -> Self {
        Self {
            policies,
            recorder: None,
        }
    }

    /// Wraps policies with a recorder of their calls.
    pub(crate) fn recorded(policies: PolicySet, recorder: CallRecorder) -> Self {
        Self {
            policies: Arc::new(policies),
            recorder: Some(recorder),
        }
    }

    /// Returns the full record of the decision, if the journal keeps such records. Calls `inputs` only then.
    pub(crate) fn finish(self, inputs: impl FnOnce() -> DecisionInputs) -> Option<Arc<DecisionRecord>> {
        let recorder = self.recorder?;
        let DecisionInputs {
            trigger,
            now,
            input,
            clusters,
            plan,
        } = inputs();
        Some(Arc::new(DecisionRecord::from(Decided {
            trigger,
            now,
            input,
            clusters: clusters.into(),
            recorder,
            plan,
        })))
    }
}

/// Reduces a binding to the parts that evictions use.
pub(crate) fn evicted_binding(binding: model::Binding) -> Arc<model::Binding> {
    let annotations = binding
        .annotations
        .into_iter()
        .filter(|(key, _)| key == keys::APPLIED_PLACEMENT)
        .collect();
    Arc::new(model::Binding {
        annotations,
        labels: std::collections::BTreeMap::new(),
        ..binding
    })
}
