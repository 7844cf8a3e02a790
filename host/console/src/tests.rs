use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use bulkhead_core::journal::{Decision, Subject};
use bulkhead_journal::Bounds;
use bulkhead_simulator::recorded::Recording;
use bulkhead_simulator::scenario;
use bulkhead_simulator::simulation::{self, Detail, RunOptions};
use http::Request;
use tempfile::TempDir;

use super::*;
use crate::frame::checks::{self, Element};
use crate::history::tests::{TestJournal, binding, cluster};
use crate::source::Journals;

mod process;

const HOSTILE: &str = "<script>alert(1)</script>";

/// Journal of an example: a cluster is lost, and its workload moves.
static EXAMPLE: LazyLock<TempDir> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scenario = scenario::load(&root.join("examples/nginx-duplicated/scenario.yaml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(folder.path()).unwrap();
    let options = RunOptions {
        seed: Some(7),
        engines: Vec::new(),
        detail: Detail::Highlights,
        explain: None,
        sink: Some(recording.sink()),
        progress: None,
        is_last: false,
    };
    simulation::run(&scenario, options).unwrap();
    recording.end().unwrap();
    folder
});

fn console(directory: PathBuf) -> Console {
    // The example begins at the start of 2026.
    Console::new(Journals::new(vec![directory]), || Time::from_millis(1_767_226_000_000))
}

fn example() -> Console {
    console(EXAMPLE.path().to_path_buf())
}

fn request(console: &Console, method: Method, address: &str) -> Response<Bytes> {
    let request = Request::builder().method(method).uri(address).body(()).unwrap();
    console.answer(&request.into_parts().0)
}

fn get(console: &Console, address: &str) -> (u16, String) {
    let response = request(console, Method::GET, address);
    let status = response.status().as_u16();
    (status, String::from_utf8(response.into_body().to_vec()).unwrap())
}

/// Returns a page, after a check of its structure.
#[track_caller]
fn page(console: &Console, address: &str) -> (String, Vec<Element>) {
    let (status, page) = get(console, address);
    assert_eq!(status, 200, "{address}: {page}");
    let elements = checks::check(&page);
    (page, elements)
}

/// Returns the addresses of links that begin with a path.
fn links(elements: &[Element], path: &str) -> Vec<String> {
    let links = elements
        .iter()
        .filter(|element| element.name == "a")
        .filter_map(|element| element.get("href"));
    links
        .filter(|link| link.starts_with(path))
        .map(|link| link.replace("&amp;", "&"))
        .collect()
}

#[test]
fn each_page_of_a_recorded_failover_has_its_facts() {
    let console = example();
    let check = |address: &str, facts: &[&str]| {
        let (page, _) = page(&console, address);
        for fact in facts {
            assert!(page.contains(fact), "{address} lacks {fact}: {page}");
        }
    };
    check(
        "/",
        &[
            "member1",
            "member5",
            "evictions under way",
            "0.5 per second",
            "1 of 5 clusters are not ready",
        ],
    );
    check(
        "/timeline",
        &[
            "Evicted",
            "Released",
            "Cluster",
            "ReplacementHealthy",
            "of them evictions",
        ],
    );
    check("/bindings", &["default/nginx-deployment", "member3:2"]);
    let binding = "/binding?kind=ResourceBinding&namespace=default&name=nginx-deployment";
    check(
        binding,
        &[
            "member3:2",
            "Gates and inputs",
            "TaintUntolerated",
            "would change it",
            "TaintToleration",
        ],
    );
    check("/plugins", &["ResourceHealth", "builtin", "eviction-check"]);
    let (timeline, elements) = page(&console, "/timeline?decision=Evicted");
    let decisions = links(&elements, "/decision");
    assert_eq!(decisions.len(), 1, "{timeline}");
    check(
        &decisions[0],
        &["Recorded inputs", "preCheck", "BrakeOpen", "Federation at"],
    );
}

#[test]
fn the_map_shows_the_state_at_a_time() {
    let console = example();
    let (_, elements) = page(&console, "/timeline?decision=Evicted");
    let at = links(&elements, "/?at=").remove(0);
    let (during, _) = page(&console, &at);
    assert!(
        during.contains("✗ not ready") && during.contains("cluster.karmada.io/not-ready:NoExecute"),
        "{during}"
    );
    assert!(
        during.contains("TaintUntolerated") && during.contains("leaving: 1"),
        "{during}"
    );
    let (before, _) = page(&console, "/?position=1");
    assert!(
        !before.contains("✗ not ready") && before.contains("Evictions under way, oldest first: none"),
        "{before}"
    );
    let (after, _) = page(&console, "/");
    assert!(after.contains("Evictions under way, oldest first: none"), "{after}");
    // A page of the past does not change.
    assert!(after.contains("/script.js") && !during.contains("/script.js"));
}

