//! Syntax errors of scripts with line and column.

use mlua::chunk::Compiler;

use crate::dialect::bridged;
use crate::edit::Difference;

/// Syntax error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct SyntaxError {
    /// Line of the script, starting at 1.
    pub line: usize,
    /// Column of the first invalid character, in characters, starting at 1.
    pub column: usize,
    /// Message of the compiler.
    pub message: String,
}

/// Checks the syntax of a script, with the constructs that are translated for Luau.
pub fn check_syntax(code: &str) -> Result<(), SyntaxError> {
    if let Err(Difference { line, column, message }) = bridged(code) {
        return Err(SyntaxError { line, column, message });
    }
    let Some((line, message)) = mistake(code) else {
        return Ok(());
    };
    let column = column(code, line, &message);
    Err(SyntaxError { line, column, message })
}

/// Returns the line and text of the compiler's message, which has no column.
fn mistake(code: &str) -> Option<(usize, String)> {
    // A part of a script may have a jump without its label.
    let translated = bridged(code).ok().flatten();
    let message = match Compiler::new().compile(translated.as_deref().unwrap_or(code)) {
        Ok(_) => return None,
        Err(mlua::Error::SyntaxError { message, .. }) => message,
        Err(other) => other.to_string(),
    };
    let located = message
        .split_once(':')
        .and_then(|(line, words)| Some((line.trim().parse().ok()?, words.trim())));
    Some(located.map_or((1, message.clone()), |(line, words)| (line, words.to_owned())))
}

/// Returns the column of the token that the message ends with, for example `got 'end'`. If the line has that token
/// more than once, it is the first one at which truncating the text reproduces the message.
fn column(code: &str, line: usize, message: &str) -> usize {
    let start = code
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum::<usize>();
    let rest = code.get(start..).unwrap_or_default();
    let text = rest.lines().next().unwrap_or_default();
    let column_at = |offset: usize| 1 + text.get(..offset).unwrap_or(text).chars().count();
    let word = message
        .rsplit_once("got '")
        .and_then(|(_, word)| word.strip_suffix('\''));
    let Some(word) = word else {
        return column_at(text.len() - text.trim_start().len());
    };
    let places: Vec<usize> = text.match_indices(word).map(|(offset, _)| offset).collect();
    let has_it = |offset: &usize| {
        let cut = code.get(..start + *offset + word.len()).unwrap_or(code);
        mistake(cut).is_some_and(|(at, words)| at == line && words == message)
    };
    // A longer text has the mistake too, so that few of the places have to be compiled.
    match places
        .get(places.partition_point(|offset| !has_it(offset)))
        .or(places.first())
    {
        Some(offset) => column_at(*offset),
        None => column_at(text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syntax_error_has_line_and_column() {
        let check = |code: &str, expected: Option<(usize, usize, &str)>| {
            let found = check_syntax(code).err();
            let actual = found.as_ref().map(|error| (error.line, error.column));
            assert_eq!(
                actual,
                expected.map(|(line, column, _)| (line, column)),
                "{code}: {found:?}"
            );
            let words = expected.map_or("", |(_, _, words)| words);
            assert!(found.is_none_or(|error| error.message.contains(words)), "{code}");
        };
        check("return 1", None);
        check("function f(obj)\n  return obj.\nend", Some((3, 1, "got 'end'")));
        // The token occurs twice on the line; the second one is invalid.
        check("function f(a, b)\n  return b b\n", Some((2, 12, "got 'b'")));
        check("for i = 1, 3 do\n  goto continue\n  ::continue::\nend", None);
        check("::top:: ::other:: if a then goto top end", None);
        check("if a then\n  goto nowhere end", Some((2, 3, "no label of this name")));
        check("goto out ::out::\nreturn = 1", Some((2, 8, "got '='")));
        check("::a::\n::a::", Some((2, 1, "label a is already defined on line 1")));
    }

    /// A compilation of the text up to each of the places would take hours.
    #[test]
    fn the_column_in_a_long_line_is_found_with_few_compilations() {
        let line = "b = b ".repeat(50_000);
        let error = check_syntax(&format!("{line}return b b")).unwrap_err();
        assert_eq!((error.line, error.column), (1, line.len() + 10));
    }
}
