//! The API server: dispatch of requests to the store and its rules.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{Stream, TryStreamExt};
use http::{HeaderMap, Method, Request, Response, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::admission::Admission;
use crate::answers::{Answer, Answers};
use crate::clock::Clock;
use crate::delete::{DeleteOptions, Deletion, Propagation};
use crate::discovery;
use crate::fault::{Fault, Faults};
use crate::kind::{KindId, ResourceKind};
use crate::link::{ConnectionError, Link};
use crate::list::ListRequest;
use crate::object::{Object, ObjectKey, text};
use crate::patch;
use crate::request::{Probe, Query, ResourceRequest, Route, Verb, route};
use crate::state::State;
use crate::status_error::StatusError;
use crate::store::Store;
use crate::watch::Watch;
use crate::write::{Part, Rules, Writer};

/// Body of a response: complete for most requests, an endless stream of lines for a watch.
pub type ApiBody = UnsyncBoxBody<Bytes, ConnectionError>;

/// How a server is made.
pub struct Options {
    /// Name used in connection errors.
    pub name: String,
    /// Seed of uids and generated names.
    pub seed: u64,
    /// Source of timestamps.
    pub clock: Clock,
    /// Kinds served from the start.
    pub kinds: Vec<ResourceKind>,
    /// Asked before each write of a main resource.
    pub admission: Option<Arc<dyn Admission>>,
    /// Changes remembered per kind; a watch that resumes from before gets 410.
    pub watch_history_events_max: usize,
    /// Whether writing into a missing namespace creates it instead of failing with 404.
    pub auto_create_namespaces: bool,
    /// What `/version` reports, such as `v1.35.0`.
    pub kubernetes_version: String,
}

impl Options {
    /// Options for a server with the built-in kinds, no admission and 10,000 remembered changes per kind.
    pub fn new(name: &str, seed: u64, clock: Clock) -> Self {
        Self {
            name: name.to_owned(),
            seed,
            clock,
            kinds: crate::kind::kinds::kubernetes(),
            admission: None,
            watch_history_events_max: 10_000,
            auto_create_namespaces: false,
            kubernetes_version: "v1.35.0".to_owned(),
        }
    }
}

/// What `/readyz` and `/healthz` answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyState {
    /// 200 `ok`.
    Ready,
    /// This HTTP status.
    Failing(u16),
}

pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) rules: Rules,
    kubernetes_version: String,
    state: Mutex<State>,
    ready: Mutex<ReadyState>,
    requests: Mutex<BTreeMap<(Verb, KindId), u64>>,
    answers: Answers,
    pub(crate) faults: Faults,
}

impl Shared {
    pub(crate) fn lock_state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An in-process API server; clones share the same state.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) shared: Arc<Shared>,
}

