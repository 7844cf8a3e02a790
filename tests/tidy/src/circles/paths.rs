//! Paths in the source of a module.

/// Path as it is written, and the name that an import gives to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) path: Vec<String>,
    /// Name in the module, for an import; none for a path in an expression or a type.
    pub(super) name: Option<String>,
}

fn is_word(text: &str) -> bool {
    text.starts_with(|character: char| character.is_alphanumeric() || character == '_')
}

/// Splits a source into words, `::` and other characters.
fn tokens(source: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), source.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = if is_word(rest) {
            let end = |character: char| !(character.is_alphanumeric() || character == '_');
            rest.find(end).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, others) = rest.split_at(length);
        tokens.push(token);
        rest = others.trim_start();
    }
    tokens
}

/// Returns a path of a list, with the names before the list. `self` in a list is the path before it.
fn under(names: &[String], inner: Written) -> Written {
    if inner.path != ["self"] {
        return Written {
            path: [names, &inner.path].concat(),
            ..inner
        };
    }
    let alias = inner.name.filter(|name| name != "self");
    Written {
        path: names.to_vec(),
        name: alias.or_else(|| names.last().cloned()),
    }
}

/// Reads a path, or the paths of a list in braces, at the start of the tokens. Returns them with the number of tokens.
fn read(tokens: &[&str]) -> (Vec<Written>, usize) {
    let (mut names, mut at) = (Vec::<String>::new(), 0);
    while let Some(&token) = tokens.get(at) {
        match token {
            "{" => {
                let (list, length) = read_list(&tokens[at + 1..]);
                let within = list.into_iter().map(|inner| under(&names, inner));
                return (within.collect(), at + 1 + length);
            }
            "*" => {
                names.push(token.to_owned());
                at += 1;
                break;
            }
            word if is_word(word) => {
                names.push(word.to_owned());
                at += 1;
                let goes_on = |next: &&str| is_word(next) || ["{", "*"].contains(next);
                if tokens.get(at) != Some(&"::") || !tokens.get(at + 1).is_some_and(goes_on) {
                    break;
                }
                at += 1;
            }
            _ => break,
        }
    }
    let Some(last) = names.last() else {
        return (Vec::new(), at);
    };
    let mut name = Some(last.clone());
    if tokens.get(at) == Some(&"as") {
        name = tokens.get(at + 1).map(|&alias| alias.to_owned());
        at += 2;
    }
    (vec![Written { path: names, name }], at)
}

/// Reads the paths of a list after its opening brace. Returns them with the number of tokens up to the closing one.
fn read_list(tokens: &[&str]) -> (Vec<Written>, usize) {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(&token) = tokens.get(at) {
        if token == "}" {
            return (found, at + 1);
        }
        let (paths, length) = read(&tokens[at..]);
        found.extend(paths);
        at += length.max(1);
    }
    (found, at)
}

/// Returns the imports of a module, and all other paths in its source.
pub(super) fn written(source: &str) -> Vec<Written> {
    let tokens = tokens(source);
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(&token) = tokens.get(at) {
        let before = at.checked_sub(1).map(|before| tokens[before]);
        if token == "use" {
            let (imports, length) = read(&tokens[at + 1..]);
            found.extend(imports);
            at += 1 + length;
        } else if is_word(token) && tokens.get(at + 1) == Some(&"::") && !matches!(before, Some("::" | "$")) {
            let (paths, length) = read(&tokens[at..]);
            found.extend(paths.into_iter().map(|path| Written { name: None, ..path }));
            at += length.max(1);
        } else {
            at += 1;
        }
    }
    found
}

#[test]
fn imports_and_other_paths_are_found() {
    let check = |source: &str, expected: &[&str]| {
        let text = |found: Written| {
            let name = found.name.map_or_else(String::new, |name| format!(" as {name}"));
            format!("{}{name}", found.path.join("::"))
        };
        let found: Vec<_> = written(source).into_iter().map(text).collect();
        assert_eq!(found, expected, "{source}");
    };
    check(
        "use crate::a::B;\nfn f() { crate::c::d(); }",
        &["crate::a::B as B", "crate::c::d"],
    );
    check(
        "pub use super::{self, a::{B as C, d}, e::*};",
        &[
            "super as super",
            "super::a::B as C",
            "super::a::d as d",
            "super::e::* as *",
        ],
    );
    check("fn f() -> Vec<a::B> { Vec::<u8>::new() }", &["a::B", "Vec"]);
    check("macro!($crate::b, other::c);", &["other::c"]);
    check("#[serde(with = \"crate::a::b\")]", &["crate::a::b"]);
}
