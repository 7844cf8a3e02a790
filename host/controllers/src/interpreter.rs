//! Calls of resource interpreters: plugins and scripts in the decision, webhooks before it (see [`crate::webhook`]).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_api::ResourceInterpreterWebhookConfiguration;
use bulkhead_core::call::{Call, CallKind, HealthCall, InterpretCall, Interpretation, Operation};
use bulkhead_core::combine::{self, Diagnostics, HealthOutcome, InterpretOutcome, PolicyFault};
use bulkhead_core::composition::HealthRule;
use bulkhead_core::decide::health::{self, HealthSnapshot, Uncovered};
use bulkhead_core::journal::redact::without_echoes;
use bulkhead_core::journal::{DecisionInput, DecisionRecord, Subject, plan};
use bulkhead_core::policy::{self, Policy, PolicySet};
use bulkhead_core::time::Time;
use bulkhead_plugin::Layer;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::kinds::ObjectKind;
use bulkhead_runtime::store::Store;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::SetOnce;

use crate::decision_recorder::DecisionInputs;
use crate::evaluate::{DECISION_TIME_MAX, Decider, Lane, OwnedOperation};
use crate::webhook::{self, Webhooks};

/// Treatment of objects of a kind without a health interpreter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NoInterpreter {
    /// They are healthy, as in Karmada.
    #[default]
    Healthy,
    /// Their health is unknown: nothing is evicted because of them, and they release no old copy.
    Unknown,
    /// They are not bound to a policy, so that nothing runs whose failure would go unnoticed.
    Refuse,
}

/// Kinds in use without a health interpreter.
#[derive(Default)]
pub struct UncoveredKinds(Mutex<BTreeSet<ObjectKind>>);

impl UncoveredKinds {
    /// Returns all kinds that were met so far, in order.
    pub fn kinds(&self) -> Vec<ObjectKind> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }

    /// Records if a kind is covered. Returns true if it is newly uncovered.
    fn note(&self, kind: ObjectKind, covered: bool) -> bool {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if covered {
            kinds.remove(&kind);
            return false;
        }
        kinds.insert(kind)
    }
}

/// Load state of the interpreters that customizations define. Before they are loaded, an object seems to have no
/// interpreter.
#[derive(Default)]
pub struct InterpretersLoaded {
    expected: AtomicBool,
    loaded: SetOnce<()>,
}

impl InterpretersLoaded {
    /// Records that the controller that loads them was started.
    pub(crate) fn expect(&self) {
        self.expected.store(true, Ordering::SeqCst);
    }

    /// Records that they are loaded.
    pub(crate) fn done(&self) {
        // Every change loads them again.
        let _ = self.loaded.set(());
    }

    /// Waits until they are loaded, unless no controller loads them.
    async fn wait(&self) {
        if self.expected.load(Ordering::SeqCst) {
            self.loaded.wait().await;
        }
    }
}

/// Health of an object, and a mark for the first object of a kind without an interpreter.
pub(crate) struct ObjectHealth {
    pub(crate) outcome: HealthOutcome,
    pub(crate) newly_uncovered: bool,
    /// Inputs of the decision, if the journal keeps them.
    pub(crate) decision_record: Option<Arc<DecisionRecord>>,
}

/// Resource interpreters.
#[derive(Clone)]
pub(crate) struct Interpreters {
    pub(crate) decider: Decider,
    pub(crate) clock: Clock,
    /// Webhooks that interpret objects.
    pub(crate) hooks: Arc<Store<ResourceInterpreterWebhookConfiguration>>,
    pub(crate) webhooks: Arc<dyn Webhooks>,
    /// Number of requests sent to webhooks.
    pub(crate) requests: Arc<AtomicU64>,
    pub(crate) uncovered: Arc<UncoveredKinds>,
    pub(crate) no_interpreter: NoInterpreter,
    pub(crate) loaded: Arc<InterpretersLoaded>,
}

impl Interpreters {
    /// Waits until all interpreters are known. An interpretation before that may be wrong.
    pub(crate) async fn wait_for_cache_sync(&self) {
        self.hooks.wait_for_cache_sync().await;
        self.loaded.wait().await;
    }

