//! Dependencies of an object. (Karmada: `pkg/resourceinterpreter/default/native/dependencies.go`.)

use std::collections::BTreeSet;

use bulkhead_core::model::{DependentObjectReference, LabelSelector};
use bulkhead_core::pod;
use bulkhead_core::shape::{Malformed, list, members, text};
use serde_json::{Value, json};

use crate::statuses;

/// Returns references to the dependencies in a fixed order (Karmada's is random); `None` for kinds without a rule.
pub(crate) fn dependencies(
    kind: (&str, &str),
    object: &Value,
) -> Result<Option<Vec<DependentObjectReference>>, Malformed> {
    let namespace = text(object, &["metadata", "namespace"])?;
    let found = match kind {
        ("apps/v1", "Deployment" | "ReplicaSet" | "DaemonSet") | ("batch/v1", "Job") => {
            of_template(object, &["spec", "template"], namespace)?
        }
        ("apps/v1", "StatefulSet") => stateful_set(object, namespace)?,
        ("batch/v1", "CronJob") => of_template(object, &["spec", "jobTemplate", "spec", "template"], namespace)?,
        ("v1", "Pod") => of_template(object, &[], namespace)?,
        ("networking.k8s.io/v1", "Ingress") => ingress(object, namespace)?,
        ("multicluster.x-k8s.io/v1alpha1", "ServiceImport") => service_import(object, namespace)?,
        _ => return Ok(None),
    };
    statuses::check_object(kind, object)?;
    Ok(Some(found))
}

fn of_template(object: &Value, path: &[&str], namespace: &str) -> Result<Vec<DependentObjectReference>, Malformed> {
    if members(object, path)?.is_none() {
        return Ok(Vec::new());
    }
    let pointer: String = path.iter().flat_map(|name| ["/", name]).collect();
    let template = object.pointer(&pointer).unwrap_or(&Value::Null);
    let read = |reference| serde_json::from_value(reference).map_err(|error| Malformed::new(error.to_string()));
    pod::dependencies(template, namespace)?.into_iter().map(read).collect()
}

/// Returns the dependencies of a StatefulSet, without the claims that it creates from its own templates.
fn stateful_set(object: &Value, namespace: &str) -> Result<Vec<DependentObjectReference>, Malformed> {
    let mut found = of_template(object, &["spec", "template"], namespace)?;
    let templates = list(object, &["spec", "volumeClaimTemplates"])?;
    let made: Result<BTreeSet<_>, _> = templates
        .iter()
        .map(|template| text(template, &["metadata", "name"]))
        .collect();
    let made = made?;
    found.retain(|reference| reference.kind != "PersistentVolumeClaim" || !made.contains(reference.name.as_str()));
    Ok(found)
}

/// Returns one secret for each entry of `tls`; the result may contain duplicates.
fn ingress(object: &Value, namespace: &str) -> Result<Vec<DependentObjectReference>, Malformed> {
    let secret = |(index, tls): (usize, &Value)| match text(tls, &["secretName"])? {
        "" => Err(Malformed::new(format!("spec.tls[{index}] has no secretName"))),
        name => Ok(named("v1", "Secret", namespace, name)),
    };
    list(object, &["spec", "tls"])?.iter().enumerate().map(secret).collect()
}

/// Returns the derived service of a service import, and its endpoints.
fn service_import(object: &Value, namespace: &str) -> Result<Vec<DependentObjectReference>, Malformed> {
    let service = format!("derived-{}", text(object, &["metadata", "name"])?);
    let labels = json!({"matchLabels": {"kubernetes.io/service-name": service}});
    let selector: LabelSelector =
        serde_json::from_value(labels).map_err(|error| Malformed::new(format!("selector of endpoints: {error}")))?;
    let slices = DependentObjectReference {
        label_selector: Some(selector),
        ..named("discovery.k8s.io/v1", "EndpointSlice", namespace, "")
    };
    Ok(vec![named("v1", "Service", namespace, &service), slices])
}

fn named(api_version: &str, kind: &str, namespace: &str, name: &str) -> DependentObjectReference {
    DependentObjectReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        label_selector: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: (&str, &str), spec: Value, expected: Result<Option<&[&str]>, &str>) {
        let object = json!({"metadata": {"name": "x", "namespace": "ns"}, "spec": spec});
        let actual = dependencies(kind, &object).map(|found| {
            let line = |reference: DependentObjectReference| {
                let by = reference
                    .label_selector
                    .map_or(reference.name, |_| "by label".to_owned());
                format!(
                    "{} {} {}/{by}",
                    reference.api_version, reference.kind, reference.namespace
                )
            };
            found.map(|found| found.into_iter().map(line).collect::<Vec<_>>())
        });
        let expected = expected.map(|lines| lines.map(|lines| lines.iter().copied().map(str::to_owned).collect()));
        assert_eq!(
            actual.map_err(|error| error.to_string()),
            expected.map_err(str::to_owned),
            "{kind:?} {spec}"
        );
    }

    #[test]
    fn workloads_need_what_their_pods_name() {
        let pod = json!({"containers": [{"envFrom": [{"configMapRef": {"name": "c"}}]}]});
        let expected: Result<_, &str> = Ok(Some(&["v1 ConfigMap ns/c"][..]));
        for kind in ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"] {
            check(("apps/v1", kind), json!({"template": {"spec": pod}}), expected);
        }
        check(("batch/v1", "Job"), json!({"template": {"spec": pod}}), expected);
        check(
            ("batch/v1", "CronJob"),
            json!({"jobTemplate": {"spec": {"template": {"spec": pod}}}}),
            expected,
        );
        check(("v1", "Pod"), pod, expected);
        check(("apps/v1", "Deployment"), json!({}), Ok(Some(&[])));
        let malformed = json!({"template": {"spec": {"containers": "x"}}});
        check(
            ("apps/v1", "Deployment"),
            malformed,
            Err("spec.containers is a string, not a list"),
        );
        check(
            ("apps/v1", "Deployment"),
            json!("x"),
            Err("spec is a string, not an object"),
        );
    }

    #[test]
    fn claims_that_a_stateful_set_makes_are_no_dependencies() {
        let volume = |claim: &str| json!({"persistentVolumeClaim": {"claimName": claim}});
        let spec = json!({
            "template": {"spec": {"volumes": [volume("data"), volume("keep")]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        });
        check(
            ("apps/v1", "StatefulSet"),
            spec,
            Ok(Some(&["v1 PersistentVolumeClaim ns/keep"])),
        );
    }

    #[test]
    fn ingresses_need_their_certificates_and_imports_their_service() {
        let ingress = ("networking.k8s.io/v1", "Ingress");
        let twice = json!({"tls": [{"secretName": "a"}, {"secretName": "a"}]});
        check(ingress, twice, Ok(Some(&["v1 Secret ns/a", "v1 Secret ns/a"])));
        check(
            ingress,
            json!({"tls": [{"hosts": ["h"]}]}),
            Err("spec.tls[0] has no secretName"),
        );
        let expected = [
            "v1 Service ns/derived-x",
            "discovery.k8s.io/v1 EndpointSlice ns/by label",
        ];
        check(
            ("multicluster.x-k8s.io/v1alpha1", "ServiceImport"),
            json!({}),
            Ok(Some(&expected)),
        );
        check(("v1", "Service"), json!({}), Ok(None));
    }
}
