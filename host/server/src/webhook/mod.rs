//! HTTPS endpoint: mutates and validates objects on admission, and serves Karmada's interpreter with plugins.
//!
//! The decisions are made in [`bulkhead_api::admission`] and [`bulkhead_api::webhook::serve`]; this module contains
//! only the protocol, the certificate and the registration.

pub(super) mod certificate;
mod fault_events;
mod interpreter;
mod operations;
mod registration;
mod review;
mod source;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use bulkhead_api::ResourceInterpreterCustomization;
use bulkhead_api::admission::AdmissionOptions;
use bulkhead_api::webhook::serve::rules;
use bulkhead_controllers::Unanswered;
use bulkhead_core::time::Time;
use bulkhead_plugin::Layer;
use bulkhead_runtime::store::Store;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tracing::{info, warn};

use self::certificate::Certificate;
pub(super) use self::interpreter::Interpreter;
pub(super) use self::operations::OfferedOperations;
use self::registration::Registration;
pub use self::source::SECRET as WEBHOOK_SECRET;
pub(super) use self::source::Source;
use super::server::{self, Application, Gate, Limits, Overloaded, Refusal, Transport};

/// Limits of the endpoint. API servers do not store objects larger than about 1.5 MiB, and a review may contain two
/// of them. A client uses a few connections.
const LIMITS: Limits = Limits {
    connections: 512,
    body_bytes: REQUEST_BYTES_MAX,
    buffered_bytes: 4 * REQUEST_BYTES_MAX,
};
/// Maximum size of a request body, in bytes.
const REQUEST_BYTES_MAX: usize = 8 << 20;
/// Maximum number of concurrent reviews.
const REVIEWS_MAX: usize = 32;
/// Retry interval of a failed registration.
const RETRY: std::time::Duration = std::time::Duration::from_secs(5);

/// Services of the endpoint.
#[derive(Clone)]
pub(super) struct WebhookServices {
    /// Name of the registration: that of the Lease, so that two installations do not replace each other's.
    pub(super) name: String,
    /// Options of admission.
    pub(super) admission: AdmissionOptions,
    /// True to mutate and validate Karmada's kinds as well.
    pub(super) karmada_kinds: bool,
    /// Known customizations, which a new one must not conflict with.
    pub(super) customizations: Arc<Store<ResourceInterpreterCustomization>>,
    /// Plugins for Karmada's interpreter, if enabled.
    pub(super) interpreter: Option<Interpreter>,
}

/// Certificate of the endpoint, and its client authentication.
pub(super) struct Credentials {
    /// Source of the certificate.
    pub(super) source: Source,
    /// File with the CA certificates of clients; without it, clients need no certificate.
    pub(super) client_ca: Option<PathBuf>,
}

impl Credentials {
    async fn identity(&self) -> anyhow::Result<Identity> {
        let (client_ca, clients) = match &self.client_ca {
            None => (None, None),
            Some(path) => {
                let about = || format!("cannot use the client CA {}", path.display());
                let authorities = std::fs::read_to_string(path).with_context(about)?;
                let clients = certificate::clients_of(&authorities).with_context(about)?;
                (Some(authorities), Some(clients))
            }
        };
        let certificate = self.source.current().await?;
        let acceptor = TlsAcceptor::from(Arc::new(certificate.server_config(clients)?));
        Ok(Identity {
            certificate,
            client_ca,
            acceptor,
        })
    }
}

/// Loaded credentials.
struct Identity {
    certificate: Certificate,
    client_ca: Option<String>,
    acceptor: TlsAcceptor,
}

/// Running endpoint. Dropping it stops the endpoint.
pub(super) struct Endpoint {
    /// Address that it listens on.
    pub(super) address: SocketAddr,
    services: WebhookServices,
    identity: watch::Receiver<Arc<Identity>>,
    _tasks: tokio::task::JoinSet<()>,
}

/// Starts the endpoint.
pub(super) async fn start(
    address: SocketAddr,
    credentials: Credentials,
    services: WebhookServices,
) -> anyhow::Result<Endpoint> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("listening on {address} for webhooks"))?;
    let address = listener.local_addr()?;
    let (renewed, identity) = watch::channel(Arc::new(credentials.identity().await?));
    let current = identity.clone();
    let transport = Transport::Tls(Box::new(move || current.borrow().acceptor.clone()));
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(server::serve(
        listener,
        transport,
        Webhook::new(services.clone()),
        LIMITS,
        "the webhook endpoint",
    ));
    tasks.spawn(renew(credentials, renewed));
    Ok(Endpoint {
        address,
        services,
        identity,
        _tasks: tasks,
    })
}

