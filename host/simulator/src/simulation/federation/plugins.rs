//! Plugins in force.

use std::sync::{Arc, PoisonError};

use bulkhead_core::manifest::Tenancy;
use bulkhead_core::policy::Policy;
use bulkhead_plugin::{FoundPlugin, Installed, LoadError, LoadStage, Loaded};

use super::Federation;
use crate::scenario::{EventAction, LoadedEvent};

/// Observer of the questions that arrive at the code of plugins.
pub(in crate::simulation) trait PluginObserver: Send + Sync {
    /// Takes notice of the plugins that come into force.
    fn permit(&self, plugins: &[FoundPlugin]);

    /// Returns a policy that observes every call and forwards it to the code of a plugin.
    fn watch(&self, plugin: &str, policy: Arc<dyn Policy>) -> Arc<dyn Policy>;
}

impl Federation {
    /// Replaces the plugins in force, if every new one loads.
    pub(in crate::simulation) fn load_plugins(&self, plugins: &[FoundPlugin]) -> Result<(), LoadError> {
        let mut in_force = self.plugins.lock().unwrap_or_else(PoisonError::into_inner);
        let load = |plugin: &FoundPlugin| self.load_plugin(plugin, in_force.get(&plugin.source.name));
        let installed: Vec<_> = plugins.iter().map(load).collect::<Result<_, _>>()?;
        if let Some(observer) = &self.observer {
            observer.permit(plugins);
        }
        self.context.registry.install(&installed, self.composition);
        let names = plugins.iter().map(|plugin| plugin.source.name.clone());
        *in_force = names.zip(installed).collect();
        Ok(())
    }

    /// Loads a plugin within the limits of its tenant. The observer sees every question that arrives at its code.
    fn load_plugin(&self, plugin: &FoundPlugin, previous: Option<&Installed>) -> Result<Installed, LoadError> {
        let registry = &self.context.registry;
        let mut loaded = registry.load(&plugin.source)?;
        let tenancy = plugin.grant.tenancy.as_ref();
        if let Some(message) = tenancy.and_then(|_| refused_calls(&loaded)) {
            return Err(LoadError::new(&plugin.source, LoadStage::Verified, message));
        }
        if let Some(observer) = &self.observer {
            loaded.policy = observer.watch(&plugin.source.name, Arc::clone(&loaded.policy));
        }
        let installed = registry.prepare(&loaded, &plugin.manifest.terms(), previous);
        let mut installed = installed.map_err(|message| LoadError::new(&plugin.source, LoadStage::Active, message))?;
        installed.limit_to(tenancy);
        Ok(installed)
    }

    /// Checks that the plugins of later events load, so that errors appear before the run instead of during it.
    pub(in crate::simulation) fn check_plugins(&self, events: &[LoadedEvent]) -> Result<(), LoadError> {
        for event in events {
            if let EventAction::Plugins(plugins) = &event.action {
                for plugin in plugins {
                    self.load_plugin(plugin, None)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the reason why a plugin cannot be that of a tenant; `None` if it can.
fn refused_calls(loaded: &Loaded) -> Option<String> {
    let mut kinds = loaded.policy.capabilities().iter().map(|capability| capability.kind);
    let other = kinds.find(|kind| !Tenancy::KINDS.contains(kind))?;
    let permitted = Tenancy::KINDS.map(|kind| kind.as_str()).join(" and ");
    Some(format!(
        "it answers {other} calls, and the plugin of a tenant answers {permitted} calls; remove it from tenants, or \
         the function from the plugin"
    ))
}
