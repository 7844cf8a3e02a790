//! The certificate of the endpoint: from files, or made by ourselves for one process.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate with its key, and what clients check it against.
pub(crate) struct Certificate {
    chain_pem: String,
    key_pem: String,
    ca_pem: String,
}

impl Certificate {
    /// A new certificate for a host name or address, from an authority of its own whose key is forgotten at once.
    pub(crate) fn self_made(host: &str) -> anyhow::Result<Self> {
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "bulkhead webhook authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let ca_pem = authority.self_signed(&authority_key)?.pem();
        let key = KeyPair::generate()?;
        let params = CertificateParams::new(vec![host.to_owned()])?;
        let certificate = params.signed_by(&key, &Issuer::new(authority, authority_key))?;
        Ok(Self { chain_pem: certificate.pem(), key_pem: key.serialize_pem(), ca_pem })
    }

    /// `tls.crt`, `tls.key` and `ca.crt` of a directory, as in a mounted Secret of type `kubernetes.io/tls`.
    pub(crate) fn from_directory(directory: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| {
            let path = directory.join(name);
            fs::read_to_string(&path).with_context(|| format!("reading the certificate file {}", path.display()))
        };
        Ok(Self { chain_pem: read("tls.crt")?, key_pem: read("tls.key")?, ca_pem: read("ca.crt")? })
    }

    /// What a `caBundle` has to be.
    pub(crate) fn authority(&self) -> &str {
        &self.ca_pem
    }

    /// The TLS side of a server with this certificate.
    pub(super) fn server_config(&self) -> anyhow::Result<ServerConfig> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(self.chain_pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| anyhow::anyhow!("tls.crt is not PEM: {error}"))?;
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())
            .map_err(|error| anyhow::anyhow!("tls.key is not a private key in PEM: {error}"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .context("the certificate and the key do not go together")?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_self_made_certificate_serves() {
        let certificate = Certificate::self_made("127.0.0.1").unwrap();
        certificate.server_config().unwrap();
        assert!(certificate.authority().starts_with("-----BEGIN CERTIFICATE-----"));
    }

    #[test]
    fn files_that_do_not_fit_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let missing = Certificate::from_directory(directory.path()).map(drop).unwrap_err();
        assert!(format!("{missing:#}").contains("tls.crt"), "{missing:#}");
        let (one, other) = (Certificate::self_made("a").unwrap(), Certificate::self_made("b").unwrap());
        for (name, text) in [("tls.crt", &one.chain_pem), ("tls.key", &other.key_pem), ("ca.crt", &one.ca_pem)] {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let mixed = Certificate::from_directory(directory.path()).unwrap().server_config().map(drop).unwrap_err();
        assert!(format!("{mixed:#}").contains("do not go together"), "{mixed:#}");
    }
}
