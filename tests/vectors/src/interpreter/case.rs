//! Fields of a case.

use std::sync::Arc;

use bulkhead_api::ResourceInterpreterCustomization;
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::model::AggregatedStatusItem;
use bulkhead_plugin::Customization;
use kube::ResourceExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// One case of a file. Members that this crate does not use are left out.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Case {
    pub(super) id: String,
    pub(super) level: String,
    pub(super) operation: String,
    #[serde(default)]
    pub(super) title: String,
    #[serde(default)]
    pub(super) kind: Gvk,
    #[serde(default)]
    pub(super) inputs: Map<String, Value>,
    #[serde(default)]
    pub(super) script: Option<String>,
    #[serde(default)]
    pub(super) customizations: Value,
    #[serde(default)]
    pub(super) setup: Map<String, Value>,
    #[serde(default)]
    pub(super) expected: Option<Value>,
    #[serde(default)]
    pub(super) error: Option<ExpectedError>,
    #[serde(default)]
    pub(super) unordered: Vec<String>,
    #[serde(default)]
    pub(super) nondeterministic_variants: Vec<Value>,
    #[serde(default)]
    pub(super) other_engines: Map<String, Value>,
    #[serde(default)]
    pub(super) took_at_least_millis: u64,
    #[serde(default)]
    pub(super) source: Map<String, Value>,
}

/// A kind of object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Gvk {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

impl Gvk {
    /// Returns `group/version`, or only the version for the core group.
    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// An expected error; presence and class are compared.
#[derive(Debug, Deserialize)]
pub(super) struct ExpectedError {
    pub(super) class: String,
    pub(super) message: String,
}

impl Case {
    /// True if a feature gate is enabled in this case.
    pub(super) fn gate(&self, name: &str) -> bool {
        let gates = self.setup.get("featureGates");
        gates
            .and_then(|gates| gates.get(name))
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    /// Returns the customizations of the case: its own objects, or one created from its script.
    pub(super) fn customizations(&self) -> Result<Vec<Customization>, String> {
        if let Some(script) = &self.script {
            let point = entry_point(&self.operation).ok_or_else(|| format!("unknown operation {}", self.operation))?;
            return Ok(vec![Customization {
                name: "case".to_owned(),
                origin: "case".to_owned(),
                api_version: self.kind.api_version(),
                kind: self.kind.kind.clone(),
                scripts: vec![(point, script.clone())],
            }]);
        }
        let objects: Vec<ResourceInterpreterCustomization> = read(&self.customizations, "customizations")?;
        Ok(objects.iter().map(customization).collect())
    }
}

/// Returns the scripts of an object.
pub(super) fn customization(object: &ResourceInterpreterCustomization) -> Customization {
    let script = |(rule, script): (&str, &str)| Some((EntryPoint::of_rule(rule)?, script.to_owned()));
    Customization {
        name: object.name_any(),
        origin: object.name_any(),
        api_version: object.spec.target.api_version.clone(),
        kind: object.spec.target.kind.clone(),
        scripts: object.spec.customizations.scripts().filter_map(script).collect(),
    }
}

/// Returns the entry point of an operation.
pub(super) fn entry_point(operation: &str) -> Option<EntryPoint> {
    EntryPoint::ALL
        .into_iter()
        .find(|point| point.operation() == Some(operation))
}

/// Reads a value of type `T`. A null value yields the default.
pub(super) fn read<T: DeserializeOwned + Default>(value: &Value, name: &str) -> Result<T, String> {
    if value.is_null() {
        return Ok(T::default());
    }
    serde_json::from_value(value.clone()).map_err(|error| format!("{name}: {error}"))
}

/// Arguments of an operation.
#[derive(Default)]
pub(super) struct Arguments {
    /// The object; for `Retain`, the desired object.
    pub(super) object: Arc<Value>,
    /// The observed object, for `Retain`.
    pub(super) observed: Arc<Value>,
    /// Desired replicas, for `ReviseReplica`.
    pub(super) replicas: i64,
    /// Member statuses, for `AggregateStatus`.
    pub(super) items: Vec<AggregatedStatusItem>,
}

impl Arguments {
    /// Reads the arguments from the inputs of a case or a step.
    pub(super) fn read(inputs: &Map<String, Value>) -> Result<Self, String> {
        let given = |name: &str| inputs.get(name).cloned().unwrap_or_default();
        let object = match inputs.get("objectJSON").and_then(Value::as_str) {
            Some(text) => serde_json::from_str(text).map_err(|error| format!("objectJSON: {error}"))?,
            None => inputs
                .get("object")
                .or(inputs.get("desired"))
                .cloned()
                .unwrap_or_default(),
        };
        Ok(Self {
            object: Arc::new(object),
            observed: Arc::new(given("observed")),
            replicas: given("replica").as_i64().unwrap_or_default(),
            items: read(&given("statusItems"), "statusItems")?,
        })
    }
}
