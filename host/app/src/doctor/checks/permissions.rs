//! Whether the account may do what the modes need.

use crate::doctor::facts::{Facts, Permission};
use crate::doctor::finding::{Section, count};

pub(super) fn check(facts: &Facts, section: &mut Section) {
    let all = &facts.permissions;
    let allowed = all.iter().filter(|permission| permission.allowed == Some(true)).count();
    let modes = facts.installation.modes.join(",");
    section.summary = format!("{allowed} of {} that mode {modes} needs", count(all.len(), "verb"));
    let apply = |mode: &String| format!("kubectl apply -k host/deploy/chart/rbac/{mode}");
    let remedy = facts.installation.modes.iter().map(apply).collect::<Vec<_>>().join(" && ");
    for permission in all.iter().filter(|permission| permission.allowed != Some(true)) {
        let place = format!("{} {}", permission.verb, target(permission));
        let why = permission.why.join("; ");
        match permission.allowed {
            Some(_) => section.error(place, format!("is not allowed; {why}"), &remedy),
            None => section.warning(place, format!("the control plane does not say whether it is allowed; {why}"), ""),
        }
    }
}

/// What a permission is about.
fn target(permission: &Permission) -> String {
    let Permission { resource, namespace, object, .. } = permission;
    let object = object.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
    let place = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
    format!("{resource}{object}{place}")
}
