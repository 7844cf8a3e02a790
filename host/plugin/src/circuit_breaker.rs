//! Circuit breaker: a plugin that fails too often is quarantined and replaced by a fallback.
//!
//! ```text
//!              faults in the window ≥ limit
//!   closed ───────────────────────────────────► open
//!     ▲                                          │ the quarantine is over
//!     │ enough good answers in a row             ▼
//!     └────────────────────────────────────── half-open ──► open (any fault)
//! ```
//!
//! Half-open probes run in shadow: the plugin is called, but its answer is not used. All times are those of the
//! calls, so that the same calls lead to the same states.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bulkhead_core::call::{Call, CallKind, EvictionVerdict, FilterVerdict, Reason, Reply, TaintChange};
use bulkhead_core::manifest::BreakerThresholds;
use bulkhead_core::policy::{Blame, Build, Capability, Fault, FaultKind, Policy, PolicyId, Usage};
use bulkhead_core::time::Time;
use serde::{Deserialize, Serialize};

use crate::Bounded;

/// State of a circuit breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BreakerState {
    /// The plugin answers.
    #[default]
    Closed,
    /// The plugin is in quarantine.
    Open,
    /// The plugin is probed in shadow.
    HalfOpen,
}

/// Resolved fallback.
#[derive(Clone)]
pub(crate) enum ResolvedFallback {
    /// Returns a fault for every call.
    Fault,
    /// Returns no opinion.
    Abstain,
    /// Calls another policy.
    Policy(Arc<dyn Policy>),
}

/// Plugin with its circuit breaker and its fallback.
pub struct CircuitBreaker {
    plugin: Arc<Bounded>,
    thresholds: BreakerThresholds,
    fallback: RwLock<ResolvedFallback>,
    /// True unless the breaker is closed. Calls check it first, without a lock.
    tripped: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    breaker: BreakerState,
    /// Times of the latest faults, oldest first; at most as many as trip the breaker.
    faults: VecDeque<Time>,
    /// Time at which the breaker opened.
    since: Option<Time>,
    /// Number of consecutive successful probes.
    probes: u32,
}

impl CircuitBreaker {
    pub(crate) fn new(plugin: Arc<Bounded>, thresholds: BreakerThresholds, fallback: ResolvedFallback) -> Self {
        Self {
            plugin,
            thresholds,
            fallback: RwLock::new(fallback),
            tripped: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Returns the state of the breaker.
    pub fn state(&self) -> BreakerState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).breaker
    }

    /// Makes calls faults during a quarantine.
    pub(crate) fn drop_fallback(&self) {
        *self.fallback.write().unwrap_or_else(PoisonError::into_inner) = ResolvedFallback::Fault;
    }

    /// Returns the plugin itself.
    pub(crate) fn plugin(&self) -> &Arc<Bounded> {
        &self.plugin
    }

    /// Calls the plugin while the breaker is closed, and records its faults.
    fn ask(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let answer = self.plugin.call(call);
        if answer.as_ref().is_err_and(counts) {
            self.note_fault(call.now());
        }
        answer
    }

    fn note_fault(&self, now: Time) {
        let limit = usize::try_from(self.thresholds.faults).unwrap_or(usize::MAX);
        if limit == 0 {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.faults.len() >= limit {
            state.faults.pop_front();
        }
        state.faults.push_back(now);
        let window_ms = i64::from(self.thresholds.window_seconds) * 1000;
        let oldest = state.faults.front().copied().unwrap_or(now);
        if state.faults.len() >= limit && millis_between(oldest, now) <= window_ms {
            self.open(&mut state, now);
        }
    }

    fn open(&self, state: &mut State, now: Time) {
        *state = State {
            breaker: BreakerState::Open,
            since: Some(now),
            ..State::default()
        };
        self.tripped.store(true, Ordering::Release);
    }

    /// Returns true if this call is to probe the plugin.
    fn probes(&self, now: Time) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let quarantine_ms = i64::from(self.thresholds.quarantine_seconds) * 1000;
        match (state.breaker, state.since) {
            (BreakerState::Closed, _) => false,
            (BreakerState::Open, Some(since)) if millis_between(since, now) < quarantine_ms => false,
            (BreakerState::Open | BreakerState::HalfOpen, _) => {
                state.breaker = BreakerState::HalfOpen;
                true
            }
        }
    }

