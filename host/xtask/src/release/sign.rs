//! Signatures of cosign by key, without a transparency log: of a release's files, and of images in a registry.
//!
//! Cosign signs and verifies, so that users need no program of ours to verify a release. Keys can be files, or URIs of
//! key services. Neither step needs the internet.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::CHECKSUMS;
use crate::tools::GoTool;

/// Signature of the checksums, and thereby of all files: a bundle of Sigstore.
pub(crate) const SIGNATURE: &str = "SHA256SUMS.sigstore.json";
/// Public key of the signatures. It proves nothing unless users know it from another place.
pub(crate) const PUBLIC_KEY: &str = "cosign.pub";

/// Signs and verifies images and files.
pub(crate) const COSIGN: GoTool = GoTool {
    name: "cosign",
    folder: "host/xtask/go/cosign",
    package: "github.com/sigstore/cosign/v3/cmd/cosign",
};
/// Options of every signature: no service of Sigstore is asked.
const OFFLINE: [&str; 3] = ["--yes", "--use-signing-config=false", "--tlog-upload=false"];

/// Cosign with a key.
pub(crate) struct Signer {
    root: PathBuf,
    program: PathBuf,
    key: String,
    /// Password of the key, in place of that of the environment.
    password: Option<&'static str>,
}

impl Signer {
    /// Builds cosign if it is missing.
    ///
    /// # Errors
    ///
    /// Cosign cannot be built.
    pub(crate) fn ensure(root: &Path, key: &str) -> anyhow::Result<Self> {
        Ok(Self {
            root: root.to_path_buf(),
            program: COSIGN.ensure(root)?,
            key: key.to_owned(),
            password: None,
        })
    }

    /// Creates a pair of keys without a password in a folder, for tests of a release.
    ///
    /// # Errors
    ///
    /// Cosign cannot be built, or fails.
    pub(crate) fn with_new_key(root: &Path, folder: &Path) -> anyhow::Result<Self> {
        let key = folder.join("cosign.key").display().to_string();
        let signer = Self {
            password: Some(""),
            ..Self::ensure(root, &key)?
        };
        let prefix = folder.join("cosign").display().to_string();
        signer.run(&["generate-key-pair", "--output-key-prefix", &prefix])?;
        Ok(signer)
    }

    /// Signs the checksums of a release, writes the signature and the public key beside them, and verifies both.
    ///
    /// # Errors
    ///
    /// The key cannot be used, or the signature does not verify.
    pub(crate) fn files(&self, out: &Path) -> anyhow::Result<()> {
        let path = |name: &str| out.join(name).display().to_string();
        let (checksums, signature) = (path(CHECKSUMS), path(SIGNATURE));
        let sign = ["sign-blob", "--key", &self.key, "--bundle", &signature, &checksums];
        self.run(&[&sign[..], &OFFLINE].concat())?;
        // Cosign writes it for its user alone.
        fs::set_permissions(out.join(SIGNATURE), fs::Permissions::from_mode(0o644))
            .with_context(|| format!("changing the mode of {SIGNATURE}"))?;
        self.public_key(out)?;
        self.verify_files(out)
    }

    /// Verifies the signature of a release's checksums with the public key beside them.
    ///
    /// # Errors
    ///
    /// The signature or the key is missing or another one.
    pub(crate) fn verify_files(&self, out: &Path) -> anyhow::Result<()> {
        let path = |name: &str| out.join(name).display().to_string();
        let (checksums, signature, key) = (path(CHECKSUMS), path(SIGNATURE), path(PUBLIC_KEY));
        let verify = [
            "verify-blob",
            "--insecure-ignore-tlog",
            "--key",
            &key,
            "--bundle",
            &signature,
            &checksums,
        ];
        self.run(&verify)
    }

    /// Signs an image or a chart in a registry, and verifies the signature. `reference` has a digest.
    ///
    /// # Errors
    ///
    /// The registry or the key cannot be used, or the signature does not verify.
    pub(crate) fn image(&self, reference: &str, plain_http: bool) -> anyhow::Result<()> {
        ensure!(reference.contains('@'), "{reference}: sign an image by its digest");
        let http: &[&str] = if plain_http { &["--allow-http-registry"] } else { &[] };
        let sign = ["sign", "--key", &self.key, "--recursive", reference];
        self.run(&[&sign[..], &OFFLINE, http].concat())?;
        let folder = tempfile::tempdir().context("making a folder")?;
        self.public_key(folder.path())?;
        let key = folder.path().join(PUBLIC_KEY).display().to_string();
        let verify = ["verify", "--insecure-ignore-tlog", "--key", &key, reference];
        self.run(&[&verify[..], http].concat())
    }

    /// Writes the public key into a folder.
    fn public_key(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(PUBLIC_KEY).display().to_string();
        self.run(&["public-key", "--key", &self.key, "--outfile", &path])
    }

    fn run(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.root);
        if let Some(password) = self.password {
            command.env("COSIGN_PASSWORD", password);
        }
        let status = command.status().context("starting cosign")?;
        ensure!(status.success(), "cosign {} failed ({status})", arguments.join(" "));
        Ok(())
    }
}
