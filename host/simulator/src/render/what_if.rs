//! Rendering of a `bulkhead what-if` answer as one self-contained HTML page.

use std::collections::BTreeMap;
use std::fmt::Write;

use maud::{Markup, html};

use super::duration;
use super::page::{Page, details, table, tiles};
use super::svg::{px, stripes};
use crate::origin::Origin;
use crate::what_if::{Answer, Load, Question};

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 110.0;
const LEFT: f64 = 44.0;

/// Renders the page.
pub fn what_if(answer: &Answer, question: &Question, origin: &Origin) -> String {
    let title = format!("What if {} were lost?", question.down.join(", "));
    let description = if answer.no_cluster_left {
        "Every cluster is lost or not ready: no workload can move."
    } else {
        "Decisions of a failover on exported objects, in virtual time. Nothing was written."
    };
    let mut page = Page::new(&title, description);
    for (id, title, body) in what_if_sections(answer) {
        page.section(id, title, body);
    }
    let lasts = question
        .lasts
        .map_or_else(|| "permanent".to_owned(), |lasts| lasts.to_string());
    let facts = [
        ("lost clusters", question.down.join(", ")),
        ("duration of the loss", lasts),
        ("maximum virtual time", question.horizon.to_string()),
    ];
    page.origin(origin, &facts);
    page.render("")
}

/// Renders the sections of an answer: id, title and content of each. The ids are unique.
pub fn what_if_sections(answer: &Answer) -> Vec<(&'static str, &'static str, Markup)> {
    let stays = answer.stays.iter();
    let stays: Vec<_> = stays
        .map(|stay| {
            vec![
                stay.binding.clone(),
                stay.cluster.clone(),
                stay.gate.clone(),
                stay.why.clone(),
            ]
        })
        .collect();
    let columns = ["Binding", "Cluster", "Gate", "Reason"];
    let stays = table("Workloads that stay on a lost cluster", &columns, &stays);
    let nowhere: Vec<_> = answer
        .nowhere
        .iter()
        .map(|left| vec![left.binding.clone(), left.why.clone()])
        .collect();
    let nowhere = table("Workloads without another placement", &["Binding", "Reason"], &nowhere);
    vec![
        ("summary", "Summary", summary(answer)),
        ("replicas", "Replicas of each cluster", replicas(answer)),
        ("taints", "Taints", taints(answer)),
        ("moves", "Moves", moves(answer)),
        ("stays", "Stays", stays),
        ("nowhere", "Nowhere to go", nowhere),
    ]
}

fn milliseconds(ms: u64) -> String {
    duration(i64::try_from(ms).unwrap_or(i64::MAX))
}

fn summary(answer: &Answer) -> Markup {
    let bad = |count: usize| if count > 0 { "bad" } else { "good" };
    let last = answer.last_move_ms.map_or_else(|| "none".to_owned(), milliseconds);
    tiles(&[
        ("moves", answer.moves.len().to_string(), ""),
        ("last move after", last, ""),
        (
            "stay",
            answer.stays.len().to_string(),
            if answer.stays.is_empty() { "good" } else { "waiting" },
        ),
        (
            "nowhere to go",
            answer.nowhere.len().to_string(),
            bad(answer.nowhere.len()),
        ),
        (
            "still waiting at the end",
            answer.waiting.to_string(),
            bad(answer.waiting),
        ),
    ])
}

/// Returns the replicas of each cluster over time, as steps of (milliseconds, replicas).
fn series(answer: &Answer) -> BTreeMap<&str, Vec<(u64, i64)>> {
    let start = |load: &Load| vec![(0, load.before)];
    let mut series: BTreeMap<_, _> = answer
        .load
        .iter()
        .map(|load| (load.cluster.as_str(), start(load)))
        .collect();
    for moved in &answer.moves {
        let lost = (moved.from.as_str(), -i64::from(moved.leaving));
        let gained = moved
            .to
            .iter()
            .map(|(cluster, replicas)| (cluster.as_str(), i64::from(*replicas)));
        let shrunk = moved
            .shrunk
            .iter()
            .map(|(cluster, replicas)| (cluster.as_str(), -i64::from(*replicas)));
        for (cluster, change) in gained.chain(shrunk).chain([lost]) {
            if let Some(steps) = series.get_mut(cluster) {
                let now = steps.last().map_or(0, |(_, replicas)| *replicas) + change;
                steps.push((moved.at_ms, now));
            }
        }
    }
    series
}

