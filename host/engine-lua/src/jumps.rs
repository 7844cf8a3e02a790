//! Translation of `goto` and labels to Luau, which has neither.
//!
//! A jump to the end of a loop's body becomes `continue`. For any other label a loop is put around the statements
//! that the jump skips or repeats: `repeat … until true`, which a forward jump leaves, or `repeat … until not again`
//! from the label to the end of its block, which a backward jump repeats. A variable carries a jump, or a `break`
//! that now stands in that loop, out of further loops. No line moves.

use crate::dialect::{Difference, Edit};
use crate::tokens::Token;

/// Maximum number of jumps and of labels in a text. Their translation costs as much as many passes over the text.
const JUMPS_MAX: usize = 200;

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
pub(crate) struct Jumps<'t, 'a> {
    tokens: &'t [Token<'a>],
    blocks: Vec<Block>,
    /// Innermost block of each token.
    inside: Vec<usize>,
}

/// Statements that jumps to one label skip or repeat, as positions of tokens.
struct Region {
    /// First token: the outermost block that a jump leaves, or the label of a backward jump.
    start: usize,
    /// End, exclusive: the label, or the end of its block for a backward jump.
    end: usize,
    label: usize,
    jumps: Vec<usize>,
    is_backward: bool,
    /// Loops that a jump leaves, innermost first within each jump.
    loops: Vec<usize>,
}

impl Region {
    fn contains(&self, index: usize) -> bool {
        (self.start..self.end).contains(&index)
    }
}