    /// Calls the plugin in shadow and updates the breaker. An abstention and a failure of the host prove nothing about
    /// the plugin, so they change nothing.
    fn probe(&self, call: &Call<'_>) {
        let answer = self.plugin.call(call);
        if answer.as_ref().is_err_and(|fault| !counts(fault)) {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if answer.is_err() {
            self.open(&mut state, call.now());
            return;
        }
        state.probes += 1;
        if state.probes >= self.thresholds.probes {
            *state = State::default();
            self.tripped.store(false, Ordering::Release);
        }
    }

    fn call_fallback(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let name = &self.plugin.id().name;
        let fallback = self.fallback.read().unwrap_or_else(PoisonError::into_inner).clone();
        match fallback {
            ResolvedFallback::Fault => {
                let message = format!("{name} is in quarantine after {} faults", self.thresholds.faults);
                Err(Fault::new(FaultKind::Quarantined, message))
            }
            ResolvedFallback::Abstain => Err(Fault::new(FaultKind::Unsupported, format!("{name} is in quarantine"))),
            ResolvedFallback::Policy(policy) => {
                let note = format!(
                    "from {} {}, while {name} is in quarantine",
                    policy.id(),
                    policy.id().version
                );
                policy.call(call).map(|reply| noted(reply, &note))
            }
        }
    }
}

/// Returns true if a fault counts against the plugin.
fn counts(fault: &Fault) -> bool {
    fault.kind != FaultKind::Unsupported && fault.kind.blame() == Blame::Guest
}

/// Returns the elapsed time; 0 if the clock went backwards.
fn millis_between(earlier: Time, later: Time) -> i64 {
    later.as_millis().saturating_sub(earlier.as_millis()).max(0)
}

/// Adds a note to every reason of a reply, to distinguish it from the plugin's own replies.
pub(crate) fn noted(mut reply: Reply, note: &str) -> Reply {
    let add = |reason: &mut Reason| {
        let own = std::mem::take(&mut reason.message);
        reason.message = if own.is_empty() {
            note.to_owned()
        } else {
            format!("{own} ({note})")
        };
    };
    match &mut reply {
        Reply::Health(verdict) => add(&mut verdict.reason),
        Reply::ClusterTaint(verdict) => {
            for change in &mut verdict.changes {
                let (TaintChange::Add { reason, .. } | TaintChange::Remove { reason, .. }) = change;
                add(reason);
            }
        }
        Reply::Filter(verdicts) => {
            for verdict in verdicts {
                if let FilterVerdict::Unfit(reason) = verdict {
                    add(reason);
                }
            }
        }
        Reply::EvictionCheck(EvictionVerdict::Release(reason) | EvictionVerdict::Hold { reason, .. }) => add(reason),
        Reply::EvictionCheck(EvictionVerdict::Abstain) | Reply::Score(_) | Reply::Interpret(_) => {}
    }
    reply
}

impl Policy for CircuitBreaker {
    fn id(&self) -> &PolicyId {
        self.plugin.id()
    }

    fn capabilities(&self) -> &[Capability] {
        self.plugin.capabilities()
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        if !self.tripped.load(Ordering::Acquire) {
            return self.ask(call);
        }
        if self.probes(call.now()) {
            self.probe(call);
        }
        self.call_fallback(call)
    }

    fn usage_of(&self, kind: CallKind) -> Usage {
        self.plugin.usage_of(kind)
    }

    fn build(&self) -> Option<&Build> {
        self.plugin.build()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use bulkhead_core::call::{CallKind, HealthCall, HealthVerdict};
    use bulkhead_core::model::Health;
    use serde_json::json;

    use super::*;

    /// Returns the answers of a list in order, and the last one repeatedly.
    struct Scripted(PolicyId, [Capability; 1], Vec<Result<Health, FaultKind>>, AtomicUsize);

    impl Policy for Scripted {
        fn id(&self) -> &PolicyId {
            &self.0
        }
        fn capabilities(&self) -> &[Capability] {
            &self.1
        }
        fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
            let index = self.3.fetch_add(1, Ordering::Relaxed).min(self.2.len() - 1);
            match self.2[index] {
                Ok(health) => Ok(Reply::Health(HealthVerdict {
                    health,
                    reason: Reason::new("Said", ""),
                })),
                Err(kind) => Err(Fault::new(kind, "no")),
            }
        }
    }

    fn scripted(name: &str, says: Vec<Result<Health, FaultKind>>) -> Scripted {
        Scripted(
            PolicyId::builtin(name),
            [Capability::any(CallKind::Health)],
            says,
            AtomicUsize::new(0),
        )
    }

