//! Plugin that fails, is slow or returns invalid replies while a scenario's fault is active, and abstains otherwise.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bulkhead_apiserver::{ApiServer, Fault, ResourceRequest};
use bulkhead_core::call::{Call, CallKind, EvictionVerdict, FilterVerdict, Reason, Reply, TaintChange, TaintVerdict};
use bulkhead_core::model::{Taint, TaintEffect};
use bulkhead_core::policy::{Capability, Fault as PolicyFault, FaultKind as PolicyFaultKind, Policy, PolicyId};
use tokio::time::Instant;

use crate::scenario::faults::FaultKind;

/// Name of the faulty plugin.
pub(super) const FAULTY_PLUGIN: &str = "faulty-plugin";

/// Duration of a slow call that does not fail: below the default budget of five seconds.
const SLUGGISH_CALL: Duration = Duration::from_millis(4_500);

/// Kinds of misbehaviour.
const FAULT_KINDS: [FaultKind; 4] = [
    FaultKind::FailingPlugin,
    FaultKind::SlowPlugin,
    FaultKind::LyingPlugin,
    FaultKind::SluggishPlugin,
];

/// Current misbehaviour of the plugin.
#[derive(Default)]
pub(super) struct ActiveFault {
    /// End of the misbehaviour, in monotonic time.
    until: Mutex<Option<Instant>>,
    /// Kind of misbehaviour: index into [`FAULT_KINDS`].
    kind: AtomicU8,
}

impl ActiveFault {
    /// Starts a kind of misbehaviour for the given duration.
    pub(super) fn start(&self, kind: FaultKind, lasts: Duration) {
        let index = FAULT_KINDS.iter().position(|other| *other == kind).unwrap_or(0);
        self.kind.store(u8::try_from(index).unwrap_or(0), Ordering::Relaxed);
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + lasts);
    }

    fn is_over(&self) -> bool {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_none_or(|until| until <= Instant::now())
    }
}

const CALL_KINDS: [CallKind; 5] = [
    CallKind::Health,
    CallKind::ClusterTaint,
    CallKind::Filter,
    CallKind::Score,
    CallKind::EvictionCheck,
];

/// Plugin that misbehaves for a time, and abstains otherwise.
pub(super) struct FaultyPlugin {
    id: PolicyId,
    capabilities: [Capability; 5],
    fault: Arc<ActiveFault>,
    count: AtomicU64,
    hub: ApiServer,
    /// End of the current slow call.
    busy: Mutex<Option<Instant>>,
}

impl FaultyPlugin {
    /// Creates the plugin of a federation with this control plane.
    pub(super) fn new(fault: Arc<ActiveFault>, hub: ApiServer) -> Self {
        let (id, capabilities) = (PolicyId::builtin(FAULTY_PLUGIN), CALL_KINDS.map(Capability::any));
        Self {
            id,
            capabilities,
            fault,
            count: AtomicU64::new(0),
            hub,
            busy: Mutex::default(),
        }
    }

    /// Simulates a slow call: all requests of controllers except those on Leases are held until the call is over.
    fn simulate_slow_call(&self) {
        let now = Instant::now();
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if busy.is_none_or(|until| until <= now) {
            let until = now + SLUGGISH_CALL;
            *busy = Some(until);
            let waits = |request: &ResourceRequest| request.plural != "leases";
            self.hub.inject_for(SLUGGISH_CALL, Fault::HoldUntil(until), waits);
        }
    }
}

impl Policy for FaultyPlugin {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, PolicyFault> {
        if self.fault.is_over() {
            return Err(PolicyFault::new(PolicyFaultKind::Unsupported, "no opinion"));
        }
        let kind = FAULT_KINDS[usize::from(self.fault.kind.load(Ordering::Relaxed)) % FAULT_KINDS.len()];
        // Cycles through the fault kinds and an out-of-range reply.
        let kinds = [
            PolicyFaultKind::Trap,
            PolicyFaultKind::Deadline,
            PolicyFaultKind::OutOfFuel,
            PolicyFaultKind::Memory,
        ];
        let count = self.count.fetch_add(1, Ordering::Relaxed) as usize;
        match kind {
            FaultKind::SlowPlugin => Err(PolicyFault::new(PolicyFaultKind::Deadline, "it takes too long")),
            FaultKind::LyingPlugin => Ok(invalid_reply(call)),
            FaultKind::SluggishPlugin => {
                self.simulate_slow_call();
                Err(PolicyFault::new(PolicyFaultKind::Unsupported, "no opinion"))
            }
            _ => match kinds.get(count % (kinds.len() + 1)) {
                Some(kind) => Err(PolicyFault::new(*kind, "sabotage")),
                None => Ok(Reply::Score(vec![1_000])),
            },
        }
    }
}

/// Returns an invalid reply: out of range, or of the wrong type.
fn invalid_reply(call: &Call<'_>) -> Reply {
    let reason = || Reason::new("Lie", "x".repeat(100_000));
    match call {
        // A health verdict has no range to violate, so the reply is of another type.
        Call::Health(_) => Reply::Score(vec![50]),
        Call::ClusterTaint(_) => {
            let (key, effect) = ("not a key".to_owned(), TaintEffect::NoExecute);
            let taint = Taint {
                key,
                value: String::new(),
                effect,
                time_added: None,
            };
            Reply::ClusterTaint(TaintVerdict {
                changes: vec![TaintChange::Add {
                    taint,
                    reason: reason(),
                }],
            })
        }
        Call::Filter(call) => Reply::Filter(vec![FilterVerdict::Fit; call.clusters.len() + 1]),
        Call::Score(call) => Reply::Score(vec![i64::MAX; call.clusters.len()]),
        Call::EvictionCheck(_) => Reply::EvictionCheck(EvictionVerdict::Hold {
            reason: reason(),
            recheck_after_s: None,
        }),
        Call::Interpret(_) => Reply::Score(Vec::new()),
    }
}