impl ApiServer {
    /// A server that stores nothing yet.
    pub fn new(options: Options) -> Self {
        let mut state = State::new(options.seed, options.watch_history_events_max);
        for kind in options.kinds {
            state.register(kind);
        }
        Self {
            shared: Arc::new(Shared {
                name: options.name,
                rules: Rules {
                    clock: options.clock,
                    admission: options.admission,
                    auto_create_namespaces: options.auto_create_namespaces,
                },
                kubernetes_version: options.kubernetes_version,
                state: Mutex::new(state),
                ready: Mutex::new(ReadyState::Ready),
                requests: Mutex::new(BTreeMap::new()),
                answers: Answers::default(),
                faults: Faults::default(),
            }),
        }
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The server's clock.
    pub fn clock(&self) -> &Clock {
        &self.shared.rules.clock
    }

    /// Serves another kind from now on; a kind already served keeps its objects.
    pub fn register(&self, kind: ResourceKind) -> KindId {
        self.shared.lock_state().register(kind)
    }

    /// The handle of a served kind, by `apiVersion` and `kind` as objects spell them.
    pub fn kind_id(&self, api_version: &str, kind: &str) -> Option<KindId> {
        self.shared.lock_state().kind_by_name(api_version, kind)
    }

    /// Access without HTTP, under the same rules.
    pub fn store(&self) -> Store {
        Store::new(Arc::clone(&self.shared))
    }

    /// The server as a tower service without a link in between.
    pub fn service(&self) -> ApiService {
        self.service_through(Link::new())
    }

    /// The server as a tower service behind a link.
    pub fn service_through(&self, link: Link) -> ApiService {
        ApiService { server: self.clone(), link }
    }

    /// A client with the default namespace `default`. Must be called within a tokio runtime, which runs a task
    /// for the client until its last clone is dropped.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// As [`ApiServer::client`], behind a link.
    pub fn client_through(&self, link: Link) -> kube::Client {
        kube::Client::new(self.service_through(link), "default")
    }

    /// Decides what `/readyz` and `/healthz` answer.
    pub fn set_ready(&self, ready: ReadyState) {
        *lock(&self.shared.ready) = ready;
    }

    /// Breaks the open watches of a kind with a connection error, after what they have queued.
    pub fn drop_watches(&self, kind: KindId) {
        let mut state = self.shared.lock_state();
        let table = state.table_mut(kind);
        table.watch_epoch += 1;
        table.changed.notify_waiters();
    }

    /// Lets open watches of a kind tell nothing for that long: whoever follows them has stale copies meanwhile.
    pub fn delay_watches(&self, kind: KindId, delay: Duration) {
        let mut state = self.shared.lock_state();
        state.table_mut(kind).quiet_until = Some(Instant::now() + delay);
    }

    /// Forgets the changes of a kind, as etcd does now and then: a watch that is behind, or resumes from before, gets
    /// 410.
    pub fn compact(&self, kind: KindId) {
        self.shared.lock_state().table_mut(kind).compact();
    }

    /// Requests seen so far, by `verb resource`, such as `list deployments.apps`; health and discovery do not count.
    pub fn requests(&self) -> BTreeMap<String, u64> {
        let state = self.shared.lock_state();
        lock(&self.shared.requests)
            .iter()
            .map(|((verb, kind), count)| {
                let resource = state.table(*kind).kind.group_resource();
                (format!("{} {resource}", verb.as_str()), *count)
            })
            .fold(BTreeMap::new(), |mut totals, (key, count)| {
                *totals.entry(key).or_default() += count;
                totals
            })
    }

    /// Writes seen so far, by how they were answered. Those that a fault kept from being carried out do not count.
    pub fn writes(&self) -> BTreeMap<Answer, u64> {
        self.shared.answers.counts()
    }

    /// Stored objects by resource, such as `deployments.apps`; resources without objects are left out.
    pub fn objects_total(&self) -> BTreeMap<String, u64> {
        let state = self.shared.lock_state();
        let mut totals = BTreeMap::new();
        for (_, table) in state.tables().filter(|(_, table)| table.objects_total() > 0) {
            *totals.entry(table.kind.group_resource()).or_default() += table.objects_total() as u64;
        }
        totals
    }

    async fn handle(&self, link: &Link, request: Request<Body>) -> Result<Response<ApiBody>, ConnectionError> {
        link.pass(&self.shared.name).await?;
        let (parts, body) = request.into_parts();
        // A body that cannot be read is a client that hung up.
        let body =
            body.collect_bytes().await.map_err(|_| ConnectionError::Reset { server: self.shared.name.clone() })?;
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let routed = route(&parts.method, parts.uri.path(), &query);
        let resource = match routed {
            Err(error) => return Ok(refusal(&error)),
            Ok(Route::Resource(resource)) => resource,
            Ok(information) => return Ok(self.describe(&information)),
        };
        let call = Call {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            headers: parts.headers,
            query,
            body,
            resource,
        };
        let fault = self.shared.faults.take(&call.resource);
        let server = self.shared.name.clone();
        match fault {
            Some(Fault::Refuse) => Err(ConnectionError::Refused { server }),
            Some(Fault::Respond(code)) => Ok(refusal(&StatusError::injected(code))),
            Some(Fault::TimeOut(after)) => {
                let _ = self.dispatch(link, &call);
                tokio::time::sleep(after).await;
                Ok(refusal(&StatusError::injected(504)))
            }
            Some(Fault::LoseReply) => {
                // Only the effect matters; the answer is what gets lost.
                let _ = self.dispatch(link, &call);
                Err(ConnectionError::Reset { server })
            }
            None => {
                let response = self.dispatch(link, &call).unwrap_or_else(|error| refusal(&error));
                self.shared.answers.note(&call.resource, response.status().as_u16());
                Ok(response)
            }
        }
    }

    fn describe(&self, information: &Route) -> Response<ApiBody> {
        let state = self.shared.lock_state();
        let body = match information {
            Route::Health(probe) => {
                let ready = *lock(&self.shared.ready);
                return match (probe, ready) {
                    (Probe::Ready, ReadyState::Failing(code)) => plain_text(code, "not ready"),
                    (Probe::Ready, ReadyState::Ready) | (Probe::Live, _) => plain_text(200, "ok"),
                };
            }
            Route::Version => Ok(discovery::version(&self.shared.kubernetes_version)),
            Route::CoreVersions => Ok(discovery::core_versions()),
            Route::Groups => Ok(discovery::groups(&state)),
            Route::Group { group } => discovery::group(&state, group),
            Route::Resources { group, version } => discovery::resources(&state, group, version),
            Route::Resource(request) => Err(StatusError::unknown_path(&request.plural)),
        };
        match body {
            Ok(body) => complete(200, Bytes::from(body.to_string())),
            Err(error) => refusal(&error),
        }
    }

    fn dispatch(&self, link: &Link, call: &Call) -> Result<Response<ApiBody>, StatusError> {
        let mut state = self.shared.lock_state();
        let resource = &call.resource;
        let id = state
            .kind_by_path(&resource.group, &resource.version, &resource.plural)
            .ok_or_else(|| StatusError::unknown_path(&call.path))?;
        *lock(&self.shared.requests).entry((resource.verb, id)).or_default() += 1;
        let kind = state.kind(id);
        let part = call.part(&kind)?;
        if kind.is_namespaced() == resource.namespace.is_none() && !call.is_over_all_namespaces() {
            return Err(StatusError::unknown_path(&call.path));
        }
        if !call.query.get("dryRun").is_empty() {
            return Err(StatusError::not_implemented("dryRun"));
        }
        let namespace = resource.namespace.as_deref();
        if resource.verb == Verb::Watch {
            // Opening a watch takes the lock itself.
            drop(state);
            let watch = Watch::open(&self.shared, id, namespace, resource.name.as_deref(), &call.query)?;
            return Ok(stream(link.cut(&self.shared.name, watch.into_lines())));
        }
        let key = ObjectKey::new(id, namespace.unwrap_or_default(), resource.name.as_deref().unwrap_or_default());
        let mut writer = Writer { state: &mut state, rules: &self.shared.rules };
        match resource.verb {
            Verb::Get => Ok(object(200, &*writer.existing(&key)?)),
            Verb::List | Verb::Watch => {
                let page = ListRequest::parse(id, namespace, &call.query)?.page(writer.state)?;
                Ok(complete(200, page.body(&kind)))
            }
            Verb::Create => {
                let created = writer.create(id, &key.namespace, call.object()?)?;
                Ok(object(201, &created))
            }
            Verb::Update => Ok(object(200, &*writer.update(&key, part, call.object()?)?)),
            Verb::Patch => {
                let old = writer.existing(&key)?;
                let new = patch::apply(&kind, old.value(), call.content_type(), &call.body)?;
                Ok(object(200, &*writer.update(&key, part, new)?))
            }
            Verb::Delete => {
                let deletion = writer.delete(&key, &call.delete_options()?)?;
                Ok(match deletion {
                    Deletion::Terminating(kept) => object(200, &kept),
                    Deletion::Removed(removed) => complete(200, deleted(&kind, &removed)),
                })
            }
            Verb::DeleteCollection => {
                let options = call.delete_options()?;
                let page = ListRequest::parse(id, namespace, &call.query)?.page(writer.state)?;
                for found in &page.objects {
                    let key = ObjectKey::new(id, found.namespace(), found.name());
                    match writer.delete(&key, &options) {
                        // An earlier deletion of the same request may have collected it.
                        Err(error) if error.code == 404 => {}
                        result => drop(result?),
                    }
                }
                Ok(complete(200, page.body(&kind)))
            }
        }
    }
}

/// A request for a resource with everything needed to answer it.
struct Call {
    method: Method,
    path: String,
    headers: HeaderMap,
    query: Query,
    body: Bytes,
    resource: ResourceRequest,
}

impl Call {
    /// Which part of the object a request addresses; refuses what this server does not serve.
    fn part(&self, kind: &ResourceKind) -> Result<Part, StatusError> {
        let verb = self.resource.verb;
        match self.resource.subresource.as_deref() {
            None if verb == Verb::Create && self.resource.name.is_some() => Err(self.not_allowed()),
            None => Ok(Part::Main),
            Some("status") if !kind.status_subresource => Err(StatusError::unknown_path(&self.path)),
            Some("status") if matches!(verb, Verb::Get | Verb::Update | Verb::Patch) => Ok(Part::Status),
            Some("status") => Err(self.not_allowed()),
            Some(other) => {
                Err(StatusError::not_implemented(&format!("the {other} subresource of {}", kind.group_resource())))
            }
        }
    }

