//! The HTTPS endpoint: completes and checks objects before the API server stores them, and answers Karmada's
//! interpreter with plugins.
//!
//! What it decides is in [`bulkhead_api::admission`] and [`bulkhead_api::webhook::serve`]; here are only the protocol,
//! the certificate and the registration.

pub(super) mod certificate;
mod interpreter;
mod registration;
mod review;
mod source;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use bulkhead_api::ResourceInterpreterCustomization;
use bulkhead_api::admission::AdmissionOptions;
use bulkhead_api::webhook::serve::rules;
use bulkhead_controllers::Store;
use bulkhead_core::time::Time;
use bulkhead_plugin::{Layer, Registry};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use self::certificate::Certificate;
use self::registration::Registration;
pub(super) use self::source::Source;
use super::{News, say};

/// Largest request that is read; API servers do not store objects larger than about 1.5 MiB, and a question may hold
/// two of them.
const REQUEST_BYTES_MAX: usize = 8 << 20;
/// How soon a registration that failed is tried again.
const RETRY: std::time::Duration = std::time::Duration::from_secs(5);

/// What the endpoint answers.
#[derive(Clone)]
pub(super) struct Answers {
    /// Under which name it is registered: that of the Lease, so that two installations do not take each other's place.
    pub(super) name: String,
    /// Switches of admission.
    pub(super) admission: AdmissionOptions,
    /// Whether Karmada's kinds are completed and checked too.
    pub(super) karmada_kinds: bool,
    /// The customizations there are, with which a new one must not conflict.
    pub(super) customizations: Arc<Store<ResourceInterpreterCustomization>>,
    /// Plugins for Karmada's interpreter, if it is to ask them.
    pub(super) interpreter: Option<Arc<Registry>>,
}

/// What is served with, until there is a newer one.
struct Identity {
    certificate: Certificate,
    acceptor: TlsAcceptor,
}

impl Identity {
    fn new(certificate: Certificate) -> anyhow::Result<Arc<Self>> {
        let acceptor = TlsAcceptor::from(Arc::new(certificate.server_config()?));
        Ok(Arc::new(Self { certificate, acceptor }))
    }
}

/// The running endpoint. It ends when this is dropped.
pub(super) struct Endpoint {
    /// Where it listens.
    pub(super) address: SocketAddr,
    answers: Answers,
    identity: watch::Receiver<Arc<Identity>>,
    _tasks: tokio::task::JoinSet<()>,
}

/// Starts to serve.
pub(super) async fn start(address: SocketAddr, source: Source, answers: Answers) -> anyhow::Result<Endpoint> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("listening on {address} for webhooks"))?;
    let address = listener.local_addr()?;
    let (renewed, identity) = watch::channel(Identity::new(source.current().await?)?);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(accept(listener, identity.clone(), answers.clone()));
    tasks.spawn(renew(source, renewed));
    Ok(Endpoint { address, answers, identity, _tasks: tasks })
}

/// Looks for a newer certificate. One that cannot be used is said once, and the one before stays.
async fn renew(source: Source, renewed: watch::Sender<Arc<Identity>>) {
    let mut news = News::default();
    loop {
        tokio::time::sleep(source::RELOAD).await;
        let before = renewed.borrow().certificate.clone();
        let newer = match source.current().await {
            Ok(current) if current == before => continue,
            Ok(current) => Identity::new(current),
            Err(error) => Err(error),
        };
        match newer {
            Ok(identity) => {
                say("the certificate of the webhook was replaced");
                renewed.send_replace(identity);
                news.over();
            }
            Err(error) => news.say(format!("the certificate of the webhook stays as it is: {error:#}")),
        }
    }
}

async fn accept(listener: TcpListener, identity: watch::Receiver<Arc<Identity>>, answers: Answers) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // The process is out of file handles, for example; connections end, so it is worth waiting.
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        let (acceptor, answers) = (identity.borrow().acceptor.clone(), answers.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let answer = service_fn(move |request| answer(request, answers.clone()));
            let connection = auto::Builder::new(TokioExecutor::new());
            let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

impl Endpoint {
    /// Keeps the endpoint registered under a URL, for ever: after a change of plugins, and of the certificate.
    pub(super) async fn keep_registered(&self, client: &Client, url: &str) {
        let mut identity = self.identity.clone();
        let (changed, mut plugins) = watch::channel(());
        let _subscription = self.answers.interpreter.as_ref().map(|registry| {
            registry.subscribe(move || {
                changed.send_replace(());
            })
        });
        let (mut written, mut news) = (None, News::default());
        loop {
            identity.mark_unchanged();
            plugins.mark_unchanged();
            let wanted = self.registration(url, &identity.borrow());
            let mut retry = None;
            if written.as_ref() != Some(&wanted) {
                match wanted.write(client).await {
                    Ok(()) => {
                        say(&format!("registered at {url}"));
                        news.over();
                        written = Some(wanted);
                    }
                    Err(error) => {
                        news.say(format!("{error:#}"));
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

    /// The certificate in use, in PEM.
    pub(super) fn certificate(&self) -> Vec<u8> {
        self.identity.borrow().certificate.chain_pem.clone().into_bytes()
    }

    fn registration(&self, url: &str, identity: &Identity) -> Registration {
        let offered =
            |registry: &Arc<Registry>| rules(&registry.policies_before(Layer::Customizations), Time::new(super::now()));
        Registration {
            name: self.answers.name.clone(),
            url: url.to_owned(),
            authorities: identity.certificate.ca_pem.clone(),
            karmada_kinds: self.answers.karmada_kinds,
            interprets: self.answers.interpreter.as_ref().map(offered),
        }
    }
}

fn stored(customizations: &Store<ResourceInterpreterCustomization>) -> Vec<serde_json::Value> {
    customizations.list().iter().filter_map(|stored| serde_json::to_value(&**stored).ok()).collect()
}

async fn answer(
    request: Request<Incoming>,
    answers: Answers,
) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    let plain = |status: StatusCode, text: String| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        response
    };
    let path = request.uri().path().to_owned();
    let interpreter = answers.interpreter.filter(|_| path == interpreter::PATH);
    if path != review::PATH && interpreter.is_none() {
        let there = format!("reviews are answered at {}\n", review::PATH);
        return Ok(plain(StatusCode::NOT_FOUND, there));
    }
    if request.method() != Method::POST {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, "a request is posted\n".to_owned()));
    }
    let body = match Limited::new(request.into_body(), REQUEST_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return Ok(plain(StatusCode::BAD_REQUEST, format!("reading the request: {error}\n"))),
    };
    let answered = match interpreter {
        Some(registry) => interpreter::answer(registry, body).await,
        None => review::answer(&body, answers.admission, &|| stored(&answers.customizations)),
    };
    Ok(match answered {
        Ok(answer) => {
            let mut response = Response::new(Full::from(answer));
            let json = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert(http::header::CONTENT_TYPE, json);
            response
        }
        Err(error) => plain(StatusCode::BAD_REQUEST, format!("{error:#}\n")),
    })
}
