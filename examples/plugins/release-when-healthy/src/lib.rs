//! Releases an old copy when every target cluster reports the workload as healthy. Same rule as the built-in
//! `ResourceHealth`.

use bulkhead_sdk::{Binding, EvictionCheck, EvictionTask, EvictionVerdict, HealthState, Plugin, PolicyError, Reason};

struct ReleaseWhenHealthy;

impl Plugin for ReleaseWhenHealthy {
    const NAME: &'static str = "release-when-healthy";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DESCRIPTION: &'static str = "Releases an old copy when every target cluster reports the workload as healthy";
    const REUSABLE: bool = true;

    fn configure(_config: &str) -> Result<Self, PolicyError> {
        Ok(Self)
    }
}

fn hold(code: &str, message: impl Into<String>) -> EvictionVerdict {
    EvictionVerdict::hold(Reason::new(code, message))
}

/// Returns the reason why a report does not count as healthy, or `None` if it does.
fn shortcoming(report: Option<&Option<HealthState>>) -> Option<&'static str> {
    match report {
        Some(Some(HealthState::Healthy)) => None,
        Some(Some(HealthState::Unhealthy)) => Some("Unhealthy"),
        Some(Some(HealthState::Unknown)) => Some("Unknown"),
        Some(None) => Some("no health yet"),
        None => Some("no status yet"),
    }
}

impl EvictionCheck for ReleaseWhenHealthy {
    fn check(&self, binding: &Binding, _task: &EvictionTask) -> Result<EvictionVerdict, PolicyError> {
        let document = binding.document();
        let generation = document.get_s64("/generation").unwrap_or(0);
        let seen = document.get_s64("/status/schedulerObservedGeneration").unwrap_or(0);
        if seen != generation {
            let message = format!("the scheduler has seen generation {seen} of {generation}");
            return Ok(hold("SchedulePending", message));
        }
        let targets = binding.targets();
        if targets.is_empty() {
            return Ok(hold("NoReplacement", "the workload is scheduled to no cluster"));
        }
        let reports = binding.observed();
        let (clusters, health) = (reports.clusters(), reports.health());
        let lacking = targets.iter().filter_map(|target| {
            // Reports are sorted by cluster name. A binary search is much cheaper than building a map.
            let place = clusters.binary_search(&target.cluster).ok();
            let missing = shortcoming(place.and_then(|place| health.get(place)))?;
            Some(format!("{}: {missing}", target.cluster))
        });
        let lacking: Vec<_> = lacking.collect();
        if !lacking.is_empty() {
            return Ok(hold("ReplacementNotHealthy", lacking.join(", ")));
        }
        let count = targets.len();
        let message = format!("{count} of {count} target clusters report Healthy");
        Ok(EvictionVerdict::Release(Reason::new("ReplacementHealthy", message)))
    }
}

bulkhead_sdk::export!(ReleaseWhenHealthy: EvictionCheck);
