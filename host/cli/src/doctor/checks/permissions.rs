//! Check of the permissions that the modes need.

use crate::doctor::facts::{Facts, Permission};
use crate::doctor::finding::{Section, count};

/// Maximum number of verbs without an answer that are reported one by one.
const UNSAID_MAX: usize = 3;

pub(super) fn check(facts: &Facts, section: &mut Section) {
    let all = &facts.permissions;
    let allowed = all.iter().filter(|permission| permission.allowed == Some(true)).count();
    let modes = facts.installation.modes.join(",");
    section.summary = format!("{allowed} of {} that mode {modes} needs", count(all.len(), "verb"));
    let remedy = format!("bulkhead account --mode {modes} --apply");
    let unsaid: Vec<_> = all.iter().filter(|permission| permission.allowed.is_none()).collect();
    if unsaid.len() > UNSAID_MAX {
        let named: Vec<_> = unsaid
            .iter()
            .take(UNSAID_MAX)
            .map(|one| format!("{} {}", one.verb, target(one)))
            .collect();
        let more = unsaid.len() - UNSAID_MAX;
        let what = format!(
            "the access review gave no verdict: {} and {more} more",
            named.join(", ")
        );
        section.warning(count(unsaid.len(), "verb"), what, "");
    }
    let is_told = |permission: &&Permission| match permission.allowed {
        Some(allowed) => !allowed,
        None => unsaid.len() <= UNSAID_MAX,
    };
    for permission in all.iter().filter(is_told) {
        let place = format!("{} {}", permission.verb, target(permission));
        let why = permission.why.join("; ");
        match permission.allowed {
            Some(_) => section.error(place, format!("is not allowed; {why}"), &remedy),
            None => section.warning(place, format!("the access review gave no verdict; {why}"), ""),
        }
    }
}

/// Formats the object of a permission.
fn target(permission: &Permission) -> String {
    let Permission {
        resource,
        namespace,
        object,
        ..
    } = permission;
    let object = object.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
    let place = if namespace.is_empty() {
        String::new()
    } else {
        format!(" in {namespace}")
    };
    format!("{resource}{object}{place}")
}
