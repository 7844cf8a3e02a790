//! Metrics of the process: those of the controllers, and values of other parts that are read at each scrape.
//!
//! All of them are in one registry, which encodes a scrape.

mod collected;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_controllers::Components;
use bulkhead_core::time::Time;
use bulkhead_plugin::BreakerState;
use bulkhead_runtime::connection::ResponseCounts;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use self::collected::{Counters, Gauges};

/// Sources of the metrics.
#[derive(Clone)]
pub(super) struct Observed {
    /// Context of the controllers.
    pub(super) context: Components,
    /// Response counts of the control plane and the members.
    pub(super) responses: [(&'static str, Arc<ResponseCounts>); 2],
}

/// Status values that other tasks report.
#[derive(Clone, Default)]
pub(super) struct ProcessStatus {
    /// True if this process is the leader; `None` without an election.
    pub(super) leads: Option<bool>,
    /// Number of required but missing permissions.
    pub(super) missing_permissions: usize,
    /// Problems that keep caches stale for longer than a restart of the control plane takes.
    pub(super) lacking: Vec<String>,
    /// Expiry of certificates, by name.
    pub(super) certificates: BTreeMap<String, Time>,
}

const PLUGIN_CALLS: Counters<1> = Counters::new("bulkhead_plugin_calls", "Calls of a plugin.", ["plugin"]);
const PLUGIN_FAULTS: Counters<1> = Counters::new(
    "bulkhead_plugin_faults",
    "Calls of a plugin that gave no answer.",
    ["plugin"],
);
const PLUGIN_DIVERGENCES: Counters<1> = Counters::new(
    "bulkhead_plugin_divergences",
    "Decisions in which a plugin in shadow would have decided otherwise.",
    ["plugin"],
);
const PLUGIN_BREAKER: Gauges<1> = Gauges::new(
    "bulkhead_plugin_breaker",
    "1 for a plugin in quarantine, 0.5 for one that is probed, 0 for one that answers.",
    ["plugin"],
);
const PLUGIN_LOADED: Gauges<1> = Gauges::new(
    "bulkhead_plugin_loaded",
    "1 for a listed plugin whose newest version is in force, 0.5 for an older one, 0 for none.",
    ["plugin"],
);
const RECONCILE_ERRORS: Counters<2> = Counters::new(
    "bulkhead_reconcile_errors",
    "Reconciles that failed.",
    ["controller", "error"],
);
const WITHHELD_WRITES: Counters<0> = Counters::new(
    "bulkhead_withheld_writes",
    "Writes decided and not sent: mode report.",
    [],
);
const DECISIONS: Gauges<0> = Gauges::new("bulkhead_decisions", "Decisions in the journal.", []);
const DROPPED_EVENTS: Counters<0> = Counters::new(
    "bulkhead_dropped_events",
    "Events dropped because the queue was full.",
    [],
);
const API_ANSWERS: Counters<2> = Counters::new(
    "bulkhead_api_answers",
    "Answers of API servers by HTTP status; 0 where nothing answered.",
    ["server", "code"],
);
const INFORMER_ERRORS: Counters<1> = Counters::new(
    "bulkhead_informer_errors",
    "Lists and watches that failed.",
    ["resource"],
);
const INFORMER_LISTED: Gauges<1> = Gauges::new(
    "bulkhead_informer_listed",
    "1 once all objects of a kind are cached.",
    ["resource"],
);
const LEADER: Gauges<0> = Gauges::new(
    "bulkhead_leader",
    "1 while this process is active, 0 while it is on standby.",
    [],
);
const MISSING_PERMISSIONS: Gauges<0> = Gauges::new(
    "bulkhead_missing_permissions",
    "Verbs that the modes need and the account may not use.",
    [],
);
const CERTIFICATE_END: Gauges<1> = Gauges::new(
    "bulkhead_certificate_end_timestamp_seconds",
    "Expiry of a certificate, in seconds since 1970.",
    ["certificate"],
);

/// Creates the registry of all metrics of the process.
pub(super) fn registry(observed: &Observed, status: &Arc<Mutex<ProcessStatus>>) -> Registry {
    let mut registry = Registry::default();
    observed.context.metrics.register(&mut registry);
    registry.register_collector(Box::new(ControllerValues(observed.clone())));
    registry.register_collector(Box::new(ProcessValues(Arc::clone(status))));
    registry
}

/// Renders all metrics in the OpenMetrics text format.
pub(super) fn text(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, registry);
    text
}

/// Collector of the values that plugins, controllers and connections count themselves.
struct ControllerValues(Observed);

impl fmt::Debug for ControllerValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerValues").finish_non_exhaustive()
    }
}

impl Collector for ControllerValues {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Observed { context, responses } = &self.0;
        plugins(&mut encoder, context)?;
        loaded(&mut encoder, context)?;
        controllers(&mut encoder, context)?;
        connections(&mut encoder, context, responses)
    }
}

