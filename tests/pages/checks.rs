//! Structure that keyboards and screen readers need, checked on the produced HTML.
//!
//! Included by the tests of crates that render pages. The module around it has the function `scroll` of the renderer.

use std::collections::{BTreeMap, BTreeSet};

/// Elements without an end tag.
const VOID: [&str; 4] = ["meta", "input", "br", "link"];
/// Elements whose content is no HTML.
const RAW: [&str; 2] = ["style", "script"];

/// Start tag of an element.
pub(crate) struct Element {
    /// Name.
    pub(crate) name: String,
    /// Attributes.
    pub(crate) attributes: BTreeMap<String, String>,
    /// Names of the elements around it, the outermost first.
    pub(crate) around: Vec<String>,
    /// Text between its start tag and the next tag.
    pub(crate) text: String,
}

impl Element {
    /// Returns the value of an attribute.
    pub(crate) fn get(&self, attribute: &str) -> Option<&str> {
        self.attributes.get(attribute).map(String::as_str)
    }

    fn is_in(&self, name: &str) -> bool {
        self.around.iter().any(|around| around == name)
    }
}

fn attributes(mut text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    while let Some((name, rest)) = text.trim_start().split_once("=\"") {
        let (value, rest) = rest
            .split_once('"')
            .unwrap_or_else(|| panic!("an attribute does not end: {text}"));
        assert!(
            found.insert(name.to_owned(), value.to_owned()).is_none(),
            "{name} is there twice: {text}"
        );
        text = rest;
    }
    assert_eq!(text.trim(), "", "an attribute without a value");
    found
}

/// Returns the elements of a page. Panics if a tag is not closed in its order.
pub(crate) fn elements(page: &str) -> Vec<Element> {
    let mut rest = page
        .strip_prefix("<!doctype html>")
        .expect("a page begins with its doctype");
    let (mut found, mut open) = (Vec::new(), Vec::<String>::new());
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, after) = after.split_once('>').expect("a tag ends");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "inside of {open:?}");
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, given) = tag.split_once(' ').unwrap_or((tag, ""));
        let text = rest.split('<').next().unwrap_or_default().to_owned();
        let around = open.clone();
        found.push(Element {
            name: name.to_owned(),
            attributes: attributes(given),
            around,
            text,
        });
        if RAW.contains(&name) {
            rest = rest
                .split_once(&format!("</{name}>"))
                .expect("a style or script ends")
                .1;
        } else if !is_empty && !VOID.contains(&name) {
            open.push(name.to_owned());
        }
    }
    assert_eq!(open, [""; 0], "elements that are not closed");
    found
}

/// Checks landmarks, headings, links, tables, drawings and fields of a page. Returns its elements.
#[track_caller]
pub(crate) fn check(page: &str) -> Vec<Element> {
    let all = elements(page);
    let named = |name: &str| all.iter().filter(|element| element.name == name).collect::<Vec<_>>();
    assert_eq!(named("html").first().and_then(|html| html.get("lang")), Some("en"));
    for landmark in ["header", "nav", "main", "footer", "h1"] {
        assert_eq!(named(landmark).len(), 1, "{landmark}");
    }
    assert!(!named("title").first().expect("a title").text.trim().is_empty());

    // A page with a style sheet of its own address is one of several. A report has no other address.
    let is_of_site = all.iter().any(|element| element.name == "link");
    let ids: Vec<_> = all.iter().filter_map(|element| element.get("id")).collect();
    let unique: BTreeSet<_> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "an id is there twice");
    for element in &all {
        let link = element.get("href").and_then(|href| match href.strip_prefix('#') {
            None if is_of_site && href.starts_with('/') && !href.starts_with("//") => None,
            within => Some(within.expect("a link stays in the page")),
        });
        let refers = ["aria-labelledby", "aria-describedby", "aria-controls", "for"];
        let refers = refers.iter().filter_map(|attribute| element.get(attribute));
        for id in refers.flat_map(str::split_whitespace).chain(link) {
            assert!(
                unique.contains(id),
                "<{}> refers to {id}, which is not there",
                element.name
            );
        }
        if let Some(index) = element.get("tabindex") {
            assert!(
                ["0", "-1"].contains(&index),
                "tabindex {index} changes the order of the page"
            );
        }
    }

    let mut level = 0;
    for heading in all
        .iter()
        .filter(|element| element.name.len() == 2 && element.name.starts_with('h'))
    {
        let Ok(next) = heading.name[1..].parse::<usize>() else {
            continue;
        };
        assert!(next <= level + 1, "{} follows a heading of level {level}", heading.text);
        level = next;
    }
    check_content(&all);
    all
}

