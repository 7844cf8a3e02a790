//! Conversion of our own functions' results to Lua, with the conventions of `lazy`. Results are small and temporary,
//! so they are built eagerly.

use mlua::Lua;
use serde_json::{Number, Value};

/// Maximum nesting depth of a result. Their sources are far flatter.
const DEPTH_MAX: usize = 256;

/// Converts a number. Every number is a double in Lua.
pub(crate) fn number(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// Converts a value to Lua.
pub(crate) fn decode(lua: &Lua, value: &Value) -> mlua::Result<mlua::Value> {
    at_depth(lua, value, 0)
}

fn at_depth(lua: &Lua, value: &Value, depth: usize) -> mlua::Result<mlua::Value> {
    if depth > DEPTH_MAX {
        return Err(mlua::Error::runtime(format!(
            "a result is nested deeper than {DEPTH_MAX}"
        )));
    }
    Ok(match value {
        Value::Null => mlua::Value::Nil,
        Value::Bool(boolean) => mlua::Value::Boolean(*boolean),
        Value::Number(number_of) => mlua::Value::Number(number(number_of)),
        Value::String(text) => mlua::Value::String(lua.create_string(text)?),
        Value::Array(elements) => {
            let table = lua.create_table_with_capacity(elements.len(), 0)?;
            for element in elements.iter().filter(|element| !element.is_null()) {
                table.raw_push(at_depth(lua, element, depth + 1)?)?;
            }
            mlua::Value::Table(table)
        }
        Value::Object(members) => {
            let table = lua.create_table_with_capacity(0, members.len())?;
            for (name, member) in members.iter().filter(|(_, member)| !member.is_null()) {
                table.raw_set(name.as_str(), at_depth(lua, member, depth + 1)?)?;
            }
            mlua::Value::Table(table)
        }
    })
}
