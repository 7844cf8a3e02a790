//! Maps lines of a script to lines of the file that contains it.

use serde_saphyr::Spanned;

/// Position of a script in its file.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// Prefix of the engine's messages, followed by a line number.
    pub(super) origin: String,
    file: String,
    /// Number of lines in the file before the script's first line.
    lines_before: usize,
    /// Indentation of the script's lines, in columns.
    indent: usize,
    /// True if each line of the script corresponds to one line of the file.
    is_literal: bool,
}

impl Place {
    /// Creates the place of a standalone script file.
    pub(super) fn of_file(file: &str) -> Self {
        Self {
            origin: file.to_owned(),
            file: file.to_owned(),
            is_literal: true,
            ..Self::default()
        }
    }

    /// Creates the place of a script in a scalar of a YAML file.
    pub(super) fn in_yaml(file: &str, rule: &str, text: &str, script: &Spanned<String>) -> Self {
        let origin = format!("{file} {rule}");
        let line_of = |number: usize| text.lines().nth(number.saturating_sub(1)).unwrap_or_default();
        let at = usize::try_from(script.referenced.line()).unwrap_or(1).max(1);
        // The parser reports either the line of the block indicator or the line after it as the start of the scalar.
        let head = [at, at.saturating_sub(1)]
            .into_iter()
            .find(|number| is_literal_head(line_of(*number)));
        let Some(head) = head else {
            return Self {
                origin,
                file: file.to_owned(),
                lines_before: at - 1,
                ..Self::default()
            };
        };
        let first = text
            .lines()
            .skip(head)
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default();
        let indent = first.len() - first.trim_start().len();
        Self {
            origin,
            file: file.to_owned(),
            lines_before: head,
            indent,
            is_literal: true,
        }
    }

    /// Returns the location of a line and column of the script, as `file:line:column`.
    pub(super) fn at(&self, line: usize, column: usize) -> String {
        if self.is_literal {
            format!("{}:{}:{}", self.file, self.lines_before + line, self.indent + column)
        } else {
            format!(
                "{}:{} (line {line}, column {column} of the script)",
                self.file,
                self.lines_before + 1
            )
        }
    }

    /// Returns true if a message starts with a location in the file.
    pub(super) fn begins(&self, message: &str) -> bool {
        message.starts_with(&self.file)
    }

    /// Replaces the script's line number that a syntax error refers to, such as that of an unclosed block.
    pub(super) fn referring(&self, message: &str) -> String {
        let words = ["' at line ", " already defined on line "];
        let found = words
            .into_iter()
            .find_map(|words| Some(message.find(words)? + words.len()));
        let Some((before, after)) = found
            .filter(|_| self.is_literal)
            .and_then(|at| message.split_at_checked(at))
        else {
            return message.to_owned();
        };
        match number(after) {
            (Some(line), rest) => format!("{before}{}{rest}", self.lines_before + line),
            (None, _) => message.to_owned(),
        }
    }

    /// Replaces the script's line number in an engine message, and the column after it, with those of the file. A message
    /// without a line gets that of the script's head.
    pub(super) fn located(&self, message: &str) -> String {
        let Some((before, after)) = message.split_once(&format!("{}:", self.origin)) else {
            return message.to_owned();
        };
        let rule = self.origin.strip_prefix(&self.file).unwrap_or_default();
        let (line, rest) = number(after);
        // Of several lines only the first one is about the rule.
        let with_rule = |place: String, rest: &str| {
            let rest = self.referring(rest);
            let (first, more) = rest.split_at(rest.find('\n').unwrap_or(rest.len()));
            format!("{before}{place}{first}{}{more}", in_rule(rule))
        };
        let Some(line) = line else {
            // The lines before a literal scalar end with its head.
            let head = self.lines_before + usize::from(!self.is_literal);
            let head = if rule.is_empty() {
                String::new()
            } else {
                format!(":{head}")
            };
            return with_rule(format!("{}{head}:", self.file), rest);
        };
        if !self.is_literal {
            return with_rule(
                format!("{}:{} (line {line} of the script)", self.file, self.lines_before + 1),
                rest,
            );
        }
        let place = format!("{}:{}", self.file, self.lines_before + line);
        match rest.strip_prefix(':').map(number) {
            Some((Some(column), rest)) => with_rule(format!("{place}:{}", self.indent + column), rest),
            _ => with_rule(place, rest),
        }
    }
}

