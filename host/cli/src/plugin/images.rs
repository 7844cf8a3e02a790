//! Images in registries, shared by the commands that distribute plugins.

use std::io::Write as _;

use bulkhead_oci::trust::Requirements;
use bulkhead_oci::{Digest, Helpers, PulledManifest, Reference, Store, StoredImage, trust::Trust};
use bulkhead_server::images::ImageArguments;

/// Returns the images of the user, whose credential helpers are run.
pub(super) fn store(arguments: &ImageArguments) -> anyhow::Result<Store> {
    arguments.store(Helpers::Run)
}

/// Returns the requirements of the trust file for an image; none without such a file.
pub(super) fn requirements(arguments: &ImageArguments, image: &Reference) -> anyhow::Result<Option<Requirements>> {
    let Some(path) = arguments.trust() else { return Ok(None) };
    Ok(Some(Trust::read(path)?.requirements(image)?))
}

/// Pulls an image into the cache and checks its signature. A tag is resolved in the registry.
pub(super) async fn pull(store: &Store, arguments: &ImageArguments, image: &Reference) -> anyhow::Result<StoredImage> {
    let requirements = requirements(arguments, image)?;
    let stored = store.pull(image).await?;
    let digest = stored.manifest.digest.clone();
    if let Some(requirements) = requirements {
        let signatures = if requirements.needs_signature() {
            signatures(store, image, &digest).await?
        } else {
            Vec::new()
        };
        requirements.verify(image, &digest, stored.manifest.code_digest(), &signatures)?;
    }
    if image.digest().is_none() {
        if let Some(before) = store.cache().known(image).filter(|before| *before != digest) {
            writeln!(
                anstream::stderr(),
                "warning: the tag {image} has moved from {before} to {digest}"
            )?;
        }
        store.cache().remember(image, &digest)?;
    }
    Ok(stored)
}

/// Returns the signatures of an image: those of the registry, or those of the cache if the registry does not answer.
pub(super) async fn signatures(
    store: &Store,
    image: &Reference,
    digest: &Digest,
) -> anyhow::Result<Vec<bulkhead_oci::signature::Signature>> {
    match store.signatures(image, digest).await {
        Ok(signatures) => Ok(signatures),
        Err(error) => store.cache().signatures(digest).ok_or_else(|| error.into()),
    }
}

/// Returns the manifest of an image: that of the registry, or for a digest that of the cache if the registry does not
/// answer.
pub(super) async fn manifest(store: &Store, image: &Reference) -> anyhow::Result<PulledManifest> {
    let found = store.client().manifest(image).await;
    found.or_else(|error| {
        let cached = image.digest().and_then(|digest| store.cached(image, digest).ok()?);
        cached.map(|stored| stored.manifest).ok_or_else(|| error.into())
    })
}
