//! Conversion of Lua values to JSON, with Karmada's rules for empty tables. (Karmada:
//! `pkg/resourceinterpreter/customized/declarative/luavm/lua_convert.go`.)
//!
//! Intentional differences: the same table may occur twice (only cycles are errors), an empty element is dropped
//! without affecting its neighbours, and size and depth are bounded.

use std::collections::HashSet;

use bulkhead_plugin::one_line;
use mlua::Table;
use serde_json::{Map, Number, Value};

/// Maximum length of a path in a message, in characters.
const PATH_CHARS_MAX: usize = 200;
/// Maximum nesting depth of a reply.
const DEPTH_MAX: usize = 100;
/// Size charged for a value in addition to its text, in bytes, so that the number of small values is bounded too.
const VALUE_BYTES: usize = 8;

/// Error for a value that cannot be represented in JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotJson(String);

/// Conversion rules for results: lossless, or with Karmada's losses and inventions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conversions {
    /// A table may be used twice, an empty table keeps its type regardless of its key, replicas out of range are an
    /// error, and nil is an empty list of dependencies.
    #[default]
    Safe,
    /// Karmada's behaviour. A table that is used twice is an error. An empty object whose key contains `|` becomes a
    /// list. One whose key also contains a backslash is added once more without it. Several empty tables in a list
    /// are an error. Replicas beyond 32 bits become the minimum 32-bit integer. A nil list of dependencies is an error.
    Karmada,
}

/// Returns the name of a value's type in Lua, where all numbers have one type.
pub(crate) fn lua_type_name(value: &mlua::Value) -> &'static str {
    if value.is_integer() {
        "number"
    } else {
        value.type_name()
    }
}

/// Treatment of an empty table, which may stand for an object or a list.
#[derive(Clone, Debug)]
pub(crate) enum EmptyTables {
    /// It is kept as an empty object; the reader knows the expected type.
    Kept,
    /// It takes the type found at the same path in the reference objects. It is dropped if they have neither type
    /// there.
    AsIn(EmptyPaths),
}

impl EmptyTables {
    /// Drops empty tables everywhere except at the root.
    pub(crate) fn dropped(conversions: Conversions) -> Self {
        Self::AsIn(EmptyPaths {
            conversions,
            ..EmptyPaths::default()
        })
    }

    fn conversions(&self) -> Conversions {
        match self {
            Self::Kept => Conversions::Safe,
            Self::AsIn(places) => places.conversions,
        }
    }

    /// Takes the types from any of the `references`.
    pub(crate) fn as_in(references: &[&Value], conversions: Conversions) -> Self {
        let mut places = EmptyPaths {
            conversions,
            ..EmptyPaths::default()
        };
        for reference in references {
            places.collect(reference, &mut Vec::new());
        }
        Self::AsIn(places)
    }
}

/// Paths of empty objects and lists in the references, as names from the root. Elements of a list share the path of
/// the list.
#[derive(Clone, Debug, Default)]
pub(crate) struct EmptyPaths {
    objects: HashSet<Vec<String>>,
    lists: HashSet<Vec<String>>,
    conversions: Conversions,
}