    fn not_allowed(&self) -> StatusError {
        StatusError::method_not_allowed(self.method.as_str(), &self.path)
    }

    /// Reading a namespaced kind over all namespaces needs no namespace in the path.
    fn is_over_all_namespaces(&self) -> bool {
        let reads = matches!(self.resource.verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
        reads && self.resource.name.is_none() && self.resource.namespace.is_none()
    }

    fn content_type(&self) -> &str {
        self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn object(&self) -> Result<Value, StatusError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| StatusError::bad_request(format!("cannot parse the body: {error}")))
    }

    fn delete_options(&self) -> Result<DeleteOptions, StatusError> {
        let body = if self.body.is_empty() { Value::Null } else { self.object()? };
        if body["dryRun"].as_array().is_some_and(|stages| !stages.is_empty()) {
            return Err(StatusError::not_implemented("dryRun"));
        }
        let mut options = DeleteOptions::parse(&body);
        if text(&body, "/propagationPolicy").is_empty() {
            options.propagation = Propagation::parse(self.query.get("propagationPolicy"));
        }
        Ok(options)
    }
}

fn deleted(kind: &ResourceKind, object: &Object) -> Bytes {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": object.name(),
            "group": kind.group,
            "kind": kind.plural,
            "uid": object.uid(),
        },
    });
    Bytes::from(status.to_string())
}

