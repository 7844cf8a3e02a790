//! Host bindings generated from `wit/`.
#![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "every-kind",
    imports: { default: trappable },
    with: {
        "bulkhead:policy/object.object": crate::host::Document,
        "bulkhead:policy/clusters.clusters": crate::host::Candidates,
    },
});
