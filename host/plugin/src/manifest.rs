//! Lists of plugins, and plugins with their code.

use std::fmt;

use bulkhead_core::composition::Composition;
use bulkhead_core::manifest::{ManifestProblem, PluginManifest, ProblemKind};
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::{Entry, Grant, LoadStage, Module, PluginSource};

/// `apiVersion` of a list of plugins.
pub(crate) const API_VERSION: &str = "bulkhead.dev/v1alpha1";
/// `kind` of a list of plugins.
pub(crate) const KIND: &str = "PluginList";

/// A list of plugins, as in `plugins.yaml`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginList {
    /// `bulkhead.dev/v1alpha1`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = API_VERSION)))]
    pub api_version: String,
    /// `PluginList`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = KIND)))]
    pub kind: String,
    /// Rules for combining the answers of several policies.
    #[serde(default)]
    pub composition: Composition,
    /// Plugins in the order in which they are called; all of them before the built-in policies.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<PluginManifest>"))]
    pub plugins: Vec<Spanned<PluginManifest>>,
}

/// Manifest of a plugin together with its code.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPlugin {
    /// Manifest written by the operator.
    pub manifest: PluginManifest,
    /// Source to be loaded.
    pub source: PluginSource,
    /// Limits that the trust in its image sets.
    pub grant: Grant,
}

impl FoundPlugin {
    /// Reads the code of a plugin with `read` and verifies its digest, as [`PluginManifest::read_code`] does.
    ///
    /// # Errors
    ///
    /// The code cannot be read, or has another digest.
    pub fn find<E: fmt::Display>(
        manifest: PluginManifest,
        read: impl FnOnce(&str) -> (String, Result<Vec<u8>, E>),
    ) -> Result<Self, ManifestProblem> {
        let (engine, _) = manifest.code()?;
        let (origin, code) = manifest.read_code(read)?;
        let kinds: Vec<_> = manifest
            .kinds
            .iter()
            .map(|kind| (kind.api_version.clone(), kind.kind.clone()))
            .collect();
        let entries = manifest
            .answers
            .iter()
            .flat_map(|point| Entry::on(*point, &kinds))
            .collect();
        let code = manifest.dialect.translate(code).into();
        let source = PluginSource {
            object_kinds: kinds,
            config: manifest.config.clone(),
            config_schema: manifest.config_schema.clone(),
            taint_keys: manifest.taint_keys.clone(),
            budget: manifest.budget,
            instances: manifest.instances,
            dialect: manifest.dialect,
            ..PluginSource::new(&manifest.name, engine, vec![Module { origin, code, entries }])
        };
        Ok(Self {
            manifest,
            source,
            grant: Grant::default(),
        })
    }
}

/// Returns the stage of loading that a problem with a manifest ends.
pub(crate) fn stage_of(problem: ProblemKind) -> LoadStage {
    match problem {
        ProblemKind::Unreadable => LoadStage::Fetched,
        ProblemKind::Invalid => LoadStage::Verified,
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::composition::Mode;
    use bulkhead_core::manifest::{BreakerThresholds, Fallback};

    use super::*;

    #[test]
    fn a_list_is_read_with_its_rules() {
        let text = "
apiVersion: bulkhead.dev/v1alpha1
kind: PluginList
composition: {health: worst-opinion}
plugins:
- {name: a, wasm: a.wasm, mode: shadow, weight: 3, fallback: abstain}
- {name: b, lua: b.lua, fallback: {builtin: ResourceHealth}, breaker: {faults: 2}}
";
        let list: PluginList = serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}"));
        let [a, b] = list.plugins.as_slice() else {
            panic!("two plugins")
        };
        assert_eq!(
            (a.value.mode, a.value.weight, &a.value.fallback),
            (Mode::Shadow, 3, &Fallback::Abstain)
        );
        assert_eq!(b.value.fallback, Fallback::Builtin("ResourceHealth".to_owned()));
        assert_eq!(
            (b.value.breaker.faults, b.value.breaker.window_seconds),
            (2, BreakerThresholds::default().window_seconds)
        );
    }
}
