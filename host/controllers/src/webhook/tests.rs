//! Webhooks behind a TLS server in this process, with a certificate that is made for the test.

use std::sync::Arc;

use bulkhead_core::call::{HealthCall, InterpretCall, Operation};
use bulkhead_core::combine;
use bulkhead_core::model::Health;
use bulkhead_core::policy::PolicySet;
use bulkhead_core::time::Time;
use kube::Client;
use kube::client::Body;
use rustls::RootCertStore;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// Response of the server to every request; `None` never responds.
type Script = fn(request: &Value) -> Option<(u16, String)>;

/// A server, and a webhook that leads to it.
struct Served {
    hook: Hook,
    _server: tokio::task::JoinSet<()>,
}

fn base64(bytes: &[u8]) -> Value {
    serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).unwrap()
}

/// Starts a server. If `trusted`, the webhook names its certificate, otherwise that of another server.
async fn serve(script: Script, trusted: bool) -> Served {
    let certificate = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (mine, other) = (certificate(), certificate());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(mine.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config
        .with_no_client_auth()
        .with_single_cert(vec![mine.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("localhost:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut server = tokio::task::JoinSet::new();
    server.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let Some(request) = read_request(&mut stream).await else {
                continue;
            };
            let Some((status, body)) = script(&request) else {
                std::future::pending().await
            };
            let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    let bundle = base64(if trusted { mine.cert.pem() } else { other.cert.pem() }.as_bytes());
    let url = format!("https://localhost:{port}/hook");
    let hook = json!({
        "name": "h.example.io", "clientConfig": {"url": url, "caBundle": bundle}, "timeoutSeconds": 1,
        "interpreterContextVersions": ["v1alpha1"],
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "kinds": ["*"]}],
    });
    Served {
        hook: serde_json::from_value(hook).unwrap(),
        _server: server,
    }
}

/// Reads the body of a request as JSON.
async fn read_request(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<Value> {
    let mut read = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        read.extend_from_slice(chunk.get(..count)?);
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            return Some(body);
        }
    }
}

fn https() -> HttpsWebhooks {
    let nobody = tower::service_fn(|_: http::Request<Body>| async {
        Err::<http::Response<Body>, _>(std::io::Error::other("there is no control plane"))
    });
    HttpsWebhooks::new(
        Client::new(nobody, "default"),
        RootCertStore::empty(),
        WebhookTransport::Strict,
    )
}

#[expect(clippy::unnecessary_wraps, reason = "what a server says, or nothing")]
fn answer(request: &Value, response: Value) -> Option<(u16, String)> {
    let mut response = response;
    response["uid"] = request["request"]["uid"].clone();
    Some((200, json!({"response": response}).to_string()))
}

/// Returns the resulting health, with the kind of fault if there was one.
async fn health(hook: Hook) -> (Health, Option<FaultKind>) {
    let object = Arc::new(json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}}));
    let call = HealthCall {
        object: &object,
        now: Time::from_millis(0),
    };
    let id = PolicyId {
        name: "c/h.example.io".to_owned(),
        version: "1".to_owned(),
        engine: EngineKind::Webhook,
    };
    let answered = ask(&https(), (id, hook), &Call::Health(call.clone()), "u").await;
    let outcome = combine::health(&PolicySet::new(vec![answered]), call);
    (
        outcome.health,
        outcome.diagnostics.faults.first().map(|fault| fault.fault.kind),
    )
}

async fn check(script: Script, trusted: bool, expected: (Health, Option<FaultKind>)) {
    let served = serve(script, trusted).await;
    assert_eq!(health(served.hook.clone()).await, expected);
}

fn healthy(request: &Value) -> Option<(u16, String)> {
    answer(request, json!({"successful": true, "healthy": true}))
}

#[tokio::test]
async fn a_hook_returns_the_health() {
    check(healthy, true, (Health::Healthy, None)).await;
    check(
        |request| answer(request, json!({"successful": true, "healthy": false})),
        true,
        (Health::Unhealthy, None),
    )
    .await;
}

#[tokio::test]
async fn health_is_unknown_when_the_certificate_is_not_the_right_one() {
    check(healthy, false, (Health::Unknown, Some(FaultKind::Unreachable))).await;
}

