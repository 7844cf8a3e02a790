//! Hooks over HTTPS.
//!
//! Every question has a connection of its own: hooks are asked rarely, and a connection that was idle for long fails
//! more often than it helps. Differences from Karmada on purpose: plain HTTP is refused at run time too, and a redirect
//! is an error, since it would take the object to an address that nobody configured.

use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::webhook::{ClientConfig, Hook};
use bulkhead_core::policy::{Fault, FaultKind};
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig as TlsConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use super::Webhooks;

/// Longest answer, in bytes. An object in the API is smaller.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// How often an overloaded hook that says when to come back is asked again.
const RETRIES_MAX: usize = 10;

/// Asks hooks over HTTPS, and the control plane where their services are.
pub struct HttpsWebhooks {
    hub: Client,
    system_roots: RootCertStore,
}

/// Where a hook is.
#[derive(Debug, PartialEq, Eq)]
struct Address {
    host: String,
    port: u16,
    /// What the certificate has to be for.
    server_name: String,
    path: String,
}

fn unreachable(message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Unreachable, message)
}

impl HttpsWebhooks {
    /// For hooks that the control plane configures; `system_roots` may have signed the certificates of hooks that name
    /// no others.
    pub fn new(hub: Client, system_roots: RootCertStore) -> Self {
        Self { hub, system_roots }
    }

    async fn address(&self, config: &ClientConfig) -> Result<Address, Fault> {
        match (&config.url, &config.service) {
            (Some(url), None) => of_url(url),
            (None, Some(reference)) => {
                let api: Api<Service> = Api::namespaced(self.hub.clone(), &reference.namespace);
                let reading =
                    |error| unreachable(format!("reading service {}/{}: {error}", reference.namespace, reference.name));
                let service = api.get_opt(&reference.name).await.map_err(reading)?;
                let port = reference.port.unwrap_or(443);
                let server_name = format!("{}.{}.svc", reference.name, reference.namespace);
                let (host, port) = of_service(service.as_ref(), port, &server_name)?;
                let path = reference.path.clone().unwrap_or_else(|| "/".to_owned());
                Ok(Address { host, port, server_name, path })
            }
            _ => Err(unreachable("its clientConfig must have either a service or a url")),
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
        let address = self.address(&hook.client_config).await?;
        let tls = self.tls(&hook.client_config)?;
        let body = Bytes::from(body);
        let mut retries = 0;
        loop {
            let (status, headers, answer) = post(&address, &tls, body.clone(), within).await?;
            match come_back(status, &headers).filter(|_| retries < RETRIES_MAX) {
                Some(after) => {
                    retries += 1;
                    sleep(after).await;
                }
                None => return accepted(status, &answer),
            }
        }
    }
}

impl Webhooks for HttpsWebhooks {
    fn send<'a>(&'a self, hook: &'a Hook, body: Vec<u8>, within: Duration) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        let answer = timeout(within, self.exchange(hook, body, within));
        Box::pin(async move {
            let late = |_| Fault::new(FaultKind::Deadline, format!("no answer within {} s", within.as_secs()));
            answer.await.map_err(late)?
        })
    }
}

/// The certificates of a `caBundle`.
fn roots(bundle: &str) -> Result<RootCertStore, Fault> {
    let bytes: ByteString = serde_json::from_value(bundle.into())
        .map_err(|error| unreachable(format!("its caBundle is not base64: {error}")))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes.0) {
        let certificate = certificate.map_err(|error| unreachable(format!("its caBundle is not PEM: {error}")))?;
        roots.add(certificate).map_err(|error| unreachable(format!("a certificate of its caBundle: {error}")))?;
    }
    if roots.is_empty() {
        return Err(unreachable("its caBundle holds no certificate"));
    }
    Ok(roots)
}

