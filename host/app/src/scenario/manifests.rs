//! Parsing and validation of manifest files.

use std::path::Path;

use bulkhead_api::decode;
use bulkhead_controlplane::kinds;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::load::{Loader, ManifestObject};
use super::{CustomKind, ManifestSource, UnknownKinds, served_kind};

/// Maximum number of copies of one file.
const GENERATED_MAX: u32 = 100_000;

impl Loader<'_> {
    pub(super) fn manifests(&mut self, line: u64, field: &str, source: &ManifestSource) -> Vec<ManifestObject> {
        let (file, count) = match source {
            ManifestSource::File(file) => (file, None),
            ManifestSource::Generated(generated) => (&generated.file, Some((generated.first, generated.count))),
            ManifestSource::Inline(inline) => {
                let origin = |index: usize| format!("{}: {field}.objects[{index}]", self.path().display());
                let origins: Vec<_> = (0..inline.objects.len()).map(origin).collect();
                let objects = origins.into_iter().zip(&inline.objects);
                return objects.filter_map(|(origin, object)| self.object(origin, object.clone())).collect();
            }
        };
        if count.is_some_and(|(first, count)| first == 0 || !(1..=GENERATED_MAX).contains(&count)) {
            let message = format!("count must be from 1 to {GENERATED_MAX}, first at least 1");
            self.problem(line, field, message);
            return Vec::new();
        }
        let path = self.folder.join(file);
        let text = match self.text_of(file) {
            Ok(text) => text,
            Err(message) => {
                self.problem(line, field, message);
                return Vec::new();
            }
        };
        match count {
            None => self.documents(&path, &text),
            // Warnings of the first copy stand for all copies.
            Some((first_number, count)) => {
                let problems = self.problems.len();
                let first = self.documents(&path, &expand(&text, first_number));
                if self.problems.len() > problems {
                    return first;
                }
                let warnings = self.warnings.len();
                let rest = (1..count)
                    .map(|offset| first_number.saturating_add(offset))
                    .flat_map(|n| self.documents(&path, &expand(&text, n)));
                let all = first.into_iter().chain(rest.collect::<Vec<_>>()).collect();
                self.warnings.truncate(warnings);
                all
            }
        }
    }

    fn documents(&mut self, path: &Path, text: &str) -> Vec<ManifestObject> {
        let documents: Vec<Value> = match serde_saphyr::from_multiple(text) {
            Ok(documents) => documents,
            Err(error) => {
                self.problems.push(format!("{}: {error}", path.display()));
                return Vec::new();
            }
        };
        let mut objects = Vec::new();
        for (index, document) in documents.into_iter().enumerate() {
            if document.is_null() {
                continue;
            }
            let origin = format!("{} (document {})", path.display(), index + 1);
            if let Some(object) = self.object(origin, document) {
                objects.push(object);
            }
        }
        objects
    }

    fn object(&mut self, origin: String, value: Value) -> Option<ManifestObject> {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        for (field, text) in [("apiVersion", &api_version), ("kind", &kind), ("metadata.name", &name)] {
            if text.is_empty() {
                self.problems.push(format!("{origin}: {field}: is missing"));
                return None;
            }
        }
        if !self.serves(&api_version, &kind) {
            let message = format!("{origin}: the kind {api_version} {kind} is not served by this control plane");
            match self.unknown_kinds {
                UnknownKinds::Skip => self.warnings.push(format!("{message}; skipped")),
                UnknownKinds::Refuse => {
                    self.problems.push(format!("{message}; set unknownKinds: skip to go on without it"));
                }
            }
            return None;
        }
        self.check_fields(&origin, &kind, &api_version, &value);
        Some(ManifestObject { origin, value })
    }

    /// Returns true if the scenario's control plane serves a kind.
    pub(super) fn serves(&self, api_version: &str, kind: &str) -> bool {
        let is_it = |custom: &CustomKind| custom.api_version == api_version && custom.kind == kind;
        is_served(api_version, kind) || self.custom_kinds.iter().any(is_it)
    }

    fn check_fields(&mut self, origin: &str, kind: &str, api_version: &str, value: &Value) {
        if served_kind(api_version, kind).is_none() {
            return;
        }
        match kind {
            "PropagationPolicy" => self.check_typed::<bulkhead_api::PropagationPolicy>(origin, kind, value),
            "ClusterPropagationPolicy" => {
                self.check_typed::<bulkhead_api::ClusterPropagationPolicy>(origin, kind, value);
            }
            "ClusterTaintPolicy" => self.check_typed::<bulkhead_api::ClusterTaintPolicy>(origin, kind, value),
            "Plugin" => {
                let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                self.problems.push(format!(
                    "{origin}: Plugin {name}: a scenario names its plugins under plugins, or in an event"
                ));
            }
            "EvictionPause" => self.check_typed::<bulkhead_api::EvictionPause>(origin, kind, value),
            "ClusterDrain" => self.check_typed::<bulkhead_api::ClusterDrain>(origin, kind, value),
            _ => {}
        }
    }

    fn check_typed<K: DeserializeOwned + Serialize>(&mut self, origin: &str, kind: &str, value: &Value) {
        let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        match decode::decode_strict::<K>(value) {
            Ok(decoded) => {
                let unknown = decoded.unknown.iter().map(|field| format!("{origin}: {kind} {name}: {field}"));
                self.warnings.extend(unknown);
            }
            Err(error) => self.problems.push(format!("{origin}: {kind} {name}: {error}")),
        }
    }
}

/// Replaces `{n}` by the number, and `{n%K}` by the number's position in the cycle 1..=K.
fn expand(text: &str, n: u32) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find("{n") {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let value = from.find('}').and_then(|end| {
            let modulus = match &from[2..end] {
                "" => return Some((n, end)),
                modulus => modulus.strip_prefix('%')?.parse::<u32>().ok().filter(|k| *k > 0)?,
            };
            Some(((n - 1) % modulus + 1, end))
        });
        if let Some((value, end)) = value {
            out.push_str(&value.to_string());
            rest = &from[end + 1..];
        } else {
            out.push_str("{n");
            rest = &from[2..];
        }
    }
    out.push_str(rest);
    out
}

/// Returns true if the control plane serves a kind without custom kinds.
fn is_served(api_version: &str, kind: &str) -> bool {
    served_kind(api_version, kind).is_some()
        || kinds::kubernetes().iter().any(|known| known.api_version() == api_version && known.kind == kind)
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn placeholders_are_replaced_and_nothing_else() {
        let check = |text: &str, n, expected: &str| assert_eq!(expand(text, n), expected);
        check("app-{n}", 7, "app-7");
        check("member{n%50} {n%49}", 50, "member50 1");
        check("{n%0} {nn} {n {name}", 7, "{n%0} {nn} {n {name}");
    }
}
