//! Configuration of TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Returns the configuration with the authorities of the system, those of a file, and the certificate of the client.
/// Messages name the file.
pub(super) fn config(ca_file: Option<&Path>, client: Option<&(PathBuf, PathBuf)>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    // Unreadable certificates of the system are skipped: only a registry that needs one is reported.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        for certificate in certificates(path)? {
            roots
                .add(certificate)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_root_certificates(roots);
    let Some((certificate, key)) = client else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = certificates(certificate)?;
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| format!("{}: cannot read a private key in PEM: {error}", key.display()))?;
    builder
        .with_client_auth_cert(chain, secret)
        .map_err(|error| format!("{} and {}: {error}", certificate.display(), key.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let read = CertificateDer::pem_file_iter(path).map_err(|error| format!("{shown}: {error}"))?;
    let certificates: Result<Vec<_>, _> = read.collect();
    let certificates = certificates.map_err(|error| format!("{shown}: is not PEM: {error}"))?;
    if certificates.is_empty() {
        return Err(format!("{shown}: has no certificate in PEM"));
    }
    Ok(certificates)
}