/// Returns the number at the start of a text, and the rest.
fn number(text: &str) -> (Option<usize>, &str) {
    let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    (digits.parse().ok(), rest)
}

fn in_rule(rule: &str) -> String {
    if rule.is_empty() {
        String::new()
    } else {
        format!(" (in{rule})")
    }
}

/// Returns true if a line ends with the indicator of a literal scalar, such as `|` or `|-`.
fn is_literal_head(line: &str) -> bool {
    let word = line
        .split(" #")
        .next()
        .unwrap_or_default()
        .trim_end()
        .rsplit([' ', ':'])
        .next()
        .unwrap_or_default();
    word.starts_with('|') && word.chars().skip(1).all(|c| c.is_ascii_digit() || c == '+' || c == '-')
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Rule {
        script: Spanned<String>,
    }

    #[test]
    fn lines_of_a_literal_scalar_are_lines_of_the_file() {
        let check = |text: &str, place: &str, message: &str| {
            let rule: Rule = serde_saphyr::from_str(text).unwrap();
            let found = Place::in_yaml("a.yaml", "retention", text, &rule.script);
            assert_eq!(found.at(2, 3), place, "{text}");
            assert_eq!(found.located("a.yaml retention:2: boom"), message, "{text}");
        };
        check(
            "a: 1\nscript: |\n  x\n  y\n",
            "a.yaml:4:5",
            "a.yaml:4: boom (in retention)",
        );
        check(
            "script: |- # why\n    x\n    y\n",
            "a.yaml:3:7",
            "a.yaml:3: boom (in retention)",
        );
        check(
            "a: 1\nscript: >\n  x\n  y\n",
            "a.yaml:3 (line 2, column 3 of the script)",
            "a.yaml:3 (line 2 of the script): boom (in retention)",
        );
    }

    #[test]
    fn columns_and_messages_without_a_line_are_located_too() {
        let text = "a: 1\nscript: |\n  x\n  y\n";
        let rule: Rule = serde_saphyr::from_str(text).unwrap();
        let place = Place::in_yaml("a.yaml", "retention", text, &rule.script);
        let check = |message: &str, expected: &str| assert_eq!(place.located(message), expected);
        check("a.yaml retention:2:3: boom", "a.yaml:4:5: boom (in retention)");
        check("a.yaml retention: no function", "a.yaml:2: no function (in retention)");
        check(
            "a.yaml retention:1: boom\nasked",
            "a.yaml:3: boom (in retention)\nasked",
        );
        check(
            "a.yaml retention:2: label a is already defined on line 1",
            "a.yaml:4: label a is already defined on line 3 (in retention)",
        );
        let unclosed = "a.yaml:4: Expected 'end' (to close 'then' at line 3), got <eof> (in retention)";
        check(
            "a.yaml retention:2: Expected 'end' (to close 'then' at line 1), got <eof>",
            unclosed,
        );
        check("a.yaml retention:1: 7: boom", "a.yaml:3: 7: boom (in retention)");
        assert_eq!(
            Place::of_file("a.lua").located("a.lua: no function"),
            "a.lua: no function"
        );
    }

    #[test]
    fn a_file_of_its_own_has_its_own_lines() {
        let place = Place::of_file("health.lua");
        assert_eq!(place.at(2, 3), "health.lua:2:3");
        assert_eq!(place.located("health.lua:2: boom"), "health.lua:2: boom");
        assert_eq!(place.located("no place at all"), "no place at all");
    }
}
