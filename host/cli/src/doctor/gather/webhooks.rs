//! Registered webhooks, and the answers of their endpoints.

use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::ResourceInterpreterWebhookConfiguration;
use bulkhead_api::webhook::ClientConfig;
use bulkhead_controllers::{HttpsWebhooks, WebhookTransport};
use bulkhead_server::federation::system_roots;
use http::StatusCode;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhook, MutatingWebhookConfiguration};
use kube::{Api, Client, ResourceExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::listed;
use crate::doctor::checks;
use crate::doctor::facts::{Endpoint, Facts, Webhook};

/// Name of the registration of admission, unless the Lease has another name.
const NAME: &str = "bulkhead";
/// Maximum time from the start of a connection to the response.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(3);
/// Statuses with which a proxy answers in place of an endpoint that is gone.
const NO_BACKEND: [StatusCode; 3] = [
    StatusCode::BAD_GATEWAY,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];

/// Webhook whose endpoint is not asked yet.
struct Registered {
    webhook: Webhook,
    /// URL and CA bundle.
    config: ClientConfig,
}

/// Records the webhooks of Karmada's interpreter, and those of this installation's admission. Those of Services are
/// skipped, because only the control plane can resolve them.
pub(super) async fn gather(client: &Client, facts: &mut Facts) {
    let mut found = of_interpreter(client, facts).await;
    found.extend(of_admission(client, facts).await);
    // Karmada's client allows plain HTTP.
    let https = HttpsWebhooks::new(client.clone(), system_roots(), WebhookTransport::Karmada);
    let https = Arc::new(https);
    let mut asking = JoinSet::new();
    for (index, registered) in found.iter().enumerate() {
        let (https, config) = (Arc::clone(&https), registered.config.clone());
        asking.spawn(async move { (index, ask(&https, &config).await) });
    }
    while let Some(joined) = asking.join_next().await {
        if let Ok((index, endpoint)) = joined
            && let Some(registered) = found.get_mut(index)
        {
            registered.webhook.endpoint = endpoint;
        }
    }
    facts.webhooks = found.into_iter().map(|registered| registered.webhook).collect();
}

async fn of_interpreter(client: &Client, facts: &mut Facts) -> Vec<Registered> {
    let configurations = listed::<ResourceInterpreterWebhookConfiguration>(client, checks::WEBHOOKS, facts).await;
    let mut found = Vec::new();
    for configuration in configurations {
        let name = configuration.name_any();
        for hook in configuration.webhooks {
            let Some(url) = hook.client_config.url.clone() else {
                continue;
            };
            let webhook = Webhook {
                configuration: format!("ResourceInterpreterWebhookConfiguration {name}"),
                name: hook.name,
                url,
                is_required: true,
                endpoint: Endpoint::Answers,
            };
            let config = ClientConfig {
                service: None,
                ..hook.client_config
            };
            found.push(Registered { webhook, config });
        }
    }
    found
}

async fn of_admission(client: &Client, facts: &mut Facts) -> Vec<Registered> {
    let name = facts
        .installation
        .lease
        .as_ref()
        .map_or(NAME, |lease| &lease.name)
        .to_owned();
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let configuration = format!("MutatingWebhookConfiguration {name}");
    let hooks = match api.get_opt(&name).await {
        Ok(found) => found.and_then(|found| found.webhooks).unwrap_or_default(),
        Err(error) => {
            facts.unread(checks::WEBHOOKS, &configuration, &error);
            Vec::new()
        }
    };
    let registered = |hook: MutatingWebhook| {
        let url = hook.client_config.url?;
        let config = ClientConfig {
            url: Some(url.clone()),
            service: None,
            ca_bundle: hook.client_config.ca_bundle.as_ref().and_then(base64),
        };
        let webhook = Webhook {
            configuration: configuration.clone(),
            name: hook.name,
            url,
            // The default of Kubernetes is Fail.
            is_required: hook.failure_policy.as_deref() != Some("Ignore"),
            endpoint: Endpoint::Answers,
        };
        Some(Registered { webhook, config })
    };
    hooks.into_iter().filter_map(registered).collect()
}

/// Returns a CA bundle as text; an empty one stands for the certificates of the system.
fn base64(bundle: &ByteString) -> Option<String> {
    let text = serde_json::to_value(bundle).ok()?;
    text.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Sends a request to the endpoint of a webhook. A connection alone proves nothing: a proxy accepts it, too.
async fn ask(https: &HttpsWebhooks, config: &ClientConfig) -> Endpoint {
    let Some((host, port)) = config.url.as_deref().and_then(address) else {
        return Endpoint::Unreachable {
            why: "the URL has no host".to_owned(),
        };
    };
    let deadline = Instant::now() + ANSWER_TIME_MAX;
    let late = || format!("no answer within {} s", ANSWER_TIME_MAX.as_secs());
    match timeout_at(deadline, TcpStream::connect((host.as_str(), port))).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => return Endpoint::Refuses,
        Ok(Err(error)) => return Endpoint::Unreachable { why: error.to_string() },
        Err(_) => return Endpoint::Unreachable { why: late() },
    }
    match timeout_at(deadline, https.probe(config)).await {
        Ok(Ok(status)) if NO_BACKEND.contains(&status) => Endpoint::Silent {
            why: format!("it answered with {status}"),
        },
        // Webhooks refuse a GET, which is an answer.
        Ok(Ok(_)) => Endpoint::Answers,
        Ok(Err(fault)) => Endpoint::Silent { why: fault.message },
        Err(_) => Endpoint::Silent { why: late() },
    }
}

/// Returns host and port of an HTTPS URL.
fn address(url: &str) -> Option<(String, u16)> {
    let url: http::Uri = url.parse().ok()?;
    let host = url.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some((host, url.port_u16().unwrap_or(443)))
}

#[cfg(test)]
mod tests {
    use kube::client::Body;
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// Returns the acceptor of a TLS server for `localhost`, and its certificate as a CA bundle.
    fn tls() -> (TlsAcceptor, String) {
        let certificate = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certificate.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.cert.der().clone()], key)
            .unwrap();
        let bundle = base64(&ByteString(certificate.cert.pem().into_bytes())).unwrap();
        (TlsAcceptor::from(Arc::new(config)), bundle)
    }

    fn https() -> HttpsWebhooks {
        let hub = tower::service_fn(|_: http::Request<Body>| async {
            Err::<http::Response<Body>, _>(std::io::Error::other("there is no control plane"))
        });
        let roots = rustls::RootCertStore::empty();
        HttpsWebhooks::new(Client::new(hub, "default"), roots, WebhookTransport::Karmada)
    }

    async fn ask_url(url: String, ca_bundle: String) -> Endpoint {
        let config = ClientConfig {
            url: Some(url),
            service: None,
            ca_bundle: Some(ca_bundle),
        };
        ask(&https(), &config).await
    }

    /// Returns the state of an endpoint that answers every request with a status, or ends each connection after the
    /// handshake. `trusted` is false if the registration has the certificate of another server.
    async fn state(status: Option<u16>, trusted: bool) -> Endpoint {
        let (acceptor, bundle) = tls();
        let listener = TcpListener::bind("localhost:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut server = JoinSet::new();
        server.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let Some(status) = status else { continue };
                let _ = stream.read(&mut [0; 4096]).await;
                let head = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        let bundle = if trusted { bundle } else { tls().1 };
        ask_url(format!("https://localhost:{port}/interpret"), bundle).await
    }

    #[tokio::test]
    async fn an_endpoint_without_a_process_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/interpret", listener.local_addr().unwrap());
        drop(listener);
        assert_eq!(ask_url(url, tls().1).await, Endpoint::Refuses);
        let no_host = ask_url("/interpret".to_owned(), tls().1).await;
        assert!(matches!(no_host, Endpoint::Unreachable { .. }), "{no_host:?}");
    }

    #[tokio::test]
    async fn any_http_response_but_that_of_a_proxy_without_a_backend_is_an_answer() {
        for status in [200, 400, 404, 405, 500] {
            assert_eq!(state(Some(status), true).await, Endpoint::Answers, "{status}");
        }
        for status in [502, 503, 504] {
            let Endpoint::Silent { why } = state(Some(status), true).await else {
                panic!("{status} is an answer");
            };
            assert!(why.starts_with(&format!("it answered with {status}")), "{why}");
        }
    }

    #[tokio::test]
    async fn a_connection_without_a_response_is_no_answer() {
        let silent = |endpoint: Endpoint| matches!(endpoint, Endpoint::Silent { .. });
        assert!(silent(state(None, true).await));
        assert!(
            silent(state(Some(200), false).await),
            "the certificate is that of another server"
        );
        // A proxy may accept a connection and close it.
        let listener = TcpListener::bind("localhost:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let mut server = JoinSet::new();
        server.spawn(async move { while listener.accept().await.is_ok() {} });
        assert!(silent(ask_url(url, tls().1).await));
    }

    #[test]
    fn the_port_of_a_url_is_that_of_https_unless_it_has_one() {
        assert_eq!(
            address("https://bulkhead/interpret"),
            Some(("bulkhead".to_owned(), 443))
        );
        assert_eq!(address("https://[::1]:8443"), Some(("::1".to_owned(), 8443)));
    }
}