impl EmptyPaths {
    fn collect<'v>(&mut self, value: &'v Value, path: &mut Vec<&'v str>) {
        match value {
            Value::Object(members) if members.is_empty() => {
                self.objects
                    .insert(path.iter().map(|name| (*name).to_owned()).collect());
            }
            Value::Array(elements) if elements.is_empty() => {
                self.lists.insert(path.iter().map(|name| (*name).to_owned()).collect());
            }
            Value::Object(members) => {
                for (name, member) in members {
                    path.push(name);
                    self.collect(member, path);
                    path.pop();
                }
            }
            Value::Array(elements) => elements.iter().for_each(|element| self.collect(element, path)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Returns the empty value for a path. An object takes precedence if the references have both.
    fn resolve(&self, path: &[String]) -> Option<Value> {
        let last = path.last().map(String::as_str).unwrap_or_default();
        let misread = self.conversions == Conversions::Karmada && last.contains(['|', '\\']);
        if self.objects.contains(path) {
            Some(if misread {
                Value::Array(Vec::new())
            } else {
                Value::Object(Map::new())
            })
        } else {
            self.lists.contains(path).then(|| Value::Array(Vec::new()))
        }
    }
}

/// Converts one value and returns the bytes charged for it. An empty table at the root is an empty object. `fill` is
/// called with tables that have a metatable: the host's tables that are incomplete.
pub(crate) fn encode(
    value: &mlua::Value,
    empties: &EmptyTables,
    bytes_max: usize,
    fill: &dyn Fn(&Table) -> mlua::Result<()>,
) -> (Result<Value, NotJson>, usize) {
    let (path, open) = (Vec::new(), Vec::new());
    let mut encoder = Encoder {
        empties,
        fill,
        bytes_left: bytes_max,
        bytes_max,
        path,
        open,
        depth: 0,
    };
    let encoded = encoder
        .value(value)
        .map(|value| value.unwrap_or_else(|| Value::Object(Map::new())));
    (encoded, bytes_max - encoder.bytes_left)
}

struct Encoder<'a> {
    empties: &'a EmptyTables,
    fill: &'a dyn Fn(&Table) -> mlua::Result<()>,
    bytes_left: usize,
    bytes_max: usize,
    /// Names from the root to the current value, without positions in lists.
    path: Vec<String>,
    /// Tables that are being converted, outermost first.
    open: Vec<*const std::ffi::c_void>,
    /// Number of tables around the current value.
    depth: usize,
}

/// Type of a table, determined by its first key.
enum Shape {
    Unknown,
    List(Vec<(usize, Option<Value>)>),
    Object(Map<String, Value>),
}

impl Encoder<'_> {
    /// Converts a value; `None` for an empty table that is to be dropped.
    fn value(&mut self, value: &mlua::Value) -> Result<Option<Value>, NotJson> {
        self.spend(VALUE_BYTES)?;
        Ok(Some(match value {
            mlua::Value::Nil => Value::Null,
            mlua::Value::Boolean(boolean) => Value::Bool(*boolean),
            mlua::Value::Integer(integer) => Value::Number((*integer).into()),
            mlua::Value::Number(number) => Value::Number(self.number(*number)?),
            mlua::Value::String(text) => Value::String(self.text(text)?),
            mlua::Value::Table(table) => return self.table(table),
            other => return Err(self.error(format!("a {} cannot be returned", other.type_name()))),
        }))
    }

    fn spend(&mut self, bytes: usize) -> Result<(), NotJson> {
        let remaining = self.bytes_left.checked_sub(bytes);
        self.bytes_left = remaining.ok_or_else(|| NotJson(format!("larger than {} bytes", self.bytes_max)))?;
        Ok(())
    }

    fn error(&self, message: String) -> NotJson {
        let path = one_line(&self.path.join("."), PATH_CHARS_MAX);
        NotJson(if path.is_empty() {
            message
        } else {
            format!("{path}: {message}")
        })
    }

    /// Converts a number. An integral number within 64 bits becomes an integer.
    fn number(&self, number: f64) -> Result<Number, NotJson> {
        if number.fract() == 0.0 && number.abs() < 9.2e18 {
            return Ok((number as i64).into());
        }
        Number::from_f64(number).ok_or_else(|| self.error(format!("{number} is not a JSON number")))
    }

