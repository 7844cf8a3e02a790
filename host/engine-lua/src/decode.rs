//! JSON to Lua, with Karmada's conventions.
//! (Karmada: `pkg/resourceinterpreter/customized/declarative/luavm/lua.go:decodeValue`.)

use mlua::Lua;
use serde_json::Value;

/// Deepest nesting of an argument. Objects from the API are flatter by far.
const DEPTH_MAX: usize = 256;

/// Real tables, so that `type`, `pairs`, `ipairs`, `#` and `next` work. A null member is absent, a null element is
/// dropped and the later ones move up, every number is a double, `{}` and `[]` are the same empty table.
pub(crate) fn decode(lua: &Lua, value: &Value) -> mlua::Result<mlua::Value> {
    at_depth(lua, value, 0)
}

fn at_depth(lua: &Lua, value: &Value, depth: usize) -> mlua::Result<mlua::Value> {
    if depth > DEPTH_MAX {
        return Err(mlua::Error::runtime(format!("an argument is nested deeper than {DEPTH_MAX}")));
    }
    Ok(match value {
        Value::Null => mlua::Value::Nil,
        Value::Bool(boolean) => mlua::Value::Boolean(*boolean),
        Value::Number(number) => mlua::Value::Number(number.as_f64().unwrap_or(f64::NAN)),
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
