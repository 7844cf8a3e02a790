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
    /// Parts of a script whose scalar joins lines, in order.
    pieces: Vec<Piece>,
}

/// Part of a script that is one line of the file.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Line and column in the script.
    script: (usize, usize),
    /// Line and column in the file.
    file: (usize, usize),
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
            .find(|number| is_head(line_of(*number), '|'));
        let Some(head) = head else {
            let column = usize::try_from(script.referenced.column()).unwrap_or(1);
            let start = match [at, at.saturating_sub(1)].map(|number| is_head(line_of(number), '>')) {
                [true, _] => (at + 1, 1),
                [_, true] => (at, 1),
                _ => (at, column.max(1)),
            };
            return Self {
                origin,
                file: file.to_owned(),
                lines_before: at - 1,
                pieces: pieces(text, start, &script.value),
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
            pieces: Vec::new(),
        }
    }

    /// Returns the location of a line and column of the script, as `file:line:column`.
    pub(super) fn at(&self, line: usize, column: usize) -> String {
        match self.position(line, column) {
            Some((line, column)) => format!("{}:{line}:{column}", self.file),
            None => format!(
                "{}:{} (line {line}, column {column} of the script)",
                self.file,
                self.lines_before + 1
            ),
        }
    }

    /// Returns the position in the file of a line and column of the script.
    fn position(&self, line: usize, column: usize) -> Option<(usize, usize)> {
        if self.is_literal {
            return Some((self.lines_before + line, self.indent + column));
        }
        let is_before = |piece: &&Piece| piece.script <= (line, column);
        let Piece { script, file } = self.pieces.iter().rev().find(is_before)?;
        (script.0 == line).then(|| (file.0, file.1 + column - script.1))
    }

    /// Returns the line of the file that has a line of the script; `None` if several lines have it.
    fn line(&self, line: usize) -> Option<usize> {
        if self.is_literal {
            return Some(self.lines_before + line);
        }
        let mut pieces = self.pieces.iter().filter(|piece| piece.script.0 == line);
        let first = pieces.next()?;
        pieces.next().is_none().then_some(first.file.0)
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
        let Some((before, after)) = found.and_then(|at| message.split_at_checked(at)) else {
            return message.to_owned();
        };
        let (line, rest) = number(after);
        match line.and_then(|line| self.line(line)) {
            Some(line) => format!("{before}{line}{rest}"),
            None => message.to_owned(),
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
        let column = match rest.strip_prefix(':').map(number) {
            Some((Some(column), rest)) => Some((column, rest)),
            _ => None,
        };
        let place = match column {
            Some((column, rest)) => self
                .position(line, column)
                .map(|(line, column)| (format!("{line}:{column}"), rest)),
            None => self.line(line).map(|line| (line.to_string(), rest)),
        };
        if let Some((place, rest)) = place {
            return with_rule(format!("{}:{place}", self.file), rest);
        }
        let first = self.pieces.iter().find(|piece| piece.script.0 == line);
        let first = first.map_or(self.lines_before + 1, |piece| piece.file.0);
        with_rule(format!("{}:{first} (line {line} of the script)", self.file), rest)
    }
}

/// Returns the parts of a script whose scalar starts at a line and a column of the file and joins lines: a folded one, a
/// quoted one or a plain one. Returns none if the file has another text than the script, such as escapes.
fn pieces(text: &str, start: (usize, usize), script: &str) -> Vec<Piece> {
    let (mut found, mut rest) = (Vec::new(), script);
    // Line of the rest, and its length from the start of that line to the end of the script.
    let (mut line, mut from_line) = (1, script.len());
    for (number, whole) in (1..).zip(text.lines()).skip(start.0 - 1) {
        let before = if number == start.0 { start.1 - 1 } else { 0 };
        let part = whole.get(before..).unwrap_or_default().trim_start();
        let mut column = whole.len() - part.len() + 1;
        let mut part = part.trim_end();
        if let Some(inner) = part.strip_prefix(['"', '\'']).filter(|_| number == start.0) {
            (part, column) = (inner, column + 1);
        }
        let gap = rest.len() - rest.trim_start().len();
        for (at, _) in rest[..gap].match_indices('\n') {
            (line, from_line) = (line + 1, rest.len() - at - 1);
        }
        rest = &rest[gap..];
        if rest.is_empty() {
            break;
        }
        let parts = [Some(part), part.strip_suffix(['"', '\''])].into_iter().flatten();
        let fitting = parts
            .filter(|part| !part.is_empty())
            .find(|part| rest.starts_with(*part));
        match fitting {
            Some(fitting) => {
                found.push(Piece {
                    script: (line, from_line - rest.len() + 1),
                    file: (number, column),
                });
                rest = &rest[fitting.len()..];
            }
            None if part.is_empty() => {}
            None => return Vec::new(),
        }
    }
    if rest.trim().is_empty() { found } else { Vec::new() }
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

/// Returns true if a line ends with the indicator of a block scalar, such as `|-`; `>` is that of a folded one.
fn is_head(line: &str, indicator: char) -> bool {
    let word = line
        .split(" #")
        .next()
        .unwrap_or_default()
        .trim_end()
        .rsplit([' ', ':'])
        .next()
        .unwrap_or_default();
    word.starts_with(indicator) && word.chars().skip(1).all(|c| c.is_ascii_digit() || c == '+' || c == '-')
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
    fn lines_that_a_scalar_joins_are_found_in_the_file() {
        let check = |text: &str, (line, column): (usize, usize), place: &str, message: &str| {
            let rule: Rule = serde_saphyr::from_str(text).unwrap();
            let found = Place::in_yaml("a.yaml", "retention", text, &rule.script);
            assert_eq!(found.at(line, column), place, "{text}");
            let located = found.located(&format!("a.yaml retention:{line}: boom"));
            assert_eq!(located, format!("a.yaml:{message}: boom (in retention)"), "{text}");
        };
        let folded = "a: 1\nscript: >-\n  local a = 1\n  function F(o)\n    return a b\n\n  end\n";
        check(folded, (1, 13), "a.yaml:4:3", "3 (line 1 of the script)");
        check(folded, (2, 12), "a.yaml:5:14", "5");
        check("script: function F(o) return a end\n", (1, 15), "a.yaml:1:23", "1");
        check("script: \"function F(o) return a end\"\n", (1, 1), "a.yaml:1:10", "1");
        check(
            "script: 'return\n  a'\n",
            (1, 8),
            "a.yaml:2:3",
            "1 (line 1 of the script)",
        );
        check(
            "script: \"a\\nb\"\n",
            (2, 1),
            "a.yaml:1 (line 2, column 1 of the script)",
            "1 (line 2 of the script)",
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
