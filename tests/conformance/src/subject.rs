//! What is put to the test.

use std::sync::Arc;

use bulkhead_core::policy::Policy;
use bulkhead_plugin::{Budget, LoadError};
use serde_json::Value;

/// Loads the plugin again with another configuration.
pub type Loader<'a> = dyn Fn(&Value) -> Result<Arc<dyn Policy>, LoadError> + 'a;

/// A loaded plugin and what is known about it beside its answers. What is not known makes some checks impossible, and
/// those are reported as skipped.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    policy: &'a dyn Policy,
    budget: Budget,
    loader: Option<&'a Loader<'a>>,
    taint_keys: Option<&'a [String]>,
    config_schema: Option<&'a Value>,
}

impl<'a> Subject<'a> {
    /// A plugin as it was loaded, and the budget that each of its calls has.
    pub fn new(policy: &'a dyn Policy, budget: Budget) -> Self {
        Self { policy, budget, loader: None, taint_keys: None, config_schema: None }
    }

    /// With a way to load it again: for cases that have a configuration of their own, and for the examples of its schema.
    pub fn with_loader(self, loader: &'a Loader<'a>) -> Self {
        Self { loader: Some(loader), ..self }
    }

    /// With the keys of the taints that it declares it may add and remove.
    pub fn with_taint_keys(self, keys: &'a [String]) -> Self {
        Self { taint_keys: Some(keys), ..self }
    }

    /// With the JSON Schema of its configuration.
    pub fn with_config_schema(self, schema: &'a Value) -> Self {
        Self { config_schema: Some(schema), ..self }
    }

    /// The plugin.
    pub fn policy(&self) -> &'a dyn Policy {
        self.policy
    }

    /// What one call may cost.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The way to load it again, if there is one.
    pub fn loader(&self) -> Option<&'a Loader<'a>> {
        self.loader
    }

    /// The keys of taints that it declares, if they are known.
    pub fn taint_keys(&self) -> Option<&'a [String]> {
        self.taint_keys
    }

    /// The JSON Schema of its configuration, if it has one.
    pub fn config_schema(&self) -> Option<&'a Value> {
        self.config_schema
    }

    /// Whether the operator grants less than the default. Huge inputs may be too much for it then: that is what a small
    /// budget is for.
    pub(crate) fn is_on_short_rations(&self) -> bool {
        let (own, usual) = (self.budget, Budget::default());
        own.steps < usual.steps || own.memory_bytes < usual.memory_bytes || own.wall_clock_ms < usual.wall_clock_ms
    }
}
