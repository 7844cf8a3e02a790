//! `export!` ties a plugin type to the functions of its worlds.

/// Exports what every plugin exports, and keeps the configured plugin for the question that follows.
#[doc(hidden)]
#[macro_export]
macro_rules! export_plugin {
    ($plugin:ty) => {
        struct Component;

        ::std::thread_local! {
            static PLUGIN: ::std::cell::RefCell<Option<$plugin>> = const { ::std::cell::RefCell::new(None) };
        }

        /// Runs a question on the configured plugin.
        fn with_plugin<T>(
            ask: impl FnOnce(&$plugin) -> Result<T, $crate::PolicyError>,
        ) -> Result<T, $crate::PolicyError> {
            PLUGIN.with_borrow(|plugin| match plugin {
                Some(plugin) => ask(plugin),
                None => Err($crate::PolicyError::Internal("the host did not configure the plugin".into())),
            })
        }

        impl $crate::bindings::any_plugin::exports::bulkhead::policy::plugin::Guest for Component {
            fn describe() -> $crate::Metadata {
                $crate::metadata::<$plugin>()
            }

            fn configure(config: String) -> Result<(), $crate::PolicyError> {
                let configured = <$plugin as $crate::Plugin>::configure(&config)?;
                PLUGIN.set(Some(configured));
                Ok(())
            }
        }

        $crate::bindings::any_plugin::export_part_any_plugin!(Component with_types_in $crate::bindings::any_plugin);
    };
}

/// Exports one kind of a plugin.
#[doc(hidden)]
#[macro_export]
macro_rules! export_kind {
    (EvictionCheck, $plugin:ty) => {
        impl $crate::bindings::eviction::exports::bulkhead::policy::eviction::Guest for Component {
            fn check(
                binding: &$crate::Document,
                task: &$crate::Document,
                now_s: i64,
            ) -> Result<$crate::EvictionVerdict, $crate::PolicyError> {
                with_plugin(|plugin| $crate::EvictionCheck::check(plugin, binding, task, now_s))
            }
        }

        $crate::bindings::eviction::export_part_eviction!(Component with_types_in $crate::bindings::eviction);
    };
    (HealthInterpreter, $plugin:ty) => {
        impl $crate::bindings::health::exports::bulkhead::policy::health::Guest for Component {
            fn interpret(observed: &$crate::Document) -> Result<$crate::HealthVerdict, $crate::PolicyError> {
                with_plugin(|plugin| $crate::HealthInterpreter::interpret(plugin, observed))
            }
        }

        $crate::bindings::health::export_part_health!(Component with_types_in $crate::bindings::health);
    };
    (ClusterTaint, $plugin:ty) => {
        impl $crate::bindings::taints::exports::bulkhead::policy::taints::Guest for Component {
            fn decide(
                cluster: &$crate::Document,
                now_s: i64,
            ) -> Result<::std::vec::Vec<$crate::TaintChange>, $crate::PolicyError> {
                with_plugin(|plugin| $crate::ClusterTaint::decide(plugin, cluster, now_s))
            }
        }

        $crate::bindings::taints::export_part_taints!(Component with_types_in $crate::bindings::taints);
    };
    (Filter, $plugin:ty) => {
        impl $crate::bindings::filter::exports::bulkhead::policy::filter::Guest for Component {
            fn filter(
                binding: &$crate::Document,
                candidates: &$crate::Clusters,
                now_s: i64,
            ) -> Result<::std::vec::Vec<$crate::FilterVerdict>, $crate::PolicyError> {
                with_plugin(|plugin| $crate::Filter::filter(plugin, binding, candidates, now_s))
            }
        }

        $crate::bindings::filter::export_part_filter!(Component with_types_in $crate::bindings::filter);
    };
    (Score, $plugin:ty) => {
        impl $crate::bindings::score::exports::bulkhead::policy::score::Guest for Component {
            fn score(
                binding: &$crate::Document,
                feasible: &$crate::Clusters,
                now_s: i64,
            ) -> Result<::std::vec::Vec<u32>, $crate::PolicyError> {
                with_plugin(|plugin| $crate::Score::score(plugin, binding, feasible, now_s))
            }
        }

        $crate::bindings::score::export_part_score!(Component with_types_in $crate::bindings::score);
    };
}

/// Exports a plugin with the kinds that it implements, for example `export!(Freeze: EvictionCheck)` or
/// `export!(Capacity: Filter, Score)`. Called once in a crate.
#[macro_export]
macro_rules! export {
    ($plugin:ty: $($kind:ident),+ $(,)?) => {
        $crate::export_plugin!($plugin);
        $($crate::export_kind!($kind, $plugin);)+
    };
}

/// Short for [`export!`](crate::export!) with [`EvictionCheck`](crate::EvictionCheck) alone.
#[macro_export]
macro_rules! export_eviction_check {
    ($plugin:ty) => {
        $crate::export!($plugin: EvictionCheck);
    };
}

/// Short for [`export!`](crate::export!) with [`HealthInterpreter`](crate::HealthInterpreter) alone.
#[macro_export]
macro_rules! export_health_interpreter {
    ($plugin:ty) => {
        $crate::export!($plugin: HealthInterpreter);
    };
}

/// Short for [`export!`](crate::export!) with [`ClusterTaint`](crate::ClusterTaint) alone.
#[macro_export]
macro_rules! export_cluster_taint {
    ($plugin:ty) => {
        $crate::export!($plugin: ClusterTaint);
    };
}

/// Short for [`export!`](crate::export!) with [`Filter`](crate::Filter) alone.
#[macro_export]
macro_rules! export_scheduler_filter {
    ($plugin:ty) => {
        $crate::export!($plugin: Filter);
    };
}

/// Short for [`export!`](crate::export!) with [`Score`](crate::Score) alone.
#[macro_export]
macro_rules! export_scheduler_score {
    ($plugin:ty) => {
        $crate::export!($plugin: Score);
    };
}
