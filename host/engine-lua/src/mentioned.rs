//! The names in a script's text.

use std::collections::HashSet;

/// Most names that are kept of one script; what comes later counts as not mentioned.
const NAMES_MAX: usize = 1024;
/// Longest name that is kept, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Every name that occurs in the text of a script, in whatever place: as a field, a variable, a word of the language,
/// in a text or in a comment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mentioned(HashSet<String>);

impl Mentioned {
    /// Reads them off the text.
    pub(crate) fn read(code: &[u8]) -> Self {
        let words = code.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        let names = words.filter(|word| word.first().is_some_and(|first| !first.is_ascii_digit()));
        let mut mentioned = Self::default();
        for name in names.filter(|name| name.len() <= NAME_BYTES_MAX) {
            if mentioned.0.len() == NAMES_MAX {
                break;
            }
            mentioned.0.insert(String::from_utf8_lossy(name).into_owned());
        }
        mentioned
    }

    /// Whether this is one of them.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// All of them, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_wherever_they_stand() {
        let check = |code: &str, expected: &[&str]| {
            let mentioned = Mentioned::read(code.as_bytes());
            let mut found: Vec<_> = mentioned.iter().collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{code}");
        };
        check("", &[]);
        check("a.b_1.c", &["a", "b_1", "c"]);
        check("x['kind'] -- replicas", &["kind", "replicas", "x"]);
        check("x['app.kubernetes.io/name'] = 1e3 + 0x1f", &["app", "io", "kubernetes", "name", "x"]);
        check("grün", &["gr", "n"]);
    }

    #[test]
    fn a_text_of_nothing_but_names_is_bounded() {
        let names: Vec<_> = (0..5000).map(|index| format!("name_{index}")).collect();
        let mentioned = Mentioned::read(names.join(" ").as_bytes());
        assert_eq!(mentioned.iter().count(), NAMES_MAX);
        assert!(mentioned.contains("name_0") && !mentioned.contains("name_4999"));
        assert!(!Mentioned::read("x".repeat(65).as_bytes()).contains(&"x".repeat(65)));
    }
}
