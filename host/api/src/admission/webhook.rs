//! Validation of hooks that interpret resources (Karmada: `pkg/webhook/configuration`).

use std::collections::BTreeSet;

use bulkhead_core::call::OPERATION_NAMES;

use super::Denied;
use crate::webhook::context::VERSION;
use crate::webhook::{ClientConfig, Hook, Rule, ServiceReference};

/// Returns all problems of the hooks of a configuration.
pub fn validate(hooks: &[Hook]) -> Vec<Denied> {
    let (mut problems, mut names) = (Vec::new(), BTreeSet::new());
    for (index, hook) in hooks.iter().enumerate() {
        let at = format!("webhooks[{index}]");
        validate_hook(&at, hook, &mut problems);
        if !names.insert(&hook.name) {
            problems.push(Denied::duplicate(format!("{at}.name"), &hook.name));
        }
    }
    problems
}

fn validate_hook(at: &str, hook: &Hook, problems: &mut Vec<Denied>) {
    validate_name(&format!("{at}.name"), &hook.name, problems);
    for (index, rule) in hook.rules.iter().enumerate() {
        validate_rule(&format!("{at}.rules[{index}]"), rule, problems);
    }
    if let Some(seconds) = hook.timeout_seconds.filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        problems.push(Denied::invalid(format!("{at}.timeoutSeconds"), seconds, detail));
    }
    let ClientConfig {
        url,
        service,
        ca_bundle: _,
    } = &hook.client_config;
    match (url, service) {
        (Some(url), None) => validate_url(&format!("{at}.clientConfig.url"), url, problems),
        (None, Some(service)) => validate_service(&format!("{at}.clientConfig.service"), service, problems),
        _ => {
            let detail = "exactly one of url or service is required";
            problems.push(Denied::required(format!("{at}.clientConfig"), detail));
        }
    }
    validate_versions(
        &format!("{at}.interpreterContextVersions"),
        &hook.interpreter_context_versions,
        problems,
    );
}

/// Checks that a name is fully qualified, with at least two labels.
fn validate_name(at: &str, name: &str, problems: &mut Vec<Denied>) {
    if name.is_empty() {
        return problems.push(Denied::required(at, ""));
    }
    let labels: Vec<_> = name.split('.').collect();
    if name.len() > 253 || !labels.iter().all(|label| is_dns_label(label, false)) {
        let detail = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                      must start and end with an alphanumeric character";
        problems.push(Denied::invalid(at, name, detail));
    } else if labels.len() < 2 {
        problems.push(Denied::invalid(
            at,
            name,
            "should be a domain with at least two segments separated by dots",
        ));
    }
}

/// Returns true for a label of RFC 1123, or with `letter_first` of RFC 1035.
fn is_dns_label(label: &str, letter_first: bool) -> bool {
    let letter_or_digit = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let (first, last) = (label.as_bytes().first(), label.as_bytes().last());
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| letter_or_digit(&byte) || byte == b'-')
        && last.is_some_and(letter_or_digit)
        && first.is_some_and(|byte| {
            if letter_first {
                byte.is_ascii_lowercase()
            } else {
                letter_or_digit(byte)
            }
        })
}

fn validate_rule(at: &str, rule: &Rule, problems: &mut Vec<Denied>) {
    // The core API group has an empty name, so an empty entry is valid.
    let lists = [
        ("operations", &rule.operations, "operations", false),
        ("apiGroups", &rule.api_groups, "API groups", false),
        ("apiVersions", &rule.api_versions, "API versions", true),
        ("kinds", &rule.kinds, "kinds", true),
    ];
    for (name, list, noun, named) in lists {
        if list.is_empty() {
            problems.push(Denied::required(format!("{at}.{name}"), ""));
        }
        if list.len() > 1 && list.iter().any(|entry| entry == "*") {
            let detail = format!("if '*' is present, must not specify other {noun}");
            problems.push(Denied::invalid(format!("{at}.{name}"), list, detail));
        }
        for (index, entry) in list.iter().enumerate() {
            let at = format!("{at}.{name}[{index}]");
            if name == "operations" && entry != "*" && !OPERATION_NAMES.contains(&entry.as_str()) {
                let supported = [&["*"], &OPERATION_NAMES[..]].concat();
                problems.push(Denied::not_supported(at, entry, &supported));
            } else if named && entry.is_empty() {
                problems.push(Denied::required(at, ""));
            }
        }
    }
}

