//! `bulkhead plugin sign`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bulkhead_oci::artifact::layer;
use bulkhead_oci::manifest::{Descriptor, IMAGE_MANIFEST};
use bulkhead_oci::signature::{CONFORMANCE, Conformance, SigningKey};
use bulkhead_oci::{Digest, PulledManifest, Reference};
use bulkhead_server::images::ImageArguments;
use clap::Args;
use serde_json::Value;

use super::images;
use crate::block_on::block_on;
use crate::output;

/// Environment variable with the password of an encrypted key, as cosign names it.
const PASSWORD_VARIABLE: &str = "COSIGN_PASSWORD";

/// Sign a plugin in its registry with a private key, and print its reference with its digest.
///
/// The signature has the format of cosign under the tag sha256-DIGEST.sig. `cosign verify --key` accepts it. With
/// --report, a conformance report of the same code is signed too, and attached as an attestation.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin sign registry.example.com/plugins/hold:1.0 --key team.key
  bulkhead plugin sign registry.example.com/plugins/hold:1.0 --key team.key --report report.json")]
pub(crate) struct Arguments {
    /// Image to sign: REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST.
    #[arg(value_name = "IMAGE")]
    image: Reference,

    /// ECDSA P-256 key in PEM: PKCS #8 without a password, or encrypted by cosign with the password in $COSIGN_PASSWORD.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,

    /// Conformance report to attach: the output of `bulkhead plugin test -o json` for the code of the image.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    #[command(flatten)]
    images: ImageArguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let path = &arguments.key;
    let pem = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let key = signing_key(&path.display().to_string(), &pem)?;
    let report = arguments.report.as_deref().map(read_report).transpose()?;
    let store = images::store(&arguments.images)?;
    let image = &arguments.image;
    let digest = block_on(async {
        // The registry itself has to have the image, also under a digest: it gets the signature.
        let PulledManifest { digest, text, manifest } = store.client().manifest_at(image).await?;
        let failed = |cause| anyhow::anyhow!("cannot sign {image}: {cause}");
        let signature = key.sign(image, &digest).map_err(failed)?;
        if let Some(report) = &report {
            let (_, code) = layer(&manifest).map_err(failed)?;
            report.check(image, &code.digest)?;
            let attestation = key.attest(&digest, CONFORMANCE, &report.predicate).map_err(failed)?;
            let subject = Descriptor::of(IMAGE_MANIFEST, &text);
            let client = store.client();
            client
                .push_attestation(image, subject, &attestation, &key.hint())
                .await?;
        }
        store.client().push_signature(image, &digest, signature).await?;
        Ok(digest)
    })?;
    output::print(&format!("{}\n", image.with_digest(digest)))
}

/// Returns the key in a file, with the password of the environment if it is encrypted.
fn signing_key(origin: &str, pem: &str) -> anyhow::Result<SigningKey> {
    if !SigningKey::is_encrypted(pem) {
        return Ok(SigningKey::parse(origin, pem)?);
    }
    let password = std::env::var(PASSWORD_VARIABLE)
        .with_context(|| format!("{origin}: is encrypted; {PASSWORD_VARIABLE} has to have its password"))?;
    Ok(SigningKey::decrypt(origin, pem, &password)?)
}

/// Conformance report of a file.
struct Report {
    path: String,
    /// SHA-256 of the code that was tested, in hexadecimal digits.
    sha256: String,
    predicate: Value,
}

/// Reads a report of `bulkhead plugin test`, which must have passed.
fn read_report(path: &Path) -> anyhow::Result<Report> {
    let shown = path.display().to_string();
    let text = fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
    let predicate: Value = serde_json::from_str(&text).with_context(|| format!("{shown} is not JSON"))?;
    let missing = || format!("{shown}: is not a conformance report; `bulkhead plugin test -o json` makes one");
    let sha256 = predicate["sha256"].as_str().with_context(missing)?.to_owned();
    let conformance: Conformance = serde_json::from_value(predicate.clone()).with_context(missing)?;
    if !conformance.passed {
        bail!("{shown}: the report has failed checks; only a passed one is attached");
    }
    Ok(Report {
        path: shown,
        sha256,
        predicate,
    })
}

impl Report {
    /// Returns an error for a report about other code.
    fn check(&self, image: &Reference, code: &Digest) -> anyhow::Result<()> {
        let Self { path, sha256, .. } = self;
        if code.hex() != sha256 {
            bail!(
                "{path}: is about code with SHA-256 {sha256}, and {image} has {}; test the code of the image",
                code.hex()
            );
        }
        Ok(())
    }
}
