use std::fs;
use std::io;
use std::path::Path;

use bulkhead_runtime::causes::causes;
use k8s_openapi::jiff::civil::date;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::*;

const REVIEW: &str = r#"{"request": {"uid": "1", "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
    "operation": "CREATE", "object": {"metadata": {"name": "a"}}}}"#;

/// CA of client certificates.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    fn client(&self) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["client".to_owned()])
            .unwrap()
            .signed_by(&key, &self.issuer);
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        (certificate.unwrap().der().clone(), key)
    }
}

async fn endpoint(folder: &Path, client_ca: Option<&str>) -> anyhow::Result<Endpoint> {
    let certificate = Certificate::self_made("127.0.0.1", date(2099, 12, 31), None).unwrap();
    let Certificate {
        chain_pem,
        key_pem,
        ca_pem,
    } = &certificate;
    for (name, text) in [("tls.crt", chain_pem), ("tls.key", key_pem), ("ca.crt", ca_pem)] {
        fs::write(folder.join(name), text).unwrap();
    }
    let client_ca = client_ca.map(|pem| {
        let path = folder.join("client-ca.crt");
        fs::write(&path, pem).unwrap();
        path
    });
    let services = WebhookServices {
        name: "bulkhead".to_owned(),
        admission: AdmissionOptions::default(),
        karmada_kinds: false,
        customizations: Store::new(),
        interpreter: None,
    };
    let credentials = Credentials {
        source: Source::Directory(folder.to_path_buf()),
        client_ca,
    };
    start("127.0.0.1:0".parse().unwrap(), credentials, services).await
}

/// Posts a review. An error means that the endpoint closed the connection.
async fn post(endpoint: &Endpoint, client: Option<&Authority>) -> io::Result<String> {
    let mut roots = RootCertStore::empty();
    let authorities = endpoint.identity.borrow().certificate.ca_pem.clone();
    roots
        .add(CertificateDer::from_pem_slice(authorities.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config.with_root_certificates(roots);
    let config = match client.map(Authority::client) {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => config.with_client_auth_cert(vec![certificate], key).unwrap(),
    };
    let stream = TcpStream::connect(endpoint.address).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let head = format!("POST {} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n", review::PATH);
    stream
        .write_all(format!("{head}Content-Length: {}\r\n\r\n{REVIEW}", REVIEW.len()).as_bytes())
        .await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}

#[tokio::test]
async fn without_a_client_ca_any_client_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = endpoint(folder.path(), None).await.unwrap();
    let response = post(&endpoint, None).await.unwrap();
    assert!(
        response.starts_with("HTTP/1.1 200") && response.contains(r#""allowed":true"#),
        "{response}"
    );
}

#[tokio::test]
async fn with_a_client_ca_only_clients_with_its_certificates_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (known, unknown) = (Authority::new(), Authority::new());
    let endpoint = endpoint(folder.path(), Some(&known.pem)).await.unwrap();
    let response = post(&endpoint, Some(&known)).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    for client in [None, Some(&unknown)] {
        let refused = post(&endpoint, client).await;
        assert!(refused.is_err(), "{refused:?}");
    }
}

#[tokio::test]
async fn a_client_ca_that_is_not_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = endpoint(folder.path(), Some("nothing")).await.map(drop).unwrap_err();
    let message = causes(error.as_ref());
    let file = folder.path().join("client-ca.crt");
    assert_eq!(
        message,
        format!("cannot use the client CA {}: no certificate in it", file.display())
    );
    let credentials = Credentials {
        source: Source::Directory(folder.path().to_path_buf()),
        client_ca: Some("/nowhere/ca".into()),
    };
    let message = causes(credentials.identity().await.map(drop).unwrap_err().as_ref());
    assert!(
        message.starts_with("cannot use the client CA /nowhere/ca: "),
        "{message}"
    );
}
