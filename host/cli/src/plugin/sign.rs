//! `bulkhead plugin sign`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use bulkhead_oci::Reference;
use bulkhead_oci::signature::SigningKey;
use bulkhead_server::images::ImageArguments;
use clap::Args;

use super::images;
use crate::block_on::block_on;
use crate::output;

/// Sign a plugin in its registry with a private key, and print its reference with its digest.
///
/// The signature has the format of cosign under the tag sha256-DIGEST.sig. `cosign verify --key` accepts it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin sign registry.example.com/plugins/hold:1.0 --key team.key
  bulkhead plugin sign localhost:5000/plugins/hold:1.0 --key team.key --plain-http localhost:5000")]
pub(crate) struct Arguments {
    /// Image to sign: REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST.
    #[arg(value_name = "IMAGE")]
    image: Reference,

    /// ECDSA P-256 key in PEM (PKCS #8, without a password).
    #[arg(long, value_name = "FILE")]
    key: PathBuf,

    #[command(flatten)]
    images: ImageArguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let path = &arguments.key;
    let pem = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let key = SigningKey::parse(&path.display().to_string(), &pem)?;
    let store = images::store(&arguments.images)?;
    let image = &arguments.image;
    let digest = block_on(async {
        // The registry has to have the image, also under a digest.
        let digest = store.client().manifest(image).await?.digest;
        let signature = key
            .sign(image, &digest)
            .map_err(|cause| anyhow::anyhow!("cannot sign {image}: {cause}"))?;
        store.client().push_signature(image, &digest, signature).await?;
        Ok(digest)
    })?;
    output::print(&format!("{}\n", image.with_digest(digest)))
}
