use std::fmt;
use std::sync::Arc;

use bulkhead_core::policy::{EngineKind, Policy};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Digest, PluginSource};

/// Compiles plugins of one sort. Loading is slow and happens when configuration changes; calling is fast and
/// happens through the [`Policy`] that loading gives.
pub trait Engine: Send + Sync {
    /// What it runs.
    fn kind(&self) -> EngineKind;

    /// Compiles, describes and configures a plugin. Must not keep anything of a plugin that fails.
    fn load(&self, source: &PluginSource) -> Result<Loaded, LoadError>;
}

/// A plugin that loaded: it can be asked, and it said who it is.
#[derive(Clone)]
pub struct Loaded {
    /// What can be asked.
    pub policy: Arc<dyn Policy>,
    /// Who it is.
    pub description: Description,
}

/// What a plugin says about itself, and what can be told from its code.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The name that it gives itself; empty if it gives none.
    pub name: String,
    /// The version that it declares; empty if it declares none.
    pub version: String,
    /// What it is for; may be empty.
    pub summary: String,
    /// The digest of its code.
    pub digest: Digest,
    /// Size of its code, in bytes.
    pub code_bytes: usize,
    /// The contract that it is written against, such as `bulkhead:policy@0.1.0`.
    pub contract: String,
    /// What it wants from the host, by name.
    pub imports: Vec<String>,
    /// Keys of the taints that it may add and remove.
    pub taint_keys: Vec<String>,
    /// JSON Schema of its configuration; absent when it takes none.
    pub config_schema: Option<Value>,
    /// Whether an instance may answer several calls.
    pub reusable: bool,
    /// What its author should know although it loads, each with its place: what works here and not in Karmada.
    pub remarks: Vec<String>,
}

/// The stages a plugin goes through before it is active, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadStage {
    /// Its code was read.
    Fetched,
    /// Its digest and origin are as required.
    Verified,
    /// Its imports and exports were looked at without running it.
    Inspected,
    /// It was compiled.
    Compiled,
    /// It said who it is.
    Described,
    /// It accepted its configuration.
    Configured,
    /// It answered first calls as plugins have to.
    SmokeTested,
    /// It is in force.
    Active,
}

impl fmt::Display for LoadStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fetched => "fetch",
            Self::Verified => "verify",
            Self::Inspected => "inspect",
            Self::Compiled => "compile",
            Self::Described => "describe",
            Self::Configured => "configure",
            Self::SmokeTested => "smoke test",
            Self::Active => "activate",
        })
    }
}

/// A plugin that did not load. The message says what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plugin {plugin} ({origin}) failed to {stage}: {message}")]
pub struct LoadError {
    /// Name of the plugin.
    pub plugin: String,
    /// Where its code came from.
    pub origin: String,
    /// The stage that failed.
    pub stage: LoadStage,
    /// Why.
    pub message: String,
}

impl LoadError {
    /// What went wrong with a plugin at a stage.
    pub fn new(source: &PluginSource, stage: LoadStage, message: impl Into<String>) -> Self {
        Self { plugin: source.name.clone(), origin: source.origin().to_owned(), stage, message: message.into() }
    }
}
