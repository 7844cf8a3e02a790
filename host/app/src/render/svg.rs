//! Rendering of the timeline as SVG: one lane per cluster, and the legend.
//!
//! Each marker is a link with a label, so that a keyboard and a screen reader reach it. Shapes, glyphs and stripes
//! repeat the information of the colours.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::duration;
use super::page::escape;
use super::text::{sentence, why};
use crate::report::{ClusterRow, EntrySource, Report, TimelineEntry, Tone};

const LABEL_WIDTH: f64 = 130.0;
const DRAWING_WIDTH: f64 = 960.0;
const LANE_HEIGHT: f64 = 46.0;
const AXIS_HEIGHT: f64 = 26.0;
/// Maximum number of lanes. With more clusters, only those with events get one.
pub(super) const LANES_MAX: usize = 16;
/// Events of a lane that are closer to each other share a marker.
const MARKER_WIDTH: f64 = 20.0;
/// Maximum number of events in the label of a marker.
const LISTED_MAX: usize = 12;

/// Clusters with and without a lane.
pub(super) struct Lanes<'a> {
    /// Clusters that are drawn, in order of their lanes.
    pub(super) shown: Vec<&'a ClusterRow>,
    /// Other clusters, in order of name.
    pub(super) hidden: Vec<&'a ClusterRow>,
}

/// Chooses the clusters with a lane: those that were not ready, then those with events.
pub(super) fn lanes(report: &Report) -> Lanes<'_> {
    if report.clusters.len() <= LANES_MAX {
        return Lanes { shown: report.clusters.iter().collect(), hidden: Vec::new() };
    }
    let named: BTreeSet<_> = report.timeline.iter().filter_map(|entry| entry.cluster.as_deref()).collect();
    let (mut shown, others): (Vec<_>, Vec<_>) =
        report.clusters.iter().partition(|cluster| !cluster.not_ready_ms.is_empty());
    let (mut busy, mut hidden): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|cluster| named.contains(cluster.name.as_str()));
    let room = LANES_MAX.saturating_sub(shown.len()).min(busy.len());
    hidden.extend(busy.split_off(room));
    hidden.sort_by_key(|cluster| cluster.name.clone());
    shown.extend(busy);
    Lanes { shown, hidden }
}

/// Events of a lane that nearly coincide.
struct Marker<'a> {
    x: f64,
    /// Events with their index in the timeline, in order of time.
    events: Vec<(usize, &'a TimelineEntry)>,
}

/// Groups the events of a lane by markers that do not overlap.
fn markers<'a>(report: &Report, events: &[(usize, &'a TimelineEntry)]) -> Vec<Marker<'a>> {
    let mut markers: Vec<Marker<'a>> = Vec::new();
    for event in events {
        let x = x(report, event.1.at_ms);
        match markers.last_mut() {
            Some(last) if x - last.x < MARKER_WIDTH => last.events.push(*event),
            _ => markers.push(Marker { x, events: vec![*event] }),
        }
    }
    markers
}

impl Marker<'_> {
    /// Returns the time of the first and of the last event, in milliseconds.
    fn span_ms(&self) -> (i64, i64) {
        let times = || self.events.iter().map(|(_, entry)| entry.at_ms);
        (times().min().unwrap_or(0), times().max().unwrap_or(0))
    }

    /// Returns the severest tone of the events.
    fn tone(&self) -> Tone {
        self.events.iter().map(|(_, entry)| entry.tone).max().unwrap_or(Tone::Neutral)
    }

    /// Describes the events in words.
    fn label(&self) -> String {
        let describe = |(_, entry): &(usize, &TimelineEntry)| {
            let (at, words) = (duration(entry.at_ms), words(entry));
            let why = why(entry);
            let why = if why.is_empty() { why } else { format!(": {why}") };
            format!("{at} {} ({words}){why}", sentence(entry))
        };
        let mut lines: Vec<_> = self.events.iter().take(LISTED_MAX).map(describe).collect();
        if self.events.len() > 1 {
            let (from, until) = self.span_ms();
            lines.insert(0, format!("{} events from {} to {}", self.events.len(), duration(from), duration(until)));
        }
        if self.events.len() > LISTED_MAX {
            lines.push(format!("and {} more", self.events.len() - LISTED_MAX));
        }
        lines.join("\n")
    }

    fn draw(&self, out: &mut String, lane: usize) {
        let (x, y) = (self.x, lane_top(lane) + LANE_HEIGHT / 2.0 - 4.0);
        let shape = match self.events.as_slice() {
            [(_, entry)] => shape(entry.source, x, y),
            events => format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"18\" height=\"16\" rx=\"8\"/>\
                 <text class=\"count\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                x - 9.0,
                y - 8.0,
                y + 4.0,
                events.len()
            ),
        };
        let first = self.events.first().map_or(0, |(index, _)| *index);
        let (label, tone) = (escape(&self.label()), self.tone());
        let _ = write!(
            out,
            "<a href=\"#e{first}\" class=\"mark {}\" aria-label=\"{label}\"><title>{label}</title>{shape}\
             <text class=\"glyph\" x=\"{x:.1}\" y=\"{:.1}\">{}</text></a>",
            tone_class(tone),
            y + 21.0,
            glyph(tone),
        );
    }
}

