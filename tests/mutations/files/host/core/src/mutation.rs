//! Deliberate faults in the code (mutations) that test the simulation's ability to detect them.
//!
//! `cargo xtask mutations` adds this file and the patches beside it to a copy of the workspace. A mutation is active per
//! thread, so parallel runs do not affect each other.

use std::cell::Cell;
use std::hash::{BuildHasher as _, RandomState};

/// Deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutation {
    /// A scale-up removes replicas from a cluster that is not ready.
    Karmada1640,
    /// The health of a replacement is computed incorrectly, so the replacement never counts as healthy.
    Karmada2769,
    /// An application on an unreachable cluster counts as failed.
    Karmada2989,
    /// The old copy is deleted before the new one is healthy.
    Karmada3736,
    /// An evicted binding without a feasible cluster is never scheduled again.
    Karmada3747,
    /// Tasks of cluster-scoped resources never complete.
    Karmada4951,
    /// A workload is evicted although no other cluster can run it.
    Karmada5150,
    /// All evicted replicas move to the same cluster, regardless of its capacity.
    Karmada6518,
    /// The grace period of one task also applies to the next one.
    Karmada7201,
    /// The task list is written from a stale copy.
    Karmada7302,
    /// The taint list is written from a stale copy.
    Karmada7348,
    /// `Unknown` health resets the timer of application failover.
    Karmada7431,
    /// The last copy is deleted when the grace period ends.
    Karmada7455,
    /// A binding that tolerates a taint without end is queued and takes up slots.
    Karmada7612,
    /// S1: an eviction task does not preserve the old copy.
    TaskKeepsNothing,
    /// S2: rate limits are not enforced.
    RateIgnored,
    /// S3: evictions continue while every cluster appears dead.
    AllDeadIgnored,
    /// S4: a faulting eviction check releases the old copy.
    FaultReleases,
    /// S5: a report-only process sends its writes.
    ReportWrites,
    /// S6: a policy removes taints that others added.
    ForeignTaintRemoved,
    /// S7: an eviction is not recorded in the journal.
    EvictionUnrecorded,
    /// S8: the requeue time is random.
    LeftToChance,
    /// L1: a task is held without end.
    HeldWithoutEnd,
    /// L2: taints stay after their cause is gone.
    TaintStays,
    /// L3: a restart loses the time of the last eviction.
    LastEvictionForgotten,
    /// S1: the last report of a target that is lost counts as its state.
    StaleReportCounts,
    /// L3: the first probe of a process replaces the condition of a cluster at once.
    FirstProbeCounts,
    /// S6: a binding or a Work of another object is taken over when the names are equal.
    NamesakeTakenOver,
    /// S1: a step of the wall clock moves every deadline.
    WallClockTrusted,
    /// S1: a new leader starts at its own wall time after a step of the wall clock.
    SuccessorTrustsWallClock,
    /// L1: an eviction that failed several times is retried after a quarter of an hour.
    RetriesRare,
    /// S1: an application leaves the only cluster that could run it.
    LastPlaceLeft,
    /// L1: a failed application waits for its grace period although its template changed.
    TemplateIgnored,
    /// L1: a lost cluster holds back a replacement whose task purges directly.
    PurgeWaits,
    /// S1: a copy that the scheduler gives up goes without an eviction.
    CopyDropped,
    /// S10: the scope of a plugin is not evaluated.
    ScopeIgnored,
    /// S11: releases and healthy verdicts of a tenant's plugin count.
    TenantReleases,
}

impl Mutation {
    /// All mutations, in declaration order.
    pub const ALL: [Self; 37] = [
        Self::Karmada1640,
        Self::Karmada2769,
        Self::Karmada2989,
        Self::Karmada3736,
        Self::Karmada3747,
        Self::Karmada4951,
        Self::Karmada5150,
        Self::Karmada6518,
        Self::Karmada7201,
        Self::Karmada7302,
        Self::Karmada7348,
        Self::Karmada7431,
        Self::Karmada7455,
        Self::Karmada7612,
        Self::TaskKeepsNothing,
        Self::RateIgnored,
        Self::AllDeadIgnored,
        Self::FaultReleases,
        Self::ReportWrites,
        Self::ForeignTaintRemoved,
        Self::EvictionUnrecorded,
        Self::LeftToChance,
        Self::HeldWithoutEnd,
        Self::TaintStays,
        Self::LastEvictionForgotten,
        Self::StaleReportCounts,
        Self::FirstProbeCounts,
        Self::NamesakeTakenOver,
        Self::WallClockTrusted,
        Self::SuccessorTrustsWallClock,
        Self::RetriesRare,
        Self::LastPlaceLeft,
        Self::TemplateIgnored,
        Self::PurgeWaits,
        Self::CopyDropped,
        Self::ScopeIgnored,
        Self::TenantReleases,
    ];
}

thread_local! {
    static ACTIVE: Cell<Option<Mutation>> = const { Cell::new(None) };
}

/// Activates a mutation for this thread, or deactivates it.
pub fn activate(mutation: Option<Mutation>) {
    ACTIVE.set(mutation);
}

/// Returns true if the mutation is active in this thread.
pub fn on(mutation: Mutation) -> bool {
    ACTIVE.get() == Some(mutation)
}

/// Returns an unpredictable number from 0 to below `below`.
pub fn random_below(below: i64) -> i64 {
    i64::try_from(RandomState::new().hash_one(0) >> 1).unwrap_or(0) % below.max(1)
}
