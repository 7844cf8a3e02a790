//! The page about the plugin contract is generated from the files of `wit`.

use std::collections::BTreeMap;

use wit_parser::Resolve;

use super::golden;
use crate::contract;

/// Interface or world.
struct Block {
    /// `interface` or `world`.
    word: String,
    name: String,
    documentation: String,
    /// Items with their documentation, in order.
    items: Vec<(String, String)>,
}

/// Returns the interfaces and worlds of a file, with types as the file spells them. Each item stands on one line.
fn blocks(source: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut comment, mut open) = (Vec::new(), Vec::new());
    for line in source.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(text) = line.strip_prefix("///") {
            comment.push(text.trim());
            continue;
        }
        let documentation = golden::prose(&std::mem::take(&mut comment).join(" "));
        if let Some(head) = line.strip_suffix(" {") {
            let (word, name) = head.split_once(' ').unwrap_or_else(|| panic!("{line} has no name"));
            if open.is_empty() {
                blocks.push(Block {
                    word: word.to_owned(),
                    name: name.to_owned(),
                    documentation,
                    items: Vec::new(),
                });
            } else if let Some(block) = blocks.last_mut() {
                block.items.push((head.to_owned(), documentation));
            }
            open.push(name);
        } else if line == "}" {
            open.pop();
        } else if !line.starts_with("package ") && !line.starts_with("use ") {
            let item = line
                .strip_suffix([',', ';'])
                .unwrap_or_else(|| panic!("{line} is not a whole item"));
            let item = match open.as_slice() {
                [_, owner] => format!("{owner}.{item}"),
                _ => item.to_owned(),
            };
            blocks
                .last_mut()
                .unwrap_or_else(|| panic!("{line} has no owner"))
                .items
                .push((item, documentation));
        }
    }
    assert!(open.is_empty(), "{open:?} is not closed");
    blocks
}

fn section(interface: &Block) -> String {
    let Block {
        name,
        documentation,
        items,
        ..
    } = interface;
    let rows: Vec<_> = items
        .iter()
        .map(|(item, meaning)| vec![format!("`{item}`"), meaning.clone()])
        .collect();
    format!(
        "### {name}\n\n{documentation}\n\n{}",
        golden::table(&["item", "meaning"], &rows)
    )
}

fn row(world: &Block) -> Vec<String> {
    let items: Vec<_> = world.items.iter().map(|(item, _)| format!("`{item}`")).collect();
    vec![
        format!("`{}`", world.name),
        items.join(", "),
        world.documentation.clone(),
    ]
}

/// Returns the functions of the contract that no interface has an item for.
fn missing(texts: &BTreeMap<String, String>, interfaces: &[Block]) -> Vec<String> {
    let mut resolve = Resolve::default();
    contract::parse(&mut resolve, texts, &contract::version(texts), "0.1.0");
    let mut missing = Vec::new();
    for (_, interface) in &resolve.interfaces {
        let own = interfaces
            .iter()
            .find(|block| interface.name.as_ref() == Some(&block.name));
        for function in interface.functions.keys() {
            // A method has its type and a mark in its name.
            let start = format!("{}: func(", function.rsplit(']').next().unwrap_or(function));
            if !own.is_some_and(|block| block.items.iter().any(|(item, _)| item.starts_with(&start))) {
                missing.push(function.clone());
            }
        }
    }
    missing
}

#[test]
fn the_page_of_the_plugin_contract_is_generated_from_its_files() {
    let texts = contract::texts(&crate::root().join("wit"));
    let all: Vec<_> = texts.values().flat_map(|text| blocks(text)).collect();
    let (worlds, interfaces): (Vec<_>, Vec<_>) = all.into_iter().partition(|block| block.word == "world");
    assert!(
        interfaces.len() > 10 && worlds.len() > 5,
        "{} interfaces, {} worlds",
        interfaces.len(),
        worlds.len()
    );
    assert_eq!(missing(&texts, &interfaces), [""; 0]);
    let all = interfaces.iter().flat_map(|interface| &interface.items);
    let bare: Vec<_> = all.filter(|(_, documentation)| documentation.is_empty()).collect();
    assert!(bare.is_empty(), "no documentation: {bare:?}");
    let worlds: Vec<_> = worlds.iter().map(row).collect();
    let interfaces: Vec<_> = interfaces.iter().map(section).collect();
    let worlds = golden::table(&["world", "content", "meaning"], &worlds);
    golden::check(
        "plugin-contract.md",
        &[("worlds", worlds), ("interfaces", interfaces.join("\n"))],
    );
}

#[test]
fn items_have_the_name_of_their_type_and_their_documentation() {
    let source = "/// One.\ninterface one {\n    use two.{three};\n    /// Four\n    /// and five.\n    record four {\n        \
                  /// Six.\n        six: u32,\n    }\n    /// Seven.\n    seven: func() -> u32;\n}\n";
    let blocks = blocks(source);
    let items: Vec<_> = blocks[0]
        .items
        .iter()
        .map(|(item, text)| (item.as_str(), text.as_str()))
        .collect();
    assert_eq!(
        (blocks.len(), blocks[0].name.as_str(), blocks[0].documentation.as_str()),
        (1, "one", "One.")
    );
    let expected = [
        ("record four", "Four and five."),
        ("four.six: u32", "Six."),
        ("seven: func() -> u32", "Seven."),
    ];
    assert_eq!(items, expected);
}
