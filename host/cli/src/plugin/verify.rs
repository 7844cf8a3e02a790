//! `bulkhead plugin verify`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use bulkhead_core::manifest::trust::identity::TrustIdentity;
use bulkhead_oci::Reference;
use bulkhead_oci::artifact::layer;
use bulkhead_oci::signature::{Identity, PublicKey, Signers, TrustedRoot};
use bulkhead_oci::trust::Requirements;
use bulkhead_server::images::ImageArguments;
use clap::Args;
use serde_json::json;

use super::images;
use crate::block_on::block_on;
use crate::output::Format;

/// Verify the signature of a plugin, with public keys, with the identity in a certificate, or with a trust file.
///
/// Exits with 1 if no signature counts.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin verify registry.example.com/plugins/hold:1.0 --key team.pub
  bulkhead plugin verify registry.example.com/plugins/hold:1.0 --plugin-trust trust.yaml -o json
  bulkhead plugin verify registry.example.com/plugins/hold:1.0 --certificate-identity team@example.com \
  --certificate-oidc-issuer https://accounts.google.com --trusted-root trusted_root.json")]
pub(crate) struct Arguments {
    /// Image to verify: REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST.
    #[arg(value_name = "IMAGE")]
    image: Reference,

    /// ECDSA P-256 public keys in PEM, one of which must have signed.
    #[arg(long = "key", value_name = "FILE")]
    keys: Vec<PathBuf>,

    #[command(flatten)]
    certificate: CertificateArguments,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    #[command(flatten)]
    images: ImageArguments,
}

/// Identity in the certificate of a signer, for signatures without keys.
#[derive(Args)]
struct CertificateArguments {
    /// Subject that the certificate of the signer must have: an email address, or the URI of a workload.
    #[arg(long, value_name = "SUBJECT", conflicts_with = "certificate_identity_regexp")]
    #[arg(requires = "certificate_oidc_issuer")]
    certificate_identity: Option<String>,

    /// Regular expression that the whole subject must match.
    #[arg(long, value_name = "REGEX", requires = "certificate_oidc_issuer")]
    certificate_identity_regexp: Option<String>,

    /// Issuer of the identity token that the certificate of the signer must have.
    #[arg(long, value_name = "URL", requires = "trusted_root")]
    certificate_oidc_issuer: Option<String>,

    /// Trusted root of Sigstore that verifies the certificate, such as `trusted_root.json`.
    #[arg(long, value_name = "FILE", requires = "certificate_oidc_issuer")]
    trusted_root: Option<PathBuf>,
}

impl CertificateArguments {
    /// Returns the identity with its trusted root; none without arguments.
    fn identity(&self) -> anyhow::Result<Option<(Identity, TrustedRoot)>> {
        let (Some(issuer), Some(path)) = (&self.certificate_oidc_issuer, &self.trusted_root) else {
            return Ok(None);
        };
        if self.certificate_identity.is_none() && self.certificate_identity_regexp.is_none() {
            bail!("name the subject with --certificate-identity or --certificate-identity-regexp");
        }
        let identity = Identity::new(TrustIdentity {
            issuer: issuer.clone(),
            subject: self.certificate_identity.clone(),
            subject_regex: self.certificate_identity_regexp.clone(),
        });
        let identity = identity.map_err(|message| anyhow!("--certificate-identity: {message}"))?;
        let shown = path.display().to_string();
        let json = fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
        Ok(Some((identity, TrustedRoot::parse(&shown, &json)?)))
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let image = &arguments.image;
    let Some(requirements) = requirements(arguments)? else {
        bail!(
            "name the keys that may have signed with --key, an identity with --certificate-identity, or a trust file \
             with --plugin-trust"
        );
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
        Ok(Some(signer)) => (format!("{reference} is signed by {signer}\n"), Some(signer)),
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
    let identity = arguments.certificate.identity()?;
    if arguments.keys.is_empty() && identity.is_none() {
        return images::requirements(&arguments.images, &arguments.image);
    }
    let mut keys = Vec::new();
    for path in &arguments.keys {
        let shown = path.display().to_string();
        let pem = fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
        keys.push(PublicKey::parse(&shown, &shown, &pem)?);
    }
    let signers = Signers::of_keys(keys);
    Ok(Some(match identity {
        None => Requirements::of_signers("--key", signers),
        Some((identity, root)) => {
            let signers = signers.with_identities(vec![identity], Ok(root));
            Requirements::of_signers("--certificate-identity", signers)
        }
    }))
}
