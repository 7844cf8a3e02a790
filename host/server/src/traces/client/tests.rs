use std::convert::Infallible;

use futures::FutureExt as _;
use http::StatusCode;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::*;

/// Sends a request to a URL. Returns the response, and the cause of a failure.
fn sent(url: &str) -> (Option<Response<Bytes>>, Option<String>) {
    let last_error = LastError::default();
    let client = BlockingClient::new(Duration::from_mins(1), None, Arc::clone(&last_error)).unwrap();
    let request = Request::post(url)
        .header("x-tenant", "hub")
        .body(Bytes::from_static(b"spans"));
    let answer = client.send_bytes(request.unwrap()).now_or_never().unwrap();
    let cause = last_error.lock().unwrap().clone();
    (answer.ok(), cause)
}

#[test]
fn a_request_has_its_headers_and_body_and_a_long_answer_is_cut() {
    let runtime = Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    runtime.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let answer = service_fn(|request: Request<Incoming>| async move {
            let is_whole = request.headers()["x-tenant"] == "hub" && request.uri().path() == "/v1/traces";
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let status = if is_whole && body == "spans" {
                StatusCode::ACCEPTED
            } else {
                StatusCode::BAD_REQUEST
            };
            let mut response = Response::new(Full::new(Bytes::from(vec![b'x'; 2 * ANSWER_BYTES_MAX])));
            *response.status_mut() = status;
            Ok::<_, Infallible>(response)
        });
        http1::Builder::new()
            .serve_connection(TokioIo::new(stream), answer)
            .await
    });
    let (response, cause) = sent(&url);
    let response = response.unwrap();
    assert_eq!((response.status(), cause), (StatusCode::ACCEPTED, None));
    assert_eq!(response.body().len(), ANSWER_BYTES_MAX);
}

#[test]
fn a_failure_has_its_cause_and_no_credentials() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (response, cause) = sent(&format!("http://user:secret@{address}/v1/traces"));
    let cause = cause.unwrap();
    assert!(response.is_none());
    assert!(cause.to_lowercase().contains("refused"), "{cause}");
    assert!(!cause.contains("secret"), "{cause}");
}

#[test]
fn a_file_with_authorities_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let error = |timeout| BlockingClient::new(timeout, Some(&file), LastError::default()).err();
    let missing = error(Duration::from_secs(1)).unwrap();
    assert!(missing.contains("ca.pem: "), "{missing}");
    std::fs::write(
        &file,
        "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    let broken = error(Duration::from_secs(1)).unwrap();
    assert!(broken.contains("ca.pem: "), "{broken}");
}
