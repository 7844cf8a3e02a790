use bulkhead_controllers::flags::Flags;

use super::*;
use crate::origin::{Input, Origin};
use crate::render::page::checks::{self, Element};
use crate::report::{EntrySource, ExpectationRow, PluginRow, TimelineEntry, Tone, Totals, Violation};

fn cluster(name: &str) -> ClusterRow {
    ClusterRow {
        name: name.to_owned(),
        sync_mode: "Push".to_owned(),
        region: String::new(),
        ready: "True".to_owned(),
        taints: Vec::new(),
        not_ready_ms: vec![(100, 200)],
        ready_replicas: vec![(0, 0), (50, 2)],
    }
}

fn event(at_ms: i64, cluster: &str, what: &str) -> TimelineEntry {
    TimelineEntry {
        at_ms,
        source: EntrySource::Decided,
        tone: Tone::Bad,
        cluster: Some(cluster.to_owned()),
        object: Some("ResourceBinding default/<script>alert(1)</script>".to_owned()),
        what: what.to_owned(),
        effect: String::new(),
        reason: "TaintUntolerated".to_owned(),
        why: String::new(),
        plugin: None,
        controller: None,
        count: 1,
    }
}

/// Returns a report with two clusters and one event.
pub(in crate::render) fn report() -> Report {
    let flags = Flags {
        resource_eviction_rate: 0.25,
        ..Flags::default()
    };
    Report {
        scenario: "a <b> & \"c\"".to_owned(),
        description: String::new(),
        origin: Origin::new(&flags, vec![Input::of("plugin freeze", std::iter::once(&b""[..]))]),
        seed: 7,
        duration_ms: 1_000,
        clusters: vec![cluster("member1"), cluster("member2")],
        timeline: vec![event(100, "member1", "evicted")],
        placements: Vec::new(),
        plugins: Vec::new(),
        expectations: Vec::new(),
        violations: Vec::new(),
        totals: Totals::default(),
        retries: Vec::new(),
        writes: Vec::new(),
    }
}

fn marks(elements: &[Element]) -> Vec<&Element> {
    let is_mark = |element: &&Element| element.name == "a" && element.get("class").is_some_and(|c| c.contains("mark"));
    elements.iter().filter(is_mark).collect()
}

#[test]
fn foreign_text_is_escaped() {
    let page = html(&report());
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("a &lt;b&gt; &amp; &quot;c&quot;"));
}

#[test]
fn interpreters_without_calls_are_counted() {
    let plugin = |name: &str, calls| PluginRow {
        name: name.to_owned(),
        version: "0.1.0".to_owned(),
        engine: "lua".to_owned(),
        library: true,
        calls,
        faults: 0,
    };
    let mut report = report();
    report.plugins = vec![plugin("ray", 0), plugin("flux", 1), plugin("kyverno", 0)];
    let page = html(&report);
    checks::check(&page);
    assert!(
        page.contains("<p>2 interpreters without calls are not shown; the output of -o json has all</p>"),
        "{page}"
    );
    assert!(page.contains(">flux</th>") && !page.contains(">ray</th>"), "{page}");
}

#[test]
fn the_page_has_a_lane_for_each_cluster_and_needs_no_network() {
    let page = html(&report());
    for lane in ["control plane", "member1", "member2"] {
        assert!(page.contains(&format!(">{lane}</text>")), "{lane}");
    }
    assert!(!page.contains("http"), "the page names an address");
}

#[test]
fn the_page_can_be_used_with_a_keyboard_and_a_screen_reader() {
    let mut report = report();
    report.expectations.push(ExpectationRow {
        line: 3,
        when: "at the end".to_owned(),
        expected: "it moved".to_owned(),
        held: false,
        seen: "it stayed".to_owned(),
    });
    report.violations.push(Violation {
        invariant: "S1",
        at_ms: 5,
        seen: "a copy too few".to_owned(),
    });
    let elements = checks::check(&html(&report));
    let headings: Vec<_> = elements
        .iter()
        .filter(|element| element.name == "h2")
        .map(|h| h.text.as_str())
        .collect();
    let expected = [
        "Summary",
        "Broken promises",
        "Expectations",
        "Drawing",
        "Timeline",
        "Final placement",
        "Clusters",
        "Policies",
        "Origin",
    ];
    assert_eq!(headings, expected);
    // Colours repeat words.
    let cells: Vec<_> = elements
        .iter()
        .filter(|element| element.name == "td")
        .map(|cell| cell.text.as_str())
        .collect();
    for word in ["✗ failed", "decided, problem", "a copy too few"] {
        assert!(cells.contains(&word), "{word}: {cells:?}");
    }
}

