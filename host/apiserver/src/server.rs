//! The API server: dispatch of requests to the store.

mod inject;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, header};
use kube::client::Body;
use serde_json::Value;
use tokio::time::Instant;

use crate::admission::Admission;
use crate::call::Call;
use crate::clock::Clock;
use crate::delete::Deletion;
use crate::fault::{Fault, Faults};
use crate::kind::{KindId, ResourceKind};
use crate::kubectl::form::Form;
use crate::kubectl::{discovery, openapi, openapi_v2, protobuf, review};
use crate::link::{ConnectionError, Link};
use crate::list::ListRequest;
use crate::object::{Object, ObjectKey};
use crate::persistence::{Contents, Persistence};
use crate::request::{Probe, Query, ResourceRequest, Route, Verb, route};
use crate::respond::{ApiBody, complete, deleted, full, plain_text, refusal, respond, stream, with_warnings};
use crate::response_counts::{ResponseCounts, WriteResponse};
use crate::shape::{Part, STATUS_FIELDS};
use crate::shared::{ReadyState, Shared, lock};
use crate::state::State;
use crate::status_error::StatusError;
use crate::store::Store;
use crate::watch::Watch;
use crate::write::{Fidelity, Rules, Writer};
use crate::{autoscaling_v1, patch, scale};

/// Options of a server.
pub struct Options {
    /// Name of the server in connection errors.
    pub name: String,
    /// Seed of uids and generated names.
    pub seed: u64,
    /// Source of timestamps.
    pub clock: Clock,
    /// Kinds that are served from the start.
    pub kinds: Vec<ResourceKind>,
    /// Admission of writes to main resources.
    pub admission: Option<Arc<dyn Admission>>,
    /// Maximum number of changes kept per kind. A watch that resumes from an older version gets 410.
    pub watch_history_events_max: usize,
    /// True if a write to a missing namespace creates the namespace instead of failing with 404.
    pub auto_create_namespaces: bool,
    /// Version reported by `/version`, such as `v1.35.0`.
    pub kubernetes_version: String,
    /// Degree to which writes follow Kubernetes.
    pub fidelity: Fidelity,
    /// Objects that every new namespace gets, such as a ServiceAccount.
    pub namespace_objects: Vec<Value>,
    /// Receiver of changes in addition to memory.
    pub persistence: Option<Arc<dyn Persistence>>,
}

impl Options {
    /// Returns options for a server with the built-in kinds, no admission and 10,000 remembered changes per kind.
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
            fidelity: Fidelity::default(),
            namespace_objects: Vec::new(),
            persistence: None,
        }
    }
}

/// In-process API server; clones share the same state.
#[derive(Clone)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

