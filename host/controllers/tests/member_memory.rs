//! Memory that the sums over a large member cluster take.
//!
//! A test binary of its own with one test in it, because it measures the memory of the whole process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "member_memory/large_member.rs"]
mod large_member;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bulkhead_controllers::MemberResources;
use peak_alloc::PeakAlloc;

use large_member::{PODS, Served, member, models};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Minimum size of the response; a smaller one would show nothing.
const SERVED_BYTES_MIN: usize = 80 << 20;
/// Limit of the memory that is added while the pods are listed.
const PEAK_BYTES_MAX: usize = 8 << 20;
/// Limit of the memory that stays.
const KEPT_BYTES_MAX: usize = 3 << 20;

#[tokio::test]
async fn twenty_thousand_pods_of_a_member_are_summed_in_bounded_memory() {
    let served = Arc::<Served>::default();
    let client = member(&served);
    let resources = MemberResources::default();
    let sums = async || resources.sums("m1", &client, &models()).await.unwrap();

    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let (nodes, pods) = sums().await;
    let peak = MEMORY.peak_usage().saturating_sub(before);
    let kept = MEMORY.current_usage().saturating_sub(before);

    let bytes = served.bytes.load(Ordering::Relaxed);
    println!(
        "{PODS} pods in {} KiB of JSON took {} KiB of memory at most, and take {} KiB",
        bytes >> 10,
        peak >> 10,
        kept >> 10
    );
    assert_eq!((nodes.total_num, nodes.ready_num), (400, 400));
    assert_eq!(pods.allocated["pods"], "20k");
    assert_eq!(pods.allocated["memory"], "20000Gi");
    assert_eq!(pods.allocatable_modelings[1]["count"], 400);
    assert!(bytes > SERVED_BYTES_MIN, "{bytes}");
    assert!(peak < PEAK_BYTES_MAX, "{peak}");
    assert!(kept < KEPT_BYTES_MAX, "{kept}");
    // Later sums list nothing.
    let pages = served.pages.load(Ordering::Relaxed);
    assert_eq!(sums().await, (nodes, pods));
    assert_eq!(
        (
            served.pages.load(Ordering::Relaxed),
            served.watches.load(Ordering::Relaxed)
        ),
        (pages, 2)
    );
}
