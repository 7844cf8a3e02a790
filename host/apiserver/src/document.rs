//! Documents that the server makes once and sends often, with their entity tags.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use serde_json::Value;

use crate::respond::{ApiBody, full, respond};

/// Text of a document with its entity tag.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    body: Bytes,
    etag: HeaderValue,
}

impl Document {
    pub(crate) fn new(content: &Value) -> Self {
        let body = Bytes::from(content.to_string());
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let etag = HeaderValue::from_str(&format!("\"{:016x}\"", hasher.finish()));
        Self {
            body,
            etag: etag.unwrap_or_else(|_| HeaderValue::from_static("\"\"")),
        }
    }

    /// Returns the response to a request with these headers: 304 without a body if the client has the document.
    pub(crate) fn answer(&self, request: &HeaderMap, content_type: &'static str) -> Response<ApiBody> {
        let is_known = request
            .get_all(header::IF_NONE_MATCH)
            .iter()
            .any(|known| *known == self.etag);
        let (code, body) = if is_known {
            (304, Bytes::new())
        } else {
            (200, self.body.clone())
        };
        let mut response = respond(code, content_type, full(body));
        response.headers_mut().insert(header::ETAG, self.etag.clone());
        response
            .headers_mut()
            .insert(header::VARY, HeaderValue::from_static("Accept"));
        response
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_that_has_the_document_gets_no_body() {
        let document = Document::new(&json!({"items": [1]}));
        let code = |known: Option<&HeaderValue>| {
            let mut headers = HeaderMap::new();
            if let Some(known) = known {
                headers.insert(header::IF_NONE_MATCH, known.clone());
            }
            document.answer(&headers, "application/json").status().as_u16()
        };
        let other = Document::new(&json!({"items": [2]}));
        assert_eq!(
            [code(None), code(Some(&other.etag)), code(Some(&document.etag))],
            [200, 200, 304]
        );
    }
}
