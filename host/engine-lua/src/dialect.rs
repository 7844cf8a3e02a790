//! Syntax differences between the Lua of Karmada's interpreter and Luau.
//!
//! Two constructs that are valid in scripts for Karmada are supported by rewriting the text before compilation,
//! without moving a line: `goto`, if it is equivalent to `continue` or `break`, and the table `arg` of functions with
//! `...`. Any other `goto` is an error that names its line. `foreign` finds the opposite: syntax that Luau accepts
//! and Karmada does not.

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

/// Replacement of a part of the text.
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

/// Rewrites a text for Luau. Returns `None` if no change is needed, or an error for a `goto` without an equivalent.
pub(crate) fn bridged(text: &str) -> Result<Option<String>, Difference> {
    let tokens = tokens(text);
    let mentions = |word: &str| tokens.iter().any(|token| token.text == word);
    let mut edits = Vec::new();
    if mentions("goto") {
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

/// Block of statements: from its opening keyword to the keyword that ends it.
struct Block {
    opener: usize,
    end: usize,
    parent: Option<usize>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Chunk,
    Function,
    /// `for` and `while`.
    Loop,
    Repeat,
    /// `if` and `do`.
    Plain,
}

/// Jumps of a text.
struct Jumps<'t, 'a> {
    tokens: &'t [Token<'a>],
    blocks: Vec<Block>,
    /// Innermost block of each token.
    inside: Vec<usize>,
}

/// Part of the text between the outermost block left by a jump and the jump's label.
struct Region {
    start: usize,
    label: usize,
    jumps: Vec<usize>,
}

impl<'t, 'a> Jumps<'t, 'a> {
    fn new(tokens: &'t [Token<'a>]) -> Self {
        let mut blocks = vec![Block { opener: 0, end: tokens.len(), parent: None, kind: Kind::Chunk }];
        let (mut inside, mut open, mut loop_heads) = (Vec::with_capacity(tokens.len()), vec![0], 0_usize);
        for (index, token) in tokens.iter().enumerate() {
            let current = open.last().copied().unwrap_or(0);
            let is_field = index > 0 && tokens.get(index - 1).is_some_and(|before| matches!(before.text, "." | ":"));
            let opens = match token.text {
                _ if is_field => None,
                "function" => Some(Kind::Function),
                "repeat" => Some(Kind::Repeat),
                "for" | "while" => {
                    loop_heads += 1;
                    Some(Kind::Loop)
                }
                "do" if loop_heads > 0 => {
                    loop_heads -= 1;
                    None
                }
                "if" | "do" => Some(Kind::Plain),
                _ => None,
            };
            let closes = !is_field && matches!(token.text, "end" | "until");
            if let Some(kind) = opens {
                open.push(blocks.len());
                blocks.push(Block { opener: index, end: tokens.len(), parent: Some(current), kind });
            }
            inside.push(current);
            if closes
                && open.len() > 1
                && let Some(closed) = open.pop().and_then(|block| blocks.get_mut(block))
            {
                closed.end = index;
            }
        }
        Self { tokens, blocks, inside }
    }

    fn text(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| token.text)
    }

    fn block_of(&self, index: usize) -> usize {
        self.inside.get(index).copied().unwrap_or(0)
    }

    fn no_equivalent(&self, jump: usize) -> Difference {
        let (line, column) = self.tokens.get(jump).map_or((0, 0), |token| (token.line, token.column));
        let message = format!(
            "goto {} has no equivalent here; only jumps to the end of a loop's body, and jumps forward out of blocks that \
             are no loops, are understood",
            self.text(jump + 1)
        );
        Difference { line, column, message }
    }

    /// Returns the blocks around a token, innermost first, up to and including `outer`; `None` if `outer` does not
    /// contain the token.
    fn blocks_up_to(&self, index: usize, outer: usize) -> Option<Vec<usize>> {
        let (mut path, mut current) = (Vec::new(), self.block_of(index));
        loop {
            path.push(current);
            if current == outer {
                return Some(path);
            }
            current = self.blocks.get(current)?.parent?;
        }
    }

    fn bridge(&self, edits: &mut Vec<Edit>) -> Result<(), Difference> {
        let is_jump =
            |index: &usize| self.text(*index) == "goto" && self.tokens.get(index + 1).is_some_and(Token::is_word);
        let jumps: Vec<_> = (0..self.tokens.len()).filter(is_jump).collect();
        let mut regions: Vec<Region> = Vec::new();
        for jump in jumps {
            let label = self.label_of(jump).ok_or_else(|| self.no_equivalent(jump))?;
            let home = self.block_of(label);
            let path = self.blocks_up_to(jump, home).ok_or_else(|| self.no_equivalent(jump))?;
            let left = path.split_last().map_or(&[][..], |(_, left)| left);
            let crosses = left
                .iter()
                .any(|block| self.blocks.get(*block).is_some_and(|block| !matches!(block.kind, Kind::Plain)));
            if crosses {
                return Err(self.no_equivalent(jump));
            }
            let start = left.last().and_then(|block| self.blocks.get(*block)).map_or(jump, |block| block.opener);
            match regions.iter_mut().find(|region| region.label == label) {
                Some(region) => {
                    region.start = region.start.min(start);
                    region.jumps.push(jump);
                }
                None => regions.push(Region { start, label, jumps: vec![jump] }),
            }
        }
        for region in &regions {
            self.replace(region, &regions, edits)?;
        }
        Ok(())
    }

    /// Returns the label of a jump, if it follows the jump in a block that contains the jump.
    fn label_of(&self, jump: usize) -> Option<usize> {
        let name = self.text(jump + 1);
        let is_label =
            |index: &usize| self.text(*index) == "::" && self.text(index + 1) == name && self.text(index + 2) == "::";
        let mut labels = (jump..self.tokens.len()).filter(is_label);
        labels.find(|label| self.blocks_up_to(jump, self.block_of(*label)).is_some())
    }

    /// Replaces the jumps of a region. A jump to the end of a loop's body becomes `continue`. Any other becomes
    /// `break` of a single-iteration loop around the code that it skips.
    fn replace(&self, region: &Region, all: &[Region], edits: &mut Vec<Edit>) -> Result<(), Difference> {
        let first = region.jumps.first().copied().unwrap_or(region.start);
        let home = self.blocks.get(self.block_of(region.label)).ok_or_else(|| self.no_equivalent(first))?;
        let goes_on = home.kind == Kind::Loop && region.label + 3 == home.end;
        let overlaps =
            |other: &Region| other.label != region.label && other.start < region.label && region.start < other.label;
        // A `break` in the skipped code belongs to an enclosing loop; the additional loop would capture it.
        let breaks = |index: usize| {
            self.text(index) == "break"
                && self.blocks_up_to(index, self.block_of(region.label)).is_some_and(|path| {
                    let left = path.split_last().map_or(&[][..], |(_, left)| left);
                    left.iter().all(|block| self.blocks.get(*block).is_some_and(|block| block.kind == Kind::Plain))
                })
        };
        if !goes_on && (all.iter().any(overlaps) || (region.start..region.label).any(breaks)) {
            return Err(self.no_equivalent(first));
        }
        let word = if goes_on { "do continue end" } else { "do break end" };
        for jump in &region.jumps {
            self.put(edits, *jump, jump + 1, word);
        }
        self.put(edits, region.label, region.label + 2, if goes_on { "" } else { "until true" });
        if let Some(start) = self.tokens.get(region.start).filter(|_| !goes_on) {
            edits.push(Edit { start: start.start, end: start.start, text: "repeat ".to_owned() });
        }
        Ok(())
    }

    /// Replaces the tokens from `first` to `last`, preserving the line breaks between them.
    fn put(&self, edits: &mut Vec<Edit>, first: usize, last: usize, text: &str) {
        if let (Some(from), Some(to)) = (self.tokens.get(first), self.tokens.get(last)) {
            let text = format!("{text}{}", "\n".repeat(to.line - from.line));
            edits.push(Edit { start: from.start, end: to.end(), text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_become_what_luau_has() {
        let check = |text: &str, expected: &str| {
            let actual = bridged(text).map(|bridged| bridged.unwrap_or_else(|| text.to_owned()));
            assert_eq!(actual.as_deref(), Ok(expected), "{text}");
        };
        check("return 'goto x'", "return 'goto x'");
        check(
            "for i = 1, 3 do if i == 2 then goto next end f(i) ::next:: end",
            "for i = 1, 3 do if i == 2 then do continue end end f(i)  end",
        );
        check(
            "goto done; do return 1 end ::done:: return 2",
            "repeat do break end; do return 1 end until true return 2",
        );
        check(
            "local a\nif x then\n  goto out\nend\nf()\n::out::\nreturn a",
            "local a\nrepeat if x then\n  do break end\nend\nf()\nuntil true\nreturn a",
        );
        check("while x do\n  goto\n  next ::next:: end", "while x do\n  do continue end\n  end");
    }

    #[test]
    fn a_jump_without_equivalent_names_its_line() {
        let check = |text: &str, line: usize| {
            assert_eq!(bridged(text).map_err(|difference| difference.line), Err(line), "{text}");
        };
        check("::again::\nf()\ngoto again", 3);
        check("for i = 1, 3 do\n for j = 1, 3 do\n goto out end end ::out::", 3);
        check("while x do\n if a then goto out end\n if b then break end\n ::out:: f() end", 2);
        check("goto nowhere", 1);
        check("local function f() goto out end ::out::", 1);
    }

    #[test]
    fn functions_with_dots_have_arg() {
        let actual = bridged("function f(a, ...) return arg.n end function g(arg, ...) return arg end");
        let expected = "function f(a, ...) local arg = {n = select(\"#\", ...), ...} return arg.n end \
                        function g(arg, ...) return arg end";
        assert_eq!(actual, Ok(Some(expected.to_owned())));
    }
}
