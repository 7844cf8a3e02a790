//! Cases about the transport to a hook. The file records the outcome and the requests that the server received, but
//! not the server's behaviour, which is derived from the title. Cases with an unknown title are skipped.
//!
//! Cases that Karmada accepts and Bulkhead rejects by default run a second time with [`WebhookTransport::Karmada`].

use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::webhook::Hook;
use bulkhead_controllers::{HttpsWebhooks, WebhookTransport, ask_webhook};
use bulkhead_core::policy::{EngineKind, PolicyId, PolicySet};
use bulkhead_core::time::Time;
use k8s_openapi::ByteString;
use kube::Client;
use kube::client::Body;
use rustls::RootCertStore;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::Ran;
use super::case::{Arguments, Case};
use super::compare::{is_expected, same_values};
use super::outcome::{Outcome, ask, policy_call};
use super::server::{Behaviour, Server, other_certificate};

/// Runs a case.
pub(super) fn run(case: &Case) -> Result<Ran, String> {
    let Some(set_up) = SetUp::read(case) else {
        return Ok(Ran::Skipped(format!(
            "the server's behaviour is not recorded, and the titles do not name it: {:?}",
            case.title
        )));
    };
    let strictly = set_up.run(case, WebhookTransport::Strict)?;
    if is_expected(case, &strictly) {
        return Ok(Ran::Outcome(strictly));
    }
    let as_karmada = set_up.run(case, WebhookTransport::Karmada)?;
    if is_expected(case, &as_karmada) {
        return Ok(Ran::With("WebhookTransport::Karmada", as_karmada));
    }
    Ok(Ran::Outcome(strictly))
}

/// Setup of a case, derived from its title.
struct SetUp {
    behaviour: Behaviour,
    address: Address,
    /// True if the hook's CA bundle contains the server's certificate.
    trusted: bool,
    timeout_s: Option<i32>,
    versions: &'static [&'static str],
}

/// Address in the hook.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Address {
    /// URL of the server.
    Url,
    /// The service that the case records, if any.
    Service,
    /// A closed port, with this scheme.
    Nobody(&'static str),
    /// No address.
    Absent,
}

impl SetUp {
    fn read(case: &Case) -> Option<Self> {
        let plain = Self {
            behaviour: Behaviour::default(),
            address: Address::Url,
            trusted: true,
            timeout_s: Some(1),
            versions: &["v1alpha1"],
        };
        if case.title.starts_with("service ") {
            // Only the recorded error contains the names in the certificate of the recorded server.
            let lacks_service_name = case
                .error
                .as_ref()
                .is_some_and(|error| error.message.contains("certificate is valid for"));
            let behaviour = Behaviour {
                lacks_service_name,
                ..Behaviour::default()
            };
            return Some(Self {
                behaviour,
                address: Address::Service,
                timeout_s: Some(2),
                ..plain
            });
        }
        let title = case.title.strip_prefix("transport ")?;
        if let Some(rest) = title.strip_prefix("http ")
            && let Ok(status) = rest.split(' ').next()?.parse()
        {
            return Self::of_status(plain, status, rest.split_once(' ').map_or("", |(_, rest)| rest));
        }
        let late = Duration::from_millis(case.took_at_least_millis);
        Some(match title {
            "ok" => plain,
            "text content type" => Self {
                behaviour: Behaviour {
                    content_type: "text/plain",
                    ..Behaviour::default()
                },
                ..plain
            },
            "timeout" => Self {
                behaviour: Behaviour {
                    takes: late.max(Duration::from_secs(1)) * 2,
                    ..Behaviour::default()
                },
                ..plain
            },
            "redirect" => Self {
                behaviour: Behaviour {
                    redirects: true,
                    ..Behaviour::default()
                },
                ..plain
            },
            "plain http works at run time" => Self {
                behaviour: Behaviour {
                    plain: true,
                    ..Behaviour::default()
                },
                ..plain
            },
            "wrong ca" => Self {
                trusted: false,
                ..plain
            },
            "unsupported context version" => Self {
                versions: &["v2"],
                ..plain
            },
            "second context version supported" => Self {
                versions: &["v2", "v1alpha1"],
                ..plain
            },
            "connection refused" => Self {
                address: Address::Nobody("https"),
                ..plain
            },
            "http scheme" => Self {
                address: Address::Nobody("http"),
                ..plain
            },
            "neither url nor service" => Self {
                address: Address::Absent,
                ..plain
            },
            _ if title.starts_with("no timeoutSeconds") => {
                let behaviour = Behaviour {
                    takes: late,
                    ..Behaviour::default()
                };
                Self {
                    behaviour,
                    timeout_s: None,
                    ..plain
                }
            }
            _ => return None,
        })
    }

    /// Returns the setup for a status code; `rest` describes the `Retry-After` header and the deadline.
    fn of_status(plain: Self, status: u16, rest: &str) -> Option<Self> {
        let (comes_back, timeout_s) = match rest {
            "" => (false, Some(1)),
            "retry after" => (true, Some(4)),
            "retry after without a deadline" => (true, None),
            _ => return None,
        };
        Some(Self {
            behaviour: Behaviour {
                status,
                comes_back,
                ..Behaviour::default()
            },
            timeout_s,
            ..plain
        })
    }

