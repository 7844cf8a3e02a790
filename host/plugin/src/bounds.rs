use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use bulkhead_core::call::{Call, CallKind, EvictionVerdict, FilterVerdict, Reason, Reply, TaintChange};
use bulkhead_core::policy::{Build, Capability, EngineKind, Fault, FaultKind, Policy, PolicyId, Usage};

use crate::call_counts::{CallCounters, CallCounts, KindReport};
use crate::call_span::in_span;
use crate::text::{is_plain, one_line, plain};

mod interpretation;

pub use interpretation::JSON_DEPTH_MAX;

/// Maximum length of a fault's message, in characters; longer ones are truncated.
pub const FAULT_MESSAGE_CHARS_MAX: usize = 4096;
/// Maximum length of a reason code, in characters.
pub const REASON_CODE_CHARS_MAX: usize = 64;
/// Maximum length of a reason message, in characters; longer ones are truncated.
pub const REASON_MESSAGE_CHARS_MAX: usize = 1024;
/// Maximum number of taint changes in one reply.
pub const TAINT_CHANGES_MAX: usize = 64;

/// Policy whose replies are checked against bounds. Used for all policies, built-in ones included.
///
/// A reply of another kind than its call, of another length than the call's list, with a score outside 0..=100 or
/// with too many changes is a [`FaultKind::BadReply`]. So is an interpretation that is nested deeper or has more
/// parts than any object of an API. A panic is a [`FaultKind::HostBug`]. Reasons and messages of faults are truncated
/// and stripped of invisible characters.
pub struct Bounded {
    inner: Arc<dyn Policy>,
    /// Keys of the taints that it may change; absent for policies that may change any.
    taint_keys: Option<Vec<String>>,
    counters: CallCounters,
}

impl Bounded {
    /// Wraps a policy.
    pub fn new(inner: Arc<dyn Policy>) -> Self {
        Self {
            inner,
            taint_keys: None,
            counters: CallCounters::default(),
        }
    }

    /// Wraps a policy that may change only taints with these keys.
    pub fn with_taint_keys(inner: Arc<dyn Policy>, keys: Vec<String>) -> Self {
        Self {
            taint_keys: Some(keys),
            ..Self::new(inner)
        }
    }

    /// Returns the current counters.
    pub fn counts(&self) -> CallCounts {
        self.counters.counts()
    }

    /// Returns the counters by kind, for the kinds that the policy answers.
    pub(crate) fn kinds(&self) -> Vec<KindReport> {
        let answers = |kind: &CallKind| self.capabilities().iter().any(|capability| capability.kind == *kind);
        let kinds = CallKind::ALL.into_iter().filter(answers);
        kinds
            .map(|kind| self.counters.of_kind(kind, self.usage_of(kind)))
            .collect()
    }

    /// Rejects changes of taints that the plugin does not declare.
    fn with_own_taints(&self, reply: Reply) -> Result<Reply, Fault> {
        let (Some(keys), Reply::ClusterTaint(verdict)) = (&self.taint_keys, &reply) else {
            return Ok(reply);
        };
        let touched = verdict.changes.iter().map(|change| match change {
            TaintChange::Add { taint, .. } => &taint.key,
            TaintChange::Remove { key, .. } => key,
        });
        match touched.into_iter().find(|key| !keys.contains(key)) {
            None => Ok(reply),
            Some(key) => {
                let declared = if keys.is_empty() {
                    "none".to_owned()
                } else {
                    keys.join(", ")
                };
                let message = format!("a change of the taint {key:?}; the plugin declares {declared}");
                Err(Fault::new(FaultKind::BadReply, message))
            }
        }
    }

    /// Counts an answer in shadow mode that differed from the decision.
    pub(crate) fn count_divergence(&self) {
        self.counters.count_divergence();
    }
}

impl Policy for Bounded {
    fn id(&self) -> &PolicyId {
        self.inner.id()
    }

    fn capabilities(&self) -> &[Capability] {
        self.inner.capabilities()
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let kind = call.kind();
        self.counters.start(kind);
        // A compiled-in policy takes about as long as two looks at the clock.
        let start = (self.id().engine != EngineKind::Builtin).then(Instant::now);
        let answer = in_span(&*self.inner, call, || {
            catch_unwind(AssertUnwindSafe(|| self.inner.call(call)))
                .unwrap_or_else(|_| Err(Fault::new(FaultKind::HostBug, "the policy panicked")))
                .and_then(|reply| in_bounds(call, reply))
                .and_then(|reply| self.with_own_taints(reply))
                .map_err(tidy_fault)
        });
        if let Some(start) = start {
            self.counters.took(kind, start.elapsed());
        }
        self.counters.end(kind, &answer);
        answer
    }

    fn usage_of(&self, kind: CallKind) -> Usage {
        self.inner.usage_of(kind)
    }