/// Admits only `https://host[:port][/path]`: plain HTTP is neither authenticated nor encrypted.
fn validate_url(at: &str, url: &str, problems: &mut Vec<Denied>) {
    let form = "desired format: https://host[/path]";
    let Ok(uri) = url.parse::<http::Uri>() else {
        return problems.push(Denied::required(at, &format!("url must be a valid URL; {form}")));
    };
    if uri.scheme_str() != Some("https") {
        let scheme = uri.scheme_str().unwrap_or_default();
        problems.push(Denied::invalid(
            at,
            scheme,
            format!("'https' is the only allowed URL scheme; {form}"),
        ));
    }
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    if uri.host().unwrap_or_default().is_empty() {
        problems.push(Denied::invalid(at, "", format!("host must be specified; {form}")));
    }
    if authority.contains('@') {
        problems.push(Denied::invalid(
            at,
            authority,
            "user information is not permitted in the URL",
        ));
    }
    if url.contains('#') {
        problems.push(Denied::invalid(at, url, "fragments are not permitted in the URL"));
    }
    if let Some(query) = uri.query().filter(|query| !query.is_empty()) {
        problems.push(Denied::invalid(
            at,
            query,
            "query parameters are not permitted in the URL",
        ));
    }
}

fn validate_service(at: &str, service: &ServiceReference, problems: &mut Vec<Denied>) {
    for (name, value) in [("name", &service.name), ("namespace", &service.namespace)] {
        if value.is_empty() {
            problems.push(Denied::required(format!("{at}.{name}"), ""));
        }
    }
    let port = service.port.unwrap_or(443);
    if !(1..=65_535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        problems.push(Denied::invalid(format!("{at}.port"), port, detail));
    }
    let Some(path) = service.path.as_deref().filter(|path| !path.is_empty()) else {
        return;
    };
    let at = format!("{at}.path");
    if !path.starts_with('/') {
        problems.push(Denied::invalid(at.clone(), path, "must start with a '/'"));
    }
    if path == "/" {
        return;
    }
    let segments: Vec<_> = path.split('/').skip(1).collect();
    let segments = if segments.is_empty() { vec![""] } else { segments };
    let last = segments.len().saturating_sub(1);
    for (index, segment) in segments.iter().enumerate() {
        // A trailing slash is allowed.
        if segment.is_empty() && (index < last || last == 0) {
            problems.push(Denied::invalid(
                at.clone(),
                path,
                format!("segment[{index}] may not be empty"),
            ));
        }
    }
}

