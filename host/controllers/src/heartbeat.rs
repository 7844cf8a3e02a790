//! Mark of a heartbeat: the agent of a Pull cluster has reports that the control plane does not have.
//!
//! A cluster that was cut off renews its Lease before it has repeated the writes that failed. The control plane cannot
//! ask such a cluster, so without the mark it would take the reports from before the cut for current ones.

use bulkhead_core::names::keys;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::ResourceExt;
use serde_json::json;

/// Marks a renewal of a Lease, or removes the mark of an earlier one.
pub(crate) fn mark(lease: &mut Lease, renew_time: &MicroTime, unreported: bool) {
    let annotations = lease.annotations_mut();
    if unreported {
        annotations.insert(keys::UNREPORTED.to_owned(), text(renew_time));
    } else {
        annotations.remove(keys::UNREPORTED);
    }
}

/// True if the last renewal of a Lease is marked. The mark of an earlier renewal, for example by an agent that another
/// one replaced, does not count.
pub(crate) fn is_marked(lease: &Lease) -> bool {
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
    renewed.is_some_and(|renewed| lease.annotations().get(keys::UNREPORTED) == Some(&text(renewed)))
}

fn text(time: &MicroTime) -> String {
    json!(time).as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object;

    #[test]
    fn the_mark_of_unreported_works_counts_for_its_own_renewal_only() {
        let renewed = |at: &str| -> Lease { object(json!({"metadata": {"name": "m1"}, "spec": {"renewTime": at}})) };
        let mut lease = renewed("2026-01-01T00:00:00.000000Z");
        let at = lease.spec.as_ref().and_then(|spec| spec.renew_time.clone()).unwrap();
        assert!(!is_marked(&lease));
        mark(&mut lease, &at, true);
        assert!(is_marked(&lease));
        let later = renewed("2026-01-01T00:00:10.000000Z").spec;
        assert!(!is_marked(&Lease {
            spec: later,
            ..lease.clone()
        }));
        mark(&mut lease, &at, false);
        assert!(!is_marked(&lease));
    }
}