#[test]
fn names_of_objects_are_escaped_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let journal = TestJournal::start(folder.path(), "3f9a1c2e55");
    let subject = Subject::new("ResourceBinding", HOSTILE, "\"><img src=x onerror=alert(1)>");
    journal.record(1, &cluster(HOSTILE), Some(HOSTILE), (Decision::ReadyChanged, HOSTILE));
    journal.record(1, &cluster(HOSTILE), Some(HOSTILE), (Decision::Tainted, HOSTILE));
    journal.record(2, &subject, None, (Decision::Scheduled, HOSTILE));
    journal.record(3, &subject, Some(HOSTILE), (Decision::Evicted, HOSTILE));
    journal.record(4, &subject, Some(HOSTILE), (Decision::Held, HOSTILE));
    let console = console(folder.path().to_path_buf());
    let (_, elements) = page(&console, "/bindings");
    let object = links(&elements, "/binding?").remove(0);
    let hostile = "%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    let addresses = [
        "/".to_owned(),
        "/timeline".to_owned(),
        object,
        "/decision?id=4".to_owned(),
        "/plugins".to_owned(),
    ];
    let filtered =
        ["/?cluster=", "/timeline?text=", "/bindings?text=", "/timeline?x="].map(|path| format!("{path}{hostile}"));
    for address in addresses.iter().chain(&filtered) {
        let (page, _) = page(&console, address);
        assert!(
            !page.contains("<script>") && !page.contains("<img"),
            "{address}: {page}"
        );
    }
    for address in [
        format!("/{hostile}"),
        format!("/decision?id={hostile}"),
        format!("/binding?name={hostile}"),
    ] {
        let (status, page) = get(&console, &address);
        checks::check(&page);
        assert!(status >= 400 && !page.contains("<script>"), "{address}: {page}");
    }
}

#[test]
fn every_response_confines_the_page() {
    let console = example();
    let addresses = [
        "/",
        "/timeline",
        "/bindings",
        "/plugins",
        "/style.css",
        "/script.js",
        "/gone",
        "/?at=x",
    ];
    for address in addresses {
        let response = request(&console, Method::GET, address);
        let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(
            policy.contains("default-src 'none'") && !policy.contains("unsafe"),
            "{address}: {policy}"
        );
        assert_eq!(response.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
        let body = String::from_utf8(response.into_body().to_vec()).unwrap();
        let inline = [" style=", "<style", " onclick=", "<script>", "http://", "https://"];
        assert!(inline.iter().all(|part| !body.contains(part)), "{address}: {body}");
    }
    let icon = request(&console, Method::GET, "/icon.svg");
    assert_eq!(icon.headers()[CONTENT_TYPE], "image/svg+xml");
}

#[test]
fn requests_that_cannot_be_answered_get_a_page_with_advice() {
    let console = example();
    let check = |address: &str, expected: u16, advice: &str| {
        let (status, page) = get(&console, address);
        checks::check(&page);
        assert_eq!(status, expected, "{address}");
        assert!(page.contains(advice), "{address}: {page}");
    };
    check("/gone", 404, "The console has no page /gone");
    check("/binding?namespace=default&name=nginx", 404, "nginx-deployment</a>");
    check("/binding", 404, "Search the bindings");
    check(
        "/decision?id=999999",
        404,
        "The records begin with decision 1 at 2026-01-01T00:00:00Z",
    );
    check("/decision?id=x", 400, "is not a decision ID");
    check("/timeline?decision=Nothing", 400, "there is no decision Nothing");
    check("/timeline?from=noon", 400, "is not a time");
    check("/?state=odd", 400, "there is no state");
    check("/?page=0", 400, "is not a positive number");
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::HEAD] {
        let response = request(&console, method, "/");
        assert_eq!(
            (response.status().as_u16(), &response.headers()[ALLOW]),
            (405, &HeaderValue::from_static("GET"))
        );
    }
}

