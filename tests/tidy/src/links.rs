//! Links between documents lead to files and headings, every page is in the book, every example has a README, and the
//! README of the project is short.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folder of the book's pages. mdBook follows no link that leaves it.
const BOOK: &str = "docs/src";
/// Table of contents of the book.
const SUMMARY: &str = "docs/src/SUMMARY.md";
/// Most words of the README outside of code blocks.
const README_WORDS_MAX: usize = 700;
/// Most lines of the README that are not blank: two screens.
const README_LINES_MAX: usize = 90;

/// Finds the Markdown files below a folder, except for build output and version control.
fn markdown(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let skipped = path.is_symlink() || path.file_name().is_some_and(|name| name == "target" || name == ".git");
        if path.is_dir() && !skipped {
            markdown(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// Returns the texts of all documents by their names in the repository.
fn documents() -> BTreeMap<PathBuf, String> {
    let root = super::root();
    let mut found = Vec::new();
    markdown(&root, &mut found);
    let named = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path.strip_prefix(&root).unwrap().to_path_buf(), text)
    };
    found.into_iter().map(named).collect()
}

/// Returns the lines outside of code blocks with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = None;
    let lines = text.lines().enumerate().filter(move |(_, line)| {
        let line = line.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| line.starts_with(*marker));
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            (open, _) => return open.is_none(),
        }
        false
    });
    lines.map(|(index, line)| (index + 1, line))
}

/// Returns the targets of the links, images and link definitions in a line. Code spans are left out.
fn targets(line: &str) -> Vec<String> {
    let line: String = line.split('`').step_by(2).collect();
    let inline = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next());
    let definition = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        .map(|(_, target)| target);
    inline
        .chain(definition)
        .map(|target| target.trim_matches(['<', '>']).to_owned())
        .collect()
}

/// Returns the anchor of a heading by GitHub's rules: lower case, no punctuation, hyphens for spaces.
fn slug(heading: &str) -> String {
    // Only the text of a link counts.
    let mut parts = heading.split("](");
    let first = parts.next().unwrap_or_default();
    let others = parts.map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
    let text: String = std::iter::once(first).chain(others).collect();
    let kept = text
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.flat_map(char::to_lowercase)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// Returns the anchors of all headings. The second heading of a name has the suffix `-1`, the third one `-2`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if (1..=6).contains(&level) && heading.starts_with(' ') {
            let name = slug(heading);
            let count = seen.entry(name.clone()).or_default();
            anchors.insert(if *count == 0 { name } else { format!("{name}-{count}") });
            *count += 1;
        }
    }
    anchors
}

/// Resolves `.` and `..` in a relative path.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            component => normal.push(component),
        }
    }
    normal
}

