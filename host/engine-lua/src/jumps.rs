//! Translation of `goto` and labels to Luau, which has neither.
//!
//! A jump to the end of a loop's body becomes `continue`. For any other label a loop is put around the statements
//! that the jump skips or repeats: `repeat … until true`, which a forward jump leaves, or `repeat … until not again`
//! from the label to the end of its block, which a backward jump repeats. A variable carries a jump, or a `break`
//! that now stands in that loop, out of further loops. No line moves.

mod replace;

use std::collections::HashMap;

use crate::edit::{Difference, Edit};
use crate::tokens::Token;

/// Maximum number of jumps and of labels in a script. The time of a translation grows with the square.
const JUMPS_MAX: usize = 200;
/// Maximum number of blocks around a statement of a script with jumps or labels.
const DEPTH_MAX: usize = 200;

/// Block of statements: from its opening keyword to the keyword that ends it. The parts of an `if` are blocks.
struct Block {
    /// First token of the statement: the `if` for each of its parts.
    opener: usize,
    end: usize,
    parent: Option<usize>,
    kind: Kind,
    /// Innermost block around its statements that a `break` can leave: itself, if it is a loop.
    left_by_break: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Chunk,
    Function,
    /// `for` and `while`.
    Loop,
    Repeat,
    /// Part of an `if`.
    If,
    Do,
}

/// Jumps of a text. After one pass over the tokens, the work for each jump depends on the limits alone.
pub(crate) struct Jumps<'t, 'a> {
    tokens: &'t [Token<'a>],
    blocks: Vec<Block>,
    /// Innermost block of each token.
    inside: Vec<usize>,
    /// Positions of `local` by their block, in the order of the text.
    locals: HashMap<usize, Vec<usize>>,
    /// Positions of `break` by the block that it leaves, in the order of the text.
    breaks: HashMap<usize, Vec<usize>>,
    /// First token that opens a block too deep.
    too_deep: Option<usize>,
}

