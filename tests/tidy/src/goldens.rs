//! Expected outputs are the same on every machine: none has an address of the host.

use std::fs;
use std::path::{Path, PathBuf};

/// Shortest run of hexadecimal digits that counts as an address. Shorter numbers, such as the masked `0x0`, are none.
const DIGITS_MIN: usize = 6;

fn expected_outputs(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && name != "node_modules" && !name.starts_with('.') {
                expected_outputs(&path, found);
            }
        } else if path.components().any(|part| part.as_os_str() == "goldens") || name.contains(".golden.") {
            found.push(path);
        }
    }
}

/// Returns the first hexadecimal number of a text that has the length of an address.
fn address(text: &str) -> Option<&str> {
    text.match_indices("0x").find_map(|(start, _)| {
        let digits = text[start + 2..]
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(text.len() - start - 2);
        (digits >= DIGITS_MIN).then(|| &text[start..start + 2 + digits])
    })
}

#[test]
fn no_expected_output_has_an_address_of_the_host() {
    let mut files = Vec::new();
    let root = super::root();
    expected_outputs(&root, &mut files);
    assert!(files.len() > 20, "only {} files were found", files.len());
    // Pages of the book have outputs of commands, and parts that the program generates.
    let mut pages = vec![root.join("docs/src"), root.join("docs/schemas"), root.join("README.md")];
    while let Some(path) = pages.pop() {
        match fs::read_dir(&path) {
            Ok(entries) => pages.extend(entries.map(|entry| entry.unwrap().path())),
            Err(_) => files.push(path),
        }
    }
    let text = |path: &PathBuf| String::from_utf8(fs::read(path).unwrap()).ok();
    let found: Vec<_> = files
        .iter()
        .filter_map(|path| Some(format!("{}: {}", path.display(), address(&text(path)?)?)))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn addresses_are_longer_than_other_numbers() {
    let check = |text: &str, expected: Option<&str>| assert_eq!(address(text), expected, "{text}");
    check("table: 0x55a841e30170", Some("0x55a841e30170"));
    check("at 0x7ffd00 and on", Some("0x7ffd00"));
    check("function: 0x0 1, 0x1F, 0xffff", None);
    check("0x", None);
}
