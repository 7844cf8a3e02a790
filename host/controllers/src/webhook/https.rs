//! Webhooks over HTTPS.
//!
//! Every request has its own connection: requests are rare, and a connection that was idle for long fails more often
//! than it helps. Deliberate differences from Karmada, unless [`WebhookTransport::Karmada`] is set: plain HTTP is
//! refused at run time too, and a redirect is an error, since it would send the object to an address that is not
//! configured.

use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::webhook::{ClientConfig, Hook, ServiceReference};
use bulkhead_core::policy::{Fault, FaultKind};
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, LOCATION, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig as TlsConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use super::Webhooks;
use super::address::{Address, WebhookTransport, unreachable};
use super::breaker::Breaker;

/// Maximum size of a response, in bytes. An object in the API is smaller.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Maximum number of retries for an overloaded webhook that sets `Retry-After`.
const RETRIES_MAX: usize = 10;
/// Maximum number of redirects, if they are followed at all, as in Go's client.
const REDIRECTS_MAX: usize = 10;

/// Transport over HTTPS. It looks up the services of webhooks in the control plane.
pub struct HttpsWebhooks {
    hub: Client,
    system_roots: RootCertStore,
    transport: WebhookTransport,
    breaker: Breaker,
}

/// Request to an address. Without a body it is a GET.
struct Asked {
    address: Address,
    body: Option<Bytes>,
}

