//! Checks that every test and example named on the pages about behaviour exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Pages whose words between backticks are checked.
const PAGES: [&str; 3] = [
    "docs/src/explanation/behaviour.md",
    "docs/src/explanation/promises.md",
    "docs/src/explanation/which-test-holds-what.md",
];

/// Returns the words between backticks in a text.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// True if the word looks like a test name. Test names are sentences; field and flag names have fewer words.
fn is_test_name(word: &str) -> bool {
    word.matches('_').count() >= 4 && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Collects the names of all functions in the Rust files below a folder.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let skipped = path.file_name().is_some_and(|name| name == "target" || name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !skipped {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            found.extend(names.map(str::to_owned));
        }
    }
}

#[test]
fn every_test_and_example_that_the_pages_about_behaviour_name_is_there() {
    let root = super::root();
    let mut known = BTreeSet::new();
    functions(&root, &mut known);
    let (mut named, mut missing) = (0, Vec::new());
    for page in PAGES {
        let text = fs::read_to_string(root.join(page)).unwrap();
        for word in quoted(&text) {
            let is_there = match word.strip_prefix("examples/") {
                Some("") => continue,
                Some(example) => root.join("examples").join(example).join("scenario.yaml").is_file(),
                None if is_test_name(word) => known.contains(word),
                None => continue,
            };
            named += 1;
            if !is_there {
                missing.push(format!("{page}: {word}"));
            }
        }
    }
    assert!(named > 100, "only {named} names were found");
    assert!(missing.is_empty(), "no such test or example:\n{}", missing.join("\n"));
}
