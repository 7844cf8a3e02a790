//! ConfigMaps and Secrets.

use serde_json::{Value, json};

use super::names;
use crate::cause::Cause;
use crate::kind::ResourceKind;

/// Maximum size of all values, in bytes.
const SIZE_MAX: usize = 1 << 20;

/// Validates the keys and the size of the data.
pub(super) fn check(kind: &ResourceKind, object: &Value, wrong: &mut Vec<Cause>) {
    let is_secret = kind.kind == "Secret";
    let mut size = 0;
    for field in ["data", "binaryData"] {
        for (key, value) in object[field].as_object().into_iter().flatten() {
            let mistakes = names::config_key(key);
            wrong.extend(
                mistakes
                    .iter()
                    .map(|why| Cause::invalid(format!("{field}[{key}]"), &json!(key), why)),
            );
            let text = value.as_str().unwrap_or_default();
            size += if is_secret || field == "binaryData" {
                decoded_length(text)
            } else {
                text.len()
            };
        }
    }
    if size > SIZE_MAX {
        // The whole ConfigMap is too long, so that no field is named.
        wrong.push(Cause::too_long(if is_secret { "data" } else { "[]" }, SIZE_MAX));
    }
}

fn decoded_length(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// Returns the position at which Go's decoder finds that a text is no base64.
pub(super) fn bad_base64(text: &str) -> Option<usize> {
    let is_symbol = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut bytes = text
        .bytes()
        .enumerate()
        .filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    let (mut symbols, mut last) = (0_usize, 0);
    while let Some((at, byte)) = bytes.next() {
        last = at + 1;
        if is_symbol(byte) {
            symbols += 1;
            continue;
        }
        return match (byte, symbols % 4) {
            (b'=', 2) => match bytes.next() {
                Some((_, b'=')) => bytes.next().map(|(at, _)| at),
                Some((at, _)) => Some(at),
                None => Some(text.len()),
            },
            (b'=', 3) => bytes.next().map(|(at, _)| at),
            _ => Some(at),
        };
    }
    let rest = symbols % 4;
    (rest > 0).then(|| last - rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_as_go_does() {
        let cases = [
            ("", None),
            ("YWJj", None),
            ("YWI=", None),
            ("YQ==", None),
            ("YW\nJj", None),
            ("not base64!", Some(3)),
            ("*", Some(0)),
            ("abc", Some(0)),
            ("YQ==x", Some(4)),
            ("=", Some(0)),
        ];
        for (text, expected) in cases {
            assert_eq!(bad_base64(text), expected, "{text:?}");
        }
    }
}
