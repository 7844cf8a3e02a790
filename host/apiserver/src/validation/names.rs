//! Formats of names (Kubernetes: `apimachinery/pkg/util/validation`). Each function returns the mistakes of a text.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
     used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
     'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// Maximum length of a subdomain.
const SUBDOMAIN_MAX: usize = 253;
/// Maximum length of a label, a label value and the name part of a qualified name.
const LABEL_MAX: usize = 63;

fn too_long(length_max: usize) -> String {
    format!("must be no more than {length_max} characters")
}

fn is_label(text: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter().all(|end| end.is_some_and(is_alphanumeric))
        && text.bytes().all(|byte| byte == b'-' || is_alphanumeric(byte))
}

fn is_qualified(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter()
        .all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn mistakes(text: &str, length_max: usize, is_valid: bool, message: &str) -> Vec<String> {
    let mut found = Vec::new();
    if text.len() > length_max {
        found.push(too_long(length_max));
    }
    if !is_valid {
        found.push(message.to_owned());
    }
    found
}

/// Names of most objects.
pub(super) fn subdomain(text: &str) -> Vec<String> {
    mistakes(text, SUBDOMAIN_MAX, text.split('.').all(is_label), SUBDOMAIN)
}

/// Names of Namespaces, Services and containers.
pub(super) fn label(text: &str) -> Vec<String> {
    mistakes(text, LABEL_MAX, is_label(text), LABEL)
}

/// Names of roles and their bindings.
pub(super) fn path_segment(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if matches!(text, "." | "..") {
        found.push(format!("may not be '{text}'"));
    }
    found.extend(
        ["/", "%"]
            .iter()
            .filter(|part| text.contains(**part))
            .map(|part| format!("may not contain '{part}'")),
    );
    found
}

/// Keys of labels and annotations.
pub(super) fn qualified(text: &str) -> Vec<String> {
    let mut parts = text.split('/');
    let (prefix, name) = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => (None, name),
        (Some(prefix), Some(name), None) => (Some(prefix), name),
        _ => {
            let rest = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a qualified name {QUALIFIED} {rest}")];
        }
    };
    let mut found = Vec::new();
    match prefix {
        Some("") => found.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => found.extend(subdomain(prefix).iter().map(|mistake| format!("prefix part {mistake}"))),
        None => {}
    }
    if name.is_empty() {
        found.push("name part must be non-empty".to_owned());
    }
    found.extend(
        mistakes(name, LABEL_MAX, is_qualified(name), QUALIFIED)
            .iter()
            .map(|text| format!("name part {text}")),
    );
    found
}

/// Values of labels.
pub(super) fn label_value(text: &str) -> Vec<String> {
    mistakes(text, LABEL_MAX, text.is_empty() || is_qualified(text), LABEL_VALUE)
}

/// Keys of ConfigMaps and Secrets.
pub(super) fn config_key(text: &str) -> Vec<String> {
    let is_valid = !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    let mut found = mistakes(text, SUBDOMAIN_MAX, is_valid, CONFIG_KEY);
    match text {
        "." => found.push("must not be '.'".to_owned()),
        ".." => found.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => found.push("must not start with '..'".to_owned()),
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: fn(&str) -> Vec<String>, valid: &[&str], invalid: &[&str]) {
        for text in valid {
            assert_eq!(rule(text), [""; 0], "{text}");
        }
        for text in invalid {
            assert!(!rule(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn names_have_the_formats_of_kubernetes() {
        check(subdomain, &["a", "a-b.c", "1"], &["", "A", "a_b", "-a", "a.", "a..b"]);
        check(label, &["a", "a-b"], &["a.b", "a-", &"a".repeat(64)]);
        check(path_segment, &["system:node", "A b"], &["..", "a/b", "a%b"]);
        check(
            qualified,
            &["a", "A_b.c", "example.com/a"],
            &["", "a b", "/a", "a/", "a/b/c", "A/b", "-a"],
        );
        check(label_value, &["", "a_b", "A"], &["a b", "-a", &"a".repeat(64)]);
        check(config_key, &["a.b", ".a", "_"], &["", "a b", "..", "..a"]);
    }
}