/// Returns the problem of a link in a document; none if it leads to a file and, with an anchor, to a heading of it.
fn problem(documents: &BTreeMap<PathBuf, String>, from: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let to = if file.is_empty() {
        from.to_path_buf()
    } else {
        normal(&from.parent()?.join(file))
    };
    if !super::root().join(&to).exists() {
        return Some("there is no such file".to_owned());
    }
    if from.starts_with(BOOK) && !to.starts_with(BOOK) {
        return Some(format!(
            "a page of the book cannot link to a file outside of {BOOK}; name it in backticks"
        ));
    }
    let is_heading = |text: &String| anchors(text).contains(anchor);
    let leads_to_heading = anchor.is_empty() || documents.get(&to).is_some_and(is_heading);
    (!leads_to_heading).then(|| format!("there is no such heading in {}", to.display()))
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let documents = documents();
    assert!(documents.len() > 50, "only {} documents were found", documents.len());
    let mut problems = Vec::new();
    for (from, text) in &documents {
        for (number, line) in prose(text) {
            for target in targets(line) {
                if let Some(problem) = problem(&documents, from, &target) {
                    problems.push(format!("{}:{number}: {target}: {problem}", from.display()));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_part_that_a_page_includes_is_there() {
    let documents = documents();
    let (mut found, mut problems) = (0, Vec::new());
    for (from, text) in &documents {
        for (number, line) in prose(text) {
            let Some(target) = line
                .strip_prefix("{{#include ")
                .and_then(|rest| rest.strip_suffix("}}"))
            else {
                continue;
            };
            let (file, name) = target.split_once(':').unwrap_or((target, ""));
            let to = normal(&from.parent().unwrap().join(file));
            let marks = ["ANCHOR", "ANCHOR_END"].map(|mark| format!("<!-- {mark}: {name} -->\n"));
            let has_part = |text: &String| marks.iter().all(|mark| text.matches(mark.as_str()).count() == 1);
            if !documents.get(&to).is_some_and(has_part) {
                problems.push(format!("{}:{number}: {target} is not there", from.display()));
            }
            found += 1;
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(found > 0, "no page includes a part of another document");
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let documents = documents();
    let summary = documents.get(Path::new(SUMMARY)).unwrap();
    let listed: BTreeSet<String> = prose(summary).flat_map(|(_, line)| targets(line)).collect();
    let pages = documents.keys().filter_map(|name| name.strip_prefix(BOOK).ok());
    let missing = pages.filter(|page| *page != Path::new("SUMMARY.md") && !listed.contains(&*page.to_string_lossy()));
    let missing: Vec<_> = missing
        .map(|page| format!("{BOOK}/{}:1: it is not in {SUMMARY}", page.display()))
        .collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn every_example_has_a_readme_that_names_its_scenario() {
    let (root, documents) = (super::root(), documents());
    let (mut found, mut missing) = (0, Vec::new());
    for entry in fs::read_dir(root.join("examples")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.strip_prefix(&root).unwrap();
        let scenario = name.join("scenario.yaml");
        if !root.join(&scenario).is_file() {
            continue;
        }
        let command = format!("bulkhead simulate {}", scenario.display());
        if !documents
            .get(&name.join("README.md"))
            .is_some_and(|readme| readme.contains(&command))
        {
            missing.push(format!("{}/README.md: does not contain {command:?}", name.display()));
        }
        found += 1;
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(found >= 15, "only {found} examples were found");
}

#[test]
fn every_readme_of_an_example_has_the_same_sections() {
    let documents = documents();
    let examples = super::root().join("examples");
    let folders = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let is_hidden = |path: &PathBuf| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with('.'))
        };
        entries
            .filter(|path| path.is_dir() && !path.ends_with("target") && !is_hidden(path))
            .collect::<Vec<_>>()
    };
    let (mut found, mut wrong) = (0, Vec::new());
    // The policies that are written in every language, and their cases, share the page of all plugins.
    let plugins = folders(&examples.join("plugins")).into_iter();
    let plugins = plugins.filter(|path| path.join("plugin.yaml").exists() || path.join("README.md").exists());
    for folder in folders(&examples).into_iter().chain(plugins) {
        let name = folder.strip_prefix(super::root()).unwrap().join("README.md");
        let text = documents.get(&name).map(String::as_str).unwrap_or_default();
        let sections: Vec<_> = prose(text).filter_map(|(_, line)| line.strip_prefix("## ")).collect();
        if sections != ["Run", "Look for", "Change next"] {
            wrong.push(format!("{}: the sections are {sections:?}", name.display()));
        }
        found += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found >= 25, "only {found} examples were found");
}

#[test]
fn the_readme_is_short() {
    let documents = documents();
    let readme = documents.get(Path::new("README.md")).unwrap();
    let lines = readme.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(
        lines <= README_LINES_MAX,
        "README.md has {lines} lines; the limit is {README_LINES_MAX}"
    );
    assert!(readme.contains(".svg)"), "README.md has no picture");
    let mut words = 0;
    for (number, line) in prose(readme) {
        words += line.split_whitespace().count();
        assert!(
            words <= README_WORDS_MAX,
            "README.md:{number}: the limit is {README_WORDS_MAX} words outside of code"
        );
    }
    assert!(words > 100, "only {words} words were found");
}

#[test]
fn links_are_found_outside_of_code() {
    let check = |line: &str, expected: &[&str]| assert_eq!(targets(line), expected, "{line}");
    check(
        "a [b](c.md), [`d`](e.md#f \"title\") and ![g](h.png), but not `[i](j)`",
        &["c.md", "e.md#f", "h.png"],
    );
    check("[k]: l.md", &["l.md"]);
    check("- [ ] no link", &[]);
    let text = "one\n```sh\n[a](b)\n```\n   ~~~\n```\n   ~~~\ntwo\n";
    assert_eq!(prose(text).collect::<Vec<_>>(), [(1, "one"), (8, "two")]);
}

#[test]
fn anchors_are_those_of_github() {
    let check = |heading: &str, expected: &str| assert_eq!(slug(heading), expected, "{heading}");
    check(" 7. Go back", "7-go-back");
    check(" Exit codes, `--report` & more", "exit-codes---report--more");
    check(" See [the book](docs/src)", "see-the-book");
    let text = "# A\n## B_c\n```sh\n# no\n```\n## B_c\n#no\n";
    assert_eq!(anchors(text), BTreeSet::from(["a", "b_c", "b_c-1"].map(str::to_owned)));
}
