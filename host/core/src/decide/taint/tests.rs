use std::sync::Arc;

use super::*;
use crate::call::{Call, Reply, TaintVerdict};
use crate::policy::{Capability, Fault, FaultKind, Policy};

/// Policy with a fixed reply.
struct Scripted {
    id: PolicyId,
    capabilities: Vec<Capability>,
    changes: Result<Vec<TaintChange>, Fault>,
}

impl Policy for Scripted {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, _call: &Call<'_>) -> Result<Reply, Fault> {
        self.changes
            .clone()
            .map(|changes| Reply::ClusterTaint(TaintVerdict { changes }))
    }
}

const OWNED: TaintOptions = TaintOptions {
    cleans_up: true,
    policies_are_complete: true,
    answers: false,
};
const KARMADA: TaintOptions = TaintOptions {
    cleans_up: false,
    policies_are_complete: true,
    answers: false,
};

/// Returns a policy with the changes `+key`, `+key=value` or `-key`, all `NoSchedule`.
fn policy(name: &str, changes: &[&str]) -> Arc<dyn Policy> {
    let change = |text: &&str| {
        let (sign, taint) = text.split_at(1);
        let (key, value) = taint.split_once('=').unwrap_or((taint, ""));
        let (key, effect, reason) = (key.to_owned(), TaintEffect::NoSchedule, Reason::new("R", "m"));
        match sign {
            "+" => TaintChange::Add {
                taint: Taint {
                    key,
                    value: value.to_owned(),
                    effect,
                    time_added: None,
                },
                reason,
            },
            _ => TaintChange::Remove { key, effect, reason },
        }
    };
    scripted(name, Ok(changes.iter().map(change).collect()))
}

fn scripted(name: &str, changes: Result<Vec<TaintChange>, Fault>) -> Arc<dyn Policy> {
    let capabilities = vec![Capability::any(CallKind::ClusterTaint)];
    Arc::new(Scripted {
        id: PolicyId::builtin(name),
        capabilities,
        changes,
    })
}

/// Returns a cluster with taints `owner:key=value`, where an empty owner is a user.
fn cluster(taints: &[&str]) -> Cluster {
    let mut cluster = Cluster {
        name: "member1".to_owned(),
        ..Cluster::default()
    };
    for text in taints {
        let (owner, taint) = text.split_once(':').unwrap();
        let (key, value) = taint.split_once('=').unwrap_or((taint, ""));
        let time_added = Some(Time::from_millis(0));
        let taint = Taint {
            key: key.to_owned(),
            value: value.to_owned(),
            effect: TaintEffect::NoSchedule,
            time_added,
        };
        if !owner.is_empty() {
            cluster.taint_owners.insert(taint.identity(), owner.to_owned());
        }
        cluster.spec.taints.push(taint);
    }
    cluster
}

/// Checks the taints and owners after a decision, in the format of [`cluster`].
fn check(before: &[&str], policies: Vec<Arc<dyn Policy>>, options: TaintOptions, expected: &[&str]) {
    let mut cluster = cluster(before);
    let set = PolicySet::new(policies);
    let plan = decide(&cluster, &set, options, Time::from_millis(9_000));
    let is_empty = plan.is_empty();
    cluster.spec.taints = plan.taints.unwrap_or(cluster.spec.taints);
    cluster.taint_owners = plan.owners.unwrap_or(cluster.taint_owners);
    let actual: Vec<_> = cluster
        .spec
        .taints
        .iter()
        .map(|taint| {
            let value = if taint.value.is_empty() {
                String::new()
            } else {
                format!("={}", taint.value)
            };
            let owner = cluster.taint_owner(taint).cloned().unwrap_or_default();
            format!("{owner}:{}{value}", taint.key)
        })
        .collect();
    assert_eq!(actual, expected, "{before:?}");
    assert_eq!(is_empty, before == expected, "{before:?}");
    // A second decision after the plan was applied changes nothing.
    assert!(
        decide(&cluster, &set, options, Time::from_millis(9_000)).is_empty(),
        "{before:?} is not settled"
    );
}

const P: &str = "ClusterTaintPolicy/p";

#[test]
fn a_policy_removes_only_what_it_added() {
    check(&[], vec![policy(P, &["+k"])], OWNED, &["ClusterTaintPolicy/p:k"]);
    check(&["ClusterTaintPolicy/p:k"], vec![policy(P, &["-k"])], OWNED, &[]);
    check(&[":k"], vec![policy(P, &["-k"])], OWNED, &[":k"]);
    check(&[":k"], vec![policy(P, &["+k"])], OWNED, &[":k"]);
    let both = || vec![policy(P, &["-k"]), policy("ClusterTaintPolicy/q", &[])];
    check(&["ClusterTaintPolicy/q:k"], both(), OWNED, &["ClusterTaintPolicy/q:k"]);
    // Karmada's behavior: removes any taint with the key and effect.
    check(&[":k"], vec![policy(P, &["-k"])], KARMADA, &[]);
    // The rules for the Ready condition correct their keys regardless of the owner.
    check(&[":k"], vec![policy("ReadyCondition", &["-k"])], OWNED, &[]);
}