/// Response to a request.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl HttpsWebhooks {
    /// Creates the transport for the webhooks that the control plane configures. `system_roots` verify the
    /// certificates of webhooks without a `caBundle`.
    pub fn new(hub: Client, system_roots: RootCertStore, transport: WebhookTransport) -> Self {
        Self {
            hub,
            system_roots,
            transport,
            breaker: Breaker::default(),
        }
    }

    /// Sends a GET without a body to a webhook, and returns the status of its response. Redirects are not followed, and
    /// there is no time limit.
    ///
    /// # Errors
    ///
    /// The webhook cannot be reached, its certificate is not trusted, or it sends no HTTP response.
    pub async fn probe(&self, config: &ClientConfig) -> Result<StatusCode, Fault> {
        let (address, tls) = (self.address(config).await?, self.tls(config)?);
        let answer = ask(&Asked { address, body: None }, &tls).await?;
        Ok(answer.status)
    }

    async fn address(&self, config: &ClientConfig) -> Result<Address, Fault> {
        match (&config.url, &config.service) {
            // The service counts if admission let both pass, as in Karmada.
            (_, Some(reference)) => {
                let api: Api<Service> = Api::namespaced(self.hub.clone(), &reference.namespace);
                let reading = |error| {
                    unreachable(format!(
                        "reading service {}/{}: {error}",
                        reference.namespace, reference.name
                    ))
                };
                let service = api.get_opt(&reference.name).await.map_err(reading)?;
                let dns_name = format!("{}.{}.svc", reference.name, reference.namespace);
                let path = reference.path.as_deref().unwrap_or("/");
                Address::of_service(service.as_ref(), port(reference), &dns_name, path)
            }
            (Some(url), None) => Address::of_url(url, self.transport),
            (None, None) => Err(unreachable("its clientConfig must have either a service or a url")),
        }
    }

    fn tls(&self, config: &ClientConfig) -> Result<TlsConnector, Fault> {
        let roots = match &config.ca_bundle {
            None => self.system_roots.clone(),
            Some(bundle) => roots(bundle)?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Fault::new(FaultKind::HostBug, format!("TLS: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(TlsConnector::from(Arc::new(tls)))
    }

    async fn exchange(&self, hook: &Hook, body: Vec<u8>, within: Duration) -> Result<Vec<u8>, Fault> {
        let seconds = within.as_millis().div_ceil(1000);
        let address = self
            .address(&hook.client_config)
            .await?
            .with_parameter(&format!("timeout={seconds}s"));
        let tls = self.tls(&hook.client_config)?;
        let body = Bytes::from(body);
        let mut retries = 0;
        loop {
            let asked = Asked {
                address: address.clone(),
                body: Some(body.clone()),
            };
            let answer = self.answer(asked, &tls).await?;
            match retry_delay(answer.status, &answer.headers).filter(|_| retries < RETRIES_MAX) {
                Some(after) => {
                    retries += 1;
                    sleep(after).await;
                }
                None => return accepted(&answer),
            }
        }
    }

    /// Returns the response at the end of all redirects that are followed.
    async fn answer(&self, mut asked: Asked, tls: &TlsConnector) -> Result<Answer, Fault> {
        for _ in 0..=REDIRECTS_MAX {
            let answer = ask(&asked, tls).await?;
            match redirect(&asked, &answer, self.transport)? {
                None => return Ok(answer),
                Some(next) => asked = next,
            }
        }
        Err(unreachable(format!("it redirects more than {REDIRECTS_MAX} times")))
    }
}

impl Webhooks for HttpsWebhooks {
    fn send<'a>(&'a self, hook: &'a Hook, body: Vec<u8>, within: Duration) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        let place = place(&hook.client_config);
        Box::pin(async move {
            self.breaker.check(&place)?;
            let late = |_| Fault::new(FaultKind::Deadline, format!("no answer within {} s", within.as_secs()));
            let answer = timeout(within, self.exchange(hook, body, within))
                .await
                .map_err(late)
                .flatten();
            self.breaker.note(place, answer.as_ref().map(|_| ()));
            answer
        })
    }
}

/// Returns the address of a webhook as text.
fn place(config: &ClientConfig) -> String {
    match (&config.url, &config.service) {
        (_, Some(service)) => {
            let (port, path) = (port(service), service.path.as_deref().unwrap_or("/"));
            format!("{}/{}:{port}{path}", service.namespace, service.name)
        }
        (Some(url), None) => url.clone(),
        (None, None) => String::new(),
    }
}

/// Returns the port of a service; absent and 0 stand for 443.
fn port(service: &ServiceReference) -> i32 {
    service.port.filter(|port| *port != 0).unwrap_or(443)
}

/// Parses the certificates of a `caBundle`.
fn roots(bundle: &str) -> Result<RootCertStore, Fault> {
    let bytes: ByteString = serde_json::from_value(bundle.into())
        .map_err(|error| unreachable(format!("its caBundle is not base64: {error}")))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes.0) {
        let certificate = certificate.map_err(|error| unreachable(format!("its caBundle is not PEM: {error}")))?;
        roots
            .add(certificate)
            .map_err(|error| unreachable(format!("a certificate of its caBundle: {error}")))?;
    }
    if roots.is_empty() {
        return Err(unreachable("its caBundle holds no certificate"));
    }
    Ok(roots)
}

/// Returns the request that a redirect leads to, if it is followed. The statuses 307 and 308 keep method and body;
/// after any other the request is a GET without a body, as in Go's client.
fn redirect(asked: &Asked, answer: &Answer, transport: WebhookTransport) -> Result<Option<Asked>, Fault> {
    let body = match answer.status.as_u16() {
        307 | 308 => asked.body.clone(),
        301..=303 => None,
        _ => return Ok(None),
    };
    let location = answer.headers.get(LOCATION).and_then(|location| location.to_str().ok());
    let Some(location) = location.filter(|_| transport == WebhookTransport::Karmada) else {
        return Ok(None);
    };
    Ok(Some(Asked {
        address: asked.address.redirected(location, transport)?,
        body,
    }))
}

/// Sends one request on a connection of its own, and returns the response.
async fn ask(asked: &Asked, tls: &TlsConnector) -> Result<Answer, Fault> {
    let Address {
        host,
        port,
        server_name,
        path: _,
    } = &asked.address;
    let connecting = |error| unreachable(format!("connecting to {host}:{port}: {error}"));
    let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(connecting)?;
    let Some(server_name) = server_name else {
        return request_over_stream(stream, asked).await;
    };
    let name = ServerName::try_from(server_name.clone())
        .map_err(|_| unreachable(format!("{server_name:?} is not a valid TLS server name")))?;
    let trusting = |error| unreachable(format!("the certificate of {server_name}: {error}"));
    request_over_stream(tls.connect(name, stream).await.map_err(trusting)?, asked).await
}