#[track_caller]
fn check_content(all: &[Element]) {
    for (index, element) in all.iter().enumerate() {
        let next = all.get(index + 1).map(|next| next.name.as_str());
        let is_named = ["aria-label", "aria-labelledby"]
            .iter()
            .any(|attribute| element.get(attribute).is_some());
        match element.name.as_str() {
            "table" => {
                assert_eq!(next, Some("caption"), "a table has no caption");
                assert!(is_in_scroller(all, index), "a table does not scroll on a narrow screen");
            }
            "caption" | "summary" => assert!(!element.text.trim().is_empty(), "an empty {}", element.name),
            "th" => assert!(
                matches!(element.get("scope"), Some("col" | "row")),
                "a head without a scope"
            ),
            "section" | "nav" => assert!(is_named, "a {} without a name", element.name),
            "svg" => assert!(
                is_named || element.get("aria-hidden") == Some("true"),
                "a drawing without a name"
            ),
            "input" if element.get("type") == Some("hidden") => {}
            "input" | "select" | "textarea" => assert!(is_named || element.is_in("label"), "a field without a label"),
            "a" if element.is_in("svg") => {
                let label = element.get("aria-label").unwrap_or_default();
                assert!(!label.is_empty(), "a link of a drawing has no label");
            }
            "a" => assert!(!element.text.trim().is_empty(), "a link has no text"),
            _ => {}
        }
    }
    assert!(!has_link_in_image(all), "a link inside of an element with the role img");
}

/// Returns true if the element before this one is a block that a keyboard scrolls.
fn is_in_scroller(all: &[Element], index: usize) -> bool {
    let before = index.checked_sub(1).and_then(|before| all.get(before));
    before.is_some_and(|block| block.get("class") == Some("scroll") && block.get("tabindex") == Some("0"))
}

/// Returns true if a drawing that screen readers take as one image has a link inside, which they do not find.
fn has_link_in_image(all: &[Element]) -> bool {
    let mut in_image = false;
    for element in all {
        match element.name.as_str() {
            "svg" => in_image = element.get("role") == Some("img") || element.get("aria-hidden") == Some("true"),
            "a" if element.is_in("svg") && in_image => return true,
            _ => {}
        }
    }
    false
}

#[test]
fn a_page_without_the_structure_fails_the_check() {
    let page = |body: &str| {
        format!(
            "<!doctype html><html lang=\"en\"><head><title>t</title></head><body><header><h1>t</h1></header>\
             <nav aria-label=\"n\"></nav><main>{body}</main><footer></footer></body></html>"
        )
    };
    let scroller = |body: &str| super::scroll("s", &maud::PreEscaped(body.to_owned())).into_string();
    let sound = scroller("<table><caption>c</caption><tr><th scope=\"col\">x</th></tr></table>");
    check(&page(&format!("<h2>a</h2>{sound}")));
    for wrong in [
        "<h3>a</h3>",
        "<p>",
        "<p></b></p>",
        "<i id=\"a\"></i><i id=\"a\"></i>",
        "<a href=\"#gone\">x</a>",
        "<a href=\"https://example.com\">x</a>",
        &scroller("<table><tr></tr></table>"),
        &scroller("<table><caption>c</caption><tr><th>x</th></tr></table>"),
        "<table><caption>c</caption><tr><th scope=\"col\">x</th></tr></table>",
        "<svg></svg>",
        "<svg role=\"img\" aria-label=\"d\"><a aria-label=\"x\"></a></svg>",
        "<input>",
        "<i tabindex=\"3\"></i>",
        "<a href=\"/other\">x</a>",
        "<link href=\"/style.css\"><a href=\"//example.com\">x</a>",
    ] {
        assert!(std::panic::catch_unwind(|| check(&page(wrong))).is_err(), "{wrong}");
    }
}
