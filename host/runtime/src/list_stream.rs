//! Streaming of JSON lists item by item while the response arrives, so that memory does not grow with the list.
//!
//! Items contain only the fields that the caller needs: most of a pod is managed fields, volumes and environment.

use std::collections::BTreeMap;
use std::fmt;

use futures::io::{AsyncBufRead, AsyncBufReadExt};
use http::Request;
use kube::Client;
use memchr::memchr2;
use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Items per page, on API servers that support paging.
const PAGE: u32 = 500;
/// Largest item or list metadata, in bytes. An object in etcd has at most 1.5 MiB.
const VALUE_BYTES_MAX: usize = 8 << 20;

/// Fields of an object, as a tree. A field without fields of its own is read whole.
#[derive(Debug, Default)]
pub struct Fields(BTreeMap<String, Fields>);

impl Fields {
    /// Returns the fields of these paths, such as `spec.containers.resources`. Lists have no segment: the path goes on in
    /// each of their elements.
    pub fn of(paths: &[&str]) -> Self {
        let mut fields = Self::default();
        for path in paths {
            let root = &mut fields;
            path.split('.')
                .fold(root, |fields, name| fields.0.entry(name.to_owned()).or_default());
        }
        fields
    }

    /// Returns these fields of an object in JSON. A value that is neither object nor list, but would have to be one to
    /// have a field, is null.
    fn read(&self, json: &[u8]) -> serde_json::Result<Value> {
        let mut json = serde_json::Deserializer::from_slice(json);
        let value = self.deserialize(&mut json)?;
        json.end()?;
        Ok(value)
    }
}

/// Name of a field in JSON, which is looked up in these fields.
struct Name<'a>(&'a Fields);

impl<'de, 'a> DeserializeSeed<'de> for Name<'a> {
    type Value = Option<(&'a str, &'a Fields)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for Name<'a> {
    type Value = Option<(&'a str, &'a Fields)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a field name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let field = self.0.0.get_key_value(name);
        Ok(field.map(|(name, fields)| (name.as_str(), fields)))
    }
}

