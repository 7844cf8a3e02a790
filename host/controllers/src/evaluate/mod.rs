//! Bridge from async controllers to policies.
//!
//! A plugin may use its full time limit. Decisions that call plugins therefore run on a [`Pool`] of threads and never
//! on the workers of the runtime. A decision that gets no answer in time is made with a host fault in place of every
//! plugin, so it is fail-static. In a simulation decisions run inline, in the order in which they are made.

mod operation;
mod pool;

use std::sync::Arc;
use std::time::Duration;

use bulkhead_core::call::{Call, CallKind, Reply};
use bulkhead_core::composition::Mode;
use bulkhead_core::policy::{Build, Capability, Fault, FaultKind, Policy, PolicyEntry, PolicyId, PolicySet};
use bulkhead_plugin::Registry;
use tracing::Span;

use crate::decision_log::DecisionLog;
use crate::decision_recorder::DecisionRecorder;
use crate::metrics::Metrics;
pub(crate) use operation::OwnedOperation;
use pool::is_guest;
pub use pool::{Lane, Pool, PoolLimits, Unanswered};

/// Time limit of a decision, including its wait for a thread. A call takes at most 5 s by default, and a decision
/// makes a handful of them.
pub(crate) const DECISION_TIME_MAX: Duration = Duration::from_secs(30);

/// Time limit for compiling the scripts of all customizations.
const LOADING_TIME_MAX: Duration = Duration::from_mins(5);

/// Executor of decisions that call plugins.
#[derive(Clone, Debug)]
pub struct Evaluator(Option<Arc<Pool>>);

impl Evaluator {
    /// Creates an evaluator that runs decisions inline, for simulations.
    pub fn inline() -> Self {
        Self(None)
    }

    /// Creates an evaluator that runs decisions on threads.
    pub fn on(pool: Pool) -> Self {
        Self(Some(Arc::new(pool)))
    }

    /// Runs a job. The spans and log lines of its policy calls are in the span of the caller, on a thread too.
    async fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        limit: Duration,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unanswered> {
        match &self.0 {
            Some(pool) if !lane.is_host_only() => {
                let span = Span::current();
                pool.run(lane, limit, move || span.in_scope(job)).await
            }
            _ => Ok(job()),
        }
    }
}

/// Policies in force, and the bridge to those that are plugins.
#[derive(Clone)]
pub(crate) struct Decider {
    pub(crate) evaluator: Evaluator,
    pub(crate) registry: Arc<Registry>,
    pub(crate) log: DecisionLog,
    pub(crate) metrics: Arc<Metrics>,
}

impl Decider {
    /// Returns the policies in force.
    pub(crate) fn policies(&self) -> Arc<PolicySet> {
        self.registry.policies()
    }

