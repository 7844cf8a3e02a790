//! Syntax that Luau accepts and the Lua of Karmada's interpreter does not.

use crate::dialect::Difference;
use crate::syntax::{SyntaxError, check_syntax};
use crate::tokens::{Token, tokens};

/// Keywords and operators that are followed by a value.
const BEFORE_VALUES: [&str; 22] = [
    "=", "(", ",", "{", "[", "+", "-", "*", "/", "%", "^", "..", "==", "~=", "<", ">", "<=", ">=", "and", "or", "not",
    "return",
];

/// Finds constructs that Luau accepts and Karmada rejects, in the order of the text. A script with one of them works
/// only here.
pub fn foreign(text: &str) -> Vec<Difference> {
    let tokens = tokens(text);
    let found = |(index, token): (usize, &Token<'_>)| {
        let instead = sign(token.text).or_else(|| word(&tokens, index)).or_else(|| annotation(&tokens, index))?;
        Some(Difference { line: token.line, column: token.column, message: format!("{}: {instead}", token.text) })
    };
    tokens.iter().enumerate().filter_map(found).collect()
}

/// Checks that Karmada's API would accept a script: it is valid Lua without constructs that only Luau accepts.
pub fn check_portable(code: &str) -> Result<(), SyntaxError> {
    check_syntax(code)?;
    let Some(Difference { line, column, message }) = foreign(code).into_iter().next() else { return Ok(()) };
    Err(SyntaxError { line, column, message: format!("Karmada does not take {message}") })
}

fn sign(text: &str) -> Option<&'static str> {
    Some(match text {
        "//" | "//=" => "there is no integer division; write math.floor(a / b)",
        "+=" | "-=" | "*=" | "/=" | "%=" | "^=" | "..=" => "there are no compound assignments; write a = a + b",
        "`" => "there are no interpolated strings; join strings with ..",
        "&" | "|" | "<<" | ">>" => "there are no operators for bits",
        "!=" => "the operator is ~=",
        "->" => "there are no types; leave them out",
        _ => return None,
    })
}

fn at<'a>(tokens: &[Token<'a>], index: Option<usize>) -> &'a str {
    index.and_then(|index| tokens.get(index)).map_or("", |token| token.text)
}

/// Finds `continue` used as a statement and `if` used as an expression.
fn word(tokens: &[Token<'_>], index: usize) -> Option<&'static str> {
    let (before, after) = (index.checked_sub(1), at(tokens, index.checked_add(1)));
    match at(tokens, Some(index)) {
        "if" if BEFORE_VALUES.contains(&at(tokens, before)) => {
            Some("there is no such expression; write the statement, or a and b or c")
        }
        "continue" => {
            let begins = matches!(at(tokens, before), "then" | "do" | "else" | "repeat" | ";" | "end");
            let ends = matches!(after, "end" | "else" | "elseif" | "until" | ";");
            (begins && ends)
                .then_some("there is no such statement; write goto continue and ::continue:: before the end")
        }
        _ => None,
    }
}

/// Finds a type annotation: a colon that is not followed by a method name and arguments.
fn annotation(tokens: &[Token<'_>], index: usize) -> Option<&'static str> {
    if at(tokens, Some(index)) != ":" {
        return None;
    }
    let has_name = tokens.get(index + 1).is_some_and(Token::is_word);
    let arguments = at(tokens, index.checked_add(2));
    let is_method = has_name && arguments.starts_with(['(', '{', '"', '\'', '[']);
    (!is_method).then_some("there are no types; leave them out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_luau_understands_is_found() {
        let check = |text: &str, expected: &[(usize, usize)]| {
            let places: Vec<_> = foreign(text).iter().map(|found| (found.line, found.column)).collect();
            assert_eq!(places, expected, "{text}");
        };
        check("return a / b .. 'x // y' -- //", &[]);
        check("a = 1\nb = a // 2\na += 1", &[(2, 7), (3, 3)]);
        check("local x = if a then 1 else 2\nif a then b() end", &[(1, 11)]);
        check("for i = 1, 3 do\n  if i == 2 then continue end\nend", &[(2, 18)]);
        check("local continue = 1\nreturn continue", &[]);
        check("local x: number = 1\nlocal y = t:size()", &[(1, 8)]);
        check("function f(a, b: string) return a end", &[(1, 16)]);
        check("function t:f(a) return a:b() end", &[]);
        check("f(a:b())\nlocal z = s:format 'x' .. t:of {1}", &[]);
        check("local g = function(a): number return a end", &[(1, 22)]);
    }
}
