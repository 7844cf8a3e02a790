//! Journal of decisions as controllers write it, and the marks that decisions leave on objects and events.

use std::sync::Arc;

use bulkhead_core::call::{CallKind, Reason};
use bulkhead_core::combine::{Attribution, Diagnostics};
use bulkhead_core::decide::schedule::ScheduleExplanation;
use bulkhead_core::journal::{CallRecorder, Decision, DecisionId, DecisionRecord, Entry, Input, Journal, Subject};
use bulkhead_core::names::keys;
use bulkhead_core::policy::{Policy, PolicySet};
use bulkhead_plugin::Registry;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::Error;
use bulkhead_runtime::events::Events;
use serde_json::{Value, json};

use crate::decision_recorder::DecisionRecorder;

/// Journal of decisions, and the events that result from them.
#[derive(Clone)]
pub(crate) struct DecisionLog {
    pub(crate) journal: Arc<Journal>,
    pub(crate) clock: Clock,
    /// Counts of the answers of policies in shadow.
    pub(crate) registry: Arc<Registry>,
    pub(crate) events: Events,
}

/// A decision that is to be added to the journal.
pub(crate) struct Record {
    pub(crate) controller: &'static str,
    pub(crate) subject: Subject,
    pub(crate) cluster: Option<String>,
    pub(crate) decision: Decision,
    pub(crate) attribution: Attribution,
    pub(crate) effect: String,
    pub(crate) inputs: Vec<Input>,
}

impl DecisionLog {
    /// Records a decision. Called before its effects are applied.
    pub(crate) fn record(&self, record: Record) -> u64 {
        self.record_decided(record, None, None)
    }

    /// Records a decision with its inputs and, for scheduling, its explanation.
    pub(crate) fn record_decided(
        &self,
        record: Record,
        decision_record: Option<&Arc<DecisionRecord>>,
        explanation: Option<Arc<ScheduleExplanation>>,
    ) -> u64 {
        let Record { controller, subject, cluster, decision, attribution, effect, inputs } = record;
        let controller = controller.to_owned();
        let at = self.clock.now();
        let entry = Entry { at, controller, subject, cluster, decision, attribution, effect, inputs, explanation };
        self.journal.record_decided(entry, decision_record)
    }

    /// Passes a result through. If it proves that nothing was written, marks the records of the decision as
    /// abandoned. Without a response the write may be in effect, so the records stay.
    pub(crate) fn settle<T>(&self, records: &[u64], result: Result<T, Error>) -> Result<T, Error> {
        if result.as_ref().is_err_and(Error::is_undone) {
            for id in records {
                self.journal.abandon(*id);
            }
        }
        result
    }

    /// Records plugin faults that a decision had to do without, and the different answers of policies in shadow.
    pub(crate) fn record_diagnostics(
        &self,
        controller: &'static str,
        subject: &Subject,
        cluster: Option<&str>,
        diagnostics: &Diagnostics,
    ) {
        let record = |decision, attribution, effect| {
            let (subject, cluster) = (subject.clone(), cluster.map(str::to_owned));
            let _ =
                self.record(Record { controller, subject, cluster, decision, attribution, effect, inputs: Vec::new() });
        };
        for fault in &diagnostics.faults {
            record(Decision::PluginFault, Attribution::from(fault), String::new());
        }
        for divergence in &diagnostics.divergences {
            self.registry.count_divergence(&divergence.policy);
            let reason = Reason::new("ShadowDiverged", divergence.shadow.clone());
            let attribution = Attribution::policy(&divergence.policy, reason);
            record(Decision::ShadowDiverged, attribution, divergence.enforced.clone());
        }
    }

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
        DecisionRecorder::recorded(recording, recorder)
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
        let annotation = self.lasting(records).map(|id| (keys::DECISION.to_owned(), id.to_string()));
        self.events.annotated(annotation.into_iter().collect())
    }

    fn lasting(&self, records: &[u64]) -> Option<DecisionId> {
        let last = records.last().filter(|_| self.journal.keeps_decision_records());
        last.map(|number| self.journal.decision_id(*number))
    }
}
