//! Plugin under test.

use std::sync::Arc;

use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::Policy;
use bulkhead_plugin::LoadError;
use serde_json::Value;

/// Loads the plugin again with another configuration.
pub type Loader<'a> = dyn Fn(&Value) -> Result<Arc<dyn Policy>, LoadError> + 'a;

/// A loaded plugin and the known facts about it. Checks that need a missing fact are reported as skipped.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    policy: &'a dyn Policy,
    budget: Budget,
    loader: Option<&'a Loader<'a>>,
    taint_keys: Option<&'a [String]>,
    config_schema: Option<&'a Value>,
}

impl<'a> Subject<'a> {
    /// Creates a subject from a loaded plugin and the budget of each call.
    pub fn new(policy: &'a dyn Policy, budget: Budget) -> Self {
        Self {
            policy,
            budget,
            loader: None,
            taint_keys: None,
            config_schema: None,
        }
    }

    /// Sets the loader, which cases with their own configuration and the examples of the configuration schema need.
    pub fn with_loader(self, loader: &'a Loader<'a>) -> Self {
        Self {
            loader: Some(loader),
            ..self
        }
    }

    /// Sets the taint keys that the plugin declares.
    pub fn with_taint_keys(self, keys: &'a [String]) -> Self {
        Self {
            taint_keys: Some(keys),
            ..self
        }
    }

    /// Sets the JSON Schema of the plugin's configuration.
    pub fn with_config_schema(self, schema: &'a Value) -> Self {
        Self {
            config_schema: Some(schema),
            ..self
        }
    }

    /// Returns the plugin.
    pub fn policy(&self) -> &'a dyn Policy {
        self.policy
    }

    /// Returns the budget of one call.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Returns the loader, if there is one.
    pub fn loader(&self) -> Option<&'a Loader<'a>> {
        self.loader
    }

    /// Returns the declared taint keys, if they are known.
    pub fn taint_keys(&self) -> Option<&'a [String]> {
        self.taint_keys
    }

    /// Returns the JSON Schema of the plugin's configuration, if there is one.
    pub fn config_schema(&self) -> Option<&'a Value> {
        self.config_schema
    }

    /// True if the budget is below the default. Huge inputs may then exceed it, which counts as no failure.
    pub(crate) fn has_reduced_budget(&self) -> bool {
        let (own, usual) = (self.budget, Budget::default());
        own.steps < usual.steps || own.memory_bytes < usual.memory_bytes || own.wall_clock_ms < usual.wall_clock_ms
    }
}
