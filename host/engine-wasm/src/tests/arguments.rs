//! Host functions called directly with arbitrary arguments. `PROPTEST_CASES` sets the number of cases.

use std::sync::Arc;

use bulkhead_core::model::{Binding, Cluster, GracefulEvictionTask};
use bulkhead_core::snapshot::ClusterSnapshot;
use proptest::prelude::*;
use serde_json::{Value, json};
use wasmtime::component::Resource;
use wasmtime::{Engine, Result};

use crate::host::allowance::{Deadline, Exceeded};
use crate::host::bindings::bulkhead::policy::binding::{HostBinding, HostEvictionTask};
use crate::host::bindings::bulkhead::policy::cluster::HostCluster;
use crate::host::bindings::bulkhead::policy::clusters::HostClusters;
use crate::host::bindings::bulkhead::policy::object::HostObject;
use crate::host::bindings::bulkhead::policy::observations::HostObservations;
use crate::host::{About, Candidates, Document, Host, LentBinding, LentCluster, LentTask, Reports};
use crate::ticker::Ticker;

/// Memory of the call, in bytes.
const MEMORY_BYTES: usize = 1 << 20;

fn host(steps: u64, ticks: u64) -> Host {
    let mut host = Host::new(
        MEMORY_BYTES,
        About {
            plugin_name: "test".to_owned(),
            ..About::default()
        },
    );
    let ticker = Arc::new(Ticker::start(Engine::default()).unwrap());
    host.allowance
        .grant(steps, MEMORY_BYTES, Deadline::after(&ticker, ticks));
    host
}

/// Returns a handle that does not own its object, as a guest borrows it.
fn lend<T: Send + 'static>(host: &mut Host, input: T) -> impl Fn() -> Resource<T> + use<T> {
    let rep = host.table.push(input).unwrap().rep();
    move || Resource::new_borrow(rep)
}

/// Returns the steps that the functions spent, of those that were granted.
fn spent(host: &mut Host, granted: u64) -> u64 {
    granted - host.allowance.settle(granted).expect("no more than was granted")
}

/// Checks that an error is an exceeded limit or a full table.
fn bounded<T>(result: Result<T>) -> Option<T> {
    result
        .map_err(|error| assert!(error.is::<Exceeded>(), "{error:?}"))
        .ok()
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        "[0-9.]{1,80}[a-zA-Z]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-c~/0-2]{0,2}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn pointer() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "(/[a-c~/0-2]{0,2}){0,5}",
        1 => ".{0,30}",
        1 => (0..40_000_usize).prop_map(|times| "/a".repeat(times)),
        1 => prop::sample::select(vec!["/status/conditions/0", "/spec/zones", "/labels/a", "/status", "/spec/a/b/c"])
            .prop_map(str::to_owned),
    ]
}

