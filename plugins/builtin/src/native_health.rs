//! Health of Kubernetes' own kinds.

use bulkhead_core::call::{Call, CallKind, HealthVerdict, Reason, Reply};
use bulkhead_core::model::Health;
use bulkhead_core::policy::{Capability, Fault, Policy, PolicyId};
use serde_json::Value;

use crate::{not_asked, statuses};
use bulkhead_core::shape::{Malformed, count, integer, list, text};

type Rule = fn(&Value) -> Result<(bool, Reason), Malformed>;

/// Native rules by API version and kind. Other kinds, and other versions of these kinds, have none.
const RULES: [(&str, &str, Rule); 9] = [
    ("apps/v1", "Deployment", rollout),
    ("apps/v1", "StatefulSet", rollout),
    ("apps/v1", "ReplicaSet", replica_set),
    ("apps/v1", "DaemonSet", daemon_set),
    ("v1", "Pod", pod),
    ("v1", "Service", service),
    ("networking.k8s.io/v1", "Ingress", ingress),
    ("v1", "PersistentVolumeClaim", claim),
    ("policy/v1", "PodDisruptionBudget", disruption_budget),
];

/// Karmada's native health rules with reasons. (Karmada: `pkg/resourceinterpreter/default/native/healthy.go`.)
///
/// If a field has the wrong type, Karmada returns an error, which its caller turns into Unknown. This policy returns
/// Unknown with the reason `MalformedObject`.
pub struct NativeHealth {
    id: PolicyId,
    capabilities: Vec<Capability>,
}

impl Default for NativeHealth {
    fn default() -> Self {
        let on = |(api_version, kind, _): &(&str, &str, Rule)| Capability::on(CallKind::Health, *api_version, *kind);
        Self {
            id: PolicyId::builtin("NativeHealth"),
            capabilities: RULES.iter().map(on).collect(),
        }
    }
}

impl Policy for NativeHealth {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let Call::Health(health) = call else {
            return Err(not_asked(&self.id, call));
        };
        let field = |name| health.object.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = (field("apiVersion"), field("kind"));
        let rule = RULES
            .iter()
            .find(|(api_version, name, _)| (*api_version, *name) == kind);
        let (_, _, rule) = rule.ok_or_else(|| not_asked(&self.id, call))?;
        let judged = statuses::check(kind, health.object).and_then(|()| rule(health.object));
        Ok(Reply::Health(match judged {
            Ok((true, reason)) => HealthVerdict {
                health: Health::Healthy,
                reason,
            },
            Ok((false, reason)) => HealthVerdict {
                health: Health::Unhealthy,
                reason,
            },
            Err(error) => {
                let reason = Reason::new("MalformedObject", error.to_string());
                HealthVerdict {
                    health: Health::Unknown,
                    reason,
                }
            }
        }))
    }
}

fn verdict(healthy: bool, code: &str, message: String) -> (bool, Reason) {
    (healthy, Reason::new(code, message))
}

/// Returns a reason if the status is about another generation, even a later one.
fn stale(object: &Value) -> Result<Option<Reason>, Malformed> {
    let generation = count(object, &["metadata", "generation"])?;
    let observed = count(object, &["status", "observedGeneration"])?;
    let message = || format!("the status is about generation {observed}, not {generation}");
    Ok((observed != generation).then(|| Reason::new("GenerationNotObserved", message())))
}

fn rollout(object: &Value) -> Result<(bool, Reason), Malformed> {
    let desired = integer(object, &["spec", "replicas"])?;
    let updated = count(object, &["status", "updatedReplicas"])?;
    let available = count(object, &["status", "availableReplicas"])?;
    if let Some(reason) = stale(object)? {
        return Ok((false, reason));
    }
    if let Some(desired) = desired.filter(|desired| updated < *desired) {
        return Ok(verdict(
            false,
            "ReplicasNotUpdated",
            format!("{updated} of {desired} replicas are updated"),
        ));
    }
    Ok(availability(available, updated))
}

