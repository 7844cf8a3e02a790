//! Failover that can never act, with the setting that prevents it.
//!
//! The rules are those of `bulkhead_core::decide::{evict, failover}`; this module finds only conditions that can
//! never be met.

use bulkhead_controllers::NoInterpreter;
use bulkhead_controllers::flags::FeatureGate;
use bulkhead_core::model::{ClusterTaintPolicySpec, PurgeMode, Taint, TaintEffect};
use bulkhead_core::names::keys;

use crate::doctor::facts::{Facts, Policy};
use crate::doctor::finding::{Section, count};

pub(super) fn check(facts: &Facts, section: &mut Section) {
    let decides = ["all", "evict", "report"]
        .iter()
        .any(|mode| facts.installation.has(mode));
    if !decides {
        "left to Karmada in this mode".clone_into(&mut section.summary);
        return;
    }
    let switches = switched_off(facts);
    let (mut asking, mut acting) = (0, 0);
    for policy in &facts.policies {
        let failover = policy.spec.failover.clone().unwrap_or_default();
        let place = format!("{} {}", policy.kind, policy.name);
        let mut tell = |of: &str, reasons: Vec<Reason>| {
            asking += 1;
            if reasons.is_empty() {
                acting += 1;
            }
            for Reason { what, remedy } in reasons {
                section.warning(
                    format!("{place}, failover.{of}"),
                    format!("can never act: {what}"),
                    remedy,
                );
            }
        };
        if failover.cluster.is_some() {
            tell(
                "cluster",
                switches.iter().cloned().chain(of_cluster(facts, policy)).collect(),
            );
        }
        if failover.application.is_some() {
            tell("application", of_application(facts, policy));
        }
        if [
            failover.cluster.map(|of| of.purge_mode),
            failover.application.map(|of| of.purge_mode),
        ]
        .contains(&Some(PurgeMode::Never))
        {
            section.note(
                place,
                "with purgeMode Never the old copy stays until a person confirms",
                "",
            );
        }
    }
    section.summary = match asking {
        0 => format!("{}, none with failover", count(facts.policies.len(), "policy")),
        _ => format!(
            "{acting} of {} requested by policies can act",
            count(asking, "failover")
        ),
    };
    if asking == 0 && !facts.policies.is_empty() {
        for Reason { what, remedy } in &switches {
            section.note(
                "cluster failover",
                format!("no workload leaves a lost cluster: {what}"),
                remedy,
            );
        }
    }
    let now = facts.now;
    for pause in facts.pauses.iter().filter(|pause| pause.spec.is_in_force(now)) {
        let until = pause
            .spec
            .until
            .map_or_else(|| "until it is deleted".to_owned(), |until| format!("until {until}"));
        let why = if pause.spec.reason.is_empty() {
            String::new()
        } else {
            format!(" ({})", pause.spec.reason)
        };
        section.note(
            format!("EvictionPause {}", pause.name),
            format!("holds evictions {until}{why}"),
            "",
        );
    }
}

/// Reason why a failover cannot act, with a remedy.
#[derive(Clone)]
struct Reason {
    what: String,
    remedy: String,
}

fn reason(what: impl Into<String>, remedy: impl Into<String>) -> Reason {
    Reason {
        what: what.into(),
        remedy: remedy.into(),
    }
}

/// Returns the reasons that prevent every cluster failover.
fn switched_off(facts: &Facts) -> Vec<Reason> {
    let (flags, mut found) = (&facts.installation.flags, Vec::new());
    if !flags.gate(FeatureGate::Failover) {
        found.push(reason(
            "the feature gate Failover is off",
            "--feature-gates=Failover=true",
        ));
    }
    if !flags.enable_taint_manager {
        found.push(reason("the taint manager is off", "--enable-taint-manager=true"));
    } else if !facts.installation.runs("taintManager") {
        found.push(reason(
            "the controller taintManager does not run",
            "add it to --controllers",
        ));
    }
    let preferred = flags.gate(FeatureGate::PreferNoExecute);
    if !flags.enable_no_execute_taint_eviction && !preferred {
        found.push(reason(
            "NoExecute taints evict nothing",
            "--enable-no-execute-taint-eviction",
        ));
    }
    if flags.resource_eviction_rate <= 0.0 {
        found.push(reason("the rate of evictions is 0", "--resource-eviction-rate=0.5"));
    }
    if taints(facts).is_empty() {
        let hint = "create a ClusterTaintPolicy that adds one when Ready is not True";
        let remedy = if flags.allow_no_execute_taint_policy {
            hint.to_owned()
        } else {
            format!("{hint}; it needs --allow-no-execute-taint-policy")
        };
        found.push(reason("no rule adds an evicting taint to a lost cluster", remedy));
    } else if !facts.installation.runs("clustertaintpolicy") && flags.failover_eviction_timeout.0.is_zero() {
        found.push(reason(
            "the controller clustertaintpolicy does not run",
            "add it to --controllers",
        ));
    }
    found
}

