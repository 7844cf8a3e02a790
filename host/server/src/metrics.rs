//! Metrics page: the controllers' own metrics, and counters of other parts of the process.

use std::collections::BTreeMap;
use std::fmt::{Result, Write as _};
use std::sync::Arc;

use bulkhead_controllers::Components;
use bulkhead_core::time::Time;
use bulkhead_runtime::connection::ResponseCounts;

/// Sources of the metrics.
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

/// Renders all metrics in the OpenMetrics text format.
pub(super) fn text(observed: &Observed, status: &ProcessStatus) -> String {
    // Further families go before the encoder's end marker.
    let mut text = observed.context.metrics.text();
    let end = text.rfind("# EOF").unwrap_or(text.len());
    text.truncate(end);
    // Writing to a string cannot fail.
    let _ = plugins(&mut text, observed);
    let _ = loaded(&mut text, observed);
    let _ = controllers(&mut text, observed);
    let _ = connections(&mut text, observed);
    let _ = process(&mut text, status);
    text.push_str("# EOF\n");
    text
}

fn family(text: &mut String, name: &str, help: &str, type_: &str) -> Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {type_}")
}

fn plugins(text: &mut String, observed: &Observed) -> Result {
    let report = observed.context.registry.report();
    family(text, "bulkhead_plugin_calls", "Calls of a plugin.", "counter")?;
    for plugin in &report {
        writeln!(text, "bulkhead_plugin_calls_total{{plugin={:?}}} {}", plugin.id.name, plugin.counts.calls)?;
    }
    family(text, "bulkhead_plugin_faults", "Calls of a plugin that gave no answer.", "counter")?;
    for plugin in &report {
        writeln!(text, "bulkhead_plugin_faults_total{{plugin={:?}}} {}", plugin.id.name, plugin.counts.faults)?;
    }
    let help = "Decisions in which a plugin in shadow would have decided otherwise.";
    family(text, "bulkhead_plugin_divergences", help, "counter")?;
    for plugin in &report {
        let count = plugin.counts.divergences;
        writeln!(text, "bulkhead_plugin_divergences_total{{plugin={:?}}} {}", plugin.id.name, count)?;
    }
    let help = "1 for a plugin in quarantine, 0.5 for one that is probed, 0 for one that answers.";
    family(text, "bulkhead_plugin_breaker", help, "gauge")?;
    for plugin in &report {
        use bulkhead_plugin::BreakerState;
        let open = match plugin.breaker {
            BreakerState::Closed => 0.0,
            BreakerState::HalfOpen => 0.5,
            BreakerState::Open => 1.0,
        };
        writeln!(text, "bulkhead_plugin_breaker{{plugin={:?}}} {}", plugin.id.name, open)?;
    }
    Ok(())
}

/// Writes the load status of plugins. A listed plugin that is not loaded holds its decisions, so operators need to
/// know.
fn loaded(text: &mut String, observed: &Observed) -> Result {
    let Some(plugins) = &observed.context.plugins else { return Ok(()) };
    let help = "1 for a listed plugin whose newest version is in force, 0.5 for an older one, 0 for none.";
    family(text, "bulkhead_plugin_loaded", help, "gauge")?;
    for status in plugins.status() {
        let loaded = match (&status.active, &status.refused) {
            (Some(_), None) => 1.0,
            (Some(_), Some(_)) => 0.5,
            (None, _) => 0.0,
        };
        writeln!(text, "bulkhead_plugin_loaded{{plugin={:?}}} {loaded}", status.name)?;
    }
    Ok(())
}

fn controllers(text: &mut String, observed: &Observed) -> Result {
    let context = &observed.context;
    family(text, "bulkhead_reconcile_errors", "Reconciles that failed.", "counter")?;
    for (controller, class, count) in context.failures.classes() {
        let error = class.name();
        writeln!(text, "bulkhead_reconcile_errors_total{{controller={controller:?},error={error:?}}} {count}")?;
    }
    family(text, "bulkhead_withheld_writes", "Writes decided and not sent: mode report.", "counter")?;
    writeln!(text, "bulkhead_withheld_writes_total {}", context.failures.withheld())?;
    family(text, "bulkhead_decisions", "Decisions in the journal.", "gauge")?;
    writeln!(text, "bulkhead_decisions {}", context.journal.recorded())?;
    family(text, "bulkhead_dropped_events", "Events dropped because the queue was full.", "counter")?;
    writeln!(text, "bulkhead_dropped_events_total {}", context.events.dropped())?;
    Ok(())
}

fn connections(text: &mut String, observed: &Observed) -> Result {
    let context = &observed.context;
    let help = "Answers of API servers by HTTP status; 0 where nothing answered.";
    family(text, "bulkhead_api_answers", help, "counter")?;
    for (server, responses) in &observed.responses {
        for (code, count) in responses.counts() {
            writeln!(text, "bulkhead_api_answers_total{{server={server:?},code=\"{code}\"}} {count}")?;
        }
    }
    let informers = context.stores.informers(&context.scope);
    family(text, "bulkhead_informer_errors", "Lists and watches that failed.", "counter")?;
    for (resource, informer) in &informers {
        writeln!(text, "bulkhead_informer_errors_total{{resource={resource:?}}} {}", informer.errors)?;
    }
    family(text, "bulkhead_informer_listed", "1 once all objects of a kind are cached.", "gauge")?;
    for (resource, informer) in &informers {
        writeln!(text, "bulkhead_informer_listed{{resource={resource:?}}} {}", u8::from(informer.synced))?;
    }
    Ok(())
}

fn process(text: &mut String, status: &ProcessStatus) -> Result {
    family(text, "bulkhead_leader", "1 while this process is active, 0 while it is on standby.", "gauge")?;
    if let Some(leads) = status.leads {
        writeln!(text, "bulkhead_leader {}", u8::from(leads))?;
    }
    let help = "Verbs that the modes need and the account may not use.";
    family(text, "bulkhead_missing_permissions", help, "gauge")?;
    writeln!(text, "bulkhead_missing_permissions {}", status.missing_permissions)?;
    let help = "Expiry of a certificate, in seconds since 1970.";
    family(text, "bulkhead_certificate_end_timestamp_seconds", help, "gauge")?;
    for (certificate, ends) in &status.certificates {
        let ends = ends.as_millis() / 1000;
        writeln!(text, "bulkhead_certificate_end_timestamp_seconds{{certificate={certificate:?}}} {ends}")?;
    }
    Ok(())
}
