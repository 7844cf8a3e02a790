//! Tokens of a Lua text, with just enough detail to recognize statements.

/// Part of the text other than white space and comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// Text of the token; a string includes its quotes.
    pub(crate) text: &'a str,
    /// Start offset in bytes.
    pub(crate) start: usize,
    /// Line of the start, starting at 1.
    pub(crate) line: usize,
    /// Column of the start in characters, starting at 1.
    pub(crate) column: usize,
}

impl Token<'_> {
    /// Returns the end offset in bytes.
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Returns true for a name or a keyword.
    pub(crate) fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }
}

/// Operators of more than one character, longest first. Some are not valid in Lua; callers check that.
const OPERATORS: [&str; 20] = [
    "...", "..=", "//=", "..", "==", "~=", "<=", ">=", "::", "//", "+=", "-=", "*=", "/=", "%=", "^=", "->", "<<",
    ">>", "!=",
];

/// Returns the tokens of a text. Text that is not Lua yields single characters.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let (mut tokens, mut at, mut line, mut column) = (Vec::new(), 0, 1, 1);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let length = token_length(rest);
        let piece = rest.get(..length).unwrap_or(rest);
        if !piece.starts_with(char::is_whitespace) && !piece.starts_with("--") {
            tokens.push(Token {
                text: piece,
                start: at,
                line,
                column,
            });
        }
        line += piece.matches('\n').count();
        column = match piece.rsplit_once('\n') {
            Some((_, last)) => 1 + last.chars().count(),
            None => column + piece.chars().count(),
        };
        at += piece.len();
    }
    tokens
}

/// Returns the length of the first token, comment or run of white space, in bytes.
fn token_length(text: &str) -> usize {
    let run = |fits: fn(char) -> bool| text.find(|c: char| !fits(c)).unwrap_or(text.len());
    let first = text.chars().next().unwrap_or(' ');
    if first.is_whitespace() {
        return run(char::is_whitespace);
    }
    if let Some(comment) = text.strip_prefix("--") {
        let long = comment.starts_with('[').then(|| long_bracket(comment)).flatten();
        return 2 + long.unwrap_or_else(|| comment.find('\n').unwrap_or(comment.len()));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        return run(|c| c.is_ascii_alphanumeric() || c == '_');
    }
    let digit_after_dot = first == '.' && text[1..].starts_with(|c: char| c.is_ascii_digit());
    if first.is_ascii_digit() || digit_after_dot {
        return number(text);
    }
    if first == '"' || first == '\'' {
        return quoted(text, first);
    }
    if first == '['
        && let Some(length) = long_bracket(text)
    {
        return length;
    }
    let operator = OPERATORS.into_iter().find(|operator| text.starts_with(operator));
    operator.map_or(first.len_utf8(), str::len)
}

/// Returns the length of a number. `1..2` is a number, an operator and a number; `1e-3` is one number.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let exponent_sign = matches!(byte, b'+' | b'-')
            && !text.starts_with("0x")
            && !text.starts_with("0X")
            && at
                .checked_sub(1)
                .and_then(|before| bytes.get(before))
                .is_some_and(|before| matches!(before, b'e' | b'E'));
        let dot = *byte == b'.' && bytes.get(at + 1) != Some(&b'.');
        if !byte.is_ascii_alphanumeric() && !dot && !exponent_sign {
            break;
        }
        at += 1;
    }
    at.max(1)
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return index,
            c if c == quote => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of `[[ … ]]` or `[==[ … ]==]`, if the text begins with one.
fn long_bracket(text: &str) -> Option<usize> {
    let level = text[1..].find(|c| c != '=')?;
    let opened = text.get(1 + level..)?.starts_with('[');
    let close = format!("]{}]", "=".repeat(level));
    opened.then(|| text.find(&close).map_or(text.len(), |at| at + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_comments_and_numbers_are_distinguished() {
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<_> = tokens(text).iter().map(|token| token.text).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("a.b = 'goto' -- goto x", &["a", ".", "b", "=", "'goto'"]);
        check("--[[ goto\n x ]] y", &["y"]);
        check("s = [==[a]]b]==] z", &["s", "=", "[==[a]]b]==]", "z"]);
        check("1..2 .5 1e-3 0x1F-1", &["1", "..", "2", ".5", "1e-3", "0x1F", "-", "1"]);
        check("::x:: a//b", &["::", "x", "::", "a", "//", "b"]);
        check("\"a\\\"b\" t[i]", &["\"a\\\"b\"", "t", "[", "i", "]"]);
        check("'grün' ü", &["'grün'", "ü"]);
        check("'open", &["'open"]);
    }

    #[test]
    fn lines_are_counted_through_comments_and_long_texts() {
        let lines: Vec<_> = tokens("a\n--[[\n\n]] b [[\n]] c")
            .iter()
            .map(|token| token.line)
            .collect();
        assert_eq!(lines, [1, 4, 4, 5]);
    }
}
