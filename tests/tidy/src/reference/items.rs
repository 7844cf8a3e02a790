//! Variants of enums with their documentation, read from the source.

/// Variant of an enum.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) documentation: String,
}

/// Returns the variants of an enum that starts with `head`, such as `pub enum Decision`, in order. Attributes stand on
/// one line, and variants have no fields.
pub(super) fn items(source: &str, head: &str) -> Vec<Item> {
    let (_, rest) = source
        .split_once(&format!("{head} {{\n"))
        .unwrap_or_else(|| panic!("there is no {head}"));
    let body = rest.split_once("\n}").map_or(rest, |(body, _)| body);
    let (mut found, mut documentation) = (Vec::new(), Vec::new());
    for line in body
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("#["))
    {
        if let Some(text) = line.strip_prefix("///") {
            documentation.push(text.trim());
        } else if !line.starts_with("//") {
            let documentation = std::mem::take(&mut documentation)
                .join(" ")
                .replace("[`", "`")
                .replace("`]", "`");
            found.push(Item {
                name: line.trim_end_matches(',').to_owned(),
                documentation,
            });
        }
    }
    found
}

#[test]
fn items_have_their_documentation() {
    let source = "pub enum Two {\n    /// First [`One`],\n    /// and more.\n    #[default]\n    NeverReady,\n    // Not a \
                  document.\n    Last,\n}\n";
    let item = |name: &str, text: &str| Item {
        name: name.to_owned(),
        documentation: text.to_owned(),
    };
    assert_eq!(
        items(source, "pub enum Two"),
        [item("NeverReady", "First `One`, and more."), item("Last", "")]
    );
}
