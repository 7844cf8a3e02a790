//! From a decision to its case in the journal. Without a journal that keeps cases all of this costs nothing.

use std::sync::Arc;

use bulkhead_core::call::CallKind;
use bulkhead_core::journal::{Case, Decided, DecisionId, Question, Tape};
use bulkhead_core::model::{self, Cluster};
use bulkhead_core::names::keys;
use bulkhead_core::policy::{Policy, PolicySet};
use bulkhead_core::time::Time;
use serde_json::{Value, json};

use crate::context::Context;
use crate::events::Events;

/// The policies that one decision asks.
pub(crate) struct Asking {
    policies: Arc<PolicySet>,
    tape: Option<Tape>,
}

/// What a decision was made from, and what came of it.
pub(crate) struct Basis {
    /// Why it was made at that moment.
    pub(crate) trigger: &'static str,
    pub(crate) now: Time,
    pub(crate) question: Question,
    /// The clusters that it looked at.
    pub(crate) clusters: Vec<Arc<Cluster>>,
    /// The plan, in canonical form.
    pub(crate) plan: Value,
}

impl Asking {
    /// The policies to decide with.
    pub(crate) fn policies(&self) -> &PolicySet {
        &self.policies
    }

    /// The policies to decide with, for another thread.
    pub(crate) fn shared(&self) -> Arc<PolicySet> {
        Arc::clone(&self.policies)
    }

    /// Policies whose calls the journal does not keep.
    pub(crate) fn unrecorded(policies: Arc<PolicySet>) -> Self {
        Self { policies, tape: None }
    }

    /// The case of the decision, if the journal keeps cases. `basis` is asked only then.
    pub(crate) fn case(self, basis: impl FnOnce() -> Basis) -> Option<Arc<Case>> {
        let tape = self.tape?;
        let Basis { trigger, now, question, clusters, plan } = basis();
        Some(Arc::new(Case::from(Decided { trigger, now, question, clusters: clusters.into(), tape, plan })))
    }
}

impl Context {
    /// The policies for one decision that makes calls of these kinds.
    pub(crate) fn asking(&self, policies: Arc<PolicySet>, kinds: &[CallKind]) -> Asking {
        self.asking_those(policies, kinds, |_| true)
    }

    /// The same for a decision that only some policies can have a say in.
    pub(crate) fn asking_those(
        &self,
        policies: Arc<PolicySet>,
        kinds: &[CallKind],
        keeps: impl Fn(&dyn Policy) -> bool,
    ) -> Asking {
        if !self.journal.keeps_cases() {
            return Asking::unrecorded(policies);
        }
        let (taped, tape) = Tape::start(&policies, kinds, keeps);
        Asking { policies: Arc::new(taped), tape: Some(tape) }
    }

    /// A decision that asks nobody.
    pub(crate) fn asking_nobody(&self) -> Asking {
        self.asking(Arc::default(), &[])
    }

    /// Writes the id of the last of these decisions into a patch, if the journal outlives the process: an id that means
    /// nothing after a restart is worse than none.
    pub(crate) fn sign(&self, patch: &mut Value, records: &[u64]) {
        if let Some(id) = self.lasting(records) {
            patch["metadata"]["annotations"][keys::DECISION] = json!(id.to_string());
        }
    }

    /// Events that carry the id of the last of these decisions.
    pub(crate) fn events_of(&self, records: &[u64]) -> Events {
        self.events.of(self.lasting(records))
    }

    fn lasting(&self, records: &[u64]) -> Option<DecisionId> {
        let last = records.last().filter(|_| self.journal.keeps_cases());
        last.map(|number| self.journal.decision_id(*number))
    }
}

/// A binding as far as evictions look at it.
pub(crate) fn evicted_binding(binding: model::Binding) -> Arc<model::Binding> {
    let annotations = binding.annotations.into_iter().filter(|(key, _)| key == keys::APPLIED_PLACEMENT).collect();
    Arc::new(model::Binding { annotations, labels: std::collections::BTreeMap::new(), ..binding })
}
