//! Test cases next to the scripts.

use std::collections::BTreeSet;

use bulkhead_conformance::cases::one;
use bulkhead_conformance::{Case, Check, Request, Subject, read_cases, run};
use bulkhead_core::call::{Call, CallKind, Reply};
use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::{Capability, Fault, Policy, PolicyId, Usage};
use bulkhead_plugins_lua::{Kind, customization};

use crate::{folder, library};

fn cases_of(kind: &Kind) -> Vec<Case> {
    read_cases(&folder(kind).join("cases_test.yaml")).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the rule that a case is about.
fn rule(case: &Case) -> &'static str {
    match &case.call.request {
        Request::Health(_) => "healthInterpretation",
        Request::Replicas(_) => "replicaResource",
        Request::Components(_) => "componentResource",
        Request::Revise(..) => "replicaRevision",
        Request::Retain(..) => "retention",
        Request::ReflectStatus(_) => "statusReflection",
        Request::AggregateStatus(..) => "statusAggregation",
        Request::Dependencies(_) => "dependencyInterpretation",
        other => panic!("{other:?} is no operation of an interpreter"),
    }
}

/// A policy restricted to health: in Karmada the other operations fail on malformed objects.
struct HealthOnly<'a>(&'a dyn Policy, Vec<Capability>);

impl Policy for HealthOnly<'_> {
    fn id(&self) -> &PolicyId {
        self.0.id()
    }
    fn capabilities(&self) -> &[Capability] {
        &self.1
    }
    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        self.0.call(call)
    }
    fn usage_of(&self, kind: CallKind) -> Usage {
        self.0.usage_of(kind)
    }
}

#[test]
fn every_case_comes_out_and_health_holds_to_the_laws() {
    let mut failures = Vec::new();
    for (kind, policy) in library() {
        let (health, others): (Vec<_>, Vec<_>) = cases_of(kind)
            .into_iter()
            .partition(|case| case.call.kind() == CallKind::Health);
        assert_eq!(kind.has_health, !health.is_empty(), "{}", kind.folder());
        if kind.has_health {
            let capability = Capability::on(CallKind::Health, kind.api_version, kind.kind);
            let only = HealthOnly(&*policy, vec![capability]);
            failures.extend(Some(run(&Subject::new(&only, Budget::default()), &health)).filter(|r| !r.passed()));
        }
        // General invariants are not checked here: malformed objects may cause faults, as in Karmada.
        let subject = Subject::new(&*policy, Budget::default());
        let checks = others.iter().map(|case| one(&subject, case)).filter(Check::failed);
        let failed: Vec<_> = checks
            .map(|check| format!("{}: {:?}", check.name, check.outcome))
            .collect();
        assert!(failed.is_empty(), "{}\n{}", kind.folder(), failed.join("\n"));
    }
    let failures: Vec<_> = failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_rule_has_a_case_and_every_case_a_rule() {
    for (kind, _) in library() {
        let parsed = customization::parse(&kind.folder(), kind.text).unwrap();
        let rules: BTreeSet<_> = parsed.spec.customizations.scripts().map(|(rule, _)| rule).collect();
        let tested: BTreeSet<_> = cases_of(kind).iter().map(rule).collect();
        assert_eq!(rules, tested, "{}", kind.folder());
    }
}