#[test]
fn the_origin_names_version_digests_seed_and_changed_settings() {
    let page = html(&report());
    let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    for (name, value) in [
        ("program", format!("bulkhead {}", env!("CARGO_PKG_VERSION"))),
        ("plugin freeze", empty.to_owned()),
        ("seed", "7".to_owned()),
        ("resource-eviction-rate", "0.25".to_owned()),
    ] {
        assert!(
            page.contains(&format!("<th scope=\"row\">{name}</th><td>{value}</td>")),
            "{name}: {value}"
        );
    }
}

#[test]
fn events_that_coincide_share_a_marker_that_lists_them() {
    let mut report = report();
    report.duration_ms = 960_000;
    report.timeline = vec![
        event(100_000, "member1", "evicted"),
        event(101_000, "member1", "held"),
        event(101_000, "member2", "held"),
        event(300_000, "member1", "released"),
    ];
    let elements = checks::check(&html(&report));
    let marks = marks(&elements);
    let links: Vec<_> = marks.iter().filter_map(|mark| mark.get("href")).collect();
    assert_eq!(links, ["#e0", "#e3", "#e2"], "one marker for both events, lane by lane");
    let label = marks[0].get("aria-label").unwrap();
    for part in [
        "2 events from 1m40s to 1m41s",
        " evicted (decided, problem)",
        " held (decided, problem)",
    ] {
        assert!(label.contains(part), "{part}: {label}");
    }
}

#[test]
fn a_marker_of_many_events_says_how_many_it_does_not_list() {
    let mut report = report();
    report.timeline = (0..20).map(|_| event(500, "member1", "evicted")).collect();
    let elements = checks::check(&html(&report));
    let label = marks(&elements)[0].get("aria-label").unwrap();
    assert!(
        label.starts_with("20 events") && label.ends_with("and 8 more"),
        "{label}"
    );
    let counts: Vec<_> = elements
        .iter()
        .filter(|element| element.get("class") == Some("count"))
        .collect();
    assert!(counts.iter().any(|count| count.text == "20"), "the number is not drawn");
}

#[test]
fn clusters_without_a_lane_are_named_and_counted() {
    let mut report = report();
    report.clusters = (10..40).map(|number| cluster(&format!("member{number}"))).collect();
    for cluster in &mut report.clusters {
        cluster.not_ready_ms.clear();
    }
    report.timeline = (10..30)
        .map(|number| event(100, &format!("member{number}"), "evicted"))
        .collect();
    let page = html(&report);
    checks::check(&page);
    assert!(page.contains("14 clusters have no lane") && page.contains("the 4 events of clusters without a lane"));
    let hidden: Vec<_> = (26..40).map(|number| format!("member{number}")).collect();
    assert!(page.contains(&hidden.join(", ")), "the names are not listed");
    for name in hidden {
        assert!(
            page.contains(&format!("<th scope=\"row\">{name}</th><td>Push</td>")),
            "{name}"
        );
    }
}

#[test]
fn events_of_a_cluster_that_left_are_counted() {
    let mut report = report();
    report.timeline = vec![event(100, "member9", "evicted"), event(200, "member1", "evicted")];
    let page = html(&report);
    assert_eq!(marks(&checks::check(&page)).len(), 1);
    assert!(page.contains("1 clusters have no lane") && page.contains("the 1 events of clusters without a lane"));
    assert!(page.contains("<p>member9</p>"), "the cluster is not named");
}

#[test]
fn the_numbers_of_the_drawing_are_a_table() {
    let page = html(&report());
    let row = |cells: [&str; 3]| {
        let cells = cells.map(|cell| format!("<td>{cell}</td>")).concat();
        format!("<tr><th scope=\"row\">member1</th>{cells}</tr>")
    };
    for cells in [["0s", "0s", "0"], ["0s", "1s", "2"]] {
        assert!(page.contains(&row(cells)), "{cells:?}");
    }
    assert!(page.contains("<tr><th scope=\"row\">member1</th><td>0.1s</td><td>0.2s</td></tr>"));
}

#[test]
fn the_line_of_an_injected_event_is_above_the_areas_of_all_lanes() {
    let mut report = report();
    report.timeline = vec![TimelineEntry {
        source: EntrySource::Injected,
        ..event(100, "member1", "fails")
    }];
    let page = html(&report);
    let line = page.find("<line class=\"injected\"").unwrap();
    let area = page.rfind("<path class=\"replicas\"").unwrap();
    assert!(area < line && line < page.find("<a href=\"#e0\"").unwrap(), "{page}");
}

#[test]
fn the_drawing_scrolls_on_a_narrow_screen() {
    let elements = checks::check(&html(&report()));
    let drawing = elements.iter().position(|element| element.name == "svg").unwrap();
    assert_eq!(elements[drawing - 1].get("class"), Some("scroll"));
}
