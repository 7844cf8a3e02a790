//! Map of the federation: clusters with taints, evictions under way, and their rates.

use std::collections::BTreeMap;

use bulkhead_core::journal::Limits;
use bulkhead_core::time::Time;
use bulkhead_simulator::recorded::waiting::{Step, Waiting};
use bulkhead_simulator::render::duration;
use bulkhead_simulator::render::page::tiles;
use maud::{Markup, html};

use super::{waits, what_if};
use crate::federation::{self, ClusterNow, Federation};
use crate::frame::{
    Page, View, choice, cluster, decision_link, field, filter, moment, object, pager, scale, section, table, text,
};
use crate::query::{Paged, Parameters};

/// Path of the page.
pub const PATH: &str = "/";
/// Number of clusters on a page.
const CLUSTERS_MAX: usize = 100;
/// Maximum number of rows of the other tables.
const ROWS_MAX: usize = 50;
/// States of the filter: value and text.
const STATES: [(&str, &str); 5] = [
    ("", "all"),
    ("not-ready", "not ready"),
    ("tainted", "tainted"),
    ("leaving", "with evictions under way"),
    ("sound", "ready, without taints and evictions"),
];

/// Returns the page.
///
/// # Errors
///
/// A parameter has no valid value.
pub fn page(view: &View<'_>, parameters: &Parameters) -> Result<Page, String> {
    let at = parameters.moment(view.history.extent())?;
    let number = parameters.number("page")?.unwrap_or(1);
    let now = at.unwrap_or(view.now);
    let federation = Federation::at(view.history, at, now);
    let queued = view.queued.filter(|_| at.is_none());
    let waits = federation::waits(view.history.until(at).iter(), queued, now);
    let clusters = clusters(&federation, parameters, number)?;
    let body = html! {
        (section("time", "Time", &scale(PATH, parameters, view.history, at)))
        (section("summary", "Summary", &summary(&federation, &waits)))
        (section("clusters", "Clusters", &clusters))
        (section("evictions", "Evictions under way", &evictions(&federation, &waits)))
        (section("waits", "Waits", &others(&waits, now)))
        (section("rates", "Rates", &rates(federation.limits)))
    };
    let shown = at.map_or_else(|| "now".to_owned(), |at| format!("at {}", moment(at)));
    Ok(Page {
        title: "Federation".to_owned(),
        description: format!("Clusters, taints and evictions {shown}, as the recorded decisions show them."),
        path: PATH,
        follows: at.is_none(),
        body,
    })
}

fn summary(federation: &Federation<'_>, waits: &[Waiting]) -> Markup {
    let all = federation.clusters.len();
    let ready = federation
        .clusters
        .iter()
        .filter(|cluster| cluster.state.is_ready())
        .count();
    let tainted = federation
        .clusters
        .iter()
        .filter(|cluster| !cluster.state.taints.is_empty())
        .count();
    let leaving: usize = federation.clusters.iter().map(|cluster| cluster.leaving).sum();
    let waiting = waits.iter().filter(|wait| wait.step == Step::Eviction).count();
    let good = |is_good: bool, other: &'static str| if is_good { "good" } else { other };
    tiles(&[
        ("clusters ready", format!("{ready} of {all}"), good(ready == all, "bad")),
        ("clusters tainted", tainted.to_string(), good(tainted == 0, "waiting")),
        ("bindings", federation.bindings.len().to_string(), ""),
        (
            "evictions under way",
            leaving.to_string(),
            good(leaving == 0, "waiting"),
        ),
        ("evictions waiting", waiting.to_string(), good(waiting == 0, "waiting")),
        ("evictions in the last minute", federation.recent.to_string(), ""),
    ])
}

