//! Causes of Luau's runtime errors: the variable or field that was nil, found in the text of the line.

use std::collections::BTreeSet;

use bulkhead_plugin::one_line;

use crate::names::{Defined, EXPLAINED_BYTES_MAX, is_name, no_member, undefined};
use crate::tokens::{Token, tokens};

/// Maximum number of causes in a message.
const CAUSES_MAX: usize = 3;
/// Maximum length of a message in characters.
const MESSAGE_CHARS_MAX: usize = 1_024;

/// Returns an error message of Luau with its cause, if the text of the script shows it. The message begins with
/// `origin:line: `.
pub(crate) fn explained(message: &str, origin: &str, text: &str) -> Option<String> {
    if text.len() > EXPLAINED_BYTES_MAX {
        return None;
    }
    let (line, words) = message.strip_prefix(origin)?.strip_prefix(':')?.split_once(": ")?;
    let line: usize = line.parse().ok()?;
    let all = tokens(text);
    let of_line: Vec<Token<'_>> = all.iter().filter(|token| token.line == line).copied().collect();
    let cause = Line {
        tokens: &of_line,
        defined: Defined::read(&all),
    }
    .cause(words)?;
    Some(one_line(&format!("{message}: {cause}"), MESSAGE_CHARS_MAX))
}

/// Tokens of the line that failed.
struct Line<'t, 'a> {
    tokens: &'t [Token<'a>],
    defined: Defined<'a>,
}

