//! Recording of decisions with their inputs. Costs nothing without a journal that keeps them.

use std::sync::Arc;

use bulkhead_core::call::CallKind;
use bulkhead_core::journal::{CallRecorder, Decided, DecisionId, DecisionInput, DecisionRecord};
use bulkhead_core::model::{self, Cluster};
use bulkhead_core::names::keys;
use bulkhead_core::policy::{Policy, PolicySet};
use bulkhead_core::time::Time;
use serde_json::{Value, json};

use crate::context::Context;
use crate::events::Events;

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
        Self { policies, recorder: None }
    }

    /// Returns the full record of the decision, if the journal keeps such records. Calls `inputs` only then.
    pub(crate) fn finish(self, inputs: impl FnOnce() -> DecisionInputs) -> Option<Arc<DecisionRecord>> {
        let recorder = self.recorder?;
        let DecisionInputs { trigger, now, input, clusters, plan } = inputs();
        Some(Arc::new(DecisionRecord::from(Decided { trigger, now, input, clusters: clusters.into(), recorder, plan })))
    }
}

impl Context {
    /// Returns the policies for one decision that makes calls of these kinds, and records the calls if the journal
    /// keeps them.
    pub(crate) fn recorder(&self, policies: Arc<PolicySet>, kinds: &[CallKind]) -> DecisionRecorder {
        self.recorder_for(policies, kinds, |_| true)
    }

    /// Returns the policies like [`Self::recorder`], for a decision that only the policies selected by `keeps` can
    /// affect.
    pub(crate) fn recorder_for(
        &self,
        policies: Arc<PolicySet>,
        kinds: &[CallKind],
        keeps: impl Fn(&dyn Policy) -> bool,
    ) -> DecisionRecorder {
        if !self.journal.keeps_decision_records() {
            return DecisionRecorder::unrecorded(policies);
        }
        let (recording, recorder) = CallRecorder::start(&policies, kinds, keeps);
        DecisionRecorder { policies: Arc::new(recording), recorder: Some(recorder) }
    }

    /// Returns the recorder of a decision that calls no policy.
    pub(crate) fn without_policies(&self) -> DecisionRecorder {
        self.recorder(Arc::default(), &[])
    }

    /// Writes the ID of the last of these decisions into a patch, if the journal outlives the process: after a
    /// restart an ID without a record would be worse than none.
    pub(crate) fn sign(&self, patch: &mut Value, records: &[u64]) {
        if let Some(id) = self.lasting(records) {
            patch["metadata"]["annotations"][keys::DECISION] = json!(id.to_string());
        }
    }

    /// Returns an event handle that attaches the ID of the last of these decisions.
    pub(crate) fn events_of(&self, records: &[u64]) -> Events {
        self.events.of(self.lasting(records))
    }

    fn lasting(&self, records: &[u64]) -> Option<DecisionId> {
        let last = records.last().filter(|_| self.journal.keeps_decision_records());
        last.map(|number| self.journal.decision_id(*number))
    }
}

/// Reduces a binding to the parts that evictions use.
pub(crate) fn evicted_binding(binding: model::Binding) -> Arc<model::Binding> {
    let annotations = binding.annotations.into_iter().filter(|(key, _)| key == keys::APPLIED_PLACEMENT).collect();
    Arc::new(model::Binding { annotations, labels: std::collections::BTreeMap::new(), ..binding })
}
