//! Syntax that Luau accepts and the Lua of Karmada's interpreter does not.

use crate::edit::Difference;
use crate::names::is_name;
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
        let instead = sign(token.text)
            .or_else(|| word(&tokens, index))
            .or_else(|| annotation(&tokens, index));
        let instead = instead.or_else(|| numeral(&tokens, index))?;
        Some(Difference {
            line: token.line,
            column: token.column,
            message: format!("{}: {instead}", token.text),
        })
    };
    tokens.iter().enumerate().filter_map(found).collect()
}

/// Checks that Karmada's API would accept a script: it is valid Lua without constructs that only Luau accepts.
pub fn check_portable(code: &str) -> Result<(), SyntaxError> {
    check_syntax(code)?;
    let Some(Difference { line, column, message }) = foreign(code).into_iter().next() else {
        return Ok(());
    };
    Err(SyntaxError {
        line,
        column,
        message: format!("Karmada does not take {message}"),
    })
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

/// Finds `continue` and `type` used as statements, `if` used as an expression, and `goto` used as a name.
fn word(tokens: &[Token<'_>], index: usize) -> Option<&'static str> {
    let (before, after) = (index.checked_sub(1), at(tokens, index.checked_add(1)));
    match at(tokens, Some(index)) {
        "if" if BEFORE_VALUES.contains(&at(tokens, before)) => {
            Some("there is no such expression; write the statement, or a and b or c")
        }
        "goto" if !tokens.get(index + 1).is_some_and(Token::is_word) => Some("the name is a keyword"),
        "type" if tokens.get(index + 1).is_some_and(is_name) => {
            let is_value = BEFORE_VALUES.contains(&at(tokens, before));
            (!is_value).then_some("there are no types; leave them out")
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

/// Finds binary numbers and separators between digits.
fn numeral(tokens: &[Token<'_>], index: usize) -> Option<&'static str> {
    let number = tokens
        .get(index)
        .filter(|token| token.text.starts_with(|c: char| c.is_ascii_digit()))?;
    let is_binary = number.text.starts_with("0b") || number.text.starts_with("0B");
    let follows = |next: &Token<'_>| next.start == number.end() && next.text.starts_with('_');
    let is_separated = tokens.get(index + 1).is_some_and(follows);
    (is_binary || is_separated).then_some("there are only decimal and hexadecimal numbers, without separators")
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
    fn jumps_and_labels_are_portable() {
        assert_eq!(
            check_portable("for i = 1, 3 do if f(i) then goto continue end ::continue:: end"),
            Ok(())
        );
        assert_eq!(check_portable("::top:: if f() then goto top end ::unused::"), Ok(()));
        assert!(check_portable("goto nowhere").is_err());
        assert!(check_portable("for i = 1, 3 do if f(i) then continue end end").is_err());
    }

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
        check("local a = 0b11\nlocal b = 1_000 + 0x1F + 1e3", &[(1, 11), (2, 11)]);
        check("type Size = number\nlocal kind = type\nkind(1)", &[(1, 1)]);
        check("goto = 1\ngoto done ::done::", &[(1, 1)]);
    }
}
