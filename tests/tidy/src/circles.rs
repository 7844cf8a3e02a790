//! Checks that the modules of a crate do not import each other in a circle.
//!
//! The nodes are the modules below the root of a crate, with all that is inside of them. A path that starts with
//! `crate::`, or leaves a module through `super::`, is an edge. Tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns the part of a source file that is neither a comment nor a test, and the names of its test modules that are
/// files of their own.
fn production(text: &str) -> (String, Vec<String>) {
    let (mut kept, mut tests) = (String::new(), Vec::new());
    let mut is_test = false;
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        let module = code.split_whitespace().skip_while(|word| *word != "mod").nth(1);
        match module {
            Some(name) if is_test && code.trim_end().ends_with(';') => {
                tests.push(name.trim_end_matches(';').to_owned());
            }
            // Tests are at the end of a file.
            Some(_) if is_test => break,
            _ => {
                kept.push_str(code);
                kept.push('\n');
            }
        }
        is_test = code.trim() == "#[cfg(test)]" || (is_test && code.trim().starts_with("#["));
    }
    (kept, tests)
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns the first names of the paths that start at the root of the crate, as seen from a module at this depth.
fn imports(source: &str, depth: usize) -> BTreeSet<String> {
    let to_root = "super::".repeat(depth);
    let mut found = BTreeSet::new();
    for start in ["crate::", to_root.as_str()] {
        for (at, _) in source.match_indices(start) {
            let before = source[..at].chars().next_back();
            if !before.is_some_and(|character| is_word(character) || character == '$' || character == ':') {
                found.extend(first_names(&source[at + start.len()..]));
            }
        }
    }
    found
}

/// Returns the first name of a path, or the first names of a list of paths in braces.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| {
        text.trim_start()
            .chars()
            .take_while(|character| is_word(*character))
            .collect::<String>()
    };
    let Some(list) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let (mut names, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(name(&list[from..at]));
                from = at + 1;
                if character == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names
}

/// Adds the source files in a folder with the path of their module; `tests` are the test modules outside of it, and no
/// test module is added.
fn modules(folder: &Path, path: &[String], mut tests: BTreeSet<PathBuf>, found: &mut Vec<(Vec<String>, String)>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    let mut files = Vec::new();
    for file in entries
        .iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
    {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (source, of_tests) = production(&fs::read_to_string(file).unwrap());
        let is_root = path.is_empty() && ["lib", "main"].contains(&stem.as_str());
        // The test modules of `a.rs` are in the folder `a`, those of `a/mod.rs` and of the root are beside it.
        let home = if is_root || stem == "mod" {
            folder.to_path_buf()
        } else {
            folder.join(&stem)
        };
        tests.extend(of_tests.into_iter().map(|test| home.join(test)));
        if !is_root {
            let module = if stem == "mod" {
                path.to_vec()
            } else {
                [path, &[stem]].concat()
            };
            files.push((file.with_extension(""), module, source));
        }
    }
    found.extend(
        files
            .into_iter()
            .filter(|(file, ..)| !tests.contains(file))
            .map(|(_, module, source)| (module, source)),
    );
    for folder in entries.iter().filter(|entry| entry.is_dir() && !tests.contains(*entry)) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_tests = name == "tests" || (path.is_empty() && name == "bin");
        if !is_tests {
            modules(folder, &[path, &[name]].concat(), tests.clone(), found);
        }
    }
}

fn graph(crate_sources: &[(Vec<String>, String)]) -> Graph {
    let known: BTreeSet<_> = crate_sources
        .iter()
        .filter_map(|(module, _)| module.first().cloned())
        .collect();
    let mut graph = Graph::new();
    for (module, source) in crate_sources {
        let Some(top) = module.first() else { continue };
        let edges = imports(source, module.len())
            .into_iter()
            .filter(|name| name != top && known.contains(name));
        graph.entry(top.clone()).or_default().extend(edges);
    }
    graph
}

fn reachable(graph: &Graph, from: &str) -> BTreeSet<String> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(next) = open.pop() {
        for to in graph.get(&next).into_iter().flatten() {
            if reached.insert(to.clone()) {
                open.push(to.clone());
            }
        }
    }
    reached
}

/// Returns the largest sets of modules that all import each other, directly or not.
fn circles(graph: &Graph) -> BTreeSet<Vec<String>> {
    let reach: BTreeMap<_, _> = graph
        .keys()
        .map(|module| (module.clone(), reachable(graph, module)))
        .collect();
    let circle = |module: &String| -> Vec<String> {
        let mutual = reach[module]
            .iter()
            .filter(|other| reach.get(*other).is_some_and(|back| back.contains(module)));
        mutual.cloned().collect()
    };
    graph.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

#[test]
fn no_crate_has_a_circle_of_modules() {
    let manifest = super::root().join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().unwrap();
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let mut sources = Vec::new();
        let folder = package.manifest_path.parent().unwrap();
        modules(folder.join("src").as_std_path(), &[], BTreeSet::new(), &mut sources);
        let found = circles(&graph(&sources));
        let name = &package.name;
        problems.extend(
            found
                .iter()
                .map(|circle| format!("{name}: {} import each other", circle.join(", "))),
        );
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn paths_from_the_root_are_edges_and_tests_are_not() {
    let check = |text: &str, depth: usize, expected: &[&str]| {
        let found = imports(&production(text).0, depth);
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{text}");
    };
    check("use crate::a::B;\nfn f() { crate::c::d(); }", 1, &["a", "c"]);
    check("use crate::{a::{B, C}, d, e::F};", 1, &["a", "d", "e"]);
    check("use super::b::C;", 1, &["b"]);
    check("use super::b::C;\nuse super::super::d::E;", 2, &["d"]);
    check("// crate::a\nmacro!($crate::b, other_crate::c);", 1, &[]);
    check(
        "use crate::a::B;\n\n#[cfg(test)]\nmod tests {\n    use crate::c::D;\n}\n",
        1,
        &["a"],
    );
    assert_eq!(production("#[cfg(test)]\nmod tests;\nmod other;").1, ["tests"]);
}

#[test]
fn modules_that_reach_each_other_are_a_circle() {
    let edges = [
        ("a", "b"),
        ("b", "c"),
        ("c", "a"),
        ("c", "d"),
        ("d", "e"),
        ("f", "g"),
        ("g", "f"),
    ];
    let mut graph = Graph::new();
    for (from, to) in edges {
        graph.entry(from.to_owned()).or_default().insert(to.to_owned());
    }
    let found = circles(&graph);
    assert_eq!(
        found.iter().map(|circle| circle.join(" ")).collect::<Vec<_>>(),
        ["a b c", "f g"]
    );
}
