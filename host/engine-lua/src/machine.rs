//! One Lua state, from its creation to its end.

use std::sync::Arc;

use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_core::time::Time;
use bulkhead_plugin::Budget;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib};
use serde_json::Value;

use crate::decode::decode;
use crate::engine::Script;
use crate::fault::fault;
use crate::library::Library;
use crate::meter::Meter;

/// What a state is made with.
pub(crate) struct Setting<'a> {
    /// What it may use up in its whole life.
    pub(crate) budget: Budget,
    /// The plugin's configuration, null for none.
    pub(crate) config: &'a Value,
    /// The time of the call, if it has one.
    pub(crate) now: Option<Time>,
}

/// What a global variable holds.
pub(crate) enum Global {
    /// Nothing.
    Absent,
    /// A function.
    Function(Function),
    /// Something else, by name of its type.
    Other(&'static str),
}

/// Name of a value's type as scripts know it: all numbers are one type to them.
pub(crate) fn lua_type_name(value: &mlua::Value) -> &'static str {
    if value.is_integer() { "number" } else { value.type_name() }
}

/// A state with its limits. Nothing outlives it.
pub(crate) struct Machine {
    lua: Lua,
    meter: Arc<Meter>,
}

impl Machine {
    /// A state with nothing but the library in it.
    pub(crate) fn new(library: &Library, setting: &Setting<'_>) -> Result<Self, Fault> {
        let meter = Arc::new(Meter::new(setting.budget));
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::OS;
        let lua = Lua::new_with(libraries, LuaOptions::default());
        let lua = lua.map_err(|error| Fault::new(FaultKind::HostBug, error.to_string()))?;
        let machine = Self { lua, meter };
        machine.prepare(library, setting).map_err(|error| machine.fault(&error))?;
        Ok(machine)
    }

    fn prepare(&self, library: &Library, setting: &Setting<'_>) -> mlua::Result<()> {
        self.lua.set_memory_limit(setting.budget.memory_bytes)?;
        library.open(&self.lua, setting.now, setting.budget.reply_bytes)?;
        if !setting.config.is_null() {
            self.lua.globals().raw_set("config", decode(&self.lua, setting.config)?)?;
        }
        // Only now, so that every script has its whole budget to itself.
        let meter = Arc::clone(&self.meter);
        self.lua.set_interrupt(move |lua| meter.step(lua));
        Ok(())
    }

    /// Runs a script's top level.
    pub(crate) fn run(&self, script: &Script) -> Result<(), Fault> {
        // The bytecode was made by our own compiler in this process; nobody else's is ever loaded.
        let chunk = self.lua.load(script.bytecode.as_slice()).set_mode(ChunkMode::Binary);
        let result = chunk.set_name(format!("@{}", script.origin)).exec();
        self.settle(result)
    }

    /// What a global variable holds.
    pub(crate) fn global(&self, name: &str) -> Global {
        match self.lua.globals().raw_get(name) {
            Ok(mlua::Value::Function(function)) => Global::Function(function),
            Ok(mlua::Value::Nil) | Err(_) => Global::Absent,
            Ok(other) => Global::Other(lua_type_name(&other)),
        }
    }

    /// Calls a function.
    pub(crate) fn call<'a>(
        &self,
        function: &Function,
        arguments: impl IntoIterator<Item = &'a Value>,
    ) -> Result<MultiValue, Fault> {
        let decoded: mlua::Result<Vec<_>> = arguments.into_iter().map(|argument| decode(&self.lua, argument)).collect();
        let result = decoded.and_then(|arguments| function.call(MultiValue::from_vec(arguments)));
        self.settle(result)
    }

    /// A script that was stopped has no result, whatever it made of the error.
    fn settle<T>(&self, result: mlua::Result<T>) -> Result<T, Fault> {
        match (result, self.meter.stopped()) {
            (Ok(value), None) => Ok(value),
            (Ok(_), Some(fault)) => Err(fault.clone()),
            (Err(error), _) => Err(self.fault(&error)),
        }
    }

    fn fault(&self, error: &mlua::Error) -> Fault {
        fault(error, &self.meter)
    }
}
