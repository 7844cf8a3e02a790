//! Protobuf bodies, which typed clients such as `kubectl create namespace` send. They are converted to JSON before
//! any other processing. Responses are always JSON, which such clients accept as well.
//!
//! `fields.txt` has the field numbers of Kubernetes 1.36, one message per line: `number:name:type:flags`. Types are
//! `s` text, `i` integer, `b` boolean, `y` bytes, `d` float, `T` and `U` times, `Q` quantity, `I` integer or text,
//! `R` raw JSON and `@` a message. Flags are `r` a list, `m` a map with text keys, `o` omitted when zero, `n` fields
//! inlined into the outer object.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

use crate::status_error::StatusError;

/// Media type of protobuf bodies.
const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// Prefix of every body.
const MAGIC: &[u8] = b"k8s\0";
/// Maximum nesting depth of messages.
const DEPTH_MAX: usize = 64;

#[derive(Clone, Copy)]
struct Field {
    name: &'static str,
    type_: &'static str,
    flags: &'static str,
}

impl Field {
    fn is(self, flag: char) -> bool {
        self.flags.contains(flag)
    }
}

type Messages = BTreeMap<&'static str, BTreeMap<u64, Field>>;

fn messages() -> &'static Messages {
    static MESSAGES: OnceLock<Messages> = OnceLock::new();
    MESSAGES.get_or_init(|| {
        let field = |text: &'static str| {
            let mut parts = text.split(':');
            let number = parts.next()?.parse::<u64>().ok()?;
            let (name, type_) = (parts.next()?, parts.next()?);
            Some((
                number,
                Field {
                    name,
                    type_,
                    flags: parts.next().unwrap_or_default(),
                },
            ))
        };
        let message = |line: &'static str| {
            let (name, fields) = line.split_once(' ').unwrap_or((line, ""));
            (name, fields.split(' ').filter_map(field).collect::<BTreeMap<_, _>>())
        };
        include_str!("fields.txt").lines().map(message).collect()
    })
}

/// Converts a protobuf body to JSON. Returns `None` for another content type.
///
/// # Errors
///
/// 415 for a kind whose fields are unknown, 400 for a malformed body.
pub(crate) fn to_json(content_type: &str, body: &[u8]) -> Result<Option<Vec<u8>>, StatusError> {
    if content_type.split(';').next().map(str::trim) != Some(MEDIA_TYPE) || body.is_empty() {
        return Ok(None);
    }
    let unreadable = || StatusError::bad_request("the body is no protobuf message of Kubernetes");
    let envelope = body
        .strip_prefix(MAGIC)
        .and_then(Envelope::read)
        .ok_or_else(unreadable)?;
    let message =
        message_name(&envelope.api_version, &envelope.kind).filter(|name| messages().contains_key(name.as_str()));
    let message = message.ok_or_else(|| StatusError::unsupported_media_type(MEDIA_TYPE, &["application/json"]))?;
    let mut object = object(&message, envelope.raw, DEPTH_MAX).ok_or_else(unreadable)?;
    object.insert("apiVersion".to_owned(), json!(envelope.api_version));
    object.insert("kind".to_owned(), json!(envelope.kind));
    Ok(Some(Value::Object(object).to_string().into_bytes()))
}

/// Returns the message name of a kind in `fields.txt`.
fn message_name(api_version: &str, kind: &str) -> Option<String> {
    if kind == "DeleteOptions" {
        return Some("meta.DeleteOptions".to_owned());
    }
    let group = match api_version {
        "v1" => "core",
        "autoscaling/v2" => "autoscaling",
        "autoscaling/v1" if kind == "HorizontalPodAutoscaler" => "autoscaling1",
        _ => api_version.strip_suffix("/v1")?.split('.').next()?,
    };
    Some(format!("{group}.{kind}"))
}

/// `runtime.Unknown`: the kind of the object and its bytes.
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut envelope = Self {
            api_version: String::new(),
            kind: String::new(),
            raw: &[],
        };
        for part in parts(bytes)? {
            match part {
                (1, Wire::Bytes(types)) => {
                    for part in parts(types)? {
                        match part {
                            (1, Wire::Bytes(text)) => envelope.api_version = text_of(text)?,
                            (2, Wire::Bytes(text)) => envelope.kind = text_of(text)?,
                            _ => {}
                        }
                    }
                }
                (2, Wire::Bytes(raw)) => envelope.raw = raw,
                _ => {}
            }
        }
        Some(envelope)
    }
}

