//! Replicas and components of a template, as its interpreter reports them.

use std::sync::Arc;

use bulkhead_core::call::{Interpretation, Operation};
use bulkhead_core::combine::PolicyFault;
use bulkhead_core::journal::Subject;
use bulkhead_core::model::{Component, ReplicaRequirements};
use serde_json::Value;

use super::{Dependencies, NAME};
use crate::flags::FeatureGate;

/// Resource needs of a template.
#[derive(Default)]
pub(super) struct Needs {
    pub(super) replicas: i32,
    pub(super) requirements: Option<ReplicaRequirements>,
    pub(super) components: Vec<Value>,
}

/// Returns the needs of a template. Components are queried first if the gate is on, and replicas only if there are no
/// components. A template that no interpreter knows is no workload. (Karmada:
/// `pkg/detector/detector.go:applyReplicaInterpretation`.)
pub(super) async fn needs(deps: &Dependencies, about: &Subject, object: &Arc<Value>) -> Result<Needs, PolicyFault> {
    if deps.flags.gate(FeatureGate::MultiplePodTemplatesScheduling)
        && let Some(Interpretation::Components(components)) = deps
            .interpreters
            .interpret(NAME, about, Operation::Components { object })
            .await?
    {
        let components = components.iter().map(component_value).collect();
        return Ok(Needs {
            components,
            ..Needs::default()
        });
    }
    let Some(Interpretation::Replicas {
        replicas,
        mut requirements,
    }) = deps
        .interpreters
        .interpret(NAME, about, Operation::Replicas { object })
        .await?
    else {
        return Ok(Needs::default());
    };
    // Pod templates rarely name a namespace; the quota of the object's own namespace applies.
    if deps.flags.gate(FeatureGate::ResourceQuotaEstimate)
        && let Some(needed) = &mut requirements
    {
        needed
            .rest
            .entry("namespace".to_owned())
            .or_insert_with(|| about.namespace.clone().into());
    }
    Ok(Needs {
        replicas,
        requirements,
        ..Needs::default()
    })
}

fn component_value(component: &Component) -> Value {
    serde_json::to_value(component).unwrap_or_default()
}