    fn build(&self) -> Option<&Build> {
        self.inner.build()
    }
}

fn in_bounds(call: &Call<'_>, mut reply: Reply) -> Result<Reply, Fault> {
    let bad = |message: String| Err(Fault::new(FaultKind::BadReply, message));
    match (call, &mut reply) {
        (Call::Health(_), Reply::Health(verdict)) => tidy(&mut verdict.reason),
        (Call::ClusterTaint(_), Reply::ClusterTaint(verdict)) => {
            if verdict.changes.len() > TAINT_CHANGES_MAX {
                return bad(format!(
                    "{} taint changes, at most {TAINT_CHANGES_MAX} allowed",
                    verdict.changes.len()
                ));
            }
            for change in &mut verdict.changes {
                let (key, reason) = match change {
                    TaintChange::Add { taint, reason } => (&taint.key, reason),
                    TaintChange::Remove { key, reason, .. } => (&*key, reason),
                };
                if !is_label_key(key) {
                    let shown: String = key.chars().take(80).collect();
                    return bad(format!(
                        "the taint key {shown:?} is not a label key such as example.com/slow"
                    ));
                }
                tidy(reason);
            }
        }
        (Call::Filter(call), Reply::Filter(verdicts)) => {
            if verdicts.len() != call.clusters.len() {
                return bad(format!(
                    "{} verdicts for {} clusters",
                    verdicts.len(),
                    call.clusters.len()
                ));
            }
            for verdict in verdicts {
                if let FilterVerdict::Unfit(reason) = verdict {
                    tidy(reason);
                }
            }
        }
        (Call::Score(call), Reply::Score(scores)) => {
            if scores.len() != call.clusters.len() {
                return bad(format!("{} scores for {} clusters", scores.len(), call.clusters.len()));
            }
            if let Some(score) = scores.iter().find(|score| !(0..=100).contains(*score)) {
                return bad(format!("score {score} is outside 0..=100"));
            }
        }
        (Call::EvictionCheck(_), Reply::EvictionCheck(verdict)) => match verdict {
            EvictionVerdict::Release(reason) | EvictionVerdict::Hold { reason, .. } => tidy(reason),
            EvictionVerdict::Abstain => {}
        },
        (Call::Interpret(call), Reply::Interpret(Some(found))) if !found.answers(&call.operation) => {
            return bad(format!(
                "an interpretation that does not answer {}",
                call.operation.name()
            ));
        }
        (Call::Interpret(_), Reply::Interpret(found)) => {
            if let Some(excess) = found.as_ref().and_then(interpretation::excess) {
                return bad(excess);
            }
        }
        (call, reply) => return bad(format!("a {} reply to a {} call", reply.kind(), call.kind())),
    }
    Ok(reply)
}

/// Returns true if the API accepts the key for a taint. An invalid key would block the taints of all other policies.
fn is_label_key(key: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_alphanumeric();
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_name = (1..=63).contains(&name.len())
        && name.chars().all(|c| alphanumeric(c) || "-_.".contains(c))
        && name.starts_with(alphanumeric)
        && name.ends_with(alphanumeric);
    let is_label = |label: &str| {
        let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        label.chars().all(|c| lower(c) || c == '-') && label.starts_with(lower) && label.ends_with(lower)
    };
    is_name && prefix.is_none_or(|prefix| prefix.len() <= 253 && prefix.split('.').all(is_label))
}

fn tidy_fault(mut fault: Fault) -> Fault {
    if !is_plain(&fault.message, FAULT_MESSAGE_CHARS_MAX) {
        fault.message = one_line(&fault.message, FAULT_MESSAGE_CHARS_MAX);
    }
    fault
}

