//! Source files of a crate without their comments and tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Path of a module below the root of its crate; empty for the root.
pub(super) type Module = Vec<String>;

/// Returns the part of a source file that is neither a comment nor a test, and the names of its test modules that are
/// files of their own.
pub(super) fn production(text: &str) -> (String, Vec<String>) {
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

/// Returns the modules of a crate with their source, from its folder `src`. No test module is among them.
pub(super) fn modules(folder: &Path) -> Vec<(Module, String)> {
    let mut found = Vec::new();
    add(folder, &[], BTreeSet::new(), &mut found);
    found
}

/// Adds the source files in a folder with the path of their module; `tests` are the test modules outside of it.
fn add(folder: &Path, path: &[String], mut tests: BTreeSet<PathBuf>, found: &mut Vec<(Module, String)>) {
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
        let (home, module) = if is_root || stem == "mod" {
            (folder.to_path_buf(), path.to_vec())
        } else {
            (folder.join(&stem), [path, &[stem]].concat())
        };
        tests.extend(of_tests.into_iter().map(|test| home.join(test)));
        files.push((file.with_extension(""), module, source));
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
            add(folder, &[path, &[name]].concat(), tests.clone(), found);
        }
    }
}

#[test]
fn comments_and_tests_are_no_production() {
    let (kept, tests) = production("use a::b; // c\n\n#[cfg(test)]\nmod tests {\n    use d::e;\n}\n");
    assert_eq!(
        kept.split_whitespace().collect::<Vec<_>>(),
        ["use", "a::b;", "#[cfg(test)]"]
    );
    assert_eq!(tests, [""; 0]);
    let (kept, tests) = production("#[cfg(test)]\nmod tests;\nmod other;");
    assert_eq!((kept.contains("mod other;"), tests), (true, vec!["tests".to_owned()]));
}