/// Draws one chart for each cluster whose replicas change, lost clusters first, and tables with the numbers of all.
fn replicas(answer: &Answer) -> Markup {
    let (series, last_ms) = (series(answer), answer.last_move_ms.unwrap_or(0).max(1_000));
    let mut loads: Vec<_> = answer
        .load
        .iter()
        .filter(|load| load.down || load.before != load.after)
        .collect();
    loads.sort_by_key(|load| (!load.down, load.before - load.after, load.cluster.clone()));
    let quiet = answer.load.len() - loads.len();
    let row = |load: &Load| {
        let state = if load.down { "lost" } else { "remains" };
        let (before, after) = (load.before.to_string(), load.after.to_string());
        vec![
            load.cluster.clone(),
            state.to_owned(),
            before,
            after,
            format!("{:+}", load.after - load.before),
        ]
    };
    let rows: Vec<_> = answer.load.iter().map(row).collect();
    let totals = table(
        "Replicas before and after",
        &["Cluster", "State", "Before", "After", "Change"],
        &rows,
    );
    let changes = series
        .iter()
        .flat_map(|(cluster, steps)| steps.iter().map(move |step| (*cluster, step)));
    let row = |(cluster, (at_ms, replicas)): (&str, &(u64, i64))| {
        vec![cluster.to_owned(), milliseconds(*at_ms), replicas.to_string()]
    };
    let rows: Vec<_> = changes.map(row).collect();
    let numbers = table("Replicas after each change", &["Cluster", "Time", "Replicas"], &rows);
    html! {
        p {
            "Height: replicas; width: time after the loss. Stripes: a lost cluster; plain: a cluster that remains."
        }
        svg class="skip" aria-hidden="true" width="0" height="0" { (stripes()) }
        div class="charts" {
            @for load in loads {
                @let steps = series.get(load.cluster.as_str()).map_or(&[][..], Vec::as_slice);
                (chart(load, steps, last_ms))
            }
        }
        @if quiet > 0 {
            p { (quiet) " further clusters stay as they are and have no chart; the table below has all clusters." }
        }
        (totals)
        (details("Numbers of the charts", &numbers))
    }
}

/// Draws the steps of a cluster. The drawing goes on after the last move, so that its result can be seen.
fn chart(load: &Load, steps: &[(u64, i64)], last_ms: u64) -> Markup {
    let span_ms = last_ms + last_ms / 8;
    let most = steps.iter().map(|(_, replicas)| *replicas).max().unwrap_or(0).max(1);
    let x = |ms: u64| LEFT + (WIDTH - LEFT) * (ms as f64 / span_ms as f64).min(1.0);
    let y = |replicas: i64| HEIGHT - 18.0 - (HEIGHT - 30.0) * (replicas.max(0) as f64 / most as f64);
    let bottom = px(y(0));
    let mut path = format!("M{LEFT:.1} {bottom}");
    for (at_ms, replicas) in steps {
        let _ = write!(path, " H{:.1} V{:.1}", x(*at_ms), y(*replicas));
    }
    let _ = write!(path, " H{WIDTH:.1} V{bottom} Z");
    let Load {
        cluster: name,
        before,
        after,
        down,
    } = load;
    let (change, lost) = (format!("{:+}", after - before), if *down { " lost" } else { "" });
    let label = format!("replicas of {name}: {before} before, {after} after, {most} at most");
    html! {
        figure {
            figcaption {
                b { (name) } (lost) " " span class="soft" { (before) " to " (after) " (" (change) ")" }
            }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(label) {
                path class={ "bar" (lost) } d=(path) {}
                line class="lane" x1=(LEFT) y1=(bottom) x2=(WIDTH) y2=(bottom) {}
                text class="axis" x="22" y=(px(y(most) + 4.0)) { (most) }
                text class="axis" x="22" y=(bottom) { "0" }
                text class="axis" x=(px(x(last_ms))) y=(px(HEIGHT - 4.0)) { (milliseconds(last_ms)) }
            }
        }
    }
}

fn taints(answer: &Answer) -> Markup {
    let row = |taint: &crate::what_if::TaintChange| {
        vec![milliseconds(taint.at_ms), taint.cluster.clone(), taint.change.clone()]
    };
    let rows: Vec<_> = answer.taints.iter().map(row).collect();
    table(
        "Taints that are added (+) and removed (-)",
        &["Time", "Cluster", "Change"],
        &rows,
    )
}

