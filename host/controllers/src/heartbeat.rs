//! Mark of a heartbeat: the Works whose last reports the control plane does not have.
//!
//! The agent of a Pull cluster that was cut off renews its Lease before it has repeated the writes that failed. The
//! control plane cannot ask such a cluster, so without the mark it would take the reports from before the cut for
//! current ones. The same holds for a Work whose object is missing, and for every Work after a restart of the agent until
//! it has seen the object. The mark names the Works, so that one whose status cannot be written holds nothing but itself.

use std::collections::{BTreeMap, BTreeSet};

use bulkhead_core::names::keys;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Namespace of the Leases of Pull clusters.
pub(crate) const LEASE_NAMESPACE: &str = "karmada-cluster";
/// Maximum number of Works in a mark. If there are more, the mark covers every Work of the cluster.
const WORKS_MAX: usize = 200;

/// Works without their last report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Unreported {
    /// All of them.
    #[serde(rename = "unreported")]
    works: Works,
    /// Those whose object may be healthy, for all that the agent knows.
    #[serde(default)]
    may_be_healthy: Works,
}

/// Names of Works of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Works {
    /// None.
    #[default]
    None,
    /// These.
    #[serde(rename = "Works")]
    Named(BTreeSet<String>),
    /// Too many to be named.
    All,
}

impl Works {
    fn of(names: BTreeSet<String>) -> Self {
        match names.len() {
            0 => Self::None,
            1..=WORKS_MAX => Self::Named(names),
            _ => Self::All,
        }
    }

    fn contains(&self, work: &str) -> bool {
        match self {
            Self::None => false,
            Self::Named(names) => names.contains(work),
            Self::All => true,
        }
    }
}

/// Content of the annotation.
#[derive(Serialize, Deserialize)]
struct Mark {
    /// Renew time of the Lease that the mark belongs to.
    at: MicroTime,
    #[serde(flatten)]
    unreported: Unreported,
}

impl Unreported {
    /// Returns the Works of these names; the value is true if the object may be healthy.
    pub(crate) fn of(works: BTreeMap<String, bool>) -> Self {
        let healthy = works.iter().filter(|(_, may_be_healthy)| **may_be_healthy);
        let may_be_healthy = Works::of(healthy.map(|(name, _)| name.clone()).collect());
        Self {
            works: Works::of(works.into_keys().collect()),
            may_be_healthy,
        }
    }

    /// Returns every Work of the cluster, with objects that may be healthy.
    pub(crate) fn all() -> Self {
        Self {
            works: Works::All,
            may_be_healthy: Works::All,
        }
    }

    /// True if the Work of this name is one of them.
    pub(crate) fn contains(&self, work: &str) -> bool {
        self.works.contains(work)
    }

    /// True if the Work of this name is one of them, and its object may be healthy.
    pub(crate) fn may_be_healthy(&self, work: &str) -> bool {
        self.may_be_healthy.contains(work)
    }
}

/// Marks a renewal of a Lease, or removes the mark of an earlier one.
pub(crate) fn mark(lease: &mut Lease, renew_time: &MicroTime, unreported: Unreported) {
    let annotations = lease.annotations_mut();
    if unreported == Unreported::default() {
        annotations.remove(keys::UNREPORTED);
        return;
    }
    let mark = Mark {
        at: renew_time.clone(),
        unreported,
    };
    annotations.insert(keys::UNREPORTED.to_owned(), json!(mark).to_string());
}

/// Returns the mark of the last renewal of a Lease. The mark of an earlier renewal, for example by an agent that
/// another one replaced, does not count.
pub(crate) fn marked(lease: &Lease) -> Unreported {
    let mark = lease.annotations().get(keys::UNREPORTED);
    let mark: Option<Mark> = mark.and_then(|mark| serde_json::from_str(mark).ok());
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
    mark.filter(|mark| Some(&mark.at) == renewed)
        .map(|mark| mark.unreported)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object;

    #[test]
    fn the_mark_of_unreported_works_counts_for_its_own_renewal_only() {
        let renewed = |at: &str| -> Lease { object(json!({"metadata": {"name": "m1"}, "spec": {"renewTime": at}})) };
        let mut lease = renewed("2026-01-01T00:00:00.123456Z");
        let at = lease.spec.as_ref().and_then(|spec| spec.renew_time.clone()).unwrap();
        assert_eq!(marked(&lease), Unreported::default());
        let web = Unreported::of([("web".to_owned(), true), ("db".to_owned(), false)].into());
        mark(&mut lease, &at, web.clone());
        assert_eq!(marked(&lease), web);
        let later = renewed("2026-01-01T00:00:10.000000Z").spec;
        assert_eq!(
            marked(&Lease {
                spec: later,
                ..lease.clone()
            }),
            Unreported::default()
        );
        mark(&mut lease, &at, Unreported::default());
        assert_eq!(marked(&lease), Unreported::default());
    }

    #[test]
    fn a_mark_names_works_up_to_a_limit_and_then_covers_all() {
        let works = |count: usize| (0..count).map(|n| (format!("work-{n}"), n < 3)).collect();
        let few = Unreported::of(works(WORKS_MAX));
        assert!(few.contains("work-7") && !few.contains("web"));
        let many = Unreported::of(works(WORKS_MAX + 1));
        assert!(many.contains("web"));
        assert!(many.may_be_healthy("work-2") && !many.may_be_healthy("work-7"));
        assert!(!Unreported::of(works(0)).contains("work-0"));
    }

    #[test]
    fn the_mark_of_an_earlier_version_names_no_object_that_may_be_healthy() {
        let mark = r#"{"at": "2026-01-01T00:00:00.000000Z", "unreported": {"Works": ["web"]}}"#;
        let lease: Lease = object(json!({
            "metadata": {"name": "m1", "annotations": {keys::UNREPORTED: mark}},
            "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"},
        }));
        let marked = marked(&lease);
        assert!(marked.contains("web") && !marked.may_be_healthy("web"));
    }
}
