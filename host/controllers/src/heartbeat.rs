//! Mark of a heartbeat: the Works whose last reports the control plane does not have.
//!
//! The agent of a Pull cluster that was cut off renews its Lease before it has repeated the writes that failed. The
//! control plane cannot ask such a cluster, so without the mark it would take the reports from before the cut for
//! current ones. The same holds for a Work whose object is missing, and for every Work after a restart of the agent until
//! it has seen the object. The mark names the Works, so that one whose status cannot be written holds nothing but itself.

use std::collections::BTreeSet;

use bulkhead_core::names::keys;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Maximum number of Works in a mark. If there are more, the mark covers every Work of the cluster.
const WORKS_MAX: usize = 200;

/// Works without their last report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unreported {
    /// None.
    #[default]
    None,
    /// The Works of these names.
    Works(BTreeSet<String>),
    /// Too many to be named.
    All,
}

/// Content of the annotation.
#[derive(Serialize, Deserialize)]
struct Mark {
    /// Renew time of the Lease that the mark belongs to.
    at: MicroTime,
    unreported: Unreported,
}

impl Unreported {
    /// Returns the Works of these names.
    pub(crate) fn of(names: BTreeSet<String>) -> Self {
        match names.len() {
            0 => Self::None,
            1..=WORKS_MAX => Self::Works(names),
            _ => Self::All,
        }
    }

    /// True if the Work of this name is one of them.
    pub(crate) fn contains(&self, work: &str) -> bool {
        match self {
            Self::None => false,
            Self::Works(names) => names.contains(work),
            Self::All => true,
        }
    }
}

/// Marks a renewal of a Lease, or removes the mark of an earlier one.
pub(crate) fn mark(lease: &mut Lease, renew_time: &MicroTime, unreported: Unreported) {
    let annotations = lease.annotations_mut();
    if unreported == Unreported::None {
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
        assert_eq!(marked(&lease), Unreported::None);
        let web = Unreported::of(["web".to_owned()].into());
        mark(&mut lease, &at, web.clone());
        assert_eq!(marked(&lease), web);
        let later = renewed("2026-01-01T00:00:10.000000Z").spec;
        assert_eq!(
            marked(&Lease {
                spec: later,
                ..lease.clone()
            }),
            Unreported::None
        );
        mark(&mut lease, &at, Unreported::None);
        assert_eq!(marked(&lease), Unreported::None);
    }

    #[test]
    fn a_mark_names_works_up_to_a_limit_and_then_covers_all() {
        let names = |count: usize| (0..count).map(|n| format!("work-{n}")).collect();
        let few = Unreported::of(names(WORKS_MAX));
        assert!(few.contains("work-7") && !few.contains("web"));
        assert!(Unreported::of(names(WORKS_MAX + 1)).contains("web"));
        assert!(!Unreported::of(names(0)).contains("work-0"));
    }
}
