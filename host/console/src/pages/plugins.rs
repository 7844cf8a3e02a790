//! Page of the policies: calls, faults, holds, and divergences in shadow mode.

use bulkhead_core::journal::Decision;
use bulkhead_core::policy::{EngineKind, PolicyId};
use bulkhead_plugin::{BreakerState, KindReport, PluginReport};
use maud::{Markup, html};

use super::rows;
use crate::frame::{Page, View, moment, pager, section, table, text};
use crate::history::{PolicyRow, Row};
use crate::query::{Paged, Parameters};

/// Path of the page.
pub const PATH: &str = "/plugins";
/// Number of policies on a page.
const POLICIES_MAX: usize = 100;
/// Maximum number of faults and of divergences that are listed.
const ROWS_MAX: usize = 50;
/// Maximum number of rows of costs.
const COSTS_MAX: usize = 500;
/// Number of digits of a digest that is shown.
const DIGEST_DIGITS: usize = 12;

/// Returns the page.
///
/// # Errors
///
/// A parameter has no valid value.
pub fn page(view: &View<'_>, parameters: &Parameters) -> Result<Page, String> {
    let number = parameters.number("page")?.unwrap_or(1);
    let (mut plugins, builtin): (Vec<_>, Vec<_>) = view
        .history
        .policies()
        .rows()
        .partition(|(policy, _)| policy.engine != EngineKind::Builtin);
    plugins.extend(builtin);
    let page = Paged::of(plugins.into_iter(), number, POLICIES_MAX);
    let policies: Vec<_> = page.items.iter().map(|(policy, counts)| row(policy, counts)).collect();
    let columns = [
        "Policy",
        "Engine",
        "Version",
        "Mode",
        "Code",
        "Calls",
        "Faults",
        "Holds",
        "Releases",
        "Divergences",
        "Last call",
    ];
    let list = html! {
        (pager(PATH, parameters, &page, "policies"))
        (table("Policies that decisions called, plugins first", &columns, &policies))
        p class="soft" { "The numbers are those of recorded decisions. Metrics have those of all calls." }
    };
    let body = html! {
        (section("policies", "Policies", &list))
        (section("costs", "Cost of calls", &costs(view)))
        (section("faults", "Faults", &last(view, Decision::PluginFault, "Faults of plugins, newest first")))
        (section("divergences", "Shadow divergences", &divergences(view)))
        (section("changes", "Changes", &last(view, Decision::PluginsChanged, "Loaded, replaced and rejected plugins, newest first")))
    };
    Ok(Page {
        title: "Plugins".to_owned(),
        description: "Policies with their answers, faults and divergences, as decisions recorded them.".to_owned(),
        path: PATH,
        follows: true,
        body,
    })
}

fn row(policy: &PolicyId, counts: &PolicyRow) -> Vec<Markup> {
    let kinds: Vec<_> = counts
        .calls
        .iter()
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    let code = counts
        .build
        .as_ref()
        .map(|build| build.code.chars().take(DIGEST_DIGITS).collect::<String>());
    vec![
        text(&policy.name),
        text(policy.engine.as_str()),
        text(&policy.version),
        text(counts.mode),
        text(code.unwrap_or_default()),
        html! { (counts.calls()) @if !kinds.is_empty() { " (" (kinds.join(", ")) ")" } },
        html! { span class=(if counts.faults > 0 { "bad" } else { "" }) { (counts.faults) } },
        html! { (counts.holds) },
        html! { (counts.releases) },
        html! { span class=(if counts.divergences > 0 { "waiting" } else { "" }) { (counts.divergences) } },
        text(counts.last.map(moment).unwrap_or_default()),
    ]
}

/// Returns the cost of the calls of plugins in the running process.
fn costs(view: &View<'_>) -> Markup {
    let Some(reports) = view.costs else {
        return html! { p { "Only the console of a running process knows the cost of calls, as its metrics do." } };
    };
    let of_plugin = |report: &&PluginReport| report.id.engine != EngineKind::Builtin;
    let called = reports
        .iter()
        .filter(of_plugin)
        .flat_map(|report| report.kinds.iter().map(move |kind| (report, kind)));
    let called = called.filter(|(_, kind)| kind.counts.calls > 0);
    let rows: Vec<_> = called
        .take(COSTS_MAX)
        .map(|(report, kind)| cost(report, kind))
        .collect();
    let columns = [
        "Plugin",
        "Calls of kind",
        "Calls",
        "Faults",
        "Mean time",
        "Steps per call",
        "Peak memory",
        "Breaker",
    ];
    table(
        "Cost of the calls of plugins since the start of the process",
        &columns,
        &rows,
    )
}

fn cost(report: &PluginReport, kind: &KindReport) -> Vec<Markup> {
    let calls = kind.counts.calls.max(1);
    let timed = kind.durations.count().max(1);
    let mean_us = kind.durations.sum.as_micros() / u128::from(timed);
    let breaker = match report.breaker {
        BreakerState::Closed => "closed",
        BreakerState::Open => "open: in quarantine",
        BreakerState::HalfOpen => "half open: probed in shadow",
    };
    vec![
        html! { (report.id) },
        text(kind.kind.as_str()),
        html! { (kind.counts.calls) },
        html! { (kind.counts.faults) },
        html! { (mean_us) " µs" },
        html! { (kind.usage.steps / calls) },
        html! { (kind.usage.memory_bytes_max / 1024) " KiB" },
        text(breaker),
    ]
}

/// Returns the last decisions of a kind.
fn last_rows<'a>(view: &'a View<'_>, decision: Decision) -> impl Iterator<Item = &'a Row> {
    let rows = view.history.rows().iter().rev();
    rows.filter(move |row| row.decision == decision).take(ROWS_MAX)
}

fn last(view: &View<'_>, decision: Decision, caption: &str) -> Markup {
    rows::table_of(caption, last_rows(view, decision))
}

fn divergences(view: &View<'_>) -> Markup {
    html! {
        p class="soft" { "Effect: the decision. Reason: the decision that the plugin would have made." }
        (last(view, Decision::ShadowDiverged, "Divergences of plugins in shadow mode, newest first"))
    }
}
