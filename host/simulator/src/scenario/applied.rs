//! Validation of the objects that events apply: each is merged into the object that it changes, as at that time.

use std::collections::BTreeMap;

use serde_json::Value;

use super::load::{EventAction, LoadedEvent, Loader, ManifestObject};
use super::manifests::builtin;

/// `apiVersion`, kind, namespace and name of an object.
type Key = [String; 4];

fn key(object: &Value) -> Key {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let namespace = Some(text("/metadata/namespace")).filter(|namespace| !namespace.is_empty());
    [
        text("/apiVersion"),
        text("/kind"),
        namespace.unwrap_or_else(|| "default".to_owned()),
        text("/metadata/name"),
    ]
}

impl Loader<'_> {
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
        let mut existing: BTreeMap<Key, Option<Value>> = objects().map(|object| (key(&object.value), None)).collect();
        for manifest in manifests {
            if let Some(value) = existing.get_mut(&key(&manifest.value)) {
                *value = Some(manifest.value.clone());
            }
        }
        for event in events {
            match &event.action {
                EventAction::Apply(_, objects) => {
                    for object in objects {
                        let now = existing.entry(key(&object.value)).or_default();
                        self.check_object(object, now);
                    }
                }
                EventAction::Delete(object) => {
                    let namespace = if object.namespace.is_empty() {
                        "default"
                    } else {
                        &object.namespace
                    };
                    let deleted = [&object.api_version, &object.kind, namespace, &object.name].map(str::to_owned);
                    existing.remove(&deleted);
                }
                _ => {}
            }
        }
    }

    /// Merges an object into the existing one, and validates the result.
    fn check_object(&mut self, object: &ManifestObject, now: &mut Option<Value>) {
        let [api_version, kind, ..] = key(&object.value);
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
