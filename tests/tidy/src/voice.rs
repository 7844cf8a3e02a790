//! Prose of comments and documents: subjects, words and length of sentences.
//!
//! CONTRIBUTING.md has the rules. Tables and code blocks of documents do not count as prose.

use std::fs;
use std::path::{Path, PathBuf};

/// Words that no sentence or comment line starts with, except in questions.
const OPENINGS: [&str; 9] = [
    "What",
    "Who",
    "Whoever",
    "Whose",
    "Whether",
    "Where",
    "Nobody",
    "Somebody",
    "Everything that",
];
/// Words and phrases with a standard or a plain replacement.
const WORDS: [&str; 13] = [
    "nobody",
    "somebody",
    "whoever",
    "whatever",
    "told",
    "tells of",
    "for ever",
    "looks whether",
    "look whether",
    "goes by",
    "comes of",
    "minds",
    "by itself is",
];
/// Longest sentence that counts as short, in words.
const SHORT_MAX: usize = 30;
/// Largest share of longer sentences, in percent.
const LONG_SHARE_MAX: usize = 5;

/// A paragraph of prose: the file, and each line with its number.
struct Paragraph {
    file: PathBuf,
    lines: Vec<(usize, String)>,
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let skipped = path
            .file_name()
            .is_some_and(|name| name == "target" || name.to_string_lossy().starts_with('.'));
        // A link leads to a file that is read in its own place.
        let skipped = skipped || path.is_symlink();
        if path.is_dir() && !skipped {
            files(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| ["rs", "wit", "md"].iter().any(|known| extension == *known))
        {
            found.push(path);
        }
    }
}

/// The prose of a line of code: a comment without its marks.
fn comment(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("//")?;
    Some(rest.trim_start_matches(['/', '!']).trim())
}

/// The prose of a line of a document; `None` in tables and code.
fn text<'a>(line: &'a str, in_code: &mut bool) -> Option<&'a str> {
    let line = line.trim_end();
    if line.trim_start().starts_with("```") {
        *in_code = !*in_code;
        return None;
    }
    let is_prose = !*in_code && !line.starts_with("    ") && !line.trim_start().starts_with('|');
    is_prose.then(|| line.trim_start_matches(|c: char| " -*>#.".contains(c) || c.is_ascii_digit()))
}

fn paragraphs(file: &Path) -> Vec<Paragraph> {
    let content = fs::read_to_string(file).unwrap();
    let is_document = file.extension().is_some_and(|extension| extension == "md");
    let (mut found, mut in_code) = (Vec::new(), false);
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(content.lines()) {
        let prose = if is_document {
            text(line, &mut in_code)
        } else {
            comment(line)
        };
        // A list item or a heading starts a paragraph.
        let starts = is_document && line.trim_start().starts_with(['-', '*', '#', '>']);
        if (prose.is_none_or(str::is_empty) || starts) && !lines.is_empty() {
            found.push(Paragraph {
                file: file.to_owned(),
                lines: std::mem::take(&mut lines),
            });
        }
        lines.extend(
            prose
                .filter(|prose| !prose.is_empty())
                .map(|prose| (number, prose.to_owned())),
        );
    }
    if !lines.is_empty() {
        found.push(Paragraph {
            file: file.to_owned(),
            lines,
        });
    }
    found
}

fn prose() -> Vec<Paragraph> {
    let mut all = Vec::new();
    files(&super::root(), &mut all);
    assert!(all.len() > 300, "only {} files were found", all.len());
    all.iter().flat_map(|file| paragraphs(file)).collect()
}

/// True if the text starts with a phrase that ends at a word boundary.
fn starts_with(text: &str, phrase: &str) -> bool {
    text.strip_prefix(phrase)
        .is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '\''))
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

/// The sentences of a paragraph. Code in backticks counts as one word.
fn sentences(paragraph: &Paragraph) -> Vec<String> {
    let text: Vec<_> = paragraph.lines.iter().map(|(_, line)| line.as_str()).collect();
    let text = text.join(" ");
    let text: Vec<_> = text
        .split('`')
        .enumerate()
        .map(|(at, part)| if at % 2 == 1 { "code" } else { part })
        .collect();
    text.concat().split(". ").map(str::to_owned).collect()
}

fn report(found: &[String]) {
    assert!(found.is_empty(), "{} places:\n{}", found.len(), found.join("\n"));
}

#[test]
fn no_line_starts_with_a_relative_or_an_indefinite_pronoun() {
    let mut found = Vec::new();
    for Paragraph { file, lines } in prose() {
        let opens = |line: &str| OPENINGS.iter().any(|opening| starts_with(line, opening)) && !line.ends_with('?');
        let places = lines.iter().filter(|(_, line)| opens(line));
        found.extend(places.map(|(number, line)| format!("{}:{number}: {line}", file.display())));
    }
    report(&found);
}

#[test]
fn words_with_a_plain_replacement_are_not_used() {
    let mut found = Vec::new();
    for Paragraph { file, lines } in prose() {
        for (number, line) in lines {
            let lower = line.to_lowercase();
            let words = WORDS.iter().filter(|word| has_word(&lower, word));
            found.extend(words.map(|word| format!("{}:{number}: {word:?} in: {line}", file.display())));
        }
    }
    report(&found);
}

#[test]
fn few_sentences_are_long() {
    let (mut all, mut long) = (0_usize, Vec::new());
    for paragraph in prose() {
        for sentence in sentences(&paragraph) {
            all += 1;
            if sentence.split_whitespace().count() > SHORT_MAX {
                let line = paragraph.lines.first().map_or(0, |(number, _)| *number);
                long.push(format!("{}:{line}: {sentence}", paragraph.file.display()));
            }
        }
    }
    let allowed = all * LONG_SHARE_MAX / 100;
    assert!(
        long.len() <= allowed,
        "{} of {all} sentences, {allowed} may be long:\n{}",
        long.len(),
        long.join("\n")
    );
}

#[test]
fn prose_is_read_from_comments_and_documents() {
    assert_eq!(comment("    /// Returns `x`."), Some("Returns `x`."));
    assert_eq!(comment("let x = 1; // not a line of its own"), None);
    let mut in_code = false;
    assert_eq!(text("- An item", &mut in_code), Some("An item"));
    assert_eq!(text("| a | table |", &mut in_code), None);
    assert_eq!(text("```sh", &mut in_code), None);
    assert_eq!(text("nobody", &mut in_code), None);
    assert!(starts_with("What is it", "What") && !starts_with("Whatever", "What"));
    assert!(has_word("it is told", "told") && !has_word("retold", "told"));
}
