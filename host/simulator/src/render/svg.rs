//! Rendering of the timeline as SVG: one lane per cluster, and the legend.
//!
//! Each marker is a link with a label, so that a keyboard and a screen reader reach it. Shapes, glyphs and stripes
//! repeat the information of the colours.

use std::collections::BTreeSet;
use std::fmt::Write;

use maud::{Markup, html};

use super::duration;
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
        return Lanes {
            shown: report.clusters.iter().collect(),
            hidden: Vec::new(),
        };
    }
    let named: BTreeSet<_> = report
        .timeline
        .iter()
        .filter_map(|entry| entry.cluster.as_deref())
        .collect();
    let (mut shown, others): (Vec<_>, Vec<_>) = report
        .clusters
        .iter()
        .partition(|cluster| !cluster.not_ready_ms.is_empty());
    let (mut busy, mut hidden): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|cluster| named.contains(cluster.name.as_str()));
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
            _ => markers.push(Marker {
                x,
                events: vec![*event],
            }),
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
        self.events
            .iter()
            .map(|(_, entry)| entry.tone)
            .max()
            .unwrap_or(Tone::Neutral)
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
            lines.insert(
                0,
                format!(
                    "{} events from {} to {}",
                    self.events.len(),
                    duration(from),
                    duration(until)
                ),
            );
        }
        if self.events.len() > LISTED_MAX {
            lines.push(format!("and {} more", self.events.len() - LISTED_MAX));
        }
        lines.join("\n")
    }

    fn draw(&self, lane: usize) -> Markup {
        let (x, y) = (self.x, lane_top(lane) + LANE_HEIGHT / 2.0 - 4.0);
        let first = self.events.first().map_or(0, |(index, _)| *index);
        let (label, tone) = (self.label(), self.tone());
        html! {
            a href={ "#e" (first) } class={ "mark " (tone_class(tone)) } aria-label=(label) {
                title { (label) }
                @if let [(_, entry)] = self.events.as_slice() {
                    (shape(entry.source, x, y))
                } @else {
                    rect x=(px(x - 9.0)) y=(px(y - 8.0)) width="18" height="16" rx="8" {}
                    text class="count" x=(px(x)) y=(px(y + 4.0)) { (self.events.len()) }
                }
                text class="glyph" x=(px(x)) y=(px(y + 21.0)) { (glyph(tone)) }
            }
        }
    }
}

/// Formats a length or position.
pub(super) fn px(value: f64) -> String {
    format!("{value:.1}")
}

