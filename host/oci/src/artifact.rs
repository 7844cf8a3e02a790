//! Layout of plugins as artifacts.
//!
//! Components have the layout of the CNCF Wasm working group, which `wkg` and `oras` read and write. Scripts have the
//! same layout with media types of their own. The layer decides about the engine; configuration and annotations are
//! for people and their tools.

use std::collections::BTreeMap;

use bulkhead_core::policy::EngineKind;
use bytes::Bytes;
use serde::Serialize;
use serde_json::json;

use crate::client::PulledManifest;
use crate::error::{Cause, RegistryError};
use crate::manifest::{Descriptor, Manifest};
use crate::{Client, Digest, Reference};

/// Media type of the configuration of a component.
pub const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// Media type of a component.
pub const WASM_LAYER: &str = "application/wasm";
/// Media type of a component that older tools write.
const WASM_LAYER_BEFORE: &str = "application/vnd.wasm.content.layer.v1+wasm";
/// Media type of the configuration of a script.
pub const LUA_CONFIG: &str = "application/vnd.bulkhead.lua.config.v1+json";
/// Media type of a script.
pub const LUA_LAYER: &str = "application/vnd.bulkhead.lua.v1";
/// Time of creation of every artifact. A constant, so that the same plugin has the same digest each time it is pushed.
const CREATED: &str = "1970-01-01T00:00:00Z";
/// Annotation with the name: of the plugin in its manifest, and of the file in the descriptor of its layer. `oras pull`
/// writes only layers that have it.
const TITLE: &str = "org.opencontainers.image.title";
/// Prefix of Bulkhead's annotations.
const PREFIX: &str = "dev.bulkhead.plugin.";
/// Maximum size of an annotation in bytes. A longer schema of the configuration is left out; the code has it.
const ANNOTATION_BYTES_MAX: usize = 32 << 10;

/// Description of a plugin in an artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Name.
    pub name: String,
    /// Version; empty if it has none.
    pub version: String,
    /// Purpose; may be empty.
    pub description: String,
    /// Calls that it answers, such as `health`.
    pub kinds: Vec<String>,
    /// Contract that it is written against; empty for a script.
    pub contract: String,
    /// JSON Schema of its configuration, as text; empty if it takes none.
    pub config_schema: String,
    /// SPDX expression of its licence; may be empty.
    pub licence: String,
    /// URL of its source; may be empty.
    pub source: String,
    /// Interfaces that a component imports.
    pub imports: Vec<String>,
    /// Interfaces that a component exports.
    pub exports: Vec<String>,
}

/// A plugin as an artifact.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// Engine that runs it.
    pub engine: EngineKind,
    /// Manifest.
    pub manifest: PulledManifest,
    /// Configuration.
    pub config: Bytes,
    /// Code.
    pub code: Bytes,
}

/// Configuration of a component (CNCF TAG Runtime, Wasm OCI Artifact layout).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WasmConfig<'a> {
    created: &'static str,
    architecture: &'static str,
    os: &'static str,
    layer_digests: [&'a Digest; 1],
    component: Component<'a>,
}

#[derive(Serialize)]
struct Component<'a> {
    exports: &'a [String],
    imports: &'a [String],
    target: Option<String>,
}

impl Artifact {
    /// Returns the artifact of a plugin.
    ///
    /// # Errors
    ///
    /// The engine has no artifacts.
    pub fn of(engine: EngineKind, code: Bytes, metadata: &Metadata) -> Result<Self, Cause> {
        let (config_type, layer_type, extension) = match engine {
            EngineKind::Wasm => (WASM_CONFIG, WASM_LAYER, "wasm"),
            EngineKind::Lua => (LUA_CONFIG, LUA_LAYER, "lua"),
            EngineKind::Builtin | EngineKind::Webhook => {
                return Err(Cause::Invalid("only components and scripts are artifacts".to_owned()));
            }
        };
        let title = (TITLE.to_owned(), format!("{}.{extension}", metadata.name));
        let layer = Descriptor {
            annotations: std::iter::once(title).filter(|_| !metadata.name.is_empty()).collect(),
            ..Descriptor::of(layer_type, &code)
        };
        let config = match engine {
            EngineKind::Wasm => serde_json::to_vec(&WasmConfig {
                created: CREATED,
                architecture: "wasm",
                os: "wasip2",
                layer_digests: [&layer.digest],
                component: Component {
                    exports: &metadata.exports,
                    imports: &metadata.imports,
                    target: None,
                },
            }),
            _ => serde_json::to_vec(&json!({
                "created": CREATED,
                "layerDigests": [&layer.digest],
                "kinds": metadata.kinds,
            })),
        };
        let config = Bytes::from(config.unwrap_or_default());
        let descriptor = Descriptor::of(config_type, &config);
        let manifest = Manifest::new(descriptor, vec![layer], metadata.annotations(engine));
        let text = Bytes::from(manifest.to_text());
        Ok(Self {
            engine,
            manifest: PulledManifest {
                digest: Digest::of(&text),
                text,
                manifest,
            },
            config,
            code,
        })
    }

