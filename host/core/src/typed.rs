//! Tables of the Go structs of the Kubernetes API, with the two directions of their conversion.
//!
//! Karmada's native rules convert an object into typed structs and back. The conversion fails if a field has the
//! wrong type, drops unknown fields, and writes zero values by the rules of `omitempty`. [`Shape::check`] is the
//! first direction, [`Shape::printed`] the second. (Kubernetes: `k8s.io/apimachinery/pkg/runtime/converter.go`.)
//!
//! Intentional differences: a number that overflows 32 bits is an error where the converter wraps it, and an
//! integral float is an integer also in a status that a member reported.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::quantity::Quantity;
use crate::shape::{Malformed, as_integer, type_name};
use crate::time::Time;

/// Go type of a field.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// `bool`.
    Bool,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
    /// `string`, or a type made from it.
    Text,
    /// `metav1.Time`.
    Time,
    /// `resource.Quantity`.
    Quantity,
    /// Any value; neither checked nor changed.
    Any,
    /// Slice.
    List(&'static Shape),
    /// Map from strings.
    Map(&'static Shape),
    /// Struct; fields that the table lacks are unknown.
    Struct(&'static [Field]),
}

/// Field of a struct.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    name: &'static str,
    shape: Shape,
    presence: Presence,
}

/// Condition under which Go prints a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Always,
    /// `omitempty`; without effect on structs and times.
    NotEmpty,
    /// Pointer with `omitempty`: a zero is printed.
    Set,
}

impl Field {
    /// Creates a field that is always printed.
    pub const fn always(name: &'static str, shape: Shape) -> Self {
        Self {
            name,
            shape,
            presence: Presence::Always,
        }
    }

    /// Creates a field with `omitempty`. Structs and times are printed although they are empty.
    pub const fn not_empty(name: &'static str, shape: Shape) -> Self {
        Self {
            name,
            shape,
            presence: Presence::NotEmpty,
        }
    }

    /// Creates a pointer with `omitempty`.
    pub const fn pointer(name: &'static str, shape: Shape) -> Self {
        Self {
            name,
            shape,
            presence: Presence::Set,
        }
    }

    fn is_printed(&self, value: &Value) -> bool {
        match (self.presence, self.shape) {
            (Presence::Always, _) | (Presence::NotEmpty, Shape::Struct(_) | Shape::Time) => true,
            (Presence::Set, _) => !value.is_null(),
            (Presence::NotEmpty, _) => !is_empty(value),
        }
    }
}

fn field<'a>(fields: &'a [Field], name: &str) -> Option<&'a Shape> {
    let found = fields.iter().find(|field| field.name == name);
    found.map(|field| &field.shape)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(_) => as_integer(value) == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// Returns true for a time as Kubernetes prints it, such as `2026-01-01T12:00:00Z`, up to day 28 of a month. Other forms
/// need a parser, which takes ten times as long.
fn is_plain_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let fits_template = bytes.len() == 20
        && bytes
            .iter()
            .zip(b"0000-00-00T00:00:00Z")
            .all(|(byte, of_template)| match of_template {
                b'0' => byte.is_ascii_digit(),
                _ => byte == of_template,
            });
    let number = |at: usize| (bytes[at] - b'0') * 10 + (bytes[at + 1] - b'0');
    fits_template
        && (1..=12).contains(&number(5))
        && (1..=28).contains(&number(8))
        && number(11) < 24
        && number(14) < 60
        && number(17) < 60
}

/// Value that does not fit, with its place: steps from the inside to the outside.
struct Misfit {
    steps: Vec<String>,
    reason: String,
}

impl Misfit {
    fn inside(mut self, step: String) -> Self {
        self.steps.push(step);
        self
    }
}

/// Empty fields in the result of a conversion.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    /// Fields are left out as by Go.
    LeftOut,
    /// All fields of the structs are present, so that a missing list differs from an empty one.
    Present,
}

impl Shape {
    /// Checks that Go can decode a value. Null is the zero value of every type. `place` names the value in the error
    /// and may be empty.
    pub fn check(&self, value: &Value, place: &str) -> Result<(), Malformed> {
        self.fits(value).map_err(|Misfit { steps, reason }| {
            let steps: String = steps.iter().rev().map(String::as_str).collect();
            let place = format!("{place}{steps}");
            let place = place.trim_start_matches('.');
            Malformed::new(format!("{} {reason}", if place.is_empty() { "it" } else { place }))
        })
    }

