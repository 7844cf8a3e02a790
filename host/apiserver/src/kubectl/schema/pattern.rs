//! Patterns of texts, in the syntax of Go's `regexp`, which Kubernetes uses for them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use regex::Regex;

/// Maximum number of compiled patterns that are kept.
const COMPILED_MAX: usize = 1000;

static COMPILED: Mutex<BTreeMap<String, Option<Regex>>> = Mutex::new(BTreeMap::new());

/// Returns true if a part of the text matches. An invalid pattern matches everything: its definition was refused, or
/// was stored before definitions were validated.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if compiled.len() > COMPILED_MAX {
        compiled.clear();
    }
    let known = compiled
        .entry(pattern.to_owned())
        .or_insert_with(|| compile(pattern).ok());
    known.as_ref().is_none_or(|pattern| pattern.is_match(text))
}

/// Compiles a pattern.
///
/// # Errors
///
/// The syntax error.
pub(super) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    Regex::new(&translated(pattern))
}

/// Translates from Go's syntax. There `\d`, `\s` and `\w` are ASCII, and classes have no nested classes and operators.
fn translated(pattern: &str) -> String {
    let mut result = String::with_capacity(pattern.len());
    let mut characters = pattern.chars().peekable();
    let mut class_length: Option<usize> = None;
    while let Some(character) = characters.next() {
        let length = class_length.map(|length| length + 1);
        match (character, class_length) {
            ('\\', _) => {
                let escaped = characters.next();
                match escaped {
                    Some('d') => result.push_str("[0-9]"),
                    Some('D') => result.push_str("[^0-9]"),
                    Some('s') => result.push_str(r"[\t\n\f\r ]"),
                    Some('S') => result.push_str(r"[^\t\n\f\r ]"),
                    Some('w') => result.push_str("[0-9A-Za-z_]"),
                    Some('W') => result.push_str("[^0-9A-Za-z_]"),
                    Some(boundary @ ('b' | 'B')) if class_length.is_none() => {
                        let _ = write!(result, r"(?-u:\{boundary})");
                    }
                    Some(other) => result.extend(['\\', other]),
                    None => result.push('\\'),
                }
                class_length = length;
            }
            ('[', None) => {
                class_length = Some(0);
                result.push('[');
                if characters.next_if_eq(&'^').is_some() {
                    result.push('^');
                }
            }
            // A bracket at the start of a class stands for itself.
            (']', Some(0)) => {
                result.push_str(r"\]");
                class_length = length;
            }
            (']', Some(_)) => {
                result.push(']');
                class_length = None;
            }
            ('[', Some(_)) if characters.peek() == Some(&':') => {
                result.push('[');
                for inner in characters.by_ref() {
                    result.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
                class_length = length;
            }
            ('[' | '&' | '~', Some(_)) => {
                result.extend(['\\', character]);
                class_length = length;
            }
            _ => {
                result.push(character);
                class_length = length;
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_the_syntax_of_go() {
        let cron = r"^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$";
        let cases = [
            (cron, "*/5 * * * *", true),
            (cron, "x", false),
            ("b", "abc", true),
            (r"^\d$", "\u{663}", false),
            (r"^[\w-]+$", "a-b", true),
            ("^[[a]$", "[", true),
            ("^[]a]$", "]", true),
            ("^[a&&b]+$", "a&b", true),
            ("^[[:alpha:]]$", "x", true),
            ("^[[:alpha:]]$", "1", false),
            (r"\bword\b", "a word.", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(compile("(").is_err());
    }
}
