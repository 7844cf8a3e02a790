//! The macro `export!`, which connects a plugin type to the functions of its worlds.

/// Exports the interface common to all plugins, and stores the configured plugin for later calls.
#[doc(hidden)]
#[macro_export]
macro_rules! export_plugin {
    ($plugin:ty) => {
        struct ExportedComponent;

        ::std::thread_local! {
            static PLUGIN: ::std::cell::RefCell<Option<$plugin>> = const { ::std::cell::RefCell::new(None) };
        }

        /// Calls a function of the configured plugin.
        fn with_plugin<T>(
            ask: impl FnOnce(&$plugin) -> Result<T, $crate::PolicyError>,
        ) -> Result<T, $crate::PolicyError> {
            PLUGIN.with_borrow(|plugin| match plugin {
                Some(plugin) => ask(plugin),
                None => Err($crate::PolicyError::Internal("the host did not configure the plugin".into())),
            })
        }

        impl $crate::bindings::any_plugin::exports::bulkhead::policy::plugin::Guest for ExportedComponent {
            fn describe() -> $crate::Metadata {
                $crate::metadata::<$plugin>()
            }

            fn configure(config: String) -> Result<(), $crate::PolicyError> {
                $crate::report_panics();
                let configured = <$plugin as $crate::Plugin>::configure(&config)?;
                PLUGIN.set(Some(configured));
                Ok(())
            }
        }

        $crate::bindings::any_plugin::export_part_any_plugin!(
            ExportedComponent with_types_in $crate::bindings::any_plugin
        );
    };
}

/// Exports one kind of a plugin.
#[doc(hidden)]
#[macro_export]
macro_rules! export_kind {
    (EvictionCheck, $plugin:ty) => {
        impl $crate::bindings::eviction::exports::bulkhead::policy::eviction::Guest for ExportedComponent {
            fn check(
                binding: &$crate::Binding,
                task: &$crate::EvictionTask,
            ) -> Result<$crate::EvictionVerdict, $crate::PolicyError> {
                with_plugin(|plugin| $crate::EvictionCheck::check(plugin, binding, task))
            }
        }

        $crate::bindings::eviction::export_part_eviction!(ExportedComponent with_types_in $crate::bindings::eviction);
    };
    (HealthInterpreter, $plugin:ty) => {
        impl $crate::bindings::health::exports::bulkhead::policy::health::Guest for ExportedComponent {
            fn interpret(observed: &$crate::Object) -> Result<$crate::HealthVerdict, $crate::PolicyError> {
                with_plugin(|plugin| $crate::HealthInterpreter::interpret(plugin, observed))
            }
        }

        $crate::bindings::health::export_part_health!(ExportedComponent with_types_in $crate::bindings::health);
    };
    (ClusterTaint, $plugin:ty) => {
        impl $crate::bindings::taints::exports::bulkhead::policy::taints::Guest for ExportedComponent {
            fn decide(cluster: &$crate::Cluster) -> Result<::std::vec::Vec<$crate::TaintChange>, $crate::PolicyError> {
                with_plugin(|plugin| $crate::ClusterTaint::decide(plugin, cluster))
            }
        }

        $crate::bindings::taints::export_part_taints!(ExportedComponent with_types_in $crate::bindings::taints);
    };
    (Filter, $plugin:ty) => {
        impl $crate::bindings::filter::exports::bulkhead::policy::filter::Guest for ExportedComponent {
            fn filter(
                binding: &$crate::Binding,
                candidates: &$crate::Clusters,
            ) -> Result<::std::vec::Vec<$crate::FilterVerdict>, $crate::PolicyError> {
                with_plugin(|plugin| $crate::Filter::filter(plugin, binding, candidates))
            }
        }

        $crate::bindings::filter::export_part_filter!(ExportedComponent with_types_in $crate::bindings::filter);
    };
    (Score, $plugin:ty) => {
        impl $crate::bindings::score::exports::bulkhead::policy::score::Guest for ExportedComponent {
            fn score(
                binding: &$crate::Binding,
                feasible: &$crate::Clusters,
            ) -> Result<::std::vec::Vec<u32>, $crate::PolicyError> {
                with_plugin(|plugin| $crate::Score::score(plugin, binding, feasible))
            }
        }

        $crate::bindings::score::export_part_score!(ExportedComponent with_types_in $crate::bindings::score);
    };
    (ResourceInterpreter, $plugin:ty) => {
        impl $crate::bindings::interpreter::exports::bulkhead::policy::interpreter::Guest for ExportedComponent {
            fn interpret_replicas(template: &$crate::Object) -> Result<$crate::Replicas, $crate::PolicyError> {
                with_plugin(|plugin| $crate::ResourceInterpreter::replicas(plugin, template))
            }

            fn interpret_components(
                template: &$crate::Object,
            ) -> Result<::std::vec::Vec<$crate::Component>, $crate::PolicyError> {
                with_plugin(|plugin| $crate::ResourceInterpreter::components(plugin, template))
            }

            fn revise_replicas(
                template: &$crate::Object,
                replicas: i32,
            ) -> Result<::std::vec::Vec<$crate::Edit>, $crate::PolicyError> {
                with_plugin(|plugin| $crate::ResourceInterpreter::revise_replicas(plugin, template, replicas))
            }

            fn retain(
                desired: &$crate::Object,
                observed: &$crate::Object,
            ) -> Result<::std::vec::Vec<$crate::Edit>, $crate::PolicyError> {
                with_plugin(|plugin| $crate::ResourceInterpreter::retain(plugin, desired, observed))
            }

            fn reflect_status(
                observed: &$crate::Object,
            ) -> Result<Option<::std::string::String>, $crate::PolicyError> {
                with_plugin(|plugin| $crate::ResourceInterpreter::reflect_status(plugin, observed))
            }

            fn aggregate_status(
                template: &$crate::Object,
                reports: &$crate::Observations,
            ) -> Result<::std::vec::Vec<$crate::Edit>, $crate::PolicyError> {
                with_plugin(|plugin| $crate::ResourceInterpreter::aggregate_status(plugin, template, reports))
            }

            fn interpret_dependencies(
                template: &$crate::Object,
            ) -> Result<::std::vec::Vec<$crate::Dependency>, $crate::PolicyError> {
                with_plugin(|plugin| $crate::ResourceInterpreter::dependencies(plugin, template))
            }
        }

        $crate::bindings::interpreter::export_part_interpreter!(
            ExportedComponent with_types_in $crate::bindings::interpreter
        );
    };
}

/// Exports a plugin with the kinds that it implements, for example `export!(Freeze: EvictionCheck)` or
/// `export!(Capacity: Filter, Score)`. To be called once in a crate.
#[macro_export]
macro_rules! export {
    ($plugin:ty: $($kind:ident),+ $(,)?) => {
        $crate::export_plugin!($plugin);
        $($crate::export_kind!($kind, $plugin);)+
    };
}
