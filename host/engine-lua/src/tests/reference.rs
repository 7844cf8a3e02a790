//! Reference page of the Lua library, generated from the globals of a script and from comments of the source.

#[path = "../../../../tests/reference/golden.rs"]
mod golden;

use bulkhead_core::manifest::EntryPoint;
use serde_json::{Value, json};

use super::value_of;
use crate::library::{UNSUPPORTED, UNSUPPORTED_IN_STRING};

/// Documentation of the crate, with a table of the functions of a script.
const CRATE: &str = include_str!("../lib.rs");
/// Source of the module `kube`.
const KUBE: &str = include_str!("../kube.rs");

/// Returns the names in a library, sorted, without the function of the script that lists them.
fn names(library: &str) -> Vec<String> {
    let list = "local names = {} for name in pairs(LIBRARY) do table.insert(names, name) end table.sort(names)";
    let expression = format!("(function() {} return names end)()", list.replace("LIBRARY", library));
    let names = value_of(&expression, &json!({})).unwrap_or_else(|fault| panic!("{library}: {fault:?}"));
    let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
    names
        .filter(|name| *name != "ReflectStatus")
        .map(str::to_owned)
        .collect()
}

/// Returns the row of a library: the members that can be used, and those that are refused.
fn library(name: &str, refused: &[&str]) -> Vec<String> {
    let all = names(name);
    let missing: Vec<_> = refused
        .iter()
        .filter(|name| !all.iter().any(|member| member == *name))
        .collect();
    assert!(missing.is_empty(), "{name} has no {missing:?}");
    let list = |is_refused: bool| {
        let members = all.iter().filter(|name| refused.contains(&name.as_str()) == is_refused);
        let members: Vec<_> = members.map(|name| format!("`{name}`")).collect();
        if members.is_empty() {
            "–".to_owned()
        } else {
            members.join(", ")
        }
    };
    vec![format!("`{name}`"), list(false), list(true)]
}

/// Returns the rows of the functions that a script may define, in the order of their names in a plugin list.
fn functions() -> Vec<Vec<String>> {
    let rows: Vec<_> = CRATE
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `")?.strip_suffix(" |"))
        .collect();
    assert_eq!(rows.len(), EntryPoint::ALL.len(), "each function has a row: {rows:?}");
    let row = |(row, point): (&str, EntryPoint)| {
        let (function, result) = row.split_once("` | ").unwrap();
        let name = serde_json::to_value(point).unwrap();
        vec![
            format!("`{}`", name.as_str().unwrap_or_default()),
            format!("`{function}`"),
            golden::prose(result),
        ]
    };
    rows.into_iter().zip(EntryPoint::ALL).map(row).collect()
}

/// Returns the rows of the functions in the module `kube`.
fn kube() -> Vec<Vec<String>> {
    let registrations = KUBE
        .lines()
        .filter_map(|line| line.trim().strip_prefix("add(\"")?.strip_suffix(")?;"));
    let row = |registration: &str| {
        let (name, function) = registration.split_once("\", ").unwrap();
        let above = KUBE.split(&format!("\nfn {function}(")).next().unwrap_or_default();
        let comment = above
            .rsplit("\n\n")
            .next()
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.strip_prefix("///"));
        let comment: String = comment.collect();
        assert!(!comment.is_empty(), "{function} has no documentation");
        vec![format!("`kube.{name}`"), golden::prose(&comment)]
    };
    registrations.map(row).collect()
}

#[test]
fn the_page_of_the_lua_library_is_generated_from_the_globals_of_a_script() {
    let kube = kube();
    let members: Vec<_> = names("kube").iter().map(|name| format!("`kube.{name}`")).collect();
    let mut named: Vec<_> = kube.iter().map(|row| row[0].clone()).collect();
    named.sort();
    assert_eq!(named, members);
    let libraries = [
        library("_G", &UNSUPPORTED),
        library("math", &[]),
        library("os", &[]),
        library("package", &[]),
        library("string", &UNSUPPORTED_IN_STRING),
        library("table", &[]),
    ];
    let parts = [
        (
            "functions",
            golden::table(&["answers", "function", "result"], &functions()),
        ),
        ("kube", golden::table(&["function", "result"], &kube)),
        (
            "libraries",
            golden::table(&["library", "members", "refused when called"], &libraries),
        ),
    ];
    golden::check("lua-library.md", &parts);
}
