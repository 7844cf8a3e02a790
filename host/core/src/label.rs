//! Syntax of Kubernetes' label keys, label values and DNS labels, with its messages
//! (`k8s.io/apimachinery/pkg/util/validation`).

const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation \
                    is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SUBDOMAIN: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                         characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
                         'example.com', regex used for validation is \
                         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
                     '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
                         must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex \
                         used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// Checks a label key: a name with an optional DNS prefix.
pub fn check_key(text: &str) -> Result<(), String> {
    key_problems(text).into_iter().next().map_or(Ok(()), Err)
}

/// Returns all problems of a label key, in Kubernetes' order and with its messages.
pub fn key_problems(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if name.contains('/') {
        return vec![format!(
            "a qualified name {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )];
    }
    let mut problems = Vec::new();
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            if prefix.len() > 253 {
                problems.push("prefix part must be no more than 253 characters".to_owned());
            }
            if !prefix.split('.').all(is_dns_label) {
                problems.push(SUBDOMAIN.to_owned());
            }
        }
        None => {}
    }
    match name.len() {
        0 => problems.push("name part must be non-empty".to_owned()),
        64.. => problems.push("name part must be no more than 63 characters".to_owned()),
        _ => {}
    }
    if !is_name(name) {
        problems.push(format!("name part {NAME}"));
    }
    problems
}

/// Checks a label value.
pub fn check_value(text: &str) -> Result<(), String> {
    match text {
        "" => Ok(()),
        text if text.len() > 63 => Err("must be no more than 63 characters".to_owned()),
        text if !is_name(text) => Err(VALUE.to_owned()),
        _ => Ok(()),
    }
}

/// Checks a DNS label of at most `bytes_max` characters.
pub fn check_dns_label(text: &str, bytes_max: usize) -> Result<(), String> {
    match text {
        "" => Err("must be not empty".to_owned()),
        text if text.len() > bytes_max => Err(format!("must be no more than {bytes_max} characters")),
        text if !is_dns_label(text) => Err(DNS_LABEL.to_owned()),
        _ => Ok(()),
    }
}

fn is_name(text: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    is_bounded_by(text, u8::is_ascii_alphanumeric) && text.as_bytes().iter().all(inner)
}

fn is_dns_label(text: &str) -> bool {
    let outer = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_bounded_by(text, outer) && text.as_bytes().iter().all(|byte| outer(byte) || *byte == b'-')
}

fn is_bounded_by(text: &str, outer: impl Fn(&u8) -> bool) -> bool {
    text.as_bytes().first().is_some_and(&outer) && text.as_bytes().last().is_some_and(&outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked() {
        let check = |text: &str, expected: &str| match check_key(text) {
            Ok(()) => assert_eq!(expected, "", "{text:?}"),
            Err(message) => assert!(
                !expected.is_empty() && message.starts_with(expected),
                "{text:?}: {message}"
            ),
        };
        check("a", "");
        check("failover.karmada.io/Job_id.1", "");
        check("", "name part must be non-empty");
        check("-a", "name part must consist of");
        check("a/", "name part must be non-empty");
        check("/a", "prefix part must be non-empty");
        check("A.b/c", "prefix part a lowercase RFC 1123 subdomain");
        check("a..b/c", "prefix part a lowercase RFC 1123 subdomain");
        check("a/b/c", "a qualified name must consist of");
        check(&"a".repeat(64), "name part must be no more than 63");
    }

    #[test]
    fn values_and_dns_labels_are_checked() {
        assert!(check_value("").is_ok() && check_value("eu-West_1.a").is_ok());
        assert!(check_value("a/b").is_err() && check_value("-").is_err() && check_value(&"a".repeat(64)).is_err());
        assert!(check_dns_label("member-1", 48).is_ok());
        for text in ["", "Member", "a.b", "a-", &"a".repeat(49)] {
            assert!(check_dns_label(text, 48).is_err(), "{text:?}");
        }
    }
}
