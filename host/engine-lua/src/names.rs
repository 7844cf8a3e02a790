//! Names in scripts: variables that nothing defines, and positions that no list has.

use std::collections::HashSet;

use bulkhead_plugin::nearest;

use crate::edit::Difference;
use crate::tokens::{Token, tokens};

/// Maximum length of a script in bytes whose faults are explained; the text is read anew for each fault.
pub(crate) const EXPLAINED_BYTES_MAX: usize = 64 << 10;
/// Maximum number of findings in a script.
const FOUND_MAX: usize = 20;
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

/// Members of the libraries of every script, in alphabetical order.
pub(crate) const MEMBERS: &[(&str, &[&str])] = &[
    (
        "math",
        &[
            "abs",
            "acos",
            "asin",
            "atan",
            "atan2",
            "ceil",
            "cos",
            "cosh",
            "deg",
            "exp",
            "floor",
            "fmod",
            "frexp",
            "huge",
            "ldexp",
            "log",
            "log10",
            "max",
            "min",
            "mod",
            "modf",
            "pi",
            "pow",
            "rad",
            "random",
            "randomseed",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
        ],
    ),
    ("os", &["date", "time"]),
    (
        "string",
        &[
            "byte", "char", "dump", "find", "format", "gfind", "gmatch", "gsub", "len", "lower", "match", "rep",
            "reverse", "sub", "upper",
        ],
    ),
    ("table", &["concat", "getn", "insert", "maxn", "remove", "sort"]),
];
/// Functions of the library that fail without a table.
const OF_TABLES: [&str; 4] = ["ipairs", "next", "pairs", "unpack"];

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

    /// Returns true if the script itself defines a variable of this name.
    fn is_own(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Returns the defined name that a misspelt one probably stands for.
    pub(crate) fn nearest(&self, name: &str) -> Option<&'a str> {
        let mut names: Vec<&str> = self.0.iter().copied().chain(GLOBALS.iter().copied()).collect();
        names.sort_unstable();
        nearest(name, names)
    }
}

/// Finds variables that are indexed or called though nothing defines them, functions that a library does not have, the
/// position 0 in lists, which begin at 1, and nil in place of a table. All of them are nil on every object.
pub fn always_nil(text: &str) -> Vec<Difference> {
    let tokens = tokens(text);
    let script = Script {
        tokens: &tokens,
        defined: Defined::read(&tokens),
    };
    let has_position_0 = (0..tokens.len()).any(|index| script.is_position_0(index) && script.text(index + 3) == "=");
    let tested = script.tested();
    let found = |(index, token): (usize, &Token<'_>)| {
        let message = if script.is_position_0(index) && !has_position_0 {
            let list = tokens.get(index.checked_sub(1)?).filter(|token| is_name(token))?;
            format!("{}[0] is nil: lists begin at 1", list.text)
        } else {
            script.without_table(index).or_else(|| script.unknown(index, &tested))?
        };
        Some(Difference {
            line: token.line,
            column: token.column,
            message,
        })
    };
    tokens.iter().enumerate().filter_map(found).take(FOUND_MAX).collect()
}

/// Text of a script with the names that it defines.
struct Script<'t, 'a> {
    tokens: &'t [Token<'a>],
    defined: Defined<'a>,
}

impl<'a> Script<'_, 'a> {
    fn text(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| token.text)
    }

    fn before(&self, index: usize) -> &'a str {
        index.checked_sub(1).map_or("", |before| self.text(before))
    }

    fn is_use(&self, index: usize) -> bool {
        matches!(self.text(index), "." | ":" | "[" | "(")
    }

    fn is_position_0(&self, index: usize) -> bool {
        self.text(index) == "[" && self.text(index + 1) == "0" && self.text(index + 2) == "]"
    }

    fn is_member(&self, index: usize) -> bool {
        matches!(self.before(index), "." | ":" | "::" | "goto")
    }

    /// Returns the library and the member at a token, if the script does not define the library's name anew.
    fn member(&self, index: usize) -> Option<(&'a str, &'a str)> {
        let library = MEMBERS.iter().any(|(library, _)| *library == self.text(index));
        let is_library = library && !self.is_member(index) && !self.defined.is_own(self.text(index));
        let has_name = self.text(index + 1) == "." && self.tokens.get(index + 2).is_some_and(is_name);
        (is_library && has_name).then(|| (self.text(index), self.text(index + 2)))
    }

    /// Returns the names, and the members of libraries, that the script reads by themselves or defines. It may do so to
    /// find out if they are there.
    fn tested(&self) -> HashSet<(&'a str, &'a str)> {
        let mut tested = HashSet::new();
        for index in 0..self.tokens.len() {
            if !self.is_use(index + 1) {
                tested.insert(("", self.text(index)));
            }
            let is_called = self.text(index + 3) == "(" && self.before(index) != "function";
            if let Some(member) = self.member(index).filter(|_| !is_called) {
                tested.insert(member);
            }
        }
        tested
    }

    /// Returns the message about a variable or a member of a library that nothing defines.
    fn unknown(&self, index: usize, tested: &HashSet<(&str, &str)>) -> Option<String> {
        if let Some((library, name)) = self.member(index) {
            let is_there = tested.contains(&(library, name)) || members_of(library).contains(&name);
            return (!is_there).then(|| no_member(library, name));
        }
        let name = self.text(index);
        let is_variable = self.tokens.get(index).is_some_and(is_name) && !self.is_member(index);
        let is_unknown = is_variable && self.is_use(index + 1) && !self.defined.contains(name);
        (is_unknown && !tested.contains(&("", name))).then(|| undefined(&self.defined, name))
    }

    /// Returns the message about a function that gets nil in place of a table.
    fn without_table(&self, index: usize) -> Option<String> {
        let name = self.text(index);
        let is_function = OF_TABLES.contains(&name) && !self.is_member(index) && !self.defined.is_own(name);
        let is_nil = self.text(index + 1) == "(" && self.text(index + 2) == "nil" && self.text(index + 3) == ")";
        (is_function && is_nil).then(|| format!("{name}(nil) fails, it needs a table"))
    }
}