/// Polls for new credentials. Logs an error and keeps the old ones.
async fn renew(credentials: Credentials, renewed: watch::Sender<Arc<Identity>>) {
    loop {
        tokio::time::sleep(source::RELOAD).await;
        match credentials.identity().await {
            Ok(identity) if identity.is_like(&renewed.borrow()) => {}
            Ok(identity) => {
                info!("the certificate of the webhook was replaced");
                renewed.send_replace(Arc::new(identity));
            }
            Err(error) => {
                warn!("cannot reload the certificate of the webhook, the old one stays in use: {error:#}");
            }
        }
    }
}

impl Identity {
    fn is_like(&self, other: &Self) -> bool {
        self.certificate == other.certificate && self.client_ca == other.client_ca
    }
}

impl Endpoint {
    /// Keeps the endpoint registered under a URL, across changes of plugins and of the certificate. Never returns.
    pub(super) async fn keep_registered(&self, client: &Client, url: &str) {
        let mut identity = self.identity.clone();
        let (changed, mut plugins) = watch::channel(());
        let _subscription = self.services.interpreter.as_ref().map(|interpreter| {
            interpreter.registry.subscribe(move || {
                changed.send_replace(());
            })
        });
        let mut written = None;
        loop {
            identity.mark_unchanged();
            plugins.mark_unchanged();
            let wanted = self.registration(url, &identity.borrow());
            let mut retry = None;
            if written.as_ref() != Some(&wanted) {
                match wanted.write(client).await {
                    Ok(()) => {
                        info!("registered at {url}");
                        written = Some(wanted);
                    }
                    Err(error) => {
                        warn!("{error:#}");
                        retry = Some(RETRY);
                    }
                }
            }
            let later = async {
                match retry {
                    Some(after) => tokio::time::sleep(after).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Ok(()) = identity.changed() => {}
                Ok(()) = plugins.changed() => {}
                () = later => {}
            }
        }
    }

    /// Returns the certificate in use, in PEM.
    pub(super) fn certificate(&self) -> Vec<u8> {
        self.identity.borrow().certificate.chain_pem.clone().into_bytes()
    }

    fn registration(&self, url: &str, identity: &Identity) -> Registration {
        let offered = |by: &Interpreter| {
            by.offered.of(rules(
                &by.registry.policies_before(Layer::Customizations),
                Time::new(super::now()),
            ))
        };
        Registration {
            name: self.services.name.clone(),
            url: url.to_owned(),
            authorities: identity.certificate.ca_pem.clone(),
            karmada_kinds: self.services.karmada_kinds,
            interprets: self.services.interpreter.as_ref().map(offered),
        }
    }
}

fn stored(customizations: &Store<ResourceInterpreterCustomization>) -> Vec<serde_json::Value> {
    customizations
        .list()
        .iter()
        .filter_map(|stored| serde_json::to_value(&**stored).ok())
        .collect()
}

/// Application for reviews and interpreter requests.
struct Webhook {
    services: WebhookServices,
    reviews: Gate,
}

impl Webhook {
    fn new(services: WebhookServices) -> Self {
        Self {
            services,
            reviews: Gate::new(REVIEWS_MAX, REQUEST_BYTES_MAX),
        }
    }

    /// Returns the interpreter if it serves the path.
    fn interpreter(&self, path: &str) -> Option<&Interpreter> {
        self.services.interpreter.as_ref().filter(|_| path == interpreter::PATH)
    }
}

impl Application for Webhook {
    type Body = Full<Bytes>;
    type Error = Infallible;

    fn answer_head(&self, head: &Parts) -> Option<Response<Full<Bytes>>> {
        let path = head.uri.path();
        if path != review::PATH && self.interpreter(path).is_none() {
            return Some(server::plain(
                StatusCode::NOT_FOUND,
                format!("reviews are answered at {}\n", review::PATH),
            ));
        }
        let is_post = head.method == Method::POST;
        (!is_post).then(|| server::plain(StatusCode::METHOD_NOT_ALLOWED, "a request is posted\n".to_owned()))
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (path, size) = (request.uri().path(), request.body().len());
        let answered = if let Some(interpreter) = self.interpreter(path) {
            interpreter.clone().answer(request.into_body()).await
        } else {
            let (services, body) = (self.services.clone(), request.into_body());
            let review = move || review::answer(&body, services.admission, &|| stored(&services.customizations));
            self.reviews
                .run(size, review)
                .await
                .unwrap_or_else(|overloaded| Err(overloaded.into()))
        };
        Ok(match answered {
            Ok(answer) => {
                let mut response = Response::new(Full::from(answer));
                response
                    .headers_mut()
                    .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                response
            }
            Err(error) if error.is::<Overloaded>() || error.is::<Unanswered>() => {
                let text = format!("cannot answer the request: {error}; send it again\n");
                server::plain(StatusCode::SERVICE_UNAVAILABLE, text)
            }
            Err(error) => server::plain(StatusCode::BAD_REQUEST, format!("{error:#}\n")),
        })
    }

    fn refuse(&self, refusal: &Refusal) -> Response<Full<Bytes>> {
        server::plain(refusal.status(), format!("{refusal}\n"))
    }
}

#[cfg(test)]
mod tests;
