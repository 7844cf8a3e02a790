//! Positions of the values in the documents of a text: from a position to a path, and from a path to a position.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Options, Spanned};

use super::documents::parse;

/// Position in a text. Line and column are counted from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl From<Location> for Position {
    fn from(location: Location) -> Self {
        let bounded = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            line: bounded(location.line()),
            column: bounded(location.column()),
        }
    }
}

/// Positions of the values in the documents of a text. JSON is a text of one document.
#[derive(Debug, Default)]
pub struct Positions {
    documents: Vec<Placed>,
}

impl Positions {
    /// Reads the positions of the documents that [`read_documents`](super::read_documents) returns with the same options. A text that cannot be
    /// read has no positions.
    pub fn read(text: &str, options: &Options) -> Self {
        let documents = parse(text, options).map_or_else(|_| Vec::new(), |read| read.documents);
        Self { documents }
    }

    /// Returns the position of the value at a path, such as `spec.containers[0].image` or `data[a.b]`, in a document,
    /// counted from 0. If there is no such value, it is the position of the innermost value that would contain it.
    /// Returns `None` if there is no such document.
    pub fn value(&self, document: usize, path: &str) -> Option<Position> {
        let found = self.documents.get(document)?.find(path);
        found.value.is_known()
    }

    /// Returns the position of the key of the field at a path; otherwise as [`Positions::value`].
    pub fn key(&self, document: usize, path: &str) -> Option<Position> {
        let found = self.documents.get(document)?.find(path);
        found.key.unwrap_or(found.value).is_known()
    }

    /// Returns the path of the innermost part that contains a position.
    pub(super) fn path(&self, at: Position) -> Option<Path> {
        let document = self.documents.iter().rev().find(|document| document.at <= at)?;
        Some(document.node.path(at, String::new()))
    }
}

impl Position {
    /// Returns the position unless it is the one of a value without any.
    fn is_known(self) -> Option<Self> {
        (self.line > 0).then_some(self)
    }
}

/// Part of a document.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Path {
    /// Path of the object that contains the part; empty for the document.
    pub(super) object: String,
    /// Field of the object; empty if the part is the object or one of its values.
    pub(super) field: String,
}

pub(super) fn joined(object: &str, field: &str) -> String {
    match (object.is_empty(), field.is_empty()) {
        (_, true) => object.to_owned(),
        (true, false) => field.to_owned(),
        (false, false) => format!("{object}.{field}"),
    }
}

/// Value with its position.
#[derive(Debug)]
struct Placed {
    at: Position,
    node: Node,
}

/// Value with the positions of its keys and items.
#[derive(Debug)]
enum Node {
    Map(Vec<Entry>),
    List(Vec<Placed>),
    Scalar,
}

/// Field of a map.
#[derive(Debug)]
struct Entry {
    key: Box<str>,
    key_at: Position,
    value: Placed,
}

/// Result of a search for a path.
struct Found {
    /// Position of the key, if the value exists and is the value of a field.
    key: Option<Position>,
    /// Position of the value, or of the innermost value that would contain it.
    value: Position,
}

impl Placed {
    fn find(&self, path: &str) -> Found {
        let (mut current, mut key, mut rest) = (self, None, path);
        while !rest.is_empty() {
            let Some((next_key, next, remaining)) = current.node.step(rest) else {
                key = None;
                break;
            };
            (current, key, rest) = (next, next_key, remaining);
        }
        Found { key, value: current.at }
    }
}

impl Node {
    /// Takes the first step of a path. Returns the position of the key, if there is one, the value, and the rest of the
    /// path.
    fn step<'path>(&self, path: &'path str) -> Option<(Option<Position>, &Placed, &'path str)> {
        match self {
            Self::Map(entries) => {
                let fits = |entry: &Entry| Some(rest_after(path, &entry.key)?.len());
                // Names may contain dots, and the last of repeated keys counts.
                let entry = entries.iter().rev().filter(|entry| fits(entry).is_some());
                let entry = entry.min_by_key(|entry| fits(entry))?;
                Some((Some(entry.key_at), &entry.value, rest_after(path, &entry.key)?))
            }
            Self::List(items) => {
                let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
                Some((None, items.get(index.parse::<usize>().ok()?)?, rest))
            }
            Self::Scalar => None,
        }
    }

    /// Returns the part at a position; `object` is the path of this value.
    fn path(&self, at: Position, object: String) -> Path {
        let whole = |object| Path {
            object,
            field: String::new(),
        };
        match self {
            Self::Map(entries) => match entries.iter().rev().find(|entry| entry.key_at <= at) {
                Some(entry) if entry.key_at == at => Path {
                    object,
                    field: entry.key.to_string(),
                },
                Some(entry) => entry.value.node.path(at, joined(&object, &entry.key)),
                None => whole(object),
            },
            Self::List(items) => match items.iter().enumerate().rev().find(|(_, item)| item.at <= at) {
                Some((index, item)) => item.node.path(at, format!("{object}[{index}]")),
                None => whole(object),
            },
            Self::Scalar => whole(object),
        }
    }
}

