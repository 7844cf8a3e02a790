//! One Lua state: what it takes to make one, and one call in it.
//!
//! A state answers many calls, one after the other. [`Machine::session`] is one of them: it makes new globals, sets
//! the limits, and puts everything back when it is over. Whether the state may serve again is for
//! [`Machine::is_reusable`] to say, and where it waits is for the pool.

use std::sync::Arc;

use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_core::time::Time;
use bulkhead_plugin::Budget;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table};
use serde_json::Value;

use crate::encode::{Empties, NotJson, encode};
use crate::engine::Script;
use crate::fault::fault;
use crate::lazy::Lazy;
use crate::library::{Clock, Library, Opened};
use crate::mentioned::Mentioned;
use crate::meter::{Meter, garbage_bytes_max};

/// A state that has grown by more than this is thrown away: freeing it whole is cheaper than searching it.
const SEARCHED_BYTES_MAX: usize = 4 << 20;
/// What a state may have grown by after its garbage is gone, in bytes: stacks and tables of the machine itself, which
/// grow with the largest call.
const GROWTH_BYTES_MAX: usize = 256 << 10;
/// No limit, in the machine's terms.
pub(crate) const UNLIMITED: usize = 0;

/// What one call brings along.
pub(crate) struct Setting<'a> {
    /// Index of the script that is called.
    pub(crate) script: usize,
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

/// A state with the scripts of one plugin in it.
pub(crate) struct Machine {
    lua: Lua,
    meter: Arc<Meter>,
    clock: Arc<Clock>,
    budget: Budget,
    library: Opened,
    /// In the plugin's order.
    scripts: Vec<Loaded>,
    /// What the state takes while nothing of any call is left in it.
    clean_bytes: usize,
}

/// A script in a state.
struct Loaded {
    top_level: Function,
    mentioned: Mentioned,
    /// The same names as the keys of a table, for the library.
    mentioned_table: Table,
}

impl Machine {
    /// A state with the library and the scripts, none of which has run.
    pub(crate) fn new(library: &Library, scripts: &[Script], budget: Budget) -> Result<Self, Fault> {
        let machine = Self::build(library, scripts, budget).map_err(|error| host_bug(&error))?;
        if machine.clean_bytes >= budget.memory_bytes {
            let (least, given) = (machine.clean_bytes, budget.memory_bytes);
            let message = format!("a state alone takes {least} bytes of memory, the plugin may use {given}");
            return Err(Fault::new(FaultKind::Memory, message));
        }
        Ok(machine)
    }

    fn build(library: &Library, scripts: &[Script], budget: Budget) -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::OS;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        let clock = Arc::new(Clock::stopped());
        let meter = Arc::new(Meter::new(budget));
        let library = library.open(&lua, &clock, &meter, budget.reply_bytes)?;
        let scripts: mlua::Result<Vec<_>> = scripts.iter().map(|script| load(&lua, script)).collect();
        let scripts = scripts?;
        let stepped = Arc::clone(&meter);
        lua.gc_collect()?;
        lua.gc_stop();
        lua.set_interrupt(move |lua| stepped.step(lua));
        let clean_bytes = lua.used_memory();
        Ok(Self { lua, meter, clock, budget, library, scripts, clean_bytes })
    }

    /// Runs one call from its beginning to its end. Nothing that happens in it is there for the next one.
    pub(crate) fn session<'v, T>(
        &self,
        setting: &Setting<'v>,
        run: impl FnOnce(&Session<'_, 'v>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let script = self.scripts.get(setting.script);
        let script = script.ok_or_else(|| Fault::new(FaultKind::HostBug, "no such script"))?;
        let lazy = Lazy::new(&self.library.incomplete, &script.mentioned);
        let result = self.lua.scope(|scope| {
            let fill = scope.create_function(|lua, table: Table| lazy.fill(lua, &table))?;
            let globals = self.begin(setting, script, &lazy, fill)?;
            let result = run(&Session { machine: self, script, globals, lazy: &lazy });
            Ok(result.and_then(|value| self.meter.in_time().map(|()| value)))
        });
        result.unwrap_or_else(|error| Err(host_bug(&error)))
    }

    /// Makes the globals and starts the meter.
    fn begin<'v>(
        &self,
        setting: &Setting<'v>,
        script: &Loaded,
        lazy: &Lazy<'_, 'v>,
        fill: Function,
    ) -> mlua::Result<Table> {
        self.clock.set(setting.now);
        self.meter.rest();
        let globals: Table = self.library.fresh.call((fill, &script.mentioned_table))?;
        if !setting.config.is_null() {
            globals.raw_set("config", lazy.value(&self.lua, setting.config)?)?;
        }
        let used = self.used_bytes();
        // Only now, so that every script has its whole budget to itself.
        self.meter.begin(used, used.saturating_sub(self.clean_bytes));
        Ok(globals)
    }

    /// Whether the state is as good as a new one after a call that ended so. A state whose limits were hit is not:
    /// it may have been stopped anywhere.
    pub(crate) fn is_reusable<T>(&self, result: &Result<T, Fault>) -> bool {
        let harmless = match result {
            Ok(_) => true,
            Err(fault) => match fault.kind {
                FaultKind::Trap
                | FaultKind::BadReply
                | FaultKind::GuestError
                | FaultKind::Unsupported
                | FaultKind::MissingExport
                | FaultKind::Denied => true,
                FaultKind::OutOfFuel
                | FaultKind::Deadline
                | FaultKind::Memory
                | FaultKind::Quarantined
                | FaultKind::HostBusy
                | FaultKind::NotLoaded
                | FaultKind::Unreachable
                | FaultKind::HostBug => false,
            },
        };
        harmless && self.meter.stopped().is_none() && self.is_tidy()
    }

    /// Whether no more than a little garbage is left in it, collecting it when that is worth it.
    fn is_tidy(&self) -> bool {
        let grown = || self.used_bytes().saturating_sub(self.clean_bytes);
        if grown() <= garbage_bytes_max(self.budget) {
            self.lua.gc_stop();
            return true;
        }
        if grown() > SEARCHED_BYTES_MAX || self.collect().is_err() {
            return false;
        }
        self.lua.gc_stop();
        grown() <= GROWTH_BYTES_MAX
    }

    /// Frees everything that calls have left, the globals of the last one included.
    fn collect(&self) -> mlua::Result<()> {
        self.meter.rest();
        self.library.fresh.call::<()>(())?;
        for script in &self.scripts {
            script.top_level.set_environment(self.lua.globals())?;
        }
        self.lua.gc_collect()
    }

    /// What the state takes at present, garbage included.
    pub(crate) fn used_bytes(&self) -> usize {
        self.lua.used_memory()
    }
}

