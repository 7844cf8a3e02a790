use std::fmt;
use std::sync::Arc;

use bulkhead_core::manifest::Digest;
use bulkhead_core::policy::{EngineKind, Policy};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::PluginSource;

/// Loader for plugins of one type. Loading is slow and happens when the configuration changes. Calls are fast and go
/// through the [`Policy`] that loading returns.
pub trait Engine: Send + Sync {
    /// Returns the type of plugin that the engine runs.
    fn kind(&self) -> EngineKind;

    /// Compiles, describes and configures a plugin. Must not keep any state of a plugin that fails to load.
    fn load(&self, source: &PluginSource) -> Result<Loaded, LoadError>;
}

/// A loaded plugin and its description.
#[derive(Clone)]
pub struct Loaded {
    /// Policy to call.
    pub policy: Arc<dyn Policy>,
    /// Description of the plugin.
    pub description: Description,
}

/// Metadata of a plugin, reported by itself or derived from its code.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Name chosen by its author; empty if there is none.
    pub name: String,
    /// Declared version; empty if there is none.
    pub version: String,
    /// Purpose of the plugin; may be empty.
    pub summary: String,
    /// Digest of its code.
    pub digest: Digest,
    /// Size of its code in bytes.
    pub code_bytes: usize,
    /// Contract that it is written against, such as `bulkhead:policy@0.1.0`.
    pub contract: String,
    /// Names of its imports from the host.
    pub imports: Vec<String>,
    /// Keys of the taints that it may add and remove.
    pub taint_keys: Vec<String>,
    /// JSON Schema of its configuration; absent if it takes none.
    pub config_schema: Option<Value>,
    /// True if an instance may answer several calls.
    pub reusable: bool,
    /// Warnings for its author, each with its position: constructs that work here but not in Karmada.
    pub remarks: Vec<String>,
}

/// Stages of loading a plugin, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadStage {
    /// The code was read.
    Fetched,
    /// Digest and origin were verified.
    Verified,
    /// No earlier process ended while the code ran.
    Quarantined,
    /// Imports and exports were inspected without running the plugin.
    Inspected,
    /// The code was compiled.
    Compiled,
    /// The plugin returned its description.
    Described,
    /// The plugin accepted its configuration.
    Configured,
    /// The plugin answered the first test calls correctly.
    SmokeTested,
    /// The trust in the image of the active version was not withdrawn.
    Trusted,
    /// The plugin is active.
    Active,
}

impl fmt::Display for LoadStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fetched => "fetch",
            Self::Verified => "verify",
            Self::Quarantined => "leave quarantine",
            Self::Inspected => "inspect",
            Self::Compiled => "compile",
            Self::Described => "describe",
            Self::Configured => "configure",
            Self::SmokeTested => "smoke test",
            Self::Trusted => "stay trusted",
            Self::Active => "activate",
        })
    }
}

/// Error for a plugin that did not load. The message contains a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plugin {plugin} ({origin}) failed to {stage}: {message}")]
pub struct LoadError {
    /// Name of the plugin.
    pub plugin: String,
    /// Origin of its code.
    pub origin: String,
    /// Stage that failed.
    pub stage: LoadStage,
    /// Cause and remedy.
    pub message: String,
}

impl LoadError {
    /// Returns the error of a plugin at a stage.
    pub fn new(source: &PluginSource, stage: LoadStage, message: impl Into<String>) -> Self {
        Self {
            plugin: source.name.clone(),
            origin: source.origin().to_owned(),
            stage,
            message: message.into(),
        }
    }
}
