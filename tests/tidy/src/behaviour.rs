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

/// Page about the differences from Karmada, with a reason in the last column.
const DIFFERENCES: &str = "docs/src/explanation/differences-from-karmada.md";

/// Returns the words between backticks in a text.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// True if the word looks like a test name. Test names are sentences; field and flag names have fewer words.
fn is_test_name(word: &str) -> bool {
    word.matches('_').count() >= 4
        && word
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Collects the names of all functions in the Rust files below a folder.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let skipped = path
            .file_name()
            .is_some_and(|name| name == "target" || name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !skipped {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let names = text
                .split("fn ")
                .skip(1)
                .filter_map(|rest| rest.split(['(', '<']).next());
            found.extend(names.map(str::to_owned));
        }
    }
}

/// Returns the rows of the table of Karmada's issues: the number, and the words between backticks.
fn issues(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found = Vec::new();
    for line in page.lines() {
        let number = line
            .strip_prefix("| ")
            .and_then(|rest| rest.split(' ').next())
            .unwrap_or_default();
        if number.len() == 4 && number.chars().all(|c| c.is_ascii_digit()) {
            found.push((number, quoted(line).collect()));
        }
    }
    found
}

#[test]
fn every_disagreement_with_a_document_has_a_test() {
    let page = fs::read_to_string(super::root().join(PAGES[0])).unwrap();
    let (_, section) = page.split_once("\n## Disagreements with a document\n").unwrap();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
    assert!(rows.len() > 15, "only {} rows were found", rows.len());
    let shown_by = |row: &str| row.rsplit('|').nth(1).unwrap_or_default().to_owned();
    let without: Vec<_> = rows
        .iter()
        .filter(|row| !quoted(&shown_by(row)).any(is_test_name))
        .collect();
    assert!(without.is_empty(), "{without:#?}");
}

#[test]
fn one_filter_runs_every_test_of_an_issue_of_karmada() {
    let root = super::root();
    let (mut known, page) = (BTreeSet::new(), fs::read_to_string(root.join(PAGES[0])).unwrap());
    functions(&root, &mut known);
    let issues = issues(&page);
    assert!(issues.len() > 10, "only {} issues were found", issues.len());
    let named: BTreeSet<_> = issues.iter().flat_map(|(_, words)| words).copied().collect();
    let mut problems = Vec::new();
    for (number, words) in &issues {
        let prefix = format!("karmada_{number}_");
        let others = words
            .iter()
            .filter(|word| is_test_name(word) && !word.starts_with(&prefix));
        problems.extend(others.map(|word| format!("{word} does not start with {prefix}")));
        if !words.iter().any(|word| word.starts_with(&prefix)) {
            problems.push(format!("issue {number} has no test {prefix}…"));
        }
    }
    for name in &known {
        let number = name
            .strip_prefix("issue_")
            .or_else(|| name.strip_prefix("karmada_"))
            .unwrap_or_default();
        let is_issue = number.starts_with(|c: char| c.is_ascii_digit());
        if is_issue && !named.contains(name.as_str()) {
            problems.push(format!("{name} is not in the table of issues of {}", PAGES[0]));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_difference_from_karmada_has_a_reason() {
    let page = fs::read_to_string(super::root().join(DIFFERENCES)).unwrap();
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows.len() > 40, "only {} rows were found", rows.len());
    let has_reason = |row: &str| {
        row.trim_end_matches('|')
            .rsplit('|')
            .next()
            .is_some_and(|reason| !reason.trim().is_empty())
    };
    let bare: Vec<_> = rows.iter().filter(|row| !has_reason(row)).collect();
    assert!(bare.is_empty(), "{DIFFERENCES} has rows without a reason: {bare:#?}");
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
