//! Selection of resource templates by policies (Karmada: `pkg/util/selector.go:ResourceMatches`).

use std::collections::BTreeMap;

use bulkhead_api::policy::ResourceSelector;
use bulkhead_runtime::dynamic::KeptObject;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::kinds::ObjectKind;
use serde_json::Value;

/// Resource template that policies are matched against.
pub(crate) struct Template<'a> {
    kind: &'a ObjectKind,
    /// Namespace; empty for cluster scope.
    pub(crate) namespace: &'a str,
    name: &'a str,
    pub(crate) labels: BTreeMap<String, String>,
}

impl<'a> Template<'a> {
    pub(crate) fn new(kind: &'a ObjectKind, object: &'a KeptObject) -> Self {
        Self {
            kind,
            namespace: object.metadata.namespace.as_deref().unwrap_or_default(),
            name: object.metadata.name.as_deref().unwrap_or_default(),
            labels: object.labels(),
        }
    }

    /// Returns the values of [`index_of`] under which the policies of a namespace are that may select the template: those
    /// that name it, and those that name none of its kind.
    pub(crate) fn index_values(&self, namespace: &str) -> [String; 2] {
        let ObjectKind { api_version, kind, .. } = self.kind;
        [self.name, ""].map(|name| index_value(namespace, api_version, kind, name))
    }

    /// Returns the template in the form of a manifest, whose namespace and name are those of `key`.
    pub(crate) fn of_manifest(kind: &'a ObjectKind, key: &'a Key, manifest: &Value) -> Self {
        let labels = manifest.pointer("/metadata/labels").and_then(Value::as_object);
        let label = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        Self {
            kind,
            namespace: &key.namespace,
            name: &key.name,
            labels: labels.into_iter().flatten().filter_map(label).collect(),
        }
    }
}

/// Returns the values by which a store of policies finds the policies of a namespace that may select a template: one for
/// each selector. The namespace is empty for a policy of the whole control plane.
pub(crate) fn index_of(namespace: &str, selectors: &[ResourceSelector]) -> Vec<String> {
    let value = |selector: &ResourceSelector| {
        let ResourceSelector {
            api_version,
            kind,
            name,
            ..
        } = selector;
        index_value(namespace, api_version, kind, name)
    };
    selectors.iter().map(value).collect()
}

fn index_value(namespace: &str, api_version: &str, kind: &str, name: &str) -> String {
    format!("{namespace} {api_version} {kind} {name}")
}

/// Precision of a selector; later is narrower.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Specificity {
    Kind,
    Labels,
    Name,
}

impl Specificity {
    /// Returns the end of a sentence about the match.
    pub(crate) fn how(self) -> &'static str {
        match self {
            Self::Kind => "by kind",
            Self::Labels => "by label",
            Self::Name => "by name",
        }
    }
}

/// Returns the precision with which a selector selects a template; `None` if it does not.
pub(crate) fn specificity(selector: &ResourceSelector, template: &Template<'_>) -> Option<Specificity> {
    let kind = template.kind;
    let same_kind = selector.api_version == kind.api_version && selector.kind == kind.kind;
    if !same_kind || !(selector.namespace.is_empty() || selector.namespace == template.namespace) {
        return None;
    }
    if !selector.name.is_empty() {
        return (selector.name == template.name).then_some(Specificity::Name);
    }
    match &selector.label_selector {
        None => Some(Specificity::Kind),
        Some(labels) => labels.matches(&template.labels).then_some(Specificity::Labels),
    }
}
