//! Releases an old copy as soon as the available replicas on the target clusters cover the desired replicas.

use bulkhead_sdk::{Binding, EvictionCheck, EvictionTask, EvictionVerdict, Plugin, PolicyError, Reason};

struct ReplicasCover;

impl Plugin for ReplicasCover {
    const NAME: &'static str = "release-when-replicas-cover";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DESCRIPTION: &'static str =
        "Releases an old copy when the replicas available elsewhere cover what is desired";
    const REUSABLE: bool = true;

    fn configure(_config: &str) -> Result<Self, PolicyError> {
        Ok(Self)
    }
}

impl EvictionCheck for ReplicasCover {
    fn check(&self, binding: &Binding, _task: &EvictionTask) -> Result<EvictionVerdict, PolicyError> {
        let desired = u64::from(binding.replicas());
        if desired == 0 {
            return Ok(EvictionVerdict::Abstain);
        }
        let reports = binding.observed();
        let (clusters, replicas) = (reports.clusters(), reports.number("/availableReplicas"));
        let there = binding.targets().into_iter().filter_map(|target| {
            // Reports are sorted by cluster name. A binary search is much cheaper than building a set of the targets.
            let place = clusters.binary_search(&target.cluster).ok()?;
            replicas.get(place).copied().filter(|number| *number > 0.0)
        });
        let available: u64 = there.map(|number| number as u64).sum();
        let message = format!("{available} of {desired} replicas are available on the clusters it moved to");
        Ok(if available >= desired {
            EvictionVerdict::Release(Reason::new("ReplicasCover", message))
        } else {
            EvictionVerdict::hold_for(Reason::new("ReplicasMissing", message), 10)
        })
    }
}

bulkhead_sdk::export!(ReplicasCover: EvictionCheck);