    /// Uploads the artifact. Returns the digest of its manifest.
    ///
    /// # Errors
    ///
    /// The registry does not accept it.
    pub async fn push(&self, client: &Client, image: &Reference) -> Result<Digest, RegistryError> {
        client.push_blob(image, self.code.clone()).await?;
        client.push_blob(image, self.config.clone()).await?;
        client.push_manifest(image, self.manifest.text.clone()).await
    }
}

impl Metadata {
    fn annotations(&self, engine: EngineKind) -> BTreeMap<String, String> {
        let kinds = self.kinds.join(",");
        let all = [
            (TITLE.to_owned(), self.name.as_str()),
            ("org.opencontainers.image.version".to_owned(), &self.version),
            ("org.opencontainers.image.description".to_owned(), &self.description),
            ("org.opencontainers.image.licenses".to_owned(), &self.licence),
            ("org.opencontainers.image.source".to_owned(), &self.source),
            (format!("{PREFIX}engine"), engine.as_str()),
            (format!("{PREFIX}kinds"), &kinds),
            (format!("{PREFIX}contract"), &self.contract),
            (format!("{PREFIX}config-schema"), &self.config_schema),
        ];
        let given = all
            .into_iter()
            .filter(|(_, value)| !value.is_empty() && value.len() <= ANNOTATION_BYTES_MAX);
        given.map(|(name, value)| (name, value.to_owned())).collect()
    }
}

/// Returns the engine and the layer of a plugin's manifest.
///
/// # Errors
///
/// It has not exactly one layer, or one of another media type.
pub fn layer(manifest: &Manifest) -> Result<(EngineKind, &Descriptor), Cause> {
    let [layer] = manifest.layers.as_slice() else {
        return Err(Cause::WrongMediaType(format!(
            "it has {} layers; a plugin has one, of media type {WASM_LAYER} or {LUA_LAYER}",
            manifest.layers.len()
        )));
    };
    let engine = match layer.media_type.as_str() {
        WASM_LAYER | WASM_LAYER_BEFORE => EngineKind::Wasm,
        LUA_LAYER => EngineKind::Lua,
        other => {
            return Err(Cause::WrongMediaType(format!(
                "its layer has media type {other:?}; a plugin has {WASM_LAYER} or {LUA_LAYER}"
            )));
        }
    };
    Ok((engine, layer))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn metadata() -> Metadata {
        Metadata {
            name: "hold".to_owned(),
            version: "1.0".to_owned(),
            kinds: vec!["health".to_owned(), "score".to_owned()],
            licence: "Apache-2.0".to_owned(),
            imports: vec!["bulkhead:policy/log@0.1.0".to_owned()],
            ..Metadata::default()
        }
    }

    #[test]
    fn a_component_has_the_layout_of_the_working_group() {
        let artifact = Artifact::of(EngineKind::Wasm, Bytes::from_static(b"\0asm"), &metadata()).unwrap();
        let Manifest {
            config,
            layers,
            annotations,
            ..
        } = &artifact.manifest.manifest;
        assert_eq!(config.media_type, "application/vnd.wasm.config.v0+json");
        assert_eq!(layers[0].media_type, "application/wasm");
        assert_eq!(layers[0].annotations["org.opencontainers.image.title"], "hold.wasm");
        let config: Value = serde_json::from_slice(&artifact.config).unwrap();
        assert_eq!(config["architecture"], "wasm");
        assert_eq!(config["layerDigests"][0], layers[0].digest.as_str());
        assert_eq!(config["component"]["imports"][0], "bulkhead:policy/log@0.1.0");
        assert_eq!(annotations["org.opencontainers.image.licenses"], "Apache-2.0");
        assert_eq!(annotations["dev.bulkhead.plugin.kinds"], "health,score");
        assert!(!annotations.contains_key("org.opencontainers.image.source"));
        assert_eq!(layer(&artifact.manifest.manifest).unwrap().0, EngineKind::Wasm);
        let again = Artifact::of(EngineKind::Wasm, Bytes::from_static(b"\0asm"), &metadata()).unwrap();
        assert_eq!(again.manifest.digest, artifact.manifest.digest);
    }

    #[test]
    fn the_layer_decides_about_the_engine() {
        let check = |types: &[&str], expected: Result<EngineKind, &str>| {
            let layers = types
                .iter()
                .map(|media_type| Descriptor::of(media_type, b"x"))
                .collect();
            let manifest = Manifest::new(Descriptor::of("application/json", b"{}"), layers, BTreeMap::new());
            match (layer(&manifest), expected) {
                (Ok((engine, _)), Ok(expected)) => assert_eq!(engine, expected, "{types:?}"),
                (Err(cause), Err(part)) => assert!(cause.to_string().contains(part), "{types:?}: {cause}"),
                (found, _) => panic!("{types:?}: {found:?}"),
            }
        };
        check(&["application/wasm"], Ok(EngineKind::Wasm));
        check(&["application/vnd.wasm.content.layer.v1+wasm"], Ok(EngineKind::Wasm));
        check(&["application/vnd.bulkhead.lua.v1"], Ok(EngineKind::Lua));
        check(&[], Err("it has 0 layers; a plugin has one"));
        check(&["application/wasm", "application/wasm"], Err("it has 2 layers"));
        check(
            &["application/vnd.oci.image.layer.v1.tar+gzip"],
            Err("its layer has media type"),
        );
    }
}