/// Draws the shape of one event around a point.
fn shape(source: EntrySource, x: f64, y: f64) -> Markup {
    html! {
        @match source {
            EntrySource::Injected => { path d={ "M" (px(x)) " " (px(y - 6.0)) " l6 10 h-12 z" } {} }
            EntrySource::Decided => { circle cx=(px(x)) cy=(px(y)) r="5" {} }
            EntrySource::Observed => { rect x=(px(x - 3.5)) y=(px(y - 3.5)) width="7" height="7" {} }
        }
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
pub(super) fn legend() -> Markup {
    let (x, y) = (8.0, 8.0);
    let count = html! {
        rect x="0" y="0" width="16" height="16" rx="8" {}
        text class="count" x="8" y="12" { "3" }
    };
    let tone = |tone: Tone| html! { text class="glyph" x="8" y="12" { (glyph(tone)) } };
    let area = |class: &str| html! { rect class=(class) x="0" y="2" width="16" height="12" {} };
    let entries = [
        (
            "mark",
            shape(EntrySource::Injected, x, y),
            "event that the scenario injects",
        ),
        ("mark", shape(EntrySource::Decided, x, y), "decision of a controller"),
        (
            "mark",
            shape(EntrySource::Observed, x, y),
            "observation in a member cluster",
        ),
        ("mark", count, "several events that nearly coincide, with their number"),
        ("mark bad", tone(Tone::Bad), "problem"),
        ("mark waiting", tone(Tone::Waiting), "waiting or held"),
        ("mark good", tone(Tone::Good), "improvement"),
        ("", area("down striped"), "cluster is not ready"),
        (
            "",
            area("replicas"),
            "ready replicas; the highest number is below the name of the cluster",
        ),
        (
            "",
            html! { line class="injected" x1="8" y1="0" x2="8" y2="16" {} },
            "time of an injected event, over all lanes",
        ),
    ];
    html! {
        h3 { "Legend" }
        ul class="legend" {
            @for (class, drawing, meaning) in &entries {
                li { svg viewBox="0 0 16 16" aria-hidden="true" { g class=(class) { (drawing) } } " " (meaning) }
            }
        }
    }
}

/// Returns the pattern of stripes for periods in which a cluster was not ready.
pub(super) fn stripes() -> Markup {
    html! {
        defs {
            pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                rect class="down" width="6" height="6" {}
                line class="stripe" x1="0" y1="0" x2="0" y2="6" {}
            }
        }
    }
}

/// Renders the drawing.
pub(super) fn draw(report: &Report) -> Markup {
    let clusters = lanes(report).shown;
    let height = AXIS_HEIGHT + LANE_HEIGHT * (clusters.len() + 1) as f64 + 8.0;
    let width = LABEL_WIDTH + DRAWING_WIDTH + 20.0;
    let mut events = vec![Vec::new(); clusters.len() + 1];
    for (index, entry) in report.timeline.iter().enumerate() {
        let lane = match &entry.cluster {
            None => Some(0),
            Some(name) => clusters
                .iter()
                .position(|cluster| cluster.name == *name)
                .map(|position| position + 1),
        };
        if let Some(events) = lane.and_then(|lane| events.get_mut(lane)) {
            events.push((index, entry));
        }
    }
    html! {
        svg viewBox={ "0 0 " (width) " " (height) } role="group" aria-labelledby="drawing-title" {
            title id="drawing-title" {
                "Events of " (clusters.len()) " clusters and the control plane over time"
            }
            (stripes())
            (axis(report, height))
            (lane_label(0, "control plane", ""))
            @for (index, cluster) in clusters.iter().enumerate() {
                @let most = most(cluster);
                @let scale = if most == 0 { "no ready replica".to_owned() } else { format!("{most} ready at most") };
                (lane_label(index + 1, &cluster.name, &scale))
                (lane(report, index + 1, cluster, most))
            }
            (injected(report, height))
            @for (lane, events) in events.iter().enumerate() {
                @for marker in markers(report, events) { (marker.draw(lane)) }
            }
        }
    }
}

/// Returns the highest number of ready replicas.
fn most(cluster: &ClusterRow) -> i64 {
    cluster
        .ready_replicas
        .iter()
        .map(|(_, replicas)| *replicas)
        .max()
        .unwrap_or(0)
}

fn x(report: &Report, at_ms: i64) -> f64 {
    LABEL_WIDTH + DRAWING_WIDTH * (at_ms as f64 / report.duration_ms.max(1) as f64)
}

fn lane_top(lane: usize) -> f64 {
    AXIS_HEIGHT + LANE_HEIGHT * lane as f64
}

fn axis(report: &Report, height: f64) -> Markup {
    const STEPS_MS: [i64; 8] = [1_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000];
    let step = STEPS_MS
        .into_iter()
        .find(|step| report.duration_ms / step <= 12)
        .unwrap_or(report.duration_ms / 10 + 1);
    let times = std::iter::successors(Some(0), |at| Some(at + step)).take_while(|at| *at <= report.duration_ms);
    html! {
        @for at in times {
            @let x = px(x(report, at));
            line class="grid" x1=(x) y1=(AXIS_HEIGHT) x2=(x) y2=(px(height)) {}
            text class="axis" x=(x) y="16" { (duration(at)) }
        }
    }
}

/// Draws the times of injected events as lines over all lanes.
fn injected(report: &Report, height: f64) -> Markup {
    html! {
        @for entry in report.timeline.iter().filter(|entry| entry.source == EntrySource::Injected) {
            @let x = px(x(report, entry.at_ms));
            line class="injected" x1=(x) y1=(AXIS_HEIGHT) x2=(x) y2=(px(height)) {}
        }
    }
}

fn lane_label(lane: usize, name: &str, scale: &str) -> Markup {
    let (top, middle) = (px(lane_top(lane)), lane_top(lane) + LANE_HEIGHT / 2.0);
    html! {
        line class="lane" x1="0" y1=(top) x2=(px(LABEL_WIDTH + DRAWING_WIDTH)) y2=(top) {}
        text class="label" x="4" y=(px(middle)) { (name) }
        text class="scale" x="4" y=(px(middle + 14.0)) { (scale) }
    }
}

/// Draws the periods in which the cluster was not ready with stripes, and its ready replicas as steps.
fn lane(report: &Report, lane: usize, cluster: &ClusterRow, most: i64) -> Markup {
    let (top, bottom) = (lane_top(lane) + 4.0, lane_top(lane) + LANE_HEIGHT - 3.0);
    html! {
        @for (from, to) in &cluster.not_ready_ms {
            @let (left, right) = (x(report, *from), x(report, *to));
            rect class="down striped" x=(px(left)) y=(px(top)) width=(px(right - left)) height=(px(bottom - top)) {
                title { "not ready from " (duration(*from)) " to " (duration(*to)) }
            }
        }
        @if most > 0 {
            path class="replicas" d=(steps(report, cluster, most, (top, bottom))) {
                title { "ready replicas, at most " (most) }
            }
        }
    }
}

/// Returns the path of a cluster's ready replicas over time, between the top and the bottom of its lane.
fn steps(report: &Report, cluster: &ClusterRow, most: i64, (top, bottom): (f64, f64)) -> String {
    let y = |replicas: i64| bottom - (bottom - top) * 0.8 * (replicas as f64 / most as f64);
    let mut path = format!("M{LABEL_WIDTH:.1} {bottom:.1}");
    for (at, replicas) in &cluster.ready_replicas {
        let _ = write!(path, " H{:.1} V{:.1}", x(report, *at), y(*replicas));
    }
    let _ = write!(path, " H{:.1} V{bottom:.1} Z", LABEL_WIDTH + DRAWING_WIDTH);
    path
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