fn plugins(encoder: &mut DescriptorEncoder<'_>, context: &Components) -> fmt::Result {
    let report = context.registry.report();
    let name = |plugin: &bulkhead_plugin::PluginReport| [plugin.id.name.clone()];
    PLUGIN_CALLS.encode(encoder, report.iter().map(|plugin| (name(plugin), plugin.counts.calls)))?;
    PLUGIN_FAULTS.encode(
        encoder,
        report.iter().map(|plugin| (name(plugin), plugin.counts.faults)),
    )?;
    PLUGIN_DIVERGENCES.encode(
        encoder,
        report.iter().map(|plugin| (name(plugin), plugin.counts.divergences)),
    )?;
    let open = |state: BreakerState| match state {
        BreakerState::Closed => 0.0,
        BreakerState::HalfOpen => 0.5,
        BreakerState::Open => 1.0,
    };
    PLUGIN_BREAKER.encode(
        encoder,
        report.iter().map(|plugin| (name(plugin), open(plugin.breaker))),
    )
}

/// Encodes the load status of plugins. A listed plugin that is not loaded holds its decisions, so operators need to
/// know.
fn loaded(encoder: &mut DescriptorEncoder<'_>, context: &Components) -> fmt::Result {
    let Some(plugins) = &context.plugins else { return Ok(()) };
    let loaded = plugins.status().into_iter().map(|status| {
        let loaded = match (&status.active, &status.refused) {
            (Some(_), None) => 1.0,
            (Some(_), Some(_)) => 0.5,
            (None, _) => 0.0,
        };
        ([status.name], loaded)
    });
    PLUGIN_LOADED.encode(encoder, loaded)
}

fn controllers(encoder: &mut DescriptorEncoder<'_>, context: &Components) -> fmt::Result {
    let classes = context.failures.classes().into_iter();
    let errors = classes.map(|(controller, class, count)| ([controller, class.name().to_owned()], count));
    RECONCILE_ERRORS.encode(encoder, errors)?;
    WITHHELD_WRITES.encode(encoder, [([], context.failures.withheld())])?;
    DECISIONS.encode(encoder, [([], context.journal.recorded())])?;
    DROPPED_EVENTS.encode(encoder, [([], context.events.dropped())])
}

fn connections(
    encoder: &mut DescriptorEncoder<'_>,
    context: &Components,
    responses: &[(&'static str, Arc<ResponseCounts>)],
) -> fmt::Result {
    let answers = responses.iter().flat_map(|(server, responses)| {
        let counts = responses.counts().into_iter();
        counts.map(move |(code, count)| ([(*server).to_owned(), code.to_string()], count))
    });
    API_ANSWERS.encode(encoder, answers)?;
    let informers = context.stores.informers(&context.scope);
    let errors = informers
        .iter()
        .map(|(resource, informer)| ([resource.clone()], informer.errors));
    INFORMER_ERRORS.encode(encoder, errors)?;
    let listed = informers
        .iter()
        .map(|(resource, informer)| ([resource.clone()], i64::from(informer.synced)));
    INFORMER_LISTED.encode(encoder, listed)
}

/// Collector of the status values.
struct ProcessValues(Arc<Mutex<ProcessStatus>>);

impl fmt::Debug for ProcessValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessValues").finish_non_exhaustive()
    }
}

impl Collector for ProcessValues {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        LEADER.encode(&mut encoder, status.leads.map(|leads| ([], i64::from(leads))))?;
        MISSING_PERMISSIONS.encode(&mut encoder, [([], status.missing_permissions)])?;
        let ends = |(certificate, ends): (String, Time)| ([certificate], ends.as_millis() / 1000);
        CERTIFICATE_END.encode(&mut encoder, status.certificates.into_iter().map(ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_values_are_read_at_each_scrape() {
        let status = Arc::<Mutex<ProcessStatus>>::default();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(ProcessValues(Arc::clone(&status))));
        let before = text(&registry);
        assert!(
            before.contains("# TYPE bulkhead_leader gauge\n# HELP bulkhead_missing_permissions"),
            "{before}"
        );
        {
            let mut status = status.lock().unwrap();
            (status.leads, status.missing_permissions) = (Some(true), 3);
            status
                .certificates
                .insert("webhook".to_owned(), Time::from_millis(2_000_000_000_500));
        }
        assert_eq!(
            text(&registry),
            "# HELP bulkhead_leader 1 while this process is active, 0 while it is on standby.\n\
             # TYPE bulkhead_leader gauge\n\
             bulkhead_leader 1\n\
             # HELP bulkhead_missing_permissions Verbs that the modes need and the account may not use.\n\
             # TYPE bulkhead_missing_permissions gauge\n\
             bulkhead_missing_permissions 3\n\
             # HELP bulkhead_certificate_end_timestamp_seconds Expiry of a certificate, in seconds since 1970.\n\
             # TYPE bulkhead_certificate_end_timestamp_seconds gauge\n\
             bulkhead_certificate_end_timestamp_seconds{certificate=\"webhook\"} 2000000000\n\
             # EOF\n"
        );
    }
}
