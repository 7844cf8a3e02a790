//! Names in scripts: variables that nothing defines, and positions that no list has.

use std::collections::HashSet;

use crate::dialect::Difference;
use crate::tokens::{Token, tokens};

/// Maximum length of a script in bytes whose faults are explained; the text is read anew for each fault.
pub(crate) const EXPLAINED_BYTES_MAX: usize = 64 << 10;
/// Maximum number of findings in a script.
const FOUND_MAX: usize = 20;
/// Maximum length of a name that is compared with others, in bytes. The time of a comparison grows with the product of
/// both lengths, and is not part of the budget of a call.
const COMPARED_BYTES_MAX: usize = 40;
/// Words that are no names.
const KEYWORDS: &[&str] = &[
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil",
    "not", "or", "repeat", "return", "then", "true", "until", "while",
];
/// Globals of every script.
const GLOBALS: &[&str] = &[
    "_G",
    "_VERSION",
    "arg",
    "assert",
    "collectgarbage",
    "config",
    "dofile",
    "error",
    "getfenv",
    "getmetatable",
    "ipairs",
    "load",
    "loadfile",
    "loadstring",
    "math",
    "module",
    "newproxy",
    "next",
    "os",
    "package",
    "pairs",
    "pcall",
    "print",
    "rawequal",
    "rawget",
    "rawset",
    "require",
    "select",
    "self",
    "setfenv",
    "setmetatable",
    "string",
    "table",
    "tonumber",
    "tostring",
    "type",
    "unpack",
    "xpcall",
    "continue",
    "export",
];

/// Returns true for a name that is no keyword.
pub(crate) fn is_name(token: &Token<'_>) -> bool {
    token.is_word() && !KEYWORDS.contains(&token.text)
}

/// Variables and fields that a script defines anywhere, regardless of their scope.
pub(crate) struct Defined<'a>(HashSet<&'a str>);

impl<'a> Defined<'a> {
    pub(crate) fn read(tokens: &[Token<'a>]) -> Self {
        let text = |index: usize| tokens.get(index).map_or("", |token| token.text);
        let mut names = HashSet::new();
        // True while names are declared: after `local` and `for`, and in the parameters of a function.
        let (mut declares, mut expects_parameters) = (false, false);
        for (index, token) in tokens.iter().enumerate() {
            match token.text {
                "local" | "for" => declares = true,
                "function" => expects_parameters = true,
                "(" if expects_parameters => (declares, expects_parameters) = (true, false),
                "," | "..." => {}
                name if is_name(token) => {
                    let is_field = index > 0 && matches!(text(index - 1), "." | ":");
                    let is_assigned = !is_field && matches!(text(index + 1), "=" | ",");
                    let is_function = expects_parameters && !is_field && text(index + 1) == "(";
                    if declares || is_function || is_assigned {
                        names.insert(name);
                    }
                }
                _ => declares = false,
            }
        }
        Self(names)
    }

    /// Returns true if a variable of this name can have a value.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.contains(name) || GLOBALS.contains(&name)
    }

    /// Returns the defined name that a misspelt one probably stands for.
    pub(crate) fn nearest(&self, name: &str) -> Option<&'a str> {
        let mut names: Vec<&str> = self.0.iter().copied().collect();
        names.sort_unstable();
        nearest(name, names)
    }
}

/// Returns the nearest name, if it is near enough to be meant. Nothing is near to a name of one or two letters, or to
/// one longer than [`COMPARED_BYTES_MAX`].
pub(crate) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > COMPARED_BYTES_MAX {
        return None;
    }
    let distance = |other: &&str| strsim::damerau_levenshtein(&name.to_lowercase(), &other.to_lowercase());
    let is_compared = |other: &&str| *other != name && other.len() <= COMPARED_BYTES_MAX;
    let found = names.into_iter().filter(is_compared).min_by_key(distance)?;
    (name.len() > 2 && distance(&found) <= (name.len() / 4).max(1)).then_some(found)
}