#[test]
fn a_policy_adopts_a_taint_without_an_owner_when_its_remove_conditions_hold() {
    let remove = |name: &str| {
        let (key, effect) = ("k".to_owned(), TaintEffect::NoSchedule);
        scripted(
            name,
            Ok(vec![TaintChange::Remove {
                key,
                effect,
                reason: Reason::new(REMOVE_ON_CONDITIONS, "m"),
            }]),
        )
    };
    check(&[":k"], vec![remove(P)], OWNED, &[]);
    check(
        &["ClusterTaintPolicy/q:k"],
        vec![remove(P), policy("ClusterTaintPolicy/q", &[])],
        OWNED,
        &["ClusterTaintPolicy/q:k"],
    );
}

#[test]
fn a_policy_adopts_nothing_while_the_owners_are_unknown() {
    let mut cluster = cluster(&[":k"]);
    cluster.taint_owners_unknown = true;
    let (key, effect) = ("k".to_owned(), TaintEffect::NoSchedule);
    let remove = TaintChange::Remove {
        key,
        effect,
        reason: Reason::new(REMOVE_ON_CONDITIONS, "m"),
    };
    let policies = PolicySet::new(vec![
        scripted(P, Ok(vec![remove])),
        policy("ClusterTaintPolicy/q", &["+new"]),
    ]);
    let plan = decide(&cluster, &policies, OWNED, Time::from_millis(9_000));
    assert!(
        plan.is_empty(),
        "no taint is added without an owner, and the malformed record stays: {plan:?}"
    );
}

#[test]
fn a_malformed_record_of_owners_is_replaced_where_no_taint_needs_it() {
    let check = |present: &[&str], policy_name: &str, options: TaintOptions, added: &[&str], owners: Option<&str>| {
        let mut cluster = cluster(present);
        cluster.taint_owners_unknown = true;
        let policies = PolicySet::new(vec![policy(policy_name, &["+new"])]);
        let plan = decide(&cluster, &policies, options, Time::from_millis(9_000));
        let keys: Vec<_> = plan.added.iter().map(|(taint, _)| taint.key.as_str()).collect();
        assert_eq!(
            (keys.as_slice(), plan.taints.is_some()),
            (added, !added.is_empty()),
            "{present:?}"
        );
        let found = plan
            .owners
            .map(|owners| owners.into_values().collect::<Vec<_>>().join(","));
        assert_eq!(found.as_deref(), owners, "{present:?}");
    };
    check(&[], P, OWNED, &["new"], Some(P));
    let reserved = format!(":{}", keys::NOT_READY_TAINT);
    check(&[reserved.as_str()], P, OWNED, &["new"], Some(P));
    check(&[reserved.as_str(), ":k"], P, OWNED, &[], None);
    // These rules remove their taints without an owner.
    check(&[":k"], "ReadyCondition", OWNED, &["new"], None);
    check(&[":k"], P, KARMADA, &["new"], None);
}

#[test]
fn what_a_deleted_policy_added_goes_and_nothing_else() {
    let before = ["ClusterTaintPolicy/gone:a", ":b", "some-plugin:c", "ReadyCondition:d"];
    let after = [":b", "some-plugin:c", "ReadyCondition:d"];
    check(&before, vec![policy(P, &[])], OWNED, &after);
    check(&before, vec![policy(P, &[])], KARMADA, &before);
    // Right after a restart, the policies are not known yet and no taint is removed.
    check(
        &before,
        vec![],
        TaintOptions {
            policies_are_complete: false,
            ..OWNED
        },
        &before,
    );
}