fn validate_versions(at: &str, versions: &[String], problems: &mut Vec<Denied>) {
    if versions.is_empty() {
        return problems.push(Denied::required(at, &format!("must specify one of {VERSION}")));
    }
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let at = format!("{at}[{index}]");
        if !seen.insert(version) {
            problems.push(Denied::invalid(at, version, "duplicate version"));
        } else if !is_dns_label(version, true) {
            let detail = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                          alphabetic character, and end with an alphanumeric character";
            problems.push(Denied::invalid(at, version, detail));
        }
    }
    if !versions.iter().any(|version| version == VERSION) {
        problems.push(Denied::invalid(
            at,
            versions,
            format!("must include at least one of {VERSION}"),
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Checks a valid hook with `change` merged into it.
    fn check(change: Value, expected: &[&str]) {
        let rule = json!({"operations": ["Retain"], "apiGroups": [""], "apiVersions": ["v1"], "kinds": ["Pod"]});
        let mut hook = json!({
            "name": "h.example.io", "clientConfig": {"url": "https://h.example.io:8443/x"}, "rules": [rule],
            "interpreterContextVersions": ["v1alpha1"],
        });
        json_patch::merge(&mut hook, &change);
        let hook: Hook = serde_json::from_value(hook).unwrap();
        let problems: Vec<_> = validate(&[hook]).iter().map(Denied::to_string).collect();
        assert_eq!(problems, expected, "{change}");
    }

    #[test]
    fn a_hook_has_to_be_reachable_and_to_say_what_it_answers() {
        check(json!({}), &[]);
        check(json!({"rules": null}), &[]);
        check(json!({"clientConfig": {"caBundle": "bm9wZQ=="}}), &[]);
        check(json!({"name": "h.x"}), &[]);
        check(json!({"name": ""}), &["webhooks[0].name: Required value"]);
        check(
            json!({"name": "h"}),
            &[
                "webhooks[0].name: Invalid value: \"h\": should be a domain with at least two segments separated by dots",
            ],
        );
        check(
            json!({"timeoutSeconds": 31}),
            &["webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"],
        );
        check(
            json!({"interpreterContextVersions": ["v1"]}),
            &["webhooks[0].interpreterContextVersions: Invalid value: [\"v1\"]: must include at least one of v1alpha1"],
        );
    }

    #[test]
    fn there_is_one_address_and_it_is_a_safe_one() {
        let one = "webhooks[0].clientConfig: Required value: exactly one of url or service is required";
        check(json!({"clientConfig": {"url": null}}), &[one]);
        let service = |service: Value| json!({"clientConfig": {"url": null, "service": service}});
        check(
            json!({"clientConfig": {"service": {"name": "s", "namespace": "n"}}}),
            &[one],
        );
        check(service(json!({"name": "s", "namespace": "n"})), &[]);
        check(service(json!({"name": "s", "namespace": "n", "path": "/x/y"})), &[]);
        let at = "webhooks[0].clientConfig.service";
        check(
            service(json!({"name": "", "namespace": "n", "port": 70_000})),
            &[
                &format!("{at}.name: Required value"),
                &format!("{at}.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive"),
            ],
        );
        check(
            service(json!({"name": "s", "namespace": "n", "path": "x"})),
            &[
                &format!("{at}.path: Invalid value: \"x\": must start with a '/'"),
                &format!("{at}.path: Invalid value: \"x\": segment[0] may not be empty"),
            ],
        );
        let double = format!("{at}.path: Invalid value: \"/x//y\": segment[1] may not be empty");
        check(
            service(json!({"name": "s", "namespace": "n", "path": "/x//y"})),
            &[&double],
        );
        let plain = "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; \
                     desired format: https://host[/path]";
        check(json!({"clientConfig": {"url": "http://h.example.io/"}}), &[plain]);
        let query =
            "webhooks[0].clientConfig.url: Invalid value: \"a=b\": query parameters are not permitted in the URL";
        check(json!({"clientConfig": {"url": "https://h.example.io/?a=b"}}), &[query]);
    }

    #[test]
    fn rules_name_what_there_is() {
        let rule = |change: Value| {
            let mut rule =
                json!({"operations": ["Retain"], "apiGroups": [""], "apiVersions": ["v1"], "kinds": ["Pod"]});
            json_patch::merge(&mut rule, &change);
            json!({"rules": [rule]})
        };
        check(rule(json!({"operations": ["*"]})), &[]);
        check(
            rule(json!({"operations": null})),
            &["webhooks[0].rules[0].operations: Required value"],
        );
        let supported = "supported values: \"*\", \"AggregateStatus\", \"InterpretComponent\", \"InterpretDependency\", \
                         \"InterpretHealth\", \"InterpretReplica\", \"InterpretStatus\", \"Retain\", \"ReviseReplica\"";
        let prune = format!("webhooks[0].rules[0].operations[0]: Unsupported value: \"Prune\": {supported}");
        check(rule(json!({"operations": ["Prune"]})), &[&prune]);
        let star = "webhooks[0].rules[0].kinds: Invalid value: [\"*\",\"Pod\"]: if '*' is present, must not specify other kinds";
        check(rule(json!({"kinds": ["*", "Pod"]})), &[star]);
        check(
            rule(json!({"kinds": [""]})),
            &["webhooks[0].rules[0].kinds[0]: Required value"],
        );
        check(
            rule(json!({"apiVersions": [""]})),
            &["webhooks[0].rules[0].apiVersions[0]: Required value"],
        );
    }
}
