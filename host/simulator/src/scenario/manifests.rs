//! Parsing and validation of manifest files.

use std::fmt;
use std::sync::{Arc, LazyLock};

use bulkhead_api::decode;
use bulkhead_apiserver::json::text;
use bulkhead_apiserver::{ResourceKind, kinds};
use bulkhead_plugin::{limits_of_files, read_documents};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::loaded::ManifestObject;
use super::loader::Loader;
use super::source::{ObjectOrigin, Source};
use super::{CustomKind, ManifestSource, UnknownKinds, served_kind};

/// Maximum number of copies of one file.
const GENERATED_MAX: u32 = 100_000;
/// Maximum number of replicas of one workload, as in Kubernetes.
const REPLICAS_MAX: i64 = i32::MAX as i64;

/// Use of an object of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// The object is created, so it has to be whole.
    Create,
    /// The object may exist, so it may have only the fields to change.
    Apply,
}

/// Kinds of Kubernetes that a simulated control plane serves.
static BUILTIN: LazyLock<Vec<ResourceKind>> = LazyLock::new(kinds::kubernetes);

/// Reads the shape from the fields. The derived implementation for untagged enums would read keys without a type, and
/// take `n`, `y`, `on` and `off` in an inline object for booleans.
impl<'de> Deserialize<'de> for ManifestSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourceVisitor)
    }
}

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = ManifestSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a file name, {file, count}, or {objects}")
    }

    fn visit_str<E: serde::de::Error>(self, file: &str) -> Result<ManifestSource, E> {
        Ok(ManifestSource::File(file.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ManifestSource, A::Error> {
        let fields = Map::deserialize(MapAccessDeserializer::new(map))?;
        let source = if fields.contains_key("objects") {
            serde_json::from_value(Value::Object(fields)).map(ManifestSource::Inline)
        } else {
            serde_json::from_value(Value::Object(fields)).map(ManifestSource::Generated)
        };
        source.map_err(|error| {
            A::Error::custom(format_args!(
                "expected a file name, {{file, count}}, or {{objects}}: {error}"
            ))
        })
    }
}

impl Loader {
    pub(super) fn manifests(&mut self, field: &str, source: &ManifestSource, purpose: Use) -> Vec<ManifestObject> {
        let (file, count) = match source {
            ManifestSource::File(file) => (file, None),
            ManifestSource::Generated(generated) => (&generated.file, Some((generated.first, generated.count))),
            ManifestSource::Inline(inline) => {
                let origin = |index| ObjectOrigin::field(&self.source, format!("{field}.objects[{index}]"));
                let origins: Vec<_> = (0..inline.objects.len()).map(origin).collect();
                let objects = origins.into_iter().zip(&inline.objects);
                return objects
                    .filter_map(|(origin, object)| self.object(origin, object.clone(), purpose))
                    .collect();
            }
        };
        if count.is_some_and(|(first, count)| first == 0 || !(1..=GENERATED_MAX).contains(&count)) {
            let message = format!("count must be from 1 to {GENERATED_MAX}, first at least 1");
            self.problem(field, message);
            return Vec::new();
        }
        let name = self.folder.join(file).display().to_string();
        let text = match self.text_of(file) {
            Ok(text) => text,
            Err(message) => {
                self.problem(field, message);
                return Vec::new();
            }
        };
        match count {
            None => self.documents(Source::new(name, text), purpose),
            // Warnings of the first copy stand for all copies.
            Some((first_number, count)) => {
                let problems = self.problems.len();
                let copy = |n| Source::new(name.clone(), expand(&text, n));
                let first = self.documents(copy(first_number), purpose);
                if self.problems.len() > problems {
                    return first;
                }
                let warnings = self.warnings.len();
                let rest = (1..count)
                    .map(|offset| first_number.saturating_add(offset))
                    .flat_map(|n| self.documents(copy(n), purpose));
                let all = first.into_iter().chain(rest.collect::<Vec<_>>()).collect();
                self.warnings.truncate(warnings);
                all
            }
        }
    }

    fn documents(&mut self, source: Arc<Source>, purpose: Use) -> Vec<ManifestObject> {
        let name = source.name();
        let documents = match read_documents::<Value>(name, source.text(), &limits_of_files()) {
            Ok(read) => {
                let warnings = read.warnings.iter().map(|warning| format!("{name}: {warning}"));
                self.warnings.extend(warnings);
                read.documents
            }
            Err(error) => {
                self.problems.push(error);
                return Vec::new();
            }
        };
        if documents.iter().all(Value::is_null) {
            self.warnings.push(format!("{name}: there is no object in this file"));
        }
        let mut objects = Vec::new();
        for (index, document) in documents.into_iter().enumerate() {
            if document.is_null() {
                continue;
            }
            let origin = ObjectOrigin::document(&source, index);
            objects.extend(self.object(origin, document, purpose));
        }
        objects
    }

    fn object(&mut self, origin: ObjectOrigin, mut value: Value, purpose: Use) -> Option<ManifestObject> {
        let text = |pointer: &str| text(&value, pointer).to_owned();
        let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let origin = origin.about(&kind, &name);
        for (field, text) in [("apiVersion", &api_version), ("kind", &kind), ("metadata.name", &name)] {
            if text.is_empty() {
                self.problems.push(origin.problem(field, "is missing"));
                return None;
            }
        }
        if !self.serves(&api_version, &kind) {
            let message = format!("the kind {api_version} {kind} is not served by this control plane");
            match self.unknown_kinds {
                UnknownKinds::Skip => self
                    .warnings
                    .push(origin.problem("kind", format_args!("{message}; skipped"))),
                UnknownKinds::Refuse => {
                    let message = format!("{message}; set unknownKinds: skip to go on without it");
                    self.problems.push(origin.problem("kind", message));
                }
            }
            return None;
        }
        if let Some(builtin) = builtin(&api_version, &kind) {
            if purpose == Use::Create {
                self.conform(&origin, builtin, &mut value)?;
            }
        } else {
            self.check_fields(&origin, &kind, &api_version, &value);
        }
        Some(ManifestObject { origin, value })
    }

    /// Completes and validates an object of Kubernetes as an API server does. Returns `None` if it is invalid.
    pub(super) fn conform(&mut self, origin: &ObjectOrigin, kind: &ResourceKind, value: &mut Value) -> Option<()> {
        match bulkhead_apiserver::conform(kind, value) {
            Ok(remarks) => {
                let unknown = remarks.unknown_fields.iter();
                self.warnings
                    .extend(unknown.map(|path| origin.problem_at_key(path, "unknown field")));
                let warnings = remarks.warnings.iter();
                self.warnings
                    .extend(warnings.map(|warning| origin.problem("", warning)));
            }
            Err(error) => {
                let fields = error.invalid_fields();
                let before = self.problems.len();
                self.problems
                    .extend(fields.map(|(field, message)| origin.problem(field, message)));
                if self.problems.len() == before {
                    self.problems.push(origin.problem("", &error.message));
                }
                return None;
            }
        }
        for field in ["replicas", "parallelism", "completions"] {
            let count = value["spec"][field].as_i64().unwrap_or_default();
            if count > REPLICAS_MAX {
                let message = format!("is {count}; a workload has at most {REPLICAS_MAX}");
                self.problems.push(origin.problem(&format!("spec.{field}"), message));
                return None;
            }
        }
        Some(())
    }

    /// Returns true if the scenario's control plane serves a kind.
    pub(super) fn serves(&self, api_version: &str, kind: &str) -> bool {
        let is_it = |custom: &CustomKind| custom.api_version == api_version && custom.kind == kind;
        is_served(api_version, kind) || self.custom_kinds.iter().any(is_it)
    }

    fn check_fields(&mut self, origin: &ObjectOrigin, kind: &str, api_version: &str, value: &Value) {
        if served_kind(api_version, kind).is_none() {
            return;
        }
        if kind.ends_with("PropagationPolicy") && value.pointer("/spec/preemption").is_some_and(|mode| mode == "Always")
        {
            let message = "Always has no effect, as in Karmada without the feature gate PropagationPolicyPreemption";
            self.warnings.push(origin.problem("spec.preemption", message));
        }
        match kind {
            "PropagationPolicy" => self.check_typed::<bulkhead_api::PropagationPolicy>(origin, value),
            "ClusterPropagationPolicy" => self.check_typed::<bulkhead_api::ClusterPropagationPolicy>(origin, value),
            "OverridePolicy" => self.check_typed::<bulkhead_api::OverridePolicy>(origin, value),
            "ClusterOverridePolicy" => self.check_typed::<bulkhead_api::ClusterOverridePolicy>(origin, value),
            "ClusterTaintPolicy" => {
                // An unknown field is an error: a policy without a misspelt target taints every cluster.
                let faults = decode::decode_strict::<bulkhead_api::ClusterTaintPolicy>(value)
                    .map_or_else(|_| Vec::new(), |decoded| decoded.object.spec.faults());
                self.problems.extend(faults.iter().map(|fault| {
                    let (field, message) = fault.split_once(": ").unwrap_or(("", fault.as_str()));
                    origin.problem_at_key(&format!("spec.{field}"), message)
                }));
                if faults.is_empty() {
                    self.check_typed::<bulkhead_api::ClusterTaintPolicy>(origin, value);
                }
            }
            "Plugin" => {
                let message = "a scenario names its plugins under plugins, or in an event";
                self.problems.push(origin.problem("", message));
            }
            "PluginTrust" => {
                let message = "a scenario pulls no images, so rules of trust have no effect";
                self.problems.push(origin.problem("", message));
            }
            "EvictionPause" => self.check_typed::<bulkhead_api::EvictionPause>(origin, value),
            "WorkloadRebalancer" => self.check_typed::<bulkhead_api::WorkloadRebalancer>(origin, value),
            "ClusterDrain" => self.check_typed::<bulkhead_api::ClusterDrain>(origin, value),
            _ => {}
        }
    }

    fn check_typed<K: DeserializeOwned + Serialize>(&mut self, origin: &ObjectOrigin, value: &Value) {
        match decode::decode_strict::<K>(value) {
            Ok(decoded) => {
                let unknown = decoded.unknown.iter();
                self.warnings
                    .extend(unknown.map(|field| origin.problem_at_key(&field.path, field.cause())));
            }
            Err(error) => self.problems.push(origin.problem(&error.path, error.message)),
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
    served_kind(api_version, kind).is_some() || builtin(api_version, kind).is_some()
}

/// Returns a kind of Kubernetes that a simulated control plane serves.
pub(crate) fn builtin(api_version: &str, kind: &str) -> Option<&'static ResourceKind> {
    BUILTIN
        .iter()
        .find(|known| known.api_version() == api_version && known.kind == kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ManifestSource, expand};

    fn read(text: &str) -> Result<ManifestSource, String> {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_of_inline_objects_are_texts() {
        let text = "objects: [{kind: ConfigMap, data: {n: a, y: b, on: c, off: d}}]";
        let Ok(ManifestSource::Inline(inline)) = read(text) else {
            panic!("{:?}", read(text))
        };
        let data = json!({"n": "a", "y": "b", "on": "c", "off": "d"});
        assert_eq!(inline.objects, [json!({"kind": "ConfigMap", "data": data})]);
    }

    #[test]
    fn a_source_is_a_file_or_copies_of_one_or_objects() {
        assert!(matches!(read("web.yaml"), Ok(ManifestSource::File(file)) if file == "web.yaml"));
        let copies = |text: &str| match read(text) {
            Ok(ManifestSource::Generated(copies)) => Ok((copies.file, copies.first, copies.count)),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        };
        assert_eq!(copies("{file: web.yaml, count: 3}"), Ok(("web.yaml".to_owned(), 1, 3)));
        assert_eq!(
            copies("{file: web.yaml, first: 2, count: 3}"),
            Ok(("web.yaml".to_owned(), 2, 3))
        );
        let check = |text: &str, cause: &str| {
            let error = read(text).unwrap_err();
            let expected = format!("expected a file name, {{file, count}}, or {{objects}}: {cause}");
            assert!(error.contains(&expected), "{text}: {error}");
        };
        check("{file: web.yaml}", "missing field `count`");
        check("{objects: [], count: 3}", "unknown field `count`");
        check("{fiel: web.yaml}", "unknown field `fiel`");
    }

    #[test]
    fn placeholders_are_replaced_and_nothing_else() {
        let check = |text: &str, n, expected: &str| assert_eq!(expand(text, n), expected);
        check("app-{n}", 7, "app-7");
        check("member{n%50} {n%49}", 50, "member50 1");
        check("{n%0} {nn} {n {name}", 7, "{n%0} {nn} {n {name}");
    }
}