/// A value in wire format.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Returns the numbered values of a message, or `None` if it is malformed.
fn parts(mut bytes: &[u8]) -> Option<Vec<(u64, Wire<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            1 => Wire::Number(u64::from_le_bytes(take(&mut bytes, 8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                Wire::Bytes(take(&mut bytes, length)?)
            }
            5 => Wire::Number(u32::from_le_bytes(take(&mut bytes, 4)?.try_into().ok()?).into()),
            _ => return None,
        };
        found.push((tag >> 3, value));
    }
    Some(found)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, tail) = bytes.split_at_checked(length)?;
    *bytes = tail;
    Some(head)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7F) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn text_of(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Converts a message to a JSON object. Unknown fields are ignored.
fn object(message: &str, bytes: &[u8], depth: usize) -> Option<Map<String, Value>> {
    let fields = messages().get(message).filter(|_| depth > 0)?;
    let mut object = Map::new();
    for (number, wire) in parts(bytes)? {
        let Some(field) = fields.get(&number).copied() else {
            continue;
        };
        let name = field.name.to_owned();
        if field.is('m') {
            let (key, value) = entry(field, wire, depth)?;
            let map = object.entry(name).or_insert_with(|| json!({}));
            map.as_object_mut()?.insert(key, value);
            continue;
        }
        let Some(value) = value(field, wire, depth)? else {
            continue;
        };
        if field.is('n') {
            object.extend(value.as_object()?.clone());
        } else if field.is('r') {
            object
                .entry(name)
                .or_insert_with(|| json!([]))
                .as_array_mut()?
                .push(value);
        } else if !(field.is('o') && is_zero(&value)) {
            object.insert(name, value);
        }
    }
    Some(object)
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(flag) => !flag,
        _ => false,
    }
}

/// Returns the key and value of a map entry.
fn entry(field: Field, wire: Wire<'_>, depth: usize) -> Option<(String, Value)> {
    let Wire::Bytes(bytes) = wire else { return None };
    let (mut key, mut found) = (String::new(), None);
    for part in parts(bytes)? {
        match part {
            (1, Wire::Bytes(text)) => key = text_of(text)?,
            (2, wire) => found = value(field, wire, depth)?,
            _ => {}
        }
    }
    let empty = || {
        if field.type_.starts_with('@') {
            json!({})
        } else {
            json!("")
        }
    };
    Some((key, found.unwrap_or_else(empty)))
}

/// Converts a value to JSON. Outer `None`: a malformed value; inner `None`: a time that is not set.
#[expect(clippy::option_option, reason = "both absences are used, and told apart above")]
fn value(field: Field, wire: Wire<'_>, depth: usize) -> Option<Option<Value>> {
    Some(Some(match (field.type_, wire) {
        ("i", Wire::Number(number)) => json!(number as i64),
        ("b", Wire::Number(number)) => json!(number != 0),
        ("d", Wire::Number(bits)) => json!(f64::from_bits(bits)),
        ("s", Wire::Bytes(bytes)) => json!(text_of(bytes)?),
        ("y", Wire::Bytes(bytes)) => json!(ByteString(bytes.to_vec())),
        ("T" | "U", Wire::Bytes([])) => return Some(None),
        ("T" | "U", Wire::Bytes(bytes)) => time(bytes, field.type_ == "U")?,
        ("Q", Wire::Bytes(bytes)) => json!(first_text(bytes)?),
        ("I", Wire::Bytes(bytes)) => int_or_string(bytes)?,
        ("R", Wire::Bytes(bytes)) => serde_json::from_str(&first_text(bytes)?).ok()?,
        (message, Wire::Bytes(bytes)) => Value::Object(object(message.strip_prefix('@')?, bytes, depth - 1)?),
        (_, Wire::Number(_)) => return None,
    }))
}