fn replica_set(object: &Value) -> Result<(bool, Reason), Malformed> {
    let desired = integer(object, &["spec", "replicas"])?;
    let available = count(object, &["status", "availableReplicas"])?;
    match stale(object)? {
        Some(reason) => Ok((false, reason)),
        None => Ok(availability(available, desired.unwrap_or(available))),
    }
}

fn availability(available: i64, wanted: i64) -> (bool, Reason) {
    let healthy = available >= wanted;
    let code = if healthy {
        "ReplicasAvailable"
    } else {
        "ReplicasNotAvailable"
    };
    verdict(healthy, code, format!("{available} of {wanted} replicas are available"))
}

fn daemon_set(object: &Value) -> Result<(bool, Reason), Malformed> {
    let desired = count(object, &["status", "desiredNumberScheduled"])?;
    let updated = count(object, &["status", "updatedNumberScheduled"])?;
    let available = count(object, &["status", "numberAvailable"])?;
    if let Some(reason) = stale(object)? {
        return Ok((false, reason));
    }
    if updated < desired {
        return Ok(verdict(
            false,
            "PodsNotUpdated",
            format!("{updated} of {desired} pods are updated"),
        ));
    }
    let healthy = available >= updated;
    let code = if healthy { "PodsAvailable" } else { "PodsNotAvailable" };
    Ok(verdict(
        healthy,
        code,
        format!("{available} of {updated} pods are available"),
    ))
}

fn pod(object: &Value) -> Result<(bool, Reason), Malformed> {
    let phase = text(object, &["status", "phase"])?;
    // Only the first condition of the type counts, as in Karmada.
    let mut ready = None;
    for condition in list(object, &["status", "conditions"])? {
        if ready.is_none() && text(condition, &["type"])? == "Ready" {
            ready = Some(text(condition, &["status"])?);
        }
    }
    match (phase, ready) {
        ("Succeeded", _) => Ok(verdict(true, "PodSucceeded", "the pod has succeeded".to_owned())),
        ("Running", Some("True")) => Ok(verdict(true, "PodReady", "the pod is running and ready".to_owned())),
        ("Running", _) => Ok(verdict(
            false,
            "PodNotReady",
            "the pod is running, but not ready".to_owned(),
        )),
        ("", _) => Ok(verdict(false, "PodNotRunning", "the pod has no phase".to_owned())),
        (phase, _) => Ok(verdict(false, "PodNotRunning", format!("the pod's phase is {phase}"))),
    }
}

fn service(object: &Value) -> Result<(bool, Reason), Malformed> {
    if text(object, &["spec", "type"])? == "LoadBalancer" {
        return ingress(object);
    }
    Ok(verdict(
        true,
        "NoLoadBalancer",
        "the service needs no load balancer".to_owned(),
    ))
}

fn ingress(object: &Value) -> Result<(bool, Reason), Malformed> {
    let (mut addressed, entries) = (0, list(object, &["status", "loadBalancer", "ingress"])?);
    for entry in entries {
        if !text(entry, &["ip"])?.is_empty() || !text(entry, &["hostname"])?.is_empty() {
            addressed += 1;
        }
    }
    let code = if addressed > 0 {
        "LoadBalancerReady"
    } else {
        "LoadBalancerPending"
    };
    Ok(verdict(
        addressed > 0,
        code,
        format!("{addressed} of {} load balancer entries have an address", entries.len()),
    ))
}

fn claim(object: &Value) -> Result<(bool, Reason), Malformed> {
    match text(object, &["status", "phase"])? {
        "Bound" => Ok(verdict(true, "ClaimBound", "the claim is bound".to_owned())),
        "" => Ok(verdict(false, "ClaimNotBound", "the claim has no phase".to_owned())),
        phase => Ok(verdict(false, "ClaimNotBound", format!("the claim's phase is {phase}"))),
    }
}

