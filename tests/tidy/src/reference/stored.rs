//! The page about stored data names every annotation, label and taint of Bulkhead, and no other.

use std::collections::BTreeSet;

use regex::Regex;

use super::{code, read};

const PAGE: &str = "docs/src/reference/stored-data.md";
/// Group of our kinds, whose versions look like names.
const VERSIONS: &str = "bulkhead.dev/v1";

/// Returns the names of the domain `bulkhead.dev` in string literals, and the prefixes that a name of another object
/// follows.
fn names(source: &str) -> BTreeSet<String> {
    let literal = Regex::new(r#""([a-z.-]*bulkhead\.dev/(?:[a-z][a-z0-9-]*)?)""#).unwrap();
    let names = literal.captures_iter(source).map(|found| found[1].to_owned());
    names.filter(|name| !name.starts_with(VERSIONS)).collect()
}

/// Returns the first cells of the rows of the page, without the capitals that stand for a name.
fn listed(page: &str) -> BTreeSet<String> {
    let cells = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    cells
        .filter(|cell| cell.contains("bulkhead.dev/"))
        .map(|cell| {
            cell.trim_end_matches(|letter: char| letter.is_ascii_uppercase())
                .to_owned()
        })
        .collect()
}

#[test]
fn the_page_about_stored_data_has_every_name() {
    let mut source = String::new();
    for folder in [
        "host/api",
        "host/cli",
        "host/controllers",
        "host/core",
        "host/emulator",
        "host/runtime",
        "host/server",
    ] {
        code(&crate::root().join(folder).join("src"), &mut source);
    }
    let (used, listed) = (names(&source), listed(&read(PAGE)));
    assert!(used.len() > 10, "only {used:?}");
    assert_eq!(used, listed);
}

#[test]
fn a_name_is_a_literal_and_no_version() {
    let source =
        r#"const A: &str = "bulkhead.dev/home"; f("bulkhead.dev/v1alpha1", "no bulkhead.dev/x", "a-b.bulkhead.dev/");"#;
    let expected = ["bulkhead.dev/home", "a-b.bulkhead.dev/"].map(str::to_owned);
    assert_eq!(names(source), BTreeSet::from(expected));
    assert_eq!(
        listed("| `a-b.bulkhead.dev/UID` | Cluster |\n| `kind` | no |"),
        BTreeSet::from(["a-b.bulkhead.dev/".to_owned()])
    );
}
