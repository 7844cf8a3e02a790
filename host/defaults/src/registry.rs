//! Default policies of every set of controllers, in a simulation and on a real control plane.

use std::sync::Arc;

use bulkhead_controllers::flags::{FeatureGate, Flags};
use bulkhead_core::policy::{EngineKind, Policy};
use bulkhead_plugin::{Engine, Layer, Registry};
use bulkhead_plugins_builtin::FailoverEviction;

/// Returns a registry with the built-in policies that the flags enable and the interpreters shipped with the
/// program.
pub fn build(flags: &Flags, engines: Vec<Arc<dyn Engine>>) -> Registry {
    let library = library(flags, &engines);
    let registry = Registry::new(engines);
    registry.replace(Layer::Library, library);
    registry.replace(Layer::Builtins, builtins(flags));
    registry
}

fn builtins(flags: &Flags) -> Vec<Arc<dyn Policy>> {
    let mut policies = bulkhead_plugins_builtin::all_with(flags.pod_detail());
    let timeout_s = flags.failover_eviction_timeout.as_secs();
    if timeout_s > 0 && flags.gate(FeatureGate::Failover) {
        policies.push(Arc::new(FailoverEviction::new(
            u32::try_from(timeout_s).unwrap_or(u32::MAX),
        )));
    }
    policies
}

/// Returns the interpreters shipped with the program; none if they are disabled or there is no Lua engine.
fn library(flags: &Flags, engines: &[Arc<dyn Engine>]) -> Vec<Arc<dyn Policy>> {
    let lua = engines.iter().find(|engine| engine.kind() == EngineKind::Lua);
    let lua = lua.filter(|_| flags.third_party_interpreters);
    lua.map(bulkhead_plugins_lua::policies).unwrap_or_default()
}
