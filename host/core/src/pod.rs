//! Requirements and references of pod templates.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::label::check_key;
use crate::model::ReplicaRequirements;
use crate::quantity::{Format, Quantity};
use crate::shape::{Malformed, field, list, members, text};
use crate::typed::{Field, Shape};

/// Amounts by resource name: cpu in thousandths, all others in units.
pub(crate) type Amounts = BTreeMap<String, i128>;

/// Additional pod template fields to include besides resources and the node claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// No additional fields.
    #[default]
    Plain,
    /// Priority class, for quota-aware estimators (Karmada: gate `ResourceQuotaEstimate`).
    PriorityClass,
}

/// Returns the requirements of one replica; `None` if the pod template requests nothing. A priority class alone is
/// not a requirement. (Karmada: `pkg/util/helper/binding.go:GenerateReplicaRequirements`, `pkg/util/resource.go`.)
///
/// `template` is an object with a pod's `spec`: a pod template or a pod. Init containers, including restartable ones,
/// count with their maximum, as in Karmada. Pod-level resources are ignored, also as in Karmada.
pub fn requirements(template: &Value, detail: Detail) -> Result<Option<ReplicaRequirements>, Malformed> {
    let mut needed = Amounts::new();
    for container in list(template, &["spec", "containers"])? {
        for (name, amount) in container_requests(container)? {
            *needed.entry(name).or_default() += amount;
        }
    }
    for container in list(template, &["spec", "initContainers"])? {
        for (name, amount) in container_requests(container)? {
            let most = needed.entry(name).or_default();
            *most = amount.max(*most);
        }
    }
    for (name, quantity) in quantities(template, &["spec", "overhead"])? {
        if let Some(amount) = amount(&name, quantity) {
            *needed.entry(name).or_default() += amount;
        }
    }
    let resource_request: BTreeMap<_, _> = needed
        .into_iter()
        .filter(|(_, amount)| *amount > 0)
        .map(|(name, amount)| {
            let text = printed(&name, amount);
            (name, text)
        })
        .collect();
    let claim = node_claim(template)?;
    if resource_request.is_empty() && claim.is_none() {
        return Ok(None);
    }
    let claim = claim.map(|claim| ("nodeClaim".to_owned(), Value::Object(claim)));
    let mut rest: BTreeMap<_, _> = claim.into_iter().collect();
    let priority_class = text(template, &["spec", "priorityClassName"])?;
    if detail == Detail::PriorityClass && !priority_class.is_empty() {
        rest.insert("priorityClassName".to_owned(), priority_class.into());
    }
    Ok(Some(ReplicaRequirements { resource_request, rest }))
}

/// Returns the requests of a container; a limit replaces a missing request.
pub(crate) fn container_requests(container: &Value) -> Result<Amounts, Malformed> {
    let mut requests = quantities(container, &["resources", "limits"])?;
    requests.extend(quantities(container, &["resources", "requests"])?);
    Ok(requests
        .into_iter()
        .filter_map(|(name, quantity)| Some((name.clone(), amount(&name, quantity)?)))
        .collect())
}

fn quantities(object: &Value, path: &[&str]) -> Result<BTreeMap<String, Quantity>, Malformed> {
    let Some(entries) = members(object, path)? else {
        return Ok(BTreeMap::new());
    };
    let parse = |(name, value): (&String, &Value)| match Quantity::from_json(value) {
        Ok(quantity) => Ok((name.clone(), quantity)),
        Err(error) => Err(Malformed::new(format!("{}.{name}: {error}", path.join(".")))),
    };
    entries.iter().map(parse).collect()
}

/// Converts a quantity to an amount, rounded up per container. Unqualified names that Kubernetes does not define are
/// ignored.
pub(crate) fn amount(name: &str, quantity: Quantity) -> Option<i128> {
    match name {
        "cpu" => Some(quantity.millis()),
        "memory" | "ephemeral-storage" | "pods" => Some(quantity.units()),
        _ if is_scalar(name) => Some(quantity.units()),
        _ => None,
    }
}

/// Returns true for scalar resources. (Karmada: `pkg/util/lifted/resourcename.go:IsScalarResourceName`.)
fn is_scalar(name: &str) -> bool {
    let is_native = name.contains("kubernetes.io/");
    // An extended resource must have a valid name in a quota too.
    let is_extended =
        || name.contains('/') && !name.starts_with("requests.") && check_key(&format!("requests.{name}")).is_ok();
    is_native || name.starts_with("hugepages-") || name.starts_with("attachable-volumes-") || is_extended()
}

