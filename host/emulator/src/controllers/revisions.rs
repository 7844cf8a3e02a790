//! ControllerRevisions of DaemonSets and StatefulSets: one for each version of the template, as `kubectl rollout history`
//! and `undo` need them.
//!
//! Only members for people serve the kind.

use std::cmp::Reverse;

use bulkhead_apiserver::{Object, ObjectKey};
use serde_json::{Value, json};

use crate::controllers::Emulator;
use crate::controllers::rollout::copied_annotations;
use crate::controllers::workload::{PodView, controller_reference, spec_number};

/// Label with the revision of a pod's template.
pub(super) const REVISION_LABEL: &str = "controller-revision-hash";

impl Emulator {
    /// Creates the revision of the current template, or renews its number if the template returned. Deletes the oldest
    /// revisions without pods. `hash` is the hash of the template.
    pub(super) fn keep_revisions(&self, workload: &Object, hash: &str, pods: &[PodView]) {
        let Some(kind) = self.kinds.revision else {
            return;
        };
        let key = |name: &str| ObjectKey::new(kind, workload.namespace(), name);
        let known = self.store.dependents(workload.uid(), kind);
        let name = format!("{}-{hash}", workload.name());
        let newest = known.iter().map(|known| number_of(known)).max().unwrap_or(0);
        // Another writer was faster if a write fails; its change causes the next sync.
        match known.iter().find(|known| known.name() == name) {
            None => {
                let revision = revision(workload, &name, hash, newest + 1);
                let _ = self.store.create(kind, workload.namespace(), revision);
            }
            Some(current) if number_of(current) < newest => {
                let mut renewed = current.content().to_value();
                renewed["revision"] = json!(newest + 1);
                let _ = self.store.update(&key(&name), renewed);
            }
            Some(_) => {}
        }
        let is_idle = |known: &&_| {
            let known: &Object = known;
            let has_pods = |pod: &PodView| known.name().ends_with(&pod.revision);
            known.name() != name && !pods.iter().any(has_pods)
        };
        let mut idle: Vec<_> = known.iter().map(|known| &**known).filter(is_idle).collect();
        idle.sort_by_key(|revision| Reverse(number_of(revision)));
        let limit = spec_number(workload.content(), "revisionHistoryLimit", 10);
        for revision in idle.into_iter().skip(usize::try_from(limit).unwrap_or(usize::MAX)) {
            self.delete(&key(revision.name()));
        }
    }
}

fn number_of(revision: &Object) -> i64 {
    revision.content()["revision"].as_i64().unwrap_or(0)
}

fn revision(workload: &Object, name: &str, hash: &str, number: i64) -> Value {
    let value = workload.content();
    let mut template = value["spec"]["template"].clone();
    let mut labels = template["metadata"]["labels"].clone();
    labels[REVISION_LABEL] = json!(hash);
    // `kubectl rollout undo` applies the data as a patch.
    template["$patch"] = json!("replace");
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": copied_annotations(value),
            "ownerReferences": [controller_reference(workload)],
        },
        "data": {"spec": {"template": template}},
        "revision": number,
    })
}
