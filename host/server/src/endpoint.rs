//! HTTP endpoint of `/healthz`, `/readyz` and `/metrics`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::Context as _;
use bulkhead_runtime::store::InformerState;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use super::metrics::{self, BuildInfo, Format, Observed, ProcessStatus};
use super::server::{self, Application, Limits, Refusal, Transport};
use super::traces::SpanCounts;

/// Limits for probes and scrapes, which have no body and come from a few clients.
const LIMITS: Limits = Limits {
    connections: 64,
    body_bytes: 4 << 10,
    buffered_bytes: 64 << 10,
};

/// Parses an address to listen on; without a host, all interfaces.
///
/// # Errors
///
/// The text is not an address with a port.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.starts_with(':') {
        format!("0.0.0.0{text}")
    } else {
        text.to_owned()
    };
    whole
        .parse()
        .map_err(|_| "must be an address with a port, such as 127.0.0.1:10370 or :10370".to_owned())
}

/// State that the endpoint reports.
#[derive(Clone, Default)]
pub(super) struct State(Arc<Inner>);

#[derive(Default)]
struct Inner {
    stage: Mutex<Stage>,
    build: BuildInfo,
    spans: Option<Arc<SpanCounts>>,
    observed: OnceLock<(Observed, Registry)>,
    status: Arc<Mutex<ProcessStatus>>,
}

/// Phase of the process.
enum Stage {
    /// Starting, with a description of the current step.
    Starting(String),
    /// Leading or standing by; ready once its caches have synced.
    Prepared,
    /// Shutting down.
    Stopping,
}

impl Default for Stage {
    fn default() -> Self {
        Self::Starting("the process is starting".to_owned())
    }
}

impl State {
    /// Creates the state of a process of this program. `spans` are the counts of its traces, if it exports any.
    pub(super) fn of(build: BuildInfo, spans: Option<Arc<SpanCounts>>) -> Self {
        Self(Arc::new(Inner {
            build,
            spans,
            ..Inner::default()
        }))
    }

    /// Sets the description of the current startup step.
    pub(super) fn set_stage(&self, stage: String) {
        *self.stage() = Stage::Starting(stage);
    }

    /// Ends the startup phase: the process is ready once its caches have synced.
    pub(super) fn set_prepared(&self) {
        *self.stage() = Stage::Prepared;
    }

    /// Starts the shutdown phase: the process is no longer ready.
    pub(super) fn set_stopping(&self) {
        *self.stage() = Stage::Stopping;
    }

    /// Sets the sources of the metrics.
    pub(super) fn observe(&self, observed: Observed) {
        let Inner {
            status, build, spans, ..
        } = &*self.0;
        let registry = metrics::registry(&observed, status, build, spans.as_ref());
        let _ = self.0.observed.set((observed, registry));
    }

    /// Updates the reported status values.
    pub(super) fn update(&self, change: impl FnOnce(&mut ProcessStatus)) {
        change(&mut self.status());
    }

    fn status(&self) -> MutexGuard<'_, ProcessStatus> {
        self.0.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.0.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reason for not being ready; `None` if ready.
    fn why_not_ready(&self) -> Option<String> {
        match &*self.stage() {
            Stage::Starting(stage) => return Some(format!("starting: {stage}")),
            Stage::Stopping => return Some("stopping".to_owned()),
            Stage::Prepared => {}
        }
        let (Observed { context, .. }, _) = self.0.observed.get()?;
        let lacking: Vec<_> = context
            .stores
            .informers(&context.scope)
            .into_iter()
            .filter_map(lacks)
            .collect();
        if !lacking.is_empty() {
            return Some(format!("starting: {}", lacking.join("; ")));
        }
        if context.plugins.as_ref().is_some_and(|plugins| !plugins.has_synced()) {
            return Some("starting: plugins are being loaded".to_owned());
        }
        let lost = &self.status().lacking;
        (!lost.is_empty()).then(|| lost.join("; "))
    }

    fn metrics(&self, format: Format) -> String {
        let text = match self.0.observed.get() {
            Some((_, registry)) => metrics::text(registry),
            None => metrics::text(&Registry::default()),
        };
        format.convert(text)
    }
}

fn lacks((name, informer): (String, InformerState)) -> Option<String> {
    match informer {
        InformerState { synced: true, .. } => None,
        InformerState {
            failure: Some(failure), ..
        } => Some(format!("{name} {failure}")),
        InformerState { failure: None, .. } => Some(format!("{name} are not listed yet")),
    }
}

/// Starts the endpoint, which serves until the process ends. Returns the address that it listens on.
pub(super) async fn serve(address: SocketAddr, state: State) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("--health-probe-bind-address: listening on {address}; choose a free address, or port 0")
    })?;
    let bound = listener.local_addr()?;
    tokio::spawn(server::serve(
        listener,
        Transport::Plain,
        Probes(state),
        LIMITS,
        "the health endpoint",
    ));
    Ok(bound)
}

/// Application for probes and scrapes.
struct Probes(State);

impl Application for Probes {
    type Body = Full<Bytes>;
    type Error = Infallible;

    fn answer_head(&self, _head: &Parts) -> Option<Response<Full<Bytes>>> {
        None
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Full<Bytes>>, Infallible> {
        Ok(answer(
            request.uri().path(),
            Format::accepted(request.headers()),
            &self.0,
        ))
    }

    fn refuse(&self, refusal: &Refusal) -> Response<Full<Bytes>> {
        server::plain(refusal.status(), format!("{refusal}\n"))
    }
}

fn answer(path: &str, format: Format, state: &State) -> Response<Full<Bytes>> {
    let (status, text) = match path {
        "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => match state.why_not_ready() {
            None => (StatusCode::OK, "ok\n".to_owned()),
            Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
        },
        "/metrics" => (StatusCode::OK, state.metrics(format)),
        _ => (
            StatusCode::NOT_FOUND,
            "there are /healthz, /readyz and /metrics\n".to_owned(),
        ),
    };
    let mut response = server::plain(status, text);
    if path == "/metrics" {
        let type_ = HeaderValue::from_static(format.content_type());
        response.headers_mut().insert(CONTENT_TYPE, type_);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scrape_before_there_are_metrics_is_complete() {
        assert_eq!(State::default().metrics(Format::OpenMetrics), "# EOF\n");
    }

    #[test]
    fn an_address_without_a_host_is_that_of_every_interface() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                address(text).ok().map(|address| address.to_string()).as_deref(),
                expected,
                "{text:?}"
            );
        };
        check(":10370", Some("0.0.0.0:10370"));
        check("127.0.0.1:0", Some("127.0.0.1:0"));
        check("[::1]:8080", Some("[::1]:8080"));
        check("10370", None);
        check("localhost:10370", None);
    }
}