pub(crate) fn printed(name: &str, amount: i128) -> String {
    match name {
        "cpu" => Quantity::from_millis(amount, Format::Decimal),
        "memory" | "ephemeral-storage" => Quantity::from_units(amount, Format::Binary),
        _ if name.starts_with("hugepages-") => Quantity::from_units(amount, Format::Binary),
        _ => Quantity::from_units(amount, Format::Decimal),
    }
    .to_string()
}

const TOLERATION: &[Field] = &[
    Field::not_empty("key", Shape::Text),
    Field::not_empty("operator", Shape::Text),
    Field::not_empty("value", Shape::Text),
    Field::not_empty("effect", Shape::Text),
    Field::pointer("tolerationSeconds", Shape::Int64),
];
const REQUIREMENT: &[Field] = &[
    Field::always("key", Shape::Text),
    Field::always("operator", Shape::Text),
    Field::not_empty("values", Shape::List(&Shape::Text)),
];
const TERM: &[Field] = &[
    Field::not_empty("matchExpressions", Shape::List(&Shape::Struct(REQUIREMENT))),
    Field::not_empty("matchFields", Shape::List(&Shape::Struct(REQUIREMENT))),
];
const NODE_SELECTOR: &[Field] = &[Field::always("nodeSelectorTerms", Shape::List(&Shape::Struct(TERM)))];
const TOLERATIONS: Shape = Shape::List(&Shape::Struct(TOLERATION));
const SELECTOR: Shape = Shape::Map(&Shape::Text);
const AFFINITY: Shape = Shape::Struct(NODE_SELECTOR);

/// Returns the node claim. As in Karmada, an empty node selector is a claim and an empty list of tolerations is not,
/// and fields that the API does not know are dropped.
fn node_claim(template: &Value) -> Result<Option<Map<String, Value>>, Malformed> {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let typed = |path: &[&str], shape: Shape| -> Result<Option<Value>, Malformed> {
        let Some(value) = field(template, path)? else {
            return Ok(None);
        };
        shape.check(value, &path.join("."))?;
        Ok(Some(shape.printed(value)))
    };
    let selector = typed(&["spec", "nodeSelector"], SELECTOR)?;
    let tolerations = typed(&["spec", "tolerations"], TOLERATIONS)?;
    let affinity = typed(&["spec", "affinity", "nodeAffinity", required], AFFINITY)?;
    let has_selector = selector.is_some();
    let parts = [
        ("hardNodeAffinity", affinity),
        ("nodeSelector", selector),
        ("tolerations", tolerations),
    ];
    let is_empty = |value: &Value| *value == json!([]) || *value == json!({});
    let mut claim = Map::new();
    for (name, value) in parts {
        claim.extend(
            value
                .filter(|value| !is_empty(value))
                .map(|value| (name.to_owned(), value)),
        );
    }
    Ok((has_selector || !claim.is_empty()).then_some(claim))
}

/// Returns the `ConfigMap`s, `Secret`s, service account and claims that a pod template references, as
/// `DependentObjectReference`s without duplicates. The order is fixed; Karmada's is random. (Karmada:
/// `pkg/util/helper/pod.go:GetDependenciesFromPodTemplate`, `pkg/util/lifted/visitpod.go`.)
pub fn dependencies(template: &Value, namespace: &str) -> Result<Vec<Value>, Malformed> {
    let mut found = References::default();
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        for container in list(template, &["spec", kind])? {
            found.in_container(container)?;
        }
    }
    for secret in list(template, &["spec", "imagePullSecrets"])? {
        found.add("Secret", text(secret, &["name"])?);
    }
    for volume in list(template, &["spec", "volumes"])? {
        found.in_volume(volume)?;
    }
    let account = text(template, &["spec", "serviceAccountName"])?;
    if account != "default" {
        found.add("ServiceAccount", account);
    }
    Ok(found
        .0
        .iter()
        .map(|(kind, name)| reference(kind, name, namespace))
        .collect())
}

fn reference(kind: &str, name: &str, namespace: &str) -> Value {
    let mut reference = json!({"apiVersion": "v1", "kind": kind, "name": name});
    if !namespace.is_empty() {
        reference["namespace"] = json!(namespace);
    }
    reference
}

/// Kinds and names, sorted.
#[derive(Default)]
struct References<'a>(BTreeSet<(&'static str, &'a str)>);