/// Labels by their block and name.
type Labels<'a> = HashMap<(usize, &'a str), usize>;

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
        let chunk = Block {
            opener: 0,
            end: tokens.len(),
            parent: None,
            kind: Kind::Chunk,
            left_by_break: 0,
        };
        let mut jumps = Self {
            tokens,
            blocks: vec![chunk],
            inside: Vec::with_capacity(tokens.len()),
            locals: HashMap::new(),
            breaks: HashMap::new(),
            too_deep: None,
        };
        let (mut open, mut loop_heads) = (vec![0], 0_usize);
        for (index, token) in tokens.iter().enumerate() {
            let current = open.last().copied().unwrap_or(0);
            jumps.inside.push(current);
            if index > 0 && matches!(jumps.text(index - 1), "." | ":") {
                continue;
            }
            let opens = match token.text {
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
                "if" => Some(Kind::If),
                "do" => Some(Kind::Do),
                _ => None,
            };
            match token.text {
                "local" => jumps.locals.entry(current).or_default().push(index),
                "break" => {
                    let left = jumps.left_by_break(current);
                    jumps.breaks.entry(left).or_default().push(index);
                }
                "else" | "elseif" if jumps.kind(current) == Kind::If => {
                    open.pop();
                    let opener = jumps.close(current, index);
                    let parent = open.last().copied().unwrap_or(0);
                    open.push(jumps.open(opener, parent, Kind::If));
                }
                "end" | "until" if open.len() > 1 => {
                    open.pop();
                    jumps.close(current, index);
                }
                _ => {}
            }
            if let Some(kind) = opens {
                open.push(jumps.open(index, current, kind));
                if open.len() > DEPTH_MAX + 1 && jumps.too_deep.is_none() {
                    jumps.too_deep = Some(index);
                }
            }
        }
        jumps
    }

    /// Adds a block and returns its index.
    fn open(&mut self, opener: usize, parent: usize, kind: Kind) -> usize {
        let block = self.blocks.len();
        let left_by_break = match kind {
            Kind::Chunk | Kind::Function | Kind::Loop | Kind::Repeat => block,
            Kind::If | Kind::Do => self.left_by_break(parent),
        };
        self.blocks.push(Block {
            opener,
            end: self.tokens.len(),
            parent: Some(parent),
            kind,
            left_by_break,
        });
        block
    }

    /// Ends a block and returns its first token.
    fn close(&mut self, block: usize, end: usize) -> usize {
        let Some(block) = self.blocks.get_mut(block) else {
            return end;
        };
        block.end = end;
        block.opener
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

    fn left_by_break(&self, block: usize) -> usize {
        self.blocks.get(block).map_or(0, |block| block.left_by_break)
    }

    fn is_label(&self, index: usize) -> bool {
        let is_name = self.tokens.get(index + 1).is_some_and(Token::is_word);
        is_name && self.text(index) == "::" && self.text(index + 2) == "::"
    }

    fn line(&self, index: usize) -> usize {
        self.tokens.get(index).map_or(0, |token| token.line)
    }

    fn error_at(&self, index: usize, message: String) -> Difference {
        let column = self.tokens.get(index).map_or(0, |token| token.column);
        Difference {
            line: self.line(index),
            column,
            message,
        }
    }

    fn error(&self, jump: usize, reason: &str) -> Difference {
        self.error_at(jump, format!("goto {}: {reason}", self.text(jump + 1)))
    }

    fn no_equivalent(&self, jump: usize) -> Difference {
        self.error(
            jump,
            "this jump has no equivalent here; write a loop, or a function with return",
        )
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

    /// Returns the labels. As in Lua 5.2 and gopher-lua, a block has a name only once. (gopher-lua:
    /// `compile.go:AddNamedLabel`.)
    fn labels(&self) -> Result<Labels<'a>, Difference> {
        let (mut labels, mut index) = (Labels::new(), 0);
        while index < self.tokens.len() {
            if !self.is_label(index) {
                index += 1;
                continue;
            }
            let name = self.text(index + 1);
            if let Some(first) = labels.insert((self.block_of(index), name), index) {
                let message = format!("label {name} is already defined on line {}", self.line(first));
                return Err(self.error_at(index, message));
            }
            index += 3;
        }
        Ok(labels)
    }

    /// Adds the edits that replace all jumps and labels.
    pub(crate) fn bridge(&self, edits: &mut Vec<Edit>) -> Result<(), Difference> {
        if let Some(opener) = self.too_deep {
            let message = format!(
                "{}: a script with goto has at most {DEPTH_MAX} nested blocks",
                self.text(opener)
            );
            return Err(self.error_at(opener, message));
        }
        let named = self.labels()?;
        let mut labels: Vec<usize> = named.values().copied().collect();
        labels.sort_unstable();
        let is_jump =
            |index: &usize| self.text(*index) == "goto" && self.tokens.get(index + 1).is_some_and(Token::is_word);
        let jumps: Vec<usize> = (0..self.tokens.len()).filter(is_jump).take(JUMPS_MAX + 1).collect();
        if let Some(surplus) = jumps.get(JUMPS_MAX) {
            return Err(self.error(*surplus, &format!("a script has at most {JUMPS_MAX} jumps")));
        }
        if let Some(surplus) = labels.get(JUMPS_MAX) {
            let name = self.text(surplus + 1);
            return Err(self.error_at(
                *surplus,
                format!("label {name}: a script has at most {JUMPS_MAX} labels"),
            ));
        }
        let mut regions: Vec<Region> = Vec::new();
        for jump in jumps {
            let found = self.region(jump, &named)?;
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
        for label in labels
            .into_iter()
            .filter(|label| regions.iter().all(|region| region.label != *label))
        {
            self.put(edits, label, label + 2, "");
        }
        Ok(())
    }

    /// Returns the region of one jump.
    fn region(&self, jump: usize, labels: &Labels<'a>) -> Result<Region, Difference> {
        let label = self
            .label_of(jump, labels)
            .ok_or_else(|| self.error(jump, "no label of this name is visible"))?;
        let home = self.block_of(label);
        let left = self.blocks_below(jump, home).ok_or_else(|| self.no_equivalent(jump))?;
        let is_backward = label < jump;
        let (start, end) = if is_backward {
            (label, self.end_of(home))
        } else {
            (
                left.last()
                    .and_then(|block| self.blocks.get(*block))
                    .map_or(jump, |block| block.opener),
                label,
            )
        };
        if !is_backward && let Some(local) = self.entered_local(jump, label) {
            return Err(self.error(jump, &format!("it jumps into the scope of local {local}")));
        }
        // A condition after `until` sees the variables of the block, and would not see those of a loop in it.
        let is_hidden = is_backward && self.kind(home) == Kind::Repeat;
        if is_hidden || left.iter().any(|block| self.kind(*block) == Kind::Repeat) {
            return Err(self.no_equivalent(jump));
        }
        let loops = left
            .into_iter()
            .filter(|block| self.kind(*block) == Kind::Loop)
            .collect();
        Ok(Region {
            start,
            end,
            label,
            jumps: vec![jump],
            is_backward,
            loops,
        })
    }

    /// Returns the label of a jump: the one in the innermost block around the jump, in the same function.
    fn label_of(&self, jump: usize, labels: &Labels<'a>) -> Option<usize> {
        let (mut block, name) = (self.block_of(jump), self.text(jump + 1));
        loop {
            if let Some(label) = labels.get(&(block, name)) {
                return Some(*label);
            }
            let inner = self.blocks.get(block).filter(|inner| inner.kind != Kind::Function)?;
            block = inner.parent?;
        }
    }

    /// Returns the first variable that is declared between a jump and its label, in the block of the label. Its scope
    /// ends before a label that ends the block. (gopher-lua: `compile.go:ResolveGoto`.)
    fn entered_local(&self, jump: usize, label: usize) -> Option<&'a str> {
        let home = self.block_of(label);
        if self.ends_block(label) && self.kind(home) != Kind::Repeat {
            return None;
        }
        let locals = self.locals.get(&home)?;
        let local = locals
            .get(locals.partition_point(|local| *local < jump))
            .filter(|local| **local < label)?;
        let name = local + if self.text(local + 1) == "function" { 2 } else { 1 };
        Some(self.text(name))
    }

    fn end_of(&self, block: usize) -> usize {
        self.blocks.get(block).map_or(self.tokens.len(), |block| block.end)
    }

    /// Returns true if nothing but labels follows a label in its block.
    fn ends_block(&self, label: usize) -> bool {
        let mut next = label;
        while self.is_label(next) || self.text(next) == ";" {
            next += if self.text(next) == ";" { 1 } else { 3 };
        }
        self.end_of(self.block_of(label)) == next
    }
}

#[cfg(test)]
mod tests;