/// Finds variables that are indexed or called though nothing defines them, and the position 0 in lists, which begin
/// at 1. Both are nil on every object.
pub fn always_nil(text: &str) -> Vec<Difference> {
    let tokens = tokens(text);
    let defined = Defined::read(&tokens);
    let at = |index: usize| tokens.get(index).map_or("", |token| token.text);
    let is_use = |index: usize| matches!(at(index), "." | ":" | "[" | "(");
    let is_position_0 = |index: usize| at(index) == "[" && at(index + 1) == "0" && at(index + 2) == "]";
    let has_position_0 = (0..tokens.len()).any(|index| is_position_0(index) && at(index + 3) == "=");
    // A script that reads a name by itself may do so to find out if it is there.
    let tested: HashSet<&str> = (0..tokens.len()).filter(|index| !is_use(index + 1)).map(at).collect();
    let found = |(index, token): (usize, &Token<'_>)| {
        let before = index.checked_sub(1).and_then(|before| tokens.get(before));
        let message = if is_position_0(index) && !has_position_0 {
            let list = before.filter(|token| is_name(token))?;
            format!("{}[0] is nil: lists begin at 1", list.text)
        } else {
            let is_member = before.is_some_and(|before| matches!(before.text, "." | ":" | "::" | "goto"));
            let is_unknown = is_name(token) && !is_member && is_use(index + 1) && !defined.contains(token.text);
            if !is_unknown || tested.contains(token.text) {
                return None;
            }
            undefined(&defined, token.text)
        };
        Some(Difference { line: token.line, column: token.column, message })
    };
    tokens.iter().enumerate().filter_map(found).take(FOUND_MAX).collect()
}

/// Formats the message about a missing function, with a misspelt one that is there.
pub(crate) fn no_function(name: &str, text: &str) -> String {
    let message = format!("the script defines no global function {name}");
    if text.len() > EXPLAINED_BYTES_MAX {
        return message;
    }
    let found = tokens(text);
    match Defined::read(&found).nearest(name) {
        Some(near) => format!("{message}; is {near} meant?"),
        None => message,
    }
}

/// Formats the message about a variable that nothing defines.
pub(crate) fn undefined(defined: &Defined<'_>, name: &str) -> String {
    match defined.nearest(name) {
        Some(near) => format!("{name} is not defined; did you mean {near}?"),
        None if name == "obj" => "obj is not defined; scripts of Argo CD need the dialect argo".to_owned(),
        None => format!("{name} is not defined"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undefined_variables_and_position_0_are_found() {
        let check = |text: &str, expected: &[(usize, usize, &str)]| {
            let found = always_nil(text);
            let found: Vec<_> = found.iter().map(|it| (it.line, it.column, it.message.as_str())).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("function InterpretHealth(obj)\n  return obj.status.ready == true\nend", &[]);
        check(
            "function F(observedObj)\n  return observedObject.status\nend",
            &[(2, 10, "observedObject is not defined; did you mean observedObj?")],
        );
        check("function F(o) return o.conditions[0].type end", &[(1, 34, "conditions[0] is nil: lists begin at 1")]);
        check("function F(o) local t = {} t[0] = 1 return t end", &[]);
        check("local kube = require('kube') function F(o) return kube.resourceAdd(o.a) end", &[]);
        check(
            "for i, c in ipairs(list()) do f(c.type, i) end",
            &[(1, 20, "list is not defined"), (1, 31, "f is not defined")],
        );
        check("local function f(a, ...) return a.b end for _, v in pairs({}) do f(v.x) end", &[]);
        check("local t = {name = 1, other = x} return t.name", &[]);
        check("return obj.status", &[(1, 8, "obj is not defined; scripts of Argo CD need the dialect argo")]);
        check("if extra then return extra.field end", &[]);
        check("counter = counter or {} counter.n = 1", &[]);
        check("function util.f(a) return a.b end", &[(1, 10, "util is not defined")]);
    }

    #[test]
    fn a_name_is_suggested_only_if_it_is_near() {
        let names = ["InterpretHealth", "GetReplicas"];
        assert_eq!(nearest("InterpretHealt", names), Some("InterpretHealth"));
        assert_eq!(nearest("interprethealth", names), Some("InterpretHealth"));
        assert_eq!(nearest("Replicas", names), None);
        assert_eq!(nearest("x", names), None);
    }

    #[test]
    fn a_missing_function_has_a_suggestion_unless_the_script_is_long() {
        let message = "the script defines no global function GetReplicas";
        let script = "function GetReplica(obj) end";
        assert_eq!(no_function("GetReplicas", script), format!("{message}; is GetReplica meant?"));
        let long = format!("{script} --{}", " ".repeat(EXPLAINED_BYTES_MAX));
        assert_eq!(no_function("GetReplicas", &long), message);
    }

    #[test]
    fn long_names_are_not_compared() {
        let of_length = |length: usize| "a".repeat(length);
        let (shorter, longest) = (of_length(COMPARED_BYTES_MAX - 1), of_length(COMPARED_BYTES_MAX));
        let too_long = of_length(COMPARED_BYTES_MAX + 1);
        assert_eq!(nearest(&shorter, [longest.as_str()]), Some(longest.as_str()));
        assert_eq!(nearest(&longest, [too_long.as_str()]), None);
        assert_eq!(nearest(&too_long, [longest.as_str()]), None);
    }
}
