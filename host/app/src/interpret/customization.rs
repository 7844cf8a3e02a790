//! Customizations as people write them, read more strictly than an API server reads them.

use std::path::Path;

use bulkhead_core::policy::EngineKind;
use bulkhead_plugin::{Entry, EntryPoint, Module, PluginSource};
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::place::Place;

/// A document.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    api_version: Spanned<String>,
    kind: Spanned<String>,
    #[serde(default)]
    metadata: Value,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    target: Target,
    #[serde(default)]
    customizations: Rules,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Target {
    api_version: String,
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rules {
    retention: Option<Rule>,
    replica_resource: Option<Rule>,
    component_resource: Option<Rule>,
    replica_revision: Option<Rule>,
    status_reflection: Option<Rule>,
    status_aggregation: Option<Rule>,
    health_interpretation: Option<Rule>,
    dependency_interpretation: Option<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    lua_script: Spanned<String>,
}

/// A customization with its scripts.
pub(super) struct Customization {
    /// `metadata.name`; empty if there is none.
    pub(super) name: String,
    /// `spec.target`: API version and kind.
    pub(super) target: (String, String),
    /// Its rules, in the API's order; those that are not set are missing.
    pub(super) scripts: Vec<Script>,
}

/// One rule.
pub(super) struct Script {
    pub(super) point: EntryPoint,
    /// The name of the rule on the wire.
    pub(super) rule: &'static str,
    pub(super) code: String,
    pub(super) place: Place,
}

impl Customization {
    /// The plugin that its scripts make.
    pub(super) fn source(&self) -> PluginSource {
        PluginSource::new(self.name.clone(), EngineKind::Lua, self.scripts.iter().map(|s| self.module(s)).collect())
    }

    /// One script as a module.
    pub(super) fn module(&self, script: &Script) -> Module {
        let entries = vec![Entry { point: script.point, object_kind: Some(self.target.clone()) }];
        Module { origin: script.place.origin.clone(), code: script.code.as_bytes().to_vec(), entries }
    }
}

/// Reads the customizations of a file. An error names line and column.
pub(super) fn parse(file: &Path, text: &str) -> Result<Vec<Customization>, String> {
    let file = file.display().to_string();
    let documents: Vec<Option<Document>> =
        serde_saphyr::from_multiple(text).map_err(|error| format!("{file}: {error}"))?;
    let documents = documents.into_iter().flatten();
    documents.map(|document| customization(&file, text, document)).collect()
}

fn customization(file: &str, text: &str, document: Document) -> Result<Customization, String> {
    let at = |spanned: &Spanned<String>| format!("{file}:{}", spanned.referenced.line());
    if document.kind.value != "ResourceInterpreterCustomization" {
        let found = &document.kind.value;
        return Err(format!("{}: kind is {found}, not ResourceInterpreterCustomization", at(&document.kind)));
    }
    if document.api_version.value != "config.karmada.io/v1alpha1" {
        let found = &document.api_version.value;
        return Err(format!("{}: apiVersion is {found}, not config.karmada.io/v1alpha1", at(&document.api_version)));
    }
    let name = document.metadata.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Rules {
        retention,
        replica_resource,
        component_resource,
        replica_revision,
        status_reflection,
        status_aggregation,
        health_interpretation,
        dependency_interpretation,
    } = document.spec.customizations;
    let rules = [
        (EntryPoint::Retain, retention),
        (EntryPoint::Replicas, replica_resource),
        (EntryPoint::Components, component_resource),
        (EntryPoint::Revise, replica_revision),
        (EntryPoint::ReflectStatus, status_reflection),
        (EntryPoint::AggregateStatus, status_aggregation),
        (EntryPoint::Health, health_interpretation),
        (EntryPoint::Dependencies, dependency_interpretation),
    ];
    let scripts = rules.into_iter().filter_map(|(point, rule)| {
        let (rule, lua_script) = (point.rule()?, rule?.lua_script);
        // An empty script is a rule that is not set.
        let is_set = !lua_script.value.is_empty();
        let place = Place::in_yaml(file, rule, text, &lua_script);
        is_set.then_some(Script { point, rule, code: lua_script.value, place })
    });
    let target = (document.spec.target.api_version, document.spec.target.kind);
    Ok(Customization { name, target, scripts: scripts.collect() })
}
