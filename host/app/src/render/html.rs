//! Rendering of a report as one self-contained HTML page.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::duration;
use super::page::{Page, details, escape, heads, scroll, table, tiles};
use super::svg::{self, Lanes};
use super::text::{old_copies, sentence, why};
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
    let run = [("seed", report.seed.to_string()), ("virtual time", duration(report.duration_ms))];
    page.origin(&report.origin, &run);
    page.render(SCRIPT)
}

fn summary(report: &Report) -> String {
    let failed = report.expectations.iter().filter(|row| !row.held).count();
    let (result, class) = match (report.expectations.len(), failed) {
        (0, _) => ("none".to_owned(), ""),
        (all, 0) => (format!("all {all} held"), "good"),
        (all, failed) => (format!("{failed} of {all} failed"), "bad"),
    };
    let evictions: usize =
        report.timeline.iter().filter(|entry| entry.what.starts_with("evicted")).map(|entry| entry.count).sum();
    tiles(&[
        ("expectations", result, class),
        ("virtual time", duration(report.duration_ms), ""),
        ("clusters", report.clusters.len().to_string(), ""),
        ("decisions", report.totals.decisions.to_string(), ""),
        ("evictions", evictions.to_string(), ""),
        ("seed", report.seed.to_string(), ""),
    ])
}

fn violations(report: &Report) -> String {
    let row = |violation: &crate::report::Violation| {
        vec![violation.invariant.to_owned(), duration(violation.at_ms.max(0)), violation.seen.clone()]
    };
    let rows: Vec<_> = report.violations.iter().map(row).collect();
    table("Promises that did not hold", &["Promise", "Time", "Violation"], &rows)
}

fn drawing(report: &Report) -> String {
    let mut out = String::from("<p><a class=\"skip\" href=\"#events\">Skip the drawing</a></p>");
    out.push_str(&scroll("Drawing of the events", &svg::draw(report)));
    let Lanes { shown, hidden } = svg::lanes(report);
    let has_no_lane = |name: &&str| !shown.iter().any(|cluster| cluster.name == **name);
    let concerned = report.timeline.iter().filter_map(|entry| entry.cluster.as_deref());
    let events = concerned.clone().filter(has_no_lane).count();
    let mut names: BTreeSet<_> = hidden.iter().map(|cluster| cluster.name.as_str()).collect();
    names.extend(concerned.filter(has_no_lane));
    if !names.is_empty() {
        let _ = write!(
            out,
            "<p>{} clusters have no lane: the drawing has at most {} lanes, of clusters that are members at the end. \
             Clusters that were not ready come first, then clusters with events. The timeline below has the {events} \
             events of clusters without a lane.</p>",
            names.len(),
            svg::LANES_MAX,
        );
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        out.push_str(&details("Clusters without a lane", &format!("<p>{}</p>", escape(&names))));
    }
    out.push_str(&svg::legend());
    out.push_str("<h3>Numbers of the drawing</h3>");
    out.push_str(&details("Ready replicas of each cluster over time", &replicas(report)));
    out.push_str(&details("Periods in which a cluster was not ready", &not_ready(report)));
    out
}

fn replicas(report: &Report) -> String {
    let mut rows = Vec::new();
    for ClusterRow { name, ready_replicas, .. } in &report.clusters {
        let ends = ready_replicas.iter().skip(1).map(|(at, _)| *at).chain([report.duration_ms]);
        for ((from, replicas), until) in ready_replicas.iter().zip(ends) {
            rows.push(vec![name.clone(), duration(*from), duration(until), replicas.to_string()]);
        }
    }
    table("Ready replicas of all workloads", &["Cluster", "From", "Until", "Ready replicas"], &rows)
}

fn not_ready(report: &Report) -> String {
    let periods = report.clusters.iter().flat_map(|cluster| cluster.not_ready_ms.iter().map(move |p| (cluster, p)));
    let row = |(cluster, (from, until)): (&ClusterRow, &(i64, i64))| {
        vec![cluster.name.clone(), duration(*from), duration(*until)]
    };
    let rows: Vec<_> = periods.map(row).collect();
    table("Periods in which a cluster was not ready", &["Cluster", "From", "Until"], &rows)
}

