//! Record of a decision, which is made before the decision is carried out.

use std::sync::Arc;

use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::schedule::{Conclusion, Outcome, SchedulePlan, Trigger};
use bulkhead_core::journal::{Decision, DecisionRecord};
use bulkhead_core::model::{Condition, TargetCluster};

use super::{Dependencies, NAME};
use crate::binding_kind::Binding;
use crate::decision_log::{Record, RecordedDecision};
use crate::subjects::{input, subject};

/// Recorded plan, which may be carried out.
pub(super) struct Recorded {
    pub(super) trigger: Trigger,
    pub(super) plan: SchedulePlan,
    /// Records that depend on the plan's being carried out.
    pub(super) records: Vec<RecordedDecision>,
}

/// Records a decision before it is carried out, unless it was recorded before.
pub(super) fn record<B: Binding>(
    deps: &Dependencies,
    binding: &B,
    plan: &SchedulePlan,
    trigger: Trigger,
    decision_record: impl FnOnce() -> Option<Arc<DecisionRecord>>,
) -> Vec<RecordedDecision> {
    let conclusion = &plan.conclude(&binding.to_model(), Ok(()));
    let (decision, attribution, effect) = match &plan.outcome {
        Outcome::Nothing => return Vec::new(),
        Outcome::Place(targets) if binding.spec().clusters == *targets => return Vec::new(),
        Outcome::Place(targets) => (
            Decision::Scheduled,
            Attribution::rule("Success", reasons(binding, plan, trigger)),
            TargetCluster::list(targets),
        ),
        Outcome::Clear(_) | Outcome::Keep(_) if !is_new_result(binding, conclusion) => return Vec::new(),
        Outcome::Clear(_) | Outcome::Keep(_) => {
            let attribution = Attribution::rule(conclusion.verdict.reason, &conclusion.verdict.message);
            (Decision::NotScheduled, attribution, String::new())
        }
    };
    let record = |cluster, decision, attribution, effect| Record {
        controller: NAME,
        subject: subject(binding),
        cluster,
        decision,
        attribution,
        effect,
        inputs: vec![input(binding)],
    };
    let decision_record = decision_record();
    let explanation = plan.explanation.clone().map(Arc::new);
    let scheduled = deps.log.record_decided(
        record(None, decision, attribution, effect),
        decision_record.as_ref(),
        explanation,
    );
    let displaced = plan.displaced.iter().map(|task| {
        let attribution = Attribution::rule(
            &task.reason,
            format!("the scheduler chose other clusters: {}", trigger.describe()),
        );
        let effect = format!(
            "{} replicas stay until those elsewhere are healthy",
            task.replicas.unwrap_or(0)
        );
        let leaves = record(Some(task.from_cluster.clone()), Decision::Evicted, attribution, effect);
        deps.log.record_decided(leaves, decision_record.as_ref(), None)
    });
    std::iter::once(scheduled).chain(displaced).collect()
}

/// Returns the reasons for the result in one line: the trigger, the groups that could not be used, and the clusters
/// that were rejected.
fn reasons<B: Binding>(binding: &B, plan: &SchedulePlan, trigger: Trigger) -> String {
    let mut reasons = vec![trigger.describe().to_owned()];
    let terms = binding
        .spec()
        .placement
        .as_ref()
        .and_then(|placement| placement.cluster_affinities.as_deref());
    for failed in &plan.failed_terms {
        let name = terms
            .and_then(|terms| terms.get(failed.index))
            .map_or("", |term| term.affinity_name.as_str());
        reasons.push(format!("group {name} cannot be used: {}", failed.error));
    }
    if let Some(name) = &plan.affinity_name {
        reasons.push(format!("group {name} was chosen"));
    } else {
        let rejected = plan.rejections.summary();
        reasons.extend((!rejected.is_empty()).then(|| format!("not {rejected}")));
    }
    reasons.join("; ")
}

/// True if the reason or the message of the condition will change.
pub(super) fn is_new_result<B: Binding>(binding: &B, conclusion: &Conclusion) -> bool {
    let verdict = &conclusion.verdict;
    Condition::find(&binding.status().conditions, "Scheduled")
        .is_none_or(|existing| (existing.reason.as_str(), &existing.message) != (verdict.reason, &verdict.message))
}
