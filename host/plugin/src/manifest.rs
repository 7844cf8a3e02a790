//! What an operator writes about a plugin.

use std::{fmt, io};

use bulkhead_core::composition::{Composition, Mode};
use bulkhead_core::policy::EngineKind;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::{
    Breaker, Budget, Dialect, Entry, EntryPoint, Fallback, Instances, LoadStage, Module, PluginSource, Scores, Terms,
};

/// `apiVersion` of a list of plugins.
pub(crate) const API_VERSION: &str = "bulkhead.dev/v1alpha1";
/// `kind` of a list of plugins.
pub(crate) const KIND: &str = "PluginList";

/// A list of plugins, as in `plugins.yaml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginList {
    /// `bulkhead.dev/v1alpha1`.
    pub api_version: String,
    /// `PluginList`.
    pub kind: String,
    /// How several answers become one.
    #[serde(default)]
    pub composition: Composition,
    /// The plugins, in the order in which they are asked; all of them before the built-in policies.
    #[serde(default)]
    pub plugins: Vec<Spanned<PluginManifest>>,
}

/// One plugin. Exactly one of `wasm` and `lua` is given. A `Plugin` object has the same fields but the name, with the
/// code itself in `wasm` or `lua`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginManifest {
    /// Name, unique in the list.
    pub name: String,
    /// A component file, relative to the list.
    #[serde(default)]
    pub wasm: Option<String>,
    /// A script file, relative to the list.
    #[serde(default)]
    pub lua: Option<String>,
    /// For a script: the functions that it offers; none is those that it defines.
    #[serde(default)]
    pub answers: Vec<EntryPoint>,
    /// For a script that is asked about objects: their kinds; none is all.
    #[serde(default)]
    pub kinds: Vec<ObjectKind>,
    /// For a script: the conventions that it is written in.
    #[serde(default)]
    pub dialect: Dialect,
    /// Configuration handed to the plugin.
    #[serde(default)]
    pub config: Value,
    /// For a script: JSON Schema of its configuration.
    #[serde(default)]
    pub config_schema: Option<Value>,
    /// For a script: keys of the taints that it may add and remove.
    #[serde(default)]
    pub taint_keys: Vec<String>,
    /// SHA-256 that the file must have, in 64 hexadecimal digits.
    #[serde(default)]
    pub sha256: Option<String>,
    /// What one call may cost.
    #[serde(default)]
    pub budget: Budget,
    /// For a component: how long an instance lives.
    #[serde(default)]
    pub instances: Instances,
    /// Whether its answers count.
    #[serde(default)]
    pub mode: Mode,
    /// What its scores are multiplied with.
    #[serde(default = "one")]
    pub weight: u32,
    /// For a plugin that only scores: what its scores order.
    #[serde(default)]
    pub scores: Scores,
    /// When it is put in quarantine.
    #[serde(default)]
    pub breaker: Breaker,
    /// Who answers while it is in quarantine.
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
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
}

/// Something wrong with one plugin of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestProblem {
    /// Field of the plugin, empty for the plugin itself.
    pub field: &'static str,
    /// What is wrong and what would be right.
    pub message: String,
    /// How far the plugin came.
    pub stage: LoadStage,
}

impl fmt::Display for ManifestProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() { f.write_str(&self.message) } else { write!(f, "{} {}", self.field, self.message) }
    }
}

/// A plugin that is complete: what its operator says about it, and its code.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPlugin {
    /// What the operator says.
    pub manifest: PluginManifest,
    /// What is loaded.
    pub source: PluginSource,
}

impl ManifestProblem {
    fn mistake(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into(), stage: LoadStage::Verified }
    }
}

impl PluginManifest {
    /// A component or script with nothing else said about it.
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
            breaker: Breaker::default(),
            fallback: Fallback::default(),
        }
    }

    /// The engine and the file.
    pub fn code(&self) -> Result<(EngineKind, &str), ManifestProblem> {
        match (&self.wasm, &self.lua) {
            (Some(file), None) => Ok((EngineKind::Wasm, file)),
            (None, Some(file)) => Ok((EngineKind::Lua, file)),
            _ => Err(ManifestProblem::mistake("", "needs exactly one of wasm and lua, where its code is")),
        }
    }

    /// Mistakes that can be told without looking at the code.
    pub fn mistakes(&self) -> Vec<ManifestProblem> {
        let mut problems = Vec::new();
        if self.name.is_empty() {
            problems.push(ManifestProblem::mistake("name", "must be given"));
        }
        let Ok((engine, _)) = self.code().map_err(|problem| problems.push(problem)) else { return problems };
        let for_scripts = [
            ("answers", self.answers.is_empty(), "a component says by its exports what it answers"),
            ("kinds", self.kinds.is_empty(), "a component names its kinds of object itself"),
            ("dialect", self.dialect == Dialect::default(), "a component has no dialects"),
            ("configSchema", self.config_schema.is_none(), "a component has its schema in itself"),
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

    /// How it takes part.
    pub fn terms(&self) -> Terms {
        let Self { mode, weight, scores, breaker, fallback, .. } = self;
        Terms { mode: *mode, weight: *weight, scores: *scores, breaker: *breaker, fallback: fallback.clone() }
    }

    /// Reads the code with `read`, which is given the file as the list names it and tells where that is, and compares
    /// its digest.
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
        assert_eq!((b.value.breaker.faults, b.value.breaker.window_seconds), (2, Breaker::default().window_seconds));
    }
}
