//! Makes the faults of a scenario happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};

use bulkhead_controllers::flags::GoDuration;
use bulkhead_controlplane::{Fault, KindId, ResourceRequest, Verb};
use bulkhead_core::call::{Call, CallKind, EvictionVerdict, FilterVerdict, Reason, Reply, TaintChange, TaintVerdict};
use bulkhead_core::model::{Taint, TaintEffect};
use bulkhead_core::policy::{Capability, Fault as PolicyFault, FaultKind as PolicyFaultKind, Policy, PolicyId};
use bulkhead_plugin::Layer;
use tokio::time::Instant;

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
    sabotage: Arc<Sabotage>,
}

/// What the saboteur does.
#[derive(Default)]
struct Sabotage {
    /// Until when, in milliseconds since the Unix epoch.
    until_ms: AtomicI64,
    /// How: the position among [`WAYS`].
    way: AtomicU8,
}

/// The ways in which the saboteur fails.
const WAYS: [FaultKind; 3] = [FaultKind::FailingPlugin, FaultKind::SlowPlugin, FaultKind::LyingPlugin];

impl Injector {
    /// Puts the saboteur in force if a fault needs it. It abstains until then.
    pub(super) fn new(federation: &Federation, sabotages: bool) -> Self {
        let sabotage: Arc<Sabotage> = Arc::default();
        if sabotages {
            let policy = Saboteur {
                id: PolicyId::builtin(SABOTEUR),
                capabilities: ASKED.map(Capability::any),
                sabotage: Arc::clone(&sabotage),
                count: AtomicU64::new(0),
            };
            federation.context().registry.replace(Layer::Webhooks, vec![Arc::new(policy)]);
        }
        Self { crashes: Arc::default(), seen: 0, away_ms: Arc::default(), sabotage }
    }

    /// Makes a fault happen, now or with the next request that it is about.
    pub(super) fn inject(&self, federation: &mut Federation, fault: &FaultSpec) {
        let lasts = fault.for_.unwrap_or_default();
        let kinds = || kinds(federation, fault);
        let by_ms = fault.by.map_or(0, |by| i64::try_from(by.0.as_millis()).unwrap_or(0));
        match fault.kind {
            FaultKind::Respond => a_write(federation, fault, Fault::Respond(fault.code.unwrap_or(500)), || {}),
            FaultKind::Refuse => a_write(federation, fault, Fault::Refuse, || {}),
            FaultKind::LoseReply => a_write(federation, fault, Fault::LoseReply, || {}),
            FaultKind::TimeOut => a_write(federation, fault, Fault::TimeOut(lasts.0), || {}),
            FaultKind::DropWatches => kinds().into_iter().for_each(|kind| federation.hub().drop_watches(kind)),
            FaultKind::LateWatches => {
                for kind in kinds() {
                    federation.hub().delay_watches(kind, lasts.0);
                }
            }
            FaultKind::RepeatWatches => {
                for kind in kinds() {
                    federation.hub().repeat_watches(kind, lasts.0);
                }
            }
            FaultKind::Compact => kinds().into_iter().for_each(|kind| federation.hub().compact(kind)),
            FaultKind::CrashBeforeWrite => self.crash(federation, fault, Fault::Refuse, lasts),
            FaultKind::CrashAfterWrite => self.crash(federation, fault, Fault::LoseReply, lasts),
            FaultKind::LeaderChange => federation.change_leader(),
            FaultKind::LateLists => {
                let (resource, until) = (fault.resource.clone(), Fault::HoldUntil(Instant::now() + lasts.0));
                federation.hub().inject_for(lasts.0, until, move |request| is_list_of(request, resource.as_deref()));
                federation.change_leader();
            }
            FaultKind::Partition => federation.partition(fault.cluster.as_deref().unwrap_or_default(), lasts.0),
            FaultKind::PeerPartition => federation.set_peerless(fault.peer.as_deref().unwrap_or_default(), true),
            FaultKind::ClockAhead => federation.skew_clock(by_ms, lasts.0),
            FaultKind::ClockBehind => federation.skew_clock(-by_ms, lasts.0),
            FaultKind::FailingPlugin | FaultKind::SlowPlugin | FaultKind::LyingPlugin => {
                let way = WAYS.iter().position(|way| *way == fault.kind).unwrap_or(0);
                self.sabotage.way.store(u8::try_from(way).unwrap_or(0), Ordering::Relaxed);
                let until = federation.now().plus_seconds(lasts.as_secs());
                self.sabotage.until_ms.store(until.as_millis(), Ordering::Relaxed);
            }
        }
    }

