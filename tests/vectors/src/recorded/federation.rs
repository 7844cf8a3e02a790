//! Conversion of the shorthand in case files into objects.

use std::sync::Arc;

use bulkhead_core::model::{Binding, Cluster};
use bulkhead_core::names::{binding_name, keys};
use bulkhead_core::snapshot::ClusterSnapshot;
use serde_json::{Map, Value, json};

/// APIs of a cluster if the case lists none.
const DEFAULT_APIS: [&str; 6] = [
    "apps/v1/Deployment",
    "apps/v1/StatefulSet",
    "v1/ConfigMap",
    "v1/Service",
    "rbac.authorization.k8s.io/v1/ClusterRole",
    "flink.apache.org/v1beta1/FlinkDeployment",
];

/// Returns the clusters of a case.
pub(super) fn clusters(list: Option<&Value>) -> Result<Arc<ClusterSnapshot>, String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    let clusters: Result<Vec<_>, _> = list.map(|cluster| self::cluster(cluster).map(Arc::new)).collect();
    Ok(Arc::new(ClusterSnapshot::new(clusters?)))
}

/// Returns one cluster, converted from shorthand.
pub(super) fn cluster(short: &Value) -> Result<Cluster, String> {
    let mut spec = json!({"syncMode": "Push"});
    for (from, to) in [
        ("provider", "provider"),
        ("region", "region"),
        ("zone", "zone"),
        ("zones", "zones"),
        ("taints", "taints"),
        ("models", "resourceModels"),
    ] {
        if let Some(value) = short.get(from).filter(|value| !value.is_null()) {
            spec[to] = value.clone();
        }
    }
    let complete = if is_set(short, "partialApis") { "False" } else { "True" };
    let mut status = json!({
        "apiEnablements": apis(short),
        "conditions": [{"type": "CompleteAPIEnablements", "status": complete}],
    });
    if !is_set(short, "noSummary") {
        status["resourceSummary"] = summary(short);
    }
    let mut cluster = json!({"name": short["name"], "spec": spec, "status": status});
    if let Some(labels) = short.get("labels").filter(|labels| !labels.is_null()) {
        cluster["labels"] = labels.clone();
    }
    if is_set(short, "deleting") {
        cluster["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    serde_json::from_value(cluster).map_err(|error| format!("cluster {}: {error}", short["name"]))
}

fn is_set(short: &Value, flag: &str) -> bool {
    short.get(flag).and_then(Value::as_bool).unwrap_or(false)
}

fn summary(short: &Value) -> Value {
    let mut summary = Map::new();
    let allocatable = match (short.get("allocatable"), short.get("cpu")) {
        (Some(allocatable), _) => allocatable.clone(),
        (None, Some(cpu)) => json!({"cpu": cpu.to_string(), "memory": "1Ti", "pods": "10000"}),
        (None, None) => json!({"cpu": "100", "memory": "100Gi", "pods": "1000"}),
    };
    summary.insert("allocatable".to_owned(), as_text(allocatable));
    for name in ["allocated", "allocating"] {
        if let Some(amounts) = short.get(name).filter(|amounts| !amounts.is_null()) {
            summary.insert(name.to_owned(), as_text(amounts.clone()));
        }
    }
    if let Some(modelings) = short.get("modelings").filter(|modelings| !modelings.is_null()) {
        summary.insert("allocatableModelings".to_owned(), modelings.clone());
    }
    Value::Object(summary)
}

/// Converts quantities written as numbers into texts.
fn as_text(amounts: Value) -> Value {
    let text = |amount: Value| {
        if amount.is_number() {
            json!(amount.to_string())
        } else {
            amount
        }
    };
    match amounts {
        Value::Object(amounts) => amounts.into_iter().map(|(name, amount)| (name, text(amount))).collect(),
        other => other,
    }
}

fn apis(short: &Value) -> Value {
    let listed = short.get("apis").and_then(Value::as_array);
    let apis: Vec<String> = match listed {
        Some(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => DEFAULT_APIS.map(str::to_owned).to_vec(),
    };
    let enablement = |api: &String| {
        let (group_version, kind) = api.rsplit_once('/')?;
        let name = format!("{}s", kind.to_lowercase());
        Some(json!({"groupVersion": group_version, "resources": [{"name": name, "kind": kind}]}))
    };
    apis.iter().filter_map(enablement).collect()
}

/// Returns a binding of a case, with the annotation of its last applied placement.
pub(super) fn binding(short: &Value) -> Result<Binding, String> {
    let cluster_scope = short["kind"] == "ClusterResourceBinding";
    let mut spec = short.get("spec").cloned().unwrap_or_else(|| json!({}));
    if spec.get("resource").is_none() {
        let mut resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"});
        if !cluster_scope {
            resource["namespace"] = json!("default");
        }
        spec["resource"] = resource;
    }
    let text = |pointer: &str| {
        spec.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (kind, name, namespace) = (
        text("/resource/kind"),
        text("/resource/name"),
        text("/resource/namespace"),
    );
    let mut object = json!({
        "name": short.get("name").cloned().unwrap_or_else(|| json!(binding_name(&kind, &name))),
        "generation": short.get("generation").cloned().unwrap_or_else(|| json!(1)),
        "spec": spec,
        "status": short.get("status").cloned().unwrap_or_else(|| json!({})),
    });
    if !cluster_scope {
        object["namespace"] = short.get("namespace").cloned().unwrap_or_else(|| json!(namespace));
    }
    if is_set(short, "deleting") {
        object["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    let mut binding: Binding = serde_json::from_value(object).map_err(|error| format!("binding: {error}"))?;
    if let Some(applied) = short.get("applied").filter(|applied| !applied.is_null()) {
        let text = match applied {
            Value::String(same) if same == "same" => {
                serde_json::to_string(&binding.spec.placement).map_err(|error| error.to_string())?
            }
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        binding.annotations.insert(keys::APPLIED_PLACEMENT.to_owned(), text);
    }
    Ok(binding)
}