fn clusters(federation: &Federation<'_>, parameters: &Parameters, number: usize) -> Result<Markup, String> {
    let words = parameters.text("cluster").to_lowercase();
    let state = parameters.option("state", &STATES)?;
    let is_wanted = |cluster: &&ClusterNow<'_>| {
        let is_tainted = !cluster.state.taints.is_empty();
        let has_state = match state {
            "not-ready" => !cluster.state.is_ready(),
            "tainted" => is_tainted,
            "leaving" => cluster.leaving > 0,
            "sound" => cluster.state.is_ready() && !is_tainted && cluster.leaving == 0,
            _ => true,
        };
        has_state
            && (cluster.name.to_lowercase().contains(&words) || cluster.state.region.to_lowercase().contains(&words))
    };
    let mut wanted: Vec<_> = federation.clusters.iter().filter(is_wanted).collect();
    wanted.sort_by_key(|cluster| (&cluster.state.region, cluster.name));
    let page = Paged::of(wanted.into_iter(), number, CLUSTERS_MAX);
    let mut regions = BTreeMap::<&str, Vec<&ClusterNow<'_>>>::new();
    for cluster in &page.items {
        regions.entry(&cluster.state.region).or_default().push(cluster);
    }
    let fields = html! {
        (field("cluster", "Cluster or region", parameters))
        (choice("state", "State", &STATES, parameters))
    };
    Ok(html! {
        (filter(PATH, parameters, &["cluster", "state"], &fields))
        (pager(PATH, parameters, &page, "clusters"))
        @for (region, clusters) in &regions {
            h3 { @if region.is_empty() { "Without a region" } @else { "Region " (region) } }
            ul class="cells" { @for cluster in clusters { (cell(cluster, federation.at)) } }
        }
    })
}

fn cell(now: &ClusterNow<'_>, at: Time) -> Markup {
    let state = now.state;
    let class = match (state.is_ready(), state.taints.is_empty() && now.leaving == 0) {
        (true, true) => "cell good",
        (true, false) => "cell waiting",
        (false, _) => "cell bad",
    };
    let since = state
        .since
        .map(|since| format!(" for {}", duration(at.millis_since(since).max(0))))
        .unwrap_or_default();
    let ready = match state.ready.as_str() {
        "True" => format!("✓ ready{since}"),
        "False" => format!("✗ not ready{since}: {}", state.reason),
        _ => format!("? readiness unknown{since}"),
    };
    let loss = Parameters::default().with("down", now.name).link(what_if::PATH);
    html! {
        li class=(class) {
            h4 { (cluster(now.name)) }
            p { (ready) }
            @for taint in &state.taints { p { "taint " (taint) } }
            p class="soft" { "bindings: " (now.placed) ", leaving: " (now.leaving) }
            p { a href=(loss) aria-label={ "What if " (now.name) " were lost" } { "What if" } }
        }
    }
}

fn evictions(federation: &Federation<'_>, waits: &[Waiting]) -> Markup {
    let held: BTreeMap<_, _> = waits
        .iter()
        .filter(|wait| wait.step == Step::Release)
        .map(|wait| ((&wait.subject, wait.cluster.as_deref()), wait))
        .collect();
    let all = federation.evictions();
    let rows = all.iter().take(ROWS_MAX).map(|(subject, from, row)| {
        let placement = federation.bindings.get(subject).map_or("", |binding| binding.placement);
        let age = duration(federation.at.millis_since(row.at).max(0));
        let gate = held
            .get(&(*subject, Some(*from)))
            .map(|wait| format!("{}: {}", wait.gate, wait.message));
        vec![
            object(subject),
            cluster(from),
            text(placement),
            html! { a href=(decision_link(row)) { (moment(row.at)) } " (" (age) ")" },
            text(&row.cause.code),
            text(gate.unwrap_or_else(|| "not checked yet".to_owned())),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let columns = ["Binding", "From", "Placement", "Since", "Reason", "Old copy is kept by"];
    let more = Parameters::default().with("state", "leaving").link("/bindings");
    html! {
        (table("Evictions under way, oldest first", &columns, &rows))
        @if all.len() > rows.len() { p { (all.len() - rows.len()) " more: " a href=(more) { "bindings that leave a cluster" } } }
    }
}

fn others(waits: &[Waiting], now: Time) -> Markup {
    let others: Vec<_> = waits.iter().filter(|wait| wait.step != Step::Release).collect();
    waits::table_of("Decisions that wait, oldest first", &others, ROWS_MAX, now)
}

fn rates(limits: Option<&Limits>) -> Markup {
    let Some(limits) = limits else {
        return html! { p { "No eviction was decided yet." } };
    };
    let per_second =
        |rate: Option<f64>| rate.map_or_else(|| "no separate rate".to_owned(), |rate| format!("{rate} per second"));
    html! {
        dl class="facts" {
            dt { "All evictions" } dd { (per_second(Some(limits.per_second))) }
            dt { "Group of the brake" } dd { (per_second(limits.group_per_second)) }
            dt { "Cluster" } dd { (per_second(limits.cluster_per_second)) }
            dt { "Brake" } dd { (limits.brake) }
        }
        p class="soft" { "As the last eviction recorded them." }
    }
}
