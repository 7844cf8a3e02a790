//! Objects of the host as Lua tables, built as far as a script is going to look.
//!
//! Most scripts look at a few members of a large object, and nearly always by a name that stands in their text. So a
//! table gets at once those members whose names the script mentions, whatever it means by them; the rest is put in
//! place when anything wants to know it: a key that is not mentioned, a walk over all members, a length, any writing.
//! Until then the table has a metatable that belongs to the state; from then on it is a table like any other.
//!
//! Before, it cannot be told from one. A mentioned name that is not in the table is not in the object either, or was
//! set to nil by the script. Scripts cannot get at metatables, and those functions of the library that look past them
//! (`next`, `unpack`, `table.insert` …) have a table filled first, see `library.luau`. So `type`, `pairs`, `#`, `==`,
//! assignment and the rest do what they do with a table that was built at once, and members are found in an order that
//! depends on nothing but the script and the object.
//!
//! Karmada's conventions hold: a null member is absent, a null element is dropped and the later ones move up, every
//! number is a double, `{}` and `[]` are the same empty table.
//! (Karmada: `pkg/resourceinterpreter/customized/declarative/luavm/lua.go:decodeValue`.)

use std::cell::RefCell;
use std::collections::BTreeMap;

use mlua::{IntoLua, Lua, Table};
use serde_json::{Map, Value};

use crate::decode::number;
use crate::machine::UNLIMITED;
use crate::mentioned::Mentioned;

/// Longest list that is built at once, in elements.
const ELEMENTS_AT_ONCE_MAX: usize = 16;
/// Most members that a table has room for from the start; one that is filled with more grows then.
const ROOM_MAX: usize = 16;
/// Deepest nesting of what is built at once. Objects from the API are flatter by far.
const DEPTH_MAX: usize = 128;

/// The tables of one call that are not complete yet.
pub(crate) struct Lazy<'s, 'v> {
    /// Of an incomplete table.
    metatable: &'s Table,
    /// The names in the text of the script that is called.
    mentioned: &'s Mentioned,
    /// What is missing, by the table's address. A table that the collector has freed meanwhile leaves its entry behind,
    /// which is overwritten when its address serves another one.
    incomplete: RefCell<BTreeMap<usize, Missing<'v>>>,
}

/// What is missing from an incomplete table.
#[derive(Clone, Copy)]
enum Missing<'v> {
    /// Those members of an object that are not mentioned.
    Unmentioned(&'v Map<String, Value>),
    /// All of a list.
    Elements(&'v [Value]),
}

impl<'s, 'v> Lazy<'s, 'v> {
    /// For one call of a script, in the state that the metatable belongs to.
    pub(crate) fn new(metatable: &'s Table, mentioned: &'s Mentioned) -> Self {
        Self { metatable, mentioned, incomplete: RefCell::default() }
    }

    /// A value as a script sees it.
    pub(crate) fn value(&self, lua: &Lua, value: &'v Value) -> mlua::Result<mlua::Value> {
        self.at_depth(lua, value, 0)
    }

    fn at_depth(&self, lua: &Lua, value: &'v Value, depth: usize) -> mlua::Result<mlua::Value> {
        if depth > DEPTH_MAX {
            return Err(mlua::Error::runtime(format!("an argument is nested deeper than {DEPTH_MAX}")));
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

    /// Puts into a table what is missing from it. Without the memory limit, which makes every step several times as
    /// slow: what is built here is bounded by the size of the host's object, and counts when the script goes on.
    pub(crate) fn fill(&self, lua: &Lua, table: &Table) -> mlua::Result<()> {
        let Some(missing) = self.incomplete.borrow_mut().remove(&address(table)) else { return Ok(()) };
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
        elements.zip(1..).try_for_each(|(element, index)| self.put(lua, table, index, element, depth))
    }

    /// A text or a number that goes straight into the table costs half of one that is a value in between.
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
