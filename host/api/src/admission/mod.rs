//! Admission of objects before they are stored, as one function without I/O. It implements Karmada's webhooks, its
//! CRD defaults and its aggregated API server. A control plane without those components calls it on each write of a
//! main resource; writes to `status` bypass it.
//!
//! The spec of a policy or cluster is decoded, defaulted, validated and written back. This drops fields that a policy
//! does not have, as an API server with a schema does; call [`crate::decode_strict`] first for warnings. Old
//! spellings of enum values are written back in the current one. The specs of bindings, Works and customizations are
//! only decoded: an undecodable one would break every typed watch.
//!
//! Not implemented here: pruning of a Work's manifests, which the binding controller does when it renders them, and
//! quotas.

mod binding;
mod cluster;
mod customization;
mod denied;
mod eviction;
mod failover;
mod override_policy;
mod placement;
mod plugin;
mod plugin_trust;
mod propagation;
mod rebalancer;
mod taint_policy;
#[cfg(test)]
mod tests;
mod webhook;
mod work;

use bulkhead_core::model::{BindingSpec, ClusterSpec, ClusterTaintPolicySpec};
use bulkhead_core::names::keys;
use bulkhead_core::time::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use self::denied::Denied;
pub use self::placement::validate_placement;
pub use self::webhook::validate as validate_hooks;
use crate::decode::decode;
use crate::override_policy::OverrideSpec;
use crate::policy::PropagationSpec;
use crate::webhook::Hook;
use crate::work::WorkSpec;

/// Operation on the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates the object.
    Create,
    /// Replaces [`Request::old`].
    Update,
    /// Deletes the object; always admitted.
    Delete,
}

/// Admission request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// API group of the object.
    pub group: &'a str,
    /// Kind of the object.
    pub kind: &'a str,
    /// Operation on the object.
    pub operation: Operation,
    /// Namespace of the request; absent for cluster scope.
    pub namespace: Option<&'a str>,
    /// The stored object, for an update.
    pub old: Option<&'a Value>,
}

/// Context of an admission request.
pub trait AdmissionContext {
    /// Returns a new permanent id; Karmada's are random UUIDs.
    fn new_id(&mut self) -> String;

    /// Returns the current time.
    fn now(&self) -> Time;

    /// Returns all stored objects of the kind, including the one to be replaced.
    fn others(&self) -> Vec<Value>;

    /// Returns the error of a Lua script, with line and column, if it has one.
    fn script_error(&self, script: &str) -> Option<String>;
}

/// Options of the webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionOptions {
    /// True if a `ClusterTaintPolicy` may add `NoExecute` taints (Karmada: `--allow-no-execute-taint-policy`).
    /// Policies that were admitted keep working when it is switched off.
    pub allow_no_execute_taint_policy: bool,
    /// Default toleration of policies for a cluster that is not ready, in seconds. If absent, none is added, as in
    /// current Karmada.
    pub default_not_ready_toleration_seconds: Option<i64>,
    /// Default toleration of policies for an unreachable cluster, in seconds. If absent, none is added.
    pub default_unreachable_toleration_seconds: Option<i64>,
    /// True if `failover.cluster` may have the purge mode `Never`, as in Karmada's proposal but in no release.
    pub allow_never_purging_clusters: bool,
    /// True if taints may have the effect `PreferNoExecute`, which no release of Karmada has.
    pub allow_prefer_no_execute: bool,
}

/// Defaults and validates an object that is about to be stored. Kinds without rules pass unchanged.
pub fn admit(
    request: &Request<'_>,
    object: &mut Value,
    around: &mut dyn AdmissionContext,
    options: AdmissionOptions,
) -> Result<(), Denied> {
    if request.operation == Operation::Delete {
        return Ok(());
    }
    match (request.group, request.kind) {
        ("policy.karmada.io", "PropagationPolicy") => {
            let namespace = namespace(request, object);
            admit_propagation_policy(
                request,
                object,
                around,
                PolicyScope {
                    id_label: keys::PROPAGATION_POLICY_ID,
                    namespace: Some(&namespace),
                    options,
                },
            )
        }
        ("policy.karmada.io", "ClusterPropagationPolicy") => {
            let id_label = keys::CLUSTER_PROPAGATION_POLICY_ID;
            admit_propagation_policy(
                request,
                object,
                around,
                PolicyScope {
                    id_label,
                    namespace: None,
                    options,
                },
            )
        }
        ("policy.karmada.io", "OverridePolicy") => {
            let namespace = namespace(request, object);
            admit_override_policy(object, Some(&namespace))
        }
        ("policy.karmada.io", "ClusterOverridePolicy") => admit_override_policy(object, None),
        ("policy.karmada.io", "ClusterTaintPolicy") => {
            let spec: ClusterTaintPolicySpec = read_spec(object)?;
            taint_policy::validate_spec(&spec, options)?;
            write_spec(object, &spec)
        }
        ("work.karmada.io", "ResourceBinding") => {
            binding::validate(object, &read_spec::<BindingSpec>(object)?)?;
            keep_or_make_id(request, object, around, keys::RESOURCE_BINDING_ID)
        }
        ("work.karmada.io", "ClusterResourceBinding") => {
            binding::validate(object, &read_spec::<BindingSpec>(object)?)?;
            keep_or_make_id(request, object, around, keys::CLUSTER_RESOURCE_BINDING_ID)
        }
        ("work.karmada.io", "Work") => {
            read_spec::<WorkSpec>(object)?;
            work::validate(object)?;
            keep_or_make_id(request, object, around, keys::WORK_ID)?;
            work::label_manifests(object);
            Ok(())
        }
        ("config.karmada.io", "ResourceInterpreterCustomization") => customization::validate(object, around),
        ("config.karmada.io", "ResourceInterpreterWebhookConfiguration") => {
            let hooks = object.get("webhooks").cloned().unwrap_or_default();
            let hooks: Option<Vec<Hook>> = decode(&hooks).map_err(|error| Denied::undecodable("webhooks", error))?;
            webhook::validate(&hooks.unwrap_or_default())
                .into_iter()
                .next()
                .map_or(Ok(()), Err)
        }
        ("apps.karmada.io", "WorkloadRebalancer") => rebalancer::validate(&read_spec(object)?),
        ("bulkhead.dev", "ClusterDrain") => eviction::validate_drain(&read_spec(object)?),
        ("bulkhead.dev", "Plugin") => plugin::validate(object),
        ("bulkhead.dev", "PluginTrust") => plugin_trust::validate(object),
        ("bulkhead.dev", "EvictionPause") => eviction::validate_pause(&read_spec(object)?),
        ("cluster.karmada.io", "Cluster") => {
            let mut spec: ClusterSpec = read_spec(object)?;
            cluster::default_spec(&mut spec, around.now());
            cluster::validate(text(object, "/metadata/name").unwrap_or_default(), &spec, options)?;
            write_spec(object, &spec)
        }
        _ => Ok(()),
    }
}