fn disruption_budget(object: &Value) -> Result<(bool, Reason), Malformed> {
    let current = count(object, &["status", "currentHealthy"])?;
    let desired = count(object, &["status", "desiredHealthy"])?;
    let code = if current >= desired {
        "BudgetMet"
    } else {
        "BudgetNotMet"
    };
    Ok(verdict(
        current >= desired,
        code,
        format!("{current} of {desired} pods are healthy"),
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bulkhead_core::call::HealthCall;
    use bulkhead_core::time::Time;
    use serde_json::json;

    use super::*;

    fn check(kind: (&str, &str), mut object: Value, expected: &str) {
        object["apiVersion"] = json!(kind.0);
        object["kind"] = json!(kind.1);
        let object = Arc::new(object);
        let call = Call::Health(HealthCall {
            object: &object,
            now: Time::from_millis(0),
        });
        let Ok(Reply::Health(actual)) = NativeHealth::default().call(&call) else {
            panic!("no health of {object}");
        };
        assert_eq!(
            format!("{} {}", actual.health.as_str(), actual.reason),
            expected,
            "{object}"
        );
    }

    #[test]
    fn deployments_and_stateful_sets() {
        let check = |generation: i64, replicas: Value, status: Value, expected: &str| {
            let object =
                json!({"metadata": {"generation": generation}, "spec": {"replicas": replicas}, "status": status});
            check(("apps/v1", "Deployment"), object.clone(), expected);
            check(("apps/v1", "StatefulSet"), object, expected);
        };
        let status = |updated: i64, available: i64| json!({"observedGeneration": 2, "updatedReplicas": updated, "availableReplicas": available});
        check(
            2,
            json!(3),
            status(3, 3),
            "Healthy ReplicasAvailable: 3 of 3 replicas are available",
        );
        check(
            2,
            json!(3.0),
            status(3, 3),
            "Healthy ReplicasAvailable: 3 of 3 replicas are available",
        );
        check(
            2,
            json!(3),
            status(3, 2),
            "Unhealthy ReplicasNotAvailable: 2 of 3 replicas are available",
        );
        check(
            2,
            json!(3),
            status(2, 2),
            "Unhealthy ReplicasNotUpdated: 2 of 3 replicas are updated",
        );
        check(
            2,
            Value::Null,
            status(0, 0),
            "Healthy ReplicasAvailable: 0 of 0 replicas are available",
        );
        let stale = "Unhealthy GenerationNotObserved: the status is about generation 2, not";
        check(3, json!(3), status(3, 3), &format!("{stale} 3"));
        check(1, json!(3), status(3, 3), &format!("{stale} 1"));
        check(
            0,
            Value::Null,
            Value::Null,
            "Healthy ReplicasAvailable: 0 of 0 replicas are available",
        );
        let malformed = "Unknown MalformedObject:";
        check(
            2,
            json!("3"),
            status(3, 3),
            &format!("{malformed} spec.replicas is a string, not an integer"),
        );
        check(
            2,
            json!(1.5),
            status(3, 3),
            &format!("{malformed} spec.replicas is a number, not an integer"),
        );
        check(
            2,
            json!(1),
            json!([]),
            &format!("{malformed} status is a list, not an object"),
        );
        let conditions = json!({"conditions": "x"});
        check(
            2,
            json!(1),
            conditions,
            &format!("{malformed} status.conditions is a string, not a list"),
        );
    }

    #[test]
    fn replica_sets_and_daemon_sets() {
        let replica_set = |replicas: Value, available: i64| json!({"spec": {"replicas": replicas}, "status": {"availableReplicas": available}});
        let kind = ("apps/v1", "ReplicaSet");
        check(
            kind,
            replica_set(json!(2), 2),
            "Healthy ReplicasAvailable: 2 of 2 replicas are available",
        );
        check(
            kind,
            replica_set(json!(2), 1),
            "Unhealthy ReplicasNotAvailable: 1 of 2 replicas are available",
        );
        check(
            kind,
            replica_set(Value::Null, 0),
            "Healthy ReplicasAvailable: 0 of 0 replicas are available",
        );
        let daemon_set = |desired: i64, updated: i64, available: i64| {
            json!({"status": {
                "desiredNumberScheduled": desired, "updatedNumberScheduled": updated, "numberAvailable": available,
            }})
        };
        let kind = ("apps/v1", "DaemonSet");
        check(
            kind,
            daemon_set(2, 2, 2),
            "Healthy PodsAvailable: 2 of 2 pods are available",
        );
        check(
            kind,
            daemon_set(2, 1, 1),
            "Unhealthy PodsNotUpdated: 1 of 2 pods are updated",
        );
        check(
            kind,
            daemon_set(2, 2, 0),
            "Unhealthy PodsNotAvailable: 0 of 2 pods are available",
        );
    }

    #[test]
    fn pods() {
        let check = |phase: &str, ready: &[&str], expected: &str| {
            let conditions: Vec<_> = ready
                .iter()
                .map(|status| json!({"type": "Ready", "status": status}))
                .collect();
            check(
                ("v1", "Pod"),
                json!({"status": {"phase": phase, "conditions": conditions}}),
                expected,
            );
        };
        check("Succeeded", &[], "Healthy PodSucceeded: the pod has succeeded");
        check(
            "Running",
            &["True", "False"],
            "Healthy PodReady: the pod is running and ready",
        );
        check(
            "Running",
            &["False", "True"],
            "Unhealthy PodNotReady: the pod is running, but not ready",
        );
        check(
            "Running",
            &[],
            "Unhealthy PodNotReady: the pod is running, but not ready",
        );
        check(
            "Pending",
            &["True"],
            "Unhealthy PodNotRunning: the pod's phase is Pending",
        );
        check("", &[], "Unhealthy PodNotRunning: the pod has no phase");
    }

    #[test]
    fn load_balancers_claims_and_budgets() {
        let service = |type_: &str, entries: Value| json!({"spec": {"type": type_}, "status": {"loadBalancer": {"ingress": entries}}});
        let kind = ("v1", "Service");
        check(
            kind,
            json!({}),
            "Healthy NoLoadBalancer: the service needs no load balancer",
        );
        check(
            kind,
            service("ClusterIP", json!([])),
            "Healthy NoLoadBalancer: the service needs no load balancer",
        );
        let pending = "Unhealthy LoadBalancerPending: 0 of 1 load balancer entries have an address";
        check(kind, service("LoadBalancer", json!([{"ip": ""}])), pending);
        let ready = "Healthy LoadBalancerReady: 1 of 2 load balancer entries have an address";
        check(kind, service("LoadBalancer", json!([{}, {"ip": "1.1.1.1"}])), ready);
        check(
            ("networking.k8s.io/v1", "Ingress"),
            service("", json!([{}, {"hostname": "h"}])),
            ready,
        );
        let kind = ("v1", "PersistentVolumeClaim");
        check(
            kind,
            json!({"status": {"phase": "Bound"}}),
            "Healthy ClaimBound: the claim is bound",
        );
        check(
            kind,
            json!({"status": {"phase": "Pending"}}),
            "Unhealthy ClaimNotBound: the claim's phase is Pending",
        );
        let kind = ("policy/v1", "PodDisruptionBudget");
        check(kind, json!({}), "Healthy BudgetMet: 0 of 0 pods are healthy");
        let short = json!({"status": {"currentHealthy": 1, "desiredHealthy": 2}});
        check(kind, short, "Unhealthy BudgetNotMet: 1 of 2 pods are healthy");
    }

    #[test]
    fn jobs_and_other_versions_have_no_rule() {
        let health = NativeHealth::default();
        let covers = |api_version: &str, kind: &str| {
            health
                .capabilities()
                .contains(&Capability::on(CallKind::Health, api_version, kind))
        };
        assert!(covers("apps/v1", "Deployment"));
        assert!(!covers("batch/v1", "Job"));
        assert!(!covers("extensions/v1beta1", "Ingress"));
    }
}