async fn request_over_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    asked: &Asked,
) -> Result<Answer, Fault> {
    let Address {
        host,
        port,
        server_name: _,
        path,
    } = &asked.address;
    let asking = |error: hyper::Error| unreachable(format!("calling {host}:{port}: {error}"));
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(asking)?;
    let request = Request::builder()
        .method(if asked.body.is_some() {
            Method::POST
        } else {
            Method::GET
        })
        .uri(path)
        .header(HOST, asked.address.authority())
        .header(USER_AGENT, concat!("bulkhead/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "application/json, */*")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(asked.body.clone().unwrap_or_default()))
        .map_err(|error| unreachable(format!("its path {path:?}: {error}")))?;
    let answered = async {
        let answer = sender.send_request(request).await.map_err(asking)?;
        let (parts, answer) = answer.into_parts();
        let cut = |error| Fault::new(FaultKind::BadReply, format!("reading the response: {error}"));
        let body = Limited::new(answer, ANSWER_BYTES_MAX)
            .collect()
            .await
            .map_err(cut)?
            .to_bytes();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body,
        })
    };
    // The connection lives exactly as long as the request.
    tokio::pin!(answered);
    tokio::select! {
        biased;
        answer = &mut answered => answer,
        _ = connection => answered.await,
    }
}

/// Returns the delay after which an overloaded webhook accepts a retry.
fn retry_delay(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let overloaded = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let seconds = headers
        .get(RETRY_AFTER)
        .filter(|_| overloaded)?
        .to_str()
        .ok()?
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}

fn accepted(answer: &Answer) -> Result<Vec<u8>, Fault> {
    let Answer {
        status,
        headers: _,
        body,
    } = answer;
    if !matches!(
        *status,
        StatusCode::OK | StatusCode::CREATED | StatusCode::ACCEPTED | StatusCode::PARTIAL_CONTENT
    ) {
        let start: String = String::from_utf8_lossy(body)
            .chars()
            .filter(|c| !c.is_control())
            .take(200)
            .collect();
        return Err(Fault::new(
            FaultKind::GuestError,
            format!("it answered with {status}: {start}"),
        ));
    }
    if body.is_empty() {
        return Err(Fault::new(FaultKind::BadReply, "it returned an empty body"));
    }
    Ok(body.to_vec())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_service_counts_before_a_url_and_port_0_is_the_default() {
        let check = |config: Value, expected: &str| {
            let config: ClientConfig = serde_json::from_value(config).unwrap();
            assert_eq!(place(&config), expected);
        };
        let service = |port: Value| json!({"namespace": "ns", "name": "svc", "path": "/s", "port": port});
        check(
            json!({"url": "https://h/x", "service": service(json!(8443))}),
            "ns/svc:8443/s",
        );
        check(json!({"service": service(json!(0))}), "ns/svc:443/s");
        check(json!({"service": service(Value::Null)}), "ns/svc:443/s");
        check(json!({"url": "https://h/x"}), "https://h/x");
    }

    #[test]
    fn only_an_overloaded_hook_that_says_when_is_asked_again() {
        let check = |status: u16, after: Option<&str>, expected: Option<u64>| {
            let mut headers = HeaderMap::new();
            if let Some(after) = after {
                headers.insert(RETRY_AFTER, after.parse().unwrap());
            }
            let actual = retry_delay(StatusCode::from_u16(status).unwrap(), &headers);
            assert_eq!(actual, expected.map(Duration::from_secs), "{status} {after:?}");
        };
        check(503, Some("1"), Some(1));
        check(429, Some("2"), Some(2));
        check(503, None, None);
        check(503, Some("tomorrow"), None);
        check(200, Some("1"), None);
    }
}
