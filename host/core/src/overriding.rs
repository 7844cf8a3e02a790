//! Changes of a rendered object by override policies (Karmada: `pkg/util/overridemanager`).
//!
//! The caller selects and orders the policies: ClusterOverridePolicies first, then OverridePolicies, both from the
//! least to the most specific. A later change wins.
//!
//! Differences from Karmada:
//!
//! - A policy cannot change group, kind, namespace or name of the object: its Work, and the permissions of the policy's
//!   author, are those of the object that was selected.
//! - A `fieldOverrider` without operations leaves the text as it is. In Karmada it empties the text.
//! - A list whose shape is wrong is an error of the rule, and not a panic.

mod applied;
mod containers;
mod document;
mod image;
mod labels;
mod patch;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::Value;

pub use self::applied::{Applied, record};
use self::patch::Operation;
use crate::affinity;
use crate::model::{Cluster, OverrideRule, Overriders};
use crate::names::split_api_version;

/// Override policy that selects an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy<'a> {
    /// Namespace; empty for a ClusterOverridePolicy.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// Rules, in the order of their application.
    pub rules: Cow<'a, [OverrideRule]>,
}

/// Object with the changes of all policies.
#[derive(Clone, Debug, PartialEq)]
pub struct Overridden {
    /// The changed object.
    pub object: Value,
    /// Rules that apply to the cluster, in the order of their application.
    pub applied: Vec<Applied>,
}

/// Rule that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot apply {}: rule {rule}: {reason}", named(.namespace, .name))]
pub struct Failed {
    /// Namespace of the policy; empty for a ClusterOverridePolicy.
    pub namespace: String,
    /// Name of the policy.
    pub name: String,
    /// Index of the rule.
    pub rule: usize,
    /// Overrider with its cause, as in `imageOverrider[0]: …`.
    pub reason: String,
}

/// Returns kind and name of a policy; an empty namespace is that of a ClusterOverridePolicy.
pub fn named(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        format!("ClusterOverridePolicy {name}")
    } else {
        format!("OverridePolicy {namespace}/{name}")
    }
}

/// Applies the rules of `policies` that select `cluster` to `object`.
///
/// # Errors
///
/// The first rule that cannot be applied. None of the changes may then be used.
pub fn apply(mut object: Value, cluster: &Cluster, policies: &[Policy<'_>]) -> Result<Overridden, Failed> {
    let mut applied = Vec::new();
    for policy in policies {
        for (index, rule) in policy.rules.iter().enumerate() {
            let targets = rule.target_cluster.as_ref();
            if !targets.is_none_or(|target| affinity::matches(target, cluster)) {
                continue;
            }
            apply_rule(&mut object, &rule.overriders).map_err(|reason| Failed {
                namespace: policy.namespace.to_owned(),
                name: policy.name.to_owned(),
                rule: index,
                reason,
            })?;
            applied.push(Applied {
                namespace: policy.namespace.to_owned(),
                name: policy.name.to_owned(),
                overriders: rule.overriders.clone(),
            });
        }
    }
    Ok(Overridden { object, applied })
}

/// Applies the overriders of a rule in Karmada's order (`overridemanager.go:applyPolicyOverriders`).
fn apply_rule(object: &mut Value, overriders: &Overriders) -> Result<(), String> {
    let identity = Identity::of(object);
    each("imageOverrider", &overriders.image_overrider, |overrider| {
        image::override_images(object, overrider)
    })?;
    each("commandOverrider", &overriders.command_overrider, |overrider| {
        containers::override_list(object, "command", overrider)
    })?;
    each("argsOverrider", &overriders.args_overrider, |overrider| {
        containers::override_list(object, "args", overrider)
    })?;
    each("labelsOverrider", &overriders.labels_overrider, |overrider| {
        labels::override_map(object, "labels", overrider)
    })?;
    each("annotationsOverrider", &overriders.annotations_overrider, |overrider| {
        labels::override_map(object, "annotations", overrider)
    })?;
    each("fieldOverrider", &overriders.field_overrider, |overrider| {
        document::override_field(object, overrider)
    })?;
    let operations: Vec<_> = overriders.plaintext.iter().map(Operation::from).collect();
    patch::apply(object, &operations, "plaintext")?;
    identity.check(&Identity::of(object))
}

/// Applies every overrider of a list, and adds the place of the first that fails to its error.
fn each<T>(list: &str, overriders: &[T], mut apply: impl FnMut(&T) -> Result<(), String>) -> Result<(), String> {
    for (index, overrider) in overriders.iter().enumerate() {
        apply(overrider).map_err(|reason| {
            let separator = if reason.starts_with('.') { "" } else { ": " };
            format!("{list}[{index}]{separator}{reason}")
        })?;
    }
    Ok(())
}

/// Fields that an override may not change. The version of an API group is not one of them.
#[derive(PartialEq, Eq)]
struct Identity([(&'static str, String); 4]);

impl Identity {
    fn of(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        Self([
            ("the API group", split_api_version(text("/apiVersion")).0.to_owned()),
            ("kind", text("/kind").to_owned()),
            ("metadata.namespace", text("/metadata/namespace").to_owned()),
            ("metadata.name", text("/metadata/name").to_owned()),
        ])
    }

    fn check(&self, new: &Self) -> Result<(), String> {
        let changed = self.0.iter().zip(&new.0).find(|(old, new)| old != new);
        changed.map_or(Ok(()), |((field, old), (_, new))| {
            Err(format!(
                "{field} changes from {old:?} to {new:?}, which no override may do"
            ))
        })
    }
}
