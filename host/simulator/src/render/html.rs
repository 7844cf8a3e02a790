//! Rendering of a report as one self-contained HTML page.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::page::{Page, details, heads, scroll, table, tiles};
use super::svg::{self, Lanes};
use super::text::{old_copies, sentence, why};
use super::{duration, hidden_interpreters};
use crate::report::{ClusterRow, PlacementRow, Report};

const SCRIPT: &str = include_str!("page.js");

/// Renders the page.
pub fn html(report: &Report) -> String {
    let mut page = Page::new(&report.scenario, &report.description);
    page.section("summary", "Summary", summary(report));
    if !report.violations.is_empty() {
        page.section("promises", "Broken promises", violations(report));
    }
    page.section("expectations", "Expectations", expectations(report));
    page.section("drawing", "Drawing", drawing(report));
    page.section("timeline", "Timeline", timeline(report));
    page.section("placements", "Final placement", placements(report));
    page.section("clusters", "Clusters", clusters(report));
    page.section("policies", "Policies", policies(report));
    let run = [
        ("seed", report.seed.to_string()),
        ("virtual time", duration(report.duration_ms)),
    ];
    page.origin(&report.origin, &run);
    page.render(SCRIPT)
}

fn summary(report: &Report) -> Markup {
    let failed = report.expectations.iter().filter(|row| !row.held).count();
    let (result, class) = match (report.expectations.len(), failed) {
        (0, _) => ("none".to_owned(), ""),
        (all, 0) => (format!("all {all} held"), "good"),
        (all, failed) => (format!("{failed} of {all} failed"), "bad"),
    };
    let evictions: usize = report
        .timeline
        .iter()
        .filter(|entry| entry.what.starts_with("evicted"))
        .map(|entry| entry.count)
        .sum();
    tiles(&[
        ("expectations", result, class),
        ("virtual time", duration(report.duration_ms), ""),
        ("clusters", report.clusters.len().to_string(), ""),
        ("decisions", report.totals.decisions.to_string(), ""),
        ("evictions", evictions.to_string(), ""),
        ("seed", report.seed.to_string(), ""),
    ])
}

fn violations(report: &Report) -> Markup {
    let row = |violation: &crate::report::Violation| {
        vec![
            violation.invariant.to_owned(),
            duration(violation.at_ms.max(0)),
            violation.seen.clone(),
        ]
    };
    let rows: Vec<_> = report.violations.iter().map(row).collect();
    table("Promises that did not hold", &["Promise", "Time", "Violation"], &rows)
}

fn drawing(report: &Report) -> Markup {
    let Lanes { shown, hidden } = svg::lanes(report);
    let has_no_lane = |name: &&str| !shown.iter().any(|cluster| cluster.name == **name);
    let concerned = report.timeline.iter().filter_map(|entry| entry.cluster.as_deref());
    let events = concerned.clone().filter(has_no_lane).count();
    let mut names: BTreeSet<_> = hidden.iter().map(|cluster| cluster.name.as_str()).collect();
    names.extend(concerned.filter(has_no_lane));
    let listed = names.iter().copied().collect::<Vec<_>>().join(", ");
    maud::html! {
        p { a class="skip" href="#events" { "Skip the drawing" } }
        (scroll("Drawing of the events", &svg::draw(report)))
        @if !names.is_empty() {
            p {
                (names.len()) " clusters have no lane: the drawing has at most " (svg::LANES_MAX)
                " lanes, of clusters that are members at the end. Clusters that were not ready come first, then "
                "clusters with events. The timeline below has the " (events) " events of clusters without a lane."
            }
            (details("Clusters without a lane", &maud::html! { p { (listed) } }))
        }
        (svg::legend())
        h3 { "Numbers of the drawing" }
        (details("Ready replicas of each cluster over time", &replicas(report)))
        (details("Periods in which a cluster was not ready", &not_ready(report)))
    }
}

fn replicas(report: &Report) -> Markup {
    let mut rows = Vec::new();
    for ClusterRow {
        name, ready_replicas, ..
    } in &report.clusters
    {
        let ends = ready_replicas
            .iter()
            .skip(1)
            .map(|(at, _)| *at)
            .chain([report.duration_ms]);
        for ((from, replicas), until) in ready_replicas.iter().zip(ends) {
            rows.push(vec![
                name.clone(),
                duration(*from),
                duration(until),
                replicas.to_string(),
            ]);
        }
    }
    table(
        "Ready replicas of all workloads",
        &["Cluster", "From", "Until", "Ready replicas"],
        &rows,
    )
}