fn tidy(reason: &mut Reason) {
    if !is_plain(&reason.code, REASON_CODE_CHARS_MAX) {
        reason.code = plain(&reason.code, REASON_CODE_CHARS_MAX);
    }
    // Line breaks and tabs separate words, so they become spaces.
    if !is_plain(&reason.message, REASON_MESSAGE_CHARS_MAX) {
        reason.message = one_line(&reason.message, REASON_MESSAGE_CHARS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::call::{CallKind, ClusterTaintCall, HealthCall, HealthVerdict, ScoreCall, TaintVerdict};
    use bulkhead_core::model::{Binding, Cluster, Health, TaintEffect};
    use bulkhead_core::snapshot::ClusterSnapshot;
    use bulkhead_core::time::Time;
    use serde_json::json;

    use super::*;

    struct Fixed(PolicyId, Box<dyn Fn() -> Reply + Send + Sync>);

    impl Policy for Fixed {
        fn id(&self) -> &PolicyId {
            &self.0
        }
        fn capabilities(&self) -> &[Capability] {
            &[]
        }
        fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
            Ok((self.1)())
        }
    }

    fn bounded(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Bounded {
        Bounded::new(Arc::new(Fixed(PolicyId::builtin("fixed"), Box::new(reply))))
    }

    fn kind_of(result: Result<Reply, Fault>) -> Option<FaultKind> {
        result.err().map(|fault| fault.kind)
    }

    #[test]
    fn replies_out_of_bounds_are_faults() {
        let (binding, clusters) = (Binding::default(), ClusterSnapshot::new([Arc::new(Cluster::default())]));
        let call = Call::Score(ScoreCall {
            binding: &binding,
            clusters: clusters.present(),
            now: Time::from_millis(0),
        });
        let check = |reply: Vec<i64>, expected| {
            assert_eq!(
                kind_of(bounded(move || Reply::Score(reply.clone())).call(&call)),
                expected
            );
        };
        check(vec![100], None);
        check(vec![101], Some(FaultKind::BadReply));
        check(vec![-1], Some(FaultKind::BadReply));
        check(vec![], Some(FaultKind::BadReply));
        assert_eq!(
            kind_of(bounded(|| Reply::Filter(vec![])).call(&call)),
            Some(FaultKind::BadReply)
        );
    }

    #[test]
    fn a_plugin_changes_no_taints_but_its_own() {
        let cluster = Cluster::default();
        let call = Call::ClusterTaint(ClusterTaintCall {
            cluster: &cluster,
            now: Time::from_millis(0),
        });
        let reply = || {
            let reason = Reason::new("Why", "");
            let change = TaintChange::Remove {
                key: "a".to_owned(),
                effect: TaintEffect::NoExecute,
                reason,
            };
            Reply::ClusterTaint(TaintVerdict { changes: vec![change] })
        };
        let check = |keys: &[&str], expected| {
            let keys = keys.iter().map(ToString::to_string).collect();
            let inner = Arc::new(Fixed(PolicyId::builtin("fixed"), Box::new(reply)));
            assert_eq!(kind_of(Bounded::with_taint_keys(inner, keys).call(&call)), expected);
        };
        check(&["a", "b"], None);
        check(&["b"], Some(FaultKind::BadReply));
        check(&[], Some(FaultKind::BadReply));
        assert_eq!(kind_of(bounded(reply).call(&call)), None);
    }

    #[test]
    fn a_panic_is_a_fault_of_the_host() {
        let object = Arc::new(json!({}));
        let policy = bounded(|| panic!("boom"));
        assert_eq!(
            kind_of(policy.call(&Call::Health(HealthCall {
                object: &object,
                now: Time::from_millis(0)
            }))),
            Some(FaultKind::HostBug)
        );
        assert_eq!(
            policy.counts(),
            CallCounts {
                calls: 1,
                faults: 1,
                holds: 0,
                divergences: 0
            }
        );
    }

    #[test]
    fn reasons_are_cut_and_stripped() {
        let object = Arc::new(json!({}));
        let reply = || {
            let reason = Reason::new("A\u{1b}[31m\u{202e}", "x".repeat(5000));
            Reply::Health(HealthVerdict {
                health: Health::Healthy,
                reason,
            })
        };
        let Ok(Reply::Health(verdict)) = bounded(reply).call(&Call::Health(HealthCall {
            object: &object,
            now: Time::from_millis(0),
        })) else {
            panic!("no health");
        };
        assert_eq!(verdict.reason.message.chars().count(), REASON_MESSAGE_CHARS_MAX);
        assert_eq!(verdict.reason.code, "A[31m");
        assert_eq!(
            CallKind::Health,
            Call::Health(HealthCall {
                object: &object,
                now: Time::from_millis(0)
            })
            .kind()
        );
    }

    #[test]
    fn words_of_a_message_stay_apart() {
        let object = Arc::new(json!({}));
        let reply = || {
            let reason = Reason::new("Failed", "role cannot be found.\n\tstatus code: 404\u{7}\n");
            Reply::Health(HealthVerdict {
                health: Health::Unhealthy,
                reason,
            })
        };
        let call = Call::Health(HealthCall {
            object: &object,
            now: Time::from_millis(0),
        });
        let Ok(Reply::Health(verdict)) = bounded(reply).call(&call) else {
            panic!("no health")
        };
        assert_eq!(verdict.reason.message, "role cannot be found.  status code: 404 ");
    }

    #[test]
    fn a_taint_key_has_to_be_one_that_the_api_takes() {
        for (key, expected) in [
            ("slow", true),
            ("example.com/slow_1", true),
            ("", false),
            ("not a key", false),
            ("a/b/c", false),
            ("Example.com/slow", false),
            ("/slow", false),
            ("-slow", false),
        ] {
            assert_eq!(is_label_key(key), expected, "{key:?}");
        }
    }
}