    fn fits(&self, value: &Value) -> Result<(), Misfit> {
        let fits = match (self, value) {
            (_, Value::Null) | (Self::Any, _) | (Self::Bool, Value::Bool(_)) | (Self::Text, Value::String(_)) => true,
            (Self::Int32, _) => as_integer(value).is_some_and(|number| i32::try_from(number).is_ok()),
            (Self::Int64, _) => as_integer(value).is_some(),
            (Self::Time, Value::String(text)) => is_plain_time(text) || Time::deserialize(value).is_ok(),
            (Self::Quantity, _) => Quantity::from_json(value).is_ok(),
            (Self::List(element), Value::Array(elements)) => {
                for (index, value) in elements.iter().enumerate() {
                    element
                        .fits(value)
                        .map_err(|misfit| misfit.inside(format!("[{index}]")))?;
                }
                true
            }
            (Self::Map(member), Value::Object(members)) => {
                for (name, value) in members {
                    member.fits(value).map_err(|misfit| misfit.inside(format!(".{name}")))?;
                }
                true
            }
            (Self::Struct(fields), Value::Object(members)) => {
                // Objects mostly have few of the fields, and names mostly differ in length.
                for (name, value) in members {
                    if let Some(shape) = field(fields, name) {
                        let fitted = shape.fits(value);
                        fitted.map_err(|misfit| misfit.inside(format!(".{name}")))?;
                    }
                }
                true
            }
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let reason = match self {
            Self::Int32 if as_integer(value).is_some() => "is outside of 32 bits".to_owned(),
            _ => format!("is {}, not {}", type_name(value), self.name()),
        };
        Err(Misfit {
            steps: Vec::new(),
            reason,
        })
    }

    /// Returns the shape of a field of a struct; `None` for an unknown field, and for other shapes.
    pub fn field(&self, name: &str) -> Option<Self> {
        match self {
            Self::Struct(fields) => field(fields, name).copied(),
            _ => None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Bool => "a boolean",
            Self::Int32 | Self::Int64 => "an integer",
            Self::Text => "a string",
            Self::Time => "a time",
            Self::Quantity => "a quantity",
            Self::Any => "a value",
            Self::List(_) => "a list",
            Self::Map(_) | Self::Struct(_) => "an object",
        }
    }

    /// Returns a value as Go prints it after decoding. The value must fit.
    pub fn printed(&self, value: &Value) -> Value {
        self.converted(value, Empty::LeftOut)
    }

    /// True if Go decodes both values to the same struct (`reflect.DeepEqual`): a missing list differs from an empty
    /// one, and a missing number equals zero. Both values must fit.
    pub fn is_same(&self, left: &Value, right: &Value) -> bool {
        self.converted(left, Empty::Present) == self.converted(right, Empty::Present)
    }

    fn converted(&self, value: &Value, empty: Empty) -> Value {
        match (self, value) {
            (Self::Struct(fields), _) => {
                let mut members = Map::new();
                for field in *fields {
                    let value = value.get(field.name).unwrap_or(&Value::Null);
                    if empty == Empty::Present && field.presence == Presence::Set && value.is_null() {
                        members.insert(field.name.to_owned(), Value::Null);
                    } else if empty == Empty::Present || field.is_printed(value) {
                        members.insert(field.name.to_owned(), field.shape.converted(value, empty));
                    }
                }
                Value::Object(members)
            }
            (Self::List(element), Value::Array(elements)) => {
                elements.iter().map(|value| element.converted(value, empty)).collect()
            }
            (Self::Map(member), Value::Object(members)) => {
                let converted = |(name, value): (&String, &Value)| (name.clone(), member.converted(value, empty));
                Value::Object(members.iter().map(converted).collect())
            }
            (Self::Bool, Value::Null) => false.into(),
            (Self::Int32 | Self::Int64, _) => as_integer(value).unwrap_or(0).into(),
            (Self::Text, Value::Null) => "".into(),
            (Self::Time, Value::String(_)) => {
                Time::deserialize(value).map_or(Value::Null, |time| time.to_string().into())
            }
            (Self::Quantity, Value::Null) => "0".into(),
            (Self::Quantity, _) => {
                Quantity::from_json(value).map_or(Value::Null, |quantity| quantity.to_string().into())
            }
            _ => value.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PORT: &[Field] = &[
        Field::always("port", Shape::Int32),
        Field::pointer("error", Shape::Text),
    ];
    const FIELDS: &[Field] = &[
        Field::not_empty("name", Shape::Text),
        Field::not_empty("generation", Shape::Int64),
        Field::not_empty("ready", Shape::Bool),
        Field::not_empty("since", Shape::Time),
        Field::pointer("until", Shape::Time),
        Field::not_empty("ports", Shape::List(&Shape::Struct(PORT))),
        Field::always("metrics", Shape::List(&Shape::Any)),
        Field::not_empty("labels", Shape::Map(&Shape::Text)),
        Field::not_empty("capacity", Shape::Map(&Shape::Quantity)),
    ];
    const SAMPLE: Shape = Shape::Struct(FIELDS);

    #[test]
    fn a_plain_time_is_one_that_the_parser_accepts() {
        for text in ["2026-01-01T12:00:00Z", "0001-12-28T23:59:59Z", "9999-02-28T00:00:00Z"] {
            assert!(is_plain_time(text) && Time::deserialize(&json!(text)).is_ok(), "{text}");
        }
        for text in [
            "2026-13-01T12:00:00Z",
            "2026-00-01T12:00:00Z",
            "2026-01-00T12:00:00Z",
            "2026-02-30T12:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T12:60:00Z",
            "2026-01-01T12:00:61Z",
            "2026-01-01T12:00:00",
            "2026-01-01T12:00:0\u{e9}",
            "",
            "yesterday",
        ] {
            assert!(
                !is_plain_time(text) && Time::deserialize(&json!(text)).is_err(),
                "{text}"
            );
        }
        for text in [
            "2026-01-01 12:00:00Z",
            "2026-01-31T12:00:00Z",
            "2026-01-01T13:00:00+01:00",
        ] {
            assert!(
                !is_plain_time(text) && Time::deserialize(&json!(text)).is_ok(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_field_of_the_wrong_type_is_named() {
        let check = |value: Value, expected: Result<(), &str>| {
            let got = SAMPLE.check(&value, "status").map_err(|error| error.to_string());
            assert_eq!(got, expected.map_err(str::to_owned), "{value}");
        };
        check(
            json!({"name": "x", "generation": 3.0, "unknown": {"a": []}, "since": "2024-01-01T00:00:00Z"}),
            Ok(()),
        );
        check(
            json!({"name": null, "ports": [null, {"port": null}], "capacity": {"cpu": 1, "memory": "1Gi"}}),
            Ok(()),
        );
        check(Value::Null, Ok(()));
        check(json!("x"), Err("status is a string, not an object"));
        check(
            json!({"generation": 1.5}),
            Err("status.generation is a number, not an integer"),
        );
        check(json!({"ready": "true"}), Err("status.ready is a string, not a boolean"));
        check(
            json!({"since": "yesterday"}),
            Err("status.since is a string, not a time"),
        );
        check(json!({"ports": {}}), Err("status.ports is an object, not a list"));
        check(
            json!({"ports": [{}, {"port": "http"}]}),
            Err("status.ports[1].port is a string, not an integer"),
        );
        check(
            json!({"ports": [{"port": 1_i64 << 40}]}),
            Err("status.ports[0].port is outside of 32 bits"),
        );
        check(
            json!({"labels": {"a": 1}}),
            Err("status.labels.a is a number, not a string"),
        );
        check(
            json!({"capacity": {"cpu": "much"}}),
            Err("status.capacity.cpu is a string, not a quantity"),
        );
        let unnamed = |value: Value| SAMPLE.check(&value, "").map_err(|error| error.to_string());
        assert_eq!(unnamed(json!([])), Err("it is a list, not an object".to_owned()));
        assert_eq!(
            unnamed(json!({"name": 1})),
            Err("name is a number, not a string".to_owned())
        );
    }

    #[test]
    fn zeros_and_unknown_fields_are_printed_as_by_go() {
        let check = |value: Value, expected: Value| assert_eq!(SAMPLE.printed(&value), expected, "{value}");
        let empty = json!({"since": null, "metrics": null});
        check(json!({}), empty.clone());
        check(Value::Null, empty.clone());
        check(
            json!({"name": "", "generation": 0, "ready": false, "ports": [], "labels": {}, "unknown": 1}),
            empty,
        );
        check(
            json!({
                "name": "x", "generation": 2.0, "ready": true, "since": "2024-01-01T01:00:00+01:00", "until": null,
                "ports": [{"name": "web"}, {"port": 80, "error": ""}], "metrics": [], "labels": {"a": null},
                "capacity": {"memory": 1024},
            }),
            json!({
                "name": "x", "generation": 2, "ready": true, "since": "2024-01-01T00:00:00Z",
                "ports": [{"port": 0}, {"port": 80, "error": ""}], "metrics": [], "labels": {"a": ""},
                "capacity": {"memory": "1024"},
            }),
        );
    }

    #[test]
    fn a_missing_list_is_not_an_empty_one() {
        let check =
            |left: Value, right: Value, same: bool| assert_eq!(SAMPLE.is_same(&left, &right), same, "{left} {right}");
        check(
            json!({}),
            json!({"generation": 0, "name": "", "unknown": 1, "ports": null}),
            true,
        );
        check(json!({}), json!({"ports": []}), false);
        check(json!({}), json!({"labels": {}}), false);
        check(
            json!({"ports": [{}]}),
            json!({"ports": [{"port": 0, "error": null}]}),
            true,
        );
        check(json!({"ports": [{}]}), json!({"ports": [{"error": ""}]}), false);
        check(
            json!({"since": "2024-01-01T00:00:00Z"}),
            json!({"since": "2024-01-01T01:00:00+01:00"}),
            true,
        );
    }
}
