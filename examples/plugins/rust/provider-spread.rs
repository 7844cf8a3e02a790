//! Prefers clusters of providers that run fewer replicas of the workload: 100 for a provider without any.

use std::collections::HashMap;

use bulkhead_sdk::{Binding, Clusters, Plugin, PolicyError, Score};

struct Spread;

impl Plugin for Spread {
    const NAME: &'static str = "provider-spread";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const REUSABLE: bool = true;

    fn configure(_config: &str) -> Result<Self, PolicyError> {
        Ok(Self)
    }
}

impl Score for Spread {
    fn score(&self, _binding: &Binding, feasible: &Clusters) -> Result<Vec<u32>, PolicyError> {
        let providers = feasible.providers();
        let mut sums: HashMap<&str, u64> = HashMap::new();
        for (provider, replicas) in providers.iter().zip(feasible.replicas()) {
            *sums.entry(provider).or_default() += u64::from(replicas);
        }
        let total: u64 = sums.values().sum();
        let score = |provider: &String| {
            let share = (100 * sums.get(provider.as_str()).copied().unwrap_or(0)).checked_div(total).unwrap_or(0);
            100 - share.min(100) as u32
        };
        Ok(providers.iter().map(score).collect())
    }
}

bulkhead_sdk::export!(Spread: Score);
