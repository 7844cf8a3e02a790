//! Span and log line of each policy call.
//!
//! Both have debug level. Without a subscriber that shows them, a call costs one atomic load more.

use bulkhead_core::call::{Call, EvictionVerdict, FilterVerdict, Reply};
use bulkhead_core::policy::{Fault, Policy};
use tracing::field::Empty;
use tracing::{Span, debug, debug_span};

/// Target of the spans and log lines of policy calls.
const TARGET: &str = "bulkhead::plugin";

/// Calls a policy through `answer`, in a span with the policy, its engine, the digest of its code, the resources that
/// its engine measures, and the verdict or the fault.
pub(crate) fn in_span(
    policy: &dyn Policy,
    call: &Call<'_>,
    answer: impl FnOnce() -> Result<Reply, Fault>,
) -> Result<Reply, Fault> {
    let id = policy.id();
    let span = debug_span!(
        target: TARGET,
        "call",
        kind = call.kind().as_str(),
        policy = id.name.as_str(),
        engine = id.engine.as_str(),
        digest = policy.build().map(|build| build.code.as_str()),
        steps = Empty,
        memory_bytes = Empty,
        verdict = Empty,
        fault = Empty,
    );
    if span.is_disabled() {
        return answer();
    }
    span.in_scope(|| {
        let answer = answer();
        match &answer {
            Ok(reply) => {
                span.record("verdict", verdict(reply));
                debug!(target: TARGET, "answered");
            }
            Err(fault) => {
                span.record("fault", fault.kind.code());
                debug!(target: TARGET, "fault: {fault}");
            }
        }
        answer
    })
}

/// Records the resources of a call in its span, which is the current one of the engine: steps in the unit of the
/// engine, and the highest memory use.
pub(crate) fn record_usage(steps: u64, memory_bytes: u64) {
    let span = Span::current();
    span.record("steps", steps);
    span.record("memory_bytes", memory_bytes);
}

/// Returns a reply in a few words, without texts of the plugin.
fn verdict(reply: &Reply) -> String {
    match reply {
        Reply::Health(verdict) => format!("{:?}", verdict.health),
        Reply::ClusterTaint(verdict) => format!("{} taint changes", verdict.changes.len()),
        Reply::Filter(verdicts) => {
            let fit = verdicts
                .iter()
                .filter(|verdict| !matches!(verdict, FilterVerdict::Unfit(_)))
                .count();
            format!("{fit} of {} fit", verdicts.len())
        }
        Reply::Score(scores) => format!("{} scores", scores.len()),
        Reply::EvictionCheck(EvictionVerdict::Release(_)) => "Release".to_owned(),
        Reply::EvictionCheck(EvictionVerdict::Hold { .. }) => "Hold".to_owned(),
        Reply::EvictionCheck(EvictionVerdict::Abstain) => "Abstain".to_owned(),
        Reply::Interpret(Some(_)) => "Interpreted".to_owned(),
        Reply::Interpret(None) => "NoRule".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bulkhead_core::call::{HealthCall, HealthVerdict, Reason};
    use bulkhead_core::model::Health;
    use bulkhead_core::policy::{Build, Capability, EngineKind, FaultKind, PolicyId};
    use bulkhead_core::time::Time;
    use serde_json::json;
    use tracing_subscriber::filter::LevelFilter;

    use super::*;
    use crate::{Bounded, UsageMeter, captured};

    /// A plugin that takes 250 steps and 4 KiB, and answers `Healthy` or faults.
    struct Plugin(PolicyId, Build, Option<FaultKind>);

    impl Policy for Plugin {
        fn id(&self) -> &PolicyId {
            &self.0
        }

        fn capabilities(&self) -> &[Capability] {
            &[]
        }

        fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
            UsageMeter::default().record(call.kind(), 250, 4096);
            let reason = Reason::new("Rolled", "secret text");
            let verdict = Reply::Health(HealthVerdict {
                health: Health::Healthy,
                reason,
            });
            self.2
                .map_or(Ok(verdict), |kind| Err(Fault::new(kind, "line 3: no field")))
        }

        fn build(&self) -> Option<&Build> {
            Some(&self.1)
        }
    }

    /// Calls a plugin once. Returns the log as JSON lines.
    fn logged(fault: Option<FaultKind>, level: LevelFilter) -> Vec<serde_json::Value> {
        let id = PolicyId {
            name: "rollout".to_owned(),
            version: "2".to_owned(),
            engine: EngineKind::Lua,
        };
        let build = Build {
            code: "c0de".to_owned(),
            config: String::new(),
            image: None,
        };
        let policy = Bounded::new(Arc::new(Plugin(id, build, fault)));
        let (dispatch, captured) = captured::subscriber(level);
        let object = Arc::new(json!({}));
        let call = Call::Health(HealthCall {
            object: &object,
            now: Time::from_millis(0),
        });
        tracing::dispatcher::with_default(&dispatch, || drop(policy.call(&call)));
        captured.json()
    }

    #[test]
    fn the_span_of_a_call_has_the_engine_the_digest_the_resources_and_the_verdict() {
        let lines = logged(None, LevelFilter::DEBUG);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let expected = json!({
            "name": "call", "kind": "health", "policy": "rollout", "engine": "lua", "digest": "c0de",
            "steps": 250, "memory_bytes": 4096, "verdict": "Healthy",
        });
        assert_eq!(lines[0]["spans"][0], expected);
    }

    #[test]
    fn the_span_of_a_failed_call_has_the_fault_and_no_verdict() {
        let lines = logged(Some(FaultKind::Trap), LevelFilter::DEBUG);
        assert_eq!(lines[0]["spans"][0]["fault"], "PluginTrapped");
        assert_eq!(lines[0]["spans"][0].get("verdict"), None);
        assert_eq!(lines[0]["message"], "fault: line 3: no field");
    }

    #[test]
    fn a_call_is_not_logged_without_debug_level() {
        assert_eq!(
            logged(Some(FaultKind::Trap), LevelFilter::INFO),
            Vec::<serde_json::Value>::new()
        );
    }
}
