//! Scope of a plugin: the workloads and clusters that it is asked about.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use super::ObjectKind;
use crate::call::{Call, CallKind};
use crate::model::Binding;

/// Workloads and clusters that a plugin is asked about. All given selectors must match; one that is left out matches
/// everything. A call that lacks the selected property is outside: an object without a namespace is in no namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Scope {
    /// Namespaces of the workloads. A name may end with `*`. Not for plugins that taint clusters.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub namespaces: Vec<NamePattern>,
    /// Labels that an object has with these values. Only for plugins of health and interpretation: bindings do not have
    /// the labels of their workloads.
    pub labels: BTreeMap<String, String>,
    /// Kinds of the workloads. Not for plugins that taint clusters.
    pub kinds: Vec<ObjectKind>,
    /// Member clusters. A name may end with `*`. Only for plugins that taint clusters, check evictions or rank them.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub clusters: Vec<NamePattern>,
}

/// Name, or the start of a name with `*` after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct NamePattern(String);

impl TryFrom<String> for NamePattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let start = text.strip_suffix('*').unwrap_or(&text);
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        if text.is_empty() || !start.bytes().all(is_name) {
            return Err(format!(
                "{text:?} is not a name; a name has lower-case letters, digits, '-' and '.', and may end with '*'"
            ));
        }
        Ok(Self(text))
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl NamePattern {
    /// Returns true if the pattern matches a name.
    pub fn matches(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => self.0 == name,
        }
    }
}

/// Namespaces that trust limits a plugin to. The plugin of a tenant can only hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenancy {
    /// Namespaces of the tenant. A name may end with `*`.
    pub namespaces: Vec<NamePattern>,
}

impl Tenancy {
    /// Calls that the plugin of a tenant may answer.
    pub const KINDS: [CallKind; 2] = [CallKind::Health, CallKind::EvictionCheck];

    /// Returns true if the plugin of the tenant may get a call.
    pub(crate) fn admits(&self, call: &Call<'_>) -> bool {
        let namespace = Workload::of(call).and_then(Workload::namespace);
        Self::KINDS.contains(&call.kind()) && matches_any(&self.namespaces, namespace)
    }
}

/// Returns true if one of the patterns matches a name. Without a name none does.
fn matches_any(patterns: &[NamePattern], name: Option<&str>) -> bool {
    name.is_some_and(|name| patterns.iter().any(|pattern| pattern.matches(name)))
}

/// Workload of a call.
#[derive(Clone, Copy)]
enum Workload<'a> {
    Object(&'a Value),
    Binding(&'a Binding),
}

impl<'a> Workload<'a> {
    /// Returns the workload of a call; `None` for a call about a cluster.
    fn of(call: &'a Call<'_>) -> Option<Self> {
        match call {
            Call::Health(call) => Some(Self::Object(call.object)),
            Call::Interpret(call) => Some(Self::Object(call.operation.object())),
            Call::Filter(call) => Some(Self::Binding(call.binding)),
            Call::Score(call) => Some(Self::Binding(call.binding)),
            Call::EvictionCheck(call) => Some(Self::Binding(call.binding)),
            Call::ClusterTaint(_) => None,
        }
    }

    /// Returns the namespace; `None` without one.
    fn namespace(self) -> Option<&'a str> {
        match self {
            Self::Object(object) => object["metadata"]["namespace"].as_str(),
            Self::Binding(binding) => binding.namespace.as_deref(),
        }
        .filter(|namespace| !namespace.is_empty())
    }

    fn has_label(self, key: &str, value: &str) -> bool {
        match self {
            Self::Object(object) => object["metadata"]["labels"][key] == *value,
            Self::Binding(_) => false,
        }
    }

    fn is_of(self, kind: &ObjectKind) -> bool {
        let ObjectKind { api_version, kind } = kind;
        match self {
            Self::Object(object) => object["apiVersion"] == *api_version && object["kind"] == *kind,
            Self::Binding(binding) => {
                let resource = &binding.spec.resource;
                resource.api_version == *api_version && resource.kind == *kind
            }
        }
    }
}

impl Scope {
    /// Returns true if the scope excludes nothing.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if all selectors match a call.
    pub(crate) fn covers(&self, call: &Call<'_>) -> bool {
        self.has_workload(call) && (self.clusters.is_empty() || matches_any(&self.clusters, cluster_of(call)))
    }

    /// Returns true if the selectors of workloads match the workload of a call.
    fn has_workload(&self, call: &Call<'_>) -> bool {
        let Self {
            namespaces,
            labels,
            kinds,
            clusters: _,
        } = self;
        if namespaces.is_empty() && labels.is_empty() && kinds.is_empty() {
            return true;
        }
        Workload::of(call).is_some_and(|workload| {
            (namespaces.is_empty() || matches_any(namespaces, workload.namespace()))
                && labels.iter().all(|(key, value)| workload.has_label(key, value))
                && (kinds.is_empty() || kinds.iter().any(|kind| workload.is_of(kind)))
        })
    }