    /// The controllers die with the request, not some time after it.
    fn crash(&self, federation: &Federation, fault: &FaultSpec, how: Fault, away: GoDuration) {
        let (crashes, away_ms) = (Arc::clone(&self.crashes), Arc::clone(&self.away_ms));
        let away = i64::try_from(away.0.as_millis()).unwrap_or(i64::MAX);
        let kill = federation.killer();
        a_write(federation, fault, how, move || {
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

/// Lets a write to objects of the kind fail, the next one or one after it, and calls `then` as it does.
fn a_write(federation: &Federation, fault: &FaultSpec, how: Fault, then: impl Fn() + Send + Sync + 'static) {
    let resource = fault.resource.clone();
    let left = AtomicU64::new(fault.after.unwrap_or(0));
    federation.hub().inject(how, move |request: &ResourceRequest| {
        if !is_shared_write(request) || resource.as_ref().is_some_and(|resource| *resource != request.plural) {
            return false;
        }
        let passes = left.load(Ordering::Relaxed);
        left.store(passes.saturating_sub(1), Ordering::Relaxed);
        if passes == 0 {
            then();
        }
        passes == 0
    });
}

/// Whether it lists the resource, or with none anything that is listed by who starts.
fn is_list_of(request: &ResourceRequest, resource: Option<&str>) -> bool {
    let known = || FaultKind::LateLists.resources().contains(&request.plural.as_str());
    request.verb == Verb::List && resource.map_or_else(known, |resource| resource == request.plural)
}

/// Whether it writes what controllers share.
fn is_shared_write(request: &ResourceRequest) -> bool {
    let writes = matches!(request.verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Delete);
    writes && RESOURCES.contains(&request.plural.as_str())
}

const ASKED: [CallKind; 5] =
    [CallKind::Health, CallKind::ClusterTaint, CallKind::Filter, CallKind::Score, CallKind::EvictionCheck];

/// A plugin that fails for a time, and has no opinion otherwise.
struct Saboteur {
    id: PolicyId,
    capabilities: [Capability; 5],
    sabotage: Arc<Sabotage>,
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
        if call.now().as_millis() >= self.sabotage.until_ms.load(Ordering::Relaxed) {
            return Err(PolicyFault::new(PolicyFaultKind::Unsupported, "no opinion"));
        }
        let way = WAYS[usize::from(self.sabotage.way.load(Ordering::Relaxed)) % WAYS.len()];
        // One sort after the other, and a reply that is out of bounds now and then.
        let kinds =
            [PolicyFaultKind::Trap, PolicyFaultKind::Deadline, PolicyFaultKind::OutOfFuel, PolicyFaultKind::Memory];
        let count = self.count.fetch_add(1, Ordering::Relaxed) as usize;
        match way {
            FaultKind::SlowPlugin => Err(PolicyFault::new(PolicyFaultKind::Deadline, "it takes too long")),
            FaultKind::LyingPlugin => Ok(lie(call)),
            _ => match kinds.get(count % (kinds.len() + 1)) {
                Some(kind) => Err(PolicyFault::new(*kind, "sabotage")),
                None => Ok(Reply::Score(vec![1_000])),
            },
        }
    }
}

/// An answer of the right sort that cannot be true.
fn lie(call: &Call<'_>) -> Reply {
    let reason = || Reason::new("Lie", "x".repeat(100_000));
    match call {
        // An opinion about health is never out of bounds, so it answers another question.
        Call::Health(_) => Reply::Score(vec![50]),
        Call::ClusterTaint(_) => {
            let (key, effect) = ("not a key".to_owned(), TaintEffect::NoExecute);
            let taint = Taint { key, value: String::new(), effect, time_added: None };
            Reply::ClusterTaint(TaintVerdict { changes: vec![TaintChange::Add { taint, reason: reason() }] })
        }
        Call::Filter(call) => Reply::Filter(vec![FilterVerdict::Fit; call.clusters.len() + 1]),
        Call::Score(call) => Reply::Score(vec![i64::MAX; call.clusters.len()]),
        Call::EvictionCheck(_) => {
            Reply::EvictionCheck(EvictionVerdict::Hold { reason: reason(), recheck_after_s: None })
        }
        Call::Interpret(_) => Reply::Score(Vec::new()),
    }
}
