//! Journal of decisions as controllers write it, and the marks that decisions leave on objects, events and log lines.

mod line;

use std::sync::Arc;

use bulkhead_core::call::{CallKind, Reason};
use bulkhead_core::combine::{Attribution, Diagnostics};
use bulkhead_core::decide::schedule::ScheduleExplanation;
use bulkhead_core::failover_record::FailoverNote;
use bulkhead_core::journal::{CallRecorder, Decision, DecisionId, DecisionRecord, Entry, Input, Journal, Subject};
use bulkhead_core::model::FailoverState;
use bulkhead_core::names::keys;
use bulkhead_core::policy::{Policy, PolicySet};
use bulkhead_plugin::Registry;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::Error;
use bulkhead_runtime::events::Events;
use bulkhead_runtime::key::Key;
use serde_json::{Value, json};
use tracing::{Instrument as _, Span, debug, error_span};

use self::line::{DecisionLine, TARGET};
use crate::decision_recorder::DecisionRecorder;
use crate::failover_notes::FailoverNotes;

/// Journal of decisions, and the events that result from them.
#[derive(Clone)]
pub(crate) struct DecisionLog {
    pub(crate) journal: Arc<Journal>,
    pub(crate) clock: Clock,
    /// Counts of the answers of policies in shadow.
    pub(crate) registry: Arc<Registry>,
    pub(crate) events: Events,
    /// Decisions for the records of failovers.
    pub(crate) failovers: Arc<FailoverNotes>,
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

/// Decision in the journal, with the span that its effects are applied in.
#[derive(Clone, Debug)]
pub(crate) struct RecordedDecision {
    number: u64,
    span: Span,
    /// Step of a failover, with its binding, that the decision takes when it is applied.
    step: Option<Arc<(Key, FailoverNote)>>,
}

impl DecisionLog {
    /// Records and logs a decision. Called before its effects are applied.
    pub(crate) fn record(&self, record: Record) -> RecordedDecision {
        self.record_decided(record, None, None)
    }

    /// Records a decision with its inputs and, for scheduling, its explanation.
    pub(crate) fn record_decided(
        &self,
        record: Record,
        decision_record: Option<&Arc<DecisionRecord>>,
        explanation: Option<Arc<ScheduleExplanation>>,
    ) -> RecordedDecision {
        let Record {
            controller,
            subject,
            cluster,
            decision,
            attribution,
            effect,
            inputs,
        } = record;
        let controller = controller.to_owned();
        let at = self.clock.now();
        let entry = Entry {
            at,
            controller,
            subject,
            cluster,
            decision,
            attribution,
            effect,
            inputs,
            explanation,
        };
        let line = DecisionLine::of(&entry);
        let step = step_of(&entry);
        let number = self.journal.record_decided(entry, decision_record);
        // As for reconciles, a failure has its context with every filter that shows it.
        let span = error_span!(target: TARGET, "decision", id = %self.journal.decision_id(number), kind = ?decision);
        if let Some(line) = line {
            span.in_scope(|| line.log());
        }
        let step = step.and_then(|(binding, note)| self.take_step(binding, note, number));
        RecordedDecision { number, span, step }
    }

    /// Notes the step of a decision without a write. Returns any other step, which is taken when it is applied.
    fn take_step(&self, binding: Key, mut note: FailoverNote, number: u64) -> Option<Arc<(Key, FailoverNote)>> {
        note.number = number;
        note.decision = self.lasting_id(number).map(|id| id.to_string()).unwrap_or_default();
        if note.state != FailoverState::Held {
            return Some(Arc::new((binding, note)));
        }
        self.failovers.add(&binding, note);
        None
    }

    /// Applies decisions by a write, in the span of the last one. If the result proves that nothing was written, marks
    /// their records as abandoned. Without a response the write may be in effect, so the records stay.
    pub(crate) async fn apply<T>(
        &self,
        records: &[RecordedDecision],
        write: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let span = Self::span(records);
        let result = write.instrument(span.clone()).await;
        if records.is_empty() {
            return result;
        }
        let _entered = span.enter();
        match &result {
            Ok(_) => {
                debug!(target: TARGET, "applied");
                for (binding, note) in records.iter().filter_map(|record| record.step.as_deref()) {
                    self.failovers.add(binding, note.clone());
                }
            }
            Err(error) if error.is_undone() => {
                debug!(target: TARGET, error = error.describe(), "abandoned");
                for record in records {
                    self.journal.abandon(record.number);
                }
            }
            Err(error) => debug!(target: TARGET, error = error.describe(), "applied without a confirmation"),
        }
        result
    }

    /// Returns the span of the last of these decisions, whose id objects and events get; the current one without any.
    fn span(records: &[RecordedDecision]) -> Span {
        records.last().map_or_else(Span::current, |record| record.span.clone())
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
            let _ = self.record(Record {
                controller,
                subject,
                cluster,
                decision,
                attribution,
                effect,
                inputs: Vec::new(),
            });
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
    pub(crate) fn sign(&self, patch: &mut Value, records: &[RecordedDecision]) {
        if let Some(id) = self.lasting(records) {
            patch["metadata"]["annotations"][keys::DECISION] = json!(id.to_string());
        }
    }

    /// Returns an event handle that attaches the ID of the last of these decisions, and logs events in its span.
    pub(crate) fn events_of(&self, records: &[RecordedDecision]) -> Events {
        let annotation = self
            .lasting(records)
            .map(|id| (keys::DECISION.to_owned(), id.to_string()));
        self.events
            .annotated(annotation.into_iter().collect())
            .within(Self::span(records))
    }

    fn lasting(&self, records: &[RecordedDecision]) -> Option<DecisionId> {
        records.last().and_then(|record| self.lasting_id(record.number))
    }

    /// Returns the ID of a decision if the journal outlives the process.
    fn lasting_id(&self, number: u64) -> Option<DecisionId> {
        self.journal
            .keeps_decision_records()
            .then(|| self.journal.decision_id(number))
    }
}

/// Returns the step of a failover that a decision takes, with its binding and without its ID.
fn step_of(entry: &Entry) -> Option<(Key, FailoverNote)> {
    let state = FailoverState::after(entry.decision).filter(|_| entry.subject.is_binding())?;
    let reason = &entry.attribution.reason;
    let note = FailoverNote {
        number: 0,
        time: entry.at,
        state,
        cluster: entry.cluster.clone()?,
        reason: reason.code.clone(),
        message: reason.message.clone(),
        decision: String::new(),
    };
    Some((Key::new(&*entry.subject.namespace, &*entry.subject.name), note))
}

#[cfg(test)]
mod tests;
