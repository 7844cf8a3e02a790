//! Syntax differences between the Lua of Karmada's interpreter and Luau.
//!
//! Two constructs that are valid in scripts for Karmada are supported by rewriting the text before compilation,
//! without moving a line: `goto` with its labels, see `jumps`, and the table `arg` of functions with `...`. `foreign`
//! finds the opposite: syntax that Luau accepts and Karmada does not.

use crate::edit::{Difference, Edit};
use crate::jumps::Jumps;
use crate::tokens::{Token, tokens};

/// Rewrites a text for Luau. Returns `None` if no change is needed, or an error for a `goto` without an equivalent.
pub(crate) fn bridged(text: &str) -> Result<Option<String>, Difference> {
    let tokens = tokens(text);
    let mentions = |word: &str| tokens.iter().any(|token| token.text == word);
    let mut edits = Vec::new();
    if mentions("goto") || mentions("::") {
        Jumps::new(&tokens).bridge(&mut edits)?;
    }
    if mentions("arg") && mentions("...") {
        varargs(&tokens, &mut edits);
    }
    if edits.is_empty() {
        return Ok(None);
    }
    edits.sort_by_key(|edit| (edit.start, edit.end));
    let (mut bridged, mut at) = (String::with_capacity(text.len()), 0);
    for edit in edits {
        bridged.push_str(text.get(at..edit.start).unwrap_or_default());
        bridged.push_str(&edit.text);
        at = edit.end;
    }
    bridged.push_str(text.get(at..).unwrap_or_default());
    Ok(Some(bridged))
}

/// Adds the table `arg` to functions whose last parameter is `...`, as in Lua 5.0 and Karmada.
fn varargs(tokens: &[Token<'_>], edits: &mut Vec<Edit>) {
    // Positions of the next parenthesis and names, while the tokens are read from the end.
    let (mut open, mut close, mut dots, mut arg) = (None, None, None, None);
    for (index, token) in tokens.iter().enumerate().rev() {
        match token.text {
            "(" => open = Some(index),
            ")" => (open, close) = (None, Some(index)),
            "..." => dots = Some(index),
            "arg" => arg = Some(index),
            "function" => {
                let (Some(open), Some(close)) = (open, close) else {
                    continue;
                };
                let is_parameter = |name: Option<usize>| name.is_some_and(|name| (open..close).contains(&name));
                let has_dots = is_parameter(dots);
                if let Some(closing) = tokens.get(close).filter(|_| has_dots && !is_parameter(arg)) {
                    let text = " local arg = {n = select(\"#\", ...), ...}".to_owned();
                    edits.push(Edit {
                        start: closing.end(),
                        end: closing.end(),
                        text,
                    });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_dots_have_arg() {
        let actual = bridged("function f(a, ...) return arg.n end function g(arg, ...) return arg end");
        let expected = "function f(a, ...) local arg = {n = select(\"#\", ...), ...} return arg.n end \
                        function g(arg, ...) return arg end";
        assert_eq!(actual, Ok(Some(expected.to_owned())));
        let method = bridged("function a.b:c(...) return #arg end f(function(x) return x end, ...)");
        let expected = "function a.b:c(...) local arg = {n = select(\"#\", ...), ...} return #arg end f(function(x) return x end, ...)";
        assert_eq!(method, Ok(Some(expected.to_owned())));
    }

    /// With a search from each of the functions this would take minutes.
    #[test]
    fn functions_without_parameters_take_one_pass() {
        assert_eq!(bridged(&format!("arg ... {}", "function ".repeat(100_000))), Ok(None));
        assert_eq!(bridged(&format!("{} arg ...)", "function( ".repeat(100_000))), Ok(None));
    }
}
