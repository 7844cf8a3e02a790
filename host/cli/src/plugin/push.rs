//! `bulkhead plugin push`.

use bulkhead_core::policy::EngineKind;
use bulkhead_oci::Reference;
use bulkhead_oci::artifact::{Artifact, Metadata};
use bulkhead_plugin::Description;
use bulkhead_server::images::ImageArguments;
use clap::Args;
use serde_json::json;
use wit_component::DecodedWasm;

use super::images;
use super::target::Which;
use crate::block_on::block_on;
use crate::output::Format;

/// Push a plugin to a registry, and print its reference with its digest.
///
/// The plugin has to load and pass the smoke test. Components have the layout of the CNCF Wasm working group, scripts
/// the media type application/vnd.bulkhead.lua.v1.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin push registry.example.com/plugins/hold:1.0 hold
  bulkhead plugin push registry.example.com/plugins/hold:1.0 hold.wasm --licence Apache-2.0 -o json")]
pub(crate) struct Arguments {
    /// Image to write: REGISTRY/REPOSITORY:TAG.
    #[arg(value_name = "IMAGE")]
    image: Reference,

    /// SPDX expression of the licence, for the annotations of the image.
    #[arg(long, value_name = "SPDX", default_value = "", hide_default_value = true)]
    licence: String,

    /// URL of the source, for the annotations of the image.
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    source: String,

    /// Output format. Text is the reference with the digest.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    images: ImageArguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.image.digest().is_some() {
        anyhow::bail!("image {}: a push makes the digest; name a tag only", arguments.image);
    }
    let code = arguments.which.code()?;
    let target = arguments.which.target()?;
    let (loaded, policy) = target.checked()?;
    let mut kinds: Vec<_> = policy.capabilities().iter().map(|one| one.kind.to_string()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let (imports, exports) = interfaces(target.source.engine, &code);
    let Description {
        version,
        summary,
        contract,
        config_schema,
        ..
    } = &loaded.description;
    let metadata = Metadata {
        name: target.source.name.clone(),
        version: version.clone(),
        description: summary.clone(),
        kinds,
        contract: contract.clone(),
        config_schema: config_schema.as_ref().map(ToString::to_string).unwrap_or_default(),
        licence: arguments.licence.clone(),
        source: arguments.source.clone(),
        imports,
        exports,
    };
    let artifact = Artifact::of(target.source.engine, code.into(), &metadata);
    let artifact = artifact.map_err(|cause| anyhow::anyhow!("{}: {cause}", target.source.name))?;
    let store = images::store(&arguments.images)?;
    let image = &arguments.image;
    let digest = block_on(async { Ok(artifact.push(store.client(), image).await?) })?;
    let pushed = image.with_digest(digest);
    let data = json!({
        "image": pushed.to_string(),
        "tag": image.tag(),
        "annotations": artifact.manifest.manifest.annotations,
        "codeBytes": artifact.code.len(),
    });
    arguments.output.print(|| format!("{pushed}\n"), &data)
}

/// Returns the names of the interfaces that a component imports and exports; none for a script.
fn interfaces(engine: EngineKind, code: &[u8]) -> (Vec<String>, Vec<String>) {
    let decoded = (engine == EngineKind::Wasm)
        .then(|| wit_component::decode(code).ok())
        .flatten();
    let Some(DecodedWasm::Component(resolve, world)) = decoded else {
        return (Vec::new(), Vec::new());
    };
    let world = &resolve.worlds[world];
    let imports = world.imports.keys().map(|key| resolve.name_world_key(key)).collect();
    let exports = world.exports.keys().map(|key| resolve.name_world_key(key)).collect();
    (imports, exports)
}
