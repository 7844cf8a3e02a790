//! Fields of structs and variants of enums, with their documentation, read from the source.

/// Field or variant as serde writes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) documentation: String,
}

/// Returns the fields or variants of an item that starts with `head`, such as `pub struct Scenario`, in order.
/// Attributes stand on one line, and variants have no fields.
pub(super) fn items(source: &str, head: &str) -> Vec<Item> {
    let (above, rest) = source.split_once(&format!("{head} {{\n")).unwrap_or_else(|| panic!("there is no {head}"));
    let body = rest.split_once("\n}").map_or(rest, |(body, _)| body);
    let above = above.rsplit("\n\n").next().unwrap_or_default();
    let convention = quoted_after(above, "rename_all = ");
    let (mut found, mut documentation, mut name) = (Vec::new(), Vec::new(), None);
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            documentation.push(text.trim());
        } else if line.starts_with("#[") {
            name = quoted_after(line, "rename = ").or(name);
        } else if !line.is_empty() && !line.starts_with("//") {
            let identifier: String =
                line.trim_start_matches("pub ").chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let own = name.take().map_or_else(|| renamed(&identifier, convention), str::to_owned);
            let documentation = std::mem::take(&mut documentation).join(" ").replace("[`", "`").replace("`]", "`");
            found.push(Item { name: own, documentation });
        }
    }
    found
}

/// Returns the text in quotes after a mark.
fn quoted_after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark)?.1.split('"').nth(1)
}

/// Returns a name in a convention of serde.
fn renamed(identifier: &str, convention: Option<&str>) -> String {
    match convention {
        Some("camelCase") => {
            let mut words = identifier.trim_end_matches('_').split('_');
            let first = words.next().unwrap_or_default();
            let first = first[..1].to_lowercase() + &first[1..];
            let others = words.map(|word| word[..1].to_uppercase() + &word[1..]);
            std::iter::once(first).chain(others).collect()
        }
        Some("kebab-case") => {
            let mut text = String::new();
            for (at, letter) in identifier.char_indices() {
                if letter.is_uppercase() && at > 0 {
                    text.push('-');
                }
                text.extend(letter.to_lowercase());
            }
            text.replace('_', "-")
        }
        Some(other) => panic!("{other} is no supported convention"),
        None => identifier.to_owned(),
    }
}

#[test]
fn items_have_the_names_of_serde_and_their_documentation() {
    let source = r#"
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct One {
    /// First [`Two`],
    /// and more.
    #[serde(default)]
    pub replica_ready_after: u32,
    /// Second.
    #[serde(rename = "for", default)]
    pub for_: Option<u32>,
}

#[serde(rename_all = "kebab-case")]
pub enum Two {
    /// Third.
    #[default]
    NeverReady,
}
"#;
    let item =
        |name: &str, documentation: &str| Item { name: name.to_owned(), documentation: documentation.to_owned() };
    let expected = [item("replicaReadyAfter", "First `Two`, and more."), item("for", "Second.")];
    assert_eq!(items(source, "pub struct One"), expected);
    assert_eq!(items(source, "pub enum Two"), [item("never-ready", "Third.")]);
}