/// Another writer, such as Karmada, removes a taint and leaves the record of its owner.
#[test]
fn the_owner_of_a_taint_that_another_writer_removed_is_cleared() {
    for policies in [vec![], vec![policy(P, &[])]] {
        let mut cluster = cluster(&["ReadyCondition:kept"]);
        cluster.taint_owners.insert("k:NoSchedule".to_owned(), P.to_owned());
        let plan = decide(&cluster, &PolicySet::new(policies), OWNED, Time::from_millis(9_000));
        let owners = plan
            .owners
            .as_ref()
            .map(|owners| owners.keys().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((owners, &plan.taints), (Some(vec!["kept:NoSchedule"]), &None));
        assert!(!plan.is_empty() && plan.removed.is_empty(), "{plan:?}");
    }
}

#[test]
fn a_value_is_updated_in_ones_own_taint_only() {
    check(
        &["ClusterTaintPolicy/p:k=a"],
        vec![policy(P, &["+k=b"])],
        OWNED,
        &["ClusterTaintPolicy/p:k=b"],
    );
    check(&[":k=a"], vec![policy(P, &["+k=b"])], OWNED, &[":k=a"]);
}

#[test]
fn a_cluster_that_answers_gets_no_taint_that_evicts_but_that_of_a_drain() {
    use TaintEffect::{NoExecute, NoSchedule, PreferNoExecute};
    let added = |key: &str, effect: &TaintEffect, answers: bool| {
        let taint = Taint {
            key: key.to_owned(),
            value: String::new(),
            effect: effect.clone(),
            time_added: None,
        };
        let reason = Reason::new("R", "m");
        let policy = scripted(P, Ok(vec![TaintChange::Add { taint, reason }]));
        let options = TaintOptions { answers, ..OWNED };
        let plan = decide(
            &cluster(&[]),
            &PolicySet::new(vec![policy]),
            options,
            Time::from_millis(0),
        );
        assert_eq!(plan.added.is_empty(), plan.is_empty(), "{plan:?}");
        !plan.added.is_empty()
    };
    for effect in [NoSchedule, NoExecute, PreferNoExecute] {
        assert!(added("k", &effect, false), "{effect:?}");
        assert_eq!(added("k", &effect, true), effect == NoSchedule, "{effect:?}");
        assert!(added(keys::DRAIN_TAINT, &effect, true), "{effect:?}");
    }
}

#[test]
fn a_fault_changes_nothing() {
    let faulty = scripted(P, Err(Fault::new(FaultKind::Trap, "trap")));
    check(
        &["ClusterTaintPolicy/p:k", ":b"],
        vec![faulty],
        OWNED,
        &["ClusterTaintPolicy/p:k", ":b"],
    );
}

#[test]
fn what_one_policy_adds_and_another_removes_never_was() {
    let set = PolicySet::new(vec![policy(P, &["+k"]), policy("ReadyCondition", &["-k"])]);
    let plan = decide(&cluster(&[]), &set, OWNED, Time::from_millis(0));
    assert_eq!((plan.added, plan.removed, plan.taints), (vec![], vec![], None));
}

/// Karmada: `pkg/util/helper/taint.go:GenerateTaintsMessage`.
#[test]
fn the_event_lists_the_taints_as_karmada_does() {
    let taint = |key: &str, value: &str| Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: TaintEffect::NoExecute,
        time_added: None,
    };
    assert_eq!(taints_message(&[]), "cluster now does not have taints");
    assert_eq!(
        taints_message(&[taint("a", ""), taint("b", "v")]),
        "cluster now has taints([{Key:a,Effect:NoExecute},{Key:b,Value:v,Effect:NoExecute}])"
    );
}

#[test]
fn a_removal_concerns_one_key_with_one_effect() {
    check(&[":a", ":k"], vec![policy(P, &["-k"])], KARMADA, &[":a"]);
    let other_effect = TaintChange::Remove {
        key: "k".to_owned(),
        effect: TaintEffect::NoExecute,
        reason: Reason::new("R", "m"),
    };
    check(&[":k"], vec![scripted(P, Ok(vec![other_effect]))], KARMADA, &[":k"]);
}

#[test]
fn conditions_are_recorded_for_policies_that_may_read_their_history() {
    use crate::model::{Condition, ConditionStatus};
    let is_recorded = |id: PolicyId, kind: CallKind| {
        let mut cluster = cluster(&[]);
        let ready = Condition::new("Ready", ConditionStatus::True, "R", "m", Time::from_millis(0));
        cluster.status.conditions.push(ready);
        let policy: Arc<dyn Policy> = Arc::new(Scripted {
            id,
            capabilities: vec![Capability::any(kind)],
            changes: Ok(Vec::new()),
        });
        let plan = decide(&cluster, &PolicySet::new(vec![policy]), OWNED, Time::from_millis(9_000));
        assert_eq!(plan.is_empty(), plan.history.is_none(), "{plan:?}");
        plan.history.is_some()
    };
    let plugin = PolicyId {
        engine: EngineKind::Wasm,
        ..PolicyId::builtin("plugin")
    };
    assert!(is_recorded(PolicyId::builtin(P), CallKind::ClusterTaint));
    assert!(is_recorded(plugin.clone(), CallKind::ClusterTaint));
    assert!(!is_recorded(
        PolicyId::builtin("ReadyCondition"),
        CallKind::ClusterTaint
    ));
    assert!(!is_recorded(plugin, CallKind::Health));
}
