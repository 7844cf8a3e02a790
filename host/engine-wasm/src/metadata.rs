//! Metadata of a plugin and its conversion to a description and capabilities.

use bulkhead_core::call::CallKind;
use bulkhead_core::policy::{Capability, EngineKind, PolicyId};
use bulkhead_plugin::{Description, PluginSource, plain};

use crate::contract;
use crate::host::bindings::bulkhead::policy::types::{Metadata, ObjectKind};
use crate::outline::Outline;
use crate::session::Exports;

/// Maximum length of a plugin's declared version, in characters.
const VERSION_CHARS_MAX: usize = 64;
/// Maximum length of a stored name or description, in characters.
const TEXT_CHARS_MAX: usize = 256;
/// Maximum number of taint keys that a plugin may declare.
const TAINT_KEYS_MAX: usize = 64;
/// Maximum number of kinds of object that a plugin may declare.
const OBJECT_KINDS_MAX: usize = 256;

/// Converts the metadata to a description. Returns an error if it exceeds a limit or is invalid.
pub(crate) fn description(metadata: Metadata, source: &PluginSource, outline: Outline) -> Result<Description, String> {
    let Metadata {
        name,
        version,
        description,
        object_kinds,
        taint_keys,
        config_schema,
        reusable,
        annotations: _,
    } = metadata;
    if version.is_empty() || plain(&version, VERSION_CHARS_MAX) != version {
        return Err(format!(
            "its version must have 1 to {VERSION_CHARS_MAX} characters and no control characters"
        ));
    }
    if object_kinds.len() > OBJECT_KINDS_MAX {
        return Err(format!(
            "it names {} kinds of object, at most {OBJECT_KINDS_MAX} allowed",
            object_kinds.len()
        ));
    }
    if taint_keys.len() > TAINT_KEYS_MAX {
        return Err(format!(
            "it names {} taints, at most {TAINT_KEYS_MAX} allowed",
            taint_keys.len()
        ));
    }
    let config_schema = if config_schema.is_empty() {
        None
    } else {
        let parsed = serde_json::from_str(&config_schema);
        Some(parsed.map_err(|error| format!("its configuration schema is not JSON: {error}"))?)
    };
    Ok(Description {
        name: plain(&name, TEXT_CHARS_MAX),
        version,
        summary: plain(&description, TEXT_CHARS_MAX),
        digest: source.digest(),
        code_bytes: source.modules.iter().map(|module| module.code.len()).sum(),
        contract: contract::package(),
        imports: outline.imports,
        taint_keys,
        config_schema,
        reusable,
        remarks: Vec::new(),
    })
}

/// Returns the id of a plugin: the operator's name for it, and its version extended by the digest of its code.
pub(crate) fn id(source: &PluginSource, description: &Description) -> PolicyId {
    let version = format!("{}+{}", description.version, description.digest.short());
    PolicyId {
        name: source.name.clone(),
        version,
        engine: EngineKind::Wasm,
    }
}

/// Returns the capabilities of the exports. Health and interpretation are registered per kind of object.
pub(crate) fn capabilities(exports: &Exports, object_kinds: &[ObjectKind]) -> Vec<Capability> {
    let mut capabilities = Vec::new();
    let of_objects = [
        (exports.health.is_some(), CallKind::Health),
        (exports.interpreter.is_some(), CallKind::Interpret),
    ];
    for (_, kind) in of_objects.into_iter().filter(|(exported, _)| *exported) {
        if object_kinds.is_empty() {
            capabilities.push(Capability::any(kind));
        }
        let objects = object_kinds.iter();
        capabilities.extend(objects.map(|o| Capability::on(kind, &o.api_version, &o.kind)));
    }
    let others = [
        (exports.taints.is_some(), CallKind::ClusterTaint),
        (exports.filter.is_some(), CallKind::Filter),
        (exports.score.is_some(), CallKind::Score),
        (exports.eviction.is_some(), CallKind::EvictionCheck),
    ];
    capabilities.extend(
        others
            .into_iter()
            .filter(|(exported, _)| *exported)
            .map(|(_, kind)| Capability::any(kind)),
    );
    capabilities
}