impl<'t, 'a> Jumps<'t, 'a> {
    pub(crate) fn new(tokens: &'t [Token<'a>]) -> Self {
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

    fn kind(&self, block: usize) -> Kind {
        self.blocks.get(block).map_or(Kind::Chunk, |block| block.kind)
    }

    fn is_label(&self, index: usize) -> bool {
        let is_name = self.tokens.get(index + 1).is_some_and(Token::is_word);
        is_name && self.text(index) == "::" && self.text(index + 2) == "::"
    }

    fn error(&self, jump: usize, reason: &str) -> Difference {
        let (line, column) = self.tokens.get(jump).map_or((0, 0), |token| (token.line, token.column));
        Difference { line, column, message: format!("goto {}: {reason}", self.text(jump + 1)) }
    }

    fn no_equivalent(&self, jump: usize) -> Difference {
        self.error(jump, "this jump has no equivalent here; write a loop, or a function with return")
    }

    /// Returns the blocks that enclose a token up to `outer`, innermost first and without `outer`; `None` if `outer`
    /// does not contain the token.
    fn blocks_below(&self, index: usize, outer: usize) -> Option<Vec<usize>> {
        let (mut path, mut current) = (Vec::new(), self.block_of(index));
        while current != outer {
            path.push(current);
            current = self.blocks.get(current)?.parent?;
        }
        Some(path)
    }

    /// Adds the edits that replace all jumps and labels.
    pub(crate) fn bridge(&self, edits: &mut Vec<Edit>) -> Result<(), Difference> {
        let is_jump =
            |index: &usize| self.text(*index) == "goto" && self.tokens.get(index + 1).is_some_and(Token::is_word);
        let jumps: Vec<usize> = (0..self.tokens.len()).filter(is_jump).collect();
        let labels: Vec<usize> = (0..self.tokens.len()).filter(|index| self.is_label(*index)).collect();
        if let Some(surplus) = jumps.get(JUMPS_MAX).or(labels.get(JUMPS_MAX)) {
            return Err(self.error(*surplus, &format!("a script has at most {JUMPS_MAX} jumps and labels")));
        }
        let mut regions: Vec<Region> = Vec::new();
        for jump in jumps {
            let found = self.region(jump, &labels)?;
            match regions.iter_mut().find(|region| region.label == found.label) {
                Some(region) if region.is_backward != found.is_backward => return Err(self.no_equivalent(jump)),
                Some(region) => {
                    region.start = region.start.min(found.start);
                    region.jumps.extend(found.jumps);
                    region.loops.extend(found.loops);
                }
                None => regions.push(found),
            }
        }
        // The outer one of two loops that begin at one token comes first.
        regions.sort_by_key(|region| (region.start, usize::MAX - region.end));
        for region in &regions {
            self.replace(region, &regions, edits)?;
        }
        // The inner one of two loops that end at one token comes first.
        for region in regions.iter().rev().filter(|region| region.is_backward) {
            let until = format!(" until not goto_{}{}", self.name(region), self.carried_break(region));
            self.append(edits, region.end.saturating_sub(1), &until);
        }
        for label in labels.into_iter().filter(|label| regions.iter().all(|region| region.label != *label)) {
            self.put(edits, label, label + 2, "");
        }
        Ok(())
    }

    /// Returns the region of one jump.
    fn region(&self, jump: usize, labels: &[usize]) -> Result<Region, Difference> {
        let label = self.label_of(jump, labels).ok_or_else(|| self.error(jump, "no label of this name is visible"))?;
        let home = self.block_of(label);
        let left = self.blocks_below(jump, home).ok_or_else(|| self.no_equivalent(jump))?;
        let is_backward = label < jump;
        let (start, end) = if is_backward {
            (label, self.end_of_part(label))
        } else {
            (left.last().and_then(|block| self.blocks.get(*block)).map_or(jump, |block| block.opener), label)
        };
        // A condition after `until` sees the variables of the block, and would not see those of a loop in it.
        let is_hidden = is_backward && self.kind(home) == Kind::Repeat;
        if is_hidden || left.iter().any(|block| self.kind(*block) == Kind::Repeat) {
            return Err(self.no_equivalent(jump));
        }
        let loops = left.into_iter().filter(|block| self.kind(*block) == Kind::Loop).collect();
        Ok(Region { start, end, label, jumps: vec![jump], is_backward, loops })
    }

    /// Returns the label of a jump: the first one after it, or else before it, in a block around the jump and in the
    /// same function.
    fn label_of(&self, jump: usize, labels: &[usize]) -> Option<usize> {
        let is_visible = |label: &usize| {
            self.text(*label + 1) == self.text(jump + 1)
                && self
                    .blocks_below(jump, self.block_of(*label))
                    .is_some_and(|below| below.iter().all(|block| self.kind(*block) != Kind::Function))
                && !self.is_in_another_part(jump, *label)
        };
        let visible = || labels.iter().copied().filter(is_visible);
        visible().find(|label| *label > jump).or_else(|| visible().next())
    }

    /// Returns true if an `else` of the label's block separates the two.
    fn is_in_another_part(&self, jump: usize, label: usize) -> bool {
        let home = self.block_of(label);
        (jump.min(label)..jump.max(label)).any(|index| self.begins_part(index, home))
    }

    fn begins_part(&self, index: usize, home: usize) -> bool {
        matches!(self.text(index), "else" | "elseif") && self.block_of(index) == home
    }

    /// Returns the end of the statements that follow a label in its block.
    fn end_of_part(&self, label: usize) -> usize {
        let home = self.block_of(label);
        let end = self.blocks.get(home).map_or(self.tokens.len(), |block| block.end);
        (label..end).find(|index| self.begins_part(*index, home)).unwrap_or(end)
    }

    /// Returns true if nothing but labels follows a label in the body of a loop.
    fn ends_body(&self, label: usize) -> bool {
        let mut next = label;
        while self.is_label(next) || self.text(next) == ";" {
            next += if self.text(next) == ";" { 1 } else { 3 };
        }
        let home = self.block_of(label);
        self.kind(home) == Kind::Loop && self.blocks.get(home).is_some_and(|block| block.end == next)
    }

    /// Replaces the jumps of a region and its label.
    fn replace(&self, region: &Region, all: &[Region], edits: &mut Vec<Edit>) -> Result<(), Difference> {
        if self.is_continue(region) {
            for jump in &region.jumps {
                self.put(edits, *jump, jump + 1, "do continue end");
            }
            self.put(edits, region.label, region.label + 2, "");
            return Ok(());
        }
        let first = region.jumps.first().copied().unwrap_or(region.start);
        let breaks = self.breaks(region);
        let others: Vec<&Region> = all.iter().filter(|other| other.label != region.label).collect();
        let captures_break = |other: &&Region| {
            let is_nested = region.start <= other.start && other.end <= region.end && !self.is_continue(other);
            is_nested && breaks.iter().any(|at| other.contains(*at))
        };
        if others.iter().any(|other| clash(region, other)) || others.iter().any(captures_break) {
            return Err(self.no_equivalent(first));
        }
        self.replace_jumps(region, edits);
        let name = self.name(region);
        let broken = if breaks.is_empty() { String::new() } else { format!("local break_{name} = false ") };
        if region.is_backward {
            let head = format!("{broken}repeat local goto_{name} = false");
            self.put(edits, region.label, region.label + 2, &head);
        } else {
            let jumped = if region.loops.is_empty() { String::new() } else { format!("local goto_{name} = false ") };
            if let Some(start) = self.tokens.get(region.start) {
                let text = format!("{broken}{jumped}repeat ");
                edits.push(Edit { start: start.start, end: start.start, text });
            }
            self.put(edits, region.label, region.label + 2, &format!("until true{}", self.carried_break(region)));
        }
        for at in breaks {
            self.put(edits, at, at, &format!("do break_{name} = true break end"));
        }
        Ok(())
    }

    fn name(&self, region: &Region) -> &'a str {
        self.text(region.label + 1)
    }

    /// Returns the statement after the loop of a region that leaves the loop around it.
    fn carried_break(&self, region: &Region) -> String {
        if self.breaks(region).is_empty() {
            return String::new();
        }
        format!(" if break_{} then break end", self.name(region))
    }

    /// Replaces the jumps of a region that has a loop of its own.
    fn replace_jumps(&self, region: &Region, edits: &mut Vec<Edit>) {
        let (home, name) = (self.block_of(region.label), self.name(region));
        for jump in &region.jumps {
            let left = self.blocks_below(*jump, home).unwrap_or_default();
            let leaves_loop = left.iter().any(|block| self.kind(*block) == Kind::Loop);
            let word = if region.is_backward && !leaves_loop { "continue" } else { "break" };
            let carries = region.is_backward || leaves_loop;
            let set = if carries { format!("goto_{name} = true ") } else { String::new() };
            self.put(edits, *jump, jump + 1, &format!("do {set}{word} end"));
        }
        let mut loops = region.loops.clone();
        loops.sort_unstable();
        loops.dedup();
        for left in loops {
            let Some(block) = self.blocks.get(left) else { continue };
            let above = self.blocks_below(block.opener, home).unwrap_or_default();
            let is_outermost = above.iter().all(|block| self.kind(*block) != Kind::Loop);
            let word = if is_outermost && region.is_backward { "continue" } else { "break" };
            self.append(edits, block.end, &format!(" if goto_{name} then {word} end"));
        }
    }

    /// Returns true if the jumps of a region lead to the end of the body of their own loop.
    fn is_continue(&self, region: &Region) -> bool {
        !region.is_backward && region.loops.is_empty() && self.ends_body(region.label)
    }

    /// Returns each `break` in a region that leaves a loop around it.
    fn breaks(&self, region: &Region) -> Vec<usize> {
        let home = self.block_of(region.label);
        let leaves = |at: &usize| {
            let is_plain = |below: Vec<usize>| below.iter().all(|block| self.kind(*block) == Kind::Plain);
            self.text(*at) == "break" && self.blocks_below(*at, home).is_some_and(is_plain)
        };
        (region.start..region.end).filter(leaves).collect()
    }

    /// Replaces the tokens from `first` to `last`, preserving the line breaks between them.
    fn put(&self, edits: &mut Vec<Edit>, first: usize, last: usize, text: &str) {
        if let (Some(from), Some(to)) = (self.tokens.get(first), self.tokens.get(last)) {
            let text = format!("{text}{}", "\n".repeat(to.line - from.line));
            edits.push(Edit { start: from.start, end: to.end(), text });
        }
    }

    /// Inserts a text after a token.
    fn append(&self, edits: &mut Vec<Edit>, index: usize, text: &str) {
        if let Some(token) = self.tokens.get(index) {
            edits.push(Edit { start: token.end(), end: token.end(), text: text.to_owned() });
        }
    }
}