impl Line<'_, '_> {
    fn text(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| token.text)
    }

    /// Returns the cause of an error in the words of Luau.
    fn cause(&self, words: &str) -> Option<String> {
        if let Some(name) = words
            .strip_prefix("attempt to index nil with '")
            .and_then(|rest| rest.strip_suffix('\''))
        {
            return self.nil(self.owners(name));
        }
        if words == "attempt to index nil with number" {
            let opens = |index: usize| self.text(index) == "[" && index > 0;
            return self.nil(self.indexes(opens).filter_map(|index| self.ending_at(index - 1)));
        }
        if words == "attempt to call a nil value" {
            return self.uncallable();
        }
        if words.starts_with("attempt to compare") && words.contains("string") && words.contains("number") {
            return Some("convert the text with tonumber".to_owned());
        }
        if !words.contains("nil") {
            return None;
        }
        if words.starts_with("attempt to get length of") {
            let counted = self.indexes(|index| self.text(index) == "#");
            return self.nil(counted.filter_map(|index| self.starting_at(index + 1)));
        }
        // Luau quotes the names of its functions; those of the module kube are not quoted, as in Karmada.
        let quoted = words.split_once(" to '").and_then(|(_, rest)| rest.split('\'').next());
        let function = quoted.or_else(|| words.strip_prefix("bad argument #1 to ")?.split(' ').next());
        if let Some(function) = function {
            let calls = self.indexes(|index| self.text(index) == function && self.text(index + 1) == "(");
            return self.nil(calls.filter_map(|index| self.starting_at(index + 2)));
        }
        let operators: &[&str] = match words {
            words if words.starts_with("attempt to concatenate") => &[".."],
            words if words.starts_with("attempt to perform arithmetic") => &["+", "-", "*", "/", "%", "^"],
            words if words.starts_with("attempt to compare") => &["<", ">", "<=", ">="],
            _ => return None,
        };
        let found = self.indexes(|index| operators.contains(&self.text(index)));
        let operands = found.flat_map(|index| {
            let before = index.checked_sub(1).and_then(|before| self.ending_at(before));
            [before, self.starting_at(index + 1)]
        });
        self.nil(operands.flatten())
    }

    fn indexes<'s>(&'s self, fits: impl Fn(usize) -> bool + 's) -> impl Iterator<Item = usize> + 's {
        (0..self.tokens.len()).filter(move |index| fits(*index))
    }

    /// Returns the values whose member of this name is read.
    fn owners<'s>(&'s self, name: &'s str) -> impl Iterator<Item = String> + 's {
        let members = self.indexes(move |index| {
            let (before, text) = (
                index.checked_sub(1).map_or("", |before| self.text(before)),
                self.text(index),
            );
            let is_quoted = text
                .strip_prefix(['"', '\''])
                .and_then(|text| text.strip_suffix(['"', '\'']))
                == Some(name);
            (matches!(before, "." | ":") && text == name) || (before == "[" && is_quoted)
        });
        members.filter_map(|index| self.ending_at(index.checked_sub(2)?))
    }

    /// Returns the variable, with its fields and positions, that ends at a token.
    fn ending_at(&self, last: usize) -> Option<String> {
        let mut first = last;
        loop {
            if self.text(first) == "]" {
                // Only a position that is one token: `list[1]`, `map["key"]`, `list[i]`.
                first = first.checked_sub(3).filter(|opened| self.text(opened + 1) == "[")?;
                continue;
            }
            self.tokens.get(first).filter(|token| is_name(token))?;
            match first.checked_sub(2) {
                Some(before) if self.text(first - 1) == "." => first = before,
                _ => return Some(self.joined(first, last)),
            }
        }
    }

    /// Returns the variable, with its fields and positions, that starts at a token. A call has a value of its own.
    fn starting_at(&self, first: usize) -> Option<String> {
        self.tokens.get(first).filter(|token| is_name(token))?;
        let mut last = first;
        loop {
            let is_field = self.text(last + 1) == "." && self.tokens.get(last + 2).is_some_and(is_name);
            let is_position = self.text(last + 1) == "[" && self.text(last + 3) == "]";
            match self.text(last + 1) {
                _ if is_field => last += 2,
                _ if is_position => last += 3,
                "(" | ":" | "[" => return None,
                _ => return Some(self.joined(first, last)),
            }
        }
    }

    fn joined(&self, first: usize, last: usize) -> String {
        self.tokens
            .iter()
            .take(last + 1)
            .skip(first)
            .map(|token| token.text)
            .collect()
    }

    /// Formats the cause for the values that may be nil.
    fn nil(&self, values: impl Iterator<Item = String>) -> Option<String> {
        let mut distinct = BTreeSet::new();
        for value in values {
            distinct.insert(value);
            // A line can have thousands of long values, and they are not part of the memory of the call.
            if distinct.len() > CAUSES_MAX {
                return None;
            }
        }
        if let Some(first) = distinct.iter().find(|value| value.ends_with("[0]")) {
            return Some(format!("{first} is nil: lists begin at 1"));
        }
        let found: Vec<String> = distinct.into_iter().collect();
        match found.as_slice() {
            [] => None,
            [one] if !one.contains(['.', '[']) && !self.defined.contains(one) => Some(undefined(&self.defined, one)),
            [one] => Some(format!("{one} is nil, test it first")),
            many => Some(format!("{} is nil, test them first", many.join(" or "))),
        }
    }

    /// Returns true if the line calls the result of a call.
    fn calls_a_result(&self) -> bool {
        self.indexes(|index| self.text(index) == ")" && self.text(index + 1) == "(")
            .next()
            .is_some()
    }

    /// Returns the cause of a call of nil: the only called name without a known value, or the only field.
    fn uncallable(&self) -> Option<String> {
        let called = self.indexes(|index| {
            let before = index.checked_sub(1).map_or("", |before| self.text(before));
            !matches!(before, ":" | "function")
                && self.text(index + 1) == "("
                && self.tokens.get(index).is_some_and(is_name)
        });
        let called: Vec<String> = called.filter_map(|index| self.ending_at(index)).collect();
        let unknown: Vec<&String> = called
            .iter()
            .filter(|name| !name.contains(['.', '[']) && !self.defined.contains(name))
            .collect();
        let fields: Vec<&String> = called.iter().filter(|name| name.contains('.')).collect();
        match (unknown.as_slice(), fields.as_slice()) {
            ([one], _) => Some(undefined(&self.defined, one)),
            ([], [one]) => Some(match one.split_once('.') {
                Some((library, name)) => no_member(library, name),
                None => format!("there is no function {one}"),
            }),
            ([], []) if called.len() == 1 && !self.calls_a_result() => Some(format!("{} is nil", called[0])),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, words: &str, expected: Option<&str>) {
        let message = format!("a.lua:1: {words}");
        let expected = expected.map(|cause| format!("{message}: {cause}"));
        assert_eq!(explained(&message, "a.lua", text), expected, "{text}");
    }

    #[test]
    fn the_value_that_was_nil_is_named() {
        let index = "attempt to index nil with 'ready'";
        let status = Some("o.status is nil, test it first");
        check("function F(o) return o.status.ready end", index, status);
        check("function F(o) return o.status['ready'] end", index, status);
        check(
            "function F(o) return o.list[1].ready end",
            index,
            Some("o.list[1] is nil, test it first"),
        );
        check(
            "function F(o) return o.a.ready == o.b.ready end",
            index,
            Some("o.a or o.b is nil, test them first"),
        );
        check(
            "function F(o) return o.ready or o.list[0].ready end",
            index,
            Some("o.list[0] is nil: lists begin at 1"),
        );
        check("function F(o) return f(o).ready end", index, None);
        check("return {o.a.ready, o.b.ready, o.c.ready, o.d.ready}", index, None);
        check(
            "function F(o) return o.list[1] end",
            "attempt to index nil with number",
            Some("o.list is nil, test it first"),
        );
        check(
            "function F(o) return #o.items end",
            "attempt to get length of a nil value",
            Some("o.items is nil, test it first"),
        );
        check(
            "function F(o) return 'a' .. o.name end",
            "attempt to concatenate string with nil",
            Some("o.name is nil, test it first"),
        );
        check(
            "function F(o) return o.n + 1 end",
            "attempt to perform arithmetic (add) on nil and number",
            Some("o.n is nil, test it first"),
        );
        check(
            "function F(o) return 1 < o.n end",
            "attempt to compare number < nil",
            Some("o.n is nil, test it first"),
        );
        let pairs = "invalid argument #1 to 'pairs' (table expected, got nil)";
        check(
            "function F(o) for k in pairs(o.labels) do end end",
            pairs,
            Some("o.labels is nil, test it first"),
        );
        check(
            "local kube = require('kube') function F(o) return kube.accuratePodRequirements(o.spec.template) end",
            "bad argument #1 to accuratePodRequirements (table expected, got nil)",
            Some("o.spec.template is nil, test it first"),
        );
        check(
            "function F(o) return o.n > 1 end",
            "attempt to compare number < string",
            Some("convert the text with tonumber"),
        );
        check(
            "local x = nil + 1",
            "attempt to perform arithmetic (add) on nil and number",
            None,
        );
    }

    #[test]
    fn misspelt_names_are_suggested() {
        let index = "attempt to index nil with 'status'";
        check(
            "function F(observedObj) return observedObject.status end",
            index,
            Some("observedObject is not defined; did you mean observedObj?"),
        );
        check(
            "return obj.status",
            index,
            Some("obj is not defined; scripts of Argo CD need the dialect argo"),
        );
        check(
            "function F(obj) return obj.status end",
            index,
            Some("obj is nil, test it first"),
        );
        let call = "attempt to call a nil value";
        check(
            "function F(o) return os.getenv('A') end",
            call,
            Some("there is no function os.getenv"),
        );
        let near = Some("there is no function table.concatt; did you mean table.concat?");
        check("return table.concatt({})", call, near);
        check("local f = nil return f(1)", call, Some("f is nil"));
        check("local f = g return f(1)(2)", call, None);
        check(
            "local function count(o) end return coutn(1)",
            call,
            Some("coutn is not defined; did you mean count?"),
        );
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        check("error('boom')", "boom", None);
        assert_eq!(explained("boom", "a.lua", "error('boom', 0)"), None);
        assert_eq!(explained("b.lua:1: attempt to call a nil value", "a.lua", "f()"), None);
    }
}
