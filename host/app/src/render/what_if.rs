//! Rendering of a `bulkhead what-if` answer as one self-contained HTML page.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::duration;
use super::html::escape;
use crate::what_if::{Answer, Load};

const CSS: &str = include_str!("page.css");
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 110.0;
const LEFT: f64 = 44.0;
/// Maximum number of rows of a table; the number of further rows is printed below it.
const ROWS_MAX: usize = 2_000;

/// Renders the page.
pub fn what_if(answer: &Answer) -> String {
    let lost: Vec<_> = answer.load.iter().filter(|load| load.down).map(|load| load.cluster.as_str()).collect();
    let title = escape(&format!("What if {} were lost?", lost.join(", ")));
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{CSS} \
         .charts {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(330px, 1fr)); gap: 1rem; }} \
         .charts figure {{ margin: 0; }} .bar {{ fill: var(--fill); }} .bar.lost {{ fill: var(--down); }}</style></head>\
         <body><h1>{title}</h1>"
    );
    if answer.no_cluster_left {
        out.push_str("<p class=\"bad\">Every cluster is lost or not ready: no workload can move.</p>");
    }
    tiles(answer, &mut out);
    charts(answer, &mut out);
    taints(answer, &mut out);
    moves(answer, &mut out);
    let stays: Vec<_> = answer
        .stays
        .iter()
        .map(|stay| [stay.binding.clone(), stay.cluster.clone(), stay.gate.clone(), stay.why.clone()])
        .collect();
    table("Stays", ["Binding", "Cluster", "Gate", "Why"], &stays, &mut out);
    let nowhere: Vec<_> = answer.nowhere.iter().map(|left| [left.binding.clone(), left.why.clone()]).collect();
    table("Nowhere to go", ["Binding", "Why"], &nowhere, &mut out);
    out.push_str("</body></html>\n");
    out
}

fn milliseconds(ms: u64) -> String {
    duration(i64::try_from(ms).unwrap_or(i64::MAX))
}

fn tiles(answer: &Answer, out: &mut String) {
    let bad = |count: usize| if count > 0 { "bad" } else { "good" };
    let last = answer.last_move_ms.map_or_else(|| "none".to_owned(), milliseconds);
    let tiles = [
        ("moves", answer.moves.len().to_string(), ""),
        ("last move after", last, ""),
        ("stay", answer.stays.len().to_string(), if answer.stays.is_empty() { "good" } else { "waiting" }),
        ("nowhere to go", answer.nowhere.len().to_string(), bad(answer.nowhere.len())),
        ("still waiting at the end", answer.waiting.to_string(), bad(answer.waiting)),
    ];
    out.push_str("<div class=\"tiles\">");
    for (name, value, class) in tiles {
        let _ = write!(out, "<div class=\"tile {class}\"><span class=\"soft\">{name}</span><b>{value}</b></div>");
    }
    out.push_str("</div>");
}

/// Returns the replicas of each cluster over time, as steps of (milliseconds, replicas).
fn series(answer: &Answer) -> BTreeMap<&str, Vec<(u64, i64)>> {
    let start = |load: &Load| vec![(0, load.before)];
    let mut series: BTreeMap<_, _> = answer.load.iter().map(|load| (load.cluster.as_str(), start(load))).collect();
    for moved in &answer.moves {
        let lost = (moved.from.as_str(), -i64::from(moved.leaving));
        let gained = moved.to.iter().map(|(cluster, replicas)| (cluster.as_str(), i64::from(*replicas)));
        for (cluster, change) in gained.chain([lost]) {
            if let Some(steps) = series.get_mut(cluster) {
                let now = steps.last().map_or(0, |(_, replicas)| *replicas) + change;
                steps.push((moved.at_ms, now));
            }
        }
    }
    series
}

/// Draws one chart for each cluster whose replicas change, lost clusters first.
fn charts(answer: &Answer, out: &mut String) {
    let (series, span_ms) = (series(answer), answer.last_move_ms.unwrap_or(0).max(1_000));
    let mut loads: Vec<_> = answer.load.iter().filter(|load| load.down || load.before != load.after).collect();
    loads.sort_by_key(|load| (!load.down, load.before - load.after, load.cluster.clone()));
    let quiet = answer.load.len() - loads.len();
    out.push_str("<h2>Replicas of each cluster</h2><div class=\"charts\">");
    for load in loads {
        let steps = series.get(load.cluster.as_str()).map_or(&[][..], Vec::as_slice);
        chart(load, steps, span_ms, out);
    }
    out.push_str("</div>");
    if quiet > 0 {
        let _ = write!(out, "<p class=\"soft\">{quiet} further clusters stay as they are.</p>");
    }
}

