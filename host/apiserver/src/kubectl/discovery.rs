//! Discovery: version, groups and resources of a server.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::document::Document;
use crate::kind::ResourceKind;
use crate::state::State;
use crate::status_error::StatusError;

const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];
const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Version in the `info` of our OpenAPI documents.
pub(crate) const OPENAPI_VERSION: &str = env!("CARGO_PKG_VERSION");
/// Media type of [`aggregated`] discovery.
pub(crate) const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Returns true if a client accepts aggregated discovery.
pub(crate) fn wants_aggregated(accept: &str) -> bool {
    let wants =
        |media: &str| media.contains("as=APIGroupDiscoveryList") && media.split(';').any(|part| part.trim() == "v=v2");
    accept.split(',').any(wants)
}

/// Returns `/api` (only the core group) or `/apis` (all other groups) with the resources of the groups. The document is
/// made once until the kinds change.
pub(crate) fn aggregated(state: &State, core: bool) -> &Document {
    state.discovery[usize::from(core)].get_or_init(|| Document::new(&discovery_list(state, core)))
}

fn discovery_list(state: &State, core: bool) -> Value {
    let mut groups: BTreeMap<&str, BTreeMap<&str, Vec<Value>>> = BTreeMap::new();
    for kind in kinds(state).filter(|kind| kind.group.is_empty() == core) {
        let versions = groups.entry(&kind.group).or_default();
        versions
            .entry(&kind.version)
            .or_default()
            .push(aggregated_resource(kind));
    }
    let items = groups.into_iter().map(|(group, versions)| {
        let versions: Vec<Value> = versions
            .into_iter()
            .rev()
            .map(|(version, resources)| json!({"version": version, "resources": resources, "freshness": "Current"}))
            .collect();
        json!({"metadata": {"name": group, "creationTimestamp": null}, "versions": versions})
    });
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items.collect::<Vec<_>>(),
    })
}

fn aggregated_resource(kind: &ResourceKind) -> Value {
    let response_kind = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": response_kind,
        "scope": if kind.is_namespaced() { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular(),
        "verbs": VERBS,
        "shortNames": kind.short_names,
        "categories": kind.categories,
    });
    let subresources = subresources(kind).into_iter().map(
        |(name, response_kind)| json!({"subresource": name, "responseKind": response_kind, "verbs": SUBRESOURCE_VERBS}),
    );
    resource["subresources"] = subresources.collect();
    resource
}

/// Returns the body of `/version`.
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

/// Returns the body of `/api`.
pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// Returns the body of `/apis`.
pub(crate) fn groups(state: &State) -> Value {
    let groups: Vec<Value> = versions_by_group(state)
        .iter()
        .map(|(group, versions)| api_group(group, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Returns the body of `/apis/{group}`.
pub(crate) fn group(state: &State, group: &str) -> Result<Value, StatusError> {
    let groups = versions_by_group(state);
    let versions = groups
        .get(group)
        .ok_or_else(|| StatusError::unknown_path(&format!("/apis/{group}")))?;
    let mut body = api_group(group, versions);
    body["kind"] = json!("APIGroup");
    body["apiVersion"] = json!("v1");
    Ok(body)
}

/// Returns the body of `/api/{version}` and `/apis/{group}/{version}`.
pub(crate) fn resources(state: &State, group: &str, version: &str) -> Result<Value, StatusError> {
    let resources: Vec<Value> = kinds(state)
        .filter(|kind| kind.group == group && kind.version == version)
        .flat_map(api_resources)
        .collect();
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
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
    state
        .tables()
        .filter(|(_, table)| table.is_served)
        .map(|(_, table)| &*table.kind)
}

/// Returns the versions of each group except the core group, in the order of registration.
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
    for (name, response_kind) in subresources(kind) {
        resources.push(json!({
            "name": format!("{}/{name}", kind.plural),
            "singularName": "",
            "namespaced": kind.is_namespaced(),
            "group": response_kind["group"],
            "version": response_kind["version"],
            "kind": response_kind["kind"],
            "verbs": SUBRESOURCE_VERBS,
        }));
    }
    resources
}

/// Returns the subresources of a kind, each with the kind of its response.
fn subresources(kind: &ResourceKind) -> Vec<(&'static str, Value)> {
    let mut found = Vec::new();
    if kind.status_subresource {
        found.push((
            "status",
            json!({"group": kind.group, "version": kind.version, "kind": kind.kind}),
        ));
    }
    if kind.is_scalable() {
        found.push((
            "scale",
            json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
        ));
    }
    found
}