fn timeline(report: &Report) -> String {
    let mut out = String::from(
        "<p><label>Cluster <select id=\"cluster\" aria-controls=\"events\"><option value=\"\">all</option>",
    );
    for cluster in &report.clusters {
        let _ = write!(out, "<option>{}</option>", escape(&cluster.name));
    }
    let _ = write!(
        out,
        "</select></label> <label>Text <input id=\"words\" type=\"search\" aria-controls=\"events\"></label></p>\
         <p id=\"shown\" role=\"status\">{} of {0} events are shown.</p>",
        report.timeline.len(),
    );
    out.push_str(&scroll("Events in order of time", &events(report)));
    out
}

fn events(report: &Report) -> String {
    let mut out = format!(
        "<table id=\"events\" tabindex=\"-1\"><caption>Events in order of time</caption>{}<tbody>",
        heads(&["Time", "Cluster", "Sort", "Event", "Reason"]),
    );
    for (index, entry) in report.timeline.iter().enumerate() {
        let cluster = escape(entry.cluster.as_deref().unwrap_or(""));
        let _ = write!(
            out,
            "<tr id=\"e{index}\" tabindex=\"-1\" data-cluster=\"{cluster}\"><td class=\"time\">{}</td><td>{cluster}</td>\
             <td>{}</td><td class=\"{}\">{}</td><td class=\"soft\">{}</td></tr>",
            duration(entry.at_ms),
            svg::words(entry),
            svg::tone_class(entry.tone),
            escape(&sentence(entry)),
            escape(&why(entry)),
        );
    }
    out.push_str("</tbody></table>");
    out
}

fn placements(report: &Report) -> String {
    let placed = |row: &PlacementRow| {
        let clusters = row.clusters.iter().map(|(name, replicas)| {
            let health = row.health.get(name).map_or("health unknown", String::as_str);
            format!("{name} {replicas} ({health})")
        });
        clusters.collect::<Vec<_>>().join(", ")
    };
    let row = |row: &PlacementRow| {
        vec![row.binding.clone(), row.resource.clone(), row.replicas.to_string(), placed(row), old_copies(row)]
    };
    let rows: Vec<_> = report.placements.iter().map(row).collect();
    let columns = ["Binding", "Resource", "Replicas", "Clusters", "Old copies"];
    table("Placement of each binding at the end", &columns, &rows)
}

fn clusters(report: &Report) -> String {
    let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    let row = |cluster: &ClusterRow| {
        let (mode, region) = (cluster.sync_mode.clone(), or_none(cluster.region.clone()));
        vec![cluster.name.clone(), mode, region, cluster.ready.clone(), or_none(cluster.taints.join(", "))]
    };
    let rows: Vec<_> = report.clusters.iter().map(row).collect();
    table("State of each cluster at the end", &["Cluster", "Sync mode", "Region", "Ready", "Taints"], &rows)
}

fn expectations(report: &Report) -> String {
    let row = |row: &crate::report::ExpectationRow| {
        let mark = if row.held { "✓ held" } else { "✗ failed" };
        vec![row.expected.clone(), row.when.clone(), mark.to_owned(), row.seen.clone()]
    };
    let rows: Vec<_> = report.expectations.iter().map(row).collect();
    table("Expectations of the scenario", &["Expectation", "Time", "Result", "Seen"], &rows)
}

fn policies(report: &Report) -> String {
    let row = |plugin: &crate::report::PluginRow| {
        let numbers = [plugin.calls.to_string(), plugin.faults.to_string()];
        let mut row = vec![plugin.name.clone(), plugin.engine.clone(), plugin.version.clone()];
        row.extend(numbers);
        row
    };
    let rows: Vec<_> = report.plugins.iter().map(row).collect();
    let columns = ["Name", "Engine", "Version", "Calls", "Faults"];
    table("Policies in force at the end, in the order of calls", &columns, &rows)
}

#[cfg(test)]
mod tests;
