//! The HTTPS endpoint that completes and checks objects before the API server stores them.
//!
//! What it decides is in [`bulkhead_api::admission`]; here are only the protocol, the certificate and the
//! registration.

mod certificate;
mod registration;
mod review;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use bulkhead_api::admission::AdmissionOptions;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub(super) use self::certificate::Certificate;
pub(super) use self::registration::register;

/// Largest review that is read; API servers do not store objects larger than about 1.5 MiB.
const REVIEW_BYTES_MAX: usize = 8 << 20;

/// Serves reviews until it is dropped. Returns the address that it listens on.
pub(super) async fn serve(
    address: SocketAddr,
    certificate: &Certificate,
    options: AdmissionOptions,
) -> anyhow::Result<(SocketAddr, impl Future<Output = ()> + Send + use<>)> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("listening on {address} for reviews"))?;
    let bound = listener.local_addr()?;
    let acceptor = TlsAcceptor::from(Arc::new(certificate.server_config()?));
    let accept = async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // The process is out of file handles, for example; connections end, so it is worth waiting.
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            };
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let answer = service_fn(move |request| answer(request, options));
                let connection = auto::Builder::new(TokioExecutor::new());
                let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    };
    Ok((bound, accept))
}

async fn answer(
    request: Request<Incoming>,
    options: AdmissionOptions,
) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    let plain = |status: StatusCode, text: String| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        response
    };
    if request.uri().path() != review::PATH {
        return Ok(plain(StatusCode::NOT_FOUND, format!("reviews are answered at {}\n", review::PATH)));
    }
    if request.method() != Method::POST {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, "a review is posted\n".to_owned()));
    }
    let body = match Limited::new(request.into_body(), REVIEW_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return Ok(plain(StatusCode::BAD_REQUEST, format!("reading the review: {error}\n"))),
    };
    Ok(match review::answer(&body, options) {
        Ok(answer) => {
            let mut response = Response::new(Full::from(answer));
            let json = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert(http::header::CONTENT_TYPE, json);
            response
        }
        Err(error) => plain(StatusCode::BAD_REQUEST, format!("{error:#}\n")),
    })
}