#[tokio::test]
async fn health_is_unknown_when_the_hook_is_down() {
    let listener = TcpListener::bind("localhost:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut hook = serve(healthy, true).await.hook.clone();
    hook.client_config.url = Some(format!("https://localhost:{port}/"));
    assert_eq!(health(hook).await, (Health::Unknown, Some(FaultKind::Unreachable)));
}

/// The clock is paused, so that it advances to the timeout while the server is silent.
#[tokio::test(start_paused = true)]
async fn health_is_unknown_when_the_hook_does_not_answer_in_time() {
    check(|_| None, true, (Health::Unknown, Some(FaultKind::Deadline))).await;
}

#[tokio::test]
async fn health_is_unknown_when_the_answer_is_rubbish() {
    let unknown = |kind| (Health::Unknown, Some(kind));
    check(|_| Some((200, "hello".to_owned())), true, unknown(FaultKind::BadReply)).await;
    check(|_| Some((200, String::new())), true, unknown(FaultKind::BadReply)).await;
    check(
        |_| {
            Some((
                200,
                r#"{"response": {"uid": "x", "successful": true, "healthy": true}}"#.to_owned(),
            ))
        },
        true,
        unknown(FaultKind::BadReply),
    )
    .await;
    check(
        |request| answer(request, json!({"successful": true})),
        true,
        unknown(FaultKind::BadReply),
    )
    .await;
}

#[tokio::test]
async fn health_is_unknown_whatever_status_but_success_comes_back() {
    let unknown = (Health::Unknown, Some(FaultKind::GuestError));
    check(|_| Some((302, String::new())), true, unknown).await;
    check(|_| Some((404, "gone".to_owned())), true, unknown).await;
    check(|_| Some((500, "oops".to_owned())), true, unknown).await;
    let refused = |request: &Value| {
        answer(
            request,
            json!({"successful": false, "status": {"code": 403, "message": "no"}}),
        )
    };
    check(refused, true, unknown).await;
    let created = |request: &Value| healthy(request).map(|(_, body)| (201, body));
    check(created, true, (Health::Healthy, None)).await;
}

#[tokio::test]
async fn a_hook_that_speaks_another_version_or_has_no_usable_address_is_not_asked() {
    let served = serve(healthy, true).await;
    let changed = |change: fn(&mut Hook)| {
        let mut hook = served.hook.clone();
        change(&mut hook);
        health(hook)
    };
    let unknown = (Health::Unknown, Some(FaultKind::Unreachable));
    assert_eq!(
        changed(|hook| hook.interpreter_context_versions = vec!["v1".to_owned()]).await,
        unknown
    );
    assert_eq!(changed(|hook| hook.client_config.url = None).await, unknown);
    assert_eq!(
        changed(|hook| hook.client_config.ca_bundle = Some("***".to_owned())).await,
        unknown
    );
    assert_eq!(
        changed(|hook| hook.client_config.ca_bundle = Some("bm9wZQ==".to_owned())).await,
        unknown
    );
    assert_eq!(changed(|hook| hook.client_config.ca_bundle = None).await, unknown);
}

#[tokio::test]
async fn what_one_operation_answers_is_no_answer_to_another() {
    let served = serve(
        |request| answer(request, json!({"successful": true, "replicas": 3})),
        true,
    )
    .await;
    let object = Arc::new(json!({"apiVersion": "example.io/v1", "kind": "Widget"}));
    let interpret = |operation| InterpretCall {
        operation,
        now: Time::from_millis(0),
    };
    let call = Call::Interpret(interpret(Operation::Replicas { object: &object }));
    let id = PolicyId {
        name: "c/h".to_owned(),
        version: "1".to_owned(),
        engine: EngineKind::Webhook,
    };
    let answered = ask(&https(), (id, served.hook.clone()), &call, "u").await;
    let policies = PolicySet::new(vec![answered]);
    let outcome = combine::interpret(&policies, interpret(Operation::Replicas { object: &object })).unwrap();
    assert!(outcome.interpretation.is_some());
    let outcome = combine::interpret(&policies, interpret(Operation::ReflectStatus { object: &object })).unwrap();
    assert!(outcome.interpretation.is_none());
}