fn chart(load: &Load, steps: &[(u64, i64)], span_ms: u64, out: &mut String) {
    let most = steps.iter().map(|(_, replicas)| *replicas).max().unwrap_or(0).max(1);
    let x = |ms: u64| LEFT + (WIDTH - LEFT) * (ms as f64 / span_ms as f64).min(1.0);
    let y = |replicas: i64| HEIGHT - 18.0 - (HEIGHT - 30.0) * (replicas.max(0) as f64 / most as f64);
    let bottom = y(0);
    let mut path = format!("M{LEFT:.1} {bottom:.1}");
    for (at_ms, replicas) in steps {
        let _ = write!(path, " H{:.1} V{:.1}", x(*at_ms), y(*replicas));
    }
    let _ = write!(path, " H{WIDTH:.1} V{bottom:.1} Z");
    let name = escape(&load.cluster);
    let (change, lost) = (load.after - load.before, if load.down { " lost" } else { "" });
    let _ = write!(
        out,
        "<figure><figcaption><b>{name}</b>{} <span class=\"soft\">{} to {} ({change:+})</span></figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"replicas of {name}\">\
         <path class=\"bar{lost}\" d=\"{path}\"/><line class=\"lane\" x1=\"{LEFT}\" y1=\"{bottom:.1}\" x2=\"{WIDTH}\" y2=\"{bottom:.1}\"/>\
         <text class=\"axis\" x=\"22\" y=\"{:.1}\">{most}</text><text class=\"axis\" x=\"22\" y=\"{bottom:.1}\">0</text>\
         <text class=\"axis\" x=\"{:.1}\" y=\"{HEIGHT:.1}\">{}</text></svg></figure>",
        if load.down { " <span class=\"bad\">lost</span>" } else { "" },
        load.before,
        load.after,
        y(most) + 4.0,
        WIDTH - 30.0,
        milliseconds(span_ms),
    );
}

fn taints(answer: &Answer, out: &mut String) {
    let row =
        |taint: &crate::what_if::TaintChange| [milliseconds(taint.at_ms), taint.cluster.clone(), taint.change.clone()];
    let rows: Vec<_> = answer.taints.iter().map(row).collect();
    table("Taints", ["When", "Cluster", "Change"], &rows, out);
}

fn moves(answer: &Answer, out: &mut String) {
    let row = |moved: &crate::what_if::Move| {
        let to: Vec<_> = moved.to.iter().map(|(cluster, replicas)| format!("{cluster} +{replicas}")).collect();
        let to = if to.is_empty() { "nowhere".to_owned() } else { to.join(", ") };
        let from = format!("{} −{}", moved.from, moved.leaving);
        [milliseconds(moved.at_ms), moved.binding.clone(), from, to, moved.reason.clone()]
    };
    let rows: Vec<_> = answer.moves.iter().map(row).collect();
    table("Moves", ["When", "Binding", "From", "To", "Why"], &rows, out);
}

fn table<const N: usize>(title: &str, columns: [&str; N], rows: &[[String; N]], out: &mut String) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(out, "<h2>{title}</h2><table><thead><tr>");
    for column in columns {
        let _ = write!(out, "<th>{column}</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows.iter().take(ROWS_MAX) {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}</td>", escape(cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table>");
    if rows.len() > ROWS_MAX {
        let _ = write!(out, "<p class=\"soft\">and {} more; -o json has all of them.</p>", rows.len() - ROWS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::what_if::Move;

    #[test]
    fn a_cluster_that_changes_has_a_chart_and_foreign_text_is_escaped() {
        let load = |cluster: &str, down, before, after| Load { cluster: cluster.to_owned(), down, before, after };
        let moved = Move {
            at_ms: 90_000,
            binding: "default/<b>app</b>".to_owned(),
            from: "member1".to_owned(),
            leaving: 3,
            to: BTreeMap::from([("member2".to_owned(), 3)]),
            reason: "TaintUntolerated".to_owned(),
        };
        let answer = Answer {
            moves: vec![moved],
            load: vec![load("member1", true, 3, 0), load("member2", false, 1, 4), load("member3", false, 7, 7)],
            last_move_ms: Some(90_000),
            ..Answer::default()
        };
        let page = what_if(&answer);
        assert!(
            page.contains("aria-label=\"replicas of member1\"") && page.contains("aria-label=\"replicas of member2\"")
        );
        assert!(!page.contains("replicas of member3") && page.contains("1 further clusters stay as they are"));
        assert!(page.contains("default/&lt;b&gt;app&lt;/b&gt;") && !page.contains("<b>app"));
        assert!(!page.contains("http"), "the page names an address");
        assert_eq!(series(&answer)["member2"], [(0, 1), (90_000, 4)]);
    }
}