    fn circuit_breaker(says: Vec<Result<Health, FaultKind>>, fallback: ResolvedFallback) -> CircuitBreaker {
        let thresholds = BreakerThresholds {
            faults: 2,
            window_seconds: 10,
            quarantine_seconds: 30,
            probes: 2,
        };
        CircuitBreaker::new(
            Arc::new(Bounded::new(Arc::new(scripted("p", says)))),
            thresholds,
            fallback,
        )
    }

    /// Calls the policy at a time in seconds, and checks the answer and the state.
    fn check(policy: &CircuitBreaker, at_s: i64, expected: Result<&str, FaultKind>, state: BreakerState) {
        let object = Arc::new(json!({}));
        let call = Call::Health(HealthCall {
            object: &object,
            now: Time::from_millis(at_s * 1000),
        });
        let actual = policy.call(&call).map(|reply| match reply {
            Reply::Health(verdict) => format!("{} {}", verdict.health.as_str(), verdict.reason),
            other => panic!("{other:?}"),
        });
        assert_eq!(actual.as_deref().map_err(|fault| fault.kind), expected, "at {at_s} s");
        assert_eq!(policy.state(), state, "at {at_s} s");
    }

    use BreakerState::{Closed, HalfOpen, Open};

    const TRAP: Result<Health, FaultKind> = Err(FaultKind::Trap);
    const GOOD: Result<Health, FaultKind> = Ok(Health::Healthy);

    #[test]
    fn too_many_faults_open_and_good_probes_close() {
        let policy = circuit_breaker(vec![TRAP, TRAP, TRAP, GOOD, GOOD, GOOD], ResolvedFallback::Fault);
        check(&policy, 0, Err(FaultKind::Trap), Closed);
        check(&policy, 5, Err(FaultKind::Trap), Open);
        check(&policy, 20, Err(FaultKind::Quarantined), Open);
        // The quarantine is over; the first probe fails and starts another one.
        check(&policy, 40, Err(FaultKind::Quarantined), Open);
        check(&policy, 60, Err(FaultKind::Quarantined), Open);
        check(&policy, 70, Err(FaultKind::Quarantined), HalfOpen);
        check(&policy, 71, Err(FaultKind::Quarantined), Closed);
        check(&policy, 72, Ok("Healthy Said"), Closed);
    }

    #[test]
    fn faults_far_apart_do_not_open() {
        let policy = circuit_breaker(vec![TRAP], ResolvedFallback::Fault);
        check(&policy, 0, Err(FaultKind::Trap), Closed);
        check(&policy, 11, Err(FaultKind::Trap), Closed);
        check(&policy, 21, Err(FaultKind::Trap), Open);
    }

    #[test]
    fn what_is_not_the_plugins_fault_does_not_count() {
        for kind in [FaultKind::Unsupported, FaultKind::HostBusy, FaultKind::HostBug] {
            let policy = circuit_breaker(vec![Err(kind)], ResolvedFallback::Fault);
            for at_s in 0..5 {
                check(&policy, at_s, Err(kind), Closed);
            }
        }
    }

    #[test]
    fn a_probe_without_a_verdict_neither_closes_nor_opens() {
        for kind in [FaultKind::HostBusy, FaultKind::HostBug, FaultKind::Unsupported] {
            let policy = circuit_breaker(
                vec![TRAP, TRAP, GOOD, Err(kind), Err(kind), GOOD],
                ResolvedFallback::Fault,
            );
            check(&policy, 0, Err(FaultKind::Trap), Closed);
            check(&policy, 0, Err(FaultKind::Trap), Open);
            for at_s in 30..33 {
                check(&policy, at_s, Err(FaultKind::Quarantined), HalfOpen);
            }
            check(&policy, 33, Err(FaultKind::Quarantined), Closed);
        }
    }

    #[test]
    fn a_fallback_answers_and_says_so() {
        let other = ResolvedFallback::Policy(Arc::new(scripted("other", vec![Ok(Health::Unhealthy)])));
        let policy = circuit_breaker(vec![TRAP], other);
        check(&policy, 0, Err(FaultKind::Trap), Closed);
        check(&policy, 0, Err(FaultKind::Trap), Open);
        let version = env!("CARGO_PKG_VERSION");
        let text = format!("Unhealthy Said: from other {version}, while p is in quarantine");
        check(&policy, 1, Ok(&text), Open);
        let policy = circuit_breaker(vec![TRAP], ResolvedFallback::Abstain);
        check(&policy, 0, Err(FaultKind::Trap), Closed);
        check(&policy, 0, Err(FaultKind::Trap), Open);
        check(&policy, 1, Err(FaultKind::Unsupported), Open);
    }
}
