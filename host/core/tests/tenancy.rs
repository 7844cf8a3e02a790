//! Property tests of scopes and tenants, over arbitrary selectors, calls and answers: a plugin is asked inside of its
//! scope only, the plugin of one tenant is never asked about another one, and it never lets more go.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use bulkhead_core::call::{
    Call, CallKind, EvictionCheckCall, EvictionVerdict, FilterCall, HealthCall, HealthVerdict, InterpretCall,
    Operation, Reason, Reply, ScoreCall,
};
use bulkhead_core::combine;
use bulkhead_core::composition::{Composition, EvictionRule, HealthRule};
use bulkhead_core::manifest::{Scope, Tenancy};
use bulkhead_core::model::{Binding, Cluster, GracefulEvictionTask, Health};
use bulkhead_core::policy::{Capability, Fault, FaultKind, Policy, PolicyEntry, PolicyId, PolicySet};
use bulkhead_core::scoped::Scoped;
use bulkhead_core::snapshot::{Candidates, ClusterSnapshot};
use bulkhead_core::time::Time;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

fn now() -> Time {
    Time::from_millis(0)
}

/// Answer of a policy to health calls and eviction checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Good,
    Bad,
    Unknown,
    Abstain,
    Fault,
}

const ANSWERS: [Answer; 5] = [
    Answer::Good,
    Answer::Bad,
    Answer::Unknown,
    Answer::Abstain,
    Answer::Fault,
];

/// Policy with one answer that counts its calls.
struct Probe {
    id: PolicyId,
    capabilities: Vec<Capability>,
    answer: Answer,
    calls: Mutex<usize>,
}

impl Probe {
    fn new(answer: Answer) -> Arc<Self> {
        Arc::new(Self {
            id: PolicyId::builtin("probe"),
            capabilities: CallKind::ALL.map(Capability::any).to_vec(),
            answer,
            calls: Mutex::default(),
        })
    }

    fn calls(&self) -> usize {
        *self.calls.lock().unwrap()
    }
}

impl Policy for Probe {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        *self.calls.lock().unwrap() += 1;
        let reason = Reason::new("Said", "");
        let health = |health| {
            Reply::Health(HealthVerdict {
                health,
                reason: reason.clone(),
            })
        };
        let held = EvictionVerdict::Hold {
            reason: reason.clone(),
            recheck_after_s: None,
        };
        Ok(match (call.kind(), self.answer) {
            (_, Answer::Fault) => return Err(Fault::new(FaultKind::Trap, "trap")),
            (CallKind::Health, Answer::Good) => health(Health::Healthy),
            (CallKind::Health, Answer::Bad) => health(Health::Unhealthy),
            (CallKind::Health, Answer::Unknown) => health(Health::Unknown),
            (CallKind::EvictionCheck, Answer::Good) => Reply::EvictionCheck(EvictionVerdict::Release(reason)),
            (CallKind::EvictionCheck, Answer::Bad | Answer::Unknown) => Reply::EvictionCheck(held),
            (CallKind::EvictionCheck, Answer::Abstain) => Reply::EvictionCheck(EvictionVerdict::Abstain),
            _ => return Err(Fault::new(FaultKind::Unsupported, "")),
        })
    }
}

/// Workload and cluster of a call.
#[derive(Clone, Debug)]
struct Case {
    namespace: Option<&'static str>,
    kind: &'static str,
    team: &'static str,
    cluster: &'static str,
}

impl Case {
    fn object(&self) -> Arc<Value> {
        let mut object =
            json!({"apiVersion": "apps/v1", "kind": self.kind, "metadata": {"labels": {"team": self.team}}});
        if let Some(namespace) = self.namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        Arc::new(object)
    }

    fn binding(&self) -> Binding {
        let resource = json!({"apiVersion": "apps/v1", "kind": self.kind, "name": "web"});
        let binding = json!({"namespace": self.namespace, "name": "web", "spec": {"resource": resource}});
        serde_json::from_value(binding).unwrap()
    }

    fn task(&self) -> GracefulEvictionTask {
        GracefulEvictionTask {
            from_cluster: self.cluster.to_owned(),
            ..GracefulEvictionTask::default()
        }
    }

