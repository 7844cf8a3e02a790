//! Bindings generated from `wit/`: all possible imports in one module, and one module for each part of a world that a
//! plugin exports. A plugin exports `any_plugin` and the parts of its kinds.
#![allow(missing_docs, unused_imports, clippy::all)]

pub mod inputs {
    wit_bindgen::generate!({
        path: "wit",
        world: "inputs",
        generate_all,
    });
}

pub mod any_plugin {
    wit_bindgen::generate!({
        path: "wit",
        world: "any-plugin",
        pub_export_macro: true,
        export_macro_name: "export_part_any_plugin",
        default_bindings_module: "bulkhead_sdk::bindings::any_plugin",
        with: {
            "bulkhead:policy/types@0.1.0": crate::bindings::inputs::bulkhead::policy::types,
            "bulkhead:policy/context@0.1.0": crate::bindings::inputs::bulkhead::policy::context,
            "bulkhead:policy/log@0.1.0": crate::bindings::inputs::bulkhead::policy::log,
        },
        generate_all,
    });
}

pub mod health {
    wit_bindgen::generate!({
        path: "wit",
        world: "health-part",
        pub_export_macro: true,
        export_macro_name: "export_part_health",
        default_bindings_module: "bulkhead_sdk::bindings::health",
        with: {
            "bulkhead:policy/types@0.1.0": crate::bindings::inputs::bulkhead::policy::types,
            "bulkhead:policy/object@0.1.0": crate::bindings::inputs::bulkhead::policy::object,
        },
        generate_all,
    });
}

pub mod taints {
    wit_bindgen::generate!({
        path: "wit",
        world: "taints-part",
        pub_export_macro: true,
        export_macro_name: "export_part_taints",
        default_bindings_module: "bulkhead_sdk::bindings::taints",
        with: {
            "bulkhead:policy/types@0.1.0": crate::bindings::inputs::bulkhead::policy::types,
            "bulkhead:policy/object@0.1.0": crate::bindings::inputs::bulkhead::policy::object,
            "bulkhead:policy/cluster@0.1.0": crate::bindings::inputs::bulkhead::policy::cluster,
        },
        generate_all,
    });
}

pub mod filter {
    wit_bindgen::generate!({
        path: "wit",
        world: "filter-part",
        pub_export_macro: true,
        export_macro_name: "export_part_filter",
        default_bindings_module: "bulkhead_sdk::bindings::filter",
        with: {
            "bulkhead:policy/types@0.1.0": crate::bindings::inputs::bulkhead::policy::types,
            "bulkhead:policy/object@0.1.0": crate::bindings::inputs::bulkhead::policy::object,
            "bulkhead:policy/cluster@0.1.0": crate::bindings::inputs::bulkhead::policy::cluster,
            "bulkhead:policy/clusters@0.1.0": crate::bindings::inputs::bulkhead::policy::clusters,
            "bulkhead:policy/observations@0.1.0": crate::bindings::inputs::bulkhead::policy::observations,
            "bulkhead:policy/binding@0.1.0": crate::bindings::inputs::bulkhead::policy::binding,
        },
        generate_all,
    });
}

pub mod score {
    wit_bindgen::generate!({
        path: "wit",
        world: "score-part",
        pub_export_macro: true,
        export_macro_name: "export_part_score",
        default_bindings_module: "bulkhead_sdk::bindings::score",
        with: {
            "bulkhead:policy/types@0.1.0": crate::bindings::inputs::bulkhead::policy::types,
            "bulkhead:policy/object@0.1.0": crate::bindings::inputs::bulkhead::policy::object,
            "bulkhead:policy/cluster@0.1.0": crate::bindings::inputs::bulkhead::policy::cluster,
            "bulkhead:policy/clusters@0.1.0": crate::bindings::inputs::bulkhead::policy::clusters,
            "bulkhead:policy/observations@0.1.0": crate::bindings::inputs::bulkhead::policy::observations,
            "bulkhead:policy/binding@0.1.0": crate::bindings::inputs::bulkhead::policy::binding,
        },
        generate_all,
    });
}

pub mod eviction {
    wit_bindgen::generate!({
        path: "wit",
        world: "eviction-part",
        pub_export_macro: true,
        export_macro_name: "export_part_eviction",
        default_bindings_module: "bulkhead_sdk::bindings::eviction",
        with: {
            "bulkhead:policy/types@0.1.0": crate::bindings::inputs::bulkhead::policy::types,
            "bulkhead:policy/object@0.1.0": crate::bindings::inputs::bulkhead::policy::object,
            "bulkhead:policy/observations@0.1.0": crate::bindings::inputs::bulkhead::policy::observations,
            "bulkhead:policy/binding@0.1.0": crate::bindings::inputs::bulkhead::policy::binding,
        },
        generate_all,
    });
}

pub mod interpreter {
    wit_bindgen::generate!({
        path: "wit",
        world: "interpreter-part",
        pub_export_macro: true,
        export_macro_name: "export_part_interpreter",
        default_bindings_module: "bulkhead_sdk::bindings::interpreter",
        with: {
            "bulkhead:policy/types@0.1.0": crate::bindings::inputs::bulkhead::policy::types,
            "bulkhead:policy/object@0.1.0": crate::bindings::inputs::bulkhead::policy::object,
            "bulkhead:policy/observations@0.1.0": crate::bindings::inputs::bulkhead::policy::observations,
        },
        generate_all,
    });
}
