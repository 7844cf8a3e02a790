//! Conversion of a ResourceInterpreterCustomization to a plugin that an engine can load.

use bulkhead_api::ResourceInterpreterCustomization;
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::policy::EngineKind;
use bulkhead_plugin::{Entry, Module, PluginSource};
use kube::ResourceExt as _;

/// Error for a text that is not a customization.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {message}")]
pub struct NotACustomization {
    /// Origin of the text.
    pub origin: String,
    /// Cause, with line and column if known.
    pub message: String,
}

/// Parses one customization in YAML; `origin` is the origin of the text.
pub fn parse(origin: &str, text: &str) -> Result<ResourceInterpreterCustomization, NotACustomization> {
    serde_saphyr::from_str(text).map_err(|error| NotACustomization {
        origin: origin.to_owned(),
        message: error.to_string(),
    })
}

/// Returns the plugin of its scripts, with one module for each rule that has a script.
///
/// A module's origin is `origin` followed by the name of the rule. Errors begin with it.
pub fn source(customization: &ResourceInterpreterCustomization, origin: &str) -> PluginSource {
    let target = &customization.spec.target;
    let scripts = customization.spec.customizations.scripts();
    let modules = scripts.filter_map(|(rule, script)| {
        let object_kind = Some((target.api_version.clone(), target.kind.clone()));
        let entry = Entry {
            point: EntryPoint::of_rule(rule)?,
            object_kind,
        };
        let origin = format!("{origin} {rule}");
        Some(Module {
            origin,
            code: (*script).into(),
            entries: vec![entry],
        })
    });
    PluginSource::new(customization.name_any(), EngineKind::Lua, modules.collect())
}
