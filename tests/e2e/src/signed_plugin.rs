//! The tutorial "Sign a plugin and put it in force", executed literally: the registry has another address.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::certificates::{Issued, issue};
use crate::registry_in_process::{Authentication, Registry};
use crate::site::Site;
use crate::tutorial::{Tutorial, blocks};

/// Page of the tutorial.
const PAGE: &str = "docs/src/tutorials/signed-plugin.md";
/// Registry of the tutorial.
const REGISTRY: &str = "registry.example.com";
/// Start of the block that asks about a released copy.
const EXPLAIN: &str = "bulkhead explain ";
/// User `user` and password `password` of the registry in base64.
const AUTH: &str = "dXNlcjpwYXNzd29yZA==";

/// Follows the tutorial with a registry that has TLS and requires a password. A copy leaves by the verdict of the
/// plugin, and the explanation names its signer.
pub(crate) async fn follow(site: &Site) -> anyhow::Result<()> {
    let mut tutorial = Box::pin(Tutorial::start(site, "signed-plugin")).await?;
    let registry = Registry::start_with(Authentication::Basic, Some(tls(&tutorial.path("ca.pem"))?));
    let address = registry.address.to_string();
    let docker = tutorial.path("docker");
    fs::create_dir_all(&docker)?;
    let auths = serde_json::json!({"auths": {address.as_str(): {"auth": AUTH}}});
    fs::write(docker.join("config.json"), auths.to_string())?;
    tutorial.set("DOCKER_CONFIG", &docker);
    tutorial.set("SSL_CERT_FILE", &tutorial.path("ca.pem"));
    tutorial.set("XDG_CACHE_HOME", &tutorial.path("cache"));

    let page = fs::read_to_string(site.root.join(PAGE)).with_context(|| format!("reading {PAGE}"))?;
    ensure!(page.contains(REGISTRY), "{PAGE} does not name {REGISTRY}");
    let mut explanation = String::new();
    for block in blocks(&page.replace(REGISTRY, &address)) {
        if block.starts_with(EXPLAIN) {
            tutorial.end_task().await?;
            explanation = tutorial.shell(&block)?;
        } else {
            tutorial.follow(&block).await?;
        }
    }
    for text in ["replicas are available elsewhere", "signed by team", address.as_str()] {
        ensure!(
            explanation.contains(text),
            "the explanation lacks {text:?}: {explanation}"
        );
    }
    ensure!(
        tutorial.runs == 1,
        "the tutorial runs the program {} times",
        tutorial.runs
    );
    Ok(())
}

/// Returns the configuration of a server on loopback, and writes the certificate of its authority.
fn tls(authority_file: &Path) -> anyhow::Result<ServerConfig> {
    let Issued {
        authority,
        certificate,
        key,
    } = issue()?;
    fs::write(authority_file, authority.pem())?;
    let certificate = CertificateDer::from(certificate.der().to_vec());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = rustls::crypto::ring::default_provider();
    let config = ServerConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions()?;
    Ok(config.with_no_client_auth().with_single_cert(vec![certificate], key)?)
}