fn first_text(bytes: &[u8]) -> Option<String> {
    parts(bytes)?.into_iter().find_map(|part| match part {
        (1, Wire::Bytes(text)) => text_of(text),
        _ => None,
    })
}

fn int_or_string(bytes: &[u8]) -> Option<Value> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for part in parts(bytes)? {
        match part {
            (1, Wire::Number(sort)) => is_text = sort == 1,
            (2, Wire::Number(given)) => number = given as i64,
            (3, Wire::Bytes(given)) => text = text_of(given)?,
            _ => {}
        }
    }
    Some(if is_text { json!(text) } else { json!(number) })
}

fn time(bytes: &[u8], is_precise: bool) -> Option<Value> {
    let (mut seconds, mut nanos) = (0, 0);
    for part in parts(bytes)? {
        match part {
            (1, Wire::Number(given)) => seconds = given as i64,
            (2, Wire::Number(given)) => nanos = given as i32,
            _ => {}
        }
    }
    let at = Timestamp::new(seconds, if is_precise { nanos } else { 0 }).ok()?;
    Some(json!(if is_precise { format!("{at:.6}") } else { at.to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a field with a length-prefixed value.
    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let mut field = vec![(number << 3) | 2, content.len() as u8];
        field.extend(content);
        field
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let types = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), bytes(1, &types), bytes(2, raw)].concat()
    }

    fn json_of(body: &[u8]) -> Value {
        serde_json::from_slice(&to_json(MEDIA_TYPE, body).expect("a body").expect("protobuf")).expect("JSON")
    }

    #[test]
    fn a_config_map_is_read() {
        // Empty texts stand for fields that are omitted in JSON.
        let metadata = [bytes(1, b"settings"), bytes(2, b""), bytes(8, b"")].concat();
        let entry = [bytes(1, b"colour"), bytes(2, b"blue")].concat();
        let raw = [bytes(1, &metadata), bytes(2, &entry)].concat();
        let expected = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"colour": "blue"},
        });
        assert_eq!(json_of(&body("v1", "ConfigMap", &raw)), expected);
    }

    #[test]
    fn a_quota_and_an_access_review_are_read() {
        let amount = [bytes(1, b"pods"), bytes(2, &bytes(1, b"10"))].concat();
        let quota = json_of(&body("v1", "ResourceQuota", &bytes(2, &bytes(1, &amount))));
        assert_eq!(quota["spec"], json!({"hard": {"pods": "10"}}));
        let attributes = [bytes(1, b"default"), bytes(2, b"delete"), bytes(5, b"pods")].concat();
        let raw = bytes(2, &bytes(1, &attributes));
        let review = json_of(&body("authorization.k8s.io/v1", "SelfSubjectAccessReview", &raw));
        let expected = json!({"resourceAttributes": {"namespace": "default", "verb": "delete", "resource": "pods"}});
        assert_eq!(review["spec"], expected);
    }

    #[test]
    fn numbers_that_are_zero_are_kept_where_they_mean_something() {
        let spec = [0x08, 0x00, 0x28, 0x00];
        let object = json_of(&body("apps/v1", "Deployment", &bytes(2, &spec)));
        assert_eq!(
            object["spec"],
            json!({"replicas": 0}),
            "replicas may be 0, minReadySeconds is 0 anyway"
        );
    }

    #[test]
    fn what_does_not_read_is_refused() {
        let refused = |body: &[u8]| to_json(MEDIA_TYPE, body).expect_err("no body").code;
        assert_eq!(refused(b"{}"), 400);
        assert_eq!(refused(&body("v1", "ConfigMap", &[0x0A, 0xFF])), 400);
        assert_eq!(refused(&body("example.io/v1", "Widget", &[])), 415);
        assert_eq!(to_json("application/json", b"{}"), Ok(None));
    }

    #[test]
    fn every_message_that_a_field_names_is_there() {
        for (name, fields) in messages() {
            for field in fields.values() {
                let message = field.type_.strip_prefix('@');
                assert!(
                    message.is_none_or(|message| messages().contains_key(message)),
                    "{name}.{}",
                    field.name
                );
            }
        }
        assert!(messages().len() > 100);
    }
}