/// Draws the shape of one event around a point.
fn shape(source: EntrySource, x: f64, y: f64) -> String {
    match source {
        EntrySource::Injected => format!("<path d=\"M{x:.1} {:.1} l6 10 h-12 z\"/>", y - 6.0),
        EntrySource::Decided => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>"),
        EntrySource::Observed => format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"/>", x - 3.5, y - 3.5),
    }
}

/// Returns source and tone of an event in words.
pub(super) fn words(entry: &TimelineEntry) -> String {
    let source = match entry.source {
        EntrySource::Injected => "injected",
        EntrySource::Decided => "decided",
        EntrySource::Observed => "observed",
    };
    match entry.tone {
        Tone::Neutral => source.to_owned(),
        Tone::Good => format!("{source}, improvement"),
        Tone::Waiting => format!("{source}, waiting"),
        Tone::Bad => format!("{source}, problem"),
    }
}

fn glyph(tone: Tone) -> &'static str {
    match tone {
        Tone::Neutral => "",
        Tone::Good => "✓",
        Tone::Waiting => "…",
        Tone::Bad => "!",
    }
}

/// Returns the legend of the drawing.
pub(super) fn legend() -> String {
    let (x, y) = (8.0, 8.0);
    let count =
        "<rect x=\"0\" y=\"0\" width=\"16\" height=\"16\" rx=\"8\"/><text class=\"count\" x=\"8\" y=\"12\">3</text>";
    let tone = |tone: Tone| format!("<text class=\"glyph\" x=\"8\" y=\"12\">{}</text>", glyph(tone));
    let area = |class: &str| format!("<rect class=\"{class}\" x=\"0\" y=\"2\" width=\"16\" height=\"12\"/>");
    let line = "<line class=\"injected\" x1=\"8\" y1=\"0\" x2=\"8\" y2=\"16\"/>";
    let entries = [
        ("mark", shape(EntrySource::Injected, x, y), "event that the scenario injects"),
        ("mark", shape(EntrySource::Decided, x, y), "decision of a controller"),
        ("mark", shape(EntrySource::Observed, x, y), "observation in a member cluster"),
        ("mark", count.to_owned(), "several events that nearly coincide, with their number"),
        ("mark bad", tone(Tone::Bad), "problem"),
        ("mark waiting", tone(Tone::Waiting), "waiting or held"),
        ("mark good", tone(Tone::Good), "improvement"),
        ("", area("down striped"), "cluster is not ready"),
        ("", area("replicas"), "ready replicas; the highest number is below the name of the cluster"),
        ("", line.to_owned(), "time of an injected event, over all lanes"),
    ];
    let entry = |(class, drawing, meaning): &(&str, String, &str)| {
        format!(
            "<li><svg viewBox=\"0 0 16 16\" aria-hidden=\"true\"><g class=\"{class}\">{drawing}</g></svg> {meaning}</li>"
        )
    };
    let entries: Vec<_> = entries.iter().map(entry).collect();
    format!("<h3>Legend</h3><ul class=\"legend\">{}</ul>", entries.concat())
}

