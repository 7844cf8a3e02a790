//! Lazy conversion of the host's objects to Lua tables.
//!
//! Most scripts read a few members of a large object, nearly always by a name that occurs in their text. So a table
//! initially contains only the members whose names the script mentions, regardless of their meaning there. The other
//! members are added when an operation needs them: access to a name that is not mentioned, iteration, length, or any
//! write. Until then the table has a metatable that belongs to the state; afterwards it is an ordinary table.
//!
//! An incomplete table is indistinguishable from a complete one. If a mentioned name is not in the table, it is not
//! in the object either, or the script set it to nil. Scripts cannot access metatables, and library functions that
//! bypass them (`next`, `unpack`, `table.insert` …) fill a table first, see `library.luau`. So `type`, `pairs`, `#`,
//! `==`, assignment and others behave as for a table built eagerly. The iteration order depends only on the script
//! and the object.
//!
//! Karmada's conventions apply: a null member is absent, a null element is dropped and later ones move up, every
//! number is a double, `{}` and `[]` are the same empty table. (Karmada:
//! `pkg/resourceinterpreter/customized/declarative/luavm/lua.go:decodeValue`.)

use std::cell::RefCell;
use std::collections::BTreeMap;

use mlua::{IntoLua, Lua, Table};
use serde_json::{Map, Value};

use crate::decode::number;
use crate::mentioned::Mentioned;
use crate::meter::UNLIMITED;

/// Maximum length of a list that is built eagerly, in elements.
const ELEMENTS_AT_ONCE_MAX: usize = 16;
/// Maximum initial capacity of a table; a larger one grows when it is filled.
const ROOM_MAX: usize = 16;
/// Maximum nesting depth of arguments. Objects from the API are far flatter.
const DEPTH_MAX: usize = 128;

/// Incomplete tables of one call.
pub(crate) struct Lazy<'s, 'v> {
    /// Metatable of incomplete tables.
    metatable: &'s Table,
    /// Names in the text of the called script.
    mentioned: &'s Mentioned,
    /// Missing contents by the table's address. The entry of a table that was garbage-collected remains until its
    /// address is reused.
    incomplete: RefCell<BTreeMap<usize, Missing<'v>>>,
}

/// Missing contents of an incomplete table.
#[derive(Clone, Copy)]
enum Missing<'v> {
    /// Members of an object that are not mentioned.
    Unmentioned(&'v Map<String, Value>),
    /// All elements of a list.
    Elements(&'v [Value]),
}

impl<'s, 'v> Lazy<'s, 'v> {
    /// Creates the tables' registry for one call of a script, in the state that the metatable belongs to.
    pub(crate) fn new(metatable: &'s Table, mentioned: &'s Mentioned) -> Self {
        Self {
            metatable,
            mentioned,
            incomplete: RefCell::default(),
        }
    }

    /// Converts a value to Lua.
    pub(crate) fn value(&self, lua: &Lua, value: &'v Value) -> mlua::Result<mlua::Value> {
        self.at_depth(lua, value, 0)
    }

    fn at_depth(&self, lua: &Lua, value: &'v Value, depth: usize) -> mlua::Result<mlua::Value> {
        if depth > DEPTH_MAX {
            return Err(mlua::Error::runtime(format!(
                "an argument is nested deeper than {DEPTH_MAX}"
            )));
        }
        Ok(match value {
            Value::Null => mlua::Value::Nil,
            Value::Bool(boolean) => mlua::Value::Boolean(*boolean),
            Value::Number(number_of) => mlua::Value::Number(number(number_of)),
            Value::String(text) => mlua::Value::String(lua.create_string(text)?),
            Value::Array(elements) => mlua::Value::Table(self.list(lua, elements, depth)?),
            Value::Object(members) => mlua::Value::Table(self.object(lua, members, depth)?),
        })
    }

    fn list(&self, lua: &Lua, elements: &'v [Value], depth: usize) -> mlua::Result<Table> {
        let table = lua.create_table_with_capacity(elements.len(), 0)?;
        if elements.len() > ELEMENTS_AT_ONCE_MAX {
            self.leave(&table, Missing::Elements(elements))?;
        } else {
            self.put_elements(lua, &table, elements, depth)?;
        }
        Ok(table)
    }

    fn object(&self, lua: &Lua, members: &'v Map<String, Value>, depth: usize) -> mlua::Result<Table> {
        let table = lua.create_table_with_capacity(0, members.len().min(ROOM_MAX))?;
        let mut complete = true;
        for (name, member) in members {
            if self.mentioned.contains(name) {
                self.put(lua, &table, name.as_str(), member, depth)?;
            } else {
                complete = false;
            }
        }
        if !complete {
            self.leave(&table, Missing::Unmentioned(members))?;
        }
        Ok(table)
    }

    fn leave(&self, table: &Table, missing: Missing<'v>) -> mlua::Result<()> {
        self.incomplete.borrow_mut().insert(address(table), missing);
        table.set_metatable(Some(self.metatable.clone()))
    }

    /// Adds the missing contents to a table. The memory limit is suspended, because it makes every step several times
    /// slower. The size is bounded by that of the host's object and counts when the script continues.
    pub(crate) fn fill(&self, lua: &Lua, table: &Table) -> mlua::Result<()> {
        let Some(missing) = self.incomplete.borrow_mut().remove(&address(table)) else {
            return Ok(());
        };
        let limit = lua.set_memory_limit(UNLIMITED)?;
        let filled = table.set_metatable(None).and_then(|()| match missing {
            Missing::Elements(elements) => self.put_elements(lua, table, elements, 0),
            Missing::Unmentioned(members) => {
                let mut missing = members.iter().filter(|(name, _)| !self.mentioned.contains(name));
                missing.try_for_each(|(name, member)| self.put(lua, table, name.as_str(), member, 0))
            }
        });
        lua.set_memory_limit(limit)?;
        filled
    }

    fn put_elements(&self, lua: &Lua, table: &Table, elements: &'v [Value], depth: usize) -> mlua::Result<()> {
        let elements = elements.iter().filter(|element| !element.is_null());
        elements
            .zip(1..)
            .try_for_each(|(element, index)| self.put(lua, table, index, element, depth))
    }

    /// Adds a member. A text or a number that is set directly costs half as much as one converted to a Lua value
    /// first.
    fn put(&self, lua: &Lua, table: &Table, key: impl IntoLua, value: &'v Value, depth: usize) -> mlua::Result<()> {
        match value {
            Value::Null => Ok(()),
            Value::Bool(boolean) => table.raw_set(key, *boolean),
            Value::Number(number_of) => table.raw_set(key, number(number_of)),
            Value::String(text) => table.raw_set(key, text.as_str()),
            Value::Array(_) | Value::Object(_) => table.raw_set(key, self.at_depth(lua, value, depth + 1)?),
        }
    }
}

fn address(table: &Table) -> usize {
    table.to_pointer() as usize
}

#[cfg(test)]
mod tests;