fn call(host: &mut Host, this: &dyn Fn() -> Resource<Document>, function: usize, pointers: [String; 2]) -> usize {
    let [one, other] = pointers;
    match function {
        0 => bounded(HostObject::get(host, this(), one)).map_or(0, |_| 1),
        1 => bounded(host.get_many(this(), vec![one, other])).map_or(0, |values| values.len()),
        2 => bounded(host.get_each(this(), one, other)).map_or(0, |values| values.len()),
        3 => bounded(host.get_string(this(), one))
            .flatten()
            .map_or(0, |text| text.len()),
        4 => bounded(host.get_s64(this(), one)).map_or(0, |_| 1),
        5 => bounded(host.get_f64(this(), one)).map_or(0, |_| 1),
        6 => bounded(host.get_bool(this(), one)).map_or(0, |_| 1),
        7 => bounded(host.get_quantity_milli(this(), one)).map_or(0, |_| 1),
        8 => bounded(HostObject::length(host, this(), one)).map_or(0, |_| 1),
        9 => bounded(host.keys(this(), one)).map_or(0, |keys| keys.iter().map(String::len).sum()),
        _ => bounded(host.json(this(), one)).flatten().map_or(0, |text| text.len()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_document_answers_any_arguments_within_the_steps(
        value in document(),
        calls in prop::collection::vec((0..11_usize, pointer(), pointer()), 1..20),
        steps in 0..60_000_u64,
    ) {
        let mut host = host(steps, u64::MAX);
        let this = lend(&mut host, Document::from(Arc::new(value)));
        let bytes: usize = calls.into_iter().map(|(function, one, other)| call(&mut host, &this, function, [one, other])).sum();
        let spent = spent(&mut host, steps);
        prop_assert!(spent <= steps && bytes as u64 <= spent, "{bytes} bytes for {spent} of {steps} steps");
        prop_assert!(host.allowance.bytes_max() <= MEMORY_BYTES);
    }

    #[test]
    fn clusters_and_bindings_answer_any_arguments_within_the_steps(
        texts in prop::collection::vec(pointer(), 1..12),
        extra in document(),
        steps in 0..200_000_u64,
    ) {
        let mut host = host(steps, u64::MAX);
        let cluster: Cluster = serde_json::from_value(json!({
            "name": "member1", "labels": {"a": "b"}, "spec": {"syncMode": "Push", "zones": ["a"], "extra": extra},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "more": extra},
        })).unwrap();
        let binding: Binding = serde_json::from_value(json!({
            "name": "nginx", "spec": {"resource": {"apiVersion": "v1", "kind": "Pod", "name": "n"}, "extra": extra},
            "status": {"aggregatedStatus": [{"clusterName": "member1", "status": extra}]},
        })).unwrap();
        let (cluster, binding) = (Arc::new(cluster), Arc::new(binding));
        let snapshot = ClusterSnapshot::new([Arc::clone(&cluster)]);
        let candidates = lend(&mut host, Candidates::new(Arc::clone(&binding), snapshot.present()));
        let reports = lend(&mut host, Reports::new(binding.status.aggregated_status.clone().into()));
        let binding = lend(&mut host, LentBinding::new(binding));
        let cluster = lend(&mut host, LentCluster::from(cluster));
        let task = lend(&mut host, LentTask(GracefulEvictionTask::default()));
        for text in texts {
            bounded(HostClusters::text(&mut host, candidates(), text.clone()));
            bounded(HostClusters::number(&mut host, candidates(), text.clone()));
            bounded(HostClusters::label(&mut host, candidates(), text.clone()));
            bounded(host.allocatable(candidates(), text.clone()));
            bounded(HostObservations::text(&mut host, reports(), text.clone()));
            bounded(HostObservations::number(&mut host, reports(), text.clone()));
            bounded(HostCluster::label(&mut host, cluster(), text.clone()));
            bounded(host.condition(cluster(), text.clone()));
            bounded(host.serves(cluster(), text.clone(), text));
            bounded(HostBinding::document(&mut host, binding()));
            bounded(HostCluster::document(&mut host, cluster()));
            bounded(HostEvictionTask::document(&mut host, task()));
        }
        let spent = spent(&mut host, steps);
        prop_assert!(spent <= steps, "{spent} of {steps} steps");
        prop_assert!(host.allowance.bytes_max() <= MEMORY_BYTES);
        host.clear();
        prop_assert_eq!(host.allowance.held_bytes(), 0, "documents are given back with their handles");
    }
}

#[test]
fn a_function_of_the_host_ends_at_the_deadline() {
    let mut host = host(u64::MAX, 0);
    let this = lend(&mut host, Document::from(Arc::new(json!({"l": vec![1; 1_000]}))));
    let error = host.get_each(this(), "/l".to_owned(), String::new()).unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&Exceeded::Deadline));
    assert_eq!(
        host.keys(this(), String::new()).unwrap_err().downcast_ref(),
        Some(&Exceeded::Deadline)
    );
}

#[test]
fn a_document_is_made_once_while_there_is_a_handle_of_it() {
    let mut host = host(u64::MAX, u64::MAX);
    let binding: Binding = serde_json::from_value(json!({
        "name": "nginx", "annotations": {"a": "x".repeat(100_000)},
        "spec": {"resource": {"apiVersion": "v1", "kind": "Pod", "name": "n"}},
    }))
    .unwrap();
    let binding = lend(&mut host, LentBinding::new(Arc::new(binding)));
    let first = HostBinding::document(&mut host, binding()).unwrap();
    let held = host.allowance.held_bytes();
    assert!((100_000..110_000).contains(&held), "{held} bytes");
    let more: Vec<_> = (0..100)
        .map(|_| HostBinding::document(&mut host, binding()).unwrap())
        .collect();
    assert_eq!(host.allowance.held_bytes(), held);
    for handle in more.into_iter().chain([first]) {
        HostObject::drop(&mut host, handle).unwrap();
    }
    assert_eq!(host.allowance.held_bytes(), 0);
}

#[test]
fn memory_of_documents_and_of_the_guest_is_one_limit() {
    use wasmtime::ResourceLimiter;

    let mut host = host(u64::MAX, u64::MAX);
    let _half = host.allowance.hold(MEMORY_BYTES / 2).unwrap();
    assert!(!host.limits.memory_growing(0, MEMORY_BYTES / 2 + 1, None).unwrap());
    assert!(host.limits.memory_growing(0, MEMORY_BYTES / 2, None).unwrap());
    host.allowance.start(host.limits.memory_bytes());
    assert_eq!(host.allowance.charge(1), Err(Exceeded::Memory));
}