/// Returns true if the loop of one region would cut through the other, or capture its jumps.
fn clash(region: &Region, other: &Region) -> bool {
    let is_apart = other.end <= region.start || region.end <= other.start;
    let is_within = region.start <= other.start && other.end <= region.end;
    let is_around = other.start <= region.start && region.end <= other.end;
    let captures = other.jumps.iter().any(|jump| region.contains(*jump));
    !is_apart && !is_within && (!is_around || captures)
}

#[cfg(test)]
mod tests {
    use crate::dialect::bridged;

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
        check("f() ::unused::", "f() ");
    }

    #[test]
    fn backward_jumps_become_loops() {
        let check = |text: &str, expected: &str| {
            assert_eq!(bridged(text), Ok(Some(expected.to_owned())), "{text}");
        };
        check(
            "::top:: i = i + 1 if i < 3 then goto top end return i -- done",
            "repeat local goto_top = false i = i + 1 if i < 3 then do goto_top = true continue end end return i \
             until not goto_top -- done",
        );
        check(
            "::top:: for i = 1, 3 do if f(i) then goto top end end",
            "repeat local goto_top = false for i = 1, 3 do if f(i) then do goto_top = true break end end end \
             if goto_top then continue end until not goto_top",
        );
    }

    #[test]
    fn jumps_leave_nested_loops() {
        let actual = bridged("for i = 1, 3 do\n for j = 1, 3 do\n if f(i, j) then goto out end end end ::out:: return");
        let expected = "local goto_out = false repeat for i = 1, 3 do\n for j = 1, 3 do\n if f(i, j) then \
                        do goto_out = true break end end end if goto_out then break end end \
                        if goto_out then break end until true return";
        assert_eq!(actual, Ok(Some(expected.to_owned())));
    }

    #[test]
    fn a_break_still_leaves_its_loop() {
        let actual = bridged("while x do\n if a then goto out end\n if b then break end\n ::out:: f() end");
        let expected = "while x do\n local break_out = false repeat if a then do break end end\n if b then \
                        do break_out = true break end end\n until true if break_out then break end f() end";
        assert_eq!(actual, Ok(Some(expected.to_owned())));
    }

    #[test]
    fn a_jump_without_equivalent_names_its_line() {
        let check = |text: &str, line: usize| {
            assert_eq!(bridged(text).map_err(|difference| difference.line), Err(line), "{text}");
        };
        check("goto nowhere", 1);
        check("local function f() goto out end ::out::", 1);
        check("if a then\n goto out else ::out:: end", 2);
        check("if a then goto x end\nif b then goto y end f() ::x:: g() ::y::", 1);
        check("repeat ::top:: local x = f() if x then\ngoto top end until x", 2);
    }
}
