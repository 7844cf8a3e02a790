//! Places of values in the text of a scenario.

use serde_saphyr::Spanned;

/// Position in the scenario's file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) column: u64,
}

impl Place {
    /// Returns the place of a value.
    pub(super) fn of<T>(spanned: &Spanned<T>) -> Self {
        Self {
            line: spanned.referenced.line(),
            column: spanned.referenced.column(),
        }
    }

    /// Returns the place of a field of the scenario; the start of the file if it is not at the start of a line.
    pub(super) fn of_field(text: &str, field: &str) -> Self {
        let mut numbered = (1..).zip(text.lines());
        let line = numbered.find(|(_, line)| is_key(line, field)).map(|(line, _)| line);
        Self {
            line: line.unwrap_or(1),
            column: 1,
        }
    }

    /// Returns the place of a flag, also in a map on one line, or that of `flags`.
    pub(super) fn of_flag(text: &str, flag: &str) -> Self {
        let flags = Self::of_field(text, "flags");
        let numbered = (1..).zip(text.lines()).skip_while(|(line, _)| *line < flags.line);
        let mut places = numbered.filter_map(|(line, text)| {
            let (bytes, _) = text
                .match_indices(flag)
                .find(|(bytes, _)| is_flag(text, *bytes, flag))?;
            let column = text.get(..bytes)?.chars().count() as u64 + 1;
            Some(Self { line, column })
        });
        places.next().unwrap_or(flags)
    }
}

/// Returns true if a text starts with a key of a map.
fn is_key(text: &str, key: &str) -> bool {
    text.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'))
}

/// Returns true if a line has a key of a map at this byte.
fn is_flag(line: &str, bytes: usize, flag: &str) -> bool {
    let before = line.get(..bytes).and_then(|before| before.chars().next_back());
    let starts = before.is_none_or(|before| before.is_whitespace() || matches!(before, '{' | ','));
    starts && line.get(bytes..).is_some_and(|rest| is_key(rest, flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_found_on_its_own_line_and_in_a_map_on_one_line() {
        let check = |text: &str, line, column| {
            let place = Place::of_flag(text, "enable-failback");
            assert_eq!(place, Place { line, column }, "{text}");
        };
        check("name: a\nflags:\n  enable-failback: true\n", 3, 3);
        check("name: ü\nflags: {a: ü, enable-failback: true}\n", 2, 15);
        check("flags: {not-enable-failback: 1,enable-failback: true}\n", 1, 32);
        check("enable-failback: 1\nflags: {a: b}\n", 2, 1);
        check("name: a\n", 1, 1);
    }
}
