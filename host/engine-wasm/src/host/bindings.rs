//! Host bindings generated from `wit/`.
#![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "every-kind",
    imports: { default: trappable },
    with: {
        "bulkhead:policy/object.object": crate::host::Document,
        "bulkhead:policy/cluster.cluster": crate::host::LentCluster,
        "bulkhead:policy/clusters.clusters": crate::host::Candidates,
        "bulkhead:policy/observations.observations": crate::host::Reports,
        "bulkhead:policy/binding.binding": crate::host::LentBinding,
        "bulkhead:policy/binding.eviction-task": crate::host::LentTask,
    },
});