    /// Makes one call of each kind about a workload, and returns the numbers of calls that arrive at a policy.
    fn ask(&self, probe: &Probe, policy: &dyn Policy) -> Vec<(CallKind, bool)> {
        let (object, binding, task) = (self.object(), self.binding(), self.task());
        let cluster = Arc::new(Cluster {
            name: self.cluster.to_owned(),
            ..Cluster::default()
        });
        let snapshot = ClusterSnapshot::new([cluster]);
        let clusters = Candidates::of_rows(&snapshot, &[0]);
        let (binding, object, now) = (&binding, &object, now());
        let calls = [
            Call::Health(HealthCall { object, now }),
            Call::Interpret(InterpretCall {
                operation: Operation::Replicas { object },
                now,
            }),
            Call::Filter(FilterCall {
                binding,
                clusters,
                peers: &[],
                now,
            }),
            Call::Score(ScoreCall { binding, clusters, now }),
            Call::EvictionCheck(EvictionCheckCall {
                binding,
                task: &task,
                observed: &[],
                now,
            }),
        ];
        let ask = |call: Call<'_>| {
            let before = probe.calls();
            let _ = policy.call(&call);
            (call.kind(), probe.calls() > before)
        };
        calls.into_iter().map(ask).collect()
    }
}

const NAMESPACES: [&str; 4] = ["a", "a-web", "b", "b-web"];

fn a_case() -> impl Strategy<Value = Case> {
    let namespace = select(vec![
        None,
        Some(NAMESPACES[0]),
        Some(NAMESPACES[1]),
        Some(NAMESPACES[2]),
        Some(NAMESPACES[3]),
    ]);
    let (kind, team, cluster) = (
        select(vec!["Deployment", "Job"]),
        select(vec!["x", "y"]),
        select(vec!["m1", "m2"]),
    );
    (namespace, kind, team, cluster).prop_map(|(namespace, kind, team, cluster)| Case {
        namespace,
        kind,
        team,
        cluster,
    })
}

fn some_patterns(of: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(of, 0..=of.len())
}

/// A scope as a manifest has it.
fn a_scope() -> impl Strategy<Value = Value> {
    let namespaces = some_patterns(&["a", "a-*", "b*", "c", "*"]);
    let clusters = some_patterns(&["m1", "m*", "m3"]);
    let (kinds, labels) = (
        some_patterns(&["Deployment", "Job", "Pod"]),
        select(vec![json!({}), json!({"team": "x"})]),
    );
    (namespaces, kinds, clusters, labels).prop_map(|(namespaces, kinds, clusters, labels)| {
        let kinds: Vec<_> = kinds
            .iter()
            .map(|kind| json!({"apiVersion": "apps/v1", "kind": kind}))
            .collect();
        json!({"namespaces": namespaces, "kinds": kinds, "clusters": clusters, "labels": labels})
    })
}

fn tenancy(namespaces: &[&str]) -> Tenancy {
    let pattern = |name: &&str| (*name).to_owned().try_into().unwrap();
    Tenancy {
        namespaces: namespaces.iter().map(pattern).collect(),
    }
}

/// Returns true if a list of patterns is empty or matches a name, by rules of its own.
fn is_in(patterns: &Value, name: Option<&str>) -> bool {
    let patterns: Vec<_> = patterns.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let matches = |pattern: &&str, name: &str| {
        let is_start = pattern.ends_with('*') && name.starts_with(pattern.trim_end_matches('*'));
        is_start || *pattern == name
    };
    patterns.is_empty() || name.is_some_and(|name| patterns.iter().any(|pattern| matches(pattern, name)))
}

