//! Manifests: the operator's description of plugins, in a list or in an object of the kind `Plugin`.

mod budget;
mod dialect;
mod digest;
mod entry_point;
mod object;
mod participation;
mod public_key;
mod scope;
pub mod trust;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::composition::Mode;
use crate::policy::EngineKind;

pub use budget::{Budget, BudgetLimits, Excess};
pub use dialect::Dialect;
pub use digest::{Digest, check_digest};
pub use entry_point::EntryPoint;
pub use object::{NotBase64, PluginObject};
pub use participation::{BreakerThresholds, Fallback, Scores, Terms};
pub use public_key::{P256_START, p256_point};
pub use scope::{NamePattern, Scope, Tenancy};

/// A plugin. Exactly one of `wasm`, `lua` and `image` must be set. A `Plugin` object has the same fields except for the name,
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
    /// Image in a registry with a component or a script: `REGISTRY/REPOSITORY@sha256:DIGEST` or
    /// `REGISTRY/REPOSITORY:TAG`. Scenarios do not pull images.
    #[serde(default)]
    pub image: Option<String>,
    /// Treatment of a tag that names another image than before. Only for images.
    #[serde(default)]
    pub moved_tag: MovedTag,
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
    /// Workloads and clusters that the plugin is asked about; by default all.
    #[serde(default)]
    pub scope: Scope,
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

/// Treatment of a tag that names another image than before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MovedTag {
    /// The image that the tag named first stays in force.
    #[default]
    Refuse,
    /// The new image is loaded.
    Follow,
}

/// Lifetime of an instance of a component. Scripts always have a new environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Instances {
    /// One call.
    #[default]
    Fresh,
    /// Many calls. The component must declare that it supports this.
    Reused,
}

/// Problem with one plugin of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestProblem {
    /// Field of the plugin; empty for the plugin itself.
    pub field: &'static str,
    /// Cause and remedy.
    pub message: String,
    /// Kind of the problem.
    pub kind: ProblemKind,
}

impl fmt::Display for ManifestProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{} {}", self.field, self.message)
        }
    }
}

/// Kinds of problems with a plugin of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The code cannot be read.
    Unreadable,
    /// A field is invalid or contradicts another one or the code.
    Invalid,
}

impl ManifestProblem {
    pub(crate) fn mistake(field: &'static str, message: impl Into<String>) -> Self {
        Self {
            field,
            message: message.into(),
            kind: ProblemKind::Invalid,
        }
    }
}

impl PluginManifest {
    /// Returns the manifest of a component or script with default settings.
    pub fn of_file(name: &str, engine: EngineKind, file: &str) -> Self {
        let manifest = Self {
            name: name.to_owned(),
            wasm: None,
            lua: None,
            image: None,
            moved_tag: MovedTag::default(),
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
            scope: Scope::default(),
            breaker: BreakerThresholds::default(),
            fallback: Fallback::default(),
        };
        manifest.with_code(engine, file)
    }

    /// Returns the engine and the file.
    pub fn code(&self) -> Result<(EngineKind, &str), ManifestProblem> {
        match (&self.wasm, &self.lua, &self.image) {
            (Some(file), None, None) => Ok((EngineKind::Wasm, file)),
            (None, Some(file), None) => Ok((EngineKind::Lua, file)),
            (None, None, Some(_)) => Err(ManifestProblem::mistake(
                "image",
                "is not pulled here; `bulkhead plugin pull --file` writes its code into a file",
            )),
            _ => Err(ManifestProblem::mistake(
                "",
                "needs exactly one of wasm, lua and image, the location of its code",
            )),
        }
    }

    /// Returns the manifest of an image once its engine is known; `location` is that of the code in messages.
    pub fn with_code(self, engine: EngineKind, location: &str) -> Self {
        let location_of = |kind| (engine == kind).then(|| location.to_owned());
        Self {
            wasm: location_of(EngineKind::Wasm),
            lua: location_of(EngineKind::Lua),
            image: None,
            moved_tag: MovedTag::default(),
            ..self
        }
    }

    /// Returns true if the code is in a registry.
    fn is_image(&self) -> bool {
        self.image.is_some() && self.wasm.is_none() && self.lua.is_none()
    }

    /// Returns the problems that can be found without reading the code.
    pub fn mistakes(&self) -> Vec<ManifestProblem> {
        let mut problems = Vec::new();
        if self.name.is_empty() {
            problems.push(ManifestProblem::mistake("name", "must be given"));
        }
        if self.is_image() {
            // The other fields are checked once the image has named its engine.
            if self.sha256.is_some() {
                let message = "is for files; name the digest of an image in its reference, as @sha256:DIGEST";
                problems.push(ManifestProblem::mistake("sha256", message));
            }
            return problems;
        }
        if self.moved_tag != MovedTag::default() {
            problems.push(ManifestProblem::mistake("movedTag", "is for images, which have tags"));
        }
        let Ok((engine, _)) = self.code().map_err(|problem| problems.push(problem)) else {
            return problems;
        };
        let for_scripts = [
            (
                "answers",
                self.answers.is_empty(),
                "a component declares its kinds of calls by its exports",
            ),
            (
                "kinds",
                self.kinds.is_empty(),
                "a component declares its kinds of object itself",
            ),
            (
                "dialect",
                self.dialect == Dialect::default(),
                "a component has no dialects",
            ),
            (
                "configSchema",
                self.config_schema.is_none(),
                "a component contains its schema",
            ),
            (
                "taintKeys",
                self.taint_keys.is_empty(),
                "a component declares its taints itself",
            ),
        ];
        let given = for_scripts
            .into_iter()
            .filter(|(_, absent, _)| engine == EngineKind::Wasm && !absent);
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
        let Self {
            mode,
            weight,
            scores,
            scope,
            breaker,
            fallback,
            ..
        } = self;
        Terms {
            mode: *mode,
            weight: *weight,
            scores: *scores,
            scope: scope.clone(),
            breaker: *breaker,
            fallback: fallback.clone(),
        }
    }

    /// Reads the code with `read` and verifies its digest; returns the location and the code. `read` takes the file as
    /// named in the list and returns its location and contents.
    ///
    /// # Errors
    ///
    /// The code cannot be read, or has another digest.
    pub fn read_code<E: fmt::Display>(
        &self,
        read: impl FnOnce(&str) -> (String, Result<Vec<u8>, E>),
    ) -> Result<(String, Vec<u8>), ManifestProblem> {
        let (_, file) = self.code()?;
        let (origin, code) = read(file);
        let code = code.map_err(|error| ManifestProblem {
            field: "",
            message: format!("failed to fetch {origin}: {error}"),
            kind: ProblemKind::Unreadable,
        })?;
        let digest = Digest::of([code.as_slice()].into_iter()).to_string();
        if let Some(wanted) = self
            .sha256
            .as_ref()
            .filter(|wanted| !wanted.eq_ignore_ascii_case(&digest))
        {
            let message = format!("is {wanted}, and the digest of the file is {digest}");
            return Err(ManifestProblem::mistake("sha256", message));
        }
        Ok((origin, code))
    }
}

#[cfg(test)]
mod tests;
