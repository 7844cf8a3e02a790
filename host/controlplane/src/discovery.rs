//! What a server says about itself: version, groups, resources.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kind::ResourceKind;
use crate::state::State;
use crate::status_error::StatusError;

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The body of `/version`.
pub(crate) fn version(git_version: &str) -> Value {
    let mut numbers = git_version.trim_start_matches('v').split('.');
    json!({
        "major": numbers.next().unwrap_or_default(),
        "minor": numbers.next().unwrap_or_default(),
        "gitVersion": git_version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": "in-process",
    })
}

/// The body of `/api`.
pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// The body of `/apis`.
pub(crate) fn groups(state: &State) -> Value {
    let groups: Vec<Value> =
        versions_by_group(state).iter().map(|(group, versions)| api_group(group, versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// The body of `/apis/{group}`.
pub(crate) fn group(state: &State, group: &str) -> Result<Value, StatusError> {
    let groups = versions_by_group(state);
    let versions = groups.get(group).ok_or_else(|| StatusError::unknown_path(&format!("/apis/{group}")))?;
    let mut body = api_group(group, versions);
    body["kind"] = json!("APIGroup");
    body["apiVersion"] = json!("v1");
    Ok(body)
}

/// The body of `/api/{version}` and `/apis/{group}/{version}`.
pub(crate) fn resources(state: &State, group: &str, version: &str) -> Result<Value, StatusError> {
    let resources: Vec<Value> =
        kinds(state).filter(|kind| kind.group == group && kind.version == version).flat_map(api_resources).collect();
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    if resources.is_empty() {
        return Err(StatusError::unknown_path(&group_version));
    }
    Ok(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }))
}

fn kinds(state: &State) -> impl Iterator<Item = &ResourceKind> {
    state.tables().map(|(_, table)| &*table.kind)
}

/// The versions of each group except the core group, in the order of registration.
fn versions_by_group(state: &State) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for kind in kinds(state).filter(|kind| !kind.group.is_empty()) {
        let versions = groups.entry(kind.group.to_string()).or_default();
        if !versions.iter().any(|version| *version == kind.version) {
            versions.push(kind.version.to_string());
        }
    }
    groups
}

fn api_group(group: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({
        "name": group,
        "preferredVersion": versions.first(),
        "versions": versions,
        "serverAddressByClientCIDRs": [],
    })
}

fn api_resources(kind: &ResourceKind) -> Vec<Value> {
    let mut resource = json!({
        "name": kind.plural,
        "singularName": kind.singular(),
        "namespaced": kind.is_namespaced(),
        "kind": kind.kind,
        "verbs": VERBS,
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
    let mut resources = vec![resource];
    if kind.status_subresource {
        resources.push(json!({
            "name": format!("{}/status", kind.plural),
            "singularName": "",
            "namespaced": kind.is_namespaced(),
            "kind": kind.kind,
            "verbs": ["get", "patch", "update"],
        }));
    }
    resources
}
