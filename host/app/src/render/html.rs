//! Rendering of a report as one self-contained HTML page: no network, no fonts, no other files.

use std::fmt::Write;

use super::text::{cell, old_copies, sentence, why};
use super::{duration, svg};
use crate::report::Report;

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Escapes a text for use between tags and in attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Renders the page.
pub fn html(report: &Report) -> String {
    let title = escape(&report.scenario);
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{CSS}</style></head><body><h1>{title}</h1>"
    );
    let _ = write!(out, "<p>{}</p>", escape(&report.description));
    tiles(report, &mut out);
    out.push_str("<h2>Timeline</h2>");
    out.push_str(&svg::draw(report));
    let (_, hidden) = svg::lanes(report);
    if hidden > 0 {
        let _ = write!(out, "<p class=\"soft\">{hidden} further clusters have no lane.</p>");
    }
    timeline(report, &mut out);
    placements(report, &mut out);
    expectations(report, &mut out);
    plugins(report, &mut out);
    let _ = writeln!(out, "<script>{SCRIPT}</script></body></html>");
    out
}

fn tiles(report: &Report, out: &mut String) {
    let failed = report.expectations.iter().filter(|row| !row.held).count();
    let (result, class) = if failed == 0 { ("held".to_owned(), "good") } else { (format!("{failed} failed"), "bad") };
    let evictions: usize =
        report.timeline.iter().filter(|entry| entry.what.starts_with("evicted")).map(|entry| entry.count).sum();
    let tiles = [
        ("expectations", result, class),
        ("virtual time", duration(report.duration_ms), ""),
        ("clusters", report.clusters.len().to_string(), ""),
        ("decisions", report.totals.decisions.to_string(), ""),
        ("evictions", evictions.to_string(), ""),
        ("seed", report.seed.to_string(), ""),
    ];
    out.push_str("<div class=\"tiles\">");
    for (name, value, class) in tiles {
        let _ = write!(out, "<div class=\"tile {class}\"><span class=\"soft\">{name}</span><b>{value}</b></div>");
    }
    out.push_str("</div>");
}

fn timeline(report: &Report, out: &mut String) {
    out.push_str("<label>Cluster <select id=\"cluster\"><option value=\"\">all</option>");
    for cluster in &report.clusters {
        let _ = write!(out, "<option>{}</option>", escape(&cluster.name));
    }
    out.push_str("</select></label><label>Text <input id=\"words\" type=\"search\"></label>");
    out.push_str(
        "<table id=\"timeline\"><thead><tr><th>When</th><th>Cluster</th><th>What</th><th>Why</th></tr></thead><tbody>",
    );
    for (index, entry) in report.timeline.iter().enumerate() {
        let cluster = escape(entry.cluster.as_deref().unwrap_or(""));
        let _ = write!(
            out,
            "<tr id=\"e{index}\" data-cluster=\"{cluster}\"><td class=\"time\">{}</td><td>{cluster}</td>\
             <td class=\"{}\">{}</td><td class=\"soft\">{}</td></tr>",
            duration(entry.at_ms),
            svg::tone_class(entry.tone),
            escape(&sentence(entry)),
            escape(&why(entry)),
        );
    }
    out.push_str("</tbody></table>");
}

fn placements(report: &Report, out: &mut String) {
    out.push_str(
        "<h2>Final placement</h2><table><thead><tr><th>Binding</th><th>Resource</th><th>Replicas</th>\
         <th>Clusters</th><th>Old copies</th></tr></thead><tbody>",
    );
    for row in &report.placements {
        let clusters: Vec<_> = row.clusters.keys().map(|name| format!("{name} {}", cell(row, name))).collect();
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&row.binding),
            escape(&row.resource),
            row.replicas,
            escape(&clusters.join(", ")),
            escape(&old_copies(row)),
        );
    }
    out.push_str("</tbody></table>");
}

fn expectations(report: &Report, out: &mut String) {
    out.push_str(
        "<h2>Expectations</h2><table><thead><tr><th></th><th>When</th><th>What</th><th>Seen</th></tr></thead><tbody>",
    );
    for row in &report.expectations {
        let (mark, class) = if row.held { ("✓", "good") } else { ("✗", "bad") };
        let _ = write!(
            out,
            "<tr><td class=\"{class}\">{mark}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&row.when),
            escape(&row.expected),
            escape(&row.seen),
        );
    }
    out.push_str("</tbody></table>");
}

fn plugins(report: &Report, out: &mut String) {
    out.push_str(
        "<h2>Policies</h2><table><thead><tr><th>Name</th><th>Engine</th><th>Version</th><th>Calls</th>\
         <th>Faults</th></tr></thead><tbody>",
    );
    for plugin in &report.plugins {
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&plugin.name),
            escape(&plugin.engine),
            escape(&plugin.version),
            plugin.calls,
            plugin.faults
        );
    }
    out.push_str("</tbody></table>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ClusterRow, EntrySource, TimelineEntry, Tone, Totals};

    fn report() -> Report {
        let cluster = |name: &str| ClusterRow {
            name: name.to_owned(),
            sync_mode: "Push".to_owned(),
            region: String::new(),
            ready: "True".to_owned(),
            taints: Vec::new(),
            not_ready_ms: vec![(100, 200)],
            ready_replicas: vec![(0, 0), (50, 2)],
        };
        let entry = TimelineEntry {
            at_ms: 100,
            source: EntrySource::Decided,
            tone: Tone::Bad,
            cluster: Some("member1".to_owned()),
            object: Some("ResourceBinding default/<script>alert(1)</script>".to_owned()),
            what: "evicted".to_owned(),
            effect: String::new(),
            reason: "TaintUntolerated".to_owned(),
            why: String::new(),
            plugin: None,
            controller: None,
            count: 1,
        };
        Report {
            scenario: "a <b> & \"c\"".to_owned(),
            description: String::new(),
            seed: 7,
            duration_ms: 1_000,
            clusters: vec![cluster("member1"), cluster("member2")],
            timeline: vec![entry],
            placements: Vec::new(),
            plugins: Vec::new(),
            expectations: Vec::new(),
            violations: Vec::new(),
            totals: Totals::default(),
            retries: Vec::new(),
            writes: Vec::new(),
        }
    }

    #[test]
    fn foreign_text_is_escaped() {
        let page = html(&report());
        assert!(!page.contains("<script>alert"));
        assert!(page.contains("a &lt;b&gt; &amp; &quot;c&quot;"));
    }

    #[test]
    fn the_page_has_a_lane_for_each_cluster_and_needs_no_network() {
        let page = html(&report());
        for lane in ["control plane", "member1", "member2"] {
            assert!(page.contains(&format!(">{lane}</text>")), "{lane}");
        }
        assert!(!page.contains("http"), "the page names an address");
    }
}
