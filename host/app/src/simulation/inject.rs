//! Makes the faults of a scenario happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use bulkhead_controllers::flags::GoDuration;
use bulkhead_controlplane::{Fault, KindId, ResourceRequest, Verb};
use bulkhead_core::call::{Call, CallKind, Reply};
use bulkhead_core::policy::{Capability, Fault as PolicyFault, FaultKind as PolicyFaultKind, Policy, PolicyId};
use bulkhead_plugin::Layer;

use super::federation::Federation;
use crate::scenario::faults::{FaultKind, FaultSpec, RESOURCES};

/// Name of the plugin that fails when a scenario says so.
pub(super) const SABOTEUR: &str = "saboteur";

/// What is needed to make faults happen.
pub(super) struct Injector {
    /// How often controllers were to die so far. A request that is to kill them raises it.
    crashes: Arc<AtomicU64>,
    seen: u64,
    /// How long they stay away the next time, in milliseconds.
    away_ms: Arc<AtomicI64>,
    /// Until when the saboteur fails, in milliseconds since the Unix epoch.
    fails_until_ms: Arc<AtomicI64>,
}

impl Injector {
    /// Puts the saboteur in force if a fault needs it. It abstains until then.
    pub(super) fn new(federation: &Federation, sabotages: bool) -> Self {
        let fails_until_ms = Arc::new(AtomicI64::new(i64::MIN));
        if sabotages {
            let policy = Saboteur {
                id: PolicyId::builtin(SABOTEUR),
                capabilities: ASKED.map(Capability::any),
                fails_until_ms: Arc::clone(&fails_until_ms),
                count: AtomicU64::new(0),
            };
            federation.context().registry.replace(Layer::Webhooks, vec![Arc::new(policy)]);
        }
        Self { crashes: Arc::default(), seen: 0, away_ms: Arc::default(), fails_until_ms }
    }

    /// Makes a fault happen, now or with the next request that it is about.
    pub(super) fn inject(&self, federation: &mut Federation, fault: &FaultSpec) {
        let lasts = fault.for_.unwrap_or_default();
        let kinds = || kinds(federation, fault);
        match fault.kind {
            FaultKind::Respond => next_write(federation, fault, Fault::Respond(fault.code.unwrap_or(500)), || {}),
            FaultKind::Refuse => next_write(federation, fault, Fault::Refuse, || {}),
            FaultKind::LoseReply => next_write(federation, fault, Fault::LoseReply, || {}),
            FaultKind::DropWatches => kinds().into_iter().for_each(|kind| federation.hub().drop_watches(kind)),
            FaultKind::LateWatches => {
                for kind in kinds() {
                    federation.hub().delay_watches(kind, lasts.0);
                }
            }
            FaultKind::Compact => kinds().into_iter().for_each(|kind| federation.hub().compact(kind)),
            FaultKind::CrashBeforeWrite => self.crash(federation, fault, Fault::Refuse, lasts),
            FaultKind::CrashAfterWrite => self.crash(federation, fault, Fault::LoseReply, lasts),
            FaultKind::LeaderChange => federation.change_leader(),
            FaultKind::FailingPlugin => {
                let until = federation.now().plus_seconds(lasts.as_secs());
                self.fails_until_ms.store(until.as_millis(), Ordering::Relaxed);
            }
        }
    }

    /// The controllers die with the request, not some time after it.
    fn crash(&self, federation: &Federation, fault: &FaultSpec, how: Fault, away: GoDuration) {
        let (crashes, away_ms) = (Arc::clone(&self.crashes), Arc::clone(&self.away_ms));
        let away = i64::try_from(away.0.as_millis()).unwrap_or(i64::MAX);
        let kill = federation.killer();
        next_write(federation, fault, how, move || {
            kill();
            away_ms.store(away, Ordering::Relaxed);
            crashes.fetch_add(1, Ordering::Relaxed);
        });
    }

    /// How long the controllers are to stay away, if they died since the last time.
    pub(super) fn died(&mut self) -> Option<GoDuration> {
        let crashes = self.crashes.load(Ordering::Relaxed);
        if crashes == self.seen {
            return None;
        }
        self.seen = crashes;
        let away_ms = u64::try_from(self.away_ms.load(Ordering::Relaxed)).unwrap_or(0);
        Some(GoDuration(std::time::Duration::from_millis(away_ms)))
    }
}

fn kinds(federation: &Federation, fault: &FaultSpec) -> Vec<KindId> {
    let kind = |plural: &&str| {
        let info = bulkhead_api::kinds::REGISTERED.iter().find(|info| info.plural == *plural)?;
        federation.hub().kind_id(&info.api_version(), info.kind)
    };
    let wanted = |plural: &&&str| fault.resource.as_ref().is_none_or(|resource| resource == **plural);
    RESOURCES.iter().filter(wanted).filter_map(kind).collect()
}

/// Lets the next write to objects of the kind fail, and calls `then` as it does.
fn next_write(federation: &Federation, fault: &FaultSpec, how: Fault, then: impl Fn() + Send + Sync + 'static) {
    let resource = fault.resource.clone();
    federation.hub().inject(how, move |request: &ResourceRequest| {
        let writes = matches!(request.verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Delete);
        let known = RESOURCES.contains(&request.plural.as_str());
        let concerned = writes && known && resource.as_ref().is_none_or(|resource| *resource == request.plural);
        if concerned {
            then();
        }
        concerned
    });
}

const ASKED: [CallKind; 5] =
    [CallKind::Health, CallKind::ClusterTaint, CallKind::Filter, CallKind::Score, CallKind::EvictionCheck];

/// A plugin that answers nothing but faults for a time, and has no opinion otherwise.
struct Saboteur {
    id: PolicyId,
    capabilities: [Capability; 5],
    fails_until_ms: Arc<AtomicI64>,
    count: AtomicU64,
}

impl Policy for Saboteur {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, PolicyFault> {
        if call.now().as_millis() >= self.fails_until_ms.load(Ordering::Relaxed) {
            return Err(PolicyFault::new(PolicyFaultKind::Unsupported, "no opinion"));
        }
        // One sort after the other, and a reply that is out of bounds now and then.
        let kinds =
            [PolicyFaultKind::Trap, PolicyFaultKind::Deadline, PolicyFaultKind::OutOfFuel, PolicyFaultKind::Memory];
        let count = self.count.fetch_add(1, Ordering::Relaxed) as usize;
        match kinds.get(count % (kinds.len() + 1)) {
            Some(kind) => Err(PolicyFault::new(*kind, "sabotage")),
            None => Ok(Reply::Score(vec![1_000])),
        }
    }
}