    /// Calls the hook. The requests at the server are compared here, the outcome by the caller.
    fn run(&self, case: &Case, transport: WebhookTransport) -> Result<Outcome, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build();
        let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
        // The paused clock would advance whenever all tasks wait for the network. A busy blocking thread prevents
        // this.
        let (done, standing) = std::sync::mpsc::channel::<()>();
        runtime.spawn_blocking(move || {
            let _ = standing.recv();
        });
        let outcome = runtime.block_on(self.ask(case, transport));
        drop(done);
        outcome
    }

    async fn ask(&self, case: &Case, transport: WebhookTransport) -> Result<Outcome, String> {
        let server = Server::start(self.behaviour.clone()).await?;
        let hook = self.hook(&server).await?;
        let service = case.setup.get("service").map(|spec| with_port(spec, server.port));
        let webhooks = HttpsWebhooks::new(hub(service), RootCertStore::empty(), transport);
        let arguments = Arguments::read(&case.inputs)?;
        let call = policy_call(&case.operation, &arguments, Time::from_millis(0))?;
        let id = PolicyId {
            name: "c/h.example.io".to_owned(),
            version: "1".to_owned(),
            engine: EngineKind::Webhook,
        };
        let started = Instant::now();
        let answered = ask_webhook(&webhooks, (id, hook), &call, "the-uid").await;
        let outcome = ask(&PolicySet::new(vec![answered]), &case.operation, &arguments)?;
        let took = started.elapsed();
        if is_expected(case, &outcome) {
            self.compare(case, &server, took)?;
        }
        Ok(outcome)
    }

    async fn hook(&self, server: &Server) -> Result<Hook, String> {
        let port = server.port;
        let mut config = match self.address {
            Address::Url if self.behaviour.plain => json!({"url": format!("http://127.0.0.1:{port}/t")}),
            Address::Url => json!({"url": format!("https://127.0.0.1:{port}/t")}),
            Address::Service => json!({"service": {"namespace": "ns", "name": "svc", "path": "/s", "port": port}}),
            Address::Nobody(scheme) => json!({"url": format!("{scheme}://127.0.0.1:{}/x", unused_port().await?)}),
            Address::Absent => json!({}),
        };
        let certificate = if self.trusted {
            server.certificate.clone()
        } else {
            other_certificate()?
        };
        config["caBundle"] = json!(ByteString(certificate.into_bytes()));
        let hook = json!({
            "name": "h.example.io", "clientConfig": config, "timeoutSeconds": self.timeout_s,
            "interpreterContextVersions": self.versions,
        });
        serde_json::from_value(hook).map_err(|error| format!("the hook: {error}"))
    }

    /// Compares the duration and the requests at the server. Requests to plain HTTP servers were not recorded in the
    /// file.
    fn compare(&self, case: &Case, server: &Server, took: Duration) -> Result<(), String> {
        if took < Duration::from_millis(case.took_at_least_millis) {
            return Err(format!(
                "it took {took:?}, expected at least {} ms",
                case.took_at_least_millis
            ));
        }
        if self.behaviour.plain {
            return Ok(());
        }
        let seen = server.seen();
        let requests = case.setup.get("requestsSeen").and_then(Value::as_u64);
        if requests.is_some_and(|requests| requests != seen.requests) {
            return Err(format!(
                "the server was asked {} times, expected {requests:?}",
                seen.requests
            ));
        }
        match case.setup.get("lastRequestHeaders") {
            Some(headers) if !same_values(headers, &seen.last) => {
                Err(format!("the last request was {}, expected {headers}", seen.last))
            }
            _ => Ok(()),
        }
    }
}

/// Returns a port that was just closed.
async fn unused_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(|error| format!("no port: {error}"))?;
    listener
        .local_addr()
        .map(|address| address.port())
        .map_err(|error| format!("no port: {error}"))
}

/// Replaces the port placeholder in a spec with the port of the server.
fn with_port(spec: &Value, port: u16) -> Value {
    match spec {
        Value::String(text) if text == "{{PORT}}" => port.into(),
        Value::Array(elements) => elements.iter().map(|element| with_port(element, port)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), with_port(member, port)))
            .collect(),
        other => other.clone(),
    }
}

/// Returns a client for a control plane with at most one service.
fn hub(service: Option<Value>) -> Client {
    let service = Arc::new(service);
    let answer = move |_: http::Request<Body>| {
        let (status, object) = match &*service {
            Some(spec) => (200, json!({"apiVersion": "v1", "kind": "Service", "spec": spec})),
            None => (
                404,
                json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}),
            ),
        };
        let response = http::Response::builder()
            .status(status)
            .body(Body::from(object.to_string().into_bytes()));
        std::future::ready(response)
    };
    Client::new(tower::service_fn(answer), "default")
}
