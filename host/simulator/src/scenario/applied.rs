//! Validation of the objects that events apply: each is merged into the object that it changes, as at that time.

use std::collections::BTreeMap;

use bulkhead_apiserver::json::text;
use serde_json::Value;

use super::loaded::{EventAction, LoadedEvent, ManifestObject};
use super::loader::Loader;
use super::manifests::builtin;

/// `apiVersion`, kind, namespace and name of an object.
type Key = [String; 4];

fn key(api_version: &str, kind: &str, namespace: &str, name: &str) -> Key {
    let namespace = if namespace.is_empty() { "default" } else { namespace };
    [api_version, kind, namespace, name].map(str::to_owned)
}

fn key_of(object: &Value) -> Key {
    let text = |pointer| text(object, pointer);
    key(
        text("/apiVersion"),
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name"),
    )
}

impl Loader {
    /// Validates the objects of Kubernetes that events apply. An object that changes another one may be partial; an object
    /// that creates one has to be whole. `events` are in order of time.
    pub(super) fn check_applied(&mut self, manifests: &[ManifestObject], events: &[LoadedEvent]) {
        let objects = || {
            events.iter().flat_map(|event| match &event.action {
                EventAction::Apply(_, objects) => objects.as_slice(),
                _ => &[],
            })
        };
        if objects().next().is_none() {
            return;
        }
        let mut existing: BTreeMap<Key, Option<Value>> =
            objects().map(|object| (key_of(&object.value), None)).collect();
        for manifest in manifests {
            if let Some(value) = existing.get_mut(&key_of(&manifest.value)) {
                *value = Some(manifest.value.clone());
            }
        }
        for event in events {
            match &event.action {
                EventAction::Apply(_, objects) => {
                    for object in objects {
                        let now = existing.entry(key_of(&object.value)).or_default();
                        self.check_object(object, now);
                    }
                }
                EventAction::Delete(object) => {
                    existing.remove(&key(&object.api_version, &object.kind, &object.namespace, &object.name));
                }
                _ => {}
            }
        }
    }

    /// Merges an object into the existing one, and validates the result.
    fn check_object(&mut self, object: &ManifestObject, now: &mut Option<Value>) {
        let [api_version, kind, ..] = key_of(&object.value);
        let Some(kind) = builtin(&api_version, &kind) else {
            return;
        };
        let mut merged = now.take().unwrap_or_default();
        json_patch::merge(&mut merged, &object.value);
        if self.conform(&object.origin, kind, &mut merged).is_some() {
            *now = Some(merged);
        }
    }
}