/// Renders the drawing.
pub(super) fn draw(report: &Report) -> String {
    let clusters = lanes(report).shown;
    let height = AXIS_HEIGHT + LANE_HEIGHT * (clusters.len() + 1) as f64 + 8.0;
    let width = LABEL_WIDTH + DRAWING_WIDTH + 20.0;
    let mut out = format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"group\" aria-labelledby=\"drawing-title\">\
         <title id=\"drawing-title\">Events of {} clusters and the control plane over time</title>\
         <defs><pattern id=\"stripes\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><rect class=\"down\" width=\"6\" height=\"6\"/>\
         <line class=\"stripe\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\"/></pattern></defs>",
        clusters.len()
    );
    axis(report, &mut out, height);
    lane_label(&mut out, 0, "control plane", "");
    for (index, cluster) in clusters.iter().enumerate() {
        let most = most(cluster);
        let scale = if most == 0 { "no ready replica".to_owned() } else { format!("{most} ready at most") };
        lane_label(&mut out, index + 1, &cluster.name, &scale);
        lane(report, &mut out, index + 1, cluster, most);
    }
    injected(report, &mut out, height);
    let mut events = vec![Vec::new(); clusters.len() + 1];
    for (index, entry) in report.timeline.iter().enumerate() {
        let lane = match &entry.cluster {
            None => Some(0),
            Some(name) => clusters.iter().position(|cluster| cluster.name == *name).map(|position| position + 1),
        };
        if let Some(events) = lane.and_then(|lane| events.get_mut(lane)) {
            events.push((index, entry));
        }
    }
    for (lane, events) in events.iter().enumerate() {
        for marker in markers(report, events) {
            marker.draw(&mut out, lane);
        }
    }
    out.push_str("</svg>");
    out
}

/// Returns the highest number of ready replicas.
fn most(cluster: &ClusterRow) -> i64 {
    cluster.ready_replicas.iter().map(|(_, replicas)| *replicas).max().unwrap_or(0)
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
}

/// Draws the times of injected events as lines over all lanes.
fn injected(report: &Report, out: &mut String, height: f64) {
    for entry in report.timeline.iter().filter(|entry| entry.source == EntrySource::Injected) {
        let x = x(report, entry.at_ms);
        let _ = write!(
            out,
            "<line class=\"injected\" x1=\"{x:.1}\" y1=\"{AXIS_HEIGHT}\" x2=\"{x:.1}\" y2=\"{height:.1}\"/>"
        );
    }
}

fn lane_label(out: &mut String, lane: usize, name: &str, scale: &str) {
    let (top, middle) = (lane_top(lane), lane_top(lane) + LANE_HEIGHT / 2.0);
    let right = LABEL_WIDTH + DRAWING_WIDTH;
    let _ = write!(out, "<line class=\"lane\" x1=\"0\" y1=\"{top:.1}\" x2=\"{right:.1}\" y2=\"{top:.1}\"/>");
    let _ = write!(out, "<text class=\"label\" x=\"4\" y=\"{middle:.1}\">{}</text>", escape(name));
    let _ = write!(out, "<text class=\"scale\" x=\"4\" y=\"{:.1}\">{scale}</text>", middle + 14.0);
}

/// Draws the periods in which the cluster was not ready with stripes, and its ready replicas as steps.
fn lane(report: &Report, out: &mut String, lane: usize, cluster: &ClusterRow, most: i64) {
    let (top, bottom) = (lane_top(lane) + 4.0, lane_top(lane) + LANE_HEIGHT - 3.0);
    for (from, to) in &cluster.not_ready_ms {
        let (left, width) = (x(report, *from), x(report, *to) - x(report, *from));
        let height = bottom - top;
        let _ = write!(
            out,
            "<rect class=\"down striped\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\">\
             <title>not ready from {} to {}</title></rect>",
            duration(*from),
            duration(*to)
        );
    }
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

/// Returns the CSS class of a tone.
pub(super) fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Neutral => "neutral",
        Tone::Good => "good",
        Tone::Waiting => "waiting",
        Tone::Bad => "bad",
    }
}