    /// Returns a unique ID for a webhook request.
    fn request_id(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.clock.now::<Time>().as_millis())
    }

    /// Calls the resource interpreters. Records their diagnostics; the caller handles a fault.
    pub(crate) async fn interpret(
        &self,
        controller: &'static str,
        subject: &Subject,
        operation: Operation<'_>,
    ) -> Result<Option<Interpretation>, PolicyFault> {
        let object = Arc::clone(operation.object());
        let outcome = self.interpretation(controller, operation).await?;
        self.decider
            .log
            .record_diagnostics(controller, subject, None, &recordable(outcome.diagnostics, &object));
        Ok(outcome.interpretation)
    }

    /// Returns the answer of the interpreters. A webhook is called if no policy before it has a rule.
    pub(crate) async fn interpretation(
        &self,
        controller: &'static str,
        operation: Operation<'_>,
    ) -> Result<InterpretOutcome, PolicyFault> {
        let call = Call::Interpret(InterpretCall {
            operation,
            now: self.clock.now(),
        });
        let Some(hook) = webhook::hook_for(&self.hooks.list(), &call) else {
            return self.interpreted_by(self.decider.policies(), controller, &call).await;
        };
        let before = Arc::new(self.decider.registry.policies_before(Layer::Webhooks));
        let before = self.interpreted_by(before, controller, &call).await?;
        if before.interpretation.is_some() {
            return Ok(before);
        }
        let answered = webhook::ask(&*self.webhooks, hook, &call, &self.request_id()).await;
        self.interpreted_by(Arc::new(self.with_answer(answered)), controller, &call)
            .await
    }

    async fn interpreted_by(
        &self,
        policies: Arc<PolicySet>,
        controller: &'static str,
        call: &Call<'_>,
    ) -> Result<InterpretOutcome, PolicyFault> {
        let Call::Interpret(InterpretCall { operation, now }) = call else {
            return Ok(InterpretOutcome::default());
        };
        let (operation, now) = (OwnedOperation::from(operation), *now);
        let decide = move |policies: &PolicySet| {
            combine::interpret(
                policies,
                InterpretCall {
                    operation: operation.borrow(),
                    now,
                },
            )
        };
        self.decider
            .ask(controller, policies, policy::answers(call), decide)
            .await
    }

    /// Returns the health of an object in a member cluster. A fault of the interpreter, such as an unreachable
    /// webhook, makes the health unknown, never healthy.
    pub(crate) async fn health(&self, controller: &'static str, object: &Arc<Value>) -> ObjectHealth {
        let health = HealthCall {
            object,
            now: self.clock.now(),
        };
        let call = Call::Health(health.clone());
        let policies = match webhook::hook_for(&self.hooks.list(), &call) {
            Some(hook) if self.hook_counts(controller, &health).await => {
                Arc::new(self.with_answer(webhook::ask(&*self.webhooks, hook, &call, &self.request_id()).await))
            }
            _ => self.decider.policies(),
        };
        let covered = policies.answering(&call).next().is_some();
        let uncovered = match self.no_interpreter {
            NoInterpreter::Healthy => Uncovered::Healthy,
            NoInterpreter::Unknown | NoInterpreter::Refuse => Uncovered::Unknown,
        };
        let now = health.now;
        let deciding = Arc::clone(object);
        let decide = move |policies: &PolicySet| {
            health::decide(
                HealthSnapshot {
                    object: &deciding,
                    uncovered,
                    now,
                },
                policies,
            )
        };
        let lane = Lane::of(controller, &policies, policy::answers(&call));
        let make = |policies| {
            self.decider
                .log
                .recorder_for(policies, &[CallKind::Health], policy::answers(&call))
        };
        let (recorder, outcome) = self
            .decider
            .evaluate(lane, DECISION_TIME_MAX, policies, make, decide)
            .await;
        let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let newly_uncovered = self
            .uncovered
            .note(ObjectKind::new(field("apiVersion"), field("kind")), covered);
        let decision_record = recorder.finish(|| DecisionInputs {
            trigger: "the status of the object in the member cluster changed",
            now,
            input: DecisionInput::Health {
                object: Arc::clone(object),
                uncovered,
            },
            clusters: Vec::new(),
            plan: plan::health(&outcome),
        });
        ObjectHealth {
            outcome,
            newly_uncovered,
            decision_record,
        }
    }

    /// True if the health of objects of this kind is interpreted.
    pub(crate) fn covers_health(&self, object: &Arc<Value>) -> bool {
        let call = Call::Health(HealthCall {
            object,
            now: self.clock.now(),
        });
        self.decider.policies().answering(&call).next().is_some()
            || webhook::hook_for(&self.hooks.list(), &call).is_some()
    }

    /// True if the answer of a webhook matters: no policy before it has an opinion, or the worst opinion counts.
    async fn hook_counts(&self, controller: &'static str, health: &HealthCall<'_>) -> bool {
        let before = Arc::new(self.decider.registry.policies_before(Layer::Webhooks));
        if before.composition().health == HealthRule::WorstOpinion {
            return true;
        }
        let (call, object, now) = (Call::Health(health.clone()), Arc::clone(health.object), health.now);
        let decide =
            move |policies: &PolicySet| combine::health(policies, HealthCall { object: &object, now }).attribution;
        self.decider
            .ask(controller, before, policy::answers(&call), decide)
            .await
            .policy
            .is_none()
    }

    fn with_answer(&self, answered: Arc<dyn Policy>) -> PolicySet {
        self.decider.registry.policies_with(Layer::Webhooks, answered)
    }

    /// Splits a result into the interpretation and its diagnostics; a fault becomes one of them.
    pub(crate) fn split_outcome(
        result: Result<InterpretOutcome, PolicyFault>,
    ) -> (Result<Option<Interpretation>, ()>, Diagnostics) {
        match result {
            Ok(outcome) => (Ok(outcome.interpretation), outcome.diagnostics),
            Err(fault) => (
                Err(()),
                Diagnostics {
                    faults: vec![fault],
                    divergences: Vec::new(),
                },
            ),
        }
    }
}

/// Removes the secrets of an object from the faults of the interpreters that were called about it. Their records have
/// no decision record that the journal could search for them.
pub(crate) fn recordable(mut diagnostics: Diagnostics, object: &Value) -> Diagnostics {
    for fault in &mut diagnostics.faults {
        fault.fault.message = without_echoes(&fault.fault.message, object);
    }
    diagnostics
}

#[cfg(test)]
mod tests {
    use bulkhead_core::policy::{Fault, FaultKind, PolicyId};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fault_that_quotes_a_secret_of_the_object_is_recorded_without_it() {
        let fault = Fault::new(FaultKind::GuestError, "cannot parse hunter01 of web");
        let faults = vec![PolicyFault {
            policy: PolicyId::builtin("script"),
            fault,
        }];
        let object = json!({"metadata": {"name": "web"}, "spec": {"password": "hunter01"}});
        let recorded = recordable(
            Diagnostics {
                faults,
                ..Diagnostics::default()
            },
            &object,
        );
        assert_eq!(recorded.faults[0].fault.message, "cannot parse (redacted) of web");
    }
}