impl<'a> References<'a> {
    fn add(&mut self, kind: &'static str, name: &'a str) {
        if !name.is_empty() {
            self.0.insert((kind, name));
        }
    }

    fn in_container(&mut self, container: &'a Value) -> Result<(), Malformed> {
        for variable in list(container, &["env"])? {
            self.add("ConfigMap", text(variable, &["valueFrom", "configMapKeyRef", "name"])?);
            self.add("Secret", text(variable, &["valueFrom", "secretKeyRef", "name"])?);
        }
        for source in list(container, &["envFrom"])? {
            self.add("ConfigMap", text(source, &["configMapRef", "name"])?);
            self.add("Secret", text(source, &["secretRef", "name"])?);
        }
        Ok(())
    }

    fn in_volume(&mut self, volume: &'a Value) -> Result<(), Malformed> {
        self.add("ConfigMap", text(volume, &["configMap", "name"])?);
        self.add("Secret", text(volume, &["secret", "secretName"])?);
        self.add("Secret", text(volume, &["azureFile", "secretName"])?);
        self.add("Secret", text(volume, &["csi", "nodePublishSecretRef", "name"])?);
        for kind in ["cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"] {
            self.add("Secret", text(volume, &[kind, "secretRef", "name"])?);
        }
        self.add(
            "PersistentVolumeClaim",
            text(volume, &["persistentVolumeClaim", "claimName"])?,
        );
        for source in list(volume, &["projected", "sources"])? {
            self.add("ConfigMap", text(source, &["configMap", "name"])?);
            self.add("Secret", text(source, &["secret", "name"])?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: Value, expected: Value) {
        let actual = match requirements(&json!({"spec": spec}), Detail::Plain) {
            Ok(needed) => serde_json::to_value(needed).unwrap(),
            Err(error) => json!(error.to_string()),
        };
        assert_eq!(actual, expected, "{spec}");
    }

    fn container(requests: Value, limits: Value) -> Value {
        json!({"name": "c", "resources": {"requests": requests, "limits": limits}})
    }

    #[test]
    fn requests_are_summed_and_rounded_as_in_karmada() {
        let check = |containers: Value, inits: Value, overhead: Value, expected: Value| {
            let expected = if expected.is_null() {
                expected
            } else {
                json!({"resourceRequest": expected})
            };
            check(
                json!({"containers": containers, "initContainers": inits, "overhead": overhead}),
                expected,
            );
        };
        let of = |requests: Value| container(requests, json!({}));
        check(json!([]), json!([]), json!({}), Value::Null);
        check(json!([{"name": "c"}]), json!([]), Value::Null, Value::Null);
        let two = json!([
            of(json!({"cpu": "100m", "memory": "64Mi"})),
            of(json!({"cpu": "250m", "memory": "1Gi"}))
        ]);
        check(
            two.clone(),
            json!([]),
            json!({}),
            json!({"cpu": "350m", "memory": "1088Mi"}),
        );
        check(
            two,
            json!([of(json!({"cpu": "2"}))]),
            json!({"cpu": "1"}),
            json!({"cpu": "3", "memory": "1088Mi"}),
        );
        let limits = json!([container(json!({"cpu": "500m"}), json!({"cpu": 2, "memory": "1Gi"}))]);
        check(limits, json!([]), json!({}), json!({"cpu": "500m", "memory": "1Gi"}));
        check(
            json!([of(json!({"memory": "1500m"}))]),
            json!([]),
            json!({}),
            json!({"memory": "2"}),
        );
        check(
            json!([of(json!({"cpu": 0, "memory": 0}))]),
            json!([]),
            json!({}),
            Value::Null,
        );
        let scalars = json!({"nvidia.com/gpu": 2, "hugepages-2Mi": "4Mi", "foo": 2, "requests.x/y": 1});
        check(
            json!([of(scalars)]),
            json!([]),
            json!({}),
            json!({"nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"}),
        );
        let odd = json!({"NVIDIA.com/gpu": 1, "nvidia.com/gpu/small": 1, "nvidia.com/": 1, "x.kubernetes.io/y z": 1});
        check(
            json!([of(odd)]),
            json!([]),
            json!({}),
            json!({"x.kubernetes.io/y z": "1"}),
        );
    }

    #[test]
    fn node_claims_follow_karmada() {
        check(json!({"nodeSelector": {}}), json!({"nodeClaim": {}}));
        check(
            json!({"nodeSelector": {"a": "b"}}),
            json!({"nodeClaim": {"nodeSelector": {"a": "b"}}}),
        );
        check(json!({"tolerations": []}), Value::Null);
        let tolerations = json!([{"key": "k", "operator": "Exists"}]);
        check(
            json!({"tolerations": tolerations}),
            json!({"nodeClaim": {"tolerations": tolerations}}),
        );
        let unknown = json!([{"key": "k", "value": "", "extra": 1}]);
        check(
            json!({"tolerations": unknown}),
            json!({"nodeClaim": {"tolerations": [{"key": "k"}]}}),
        );
        let message = "spec.tolerations[0].tolerationSeconds is a string, not an integer";
        check(json!({"tolerations": [{"tolerationSeconds": "5"}]}), json!(message));
        check(
            json!({"nodeSelector": {"a": 1}}),
            json!("spec.nodeSelector.a is a number, not a string"),
        );
        let affinity = |field: &str| json!({"affinity": {"nodeAffinity": {field: {"nodeSelectorTerms": []}}}});
        let hard = json!({"nodeClaim": {"hardNodeAffinity": {"nodeSelectorTerms": []}}});
        check(affinity("requiredDuringSchedulingIgnoredDuringExecution"), hard);
        check(affinity("preferredDuringSchedulingIgnoredDuringExecution"), Value::Null);
    }

    #[test]
    fn the_priority_class_is_returned_if_requested() {
        let check = |spec: Value, expected: Option<&str>| {
            let needed = requirements(&json!({"spec": spec}), Detail::PriorityClass)
                .unwrap()
                .unwrap_or_default();
            let actual = needed.rest.get("priorityClassName").and_then(Value::as_str);
            assert_eq!(actual, expected, "{spec}");
        };
        let containers = json!([container(json!({"cpu": 1}), json!({}))]);
        check(
            json!({"containers": containers, "priorityClassName": "high"}),
            Some("high"),
        );
        check(json!({"containers": containers}), None);
        check(json!({"priorityClassName": "high"}), None);
    }

    #[test]
    fn malformed_templates_are_errors() {
        check(json!([]), json!("spec is a list, not an object"));
        check(
            json!({"containers": "x"}),
            json!("spec.containers is a string, not a list"),
        );
        let text = format!("resources.requests.cpu: {}", crate::quantity::NotAQuantity);
        check(
            json!({"containers": [container(json!({"cpu": "abc"}), json!({}))]}),
            json!(text),
        );
    }

    #[test]
    fn dependencies_are_found_once_and_sorted() {
        let spec = json!({
            "serviceAccountName": "sa",
            "imagePullSecrets": [{"name": "pull"}, {"name": ""}],
            "containers": [{
                "env": [{"name": "A", "value": "1"}, {"valueFrom": {"secretKeyRef": {"name": "s1"}}}],
                "envFrom": [{"configMapRef": {"name": "c1"}}, {"secretRef": {"name": "s1"}}],
            }],
            "volumes": [
                {"configMap": {"name": "c2"}},
                {"secret": {"secretName": "s2"}},
                {"cephfs": {"secretRef": {"name": "s3"}}},
                {"persistentVolumeClaim": {"claimName": "p"}},
                {"projected": {"sources": [{"configMap": {"name": "c3"}}, {"secret": {"name": "s4"}}]}},
                {"emptyDir": {}},
            ],
        });
        let names = |kind: &str| -> Vec<String> {
            let found = dependencies(&json!({"spec": spec}), "ns").unwrap();
            let of_kind = found.iter().filter(|reference| reference["kind"] == kind);
            of_kind
                .map(|reference| reference["name"].as_str().unwrap_or_default().to_owned())
                .collect()
        };
        assert_eq!(names("ConfigMap"), ["c1", "c2", "c3"]);
        assert_eq!(names("Secret"), ["pull", "s1", "s2", "s3", "s4"]);
        assert_eq!(names("ServiceAccount"), ["sa"]);
        assert_eq!(names("PersistentVolumeClaim"), ["p"]);
        assert_eq!(
            dependencies(&json!({"spec": {"serviceAccountName": "default"}}), "ns"),
            Ok(vec![])
        );
        let account = json!({"spec": {"serviceAccountName": "s"}});
        let bare = json!({"apiVersion": "v1", "kind": "ServiceAccount", "name": "s"});
        assert_eq!(dependencies(&account, ""), Ok(vec![bare]));
    }
}
