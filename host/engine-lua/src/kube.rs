//! The module `kube`. (Karmada: `pkg/resourceinterpreter/customized/declarative/luavm/kube.go`.)
//!
//! A function returns `true` and its result, or `false`, a message and an error level. The library turns the latter
//! into an ordinary Lua error with the position of the script. Level 0 adds no position, as where Karmada panics.
//!
//! The first argument of each is the function that fills the host's tables; the script's arguments follow.

use std::cell::Cell;
use std::sync::Arc;

use bulkhead_core::pod::{self, Detail};
use bulkhead_core::quantity::{QUANTITY_BYTES_MAX, Quantity};
use mlua::{Function, IntoLuaMulti, Lua, LuaString, MultiValue, Table};
use serde_json::Value;

use crate::decode::decode;
use crate::encode::{Conversions, EmptyTables, encode, lua_type_name};
use crate::meter::Meter;

/// Error level that adds the position of the caller.
const CALLER: u8 = 2;
/// Error level that adds no position.
const NOBODY: u8 = 0;
/// Maximum length of a namespace in bytes.
const NAMESPACE_BYTES_MAX: usize = 253;
/// Maximum number of quantities in one sum.
const QUANTITIES_MAX: usize = 8_192;

type Outcome = Result<Value, (String, u8)>;

/// Arguments of a call and the options to read them.
struct Arguments {
    values: MultiValue,
    /// Function that fills one of the host's tables.
    fill: Function,
    /// Maximum size of a table.
    bytes_max: usize,
    /// Fields of pod requirements to return.
    detail: Detail,
    /// Steps to charge for a table that was read: one per byte.
    steps: Cell<u64>,
}

/// Returns the raw functions by name.
pub(crate) fn functions(lua: &Lua, meter: &Arc<Meter>, bytes_max: usize, detail: Detail) -> mlua::Result<Table> {
    let module = lua.create_table()?;
    let add = |name: &str, function: fn(&Arguments) -> Outcome| {
        let meter = Arc::clone(meter);
        let function = lua.create_function(move |lua, (fill, values): (Function, MultiValue)| {
            meter.spend(lua, values.len() as u64)?;
            let arguments = Arguments {
                values,
                fill,
                bytes_max,
                detail,
                steps: Cell::new(0),
            };
            let outcome = function(&arguments);
            meter.spend(lua, arguments.steps.get())?;
            match outcome {
                Ok(value) => (true, decode(lua, &value)?).into_lua_multi(lua),
                Err((message, level)) => (false, message, level).into_lua_multi(lua),
            }
        });
        module.raw_set(name, function?)
    };
    add("resourceAdd", resource_add)?;
    add("accuratePodRequirements", accurate_pod_requirements)?;
    add("getPodDependencies", get_pod_dependencies)?;
    add("getResourceQuantity", get_resource_quantity)?;
    Ok(module)
}

/// Returns the sum of its arguments, which are quantities; nil counts as 0.
fn resource_add(arguments: &Arguments) -> Outcome {
    let count = arguments.values.len();
    if count > QUANTITIES_MAX {
        return Err((
            format!("resourceAdd was given {count} quantities, at most {QUANTITIES_MAX} are allowed"),
            CALLER,
        ));
    }
    let mut sum = Quantity::default();
    for (index, argument) in arguments.values.iter().enumerate() {
        sum = sum.plus(quantity(argument, index + 1, "resourceAdd")?);
    }
    Ok(sum.to_string().into())
}

/// Returns the requirements of a pod template, its only argument; nil if it has none.
fn accurate_pod_requirements(arguments: &Arguments) -> Outcome {
    if arguments.values.len() != 1 {
        // Wrong function name as in Karmada's message.
        return Err(("getPodRequirements only accepts one argument".to_owned(), CALLER));
    }
    let template = template(arguments, "accuratePodRequirements")?;
    let needed = pod::requirements(&template, arguments.detail).map_err(|error| not_a_template(&error))?;
    serde_json::to_value(needed).map_err(|error| (error.to_string(), CALLER))
}

