//! Injection of a scenario's faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use bulkhead_apiserver::{Fault, KindId, ResourceRequest, Verb};
use bulkhead_controllers::flags::GoDuration;
use bulkhead_plugin::Layer;
use tokio::time::Instant;

use super::faulty_plugin::{ActiveFault, FaultyPlugin};
use super::federation::Federation;
use crate::scenario::faults::{FaultKind, FaultSpec, RESOURCES};

/// State of the fault injection.
pub(super) struct Injector {
    /// Number of controller crashes so far, incremented by the requests that trigger them.
    crashes: Arc<AtomicU64>,
    seen: u64,
    /// Downtime of the latest crash, in milliseconds.
    away_ms: Arc<AtomicI64>,
    plugin_fault: Arc<ActiveFault>,
}

impl Injector {
    /// Creates the injector. Installs the faulty plugin if an event needs it; the plugin abstains until its fault
    /// starts.
    pub(super) fn new(federation: &Federation, has_plugin_faults: bool) -> Self {
        let plugin_fault: Arc<ActiveFault> = Arc::default();
        if has_plugin_faults {
            let policy = FaultyPlugin::new(Arc::clone(&plugin_fault), federation.hub().clone());
            federation
                .context()
                .registry
                .replace(Layer::Webhooks, vec![Arc::new(policy)]);
        }
        Self {
            crashes: Arc::default(),
            seen: 0,
            away_ms: Arc::default(),
            plugin_fault,
        }
    }

    /// Injects a fault, either immediately or with the next matching request.
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
                federation
                    .hub()
                    .inject_for(lasts.0, until, move |request| is_list_of(request, resource.as_deref()));
                federation.change_leader();
            }
            FaultKind::Partition => federation.partition(fault.cluster.as_deref().unwrap_or_default(), lasts.0),
            FaultKind::PeerPartition => federation.set_peerless(fault.peer.as_deref().unwrap_or_default(), true),
            FaultKind::ClockAhead => federation.skew_clock(by_ms, lasts.0),
            FaultKind::ClockBehind => federation.skew_clock(-by_ms, lasts.0),
            FaultKind::ClockStepAhead => federation.step_clock(by_ms),
            FaultKind::ClockStepBack => federation.step_clock(-by_ms),
            FaultKind::FailingPlugin | FaultKind::SlowPlugin | FaultKind::SluggishPlugin | FaultKind::LyingPlugin => {
                self.plugin_fault.start(fault.kind, lasts.0);
            }
            FaultKind::WriteOutage => {
                let (resource, refused) = (fault.resource.clone(), Fault::Respond(fault.code.unwrap_or(500)));
                federation.hub().inject_for(lasts.0, refused, move |request| {
                    is_write_of(request, resource.as_deref())
                });
            }
            FaultKind::RacingWrite => {
                let person = federation.person();
                before_a_write(federation, fault, move |request| person.touch(request));
            }
            FaultKind::Recreate => {
                let person = federation.person();
                before_a_write(federation, fault, move |request| person.recreate(request));
            }
            FaultKind::Rejoin => federation.rejoin(fault.cluster.as_deref().unwrap_or_default()),
            // The run injects it at the next eviction.
            FaultKind::TargetLoss => {}
            FaultKind::StarvedStart => {
                let until = Fault::HoldUntil(Instant::now() + lasts.0);
                // Agents are separate processes, which keep renewing their leases.
                federation
                    .hub()
                    .inject_for(lasts.0, until, |request| request.plural != "leases");
                federation.change_leader();
            }
        }
    }

    /// Crashes the controllers together with the matching request, not after it.
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

    /// Returns the downtime of the controllers, if they crashed since the previous call.
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
        let info = bulkhead_api::kinds::REGISTERED
            .iter()
            .find(|info| info.plural == *plural)?;
        federation.hub().kind_id(&info.api_version(), info.kind)
    };
    let wanted = |plural: &&&str| fault.resource.as_ref().is_none_or(|resource| resource == **plural);
    RESOURCES.iter().filter(wanted).filter_map(kind).collect()
}

/// Injects `how` into a matching write, after `fault.after` others have passed, and calls `then` at that moment.
fn a_write(federation: &Federation, fault: &FaultSpec, how: Fault, then: impl Fn() + Send + Sync + 'static) {
    let resource = fault.resource.clone();
    let remaining = AtomicU64::new(fault.after.unwrap_or(0));
    federation.hub().inject(how, move |request: &ResourceRequest| {
        if !is_write_of(request, resource.as_deref()) {
            return false;
        }
        let passes = remaining.load(Ordering::Relaxed);
        remaining.store(passes.saturating_sub(1), Ordering::Relaxed);
        if passes == 0 {
            then();
        }
        passes == 0
    });
}

/// Calls `act` on the object of a matching write before it is applied, after `fault.after` others have passed. If
/// `act` returns false, it is retried with the next write.
fn before_a_write(
    federation: &Federation,
    fault: &FaultSpec,
    act: impl Fn(&ResourceRequest) -> bool + Send + Sync + 'static,
) {
    let (resource, remaining) = (fault.resource.clone(), AtomicU64::new(fault.after.unwrap_or(0)));
    federation.hub().inject(Fault::Pass, move |request: &ResourceRequest| {
        let passes = remaining.load(Ordering::Relaxed);
        is_write_of(request, resource.as_deref()) && {
            remaining.store(passes.saturating_sub(1), Ordering::Relaxed);
            passes == 0 && act(request)
        }
    });
}

/// Returns true for a list request of the resource, or without one, of any kind that controllers list at startup.
fn is_list_of(request: &ResourceRequest, resource: Option<&str>) -> bool {
    let known = || FaultKind::LateLists.resources().contains(&request.plural.as_str());
    request.verb == Verb::List && resource.map_or_else(known, |resource| resource == request.plural)
}

/// Returns true for a write of the resource, or without one, of any kind that controllers share.
fn is_write_of(request: &ResourceRequest, resource: Option<&str>) -> bool {
    let writes = matches!(request.verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Delete);
    let shared = || RESOURCES.contains(&request.plural.as_str());
    writes && resource.map_or_else(shared, |resource| resource == request.plural)
}