/// Differences between the two kinds of propagation policy.
struct PolicyScope<'a> {
    id_label: &'a str,
    /// Namespace of the policy; absent for cluster scope.
    namespace: Option<&'a str>,
    options: AdmissionOptions,
}

fn admit_propagation_policy(
    request: &Request<'_>,
    object: &mut Value,
    around: &mut dyn AdmissionContext,
    scope: PolicyScope<'_>,
) -> Result<(), Denied> {
    let PolicyScope {
        id_label,
        namespace,
        options,
    } = scope;
    let mut spec: PropagationSpec = read_spec(object)?;
    propagation::default_spec(&mut spec, namespace, options);
    match (request.operation, request.old) {
        (Operation::Create, _) => {
            labels(object)?.insert(id_label.to_owned(), around.new_id().into());
        }
        (_, Some(old)) => {
            propagation::validate_update(&spec, &read_spec(old)?)?;
            validate_id_unchanged(object, old, id_label)?;
        }
        (_, None) => {}
    }
    propagation::validate_spec(&spec, namespace, options)?;
    write_spec(object, &spec)
}

/// Admits an override policy; `namespace` is absent for cluster scope.
fn admit_override_policy(object: &mut Value, namespace: Option<&str>) -> Result<(), Denied> {
    let mut spec: OverrideSpec = read_spec(object)?;
    override_policy::default_spec(&mut spec, namespace);
    override_policy::validate_spec(&spec, namespace)?;
    write_spec(object, &spec)
}

/// Returns the namespace of the request or, without one, of the object.
fn namespace(request: &Request<'_>, object: &Value) -> String {
    let namespace = request.namespace.or_else(|| text(object, "/metadata/namespace"));
    namespace.unwrap_or_default().to_owned()
}

/// Checks that an update keeps the permanent id, which is generated once and is part of every binding's claim.
fn validate_id_unchanged(object: &Value, old: &Value, id_label: &str) -> Result<(), Denied> {
    let field = format!("metadata.labels[{id_label}]");
    match (label(object, id_label), label(old, id_label)) {
        (None, _) => Err(Denied::required(field, "it is set by the system during creation")),
        (Some(new), old) if Some(new) != old => Err(Denied::invalid(
            field,
            new,
            "it is immutable, it can only be set by the system during creation",
        )),
        _ => Ok(()),
    }
}

/// Keeps an existing id, and restores one that an update removed. Generates a new one on creation, and for a Work on
/// update too.
fn keep_or_make_id(
    request: &Request<'_>,
    object: &mut Value,
    around: &mut dyn AdmissionContext,
    id_label: &str,
) -> Result<(), Denied> {
    if label(object, id_label).is_some() {
        return Ok(());
    }
    let kept = request.old.and_then(|old| label(old, id_label)).map(str::to_owned);
    let makes = request.operation == Operation::Create || request.kind == "Work";
    if let Some(id) = kept.or_else(|| makes.then(|| around.new_id())) {
        labels(object)?.insert(id_label.to_owned(), id.into());
    }
    Ok(())
}

fn read_spec<S: DeserializeOwned>(object: &Value) -> Result<S, Denied> {
    let spec = object.get("spec").ok_or_else(|| Denied::required("spec", ""))?;
    decode(spec).map_err(|error| Denied::undecodable("spec", error))
}

fn write_spec<S: Serialize>(object: &mut Value, spec: &S) -> Result<(), Denied> {
    object["spec"] = serde_json::to_value(spec).map_err(|error| Denied {
        field: "spec".to_owned(),
        message: format!("Internal error: {error}"),
        detail: error.to_string(),
    })?;
    Ok(())
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer)?.as_str()
}

/// Returns a label if it is set and not empty.
fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"][key]
        .as_str()
        .filter(|value| !value.is_empty())
}

/// Returns the labels; creates them if they are absent.
fn labels(object: &mut Value) -> Result<&mut Map<String, Value>, Denied> {
    child(object, "metadata")
        .and_then(|metadata| child(metadata, "labels"))
        .and_then(Value::as_object_mut)
        .ok_or_else(|| Denied::required("metadata.labels", "must be an object"))
}

/// Returns a field that is an object; creates it if it is absent or null.
fn child<'a>(parent: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    let value = parent.as_object_mut()?.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.is_object().then_some(value)
}
