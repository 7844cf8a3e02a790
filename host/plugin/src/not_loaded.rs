//! Placeholder for a listed plugin of which no version is in force.
//!
//! A plugin that holds evictions must not vanish because its file is broken or the machine was busy at the start. Its
//! place in the set of policies is taken by a policy whose calls are faults, so the fail-static rule of each kind
//! applies: evictions are held, taints stay, health is unknown, and bindings that the filter applies to are not
//! placed.

use std::sync::Arc;

use bulkhead_core::call::{Call, CallKind, Reply};
use bulkhead_core::manifest::{EntryPoint, PluginManifest, Scores};
use bulkhead_core::policy::{Capability, EngineKind, Fault, FaultKind, Policy, PolicyId};

use crate::PluginSource;
use crate::circuit_breaker::noted;

/// Version in the id of a placeholder.
const VERSION: &str = "not-loaded";

/// Policy of a plugin that is listed but not loaded.
pub(crate) struct NotLoaded {
    id: PolicyId,
    capabilities: Vec<Capability>,
    message: String,
    /// Built-in policy that `fallback` names.
    fallback: Option<Arc<dyn Policy>>,
}

impl NotLoaded {
    pub(crate) fn new(
        name: &str,
        manifest: Option<&PluginManifest>,
        capabilities: Vec<Capability>,
        message: &str,
        fallback: Option<Arc<dyn Policy>>,
    ) -> Self {
        let engine = manifest
            .and_then(|manifest| manifest.code().ok())
            .map_or(EngineKind::Wasm, |(engine, _)| engine);
        let id = PolicyId {
            name: name.to_owned(),
            version: VERSION.to_owned(),
            engine,
        };
        Self {
            id,
            capabilities,
            message: message.to_owned(),
            fallback,
        }
    }
}

impl Policy for NotLoaded {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let name = &self.id.name;
        match &self.fallback {
            None => Err(Fault::new(
                FaultKind::NotLoaded,
                format!("{name} is not loaded: {}", self.message),
            )),
            Some(policy) => {
                let note = format!(
                    "from {} {}, because {name} is not loaded",
                    policy.id(),
                    policy.id().version
                );
                policy.call(call).map(|reply| noted(reply, &note))
            }
        }
    }
}

/// Returns the calls that a plugin would answer, derived from its manifest and code without running it.
///
/// A script declares its functions in `answers` or names them in its text; a component has the names of its exports
/// in its bytes. If neither is conclusive, the plugin is assumed to hold evictions and to taint clusters: for these
/// two kinds a missing plugin is destructive and a fault is not. Interpreter operations are included only if the
/// manifest declares both functions and kinds of objects, because a fault there stops the dispatch of every workload.
/// If a plugin interprets health and declares no kinds, health is unknown for all kinds.
pub(crate) fn assumed(manifest: Option<&PluginManifest>, source: Option<&PluginSource>) -> Vec<Capability> {
    let unknown = || {
        vec![
            Capability::any(CallKind::EvictionCheck),
            Capability::any(CallKind::ClusterTaint),
        ]
    };
    let Some(manifest) = manifest else { return unknown() };
    if manifest.scores == Scores::Evictions {
        return vec![Capability::any(CallKind::Score)];
    }
    let is_declared = !manifest.answers.is_empty();
    let mut kinds: Vec<_> = if is_declared {
        manifest.answers.iter().map(|point| point.call_kind()).collect()
    } else {
        source.map(named).unwrap_or_default()
    };
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() {
        return unknown();
    }
    kinds.retain(|kind| *kind != CallKind::Interpret || (is_declared && !manifest.kinds.is_empty()));
    kinds.into_iter().flat_map(|kind| on(kind, manifest)).collect()
}

fn on(kind: CallKind, manifest: &PluginManifest) -> Vec<Capability> {
    if !matches!(kind, CallKind::Health | CallKind::Interpret) || manifest.kinds.is_empty() {
        return vec![Capability::any(kind)];
    }
    manifest
        .kinds
        .iter()
        .map(|object| Capability::on(kind, &object.api_version, &object.kind))
        .collect()
}

/// Returns the kinds of calls whose function or interface name occurs in the code.
fn named(source: &PluginSource) -> Vec<CallKind> {
    let has = |name: &str| {
        source
            .modules
            .iter()
            .any(|module| module.code.windows(name.len()).any(|window| window == name.as_bytes()))
    };
    if source.engine == EngineKind::Lua {
        return EntryPoint::ALL
            .iter()
            .filter(|point| has(point.function()))
            .map(|point| point.call_kind())
            .collect();
    }
    let interfaces = [
        ("health", CallKind::Health),
        ("taints", CallKind::ClusterTaint),
        ("filter", CallKind::Filter),
        ("score", CallKind::Score),
        ("eviction", CallKind::EvictionCheck),
        ("interpreter", CallKind::Interpret),
    ];
    let is_named = |interface: &str| has(&format!("bulkhead:policy/{interface}@"));
    interfaces
        .into_iter()
        .filter(|(interface, _)| is_named(interface))
        .map(|(_, kind)| kind)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    fn check(manifest: &str, code: &str, expected: &str) {
        let manifest: PluginManifest = serde_saphyr::from_str(manifest).unwrap();
        let engine = manifest.code().unwrap().0;
        let module = Module {
            origin: "f".to_owned(),
            code: code.into(),
            entries: Vec::new(),
        };
        let source = PluginSource::new(&manifest.name, engine, vec![module]);
        let actual: Vec<_> = assumed(Some(&manifest), Some(&source)).iter().map(text).collect();
        assert_eq!(actual.join(", "), expected, "{manifest:?} {code}");
    }

    fn text(capability: &Capability) -> String {
        let object = capability
            .object_kind
            .as_ref()
            .map(|(_, kind)| format!(" of {kind}"))
            .unwrap_or_default();
        format!("{}{object}", capability.kind)
    }

    #[test]
    fn a_plugin_that_says_nothing_may_hold_evictions_and_taint() {
        check("{name: a, lua: a.lua}", "\u{0}", "eviction-check, cluster-taint");
        check("{name: a, wasm: a.wasm}", "", "eviction-check, cluster-taint");
        let actual: Vec<_> = assumed(None, None).iter().map(text).collect();
        assert_eq!(actual, ["eviction-check", "cluster-taint"]);
    }

    #[test]
    fn declarations_and_names_in_the_code_say_more() {
        check(
            "{name: a, lua: a.lua}",
            "function EvictionCheck(binding) retrun",
            "eviction-check",
        );
        check(
            "{name: a, wasm: a.wasm}",
            "\0asm bulkhead:policy/filter@0.1.0",
            "filter",
        );
        let pods = "kinds: [{apiVersion: v1, kind: Pod}]";
        check(
            &format!("{{name: a, lua: a.lua, answers: [health], {pods}}}"),
            "",
            "health of Pod",
        );
        check(
            &format!("{{name: a, lua: a.lua, answers: [retain], {pods}}}"),
            "",
            "interpret of Pod",
        );
        check("{name: a, lua: a.lua, scores: evictions}", "", "score");
    }

    #[test]
    fn interpreters_of_no_kind_in_particular_do_not_stop_every_workload() {
        check(
            "{name: a, lua: a.lua}",
            "function InterpretHealth() function GetReplicas()",
            "health",
        );
        check("{name: a, lua: a.lua, answers: [replicas]}", "", "");
    }
}