fn of_url(url: &str) -> Result<Address, Fault> {
    let uri: Uri = url.parse().map_err(|error| unreachable(format!("its url {url:?} is none: {error}")))?;
    if uri.scheme_str() != Some("https") {
        return Err(unreachable(format!("its url {url:?} is not https, and nothing else is asked")));
    }
    let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| unreachable("its url names no host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    Ok(Address { server_name: host.clone(), host, port: uri.port_u16().unwrap_or(443), path })
}

/// Host and port of a service, as Kubernetes resolves it from outside of the cluster's network.
fn of_service(service: Option<&Service>, port: i32, dns_name: &str) -> Result<(String, u16), Fault> {
    let number = u16::try_from(port).map_err(|_| unreachable(format!("its port {port} is none")))?;
    let Some(spec) = service.and_then(|service| service.spec.as_ref()) else {
        return Ok((dns_name.to_owned(), number));
    };
    match spec.type_.as_deref().unwrap_or("ClusterIP") {
        "ExternalName" => Ok((spec.external_name.clone().unwrap_or_default(), number)),
        "ClusterIP" | "NodePort" | "LoadBalancer" => {
            let declared = spec.ports.iter().flatten().any(|declared| declared.port == port);
            if !declared {
                return Err(unreachable(format!("its service {dns_name} has no port {port}")));
            }
            match spec.cluster_ip.as_deref() {
                None | Some("" | "None") => Err(unreachable(format!("its service {dns_name} has no address"))),
                Some(address) => Ok((address.to_owned(), number)),
            }
        }
        other => Err(unreachable(format!("its service {dns_name} is of the type {other}"))),
    }
}

/// One request and its answer.
async fn post(
    address: &Address,
    tls: &TlsConnector,
    body: Bytes,
    within: Duration,
) -> Result<(StatusCode, HeaderMap, Bytes), Fault> {
    let Address { host, port, server_name, path } = address;
    let connecting = |error| unreachable(format!("connecting to {host}:{port}: {error}"));
    let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(connecting)?;
    let name = ServerName::try_from(server_name.clone())
        .map_err(|_| unreachable(format!("{server_name:?} is no name that a certificate could be for")))?;
    let trusting = |error| unreachable(format!("the certificate of {server_name}: {error}"));
    let stream = tls.connect(name, stream).await.map_err(trusting)?;
    let asking = |error: hyper::Error| unreachable(format!("asking {host}:{port}: {error}"));
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(asking)?;
    let seconds = within.as_millis().div_ceil(1000);
    let separator = if path.contains('?') { '&' } else { '?' };
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("{path}{separator}timeout={seconds}s"))
        .header(HOST, format!("{server_name}:{port}"))
        .header(USER_AGENT, concat!("bulkhead/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "application/json, */*")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body))
        .map_err(|error| unreachable(format!("its path {path:?}: {error}")))?;
    let asked = async {
        let answer = sender.send_request(request).await.map_err(asking)?;
        let (parts, answer) = answer.into_parts();
        let cut = |error| Fault::new(FaultKind::BadReply, format!("reading the answer: {error}"));
        let answer = Limited::new(answer, ANSWER_BYTES_MAX).collect().await.map_err(cut)?.to_bytes();
        Ok((parts.status, parts.headers, answer))
    };
    // The connection lives exactly as long as the question.
    tokio::pin!(asked);
    tokio::select! {
        biased;
        answered = &mut asked => answered,
        _ = connection => asked.await,
    }
}

/// When an overloaded hook wants to be asked again.
fn come_back(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let overloaded = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let seconds = headers.get(RETRY_AFTER).filter(|_| overloaded)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn accepted(status: StatusCode, answer: &Bytes) -> Result<Vec<u8>, Fault> {
    if !matches!(status, StatusCode::OK | StatusCode::CREATED | StatusCode::ACCEPTED | StatusCode::PARTIAL_CONTENT) {
        let start: String = String::from_utf8_lossy(answer).chars().filter(|c| !c.is_control()).take(200).collect();
        return Err(Fault::new(FaultKind::GuestError, format!("it answered with {status}: {start}")));
    }
    if answer.is_empty() {
        return Err(Fault::new(FaultKind::BadReply, "it answered with nothing"));
    }
    Ok(answer.to_vec())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_url_has_to_be_safe() {
        let check = |url: &str, expected: Option<(&str, u16, &str)>| {
            let told = of_url(url).ok().map(|address| (address.host, address.port, address.path));
            let expected = expected.map(|(host, port, path)| (host.to_owned(), port, path.to_owned()));
            assert_eq!(told, expected, "{url}");
        };
        check("https://h.example.io", Some(("h.example.io", 443, "/")));
        check("https://h.example.io:8443/x", Some(("h.example.io", 8443, "/x")));
        check("https://[::1]:8443/x", Some(("::1", 8443, "/x")));
        check("http://h.example.io/x", None);
        check("h.example.io", None);
        check("", None);
    }

    #[test]
    fn a_service_is_where_its_type_says() {
        let check = |spec: Value, expected: Option<(&str, u16)>| {
            let service: Service = serde_json::from_value(json!({"spec": spec})).unwrap();
            let told = of_service(Some(&service), 8443, "s.n.svc").ok();
            assert_eq!(told, expected.map(|(host, port)| (host.to_owned(), port)), "{spec}");
        };
        let ports = json!([{"port": 8443}]);
        check(json!({"clusterIP": "10.0.0.1", "ports": ports}), Some(("10.0.0.1", 8443)));
        check(json!({"type": "NodePort", "clusterIP": "10.0.0.1", "ports": ports}), Some(("10.0.0.1", 8443)));
        check(json!({"clusterIP": "10.0.0.1", "ports": [{"port": 1}]}), None);
        check(json!({"clusterIP": "None", "ports": ports}), None);
        check(json!({"type": "ExternalName", "externalName": "h.example.io"}), Some(("h.example.io", 8443)));
        assert_eq!(of_service(None, 443, "s.n.svc").ok(), Some(("s.n.svc".to_owned(), 443)));
    }

    #[test]
    fn only_an_overloaded_hook_that_says_when_is_asked_again() {
        let check = |status: u16, after: Option<&str>, expected: Option<u64>| {
            let mut headers = HeaderMap::new();
            if let Some(after) = after {
                headers.insert(RETRY_AFTER, after.parse().unwrap());
            }
            let told = come_back(StatusCode::from_u16(status).unwrap(), &headers);
            assert_eq!(told, expected.map(Duration::from_secs), "{status} {after:?}");
        };
        check(503, Some("1"), Some(1));
        check(429, Some("2"), Some(2));
        check(503, None, None);
        check(503, Some("tomorrow"), None);
        check(200, Some("1"), None);
    }
}