    fn text(&mut self, text: &mlua::LuaString) -> Result<String, NotJson> {
        let bytes = text.as_bytes();
        self.spend(bytes.len())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn table(&mut self, table: &Table) -> Result<Option<Value>, NotJson> {
        let pointer = table.to_pointer();
        if self.open.contains(&pointer) {
            return Err(self.error("a table contains itself".to_owned()));
        }
        if self.depth >= DEPTH_MAX {
            return Err(NotJson(format!("nested deeper than {DEPTH_MAX}")));
        }
        if table.metatable().is_some() {
            (self.fill)(table).map_err(|error| self.error(error.to_string()))?;
        }
        self.open.push(pointer);
        self.depth += 1;
        let shape = self.members(table);
        self.depth -= 1;
        // Karmada remembers every table that it has seen, so a second use is an error there.
        if self.empties.conversions() == Conversions::Safe {
            self.open.pop();
        }
        match shape? {
            Shape::Unknown => Ok(match self.empties {
                EmptyTables::Kept => Some(Value::Object(Map::new())),
                EmptyTables::AsIn(places) => places.resolve(&self.path),
            }),
            Shape::Object(members) => Ok(Some(Value::Object(members))),
            Shape::List(elements) => self.list(elements).map(Some),
        }
    }

    fn members(&mut self, table: &Table) -> Result<Shape, NotJson> {
        let (mut shape, mut problem) = (Shape::Unknown, None);
        let walked = table.for_each(|key: mlua::Value, value: mlua::Value| {
            self.member(&mut shape, &key, &value).map_err(|error| {
                problem = Some(error);
                mlua::Error::runtime("not JSON")
            })
        });
        match (problem, walked) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(self.error(error.to_string())),
            (None, Ok(())) => Ok(shape),
        }
    }

    fn member(&mut self, shape: &mut Shape, key: &mlua::Value, value: &mlua::Value) -> Result<(), NotJson> {
        if let Shape::Unknown = shape {
            *shape = match key {
                mlua::Value::String(_) => Shape::Object(Map::new()),
                _ => Shape::List(Vec::new()),
            };
        }
        match (shape, key) {
            (Shape::List(elements), mlua::Value::Integer(index @ 1..)) => {
                let element = self.value(value)?;
                elements.push((*index as usize, element));
            }
            (Shape::List(_), mlua::Value::Integer(_) | mlua::Value::Number(_)) => {
                return Err(self.error("a list has a hole or an index that is not a position".to_owned()));
            }
            (Shape::Object(members), mlua::Value::String(name)) => {
                let name = self.text(name)?;
                self.path.push(name);
                let member = self.value(value)?;
                let name = self.path.pop().unwrap_or_default();
                if let Some(member) = member {
                    let emptied = member.as_array().is_some_and(Vec::is_empty) && name.contains('\\');
                    if emptied && self.empties.conversions() == Conversions::Karmada {
                        members.insert(name.replace('\\', ""), Value::Object(Map::new()));
                    }
                    members.insert(name, member);
                }
            }
            _ => return Err(self.error("a table has keys of different or impossible types".to_owned())),
        }
        Ok(())
    }

    fn list(&self, mut elements: Vec<(usize, Option<Value>)>) -> Result<Value, NotJson> {
        elements.sort_unstable_by_key(|(index, _)| *index);
        if elements
            .iter()
            .enumerate()
            .any(|(position, (index, _))| position + 1 != *index)
        {
            return Err(self.error("a list has a hole or an index that is not a position".to_owned()));
        }
        let dropped = elements.iter().filter(|(_, element)| element.is_none()).count();
        if dropped > 1 && self.empties.conversions() == Conversions::Karmada {
            return Err(
                self.error("a list has several empty tables; Karmada may drop other elements instead".to_owned())
            );
        }
        Ok(Value::Array(
            elements.into_iter().filter_map(|(_, element)| element).collect(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Converts the result of a script, with the types of empty tables from a reference.
    fn check(script: &str, reference: Value, expected: Value) {
        let lua = mlua::Lua::new();
        let returned: mlua::Value = lua.load(script).eval().unwrap();
        let empties = EmptyTables::as_in(&[&reference], Conversions::Safe);
        let (encoded, _) = encode(&returned, &empties, 1_000, &|_| Ok(()));
        assert_eq!(encoded, Ok(expected), "{script}");
    }

    #[test]
    fn a_name_with_a_nul_is_not_a_path() {
        check(
            r"return {['a\0b'] = {}, a = {b = {}}}",
            json!({"a": {"b": []}}),
            json!({"a": {"b": []}}),
        );
        check(r"return {a = {b = {}}}", json!({"a\0b": []}), json!({"a": {}}));
        check(r"return {['a\0b'] = {}}", json!({"a\0b": []}), json!({"a\0b": []}));
    }
}
