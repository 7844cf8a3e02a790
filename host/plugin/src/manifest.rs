//! Manifests: the operator's description of plugins.

use std::{fmt, io};

use bulkhead_core::composition::{Composition, Mode};
use bulkhead_core::policy::EngineKind;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::{
    BreakerThresholds, Budget, Dialect, Entry, EntryPoint, Fallback, Instances, LoadStage, Module, PluginSource,
    Scores, Terms,
};

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

/// A plugin. Exactly one of `wasm` and `lua` must be set. A `Plugin` object has the same fields except for the name,
/// with the code itself in `wasm` or `lua`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginManifest {
    /// Name, unique in the list.
    pub name: String,
    /// Path of a component, relative to the list.
    #[serde(default)]
    pub wasm: Option<String>,
    /// Path of a script, relative to the list.
    #[serde(default)]
    pub lua: Option<String>,
    /// Functions of the script that are called; by default all known functions that it defines. Scripts only.
    #[serde(default)]
    pub answers: Vec<EntryPoint>,
    /// Kinds of object that the script handles; by default every kind. Only for scripts with functions that take an
    /// object.
    #[serde(default)]
    pub kinds: Vec<ObjectKind>,
    /// Conventions of the script. Scripts only.
    #[serde(default)]
    pub dialect: Dialect,
    /// Configuration passed to the plugin.
    #[serde(default)]
    pub config: Value,
    /// JSON Schema of the configuration. Scripts only.
    #[serde(default)]
    pub config_schema: Option<Value>,
    /// Keys of the taints that the plugin may add and remove. Scripts only.
    #[serde(default)]
    pub taint_keys: Vec<String>,
    /// Required SHA-256 digest of the file, as 64 hexadecimal digits.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Limits of one call.
    #[serde(default)]
    pub budget: Budget,
    /// Lifetime of an instance. Components only.
    #[serde(default)]
    pub instances: Instances,
    /// Participation of the plugin in decisions.
    #[serde(default)]
    pub mode: Mode,
    /// Factor for its scores.
    #[serde(default = "one")]
    pub weight: u32,
    /// Objects that its scores rank. Only for plugins that do nothing but score.
    #[serde(default)]
    pub scores: Scores,
    /// Thresholds of its circuit breaker.
    #[serde(default)]
    pub breaker: BreakerThresholds,
    /// Replacement while the plugin is in quarantine.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Value"))]
    pub fallback: Fallback,
}

fn one() -> u32 {
    1
}

/// A kind of object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectKind {
    /// `group/version`, or `v1` for the core group.
    pub api_version: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
}

/// Problem with one plugin of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestProblem {
    /// Field of the plugin; empty for the plugin itself.
    pub field: &'static str,
    /// Cause and remedy.
    pub message: String,
    /// Stage at which loading failed.
    pub stage: LoadStage,
}

impl fmt::Display for ManifestProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() { f.write_str(&self.message) } else { write!(f, "{} {}", self.field, self.message) }
    }
}

/// Manifest of a plugin together with its code.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPlugin {
    /// Manifest written by the operator.
    pub manifest: PluginManifest,
    /// Source to be loaded.
    pub source: PluginSource,
}

impl ManifestProblem {
    fn mistake(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into(), stage: LoadStage::Verified }
    }
}

impl PluginManifest {
    /// Returns the manifest of a component or script with default settings.
    pub fn of_file(name: &str, engine: EngineKind, file: &str) -> Self {
        let file_of = |kind| (engine == kind).then(|| file.to_owned());
        Self {
            name: name.to_owned(),
            wasm: file_of(EngineKind::Wasm),
            lua: file_of(EngineKind::Lua),
            answers: Vec::new(),
            kinds: Vec::new(),
            dialect: Dialect::default(),
            config: Value::Null,
            config_schema: None,
            taint_keys: Vec::new(),
            sha256: None,
            budget: Budget::default(),
            instances: Instances::default(),
            mode: Mode::default(),
            weight: one(),
            scores: Scores::default(),
            breaker: BreakerThresholds::default(),
            fallback: Fallback::default(),
        }
    }

    /// Returns the engine and the file.
    pub fn code(&self) -> Result<(EngineKind, &str), ManifestProblem> {
        match (&self.wasm, &self.lua) {
            (Some(file), None) => Ok((EngineKind::Wasm, file)),
            (None, Some(file)) => Ok((EngineKind::Lua, file)),
            _ => Err(ManifestProblem::mistake("", "needs exactly one of wasm and lua, the location of its code")),
        }
    }

