//! Failure modes of workloads in a member cluster, and their assignment to pods.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bulkhead_apiserver::json::{HasFields, array, text};
use tokio::sync::Notify;

/// Failure mode of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureMode {
    /// Pods run but never become ready; ready pods become unready.
    NeverReady,
    /// Pods become ready as usual, crash after staying ready for `ready_for`, and stay in back-off. Pods that run to
    /// completion, such as those of a Job, end as failed instead.
    CrashLoop {
        /// Time that a pod stays ready.
        ready_for: Duration,
    },
    /// Images cannot be pulled; running pods keep running.
    ImagePull,
}

/// All active failures of one cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    /// Failure of every pod.
    pub(crate) cluster: Option<FailureMode>,
    /// Failures of the pods of one workload, by namespace and name; take precedence over the cluster's failure.
    pub(crate) workloads: BTreeMap<(String, String), FailureMode>,
    /// Images that cannot be pulled; `*` matches any text.
    pub(crate) unpullable_images: Vec<String>,
}

impl Failures {
    /// Returns the failure that applies to a pod.
    pub(crate) fn of_pod(&self, pod: &impl HasFields) -> Option<FailureMode> {
        let namespace = text(pod, "/metadata/namespace");
        let owners = array(pod, "/metadata/ownerReferences");
        let owner = match owners.first().map_or("", |owner| text(owner, "/name")) {
            "" => text(pod, "/metadata/name"),
            // The name of a ReplicaSet of a Deployment ends with the hash of the template.
            owner => match text(pod, "/metadata/labels/pod-template-hash") {
                "" => owner,
                hash => owner
                    .strip_suffix(hash)
                    .and_then(|name| name.strip_suffix('-'))
                    .unwrap_or(owner),
            },
        };
        let is_unpullable = || {
            array(pod, "/spec/containers").iter().any(|container| {
                let image = container["image"].as_str().unwrap_or_default();
                self.unpullable_images
                    .iter()
                    .any(|pattern| image_matches(pattern, image))
            })
        };
        self.workloads
            .get(&(namespace.to_owned(), owner.to_owned()))
            .copied()
            .or(self.cluster)
            .or_else(|| is_unpullable().then_some(FailureMode::ImagePull))
    }
}

/// Active failures, shared with the handle that changes them.
#[derive(Default)]
pub(crate) struct FailureSwitch {
    failures: Mutex<Arc<Failures>>,
    changed: Notify,
}

impl FailureSwitch {
    pub(crate) fn new(failures: Failures) -> Self {
        Self {
            failures: Mutex::new(Arc::new(failures)),
            changed: Notify::new(),
        }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Failures)) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut failures));
        drop(failures);
        // Stores a permit if the emulator is not waiting at the moment.
        self.changed.notify_one();
    }

    /// Waits for a change that no earlier call has returned for.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns the active failures.
    pub(crate) fn current(&self) -> Arc<Failures> {
        Arc::clone(&self.failures.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns true if an image matches a pattern in which `*` matches any text.
fn image_matches(pattern: &str, image: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = image.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_an_image_pattern_stands_for_any_text() {
        let cases = [
            ("nginx", "nginx", true),
            ("nginx", "nginx:1", false),
            ("*/private/*", "reg.io/private/app:1", true),
            ("*:broken", "app:broken", true),
            ("*:broken", "app:broken2", false),
            ("reg*app*:1", "reg.io/app:1", true),
            ("*", "", true),
        ];
        for (pattern, image, expected) in cases {
            assert_eq!(image_matches(pattern, image), expected, "{pattern} {image}");
        }
    }
}