    /// Evaluates a decision with these policies within `limit`. `make` prepares them for the journal; it is called a
    /// second time if plugins do not answer.
    pub(crate) async fn evaluate<T: Send + 'static>(
        &self,
        lane: Lane,
        limit: Duration,
        policies: Arc<PolicySet>,
        make: impl Fn(Arc<PolicySet>) -> DecisionRecorder,
        decide: impl Fn(&PolicySet) -> T + Send + Sync + 'static,
    ) -> (DecisionRecorder, T) {
        let decide = Arc::new(decide);
        let recorder = make(Arc::clone(&policies));
        let (asked, deciding) = (recorder.shared(), Arc::clone(&decide));
        let is_host_only = lane.is_host_only();
        let plan = self.evaluator.run(lane, limit, move || deciding(&asked)).await;
        if !is_host_only {
            self.metrics
                .evaluated(plan.as_ref().err().map_or("answered", |unanswered| unanswered.name()));
        }
        match plan {
            Ok(plan) => (recorder, plan),
            Err(unanswered) => {
                let recorder = make(Arc::new(without_guests(&policies, unanswered)));
                let plan = decide(recorder.policies());
                (recorder, plan)
            }
        }
    }

    /// Runs work that compiles scripts outside of the workers of the runtime.
    pub(crate) async fn off_workers<T: Send + 'static>(
        &self,
        controller: &'static str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unanswered> {
        self.evaluator
            .run(Lane::of_work(controller), LOADING_TIME_MAX, work)
            .await
    }

    /// Evaluates a decision that makes calls of these kinds, and records it with its inputs if the journal keeps
    /// them.
    pub(crate) async fn decide<T: Send + 'static>(
        &self,
        controller: &'static str,
        policies: Arc<PolicySet>,
        kinds: &[CallKind],
        decide: impl Fn(&PolicySet) -> T + Send + Sync + 'static,
    ) -> (DecisionRecorder, T) {
        let lane = Lane::of(controller, &policies, |policy| answers(policy, kinds));
        let make = |policies| self.log.recorder(policies, kinds);
        self.evaluate(lane, DECISION_TIME_MAX, policies, make, decide).await
    }

    /// Evaluates a decision as [`decide`](Self::decide) does, and gives up if it takes longer than `limit`.
    pub(crate) async fn decide_within<T: Send + 'static>(
        &self,
        limit: Duration,
        controller: &'static str,
        policies: Arc<PolicySet>,
        kinds: &[CallKind],
        decide: impl Fn(&PolicySet) -> T + Send + Sync + 'static,
    ) -> Option<(DecisionRecorder, T)> {
        let lane = Lane::of(controller, &policies, |policy| answers(policy, kinds));
        let recorder = self.log.recorder(policies, kinds);
        let asked = recorder.shared();
        let plan = self.evaluator.run(lane, limit, move || decide(&asked)).await.ok()?;
        Some((recorder, plan))
    }

    /// Evaluates calls that are not recorded on their own. `asks` selects the policies that can answer.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        controller: &'static str,
        policies: Arc<PolicySet>,
        asks: impl Fn(&dyn Policy) -> bool,
        decide: impl Fn(&PolicySet) -> T + Send + Sync + 'static,
    ) -> T {
        self.ask_within(DECISION_TIME_MAX, controller, policies, asks, decide)
            .await
    }

    /// Evaluates calls as [`ask`](Self::ask) does, with another limit.
    pub(crate) async fn ask_within<T: Send + 'static>(
        &self,
        limit: Duration,
        controller: &'static str,
        policies: Arc<PolicySet>,
        asks: impl Fn(&dyn Policy) -> bool,
        decide: impl Fn(&PolicySet) -> T + Send + Sync + 'static,
    ) -> T {
        let lane = Lane::of(controller, &policies, asks);
        self.evaluate(lane, limit, policies, DecisionRecorder::unrecorded, decide)
            .await
            .1
    }
}

fn answers(policy: &dyn Policy, kinds: &[CallKind]) -> bool {
    policy
        .capabilities()
        .iter()
        .any(|capability| kinds.contains(&capability.kind))
}

/// Returns the policies with a fault in place of the answers of plugins. Plugins in shadow are switched off.
fn without_guests(policies: &PolicySet, why: Unanswered) -> PolicySet {
    let fault = Fault::new(FaultKind::HostBusy, why.to_string());
    let entry = |entry: &PolicyEntry| match entry.mode {
        Mode::Enforce if is_guest(&*entry.policy) => {
            let inner = Arc::clone(&entry.policy);
            PolicyEntry {
                policy: Arc::new(NotAsked {
                    inner,
                    fault: fault.clone(),
                }),
                ..entry.clone()
            }
        }
        Mode::Shadow if is_guest(&*entry.policy) => PolicyEntry {
            mode: Mode::Off,
            ..entry.clone()
        },
        _ => entry.clone(),
    };
    PolicySet::composed(policies.entries().iter().map(entry).collect(), policies.composition())
}

/// Plugin that is not called. Each call ends in a fault of the host.
struct NotAsked {
    inner: Arc<dyn Policy>,
    fault: Fault,
}

impl Policy for NotAsked {
    fn id(&self) -> &PolicyId {
        self.inner.id()
    }

    fn capabilities(&self) -> &[Capability] {
        self.inner.capabilities()
    }

    fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
        Err(self.fault.clone())
    }

    fn build(&self) -> Option<&Build> {
        self.inner.build()
    }
}

#[cfg(test)]
mod responsive;
#[cfg(test)]
mod tests;
