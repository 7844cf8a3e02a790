//! Webhook reviews of which only the first half arrives.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rcgen::{CertificateParams, KeyPair};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_rustls::TlsConnector;

use crate::outside::federation::{self, Federation};
use crate::outside::program::{self, Program};
use crate::peak::Peak;

const REVIEWS: usize = 100;
/// Size of a whole review, the largest that the endpoint accepts.
const REVIEW_BYTES: usize = 8 << 20;
/// Size of one write.
const WRITE_BYTES: usize = 64 << 10;
/// Time for which the halves stay open. The endpoint closes a connection whose body takes longer than 10 s.
const HOLD: Duration = Duration::from_secs(8);
/// Time for the program to finish its start.
const SETTLE: Duration = Duration::from_secs(10);
const HOST: &str = "127.0.0.1";

/// Writes a certificate for the endpoint. Returns the clients' trust in it.
fn certificate(folder: &Path) -> anyhow::Result<Arc<ClientConfig>> {
    std::fs::create_dir_all(folder)?;
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec![HOST.to_owned()])?.self_signed(&key)?;
    for (name, text) in [
        ("tls.crt", certificate.pem()),
        ("ca.crt", certificate.pem()),
        ("tls.key", key.serialize_pem()),
    ] {
        std::fs::write(folder.join(name), text).with_context(|| format!("writing {name}"))?;
    }
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// Sends half a review and keeps the connection until the end of the measurement. Returns the bytes that were sent.
async fn send_half(address: String, connector: TlsConnector, until: Instant) -> anyhow::Result<usize> {
    let stream = TcpStream::connect(&address).await?;
    let mut stream = connector.connect(ServerName::try_from(HOST)?, stream).await?;
    let head = format!(
        "POST /admit HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {REVIEW_BYTES}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let (part, mut sent) = (vec![b' '; WRITE_BYTES], 0);
    while sent < REVIEW_BYTES / 2 {
        // The endpoint may stop reading, or close the connection in favour of another one.
        match timeout_at(until, stream.write_all(&part)).await {
            Ok(Ok(())) => sent += part.len(),
            Ok(Err(_)) | Err(_) => break,
        }
    }
    let _ = timeout_at(until, stream.flush()).await;
    sleep_until(until).await;
    Ok(sent)
}

/// Sends the halves to a program. Returns the description of the measurement, and the peak in KiB.
pub(crate) async fn receive(program: Option<PathBuf>) -> anyhow::Result<(String, u64)> {
    let program = program.map_or_else(program::beside_this, Ok)?;
    let temporary = tempfile::tempdir()?;
    let path = |name: &str| temporary.path().join(name);
    let connector = TlsConnector::from(certificate(&path("certificate"))?);
    let federation = Federation::start(&federation::clock(), &[], Box::new(|_: &str, _: &str| {})).await?;
    federation.write_kubeconfig(&path("kubeconfig"), None)?;
    let arguments = [
        "run".to_owned(),
        "--mode=all".to_owned(),
        "--plugin-cache=off".to_owned(),
        "--plugin-state-directory=off".to_owned(),
        "--health-probe-bind-address=127.0.0.1:0".to_owned(),
        "--webhook-bind-address=127.0.0.1:0".to_owned(),
        format!("--webhook-cert-dir={}", path("certificate").display()),
        format!("--kubeconfig={}", path("kubeconfig").display()),
    ];
    let mut running = Program::start(&program, 2, &path("log"), &arguments)?;
    let address = running.said("webhooks answered at https://").await?;
    tokio::time::sleep(SETTLE).await;

    let peak = Peak::start(running.proc())?;
    let (mut clients, until) = (JoinSet::new(), Instant::now() + HOLD);
    for _ in 0..REVIEWS {
        clients.spawn(send_half(address.clone(), connector.clone(), until));
    }
    // A client whose connection is refused or closed has sent less, or nothing.
    let sent: usize = clients.join_all().await.into_iter().map(|sent| sent.unwrap_or(0)).sum();
    let peak_kib = peak.kib()?;
    if let Some(status) = running.ended()? {
        bail!("the program ended with {status}:\n{}", running.log());
    }
    if sent < REVIEWS * WRITE_BYTES {
        bail!("only {sent} bytes were sent:\n{}", running.log());
    }
    running.stop().await?;
    let subject = format!(
        "receive the first half of {REVIEWS} reviews of {} MiB",
        REVIEW_BYTES >> 20
    );
    Ok((format!("{subject}, {} MiB sent", sent >> 20), peak_kib))
}