/// Returns the evicting taints that policies and flags can add, and those that clusters have.
fn taints(facts: &Facts) -> Vec<Taint> {
    let flags = &facts.installation.flags;
    let evicts = |effect: &TaintEffect| {
        *effect == TaintEffect::NoExecute
            || *effect == TaintEffect::PreferNoExecute && flags.gate(FeatureGate::PreferNoExecute)
    };
    let taint = |key: &str, value: &str, effect: &TaintEffect| Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: effect.clone(),
        time_added: None,
    };
    let of_policy = |spec: &ClusterTaintPolicySpec| -> Vec<Taint> {
        if !spec.faults().is_empty() {
            return Vec::new();
        }
        let added = if spec.add_on_conditions.is_empty() {
            &[][..]
        } else {
            &spec.taints
        };
        added
            .iter()
            .chain(&spec.taints_to_add)
            .map(|one| taint(&one.key, &one.value, &one.effect))
            .collect()
    };
    let mut found: Vec<_> = facts
        .taint_policies
        .iter()
        .flat_map(|policy| of_policy(&policy.spec))
        .collect();
    if !flags.failover_eviction_timeout.0.is_zero() {
        found.extend(
            [keys::NOT_READY_TAINT, keys::UNREACHABLE_TAINT].map(|key| taint(key, "", &TaintEffect::NoExecute)),
        );
    }
    found.extend(
        facts
            .members
            .iter()
            .flat_map(|member| member.cluster.spec.taints.iter().cloned()),
    );
    found.retain(|taint| evicts(&taint.effect) && taint.key != keys::DRAIN_TAINT);
    found
}

/// Returns the reasons that prevent the cluster failover of one policy.
fn of_cluster(facts: &Facts, policy: &Policy) -> Vec<Reason> {
    let placement = &policy.spec.placement;
    let tolerations = &placement.cluster_tolerations;
    // The first matching toleration counts; without seconds it has no limit.
    let is_forever = |taint: &Taint| {
        let first = tolerations.iter().find(|toleration| toleration.tolerates(taint));
        taint.effect == TaintEffect::NoExecute && first.is_some_and(|first| first.toleration_seconds.is_none())
    };
    let (taints, mut found) = (taints(facts), Vec::new());
    if !taints.is_empty() && taints.iter().all(is_forever) {
        let mut names: Vec<_> = taints.iter().map(Taint::identity).collect();
        names.sort();
        names.dedup();
        let what = format!(
            "placement.clusterTolerations tolerate {} without a time limit",
            names.join(" and ")
        );
        found.push(reason(what, "set tolerationSeconds on the toleration"));
    }
    found.extend(nowhere_else(policy));
    found
}

/// Returns the reasons that prevent the application failover of one policy.
fn of_application(facts: &Facts, policy: &Policy) -> Vec<Reason> {
    let mut found = Vec::new();
    if !facts.installation.runs("applicationFailover") {
        found.push(reason(
            "the controller applicationFailover does not run",
            "add it to --controllers",
        ));
    }
    let is_told = |api_version: &str, kind: &str| {
        let same = facts
            .kinds
            .iter()
            .find(|known| known.api_version == api_version && known.kind == kind);
        same.is_none_or(|known| known.health.is_some())
    };
    let selectors = &policy.spec.resource_selectors;
    let untold: Vec<_> = selectors
        .iter()
        .filter(|selector| !is_told(&selector.api_version, &selector.kind))
        .collect();
    if !untold.is_empty() && untold.len() == selectors.len() {
        let names: Vec<_> = untold
            .iter()
            .map(|selector| format!("{} {}", selector.api_version, selector.kind))
            .collect();
        let counts_as = match facts.installation.flags.health_without_interpreter {
            NoInterpreter::Healthy => "healthy",
            NoInterpreter::Unknown | NoInterpreter::Refuse => "unknown",
        };
        let what = format!(
            "no interpreter reports the health of {}, so it is always {counts_as}",
            names.join(" and ")
        );
        found.push(reason(what, "write an interpreter for it with InterpretHealth"));
    }
    found.extend(nowhere_else(policy));
    found
}

/// Returns a reason if the policy allows only one cluster, so that a workload cannot leave it.
fn nowhere_else(policy: &Policy) -> Option<Reason> {
    let placement = &policy.spec.placement;
    let names = &placement.cluster_affinity.as_ref()?.cluster_names;
    let only = (placement.cluster_affinities.is_none() && names.len() == 1).then(|| names.iter().next())??;
    let what = format!("placement.clusterAffinity names only {only}, so there is no other target cluster");
    Some(reason(what, "name a second cluster"))
}
