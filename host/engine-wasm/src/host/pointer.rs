//! JSON pointers (RFC 6901) without copies of tokens: guests use pointers several times per call.

use serde_json::Value;

/// Returns the value at a pointer. Same result as [`Value::pointer`], which copies every token twice.
pub(crate) fn pointer<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    if pointer.contains('~') {
        return value.pointer(pointer);
    }
    if pointer.is_empty() {
        return Some(value);
    }
    pointer
        .strip_prefix('/')?
        .split('/')
        .try_fold(value, |value, token| match value {
            Value::Object(members) => members.get(token),
            Value::Array(items) => items.get(index(token)?),
            _ => None,
        })
}

/// Parses an index of a list: digits, without a sign and without leading zeros.
fn index(token: &str) -> Option<usize> {
    if token.starts_with('+') || (token.starts_with('0') && token.len() > 1) {
        return None;
    }
    token.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_leads_where_serde_json_says() {
        let value = json!({"a": {"b": [1, {"c": null}], "": 2, "x/y": 3, "t~": 4, "0": 5}, "01": [6]});
        for path in [
            "", "/", "a", "/a", "/a/", "/a/b", "/a/b/0", "/a/b/1/c", "/a/b/2", "/a/b/00", "/a/b/+1", "/a/b/-1",
            "/a/b/-", "/a/x~1y", "/a/t~0", "/a/0", "/01/0", "/a/b/0/d", "//", "/a//", "/none",
        ] {
            assert_eq!(pointer(&value, path), value.pointer(path), "{path:?}");
        }
    }
}
