//! Counters, durations and resources of the calls of one policy, by kind of call.
//!
//! Only metrics and reports read them. No decision depends on them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bulkhead_core::call::{CallKind, EvictionVerdict, Reply};
use bulkhead_core::policy::{Fault, FaultKind, Usage};

use crate::call_span::record_usage;

/// Upper bounds of the buckets of [`Durations`], in seconds.
pub const DURATION_BOUNDS_S: [f64; 13] = [
    0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0,
];

/// Call counters of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Total number of calls.
    pub calls: u64,
    /// Calls that ended in a fault.
    pub faults: u64,
    /// Eviction checks that were answered with a hold.
    pub holds: u64,
    /// Calls in shadow mode whose answer differed from the decision.
    pub divergences: u64,
}

/// Distribution of the durations of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// Number of calls by bucket: those above the previous bound and up to its own, and those above the last bound.
    pub buckets: [u64; DURATION_BOUNDS_S.len() + 1],
    /// Sum of all durations.
    pub sum: Duration,
}

impl Durations {
    /// Returns the number of calls.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Calls of one kind that a policy answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindReport {
    /// Kind of the calls.
    pub kind: CallKind,
    /// Counters. Divergences are counted for all kinds together.
    pub counts: CallCounts,
    /// Durations; empty for compiled-in policies.
    pub durations: Durations,
    /// Resources.
    pub usage: Usage,
}

/// Resource usage of a policy by kind of call, as an engine records it.
#[derive(Debug, Default)]
pub struct UsageMeter([KindUsage; CallKind::ALL.len()]);

#[derive(Debug, Default)]
struct KindUsage {
    steps: AtomicU64,
    memory_bytes_max: AtomicU64,
}

impl UsageMeter {
    /// Adds the resources of one call, and records them in its span.
    pub fn record(&self, kind: CallKind, steps: u64, memory_bytes: usize) {
        let usage = &self.0[kind.index()];
        usage.steps.fetch_add(steps, Ordering::Relaxed);
        let bytes = u64::try_from(memory_bytes).unwrap_or(u64::MAX);
        usage.memory_bytes_max.fetch_max(bytes, Ordering::Relaxed);
        record_usage(steps, bytes);
    }

    /// Returns the usage of the calls of one kind so far.
    pub fn usage_of(&self, kind: CallKind) -> Usage {
        let usage = &self.0[kind.index()];
        Usage {
            steps: usage.steps.load(Ordering::Relaxed),
            memory_bytes_max: usage.memory_bytes_max.load(Ordering::Relaxed),
        }
    }
}

/// Counters of a policy's calls.
#[derive(Debug, Default)]
pub(crate) struct CallCounters {
    kinds: [KindCounters; CallKind::ALL.len()],
    divergences: AtomicU64,
}

#[derive(Debug, Default)]
struct KindCounters {
    calls: AtomicU64,
    faults: AtomicU64,
    holds: AtomicU64,
    buckets: [AtomicU64; DURATION_BOUNDS_S.len() + 1],
    sum_ns: AtomicU64,
}