    /// Returns the reason why the scope cannot be that of a plugin that answers a kind of call; `None` if it can.
    pub(super) fn objection(&self, kind: CallKind, ranks_evictions: bool) -> Option<String> {
        let is_about_object = matches!(kind, CallKind::Health | CallKind::Interpret);
        let is_about_workload = kind != CallKind::ClusterTaint;
        let selects_clusters = match kind {
            CallKind::Health | CallKind::Interpret | CallKind::Filter => false,
            CallKind::Score => ranks_evictions,
            CallKind::ClusterTaint | CallKind::EvictionCheck => true,
        };
        let selectors = [
            ("namespaces", self.namespaces.is_empty(), is_about_workload),
            ("labels", self.labels.is_empty(), is_about_object),
            ("kinds", self.kinds.is_empty(), is_about_workload),
            ("clusters", self.clusters.is_empty(), selects_clusters),
        ];
        let (field, ..) = selectors.into_iter().find(|(_, is_absent, fits)| !is_absent && !fits)?;
        Some(format!(
            "scope.{field} cannot select {kind} calls, which the plugin answers; remove the selector, or split the \
             plugin"
        ))
    }
}

/// Returns the cluster of a call; `None` for a call about an object or about several clusters.
fn cluster_of<'a>(call: &'a Call<'_>) -> Option<&'a str> {
    match call {
        Call::ClusterTaint(call) => Some(&call.cluster.name),
        Call::EvictionCheck(call) => Some(&call.task.from_cluster),
        // A plugin that ranks evictions is called with the cluster that the binding leaves.
        Call::Score(call) if call.clusters.len() == 1 => {
            call.clusters.iter().next().map(|cluster| cluster.name.as_str())
        }
        Call::Score(_) | Call::Health(_) | Call::Interpret(_) | Call::Filter(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scope(value: Value) -> Result<Scope, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn a_pattern_is_a_name_or_a_start() {
        let check = |pattern: &str, name: &str, expected: bool| {
            let pattern = NamePattern::try_from(pattern.to_owned()).unwrap();
            assert_eq!(pattern.matches(name), expected, "{pattern} {name}");
        };
        check("team-a", "team-a", true);
        check("team-a", "team-ab", false);
        check("team-a-*", "team-a-web", true);
        check("team-a-*", "team-a", false);
        check("*", "any", true);
        for mistake in ["", "a*b", "**", "Team", "a b"] {
            let message = NamePattern::try_from(mistake.to_owned()).unwrap_err();
            assert!(message.contains("is not a name"), "{mistake:?}: {message}");
        }
    }

    #[test]
    fn a_mistake_in_a_scope_is_named() {
        let check = |value: Value, part: &str| {
            let message = scope(value).unwrap_err();
            assert!(message.contains(part), "no {part:?} in: {message}");
        };
        check(json!({"namespaces": ["A"]}), "\"A\" is not a name");
        check(json!({"namespace": ["a"]}), "unknown field `namespace`");
        assert!(scope(json!({})).unwrap().is_everything());
        assert!(!scope(json!({"clusters": ["m1"]})).unwrap().is_everything());
    }

    #[test]
    fn a_selector_of_something_that_a_call_lacks_is_an_objection() {
        let check = |value: Value, kind: CallKind, field: Option<&str>| {
            let objection = scope(value).unwrap().objection(kind, false);
            let expected = field.map(|field| format!("scope.{field} cannot select {kind} calls"));
            match (&objection, &expected) {
                (Some(found), Some(expected)) => assert!(found.starts_with(expected), "{found}"),
                (found, expected) => assert_eq!(found, expected),
            }
        };
        let namespaces = || json!({"namespaces": ["a"]});
        check(namespaces(), CallKind::Health, None);
        check(namespaces(), CallKind::Score, None);
        check(namespaces(), CallKind::ClusterTaint, Some("namespaces"));
        check(json!({"labels": {"a": "b"}}), CallKind::Interpret, None);
        check(json!({"labels": {"a": "b"}}), CallKind::EvictionCheck, Some("labels"));
        let clusters = || json!({"clusters": ["m1"]});
        check(clusters(), CallKind::Health, Some("clusters"));
        check(clusters(), CallKind::Score, Some("clusters"));
        check(clusters(), CallKind::Filter, Some("clusters"));
        check(clusters(), CallKind::EvictionCheck, None);
        assert_eq!(scope(clusters()).unwrap().objection(CallKind::Score, true), None);
        let kinds = json!({"kinds": [{"apiVersion": "v1", "kind": "Pod"}]});
        check(kinds, CallKind::ClusterTaint, Some("kinds"));
    }
}
