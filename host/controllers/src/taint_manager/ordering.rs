//! Scores of plugins for evictions, with a bound on how long one scan waits for them.

use std::sync::Arc;
use std::time::Duration;

use bulkhead_core::call::CallKind;
use bulkhead_core::combine;
use bulkhead_core::policy::{Policy, PolicySet};
use tokio::time::Instant;

use super::{Dependencies, NAME};
use crate::binding_kind::Binding;
use crate::subjects::subject;

/// Time for which one scan waits for scores. An order that arrives later than the slots is useless, and evictions
/// that are not in the queue do not happen at all.
const SCORES_TIME_MAX: Duration = Duration::from_secs(5);

/// Scores for the evictions of one scan.
pub(super) struct Ordering {
    policies: Arc<PolicySet>,
    until: Instant,
}

impl Ordering {
    pub(super) fn new(deps: &Dependencies) -> Self {
        Self {
            policies: deps.decider.registry.eviction_order(),
            until: Instant::now() + SCORES_TIME_MAX,
        }
    }

    /// Returns the score of a binding that leaves a cluster; 0 without plugins, and after the time of the scan.
    pub(super) async fn score<B: Binding>(&self, deps: &Dependencies, binding: &B, cluster: &str) -> i64 {
        if self.policies.entries().is_empty() {
            return 0;
        }
        let Some(source) = deps.stores.cluster(cluster) else {
            return 0;
        };
        let (source, binding_model, now) = (Arc::new(source.to_model()), binding.to_model(), deps.clock.now());
        let scores = |policy: &dyn Policy| policy.capabilities().iter().any(|can| can.kind == CallKind::Score);
        let decide = move |policies: &PolicySet| combine::eviction_order(policies, &binding_model, &source, now);
        let remaining = self.until.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return 0;
        }
        let (score, diagnostics) = deps
            .decider
            .ask_within(remaining, NAME, Arc::clone(&self.policies), scores, decide)
            .await;
        deps.log
            .record_diagnostics(NAME, &subject(binding), Some(cluster), &diagnostics);
        score
    }
}
