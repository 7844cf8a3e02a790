//! HTTP client of the exporter. It runs on the thread that exports, and on no other.

use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bulkhead_runtime::causes::causes;
use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use reqwest::redirect::Policy;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio::runtime::{Builder, Runtime};

/// Maximum length of an answer, in bytes. It has a count and a message.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Cause of the last failed request.
pub(super) type LastError = Arc<Mutex<Option<String>>>;

/// Client that blocks its thread until the answer has arrived.
pub(super) struct BlockingClient {
    http: reqwest::Client,
    runtime: Runtime,
    last_error: LastError,
}

impl fmt::Debug for BlockingClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingClient").finish_non_exhaustive()
    }
}

impl BlockingClient {
    /// Creates a client with a time limit for each request. `ca_file` has authorities besides those of the system.
    pub(super) fn new(timeout: Duration, ca_file: Option<&Path>, last_error: LastError) -> Result<Self, String> {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(ca_file)?)
            .redirect(Policy::none())
            .timeout(timeout)
            .build()
            .map_err(|error| causes(&error))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self {
            http,
            runtime: runtime.map_err(|error| format!("starting the runtime of the exporter: {error}"))?,
            last_error,
        })
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, reqwest::Error> {
        let request = reqwest::Request::try_from(request)?;
        let mut answer = self.http.execute(request).await?;
        let mut body = BytesMut::new();
        while let Some(chunk) = answer.chunk().await? {
            body.extend_from_slice(&chunk[..chunk.len().min(ANSWER_BYTES_MAX - body.len())]);
            if body.len() >= ANSWER_BYTES_MAX {
                break;
            }
        }
        let mut response = Response::new(body.freeze());
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response)
    }
}

impl HttpClient for BlockingClient {
    fn send_bytes<'client, 'future>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'future>>
    where
        'client: 'future,
        Self: 'future,
    {
        // The exporter's thread waits for the future in any case, and has no reactor.
        let answer = self.runtime.block_on(self.send(request));
        // Credentials may be part of the URL.
        let answer = answer.map_err(reqwest::Error::without_url);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) =
            answer.as_ref().err().map(|error| causes(error));
        Box::pin(std::future::ready(answer.map_err(HttpError::from)))
    }
}

/// Returns the configuration of TLS.
fn tls(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    // Unreadable certificates of the system are skipped: only a receiver that needs one is reported.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let shown = path.display();
        let certificates = CertificateDer::pem_file_iter(path).map_err(|error| format!("{shown}: {error}"))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| format!("{shown}: is not PEM: {error}"))?;
            roots.add(certificate).map_err(|error| format!("{shown}: {error}"))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| format!("TLS: {error}"))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests;