fn members_of(library: &str) -> &'static [&'static str] {
    MEMBERS
        .iter()
        .find(|(name, _)| *name == library)
        .map(|(_, members)| *members)
        .unwrap_or_default()
}

/// Formats the message about a function that a library does not have.
pub(crate) fn no_member(library: &str, name: &str) -> String {
    match nearest(name, members_of(library).iter().copied()) {
        Some(near) => format!("there is no function {library}.{name}; did you mean {library}.{near}?"),
        None => format!("there is no function {library}.{name}"),
    }
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
            let found: Vec<_> = found
                .iter()
                .map(|it| (it.line, it.column, it.message.as_str()))
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        check(
            "function InterpretHealth(obj)\n  return obj.status.ready == true\nend",
            &[],
        );
        check(
            "function F(observedObj)\n  return observedObject.status\nend",
            &[(2, 10, "observedObject is not defined; did you mean observedObj?")],
        );
        check(
            "function F(o) return o.conditions[0].type end",
            &[(1, 34, "conditions[0] is nil: lists begin at 1")],
        );
        check("function F(o) local t = {} t[0] = 1 return t end", &[]);
        check(
            "local kube = require('kube') function F(o) return kube.resourceAdd(o.a) end",
            &[],
        );
        check(
            "for i, c in ipairs(list()) do f(c.type, i) end",
            &[(1, 20, "list is not defined"), (1, 31, "f is not defined")],
        );
        check(
            "local function f(a, ...) return a.b end for _, v in pairs({}) do f(v.x) end",
            &[],
        );
        check("local t = {name = 1, other = x} return t.name", &[]);
        check(
            "return obj.status",
            &[(1, 8, "obj is not defined; scripts of Argo CD need the dialect argo")],
        );
        check("if extra then return extra.field end", &[]);
        check("counter = counter or {} counter.n = 1", &[]);
        check("function util.f(a) return a.b end", &[(1, 10, "util is not defined")]);
        check(
            "return tostrng(1)",
            &[(1, 8, "tostrng is not defined; did you mean tostring?")],
        );
    }

    #[test]
    fn functions_that_a_library_lacks_and_nil_for_a_table_are_found() {
        let check = |text: &str, expected: &[(usize, &str)]| {
            let found = always_nil(text);
            let found: Vec<_> = found.iter().map(|it| (it.column, it.message.as_str())).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("return os.getenv('A')", &[(8, "there is no function os.getenv")]);
        check(
            "return string.fromat('x')",
            &[(8, "there is no function string.fromat; did you mean string.format?")],
        );
        check(
            "return string.format('x') .. table.concat({}) .. math.huge .. os.time()",
            &[],
        );
        check("if table.unpack then return table.unpack({}) end", &[]);
        check("function string.trim(s) return s end return string.trim('x')", &[]);
        check("local os = {} return os.getenv('A')", &[]);
        check("return o.string.split('x')", &[(8, "o is not defined")]);
        check(
            "for k in pairs(nil) do end",
            &[(10, "pairs(nil) fails, it needs a table")],
        );
        check("local function next(x) return x end return next(nil)", &[]);
    }

    #[test]
    fn a_missing_function_has_a_suggestion_unless_the_script_is_long() {
        let message = "the script defines no global function GetReplicas";
        let script = "function GetReplica(obj) end";
        assert_eq!(
            no_function("GetReplicas", script),
            format!("{message}; is GetReplica meant?")
        );
        let long = format!("{script} --{}", " ".repeat(EXPLAINED_BYTES_MAX));
        assert_eq!(no_function("GetReplicas", &long), message);
    }
}
