//! Eviction policies, as `bulkhead run` with the same plugins and settings loads them.

use std::sync::Arc;

use bulkhead_api::{Plugin, PluginTrust};
use bulkhead_controllers::flags::Flags;
use bulkhead_core::decide::graceful_eviction::GracefulEvictionOptions;
use bulkhead_core::policy::PolicySet;
use bulkhead_plugin::{Engine, Objects, Plugins, Registry, TrustObjects};
use bulkhead_server::federation;
use bulkhead_server::images::PluginSources;

/// Plugins of a directory and of `Plugin` objects, and the built-in policies.
pub(super) struct Policies {
    registry: Arc<Registry>,
    objects: Arc<Objects>,
    trust: Arc<TrustObjects>,
    plugins: Plugins,
    options: GracefulEvictionOptions,
}

impl Policies {
    /// Loads the plugins of the directory, if the sources have one.
    ///
    /// # Errors
    ///
    /// The list of plugins cannot be read.
    pub(super) fn load(flags: &Flags, engines: Vec<Arc<dyn Engine>>, sources: PluginSources) -> anyhow::Result<Self> {
        let registry = Arc::new(bulkhead_defaults::registry::build(flags, engines));
        let (objects, trust) = (sources.objects(), sources.trust());
        let plugins = federation::load(&registry, sources, &objects)?;
        Ok(Self {
            registry,
            objects,
            trust,
            plugins,
            options: flags.graceful_eviction_options(),
        })
    }

    /// Sets the trust in images. Images that no rule of the trust file covers are held until then.
    pub(super) fn trust(&self, objects: &[PluginTrust]) {
        if self.trust.set(objects.iter().map(PluginTrust::to_object).collect()) {
            self.plugins.refresh();
        }
    }

    /// Returns true if an image waits for the trust of objects.
    pub(super) fn needs_trust(&self) -> bool {
        self.trust.is_expected()
    }

    /// Reloads changed plugins of the directory and of the objects on the control plane.
    pub(super) fn refresh(&self, objects: &[Plugin]) {
        self.objects.set(objects.iter().map(Plugin::to_object).collect());
        self.plugins.refresh();
    }

    /// Returns the policies in force.
    pub(super) fn current(&self) -> Arc<PolicySet> {
        self.registry.policies()
    }

    /// Returns the options from the settings.
    pub(super) fn options(&self) -> GracefulEvictionOptions {
        self.options
    }

    /// Lists plugins whose newest version is not in force, each with the cause.
    pub(super) fn refused(&self) -> Vec<String> {
        let refused = |status: &bulkhead_plugin::PluginStatus| status.refused.is_some();
        self.plugins
            .status()
            .iter()
            .filter(|status| refused(status))
            .map(ToString::to_string)
            .collect()
    }
}
