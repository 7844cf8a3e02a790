//! TLS of connections to estimators: trusted CAs and client identity (Karmada: `pkg/util/grpcconnection`).

use std::sync::Arc;

use tokio_rustls::rustls;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{DigitallySignedStruct, SignatureScheme};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

/// Security of a connection.
#[derive(Clone, Debug, Default)]
pub enum Security {
    /// No TLS: neither a CA nor `--insecure-skip-estimator-verify` is given.
    #[default]
    Plain,
    /// TLS; the server's certificate must be signed by this CA.
    Verified {
        /// CA certificates, as PEM.
        ca: Vec<u8>,
        /// Client certificate for mutual TLS.
        identity: Option<Identity>,
    },
    /// TLS without verification of the server.
    Unverified {
        /// Client certificate for mutual TLS.
        identity: Option<Identity>,
    },
}

/// Certificate with its private key, as PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: Vec<u8>,
    /// The private key.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

/// Certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the certificates for estimators cannot be used")]
pub struct SecurityError(#[from] tonic::transport::Error);

impl Security {
    /// Returns the scheme of the addresses.
    pub(crate) fn scheme(&self) -> &'static str {
        match self {
            Self::Plain => "http",
            Self::Verified { .. } | Self::Unverified { .. } => "https",
        }
    }

    pub(crate) fn apply(&self, endpoint: Endpoint) -> Result<Endpoint, SecurityError> {
        let presenting = |identity: &Option<Identity>| {
            let config = ClientTlsConfig::new().assume_http2(true);
            match identity {
                None => config,
                Some(own) => config.identity(tonic::transport::Identity::from_pem(&own.certificate, &own.key)),
            }
        };
        Ok(match self {
            Self::Plain => endpoint,
            Self::Verified { ca, identity } => {
                endpoint.tls_config(presenting(identity).ca_certificate(Certificate::from_pem(ca)))?
            }
            Self::Unverified { identity } => {
                let anybody = AcceptAnyCertificate(Arc::new(ring::default_provider()));
                endpoint.tls_config_with_verifier(presenting(identity), Arc::new(anybody))?
            }
        })
    }
}

/// Verifier that accepts every certificate, but still verifies handshake signatures.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
