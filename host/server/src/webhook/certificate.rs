//! TLS certificates of the endpoints.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use k8s_openapi::jiff::civil::Date;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Certificate with its private key and CA bundle, all in PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// Certificate, followed by intermediate certificates.
    pub(crate) chain_pem: String,
    /// Private key of the certificate.
    pub(crate) key_pem: String,
    /// CA bundle for clients.
    pub(crate) ca_pem: String,
}

impl Certificate {
    /// Creates a certificate for a host name or address, signed by a new authority whose key is discarded. It is
    /// valid until the end of the day `until`. The CA bundle also includes `before`, the authorities of the previous
    /// certificate, for clients that still receive it.
    pub(crate) fn self_made(host: &str, until: Date, before: Option<&str>) -> anyhow::Result<Self> {
        let last_day = until.tomorrow().unwrap_or(until);
        let month = u8::try_from(last_day.month()).unwrap_or(1);
        let end = rcgen::date_time_ymd(last_day.year().into(), month, u8::try_from(last_day.day()).unwrap_or(1));
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::default();
        authority
            .distinguished_name
            .push(DnType::CommonName, "bulkhead webhook authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.not_after = end;
        let ca_pem = authority.self_signed(&authority_key)?.pem();
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![host.to_owned()])?;
        params.not_after = end;
        let certificate = params.signed_by(&key, &Issuer::new(authority, authority_key))?;
        let ca_pem = format!("{ca_pem}{}", before.unwrap_or_default());
        Ok(Self {
            chain_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            ca_pem,
        })
    }

    /// Reads `tls.crt`, `tls.key` and `ca.crt` in a directory, as in a mounted Secret of type `kubernetes.io/tls`.
    pub(crate) fn from_directory(directory: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| {
            let path = directory.join(name);
            fs::read_to_string(&path).with_context(|| format!("reading the certificate file {}", path.display()))
        };
        Ok(Self {
            chain_pem: read("tls.crt")?,
            key_pem: read("tls.key")?,
            ca_pem: read("ca.crt")?,
        })
    }

    /// Returns the first authority in the CA bundle: that of this certificate.
    pub(crate) fn own_authority(&self) -> &str {
        const END: &str = "-----END CERTIFICATE-----\n";
        self.ca_pem
            .find(END)
            .map_or(&self.ca_pem, |at| &self.ca_pem[..at + END.len()])
    }

    /// Builds the TLS configuration of a server. `clients` verifies client certificates; without it, clients need
    /// none.
    pub(crate) fn server_config(&self, clients: Option<Arc<dyn ClientCertVerifier>>) -> anyhow::Result<ServerConfig> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(self.chain_pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| anyhow::anyhow!("tls.crt is not PEM: {error}"))?;
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())
            .map_err(|error| anyhow::anyhow!("tls.key is not a private key in PEM: {error}"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients.unwrap_or_else(WebPkiClientVerifier::no_client_auth))
            .with_single_cert(chain, key)
            .context("the certificate and the key do not match")?;
        Ok(config)
    }
}

/// Creates a verifier that accepts only client certificates signed by these authorities.
pub(super) fn clients_of(authorities_pem: &str) -> anyhow::Result<Arc<dyn ClientCertVerifier>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities_pem.as_bytes()) {
        roots.add(authority.map_err(|error| anyhow::anyhow!("not PEM: {error}"))?)?;
    }
    if roots.is_empty() {
        bail!("no certificate in it");
    }
    Ok(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(host: &str, before: Option<&str>) -> Certificate {
        Certificate::self_made(host, k8s_openapi::jiff::civil::date(2099, 12, 31), before).unwrap()
    }

    #[test]
    fn a_self_made_certificate_serves() {
        let first = made("127.0.0.1", None);
        first.server_config(None).unwrap();
        assert!(first.ca_pem.starts_with("-----BEGIN CERTIFICATE-----"));
        let second = made("127.0.0.1", Some(first.own_authority()));
        assert!(second.ca_pem.ends_with(&first.ca_pem) && second.ca_pem != first.ca_pem);
        assert_eq!(
            format!("{}{}", second.own_authority(), first.own_authority()),
            second.ca_pem
        );
    }

    #[test]
    fn files_that_do_not_fit_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let missing = Certificate::from_directory(directory.path()).map(drop).unwrap_err();
        assert!(format!("{missing:#}").contains("tls.crt"), "{missing:#}");
        let (one, other) = (made("a", None), made("b", None));
        for (name, text) in [
            ("tls.crt", &one.chain_pem),
            ("tls.key", &other.key_pem),
            ("ca.crt", &one.ca_pem),
        ] {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let mixed = Certificate::from_directory(directory.path())
            .unwrap()
            .server_config(None)
            .map(drop)
            .unwrap_err();
        assert!(format!("{mixed:#}").contains("do not match"), "{mixed:#}");
    }
}
