//! Rendering of the timeline as SVG: one lane per cluster.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::duration;
use super::html::escape;
use super::text::{sentence, why};
use crate::report::{ClusterRow, EntrySource, Report, TimelineEntry, Tone};

const LABEL_WIDTH: f64 = 130.0;
const DRAWING_WIDTH: f64 = 960.0;
const LANE_HEIGHT: f64 = 46.0;
const AXIS_HEIGHT: f64 = 26.0;
/// Maximum number of lanes. With more clusters, only those with events get one.
const LANES_MAX: usize = 16;

/// Returns the clusters that get a lane, and the number of the others.
pub(super) fn lanes(report: &Report) -> (Vec<&ClusterRow>, usize) {
    let busy: BTreeSet<_> = report.timeline.iter().filter_map(|entry| entry.cluster.as_deref()).collect();
    let eventful = |cluster: &&ClusterRow| busy.contains(cluster.name.as_str()) || !cluster.not_ready_ms.is_empty();
    if report.clusters.len() <= LANES_MAX {
        return (report.clusters.iter().collect(), 0);
    }
    let troubled = |cluster: &&ClusterRow| !cluster.not_ready_ms.is_empty();
    let mut shown: Vec<_> = report.clusters.iter().filter(troubled).collect();
    let quiet = report.clusters.iter().filter(|cluster| !troubled(cluster)).filter(eventful);
    shown.extend(quiet.take(LANES_MAX.saturating_sub(shown.len())));
    let hidden = report.clusters.len() - shown.len();
    (shown, hidden)
}

/// Renders the drawing.
pub(super) fn draw(report: &Report) -> String {
    let (clusters, _) = lanes(report);
    let height = AXIS_HEIGHT + LANE_HEIGHT * (clusters.len() + 1) as f64 + 8.0;
    let width = LABEL_WIDTH + DRAWING_WIDTH + 20.0;
    let mut out = format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"timeline\">");
    axis(report, &mut out, height);
    lane_label(&mut out, 0, "control plane");
    for (index, cluster) in clusters.iter().enumerate() {
        lane_label(&mut out, index + 1, &cluster.name);
        lane(report, &mut out, index + 1, cluster);
    }
    for (index, entry) in report.timeline.iter().enumerate() {
        let lane = match &entry.cluster {
            None => Some(0),
            Some(name) => clusters.iter().position(|cluster| cluster.name == *name).map(|position| position + 1),
        };
        if let Some(lane) = lane {
            marker(report, &mut out, lane, index, entry);
        }
    }
    out.push_str("</svg>");
    out
}

fn x(report: &Report, at_ms: i64) -> f64 {
    LABEL_WIDTH + DRAWING_WIDTH * (at_ms as f64 / report.duration_ms.max(1) as f64)
}

fn lane_top(lane: usize) -> f64 {
    AXIS_HEIGHT + LANE_HEIGHT * lane as f64
}

fn axis(report: &Report, out: &mut String, height: f64) {
    const STEPS_MS: [i64; 8] = [1_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000];
    let step = STEPS_MS.into_iter().find(|step| report.duration_ms / step <= 12).unwrap_or(report.duration_ms / 10 + 1);
    let mut at = 0;
    while at <= report.duration_ms {
        let x = x(report, at);
        let _ =
            write!(out, "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{AXIS_HEIGHT}\" x2=\"{x:.1}\" y2=\"{height:.1}\"/>");
        let _ = write!(out, "<text class=\"axis\" x=\"{x:.1}\" y=\"16\">{}</text>", duration(at));
        at += step;
    }
    for entry in report.timeline.iter().filter(|entry| entry.source == EntrySource::Injected) {
        let x = x(report, entry.at_ms);
        let _ = write!(
            out,
            "<line class=\"injected\" x1=\"{x:.1}\" y1=\"{AXIS_HEIGHT}\" x2=\"{x:.1}\" y2=\"{height:.1}\"/>"
        );
    }
}

fn lane_label(out: &mut String, lane: usize, name: &str) {
    let (top, middle) = (lane_top(lane), lane_top(lane) + LANE_HEIGHT / 2.0 + 4.0);
    let right = LABEL_WIDTH + DRAWING_WIDTH;
    let _ = write!(out, "<line class=\"lane\" x1=\"0\" y1=\"{top:.1}\" x2=\"{right:.1}\" y2=\"{top:.1}\"/>");
    let _ = write!(out, "<text class=\"label\" x=\"4\" y=\"{middle:.1}\">{}</text>", escape(name));
}

/// Draws the periods in which the cluster was not ready in red, and its ready replicas as steps.
fn lane(report: &Report, out: &mut String, lane: usize, cluster: &ClusterRow) {
    let (top, bottom) = (lane_top(lane) + 4.0, lane_top(lane) + LANE_HEIGHT - 3.0);
    for (from, to) in &cluster.not_ready_ms {
        let (left, width) = (x(report, *from), x(report, *to) - x(report, *from));
        let height = bottom - top;
        let _ = write!(
            out,
            "<rect class=\"down\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\">\
             <title>not ready from {} to {}</title></rect>",
            duration(*from),
            duration(*to)
        );
    }
    let most = cluster.ready_replicas.iter().map(|(_, replicas)| *replicas).max().unwrap_or(0);
    if most == 0 {
        return;
    }
    let y = |replicas: i64| bottom - (bottom - top) * 0.8 * (replicas as f64 / most as f64);
    let mut path = format!("M{LABEL_WIDTH:.1} {bottom:.1}");
    for (at, replicas) in &cluster.ready_replicas {
        let _ = write!(path, " H{:.1} V{:.1}", x(report, *at), y(*replicas));
    }
    let _ = write!(path, " H{:.1} V{bottom:.1} Z", LABEL_WIDTH + DRAWING_WIDTH);
    let _ = write!(out, "<path class=\"replicas\" d=\"{path}\"><title>ready replicas, at most {most}</title></path>");
}

fn marker(report: &Report, out: &mut String, lane: usize, index: usize, entry: &TimelineEntry) {
    let (x, y) = (x(report, entry.at_ms), lane_top(lane) + LANE_HEIGHT / 2.0);
    let tone = tone_class(entry.tone);
    let title = escape(&format!("{}  {}\n{}", duration(entry.at_ms), sentence(entry), why(entry)));
    let shape = match entry.source {
        EntrySource::Injected => format!("<path d=\"M{x:.1} {:.1} l6 10 h-12 z\"/>", y - 6.0),
        EntrySource::Decided => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>"),
        EntrySource::Observed => format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"/>", x - 3.5, y - 3.5),
    };
    let _ = write!(out, "<a href=\"#e{index}\" class=\"mark {tone}\">{shape}<title>{title}</title></a>");
}

/// Returns the CSS class of a tone.
pub(super) fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Neutral => "neutral",
        Tone::Good => "good",
        Tone::Waiting => "waiting",
        Tone::Bad => "bad",
    }
}
