//! Bindings generated from `wit/`, one module per part of a world. A plugin exports `any_plugin` and the parts of
//! its kinds; what the parts import is generated once and shared.
#![allow(missing_docs, unused_imports, clippy::all)]

pub mod any_plugin {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "any-plugin",
        pub_export_macro: true,
        export_macro_name: "export_part_any_plugin",
        default_bindings_module: "bulkhead_sdk::bindings::any_plugin",
        generate_all,
    });
}

pub mod eviction {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "eviction-part",
        pub_export_macro: true,
        export_macro_name: "export_part_eviction",
        default_bindings_module: "bulkhead_sdk::bindings::eviction",
        with: {
            "bulkhead:policy/types@0.1.0": crate::bindings::any_plugin::bulkhead::policy::types,
        },
        generate_all,
    });
}

pub mod filter {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "filter-part",
        pub_export_macro: true,
        export_macro_name: "export_part_filter",
        default_bindings_module: "bulkhead_sdk::bindings::filter",
        with: {
            "bulkhead:policy/types@0.1.0": crate::bindings::any_plugin::bulkhead::policy::types,
            "bulkhead:policy/object@0.1.0": crate::bindings::eviction::bulkhead::policy::object,
        },
        generate_all,
    });
}

pub mod health {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "health-part",
        pub_export_macro: true,
        export_macro_name: "export_part_health",
        default_bindings_module: "bulkhead_sdk::bindings::health",
        with: {
            "bulkhead:policy/types@0.1.0": crate::bindings::any_plugin::bulkhead::policy::types,
            "bulkhead:policy/object@0.1.0": crate::bindings::eviction::bulkhead::policy::object,
        },
        generate_all,
    });
}

pub mod score {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "score-part",
        pub_export_macro: true,
        export_macro_name: "export_part_score",
        default_bindings_module: "bulkhead_sdk::bindings::score",
        with: {
            "bulkhead:policy/types@0.1.0": crate::bindings::any_plugin::bulkhead::policy::types,
            "bulkhead:policy/object@0.1.0": crate::bindings::eviction::bulkhead::policy::object,
            "bulkhead:policy/clusters@0.1.0": crate::bindings::filter::bulkhead::policy::clusters,
        },
        generate_all,
    });
}

pub mod taints {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "taints-part",
        pub_export_macro: true,
        export_macro_name: "export_part_taints",
        default_bindings_module: "bulkhead_sdk::bindings::taints",
        with: {
            "bulkhead:policy/types@0.1.0": crate::bindings::any_plugin::bulkhead::policy::types,
            "bulkhead:policy/object@0.1.0": crate::bindings::eviction::bulkhead::policy::object,
        },
        generate_all,
    });
}
