//! `bulkhead plugin verify`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use bulkhead_oci::Reference;
use bulkhead_oci::artifact::layer;
use bulkhead_oci::signature::PublicKey;
use bulkhead_oci::trust::Requirements;
use bulkhead_server::images::ImageArguments;
use clap::Args;
use serde_json::json;

use super::images;
use crate::block_on::block_on;
use crate::output::Format;

/// Verify the signature of a plugin, with public keys or with a trust file.
///
/// Exits with 1 if no signature counts.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin verify registry.example.com/plugins/hold:1.0 --key team.pub
  bulkhead plugin verify registry.example.com/plugins/hold:1.0 --plugin-trust trust.yaml -o json")]
pub(crate) struct Arguments {
    /// Image to verify: REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST.
    #[arg(value_name = "IMAGE")]
    image: Reference,

    /// ECDSA P-256 public keys in PEM, one of which must have signed.
    #[arg(long = "key", value_name = "FILE")]
    keys: Vec<PathBuf>,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    #[command(flatten)]
    images: ImageArguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let image = &arguments.image;
    let Some(requirements) = requirements(arguments)? else {
        bail!("name the keys that may have signed with --key, or a trust file with --plugin-trust");
    };
    let store = images::store(&arguments.images)?;
    let (digest, code, signatures) = block_on(async {
        let manifest = images::manifest(&store, image).await?;
        let (_, code) = layer(&manifest.manifest).map_err(|cause| anyhow::anyhow!("{image}: {cause}"))?;
        let signatures = images::signatures(&store, image, &manifest.digest).await?;
        Ok((manifest.digest.clone(), code.digest.clone(), signatures))
    })?;
    let verified = requirements.verify(image, &digest, &code, &signatures);
    let reference = image.with_digest(digest.clone());
    let (text, signer) = match &verified {
        Ok(Some(key)) => (format!("{reference} is signed by {}\n", key.name), Some(&key.name)),
        Ok(None) => (format!("{reference} needs no signature\n"), None),
        Err(error) => (format!("{error}\n"), None),
    };
    let data = json!({
        "image": reference.to_string(),
        "trusted": verified.is_ok(),
        "signer": signer,
        "signatures": signatures.len(),
        "reason": verified.as_ref().err().map(ToString::to_string),
    });
    arguments.output.print(|| text, &data)?;
    Ok(verified.is_ok())
}

fn requirements(arguments: &Arguments) -> anyhow::Result<Option<Requirements>> {
    if arguments.keys.is_empty() {
        return images::requirements(&arguments.images, &arguments.image);
    }
    let mut keys = Vec::new();
    for path in &arguments.keys {
        let shown = path.display().to_string();
        let pem = fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
        keys.push(PublicKey::parse(&shown, &shown, &pem)?);
    }
    Ok(Some(Requirements::of_keys(keys)))
}