/// The bytecode was made by our own compiler in this process; nobody else's is ever loaded.
fn load(lua: &Lua, script: &Script) -> mlua::Result<Loaded> {
    let chunk = lua.load(script.bytecode.as_slice()).set_mode(ChunkMode::Binary);
    let top_level = chunk.set_name(format!("@{}", script.origin)).into_function()?;
    let mentioned = script.mentioned.clone();
    let mentioned_table = lua.create_table_from(mentioned.iter().map(|name| (name, true)))?;
    Ok(Loaded { top_level, mentioned, mentioned_table })
}

fn host_bug(error: &mlua::Error) -> Fault {
    Fault::new(FaultKind::HostBug, format!("the Lua state could not be prepared: {error}"))
}

/// One call in a state.
pub(crate) struct Session<'s, 'v> {
    machine: &'s Machine,
    script: &'s Loaded,
    globals: Table,
    lazy: &'s Lazy<'s, 'v>,
}

impl<'v> Session<'_, 'v> {
    /// Runs the script's top level.
    pub(crate) fn run(&self) -> Result<(), Fault> {
        let top_level = &self.script.top_level;
        let prepared = top_level.set_environment(self.globals.clone());
        self.settle(prepared.and_then(|_| self.limited(|| top_level.call(()))))
    }

    /// What a global variable holds.
    pub(crate) fn global(&self, name: &str) -> Global {
        match self.globals.raw_get(name) {
            Ok(mlua::Value::Function(function)) => Global::Function(function),
            Ok(mlua::Value::Nil) | Err(_) => Global::Absent,
            Ok(other) => Global::Other(lua_type_name(&other)),
        }
    }

    /// Calls a function.
    pub(crate) fn call(
        &self,
        function: &Function,
        arguments: impl IntoIterator<Item = &'v Value>,
    ) -> Result<MultiValue, Fault> {
        let arguments = arguments.into_iter().map(|argument| self.lazy.value(&self.machine.lua, argument));
        let arguments: mlua::Result<MultiValue> = arguments.collect();
        self.settle(arguments.and_then(|arguments| self.limited(|| function.call(arguments))))
    }

    /// What a function returned, as JSON.
    pub(crate) fn encode(&self, value: &mlua::Value, empties: &Empties, bytes_max: usize) -> Result<Value, NotJson> {
        encode(value, empties, bytes_max, &|table| self.lazy.fill(&self.machine.lua, table)).0
    }

    /// Only scripts run under the memory limit. What the host does in between is bounded by what it does it with, and
    /// three times as fast without.
    fn limited<T>(&self, run: impl FnOnce() -> mlua::Result<T>) -> mlua::Result<T> {
        let lua = &self.machine.lua;
        lua.set_memory_limit(self.machine.meter.limit_bytes())?;
        let result = run();
        lua.set_memory_limit(UNLIMITED)?;
        result
    }

    /// A script that was stopped or is late has no result, whatever it made of the error.
    fn settle<T>(&self, result: mlua::Result<T>) -> Result<T, Fault> {
        let meter = &self.machine.meter;
        match (result, meter.stopped()) {
            (Ok(value), None) => meter.in_time().map(|()| value),
            (Ok(_), Some(fault)) => Err(fault.clone()),
            (Err(error), _) => Err(fault(&error, meter)),
        }
    }
}