impl ApiServer {
    /// Creates a server without objects.
    pub fn new(options: Options) -> Self {
        let mut state = State::new(options.seed, options.watch_history_events_max, options.persistence);
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
                    fidelity: options.fidelity,
                    namespace_objects: options.namespace_objects,
                },
                kubernetes_version: options.kubernetes_version,
                state: Mutex::new(state),
                ready: Mutex::new(ReadyState::Ready),
                requests: Mutex::new(BTreeMap::new()),
                response_counts: ResponseCounts::default(),
                faults: Faults::default(),
            }),
        }
    }

    /// Returns the server's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns the server's clock.
    pub fn clock(&self) -> &Clock {
        &self.shared.rules.clock
    }

    /// Adds a kind to the served ones. A kind that is already served keeps its objects.
    pub fn register(&self, kind: ResourceKind) -> KindId {
        self.shared.lock_state().register(kind)
    }

    /// Restores persisted contents. Must be called before anything else is stored. Returns the objects of kinds that
    /// are not served; they are not restored.
    #[must_use = "what is left out is lost"]
    pub fn restore(&self, contents: Contents) -> Vec<Value> {
        self.shared.lock_state().restore(contents)
    }

    /// Returns the handle of a served kind by `apiVersion` and `kind`.
    pub fn kind_id(&self, api_version: &str, kind: &str) -> Option<KindId> {
        self.shared.lock_state().kind_by_name(api_version, kind)
    }

    /// Returns access to the objects without HTTP, under the same rules.
    pub fn store(&self) -> Store {
        Store::new(Arc::clone(&self.shared))
    }

    /// Returns the server as a tower service without a link.
    pub fn service(&self) -> ApiService {
        self.service_through(Link::new())
    }

    /// Returns the server as a tower service behind a link.
    pub fn service_through(&self, link: Link) -> ApiService {
        ApiService {
            server: self.clone(),
            link,
        }
    }

    /// Returns a client with the default namespace `default`. Must be called within a tokio runtime, which runs a
    /// task for the client until its last clone is dropped.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// Like [`ApiServer::client`], behind a link.
    pub fn client_through(&self, link: Link) -> kube::Client {
        kube::Client::new(self.service_through(link), "default")
    }

    /// Sets the response of `/readyz` and `/healthz`.
    pub fn set_ready(&self, ready: ReadyState) {
        *lock(&self.shared.ready) = ready;
    }

    /// Breaks the open watches of a kind with a connection error, after they have sent their queued events.
    pub fn drop_watches(&self, kind: KindId) {
        let mut state = self.shared.lock_state();
        let table = state.table_mut(kind);
        table.watch_epoch += 1;
        table.changed.notify_waiters();
    }

    /// Pauses the open watches of a kind for `delay`, so that their clients have stale caches meanwhile.
    pub fn delay_watches(&self, kind: KindId, delay: Duration) {
        let mut state = self.shared.lock_state();
        state.table_mut(kind).quiet_until = Some(Instant::now() + delay);
    }

    /// Drops the event log of a kind, as etcd's compaction does. A watch that lags behind, or resumes from an older
    /// version, gets 410.
    pub fn compact(&self, kind: KindId) {
        self.shared.lock_state().table_mut(kind).history.compact();
    }

    /// Returns the number of requests by `verb resource`, such as `list deployments.apps`, without health and
    /// discovery requests.
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

    /// Returns the number of writes by resource, verb and response code. Requests that an injected fault prevented
    /// are not counted.
    pub fn writes(&self) -> BTreeMap<WriteResponse, u64> {
        self.shared.response_counts.counts()
    }

    /// Returns the handles of all served kinds.
    pub fn kind_ids(&self) -> Vec<KindId> {
        let state = self.shared.lock_state();
        let served = state.tables().filter(|(_, table)| table.is_served);
        served.map(|(id, _)| id).collect()
    }

    /// Returns the number of stored objects by resource, such as `deployments.apps`. Resources without objects are
    /// omitted.
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
        // If the body cannot be read, the client has disconnected.
        let body = body.collect_bytes().await.map_err(|_| ConnectionError::Reset {
            server: self.shared.name.clone(),
        })?;
        let content_type = parts
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let converted = protobuf::to_json(content_type.unwrap_or_default(), &body);
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let routed = route(&parts.method, parts.uri.path(), &query);
        let mut resource = match routed {
            Err(error) => return Ok(refusal(&error)),
            Ok(Route::Resource(resource)) => resource,
            Ok(information) => return Ok(self.describe(&information, &parts.headers)),
        };
        let is_view = autoscaling_v1::is_view(&resource);
        let body = match converted {
            Ok(None) => body,
            Ok(Some(json)) => Bytes::from(json),
            Err(error) if self.understands(&resource) => return Ok(refusal(&error)),
            // The request is refused for a better reason than its body.
            Err(_) => Bytes::new(),
        };
        let body = if is_view {
            autoscaling_v1::to_stored(&mut resource, body)
        } else {
            body
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
            Some(Fault::HoldUntil(moment)) => {
                tokio::time::sleep_until(moment).await;
                Ok(self.answer(link, &call))
            }
            Some(Fault::LoseReply) => {
                // Only the effect matters: the response is lost.
                let _ = self.dispatch(link, &call);
                Err(ConnectionError::Reset { server })
            }
            Some(Fault::Pass) | None if is_view => Ok(autoscaling_v1::to_view(self.answer(link, &call)).await),
            Some(Fault::Pass) | None => Ok(self.answer(link, &call)),
        }
    }

    /// Returns true if the path of a request is served.
    fn understands(&self, resource: &ResourceRequest) -> bool {
        let state = self.shared.lock_state();
        let is_served = state
            .kind_by_path(&resource.group, &resource.version, &resource.plural)
            .is_some();
        let is_known = matches!(resource.subresource.as_deref(), None | Some("status" | "scale"));
        (is_served && is_known) || review::is_review(resource)
    }

    fn answer(&self, link: &Link, call: &Call) -> Response<ApiBody> {
        let response = self.dispatch(link, call).unwrap_or_else(|error| refusal(&error));
        self.shared
            .response_counts
            .note(&call.resource, response.status().as_u16());
        response
    }

    fn describe(&self, information: &Route, headers: &HeaderMap) -> Response<ApiBody> {
        let state = self.shared.lock_state();
        let accept = headers
            .get(header::ACCEPT)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let all_at_once = discovery::wants_aggregated(accept);
        let body = match information {
            Route::CoreVersions | Route::Groups if all_at_once => {
                let document = discovery::aggregated(&state, *information == Route::CoreVersions);
                return document.answer(headers, discovery::AGGREGATED);
            }
            Route::OpenApi => Ok(openapi::index(&state)),
            Route::OpenApiV2 if openapi_v2::wants_protobuf(accept) => {
                let document = openapi_v2::encode(&openapi_v2::document(&state));
                return respond(200, openapi_v2::PROTOBUF, full(Bytes::from(document)));
            }
            Route::OpenApiV2 => Ok(openapi_v2::document(&state)),
            Route::OpenApiOf { group, version } => openapi::document(&state, group, version),
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
        let resource = &call.resource;
        if review::is_review(resource) {
            return Ok(complete(
                201,
                Bytes::from(review::answer(resource, call.object()?).to_string()),
            ));
        }
        let mut state = self.shared.lock_state();
        let id = state
            .kind_by_path(&resource.group, &resource.version, &resource.plural)
            .ok_or_else(|| StatusError::unknown_path(&call.path))?;
        *lock(&self.shared.requests).entry((resource.verb, id)).or_default() += 1;
        let kind = state.kind(id);
        let part = call.part(&kind)?;
        if kind.is_namespaced() == resource.namespace.is_none() && !call.is_over_all_namespaces() {
            return Err(StatusError::unknown_path(&call.path));
        }
        let namespace = resource.namespace.as_deref();
        if resource.verb == Verb::Watch {
            // `Watch::open` takes the lock itself.
            drop(state);
            let form = call.form(&kind, &self.shared.rules.clock)?;
            let watch = Watch::open(&self.shared, id, namespace, resource.name.as_deref(), &call.query, form)?;
            return Ok(stream(link.cut(&self.shared.name, watch.into_lines())));
        }
        let key = ObjectKey::new(
            id,
            namespace.unwrap_or_default(),
            resource.name.as_deref().unwrap_or_default(),
        );
        let form = call.form(&kind, &self.shared.rules.clock)?;
        let mut writer = Writer::new(&mut state, &self.shared.rules, call.terms()?);
        let answer = carry_out(&mut writer, call, &key, part, &form)?;
        Ok(with_warnings(answer, &writer.warnings))
    }
}

