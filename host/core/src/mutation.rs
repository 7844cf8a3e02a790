//! Mistakes that are made on purpose, to see whether the simulation finds them.
//!
//! Only a build with the feature `mutations` can make any, and nothing that ships has it: without the feature [`on`] is a
//! constant, and what stands behind it is not compiled in. A mistake is that of the thread that asked for it, so runs
//! beside each other do not disturb one another.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutation {
    /// A scale-up takes replicas away from a cluster that is not ready.
    Karmada1640,
    /// The health of a replacement is computed wrongly, so that it never counts.
    Karmada2769,
    /// An application on a cluster that cannot be reached counts as failed.
    Karmada2989,
    /// The old copy goes before the new one is healthy.
    Karmada3736,
    /// What was evicted and fits nowhere never comes back.
    Karmada3747,
    /// Tasks of cluster-scoped resources never end.
    Karmada4951,
    /// A workload is evicted although it could run nowhere else.
    Karmada5150,
    /// What leaves a cluster all goes to the same one, whatever room there is.
    Karmada6518,
    /// The grace period of one task is that of the next, too.
    Karmada7201,
    /// The list of tasks is written from a stale copy.
    Karmada7302,
    /// The list of taints is written from a stale copy.
    Karmada7348,
    /// Unknown sets the clock of application failover back.
    Karmada7431,
    /// The last copy goes when the grace period is over.
    Karmada7455,
    /// What tolerates a taint for ever is put into the queue and takes slots.
    Karmada7612,
    /// S1: an eviction task does not keep the old copy.
    TaskKeepsNothing,
    /// S2: rates are not kept.
    RateIgnored,
    /// S3: evictions go on while every cluster looks dead.
    AllDeadIgnored,
    /// S4: an eviction check that fails lets the old copy go.
    FaultReleases,
    /// S5: a process that only reports sends its writes.
    ReportWrites,
    /// S6: a policy removes taints that others added.
    ForeignTaintRemoved,
    /// S7: an eviction is not recorded.
    EvictionUnrecorded,
    /// S8: when something is looked at again is left to chance.
    LeftToChance,
    /// L1: a task is held for ever.
    HeldForEver,
    /// L2: taints stay when their reason is gone.
    TaintStays,
    /// L3: a restart forgets when the last eviction was.
    LastEvictionForgotten,
}

impl Mutation {
    /// Every mistake, in the order of declaration.
    pub const ALL: [Self; 25] = [
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
        Self::HeldForEver,
        Self::TaintStays,
        Self::LastEvictionForgotten,
    ];
}

/// Whether this thread makes the mistake.
#[cfg(not(feature = "mutations"))]
#[inline]
pub const fn on(_: Mutation) -> bool {
    false
}

/// Whether this thread makes the mistake.
#[cfg(feature = "mutations")]
pub fn on(mutation: Mutation) -> bool {
    made::MADE.get() == Some(mutation)
}

/// A number below `below` that nobody can foretell.
#[cfg(feature = "mutations")]
pub fn chance(below: i64) -> i64 {
    use std::hash::{BuildHasher, RandomState};
    i64::try_from(RandomState::new().hash_one(0) >> 1).unwrap_or(0) % below.max(1)
}

/// A number below `below` that nobody can foretell; without mistakes there are none.
#[cfg(not(feature = "mutations"))]
pub const fn chance(_: i64) -> i64 {
    0
}

#[cfg(feature = "mutations")]
mod made {
    use std::cell::Cell;

    use super::Mutation;

    thread_local! {
        pub(super) static MADE: Cell<Option<Mutation>> = const { Cell::new(None) };
    }

    /// Lets this thread make a mistake from now on, or none.
    pub fn make(mutation: Option<Mutation>) {
        MADE.set(mutation);
    }
}

#[cfg(feature = "mutations")]
pub use made::make;
