//! Names in a script's text.

use std::collections::HashSet;

/// Maximum number of names kept per script; later ones count as not mentioned.
const NAMES_MAX: usize = 1024;
/// Maximum length of a kept name in bytes.
const NAME_BYTES_MAX: usize = 64;

/// All names in the text of a script, regardless of their role: field, variable, keyword, part of a text or comment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mentioned(HashSet<String>);

impl Mentioned {
    /// Collects the names of a text.
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

    /// Returns true if the name is mentioned.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Returns all names in arbitrary order.
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
        check(
            "x['app.kubernetes.io/name'] = 1e3 + 0x1f",
            &["app", "io", "kubernetes", "name", "x"],
        );
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
