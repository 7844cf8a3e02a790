//! OCI registry in process, which implements pull and push of the distribution API and injects faults.
//!
//! It runs on a thread of its own, so that tests of async code and of the program can use it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use futures::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// `user:password` in base64.
const BASIC: &str = "Basic dXNlcjpwYXNzd29yZA==";
/// Refresh token that the token server accepts.
pub(crate) const REFRESH_TOKEN: &str = "refresh";

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Authentication that the registry requires of the user `user` with the password `password`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authentication {
    None,
    Basic,
    /// Tokens of the registry's own token server.
    Token,
}

/// Misbehaviour of one request.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// This status, with an error in the format of the API.
    Status(u16),
    /// 429 with this `Retry-After` in seconds.
    Limited(u64),
    /// The body ends after this number of bytes.
    Truncated(usize),
    /// One byte of the body is another one.
    Changed,
    /// Redirect to this URL.
    Redirect(String),
    /// No answer.
    Silent,
}

/// A running registry. It stops when it is dropped.
pub(crate) struct Registry {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    authentication: Authentication,
    /// Scheme and address.
    origin: String,
    blobs: BTreeMap<String, Bytes>,
    /// Manifests by `repository:version`, with their media types.
    manifests: BTreeMap<String, (String, Bytes)>,
    /// Faults by a part of `METHOD path`, with the number of requests that they concern.
    faults: Vec<(String, Fault, usize)>,
    requests: Vec<String>,
    /// True if the registry lists referrers, as the API 1.1 has it.
    lists_referrers: bool,
}

impl Registry {
    /// Starts a registry without TLS.
    pub(crate) fn start(authentication: Authentication) -> Self {
        Self::start_with(authentication, None)
    }

    /// Starts a registry with TLS.
    pub(crate) fn start_with(authentication: Authentication, tls: Option<rustls::ServerConfig>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let state = Arc::new(Mutex::new(State {
            authentication,
            origin: format!("{scheme}://{address}"),
            blobs: BTreeMap::new(),
            manifests: BTreeMap::new(),
            faults: Vec::new(),
            requests: Vec::new(),
            lists_referrers: false,
        }));
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&state);
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                let acceptor = tls.map(|tls| tokio_rustls::TlsAcceptor::from(Arc::new(tls)));
                tokio::select! {
                    biased;
                    _ = stopped => {}
                    () = accept(listener, acceptor, shared) => {}
                }
            });
        };
        Self {
            address,
            state,
            stop: Some(stop),
            thread: Some(std::thread::spawn(serve)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the text of a reference, such as `127.0.0.1:5000/plugins/hold:1`.
    pub(crate) fn image(&self, rest: &str) -> String {
        format!("{}/{rest}", self.address)
    }

    /// Injects a fault into requests whose `METHOD path` has a part.
    pub(crate) fn fail(&self, part: &str, fault: Fault, times: usize) {
        self.lock().faults.push((part.to_owned(), fault, times));
    }

    /// Changes the authentication that the registry requires.
    pub(crate) fn require(&self, authentication: Authentication) {
        self.lock().authentication = authentication;
    }

    /// Makes the registry list referrers.
    pub(crate) fn list_referrers(&self) {
        self.lock().lists_referrers = true;
    }

    /// Stores a manifest without a check.
    pub(crate) fn put_manifest(&self, repository: &str, version: &str, media_type: &str, text: impl Into<Bytes>) {
        let stored = (media_type.to_owned(), text.into());
        self.lock().manifests.insert(format!("{repository}:{version}"), stored);
    }

    /// Stores a blob.
    pub(crate) fn put_blob(&self, digest: &str, blob: impl Into<Bytes>) {
        self.lock().blobs.insert(digest.to_owned(), blob.into());
    }

    /// Returns the manifest of a version.
    pub(crate) fn manifest(&self, repository: &str, version: &str) -> Option<Bytes> {
        let state = self.lock();
        state
            .manifests
            .get(&format!("{repository}:{version}"))
            .map(|(_, text)| text.clone())
    }

    /// Returns the number of requests whose `METHOD path` has a part.
    pub(crate) fn count(&self, part: &str) -> usize {
        self.lock()
            .requests
            .iter()
            .filter(|request| request.contains(part))
            .count()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, acceptor: Option<tokio_rustls::TlsAcceptor>, state: Arc<Mutex<State>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (state, acceptor) = (Arc::clone(&state), acceptor.clone());
        connections.spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&state), request));
            let server = hyper::server::conn::http1::Builder::new();
            match acceptor {
                None => drop(server.serve_connection(TokioIo::new(stream), service).await),
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        drop(server.serve_connection(TokioIo::new(stream), service).await);
                    }
                }
            }
        });
    }
}

fn full(bytes: impl Into<Bytes>) -> Body {
    UnsyncBoxBody::new(Full::new(bytes.into()).map_err(|never| match never {}))
}

