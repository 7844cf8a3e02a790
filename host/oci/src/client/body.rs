//! Status and body of answers.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::RETRY_AFTER;
use reqwest::Response;
use serde::Deserialize;

use crate::Reference;
use crate::error::Cause;

/// Maximum size of the body of an error in bytes.
const ERROR_BYTES_MAX: u64 = 64 << 10;
/// Maximum length of the message of a registry in characters.
const MESSAGE_CHARS_MAX: usize = 200;
/// Capacity of a buffer at its start in bytes. A registry that announces a large body gets no memory in advance.
const START_BYTES: u64 = 1 << 20;

/// Body of an error in the distribution API.
#[derive(Deserialize)]
struct Envelope {
    errors: Vec<Detail>,
}

#[derive(Deserialize)]
struct Detail {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// Returns an answer with one of these statuses; any other status is an error.
pub(super) async fn check(response: Response, image: &Reference, expected: &[StatusCode]) -> Result<Response, Cause> {
    let status = response.status();
    if expected.contains(&status) {
        return Ok(response);
    }
    let seconds = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    let retry_after = seconds
        .and_then(|text| text.trim().parse().ok())
        .map(Duration::from_secs);
    Err(match status {
        StatusCode::UNAUTHORIZED => super::unauthorized(image, true),
        StatusCode::FORBIDDEN => Cause::Forbidden(message(response).await),
        StatusCode::NOT_FOUND => Cause::NotFound,
        StatusCode::TOO_MANY_REQUESTS => Cause::TooManyRequests { retry_after },
        status if status.is_server_error() => Cause::ServerError(status.as_u16()),
        status => Cause::Unexpected(format!("{status}{}", message(response).await)),
    })
}

/// Returns the messages of an error, with a colon before them; empty if there are none.
async fn message(response: Response) -> String {
    let body = read(response, ERROR_BYTES_MAX, None).await.unwrap_or_default();
    let Ok(Envelope { errors }) = serde_json::from_slice(&body) else {
        return String::new();
    };
    let texts = errors
        .iter()
        .map(|Detail { code, message }| format!("{code} {message}"));
    let text = texts.collect::<Vec<_>>().join("; ");
    match bulkhead_plugin::one_line(text.trim(), MESSAGE_CHARS_MAX) {
        text if text.is_empty() => text,
        text => format!(": {text}"),
    }
}

/// Reads a body of at most `bytes_max` bytes. With an expected size, a shorter one is truncated.
pub(super) async fn read(mut response: Response, bytes_max: u64, expected: Option<u64>) -> Result<Bytes, Cause> {
    let length = response.content_length();
    if length.is_some_and(|length| length > bytes_max) {
        return Err(Cause::TooLarge { bytes_max });
    }
    let capacity = expected.or(length).unwrap_or_default().min(START_BYTES);
    let mut bytes = Vec::with_capacity(usize::try_from(capacity).unwrap_or_default());
    let size = |bytes: &Vec<u8>| u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) if error.is_timeout() => return Err(Cause::TimedOut),
            Err(error) => {
                return Err(match expected.or(length) {
                    Some(expected) => Cause::Truncated {
                        received: size(&bytes),
                        expected,
                    },
                    None => Cause::of_request(&error),
                });
            }
        }
        if size(&bytes) > bytes_max {
            return Err(Cause::TooLarge { bytes_max });
        }
    }
    match expected {
        Some(expected) if size(&bytes) < expected => Err(Cause::Truncated {
            received: size(&bytes),
            expected,
        }),
        _ => Ok(bytes.into()),
    }
}