/// Carries out any request except a watch.
fn carry_out(
    writer: &mut Writer<'_>,
    call: &Call,
    key: &ObjectKey,
    part: Part,
    form: &Form,
) -> Result<Response<ApiBody>, StatusError> {
    let kind = writer.state.kind(key.kind);
    let namespace = call.resource.namespace.as_deref();
    let object = |code: u16, object: &Object| complete(code, form.one(object));
    if call.resource.subresource.as_deref() == Some("scale") {
        return Ok(complete(
            200,
            Bytes::from(scale::answer(writer, call, key)?.to_string()),
        ));
    }
    match call.resource.verb {
        Verb::Get => Ok(object(200, &*writer.existing(key)?)),
        Verb::List | Verb::Watch => {
            let page = ListRequest::parse(key.kind, &kind, namespace, &call.query)?.page(writer.state)?;
            Ok(complete(200, form.page(&kind, &page)))
        }
        Verb::Create => {
            let created = writer.create(key.kind, &key.namespace, call.object()?)?;
            Ok(object(201, &created))
        }
        Verb::Update => {
            let new = if writer.reads_only_status(part) {
                call.object_with_status()?
            } else {
                call.object()?
            };
            Ok(object(200, &*writer.update(key, part, new)?))
        }
        Verb::Patch if patch::is_apply(call.content_type()) && writer.rules.fidelity == Fidelity::People => {
            let (applied, is_new) = writer.apply(key, part, call.configuration()?, call.query.is_true("force"))?;
            Ok(object(if is_new { 201 } else { 200 }, &applied))
        }
        Verb::Patch => {
            let old = writer.existing(key)?;
            let before = if writer.reads_only_status(part) && patch::is_merge(call.content_type()) {
                old.content().value_of(|field| STATUS_FIELDS.contains(&field))
            } else {
                old.content().to_value()
            };
            let new = patch::apply(&kind, before, call.content_type(), &call.body)?;
            Ok(object(200, &*writer.update(key, part, new)?))
        }
        Verb::Delete => {
            let deletion = writer.delete(key, &call.delete_options()?)?;
            Ok(match deletion {
                Deletion::Terminating(kept) => object(200, &kept),
                Deletion::Removed(removed) => complete(200, deleted(&kind, &removed)),
            })
        }
        Verb::DeleteCollection => {
            let options = call.delete_options()?;
            let page = ListRequest::parse(key.kind, &kind, namespace, &call.query)?.page(writer.state)?;
            for found in &page.objects {
                let key = ObjectKey::new(key.kind, found.namespace(), found.name());
                match writer.delete(&key, &options) {
                    // An earlier deletion of the same request may have garbage-collected it.
                    Err(error) if error.code == 404 => {}
                    result => drop(result?),
                }
            }
            Ok(complete(200, form.page(&kind, &page)))
        }
    }
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