fn object(code: u16, object: &Object) -> Response<ApiBody> {
    complete(code, object.bytes())
}

fn refusal(error: &StatusError) -> Response<ApiBody> {
    complete(error.code, error.to_bytes())
}

fn complete(code: u16, body: Bytes) -> Response<ApiBody> {
    respond(code, "application/json", full(body))
}

fn plain_text(code: u16, body: &'static str) -> Response<ApiBody> {
    respond(code, "text/plain", full(Bytes::from_static(body.as_bytes())))
}

fn stream(lines: impl Stream<Item = Result<Bytes, ConnectionError>> + Send + 'static) -> Response<ApiBody> {
    let body = StreamBody::new(lines.map_ok(Frame::data)).boxed_unsync();
    respond(200, "application/json", body)
}

fn full(body: Bytes) -> ApiBody {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

fn respond(code: u16, content_type: &'static str, body: ApiBody) -> Response<ApiBody> {
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}

/// A server behind a link, as a tower service.
#[derive(Clone)]
pub struct ApiService {
    server: ApiServer,
    link: Link,
}

impl tower::Service<Request<Body>> for ApiService {
    type Response = Response<ApiBody>;
    type Error = ConnectionError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { server, link } = self.clone();
        Box::pin(async move { server.handle(&link, request).await })
    }
}