impl<'de> DeserializeSeed<'de> for &Fields {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.0.is_empty() {
            Value::deserialize(deserializer)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for &Fields {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(field) = map.next_key_seed(Name(self))? {
            match field {
                Some((name, fields)) => drop(object.insert(name.to_owned(), map.next_value_seed(fields)?)),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E>(self, _: &str) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// Calls `each` for every item of a collection, with these fields of it. Returns `None` if a part of the collection could
/// not be read.
///
/// The request sets `resourceVersion=0`: the API server answers from its watch cache, without a quorum read of etcd.
/// kube-apiserver then ignores `limit` and returns one list of any length, which is why it is read as a stream. On
/// servers that do page, the `continue` tokens are followed.
pub async fn for_each(client: &Client, path: &str, fields: &Fields, mut each: impl FnMut(&Value) + Send) -> Option<()> {
    let mut from = "resourceVersion=0".to_owned();
    loop {
        let request = Request::get(format!("{path}?limit={PAGE}&{from}"))
            .body(Vec::new())
            .ok()?;
        let answer = Box::pin(client.request_stream(request).await.ok()?);
        let token = read(answer, fields, &mut each).await?;
        if token.is_empty() {
            return Some(());
        }
        from = format!("continue={token}");
    }
}

/// Reads one response. Returns its `continue` token, which is empty if there is no further page.
async fn read(
    mut answer: impl AsyncBufRead + Unpin,
    fields: &Fields,
    each: &mut (impl FnMut(&Value) + Send),
) -> Option<String> {
    let (mut list, mut token) = (Splitter::new(fields), String::new());
    loop {
        let text = answer.fill_buf().await.ok()?;
        if text.is_empty() {
            return list.is_complete().then_some(token);
        }
        let found = |part| match part {
            Part::Item(item) => each(&item),
            Part::Metadata(metadata) => metadata["continue"].as_str().unwrap_or_default().clone_into(&mut token),
        };
        list.push(text, found).ok()?;
        let read = text.len();
        answer.consume_unpin(read);
    }
}

/// Complete part of a list.
#[derive(Debug, PartialEq)]
enum Part {
    Metadata(Value),
    Item(Value),
}

/// Error: the text is not a list of objects, or a part of it is too large.
#[derive(Debug, PartialEq)]
struct Malformed;

/// Splitter that finds `metadata` and the elements of `items` in the text of a list, which arrives in pieces, and drops
/// the rest.
struct Splitter<'a> {
    /// Fields of the items.
    fields: &'a Fields,
    /// Number of open objects and arrays.
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Last string directly in the list: the name of the current field.
    field: Vec<u8>,
    in_items: bool,
    in_part: bool,
    /// Text of the current part from earlier pieces.
    part: Vec<u8>,
    complete: bool,
}

/// Meaning of a byte outside of strings.
enum Delimiter {
    /// First byte of a part.
    Opens,
    /// Last byte of a part.
    Closes,
    Other,
}

/// Depth inside the list, and inside its `items`.
const IN_LIST: usize = 1;
const IN_ITEMS: usize = 2;

impl<'a> Splitter<'a> {
    fn new(fields: &'a Fields) -> Self {
        Self {
            fields,
            depth: 0,
            in_string: false,
            escaped: false,
            field: Vec::new(),
            in_items: false,
            in_part: false,
            part: Vec::new(),
            complete: false,
        }
    }

    /// True once the list is closed.
    fn is_complete(&self) -> bool {
        self.complete
    }

    /// Reads the next text of the list. `found` gets each part that it completes.
    fn push(&mut self, text: &[u8], mut found: impl FnMut(Part)) -> Result<(), Malformed> {
        // A part is copied only where a piece ends within it.
        let (mut part_start, mut end) = (0, 0);
        while end < text.len() {
            let rest = text.get(end..).unwrap_or_default();
            let run = rest.get(..self.run(rest)).unwrap_or(rest);
            end += run.len();
            if self.in_string {
                self.string(run);
                continue;
            }
            match self.delimiter(run.last().copied().unwrap_or_default())? {
                Delimiter::Opens => part_start = end - 1,
                Delimiter::Closes => found(self.close(text.get(part_start..end).unwrap_or_default())?),
                Delimiter::Other => {}
            }
        }
        if self.in_part {
            self.keep(text.get(part_start..).unwrap_or_default())?;
        }
        Ok(())
    }

    fn keep(&mut self, text: &[u8]) -> Result<(), Malformed> {
        if self.part.len() + text.len() > VALUE_BYTES_MAX {
            return Err(Malformed);
        }
        self.part.extend_from_slice(text);
        Ok(())
    }

    /// Returns the length of the text up to and including the next byte with a meaning, at least 1.
    fn run(&self, text: &[u8]) -> usize {
        let next = if self.escaped {
            Some(0)
        } else if self.in_string {
            memchr2(b'"', b'\\', text)
        } else {
            text.iter()
                .position(|byte| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']'))
        };
        next.map_or(text.len(), |index| index + 1)
    }

    /// Reads a byte outside of strings.
    fn delimiter(&mut self, byte: u8) -> Result<Delimiter, Malformed> {
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == IN_LIST {
                    self.field.clear();
                }
            }
            b'{' | b'[' => {
                let is_metadata = self.depth == IN_LIST && byte == b'{' && self.field == b"metadata";
                let is_item = self.in_items && self.depth == IN_ITEMS && byte == b'{';
                self.in_items |= self.depth == IN_LIST && byte == b'[' && self.field == b"items";
                self.depth += 1;
                if is_metadata || is_item {
                    self.in_part = true;
                    return Ok(Delimiter::Opens);
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.checked_sub(1).ok_or(Malformed)?;
                self.complete = self.depth == 0;
                if self.in_part && self.depth == if self.in_items { IN_ITEMS } else { IN_LIST } {
                    self.in_part = false;
                    return Ok(Delimiter::Closes);
                }
                self.in_items &= self.depth != IN_LIST;
            }
            _ => {}
        }
        Ok(Delimiter::Other)
    }

    /// Reads a run inside of a string: text, and the byte that ends it if it has one.
    fn string(&mut self, run: &[u8]) {
        let text = match run {
            _ if self.escaped => {
                self.escaped = false;
                return;
            }
            [text @ .., b'\\'] => {
                self.escaped = true;
                text
            }
            [text @ .., b'"'] => {
                self.in_string = false;
                text
            }
            text => text,
        };
        if self.depth == IN_LIST {
            self.field.extend_from_slice(text);
        }
    }

    /// Reads a part that ends with this text.
    fn close(&mut self, text: &[u8]) -> Result<Part, Malformed> {
        let text = if self.part.is_empty() && text.len() <= VALUE_BYTES_MAX {
            text
        } else {
            self.keep(text)?;
            &self.part
        };
        let part = if self.in_items {
            self.fields.read(text).map(Part::Item)
        } else {
            serde_json::from_slice(text).map(Part::Metadata)
        };
        self.part.clear();
        part.map_err(|_| Malformed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Reads a text as a whole and in pieces of every length up to 9, which give the same parts.
    fn parts(text: &str) -> Result<(Vec<Part>, bool), Malformed> {
        let read = |length: usize| {
            let (fields, mut parts) = (Fields::default(), Vec::new());
            let mut list = Splitter::new(&fields);
            for piece in text.as_bytes().chunks(length) {
                list.push(piece, |part| parts.push(part))?;
            }
            Ok((parts, list.is_complete()))
        };
        let whole = read(text.len().max(1));
        for length in 1..10 {
            assert_eq!(read(length), whole, "pieces of {length}: {text}");
        }
        whole
    }

    #[test]
    fn items_and_metadata_are_found_wherever_they_are() {
        let item = json!({"metadata": {"name": "a\"]}"}, "items": [{"metadata": {}}], "x": [[]], "é": "\\"});
        let metadata = json!({"continue": "t\"", "resourceVersion": "7"});
        let lists = [
            json!({"kind": "PodList", "metadata": metadata, "items": [item, {}, item]}).to_string(),
            format!(r#"{{ "items" : [ {item} , {{}}, {item}] , "other": {{"items": [{{}}]}}, "metadata":{metadata}}}"#),
        ];
        for list in lists {
            let (found, complete) = parts(&list).unwrap();
            let items: Vec<_> = found.iter().filter(|part| matches!(part, Part::Item(_))).collect();
            assert_eq!(
                items,
                [
                    &Part::Item(item.clone()),
                    &Part::Item(json!({})),
                    &Part::Item(item.clone())
                ],
                "{list}"
            );
            assert!(found.contains(&Part::Metadata(metadata.clone())) && complete, "{list}");
        }
    }

    #[test]
    fn a_list_that_is_cut_off_or_no_list_is_not_complete() {
        for text in [r#"{"items":[{"a":1},{"b""#, r#"{"items":[{"a":1}]"#, "", "null"] {
            assert!(!parts(text).unwrap().1, "{text}");
        }
        assert_eq!(parts(r#"{"items":[{"a" 1}]}"#), Err(Malformed));
        assert_eq!(parts("]"), Err(Malformed));
        assert_eq!(parts(r#"{"items":null}"#), Ok((Vec::new(), true)));
    }

    #[test]
    fn an_item_has_a_maximum_size_in_pieces_and_as_a_whole() {
        let list_with = |length: usize| format!(r#"{{"items":[{{"a":"{}"}}]}}"#, "x".repeat(length));
        let check = |length: usize, piece: usize, expected: bool| {
            let fields = Fields::default();
            let mut list = Splitter::new(&fields);
            let text = list_with(length);
            let read: Result<(), _> = text
                .as_bytes()
                .chunks(piece)
                .try_for_each(|piece| list.push(piece, drop));
            assert_eq!(read.is_ok(), expected, "{length} in pieces of {piece}");
        };
        let fits = VALUE_BYTES_MAX - r#"{"a":""}"#.len();
        for piece in [1 << 20, 2 * VALUE_BYTES_MAX] {
            check(fits, piece, true);
            check(fits + 1, piece, false);
        }
    }

    #[test]
    fn an_item_has_the_fields_that_are_asked_for() {
        let fields = Fields::of(&["metadata.name", "spec.containers.resources", "spec.node", "status"]);
        let check = |item: Value, expected: Value| {
            assert_eq!(fields.read(item.to_string().as_bytes()).unwrap(), expected, "{item}");
        };
        check(
            json!({
                "kind": "Pod",
                "metadata": {"name": "a\"b", "managedFields": [{"x": [1, -2, 0.5, null, true]}]},
                "spec": {
                    "containers": [{"image": "app", "resources": {"limits": {"cpu": 1}}}, {"name": "x"}, "odd", 7, null],
                    "node": {"name": "n"},
                },
                "status": [1, {"a": "b"}],
            }),
            json!({
                "metadata": {"name": "a\"b"},
                "spec": {
                    "containers": [{"resources": {"limits": {"cpu": 1}}}, {}, null, null, null], "node": {"name": "n"},
                },
                "status": [1, {"a": "b"}],
            }),
        );
        check(
            json!({"metadata": -1, "spec": 0.5}),
            json!({"metadata": null, "spec": null}),
        );
        check(json!({"metadata": true}), json!({"metadata": null}));
        assert!(fields.read(b"{\"metadata\": {\"name\": }}").is_err());
        assert!(fields.read(b"{\"other\": [}").is_err());
    }
}
