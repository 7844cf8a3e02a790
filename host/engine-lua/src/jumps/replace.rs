//! Replacement of the jumps of a region by loops.

use super::{Jumps, Kind, Region};
use crate::edit::{Difference, Edit};

impl<'a> Jumps<'_, 'a> {
    /// Replaces the jumps of a region and its label.
    pub(super) fn replace(&self, region: &Region, all: &[Region], edits: &mut Vec<Edit>) -> Result<(), Difference> {
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
        let broken = if breaks.is_empty() {
            String::new()
        } else {
            format!("local break_{name} = false ")
        };
        if region.is_backward {
            let head = format!("{broken}repeat local goto_{name} = false");
            self.put(edits, region.label, region.label + 2, &head);
        } else {
            let jumped = if region.loops.is_empty() {
                String::new()
            } else {
                format!("local goto_{name} = false ")
            };
            if let Some(start) = self.tokens.get(region.start) {
                let text = format!("{broken}{jumped}repeat ");
                edits.push(Edit {
                    start: start.start,
                    end: start.start,
                    text,
                });
            }
            self.put(
                edits,
                region.label,
                region.label + 2,
                &format!("until true{}", self.carried_break(region)),
            );
        }
        for &at in breaks {
            self.put(edits, at, at, &format!("do break_{name} = true break end"));
        }
        Ok(())
    }

    pub(super) fn name(&self, region: &Region) -> &'a str {
        self.text(region.label + 1)
    }

    /// Returns the statement after the loop of a region that leaves the loop around it.
    pub(super) fn carried_break(&self, region: &Region) -> String {
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
            let word = if region.is_backward && !leaves_loop {
                "continue"
            } else {
                "break"
            };
            let carries = region.is_backward || leaves_loop;
            let set = if carries {
                format!("goto_{name} = true ")
            } else {
                String::new()
            };
            self.put(edits, *jump, jump + 1, &format!("do {set}{word} end"));
        }
        let mut loops = region.loops.clone();
        loops.sort_unstable();
        loops.dedup();
        for left in loops {
            let Some(block) = self.blocks.get(left) else { continue };
            let above = self.blocks_below(block.opener, home).unwrap_or_default();
            let is_outermost = above.iter().all(|block| self.kind(*block) != Kind::Loop);
            let word = if is_outermost && region.is_backward {
                "continue"
            } else {
                "break"
            };
            self.append(edits, block.end, &format!(" if goto_{name} then {word} end"));
        }
    }

    /// Returns true if the jumps of a region lead to the end of the body of their own loop.
    fn is_continue(&self, region: &Region) -> bool {
        let is_in_loop = self.kind(self.block_of(region.label)) == Kind::Loop;
        !region.is_backward && region.loops.is_empty() && is_in_loop && self.ends_block(region.label)
    }

    /// Returns each `break` in a region that leaves a loop around it.
    pub(super) fn breaks(&self, region: &Region) -> &[usize] {
        let left = self.left_by_break(self.block_of(region.label));
        let breaks = self.breaks.get(&left).map(Vec::as_slice).unwrap_or_default();
        let at = |index: usize| breaks.partition_point(|at| *at < index);
        breaks.get(at(region.start)..at(region.end)).unwrap_or_default()
    }

    /// Replaces the tokens from `first` to `last`, preserving the line breaks between them.
    pub(super) fn put(&self, edits: &mut Vec<Edit>, first: usize, last: usize, text: &str) {
        if let (Some(from), Some(to)) = (self.tokens.get(first), self.tokens.get(last)) {
            let text = format!("{text}{}", "\n".repeat(to.line - from.line));
            edits.push(Edit {
                start: from.start,
                end: to.end(),
                text,
            });
        }
    }

    /// Inserts a text after a token.
    pub(super) fn append(&self, edits: &mut Vec<Edit>, index: usize, text: &str) {
        if let Some(token) = self.tokens.get(index) {
            edits.push(Edit {
                start: token.end(),
                end: token.end(),
                text: text.to_owned(),
            });
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