/// Returns the dependencies of a pod template in a namespace, its two arguments; nil if it has none.
fn get_pod_dependencies(arguments: &Arguments) -> Outcome {
    if arguments.values.len() != 2 {
        return Err(("getPodDependencies only accepts two argument".to_owned(), CALLER));
    }
    let template = template(arguments, "getPodDependencies")?;
    let namespace = match arguments.values.get(1) {
        None | Some(mlua::Value::Nil) => "default".to_owned(),
        Some(mlua::Value::String(text)) => short(text, 2, "getPodDependencies", NAMESPACE_BYTES_MAX, "a namespace")?,
        Some(mlua::Value::Integer(number)) => number.to_string(),
        Some(mlua::Value::Number(number)) => number.to_string(),
        Some(other) => return Err(bad_argument(2, "getPodDependencies", "string", other)),
    };
    let found = pod::dependencies(&template, &namespace).map_err(|error| not_a_template(&error))?;
    Ok(if found.is_empty() {
        Value::Null
    } else {
        Value::Array(found)
    })
}

/// Returns a quantity, its only argument, as a number; nil is 0.
fn get_resource_quantity(arguments: &Arguments) -> Outcome {
    let (Some(argument), 1) = (arguments.values.front(), arguments.values.len()) else {
        return Err(("getResourceQuantity only accepts one argument".to_owned(), CALLER));
    };
    let quantity = quantity(argument, 1, "getResourceQuantity")?;
    if quantity.is_negative() {
        return Err((
            format!("int approximation unexpectedly returned a negative value: {quantity}"),
            CALLER,
        ));
    }
    Ok(quantity.as_f64().into())
}

fn quantity(argument: &mlua::Value, position: usize, function: &str) -> Result<Quantity, (String, u8)> {
    let text = match argument {
        mlua::Value::Nil => return Ok(Quantity::default()),
        mlua::Value::String(text) => short(text, position, function, QUANTITY_BYTES_MAX, "a quantity")?,
        other => return Err(bad_argument(position, function, "string", other)),
    };
    text.parse()
        .map_err(|error| (format!("cannot parse '{text}': {error}"), NOBODY))
}

/// Returns the text of an argument. It is copied only if it does not exceed the limit.
fn short(
    text: &LuaString,
    position: usize,
    function: &str,
    bytes_max: usize,
    what: &str,
) -> Result<String, (String, u8)> {
    let bytes = text.as_bytes().len();
    if bytes <= bytes_max {
        return Ok(text.to_string_lossy());
    }
    let message = format!("argument #{position} to {function} has {bytes} bytes, {what} has at most {bytes_max}");
    Err((message, CALLER))
}

/// Reads a pod template. Nested empty tables are dropped, because their type is unknown.
fn template(arguments: &Arguments, function: &str) -> Result<Value, (String, u8)> {
    match arguments.values.front() {
        Some(table @ mlua::Value::Table(_)) => {
            let fill = |unfilled: &Table| arguments.fill.call(unfilled);
            let (value, bytes) = encode(
                table,
                &EmptyTables::dropped(Conversions::Safe),
                arguments.bytes_max,
                &fill,
            );
            arguments.steps.set(bytes as u64);
            value.map_err(|error| not_a_template(&error))
        }
        Some(other) => Err(bad_argument(1, function, "table", other)),
        None => Err((
            format!("bad argument #1 to {function} (table expected, got nil)"),
            CALLER,
        )),
    }
}

fn bad_argument(position: usize, function: &str, expected: &str, got: &mlua::Value) -> (String, u8) {
    let got = lua_type_name(got);
    (
        format!("bad argument #{position} to {function} ({expected} expected, got {got})"),
        CALLER,
    )
}

fn not_a_template(error: &impl std::fmt::Display) -> (String, u8) {
    (format!("fail to convert lua value to PodTemplateSpec: {error}"), CALLER)
}
