//! Tests of the scripts' text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use bulkhead_plugins_lua::{KINDS, customization};

#[test]
fn every_folder_is_listed_and_says_what_it_is_for() {
    let mut found = BTreeSet::new();
    let kinds = Path::new(env!("CARGO_MANIFEST_DIR")).join("kinds");
    let inside = |folder: &Path| {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    for group in inside(&kinds) {
        for version in inside(&group) {
            let of_version = |kind: &std::path::PathBuf| (format!("{}/{}", name(&group), name(&version)), name(kind));
            found.extend(inside(&version).iter().map(of_version));
        }
    }
    let listed = KINDS
        .iter()
        .map(|kind| (kind.api_version.to_owned(), kind.kind.to_owned()));
    assert_eq!(listed.collect::<BTreeSet<_>>(), found);
    for kind in KINDS {
        let target = customization::parse(&kind.folder(), kind.text).unwrap().spec.target;
        assert_eq!(
            (target.api_version.as_str(), target.kind.as_str()),
            (kind.api_version, kind.kind)
        );
    }
}

/// Returns the top-level functions with their comments, by name.
fn functions(script: &str) -> Vec<(String, String)> {
    let blocks = script.split("\n\n").map(str::trim);
    let named = blocks.filter_map(|block| {
        let head = block.lines().find(|line| !line.starts_with("--"))?;
        let name = head.strip_prefix("local function ")?.split('(').next()?;
        Some((name.to_owned(), block.to_owned()))
    });
    named.collect()
}

/// A script is self-contained, so shared functions are copied. A bug fixed in one copy has to be fixed in all.
#[test]
fn functions_with_a_comment_and_one_name_are_the_same_everywhere() {
    let mut known: BTreeMap<String, (String, String)> = BTreeMap::new();
    for kind in KINDS {
        let parsed = customization::parse(&kind.folder(), kind.text).unwrap();
        for (rule, script) in parsed.spec.customizations.scripts() {
            for (name, text) in functions(script).into_iter().filter(|(_, text)| text.starts_with("--")) {
                let place = format!("{} {rule}", kind.folder());
                let (first, other) = known
                    .entry(name.clone())
                    .or_insert_with(|| (place.clone(), text.clone()));
                assert_eq!(other, &text, "{name} in {first} and in {place}");
            }
        }
    }
    assert!(known.len() > 20, "only {} shared functions were found", known.len());
}

/// Scripts use only features common to gopher-lua and Luau, and no globals of their own.
#[test]
fn scripts_are_plain_lua_without_globals_of_their_own() {
    for kind in KINDS {
        let parsed = customization::parse(&kind.folder(), kind.text).unwrap();
        for (rule, script) in parsed.spec.customizations.scripts() {
            let place = format!("{} {rule}", kind.folder());
            for word in [
                " += ",
                "goto ",
                "continue\n",
                "string.gsub",
                "string.rep",
                "setmetatable",
                "~= nil then return",
            ] {
                assert!(!script.contains(word), "{place}: {word}");
            }
            let starts = |line: &&str| {
                ["local ", "function ", "end", "}", "--"]
                    .iter()
                    .any(|start| line.starts_with(start))
            };
            let outer = script.lines().filter(|line| !line.is_empty() && !line.starts_with(' '));
            let odd: Vec<_> = outer.filter(|line| !starts(line)).collect();
            assert!(odd.is_empty(), "{place}: {odd:?}");
        }
    }
}