#[test]
fn a_large_federation_is_paged_and_filtered() {
    let folder = tempfile::tempdir().unwrap();
    let journal = TestJournal::start(folder.path(), "3f9a1c2e55");
    for number in 0..1000 {
        let name = format!("m{number:04}");
        let status = if number % 100 == 7 { "False" } else { "True" };
        journal.record(number, &cluster(&name), Some(&name), (Decision::ReadyChanged, status));
        journal.record(
            number,
            &binding(&format!("web-{number:04}")),
            None,
            (Decision::Scheduled, "m0001:2, m0002:1"),
        );
    }
    let console = console(folder.path().to_path_buf());
    let cells = |address: &str| {
        let (page, elements) = page(&console, address);
        let count = elements
            .iter()
            .filter(|element| element.get("class").is_some_and(|c| c.starts_with("cell ")))
            .count();
        (page, count)
    };
    let (first, count) = cells("/");
    assert_eq!(count, 100);
    assert!(
        first.contains("1 to 100 of 1000 clusters.") && first.contains("990 of 1000"),
        "{first}"
    );
    let (last, count) = cells("/?page=99");
    assert_eq!(count, 100);
    assert!(
        last.contains("901 to 1000 of 1000 clusters.") && !last.contains("Next page"),
        "{last}"
    );
    assert_eq!(cells("/?state=not-ready").1, 10);
    assert_eq!(cells("/?cluster=m0012").1, 1);
    let (none, _) = cells("/?cluster=other");
    assert!(none.contains("No clusters match."), "{none}");

    let (timeline, _) = page(&console, "/timeline?page=2");
    assert!(timeline.contains("101 to 200 of 2000 decisions."), "{timeline}");
    let (timeline, _) = page(&console, "/timeline?cluster=m0107");
    assert!(
        timeline.contains("1 to 1 of 1 decisions.") && timeline.contains("ReadyChanged"),
        "{timeline}"
    );
    let (timeline, _) = page(
        &console,
        "/timeline?from=990000&until=1000000&decision=Scheduled&text=WEB-0999",
    );
    assert!(timeline.contains("1 to 1 of 1 decisions."), "{timeline}");
    let (bindings, elements) = page(&console, "/bindings?cluster=m0002&page=2");
    assert!(bindings.contains("101 to 200 of 1000 bindings."), "{bindings}");
    // A page of a list keeps its filter.
    let pages = links(&elements, "/bindings?");
    assert!(
        pages
            .iter()
            .filter(|link| link.contains("page="))
            .all(|link| link.contains("cluster=m0002")),
        "{pages:?}"
    );
}

#[test]
fn pages_about_a_hundred_thousand_bindings_stay_small() {
    const BYTES_MAX: usize = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let journal = TestJournal::with(folder.path(), "3f9a1c2e55", Bounds::default());
    for number in 0..1000 {
        let name = format!("m{number:04}");
        journal.record(0, &cluster(&name), Some(&name), (Decision::ReadyChanged, "True"));
    }
    for number in 0..100_000 {
        let (name, target) = (format!("web-{number:05}"), format!("m{:04}:2", number % 1000));
        journal.record(number, &binding(&name), None, (Decision::Scheduled, &target));
    }
    let console = console(folder.path().to_path_buf());
    for (address, expected) in [
        ("/", "1 to 100 of 1000 clusters."),
        ("/bindings", "1 to 100 of 100000 bindings."),
        ("/bindings?page=1000", "99901 to 100000 of 100000 bindings."),
        ("/bindings?cluster=m0123", "1 to 100 of 100 bindings."),
        ("/timeline?page=500", "49901 to 50000 of 101000 decisions."),
        ("/timeline?text=WEB-09999", "1 to 1 of 1 decisions."),
        ("/binding?namespace=default&name=web-09999", "m0999:2"),
    ] {
        let (page, _) = page(&console, address);
        assert!(page.contains(expected), "{address}: {page:.2000}");
        assert!(page.len() < BYTES_MAX, "{address} has {} bytes", page.len());
    }
}

#[test]
fn new_records_appear_and_old_segments_are_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let journal = TestJournal::start(folder.path(), "3f9a1c2e55");
    for number in 0..100 {
        journal.record(number, &binding("web"), None, (Decision::Scheduled, "m1:1"));
    }
    let console = console(folder.path().to_path_buf());
    console.read().unwrap();
    assert_eq!(console.version(), 100);
    // Segments before the last one may be removed to make room.
    let segments = bulkhead_journal::segment::list(folder.path()).unwrap();
    assert!(segments.len() > 2, "{segments:?}");
    std::fs::remove_file(&segments[0].1).unwrap();
    journal.record(200, &binding("shop"), None, (Decision::Scheduled, "m2:1"));
    console.read().unwrap();
    console.read().unwrap();
    assert_eq!(console.version(), 101);
    let (shop, _) = page(&console, "/binding?namespace=default&name=shop");
    assert!(shop.contains("m2:1") && shop.contains("3f9a1c2e55-101"), "{shop}");
    let (gone, _) = page(&console, "/decision?id=3f9a1c2e55-1");
    assert!(gone.contains("The record is gone."), "{gone}");
}

#[test]
fn a_directory_without_a_journal_is_a_warning_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let console = console(folder.path().to_path_buf());
    assert!(console.read().is_err());
    let (page, _) = page(&console, "/");
    assert!(
        page.contains("there is no journal in this directory") && page.contains("0 of 0"),
        "{page}"
    );
}