fn with_status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(full(""));
    *response.status_mut() = status;
    response
}

fn failed(status: StatusCode, code: &str) -> Response<Body> {
    let text = format!(r#"{{"errors": [{{"code": "{code}", "message": "on purpose"}}]}}"#);
    let mut response = Response::new(full(text));
    *response.status_mut() = status;
    response
}

async fn answer(state: Arc<Mutex<State>>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let line = format!("{} {}", parts.method, parts.uri);
    let (fault, mut response) = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.requests.push(line.clone());
        let fault = state.take_fault(&line);
        let response = state.respond(&parts, body);
        (fault, response)
    };
    let Some(fault) = fault else { return Ok(response) };
    match fault {
        Fault::Status(status) => response = failed(StatusCode::from_u16(status).unwrap(), "DENIED"),
        Fault::Limited(seconds) => {
            response = failed(StatusCode::TOO_MANY_REQUESTS, "TOOMANYREQUESTS");
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        Fault::Redirect(url) => {
            response = with_status(StatusCode::TEMPORARY_REDIRECT);
            response.headers_mut().insert(LOCATION, url.parse().unwrap());
        }
        Fault::Silent => std::future::pending().await,
        Fault::Truncated(length) => {
            let bytes = response.body_mut().collect().await.unwrap().to_bytes();
            response.headers_mut().insert(CONTENT_LENGTH, bytes.len().into());
            let cut = std::io::Error::other("cut on purpose");
            let start = Frame::data(bytes.slice(..length.min(bytes.len())));
            // The head and the start are on their way before the connection ends.
            let end = async {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                Err(cut)
            };
            let frames = futures::stream::once(async move { Ok(start) }).chain(futures::stream::once(end));
            *response.body_mut() = UnsyncBoxBody::new(StreamBody::new(frames));
        }
        Fault::Changed => {
            let mut bytes = response.body_mut().collect().await.unwrap().to_bytes().to_vec();
            if let Some(last) = bytes.last_mut() {
                *last ^= 1;
            }
            *response.body_mut() = full(bytes);
        }
    }
    Ok(response)
}

impl State {
    fn take_fault(&mut self, line: &str) -> Option<Fault> {
        let (_, fault, times) = self
            .faults
            .iter_mut()
            .find(|(part, _, times)| *times > 0 && line.contains(part.as_str()))?;
        *times -= 1;
        Some(fault.clone())
    }

    fn respond(&mut self, request: &http::request::Parts, body: Bytes) -> Response<Body> {
        let path = request.uri.path();
        if path == "/token" {
            return token(request, &body);
        }
        let Some(rest) = path.strip_prefix("/v2/") else {
            return failed(StatusCode::NOT_FOUND, "NOT_FOUND");
        };
        let split = |name: &str| rest.split_once(name);
        let Some((repository, kind, version)) = split("/manifests/")
            .map(|(repository, version)| (repository, "manifests", version))
            .or_else(|| split("/referrers/").map(|(repository, digest)| (repository, "referrers", digest)))
            .or_else(|| split("/blobs/uploads/").map(|(repository, id)| (repository, "uploads", id)))
            .or_else(|| split("/blobs/").map(|(repository, digest)| (repository, "blobs", digest)))
        else {
            return failed(StatusCode::NOT_FOUND, "NOT_FOUND");
        };
        if let Some(refused) = self.refuse(request, repository) {
            return refused;
        }
        match (&request.method, kind) {
            (&Method::GET, "manifests") => self.get_manifest(repository, version),
            (&Method::GET, "referrers") if self.lists_referrers => self.get_referrers(repository, version),
            (&Method::GET, "referrers") => failed(StatusCode::NOT_FOUND, "NOT_FOUND"),
            (&Method::PUT, "manifests") => self.store_manifest(request, repository, version, body),
            (&Method::GET | &Method::HEAD, "blobs") => match self.blobs.get(version) {
                Some(blob) => Response::new(full(blob.clone())),
                None => failed(StatusCode::NOT_FOUND, "BLOB_UNKNOWN"),
            },
            (&Method::POST, "uploads") => {
                let mut response = with_status(StatusCode::ACCEPTED);
                let location = format!("/v2/{repository}/blobs/uploads/1?state=a%2Bb");
                response.headers_mut().insert(LOCATION, location.parse().unwrap());
                response
            }
            (&Method::PUT, "uploads") => self.store_blob(request, body),
            _ => failed(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED"),
        }
    }

    /// Returns the answer to a request without the required authorization.
    fn refuse(&self, request: &http::request::Parts, repository: &str) -> Option<Response<Body>> {
        let is_pull = [Method::GET, Method::HEAD].contains(&request.method);
        let given = request.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (is_permitted, challenge) = match self.authentication {
            Authentication::None => (true, String::new()),
            Authentication::Basic => (given == Some(BASIC), "Basic realm=\"test\"".to_owned()),
            Authentication::Token => {
                let actions: &[&str] = if is_pull {
                    &["pull", "pull,push"]
                } else {
                    &["pull,push"]
                };
                let tokens = actions
                    .iter()
                    .map(|actions| format!("Bearer repository:{repository}:{actions}"));
                let is_permitted = tokens.into_iter().any(|token| given == Some(token.as_str()));
                let challenge = format!("Bearer realm=\"{}/token\",service=\"test\",scope=\"x\"", self.origin);
                (is_permitted, challenge)
            }
        };
        (!is_permitted).then(|| {
            let mut response = failed(StatusCode::UNAUTHORIZED, "UNAUTHORIZED");
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, challenge.parse().unwrap());
            response
        })
    }

    fn get_manifest(&self, repository: &str, version: &str) -> Response<Body> {
        match self.manifests.get(&format!("{repository}:{version}")) {
            Some((media_type, text)) => {
                let mut response = Response::new(full(text.clone()));
                response.headers_mut().insert(CONTENT_TYPE, media_type.parse().unwrap());
                response
            }
            None => failed(StatusCode::NOT_FOUND, "MANIFEST_UNKNOWN"),
        }
    }

    fn get_referrers(&self, repository: &str, digest: &str) -> Response<Body> {
        let of_repository = format!("{repository}:sha256:");
        let referrers = self.manifests.iter().filter_map(|(name, (media_type, text))| {
            let manifest: serde_json::Value = serde_json::from_slice(text).ok()?;
            let version = name
                .starts_with(&of_repository)
                .then(|| &name[repository.len() + 1..])?;
            (manifest["subject"]["digest"] == digest).then(|| {
                serde_json::json!({
                    "mediaType": media_type, "digest": version, "size": text.len(),
                    "artifactType": manifest["artifactType"], "annotations": manifest["annotations"],
                })
            })
        });
        let index = serde_json::json!({"schemaVersion": 2, "manifests": referrers.collect::<Vec<_>>()});
        Response::new(full(index.to_string()))
    }

    fn store_manifest(
        &mut self,
        request: &http::request::Parts,
        repository: &str,
        version: &str,
        body: Bytes,
    ) -> Response<Body> {
        let media_type = request.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = media_type.unwrap_or_default().to_owned();
        let digest = bulkhead_core::manifest::Digest::of(std::iter::once(body.as_ref()));
        for version in [version, &format!("sha256:{digest}")] {
            let stored = (media_type.clone(), body.clone());
            self.manifests.insert(format!("{repository}:{version}"), stored);
        }
        let manifest: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let mut response = with_status(StatusCode::CREATED);
        if let Some(subject) = manifest["subject"]["digest"].as_str().filter(|_| self.lists_referrers) {
            response.headers_mut().insert("oci-subject", subject.parse().unwrap());
        }
        let digest = format!("sha256:{digest}");
        response
            .headers_mut()
            .insert("docker-content-digest", digest.parse().unwrap());
        response
    }

    fn store_blob(&mut self, request: &http::request::Parts, body: Bytes) -> Response<Body> {
        let query = request.uri.query().unwrap_or_default();
        let digest = query.split('&').find_map(|field| field.strip_prefix("digest="));
        let digest = digest.unwrap_or_default().replace("%3A", ":");
        let found = bulkhead_core::manifest::Digest::of(std::iter::once(body.as_ref()));
        if !query.contains("state=a%2Bb") || digest != format!("sha256:{found}") {
            return failed(StatusCode::BAD_REQUEST, "DIGEST_INVALID");
        }
        self.blobs.insert(digest, body);
        with_status(StatusCode::CREATED)
    }
}

/// Returns a token that is the scope itself.
fn token(request: &http::request::Parts, body: &[u8]) -> Response<Body> {
    let is_post = request.method == Method::POST;
    let form = String::from_utf8_lossy(body).into_owned();
    let query = request.uri.query().unwrap_or_default().to_owned();
    let fields = if is_post { form } else { query };
    let field = |name: &str| {
        let found = fields
            .split('&')
            .find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        found
            .unwrap_or_default()
            .replace("%3A", ":")
            .replace("%2C", ",")
            .replace("%2F", "/")
    };
    let given = request.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let is_permitted = if is_post {
        field("grant_type") == "refresh_token" && field("refresh_token") == REFRESH_TOKEN
    } else {
        given == Some(BASIC)
    };
    if !is_permitted || field("service") != "test" {
        return failed(StatusCode::UNAUTHORIZED, "UNAUTHORIZED");
    }
    let name = if is_post { "access_token" } else { "token" };
    Response::new(full(format!(r#"{{"{name}": "{}"}}"#, field("scope"))))
}
