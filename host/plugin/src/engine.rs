use std::fmt;
use std::sync::Arc;

use bulkhead_core::policy::{EngineKind, Policy};

use crate::PluginSource;

/// Compiles plugins of one sort. Loading is slow and happens when configuration changes; calling is fast and
/// happens through the [`Policy`] that loading gives.
pub trait Engine: Send + Sync {
    /// What it runs.
    fn kind(&self) -> EngineKind;

    /// Compiles, describes and configures a plugin. Must not keep anything of a plugin that fails.
    fn load(&self, source: &PluginSource) -> Result<Arc<dyn Policy>, LoadError>;
}

/// The stages a plugin goes through before it is active, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// It answered a first call.
    SmokeTested,
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
