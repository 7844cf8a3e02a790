//! `bulkhead plugin pull`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use bulkhead_oci::Reference;
use bulkhead_server::images::ImageArguments;
use clap::Args;
use serde_json::json;

use super::images;
use crate::block_on::block_on;
use crate::output::Format;

/// Pull a plugin into the cache of images, and print its reference with its digest.
///
/// Digests are verified, and with --plugin-trust signatures. An image that the cache has is not downloaded again.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin pull registry.example.com/plugins/hold:1.0
  bulkhead plugin pull registry.example.com/plugins/hold:1.0 --file hold.lua --plugin-trust trust.yaml")]
pub(crate) struct Arguments {
    /// Image to pull: REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST.
    #[arg(value_name = "IMAGE")]
    image: Reference,

    /// File to write the code to.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Output format. Text is the reference with the digest.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    #[command(flatten)]
    images: ImageArguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let store = images::store(&arguments.images)?;
    let image = &arguments.image;
    let stored = block_on(images::pull(&store, &arguments.images, image))?;
    if let Some(file) = &arguments.file {
        fs::write(file, &stored.code).with_context(|| format!("writing {}", file.display()))?;
    }
    let pulled = image.with_digest(stored.manifest.digest.clone());
    let data = json!({
        "image": pulled.to_string(),
        "engine": stored.engine,
        "annotations": stored.manifest.manifest.annotations,
        "codeBytes": stored.code.len(),
    });
    arguments.output.print(|| format!("{pulled}\n"), &data)
}
