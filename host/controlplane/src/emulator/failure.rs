//! The ways in which workloads of a member cluster can fail, and which one applies to a pod.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::object::{array, text};

/// How pods fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureMode {
    /// Pods run and never become ready; ready ones stop being ready.
    NeverReady,
    /// Pods become ready as usual, crash after staying ready for this long, and stay in back-off. Pods that are
    /// meant to finish, as those of a Job, end as failed instead.
    CrashLoop {
        /// How long a pod stays ready.
        ready_for: Duration,
    },
    /// Images cannot be pulled; pods that already run keep running.
    ImagePull,
}

/// All failures in force in one cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    /// Applies to every pod.
    pub(crate) cluster: Option<FailureMode>,
    /// Applies to the pods of one workload, by namespace and name; goes before the cluster's.
    pub(crate) workloads: BTreeMap<(String, String), FailureMode>,
    /// Images that cannot be pulled; `*` stands for any text.
    pub(crate) unpullable_images: Vec<String>,
}

impl Failures {
    /// The failure that applies to a pod.
    pub(crate) fn of_pod(&self, pod: &Value) -> Option<FailureMode> {
        let namespace = text(pod, "/metadata/namespace");
        let owner = match text(pod, "/metadata/ownerReferences/0/name") {
            "" => text(pod, "/metadata/name"),
            owner => owner,
        };
        let is_unpullable = || {
            array(pod, "/spec/containers").iter().any(|container| {
                let image = container["image"].as_str().unwrap_or_default();
                self.unpullable_images.iter().any(|pattern| image_matches(pattern, image))
            })
        };
        self.workloads
            .get(&(namespace.to_owned(), owner.to_owned()))
            .copied()
            .or(self.cluster)
            .or_else(|| is_unpullable().then_some(FailureMode::ImagePull))
    }
}

/// Whether an image matches a pattern in which `*` stands for any text.
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