fn not_ready(report: &Report) -> Markup {
    let periods = report
        .clusters
        .iter()
        .flat_map(|cluster| cluster.not_ready_ms.iter().map(move |p| (cluster, p)));
    let row = |(cluster, (from, until)): (&ClusterRow, &(i64, i64))| {
        vec![cluster.name.clone(), duration(*from), duration(*until)]
    };
    let rows: Vec<_> = periods.map(row).collect();
    table(
        "Periods in which a cluster was not ready",
        &["Cluster", "From", "Until"],
        &rows,
    )
}

fn timeline(report: &Report) -> Markup {
    let total = report.timeline.len();
    maud::html! {
        p {
            label {
                "Cluster "
                select id="cluster" aria-controls="events" {
                    option value="" { "all" }
                    @for cluster in &report.clusters { option { (cluster.name) } }
                }
            }
            " "
            label { "Text " input id="words" type="search" aria-controls="events"; }
        }
        p id="shown" role="status" { (total) " of " (total) " events are shown." }
        (scroll("Events in order of time", &events(report)))
    }
}

fn events(report: &Report) -> Markup {
    maud::html! {
        table id="events" tabindex="-1" {
            caption { "Events in order of time" }
            (heads(&["Time", "Cluster", "Sort", "Event", "Reason"]))
            tbody {
                @for (index, entry) in report.timeline.iter().enumerate() {
                    @let cluster = entry.cluster.as_deref().unwrap_or("");
                    tr id={ "e" (index) } tabindex="-1" data-cluster=(cluster) {
                        td class="time" { (duration(entry.at_ms)) }
                        td { (cluster) }
                        td { (svg::words(entry)) }
                        td class=(svg::tone_class(entry.tone)) { (sentence(entry)) }
                        td class="soft" { (why(entry)) }
                    }
                }
            }
        }
    }
}

fn placements(report: &Report) -> Markup {
    let placed = |row: &PlacementRow| {
        let clusters = row.clusters.iter().map(|(name, replicas)| {
            let health = row.health.get(name).map_or("health unknown", String::as_str);
            format!("{name} {replicas} ({health})")
        });
        clusters.collect::<Vec<_>>().join(", ")
    };
    let row = |row: &PlacementRow| {
        vec![
            row.binding.clone(),
            row.resource.clone(),
            row.replicas.to_string(),
            placed(row),
            old_copies(row),
        ]
    };
    let rows: Vec<_> = report.placements.iter().map(row).collect();
    let columns = ["Binding", "Resource", "Replicas", "Clusters", "Old copies"];
    table("Placement of each binding at the end", &columns, &rows)
}

fn clusters(report: &Report) -> Markup {
    let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    let row = |cluster: &ClusterRow| {
        let (mode, region) = (cluster.sync_mode.clone(), or_none(cluster.region.clone()));
        vec![
            cluster.name.clone(),
            mode,
            region,
            cluster.ready.clone(),
            or_none(cluster.taints.join(", ")),
        ]
    };
    let rows: Vec<_> = report.clusters.iter().map(row).collect();
    table(
        "State of each cluster at the end",
        &["Cluster", "Sync mode", "Region", "Ready", "Taints"],
        &rows,
    )
}

fn expectations(report: &Report) -> Markup {
    let row = |row: &crate::report::ExpectationRow| {
        let mark = if row.held { "✓ held" } else { "✗ failed" };
        vec![
            row.expected.clone(),
            row.when.clone(),
            mark.to_owned(),
            row.seen.clone(),
        ]
    };
    let rows: Vec<_> = report.expectations.iter().map(row).collect();
    table(
        "Expectations of the scenario",
        &["Expectation", "Time", "Result", "Seen"],
        &rows,
    )
}

fn policies(report: &Report) -> Markup {
    let row = |plugin: &crate::report::PluginRow| {
        let numbers = [plugin.calls.to_string(), plugin.faults.to_string()];
        let mut row = vec![plugin.name.clone(), plugin.engine.clone(), plugin.version.clone()];
        row.extend(numbers);
        row
    };
    let (hidden, shown): (Vec<_>, Vec<_>) = report.plugins.iter().partition(|plugin| plugin.is_unused_library());
    let rows: Vec<_> = shown.into_iter().map(row).collect();
    let columns = ["Name", "Engine", "Version", "Calls", "Faults"];
    let table = table("Policies in force at the end, in the order of calls", &columns, &rows);
    if hidden.is_empty() {
        return table;
    }
    html! {
        (table)
        p { (hidden_interpreters(hidden.len(), "the output of -o json has all")) }
    }
}

#[cfg(test)]
pub(super) mod tests;