    /// Returns the problems that can be found without reading the code.
    pub fn mistakes(&self) -> Vec<ManifestProblem> {
        let mut problems = Vec::new();
        if self.name.is_empty() {
            problems.push(ManifestProblem::mistake("name", "must be given"));
        }
        let Ok((engine, _)) = self.code().map_err(|problem| problems.push(problem)) else { return problems };
        let for_scripts = [
            ("answers", self.answers.is_empty(), "a component declares its kinds of calls by its exports"),
            ("kinds", self.kinds.is_empty(), "a component declares its kinds of object itself"),
            ("dialect", self.dialect == Dialect::default(), "a component has no dialects"),
            ("configSchema", self.config_schema.is_none(), "a component contains its schema"),
            ("taintKeys", self.taint_keys.is_empty(), "a component declares its taints itself"),
        ];
        let given = for_scripts.into_iter().filter(|(_, absent, _)| engine == EngineKind::Wasm && !absent);
        problems.extend(given.map(|(field, _, why)| ManifestProblem::mistake(field, format!("is for scripts; {why}"))));
        if engine == EngineKind::Lua && self.instances == Instances::Reused {
            let message = "is for components; a script has a fresh environment for every call";
            problems.push(ManifestProblem::mistake("instances", message));
        }
        let hexadecimal = |text: &String| text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit());
        if self.sha256.as_ref().is_some_and(|text| !hexadecimal(text)) {
            problems.push(ManifestProblem::mistake("sha256", "must have 64 hexadecimal digits"));
        }
        problems
    }

    /// Returns the terms of its participation.
    pub fn terms(&self) -> Terms {
        let Self { mode, weight, scores, breaker, fallback, .. } = self;
        Terms { mode: *mode, weight: *weight, scores: *scores, breaker: *breaker, fallback: fallback.clone() }
    }

    /// Reads the code with `read` and verifies its digest. `read` takes the file as named in the list and returns its
    /// location and contents.
    pub fn find(
        self,
        read: impl FnOnce(&str) -> (String, io::Result<Vec<u8>>),
    ) -> Result<FoundPlugin, ManifestProblem> {
        let (engine, file) = self.code()?;
        let (origin, code) = read(file);
        let code = code.map_err(|error| ManifestProblem {
            field: "",
            message: format!("failed to fetch {origin}: {error}"),
            stage: LoadStage::Fetched,
        })?;
        let kinds: Vec<_> = self.kinds.iter().map(|kind| (kind.api_version.clone(), kind.kind.clone())).collect();
        let entries = self.answers.iter().flat_map(|point| Entry::on(*point, &kinds)).collect();
        let mut source = PluginSource::new(&self.name, engine, vec![Module { origin, code, entries }]);
        let digest = source.digest().to_string();
        if let Some(wanted) = self.sha256.as_ref().filter(|wanted| !wanted.eq_ignore_ascii_case(&digest)) {
            let message = format!("is {wanted}, and the digest of the file is {digest}");
            return Err(ManifestProblem::mistake("sha256", message));
        }
        for module in &mut source.modules {
            module.code = self.dialect.translate(std::mem::take(&mut module.code));
        }
        source.dialect = self.dialect;
        source.object_kinds = kinds;
        source.config.clone_from(&self.config);
        source.config_schema.clone_from(&self.config_schema);
        source.taint_keys.clone_from(&self.taint_keys);
        (source.budget, source.instances) = (self.budget, self.instances);
        Ok(FoundPlugin { manifest: self, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let manifest: PluginManifest = serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}"));
        let found = manifest.mistakes();
        assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
        for (problem, (field, part)) in found.iter().zip(expected) {
            assert!(problem.field == *field && problem.message.contains(part), "{text}: {problem:?}");
        }
    }

    #[test]
    fn mistakes_name_the_field_and_what_would_be_right() {
        check("{name: a, wasm: a.wasm}", &[]);
        check("{name: a, lua: a.lua, answers: [health], kinds: [{apiVersion: v1, kind: Pod}]}", &[]);
        check("{name: '', wasm: a.wasm}", &[("name", "must be given")]);
        check("{name: a}", &[("", "exactly one of wasm and lua")]);
        check("{name: a, lua: a.lua, wasm: a.wasm}", &[("", "exactly one of wasm and lua")]);
        check("{name: a, wasm: a.wasm, answers: [score]}", &[("answers", "by its exports")]);
        check("{name: a, wasm: a.wasm, dialect: argo}", &[("dialect", "no dialects")]);
        check("{name: a, wasm: a.wasm, taintKeys: [k]}", &[("taintKeys", "itself")]);
        check("{name: a, lua: a.lua, instances: reused}", &[("instances", "fresh environment")]);
        check("{name: a, wasm: a.wasm, sha256: abc}", &[("sha256", "64 hexadecimal digits")]);
    }

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
        let [a, b] = list.plugins.as_slice() else { panic!("two plugins") };
        assert_eq!((a.value.mode, a.value.weight, &a.value.fallback), (Mode::Shadow, 3, &Fallback::Abstain));
        assert_eq!(b.value.fallback, Fallback::Builtin("ResourceHealth".to_owned()));
        assert_eq!(
            (b.value.breaker.faults, b.value.breaker.window_seconds),
            (2, BreakerThresholds::default().window_seconds)
        );
    }
}
