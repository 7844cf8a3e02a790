//! Selection of resource templates by policies (Karmada: `pkg/util/selector.go:ResourceMatches`).

use std::collections::BTreeMap;

use bulkhead_api::policy::ResourceSelector;
use bulkhead_runtime::dynamic::KeptObject;
use bulkhead_runtime::kinds::ObjectKind;

/// Resource template that policies are matched against.
pub(crate) struct Template<'a> {
    kind: &'a ObjectKind,
    pub(crate) object: &'a KeptObject,
    pub(crate) labels: BTreeMap<String, String>,
}

impl<'a> Template<'a> {
    pub(crate) fn new(kind: &'a ObjectKind, object: &'a KeptObject) -> Self {
        Self {
            kind,
            object,
            labels: object.labels(),
        }
    }
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
    let (kind, metadata) = (template.kind, &template.object.metadata);
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let same_kind = selector.api_version == kind.api_version && selector.kind == kind.kind;
    if !same_kind || !(selector.namespace.is_empty() || selector.namespace == namespace) {
        return None;
    }
    if !selector.name.is_empty() {
        return (metadata.name.as_ref() == Some(&selector.name)).then_some(Specificity::Name);
    }
    match &selector.label_selector {
        None => Some(Specificity::Kind),
        Some(labels) => labels.matches(&template.labels).then_some(Specificity::Labels),
    }
}