fn moves(answer: &Answer) -> Markup {
    let row = |moved: &crate::what_if::Move| {
        let to: Vec<_> = moved
            .to
            .iter()
            .map(|(cluster, replicas)| format!("{cluster} +{replicas}"))
            .collect();
        let to = if to.is_empty() {
            "nowhere".to_owned()
        } else {
            to.join(", ")
        };
        let mut from = vec![format!("{} −{}", moved.from, moved.leaving)];
        from.extend(
            moved
                .shrunk
                .iter()
                .map(|(cluster, replicas)| format!("{cluster} −{replicas}")),
        );
        vec![
            milliseconds(moved.at_ms),
            moved.binding.clone(),
            from.join(", "),
            to,
            moved.reason.clone(),
        ]
    };
    let rows: Vec<_> = answer.moves.iter().map(row).collect();
    table(
        "Evictions in order of time",
        &["Time", "Binding", "From", "To", "Reason"],
        &rows,
    )
}

#[cfg(test)]
mod tests {
    use bulkhead_controllers::flags::{Flags, GoDuration};

    use super::*;
    use crate::origin::Input;
    use crate::render::page::checks;
    use crate::what_if::Move;

    fn answer() -> Answer {
        let load = |cluster: &str, down, before, after| Load {
            cluster: cluster.to_owned(),
            down,
            before,
            after,
        };
        let moved = Move {
            at_ms: 90_000,
            binding: "default/<b>app</b>".to_owned(),
            from: "member1".to_owned(),
            leaving: 3,
            to: BTreeMap::from([("member2".to_owned(), 5)]),
            shrunk: BTreeMap::from([("member3".to_owned(), 2)]),
            reason: "TaintUntolerated".to_owned(),
        };
        Answer {
            moves: vec![moved],
            load: vec![
                load("member1", true, 3, 0),
                load("member2", false, 1, 6),
                load("member3", false, 7, 5),
                load("member4", false, 2, 2),
            ],
            last_move_ms: Some(90_000),
            ..Answer::default()
        }
    }

    fn page() -> String {
        let question = Question {
            down: vec!["member1".to_owned()],
            lasts: None,
            horizon: GoDuration::from_secs(3600),
            flags: Flags {
                resource_eviction_rate: 0.25,
                ..Flags::default()
            },
        };
        let origin = Origin::new(&question.flags, vec![Input::of("export", std::iter::once(&b""[..]))]);
        what_if(&answer(), &question, &origin)
    }

    #[test]
    fn a_cluster_that_changes_has_a_chart_and_foreign_text_is_escaped() {
        let page = page();
        for chart in [
            "replicas of member1: 3 before, 0 after",
            "replicas of member2: 1 before, 6 after",
        ] {
            assert!(page.contains(chart), "{chart}");
        }
        assert!(!page.contains("replicas of member4") && page.contains("1 further clusters stay as they are"));
        assert!(page.contains("default/&lt;b&gt;app&lt;/b&gt;") && !page.contains("<b>app"));
        assert!(!page.contains("http"), "the page names an address");
    }

    #[test]
    fn the_steps_of_each_cluster_lead_to_its_replicas_at_the_end() {
        let answer = answer();
        let series = series(&answer);
        assert_eq!(series["member3"], [(0, 7), (90_000, 5)], "it loses replicas to member2");
        for load in &answer.load {
            assert_eq!(
                series[load.cluster.as_str()].last().unwrap().1,
                load.after,
                "{}",
                load.cluster
            );
        }
    }

    #[test]
    fn the_page_can_be_used_with_a_keyboard_and_a_screen_reader() {
        let elements = checks::check(&page());
        let charts = elements.iter().filter(|element| element.get("role") == Some("img"));
        assert_eq!(charts.count(), 3);
    }

    #[test]
    fn the_numbers_of_all_clusters_and_the_origin_are_tables() {
        let page = page();
        for row in [
            "<tr><th scope=\"row\">member1</th><td>lost</td><td>3</td><td>0</td><td>-3</td></tr>",
            "<tr><th scope=\"row\">member3</th><td>remains</td><td>7</td><td>5</td><td>-2</td></tr>",
            "<tr><th scope=\"row\">member1</th><td>1m30s</td><td>0</td></tr>",
            "<td>member1 −3, member3 −2</td><td>member2 +5</td>",
            "<tr><th scope=\"row\">resource-eviction-rate</th><td>0.25</td></tr>",
            "<tr><th scope=\"row\">lost clusters</th><td>member1</td></tr>",
        ] {
            assert!(page.contains(row), "{row}");
        }
        assert!(page.contains("<p>Taints that are added (+) and removed (-): none.</p>"));
    }
}
