//! Metrics of the process: those of the controllers, and values of other parts that are read at each scrape.
//!
//! All of them are in one registry, which encodes a scrape.

mod collected;
mod exposition;
mod process;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_controllers::Components;
use bulkhead_core::call::CallKind;
use bulkhead_core::model::{Condition, ConditionStatus};
use bulkhead_core::policy::EngineKind;
use bulkhead_core::time::Time;
use bulkhead_plugin::{BreakerState, KindReport, PluginReport};
use bulkhead_runtime::connection::ResponseCounts;
use kube::ResourceExt as _;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use self::collected::{Counters, Gauges, Histograms};
pub(crate) use self::exposition::Format;
use super::traces::SpanCounts;

/// Version of the program, as its build recorded it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildInfo {
    /// Version.
    pub version: String,
    /// First digits of the commit; empty if it is unknown.
    pub commit: String,
    /// Package and version of the plugin contract.
    pub contract: String,
}

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

const PLUGIN_CALLS: Counters<2> = Counters::new(
    "bulkhead_plugin_calls",
    "Calls of a plugin, by kind of call.",
    ["plugin", "kind"],
);
const PLUGIN_FAULTS: Counters<2> = Counters::new(
    "bulkhead_plugin_faults",
    "Calls of a plugin that gave no answer, by kind of call.",
    ["plugin", "kind"],
);
const PLUGIN_HOLDS: Counters<2> = Counters::new(
    "bulkhead_plugin_holds",
    "Eviction checks that a plugin answered with a hold.",
    ["plugin", "kind"],
);
const PLUGIN_DURATION: Histograms<2> = Histograms::new(
    "bulkhead_plugin_call_duration_seconds",
    "Duration of the calls of a plugin; not measured for built-in policies.",
    ["plugin", "kind"],
);
const PLUGIN_STEPS: Counters<2> = Counters::new(
    "bulkhead_plugin_steps",
    "Steps of the calls of a plugin, in the unit of its engine.",
    ["plugin", "kind"],
);
const PLUGIN_MEMORY: Gauges<2> = Gauges::new(
    "bulkhead_plugin_memory_peak_bytes",
    "Highest memory use of a single call of a plugin.",
    ["plugin", "kind"],
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
const QUEUE_DEPTH: Gauges<1> = Gauges::new(
    "bulkhead_queue_depth",
    "Keys that wait for a worker of a controller.",
    ["queue"],
);
const QUEUE_OLDEST: Gauges<1> = Gauges::new(
    "bulkhead_queue_oldest_age_seconds",
    "Time for which the oldest key of a queue has been waiting for a worker; 0 if none waits.",
    ["queue"],
);
const READY_SINCE: Gauges<1> = Gauges::new(
    "cluster_ready_since_timestamp_seconds",
    "Time since which a ready cluster is ready, in seconds since 1970.",
    ["member_cluster"],
);
const LAST_TRANSITION: Gauges<1> = Gauges::new(
    "cluster_condition_last_transition_timestamp_seconds",
    "Time of the last change of the Ready condition of a cluster, in seconds since 1970.",
    ["member_cluster"],
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
const TRACE_SPANS: Counters<1> = Counters::new(
    "bulkhead_trace_spans",
    "Spans of traces, by result of their export; absent while traces are off.",
    ["result"],
);
const CERTIFICATE_END: Gauges<1> = Gauges::new(
    "bulkhead_certificate_end_timestamp_seconds",
    "Expiry of a certificate, in seconds since 1970.",
    ["certificate"],
);

/// Creates the registry of all metrics of the process.
pub(super) fn registry(
    observed: &Observed,
    status: &Arc<Mutex<ProcessStatus>>,
    build: &BuildInfo,
    spans: Option<&Arc<SpanCounts>>,
) -> Registry {
    let mut registry = Registry::default();
    observed.context.metrics.register(&mut registry);
    registry.register_collector(Box::new(ControllerValues(observed.clone())));
    registry.register_collector(Box::new(ProcessValues(Arc::clone(status))));
    registry.register_collector(Box::new(TraceValues(spans.map(Arc::clone))));
    registry.register_collector(Box::new(Program(build.clone())));
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
        clusters(&mut encoder, context)?;
        controllers(&mut encoder, context)?;
        connections(&mut encoder, context, responses)
    }
}

fn plugins(encoder: &mut DescriptorEncoder<'_>, context: &Components) -> fmt::Result {
    let report = context.registry.report();
    by_kind(encoder, &report)?;
    let name = |plugin: &PluginReport| [plugin.id.name.clone()];
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

/// Encodes calls by plugin and kind. The resources of built-in policies, and of calls that were never made, are left
/// out: the interpreters of the library alone would have thousands of series.
fn by_kind(encoder: &mut DescriptorEncoder<'_>, report: &[PluginReport]) -> fmt::Result {
    let labels = |plugin: &PluginReport, kind: &KindReport| [plugin.id.name.clone(), kind.kind.as_str().to_owned()];
    let all = || {
        report
            .iter()
            .flat_map(|plugin| plugin.kinds.iter().map(move |kind| (plugin, kind)))
    };
    PLUGIN_CALLS.encode(
        encoder,
        all().map(|(plugin, kind)| (labels(plugin, kind), kind.counts.calls)),
    )?;
    PLUGIN_FAULTS.encode(
        encoder,
        all().map(|(plugin, kind)| (labels(plugin, kind), kind.counts.faults)),
    )?;
    let checks = all().filter(|(_, kind)| kind.kind == CallKind::EvictionCheck);
    PLUGIN_HOLDS.encode(
        encoder,
        checks.map(|(plugin, kind)| (labels(plugin, kind), kind.counts.holds)),
    )?;
    let measured = || all().filter(|(plugin, kind)| plugin.id.engine != EngineKind::Builtin && kind.counts.calls > 0);
    let durations = measured().map(|(plugin, kind)| (labels(plugin, kind), kind.durations.clone()));
    PLUGIN_DURATION.encode(encoder, durations)?;
    PLUGIN_STEPS.encode(
        encoder,
        measured().map(|(plugin, kind)| (labels(plugin, kind), kind.usage.steps)),
    )?;
    let memory = measured().map(|(plugin, kind)| (labels(plugin, kind), kind.usage.memory_bytes_max));
    PLUGIN_MEMORY.encode(encoder, memory)
}

/// Encodes the times of the Ready conditions, which outlive the process.
fn clusters(encoder: &mut DescriptorEncoder<'_>, context: &Components) -> fmt::Result {
    let clusters = context.stores.clusters.list();
    let changed = clusters.iter().filter_map(|cluster| {
        let ready = Condition::find(&cluster.status.conditions, "Ready")?;
        let changed_s = ready.last_transition_time?.as_millis() / 1000;
        Some((cluster.name_any(), ready.status, changed_s))
    });
    let changed: Vec<_> = changed.collect();
    let ready = changed.iter().filter(|(_, status, _)| *status == ConditionStatus::True);
    READY_SINCE.encode(encoder, ready.map(|(name, _, at)| ([name.clone()], *at)))?;
    LAST_TRANSITION.encode(encoder, changed.iter().map(|(name, _, at)| ([name.clone()], *at)))
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
    let backlogs: Vec<_> = context.failures.backlogs();
    let depths = backlogs
        .iter()
        .map(|(queue, backlog)| ([(*queue).to_owned()], backlog.depth));
    QUEUE_DEPTH.encode(encoder, depths)?;
    let ages = backlogs
        .iter()
        .map(|(queue, backlog)| ([(*queue).to_owned()], backlog.oldest.as_secs_f64()));
    QUEUE_OLDEST.encode(encoder, ages)?;
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

/// Collector of the counts of spans; without a sample if traces are off.
#[derive(Debug)]
struct TraceValues(Option<Arc<SpanCounts>>);

impl Collector for TraceValues {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let results = self.0.iter().flat_map(|spans| spans.results());
        TRACE_SPANS.encode(
            &mut encoder,
            results.map(|(result, count)| ([result.to_owned()], count)),
        )
    }
}

/// Collector of the version of the program and the resources of its process.
#[derive(Debug)]
struct Program(BuildInfo);

impl Collector for Program {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        process::encode(&mut encoder, &self.0)
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
