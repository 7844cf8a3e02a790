//! `/healthz`, `/readyz` and `/metrics`.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use bulkhead_controllers::Context;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// What the endpoint tells of.
#[derive(Clone, Default)]
pub(super) struct State(Arc<Inner>);

#[derive(Default)]
struct Inner {
    ready: AtomicBool,
    context: OnceLock<Context>,
}

impl State {
    /// Whether this process does its work, or is prepared to take it over.
    pub(super) fn set_ready(&self, ready: bool) {
        self.0.ready.store(ready, Ordering::Relaxed);
    }

    /// From now on metrics are those of these controllers.
    pub(super) fn observe(&self, context: Context) {
        let _ = self.0.context.set(context);
    }

    fn metrics(&self) -> String {
        let Some(context) = self.0.context.get() else { return String::new() };
        // What follows is counted elsewhere; it stands before the end that the encoder writes.
        let mut text = context.metrics.text();
        let end = text.rfind("# EOF").unwrap_or(text.len());
        text.truncate(end);
        let _ = family(&mut text, "bulkhead_plugin_calls", "Calls of a plugin.", "counter");
        let report = context.registry.report();
        for plugin in &report {
            let _ =
                writeln!(text, "bulkhead_plugin_calls_total{{plugin={:?}}} {}", plugin.id.name, plugin.counts.calls);
        }
        let _ = family(&mut text, "bulkhead_plugin_faults", "Calls of a plugin that gave no answer.", "counter");
        for plugin in &report {
            let _ =
                writeln!(text, "bulkhead_plugin_faults_total{{plugin={:?}}} {}", plugin.id.name, plugin.counts.faults);
        }
        let _ = family(&mut text, "bulkhead_reconcile_errors", "Reconciles to be tried again.", "counter");
        for (controller, error, count) in context.failures.counts() {
            let _ =
                writeln!(text, "bulkhead_reconcile_errors_total{{controller={controller:?},error={error:?}}} {count}");
        }
        let _ = family(&mut text, "bulkhead_withheld_writes", "Writes decided and not sent: mode report.", "counter");
        let _ = writeln!(text, "bulkhead_withheld_writes_total {}", context.failures.withheld());
        let _ = family(&mut text, "bulkhead_decisions", "Decisions in the journal.", "gauge");
        let _ = writeln!(text, "bulkhead_decisions {}\n# EOF", context.journal.recorded());
        text
    }
}

fn family(text: &mut String, name: &str, help: &str, type_: &str) -> std::fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {type_}")
}

/// Serves until the process ends. Returns the address that it listens on.
pub(super) async fn serve(address: SocketAddr, state: State) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("listening on {address} for probes"))?;
    let bound = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let state = state.clone();
            let answer = service_fn(move |request| {
                let response = answer(&request, &state);
                async move { Ok::<_, std::convert::Infallible>(response) }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    });
    Ok(bound)
}

fn answer(request: &Request<Incoming>, state: &State) -> Response<Full<Bytes>> {
    let (status, text) = match request.uri().path() {
        "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
        "/readyz" if state.0.ready.load(Ordering::Relaxed) => (StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => (StatusCode::SERVICE_UNAVAILABLE, "not ready: starting, or stopping\n".to_owned()),
        "/metrics" => (StatusCode::OK, state.metrics()),
        _ => (StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n".to_owned()),
    };
    let type_ = match request.uri().path() {
        "/metrics" => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(type_));
    response
}