impl CallCounters {
    /// Counts a call when it starts.
    pub(crate) fn start(&self, kind: CallKind) {
        self.kinds[kind.index()].calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the answer of a call. An abstention is no fault.
    pub(crate) fn end(&self, kind: CallKind, answer: &Result<Reply, Fault>) {
        let counters = &self.kinds[kind.index()];
        match answer {
            Err(fault) if fault.kind != FaultKind::Unsupported => counters.faults.fetch_add(1, Ordering::Relaxed),
            Ok(Reply::EvictionCheck(EvictionVerdict::Hold { .. })) => counters.holds.fetch_add(1, Ordering::Relaxed),
            Ok(_) | Err(_) => 0,
        };
    }

    /// Records the duration of a call.
    pub(crate) fn took(&self, kind: CallKind, took: Duration) {
        let (counters, seconds) = (&self.kinds[kind.index()], took.as_secs_f64());
        let bucket = DURATION_BOUNDS_S.partition_point(|bound| *bound < seconds);
        counters.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        counters.sum_ns.fetch_add(took_ns, Ordering::Relaxed);
    }

    /// Counts an answer in shadow mode that differed from the decision.
    pub(crate) fn count_divergence(&self) {
        self.divergences.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counters of all calls.
    pub(crate) fn counts(&self) -> CallCounts {
        let sum = |count: fn(&KindCounters) -> &AtomicU64| {
            let of_kinds = self
                .kinds
                .iter()
                .map(|counters| count(counters).load(Ordering::Relaxed));
            of_kinds.sum::<u64>()
        };
        CallCounts {
            calls: sum(|counters| &counters.calls),
            faults: sum(|counters| &counters.faults),
            holds: sum(|counters| &counters.holds),
            divergences: self.divergences.load(Ordering::Relaxed),
        }
    }

    /// Returns the counters and durations of the calls of one kind. `usage` are the resources that its engine recorded.
    pub(crate) fn of_kind(&self, kind: CallKind, usage: Usage) -> KindReport {
        let counters = &self.kinds[kind.index()];
        let counts = CallCounts {
            calls: counters.calls.load(Ordering::Relaxed),
            faults: counters.faults.load(Ordering::Relaxed),
            holds: counters.holds.load(Ordering::Relaxed),
            divergences: 0,
        };
        let durations = Durations {
            buckets: std::array::from_fn(|bucket| counters.buckets[bucket].load(Ordering::Relaxed)),
            sum: Duration::from_nanos(counters.sum_ns.load(Ordering::Relaxed)),
        };
        KindReport {
            kind,
            counts,
            durations,
            usage,
        }
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::call::Reason;

    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let check = |took_us: u64, bucket: usize| {
            let counters = CallCounters::default();
            counters.took(CallKind::Score, Duration::from_micros(took_us));
            let Durations { buckets, sum } = counters.of_kind(CallKind::Score, Usage::default()).durations;
            assert_eq!(
                buckets.iter().position(|count| *count == 1),
                Some(bucket),
                "{took_us} µs"
            );
            assert_eq!(sum, Duration::from_micros(took_us));
        };
        check(0, 0);
        check(10, 0);
        check(11, 1);
        check(1_000, 4);
        check(10_000_000, 12);
        check(10_000_001, 13);
    }

    #[test]
    fn answers_are_counted_by_kind_and_abstentions_are_no_faults() {
        let counters = CallCounters::default();
        let hold = || EvictionVerdict::Hold {
            reason: Reason::new("Wait", "not yet"),
            recheck_after_s: None,
        };
        let answers = [
            (CallKind::EvictionCheck, Ok(Reply::EvictionCheck(hold()))),
            (
                CallKind::EvictionCheck,
                Ok(Reply::EvictionCheck(EvictionVerdict::Abstain)),
            ),
            (CallKind::EvictionCheck, Err(Fault::new(FaultKind::Trap, "trap"))),
            (
                CallKind::Health,
                Err(Fault::new(FaultKind::Unsupported, "not this kind")),
            ),
        ];
        for (kind, answer) in &answers {
            counters.start(*kind);
            counters.end(*kind, answer);
        }
        let of = |kind| counters.of_kind(kind, Usage::default()).counts;
        let expected = CallCounts {
            calls: 3,
            faults: 1,
            holds: 1,
            divergences: 0,
        };
        assert_eq!(of(CallKind::EvictionCheck), expected);
        assert_eq!((of(CallKind::Health).calls, of(CallKind::Health).faults), (1, 0));
        assert_eq!(counters.counts().calls, 4);
    }

    #[test]
    fn the_usage_of_a_kind_is_the_sum_of_its_steps_and_the_peak_of_its_memory() {
        let meter = UsageMeter::default();
        meter.record(CallKind::Health, 10, 300);
        meter.record(CallKind::Health, 5, 100);
        meter.record(CallKind::Score, 1, 900);
        let of = |kind| {
            let usage = meter.usage_of(kind);
            (usage.steps, usage.memory_bytes_max)
        };
        assert_eq!(of(CallKind::Health), (15, 300));
        assert_eq!(of(CallKind::Score), (1, 900));
        assert_eq!(of(CallKind::Filter), (0, 0));
    }
}
