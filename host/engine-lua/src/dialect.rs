//! Syntax differences between the Lua of Karmada's interpreter and Luau.
//!
//! Two constructs that are valid in scripts for Karmada are supported by rewriting the text before compilation,
//! without moving a line: `goto` with its labels, see `jumps`, and the table `arg` of functions with `...`. `foreign`
//! finds the opposite: syntax that Luau accepts and Karmada does not.

use crate::jumps::Jumps;
use crate::tokens::{Token, tokens};

/// Construct in a script that another interpreter treats differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Line, starting at 1.
    pub line: usize,
    /// Column in characters, starting at 1.
    pub column: usize,
    /// The construct and its replacement.
    pub message: String,
}

/// Replacement of a part of the text, by offsets in bytes.
pub(crate) struct Edit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) text: String,
}

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
    for (index, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == "function") {
        let parameters = tokens.get(index + 1..).unwrap_or_default();
        let Some(open) = parameters.iter().position(|token| token.text == "(") else { continue };
        let Some(close) = parameters.iter().position(|token| token.text == ")") else { continue };
        let named = parameters.get(open..close).unwrap_or_default();
        let has = |word: &str| named.iter().any(|token| token.text == word);
        if let Some(closing) = parameters.get(close).filter(|_| has("...") && !has("arg")) {
            debug_assert!(token.start < closing.start);
            let at = closing.end();
            edits.push(Edit { start: at, end: at, text: " local arg = {n = select(\"#\", ...), ...}".to_owned() });
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
    }
}
