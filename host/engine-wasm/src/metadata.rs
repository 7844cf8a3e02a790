//! Who a plugin says it is, and what follows from that.

use bulkhead_core::call::CallKind;
use bulkhead_core::policy::{Capability, EngineKind, PolicyId};
use bulkhead_plugin::{Module, PluginSource};

use crate::bindings::bulkhead::policy::types::Metadata;
use crate::log::plain;
use crate::session::Exports;

/// Longest version that a plugin may declare, in characters.
const VERSION_CHARS_MAX: usize = 64;
/// Most kinds of object that one plugin may name.
const OBJECT_KINDS_MAX: usize = 256;

/// Why nobody can work with that metadata, if so.
pub(crate) fn objection(metadata: &Metadata) -> Option<String> {
    let version = &metadata.version;
    if version.is_empty() || plain(version, VERSION_CHARS_MAX) != *version {
        return Some(format!("its version must have 1 to {VERSION_CHARS_MAX} characters and no control characters"));
    }
    if metadata.object_kinds.len() > OBJECT_KINDS_MAX {
        return Some(format!(
            "it names {} kinds of object, at most {OBJECT_KINDS_MAX} allowed",
            metadata.object_kinds.len()
        ));
    }
    let schema = &metadata.config_schema;
    let parsed = serde_json::from_str::<serde_json::Value>(schema);
    parsed.err().filter(|_| !schema.is_empty()).map(|error| format!("its configuration schema is no JSON: {error}"))
}

/// The name that the operator gave it, and a version that tells apart what declares the same one.
pub(crate) fn id(source: &PluginSource, module: &Module, metadata: &Metadata) -> PolicyId {
    let version = format!("{}+{}", metadata.version, digest(&module.code));
    PolicyId { name: source.name.clone(), version, engine: EngineKind::Wasm }
}

/// What the exports answer. Health and interpretation are registered per kind of object.
pub(crate) fn capabilities(exports: &Exports, metadata: &Metadata) -> Vec<Capability> {
    let mut capabilities = Vec::new();
    let of_objects =
        [(exports.health.is_some(), CallKind::Health), (exports.interpreter.is_some(), CallKind::Interpret)];
    for (_, kind) in of_objects.into_iter().filter(|(there, _)| *there) {
        if metadata.object_kinds.is_empty() {
            capabilities.push(Capability::any(kind));
        }
        let objects = metadata.object_kinds.iter();
        capabilities.extend(objects.map(|o| Capability::on(kind, &o.api_version, &o.kind)));
    }
    let others = [
        (exports.taints.is_some(), CallKind::ClusterTaint),
        (exports.filter.is_some(), CallKind::Filter),
        (exports.score.is_some(), CallKind::Score),
        (exports.eviction.is_some(), CallKind::EvictionCheck),
    ];
    capabilities.extend(others.into_iter().filter(|(there, _)| *there).map(|(_, kind)| Capability::any(kind)));
    capabilities
}

/// The first 12 digits of FNV-1a with 64 bits: enough to tell builds of a plugin apart, no proof against somebody who
/// wants two to look the same.
fn digest(code: &[u8]) -> String {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = code.iter().fold(0xcbf2_9ce4_8422_2325, mix);
    format!("{:012x}", hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn the_digest_is_fnv_1a() {
        assert_eq!(digest(b""), "cbf29ce48422");
        assert_eq!(digest(b"foobar"), "85944171f739");
    }
}
