//! `bulkhead plugin save` and `bulkhead plugin load`.

use std::path::PathBuf;

use anyhow::bail;
use bulkhead_oci::{Reference, layout};
use bulkhead_server::images::ImageArguments;
use clap::Args;

use super::images;
use crate::block_on::block_on;
use crate::output;

/// Save plugins with their signatures as an OCI image layout, for sites without access to the registry.
///
/// Plugins that the cache does not have are pulled.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin save plugins.tar registry.example.com/plugins/hold:1.0
  bulkhead plugin save layout/ registry.example.com/plugins/hold:1.0 registry.example.com/plugins/score:2")]
pub(crate) struct SaveArguments {
    /// Tar archive to write, or directory with a slash at its end.
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Images to save.
    #[arg(value_name = "IMAGE", required = true)]
    names: Vec<Reference>,

    #[command(flatten)]
    images: ImageArguments,
}

/// Load plugins of an OCI image layout into the cache of images, and print their references.
///
/// Every blob is verified. The plugins are then available to lists that name them, while the registry is out of reach.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin load plugins.tar
  bulkhead plugin load plugins.tar --image-cache /var/lib/bulkhead/images")]
pub(crate) struct LoadArguments {
    /// Tar archive or directory.
    #[arg(value_name = "PATH")]
    path: PathBuf,

    #[command(flatten)]
    images: ImageArguments,
}

pub(super) fn save(arguments: &SaveArguments) -> anyhow::Result<()> {
    let store = images::store(&arguments.images)?;
    let saved = block_on(async {
        let mut saved = Vec::new();
        for image in &arguments.names {
            let stored = images::pull(&store, &arguments.images, image).await?;
            let digest = &stored.manifest.digest;
            images::signatures(&store, image, digest).await?;
            saved.push(store.saved(image, &stored)?);
        }
        Ok(saved)
    })?;
    layout::write(&arguments.path, &saved)?;
    let shown = arguments.path.display();
    output::print(&format!("{shown}: {} images\n", saved.len()))
}

pub(super) fn load(arguments: &LoadArguments) -> anyhow::Result<()> {
    let saved = layout::read(&arguments.path)?;
    if saved.is_empty() {
        bail!("{}: it has no plugins", arguments.path.display());
    }
    let store = images::store(&arguments.images)?;
    let mut text = String::new();
    for image in &saved {
        let digest = &image.manifest.digest;
        if let Some(reference) = &image.reference
            && let Some(requirements) = images::requirements(&arguments.images, reference)?
        {
            requirements.verify(reference, digest, image.manifest.code_digest(), &image.signatures)?;
        }
        store.keep(image)?;
        let name = image
            .reference
            .as_ref()
            .map(|reference| reference.with_digest(digest.clone()).to_string());
        text += &name.unwrap_or_else(|| digest.to_string());
        text.push('\n');
    }
    output::print(&text)
}
