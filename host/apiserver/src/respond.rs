//! Responses over HTTP.

use bytes::Bytes;
use futures::stream::{Stream, TryStreamExt};
use http::{Response, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::json;

use crate::kind::ResourceKind;
use crate::link::ConnectionError;
use crate::object::Object;
use crate::status_error::StatusError;

/// Body of a response: complete for most requests, an endless stream of lines for a watch.
pub type ApiBody = UnsyncBoxBody<Bytes, ConnectionError>;

pub(crate) fn deleted(kind: &ResourceKind, object: &Object) -> Bytes {
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

pub(crate) fn refusal(error: &StatusError) -> Response<ApiBody> {
    complete(error.code, error.to_bytes())
}

pub(crate) fn complete(code: u16, body: Bytes) -> Response<ApiBody> {
    respond(code, "application/json", full(body))
}

pub(crate) fn plain_text(code: u16, body: &'static str) -> Response<ApiBody> {
    respond(code, "text/plain", full(Bytes::from_static(body.as_bytes())))
}

pub(crate) fn stream(lines: impl Stream<Item = Result<Bytes, ConnectionError>> + Send + 'static) -> Response<ApiBody> {
    let body = StreamBody::new(lines.map_ok(Frame::data)).boxed_unsync();
    respond(200, "application/json", body)
}

pub(crate) fn full(body: Bytes) -> ApiBody {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn respond(code: u16, content_type: &'static str, body: ApiBody) -> Response<ApiBody> {
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}

/// Adds `Warning` headers, which clients such as `kubectl` print.
pub(crate) fn with_warnings(mut response: Response<ApiBody>, warnings: &[String]) -> Response<ApiBody> {
    for warning in warnings {
        let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = http::HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}