/// Returns true if a scope covers a call of a kind about the case.
fn is_inside(scope: &Value, case: &Case, kind: CallKind) -> bool {
    let is_object = matches!(kind, CallKind::Health | CallKind::Interpret);
    let kinds: Vec<_> = scope["kinds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["kind"].as_str().unwrap())
        .collect();
    let cluster = match kind {
        CallKind::EvictionCheck | CallKind::Score => Some(case.cluster),
        _ => None,
    };
    is_in(&scope["namespaces"], case.namespace)
        && (kinds.is_empty() || kinds.contains(&case.kind))
        && is_in(&scope["clusters"], cluster)
        && (scope["labels"] == json!({}) || (is_object && case.team == "x"))
}

/// Outcomes of the policies: true if the old copy is released, and the health.
fn outcomes(entries: &[Arc<dyn Policy>], composition: Composition, case: &Case) -> (bool, Health) {
    let entries = entries.iter().cloned().map(PolicyEntry::enforced).collect();
    let policies = PolicySet::composed(entries, composition);
    let (binding, task, object) = (case.binding(), case.task(), case.object());
    let check = EvictionCheckCall {
        binding: &binding,
        task: &task,
        observed: &[],
        now: now(),
    };
    let health = combine::health(
        &policies,
        HealthCall {
            object: &object,
            now: now(),
        },
    )
    .health;
    (combine::eviction_check(&policies, check).released, health)
}

fn a_composition() -> impl Strategy<Value = Composition> {
    let rules = vec![
        EvictionRule::AnyHoldWins,
        EvictionRule::AnyReleaseWins,
        EvictionRule::Quorum(2),
    ];
    (
        select(rules),
        select(vec![HealthRule::FirstOpinion, HealthRule::WorstOpinion]),
    )
        .prop_map(|(eviction_check, health)| Composition { health, eviction_check })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_plugin_is_asked_exactly_inside_of_its_scope(scope in a_scope(), case in a_case()) {
        let probe = Probe::new(Answer::Good);
        let parsed: Scope = serde_json::from_value(scope.clone()).unwrap();
        let scoped = Scoped::limit(probe.clone(), &parsed, None);
        for (kind, was_asked) in case.ask(&probe, scoped.as_ref()) {
            prop_assert_eq!(was_asked, is_inside(&scope, &case, kind), "{} about {:?} in {}", kind, case, scope);
        }
    }

    #[test]
    fn the_plugin_of_a_tenant_is_never_asked_about_another_one(scope in a_scope(), case in a_case()) {
        let probe = Probe::new(Answer::Bad);
        let parsed: Scope = serde_json::from_value(scope).unwrap();
        let scoped = Scoped::limit(probe.clone(), &parsed, Some(&tenancy(&["a", "a-*"])));
        let is_own = case.namespace.is_some_and(|name| name == "a" || name.starts_with("a-"));
        for (kind, was_asked) in case.ask(&probe, scoped.as_ref()) {
            prop_assert!(!was_asked || is_own, "{} about {:?}", kind, case);
            let may_answer = matches!(kind, CallKind::Health | CallKind::EvictionCheck);
            prop_assert!(!was_asked || may_answer, "{} about {:?}", kind, case);
        }
    }

    #[test]
    fn the_plugin_of_a_tenant_never_lets_more_go(
        case in a_case(), composition in a_composition(), own in select(ANSWERS.to_vec()),
        others in proptest::collection::vec(select(ANSWERS.to_vec()), 0..4), at in 0..5_usize,
    ) {
        let others: Vec<Arc<dyn Policy>> = others.into_iter().map(|one| Probe::new(one) as Arc<dyn Policy>).collect();
        let probe = Probe::new(own);
        let own = Scoped::limit(probe.clone(), &Scope::default(), Some(&tenancy(&["a", "a-*"])));
        let mut all = others.clone();
        all.insert(at.min(others.len()), own);
        let (without, with) = (outcomes(&others, composition, &case), outcomes(&all, composition, &case));
        prop_assert!(without.0 || !with.0, "released with it only");
        prop_assert!(without.1 == Health::Healthy || with.1 != Health::Healthy, "healthy with it only");
        if probe.calls() == 0 {
            prop_assert_eq!(without, with, "a plugin that is not asked changes nothing");
        }
    }
}

#[test]
fn without_a_scope_and_a_tenant_a_policy_stays_itself() {
    let probe: Arc<dyn Policy> = Probe::new(Answer::Good);
    assert!(Arc::ptr_eq(
        &probe,
        &Scoped::limit(Arc::clone(&probe), &Scope::default(), None)
    ));
}