/// Returns the rest of a path after the name of a field: `name`, `.name` or `[name]`.
fn rest_after<'path>(path: &'path str, name: &str) -> Option<&'path str> {
    if let Some(rest) = path.strip_prefix('[') {
        return rest.strip_prefix(name)?.strip_prefix(']');
    }
    let rest = path.strip_prefix('.').unwrap_or(path).strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}

impl<'de> Deserialize<'de> for Placed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Node>::deserialize(deserializer)?;
        Ok(Self {
            at: referenced.into(),
            node: value,
        })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Nodes)
    }
}

struct Nodes;

impl<'de> Visitor<'de> for Nodes {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Placed>()? {
            entries.push(Entry {
                key: key.value.into_boxed_str(),
                key_at: key.referenced.into(),
                value,
            });
        }
        entries.shrink_to_fit();
        Ok(Node::Map(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        list.shrink_to_fit();
        Ok(Node::List(list))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_none<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_bytes<E: de::Error>(self, _: &[u8]) -> Result<Node, E> {
        Ok(Node::Scalar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, document: usize, path: &str, value: &str, key: &str) {
        let positions = Positions::read(text, &Options::default());
        let shown = |position: Option<Position>| position.map_or_else(|| "none".to_owned(), |at| at.to_string());
        assert_eq!(
            shown(positions.value(document, path)),
            value,
            "value of {path} in {text}"
        );
        assert_eq!(shown(positions.key(document, path)), key, "key of {path} in {text}");
    }

    #[test]
    fn a_path_has_the_position_of_its_value_and_of_its_key() {
        let text = "kind: A\nspec:\n  containers:\n  - name: a\n    image: {tag: ü, of: x}\n  - name: b\n";
        check(text, 0, "kind", "1:7", "1:1");
        check(text, 0, "spec.containers[0].image.of", "5:25", "5:21");
        check(text, 0, "spec.containers[1]", "6:5", "6:5");
        check(text, 0, ".spec.containers[1].name", "6:11", "6:5");
    }

    #[test]
    fn a_missing_value_has_the_position_of_what_would_contain_it() {
        let text = "kind: A\nspec:\n  containers:\n  - name: a\n";
        check(text, 0, "spec.containers[0].image", "4:5", "4:5");
        check(text, 0, "spec.containers[7].image", "4:5", "4:5");
        check(text, 0, "status", "1:1", "1:1");
        check(text, 0, "kind.name", "1:7", "1:7");
        check(text, 0, "", "1:1", "1:1");
        check(text, 1, "kind", "none", "none");
        check("a: [b\n", 0, "a", "none", "none");
    }

    #[test]
    fn documents_are_counted_as_they_are_read() {
        let text = "# nothing\n---\nkind: A\n---\n---\nkind: B\n";
        check(text, 0, "kind", "3:7", "3:1");
        check(text, 1, "kind", "6:7", "6:1");
    }

    #[test]
    fn names_with_dots_and_repeated_keys_are_found() {
        let text = "data:\n  a: 1\n  a.b/c: 2\n  a.b: {d: 3}\n";
        check(text, 0, "data[a.b/c]", "3:10", "3:3");
        check(text, 0, "data.a.b/c", "3:10", "3:3");
        check(text, 0, "data.a.b.d", "4:12", "4:9");
        check("a: 1\na: 2\n", 0, "a", "2:4", "2:1");
    }

    #[test]
    fn positions_in_json_and_in_loosely_indented_text_are_found() {
        let text = "{\n\t\"kind\": \"\\ud83d\\ude00\",\n\t\"spec\": {\"a\": [1, {\"b\": 2}]}}";
        check(text, 0, "spec.a[1].b", "3:26", "3:21");
        let text = "spec:\n  text: 'one\n  two'\n  replicas: three\n";
        check(text, 0, "spec.replicas", "4:13", "4:3");
    }
}
