//! A Lua state: its creation and one call in it.
//!
//! A state answers many calls, one after the other. [`Machine::session`] is one call: it creates new globals, sets
//! the limits, and restores the state at the end. [`Machine::is_reusable`] decides if the state may be used again;
//! the pool keeps it in the meantime.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_core::time::Time;
use bulkhead_plugin::Lines;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table};
use serde_json::Value;

use crate::encode::{EmptyTables, NotJson, encode, lua_type_name};
use crate::fault::fault;
use crate::lazy::Lazy;
use crate::library::{Clock, Library, Opened};
use crate::mentioned::Mentioned;
use crate::meter::{Meter, Spent, UNLIMITED, garbage_bytes_max};
use crate::script::Script;

/// Growth in bytes above which a state is dropped: freeing it as a whole is cheaper than collecting its garbage.
const SEARCHED_BYTES_MAX: usize = 4 << 20;
/// Maximum growth of a state after garbage collection, in bytes: internal stacks and tables, which grow with the
/// largest call.
const GROWTH_BYTES_MAX: usize = 256 << 10;
/// Settings of one call.
pub(crate) struct CallSettings<'a> {
    /// Index of the called script.
    pub(crate) script: usize,
    /// Configuration of the plugin; null for none.
    pub(crate) config: &'a Value,
    /// Time of the call, if it has one.
    pub(crate) now: Option<Time>,
}

/// Value of a global variable.
pub(crate) enum Global {
    /// No value.
    Absent,
    /// A function.
    Function(Function),
    /// Any other value, with the name of its type.
    Other(&'static str),
}

/// Lua state with the scripts of one plugin.
pub(crate) struct Machine {
    lua: Lua,
    meter: Arc<Meter>,
    clock: Arc<Clock>,
    /// Lines that the current call printed.
    lines: Arc<Mutex<Lines>>,
    budget: Budget,
    library: Opened,
    /// Scripts in the plugin's order.
    scripts: Vec<Loaded>,
    /// Memory use of the state without contents of any call, in bytes.
    clean_bytes: usize,
}

/// Script in a state.
struct Loaded {
    top_level: Function,
    mentioned: Mentioned,
    /// The same names as keys of a table, for the library.
    mentioned_table: Table,
}

impl Machine {
    /// Creates a state with the library and the scripts. No script has run yet. Unless `prints`, what scripts print is
    /// discarded.
    pub(crate) fn new(library: &Library, scripts: &[Script], budget: Budget, prints: bool) -> Result<Self, Fault> {
        let machine = Self::build(library, scripts, budget, prints).map_err(|error| host_bug(&error))?;
        if machine.clean_bytes >= budget.memory_bytes {
            let (least, given) = (machine.clean_bytes, budget.memory_bytes);
            let message = format!("the Lua state needs {least} bytes of memory, and the plugin may use {given}");
            return Err(Fault::new(FaultKind::Memory, message));
        }
        Ok(machine)
    }

    fn build(library: &Library, scripts: &[Script], budget: Budget, prints: bool) -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::OS;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        let clock = Arc::new(Clock::stopped());
        let meter = Arc::new(Meter::new(budget));
        let lines = Arc::default();
        let library = library.open(&lua, &clock, &meter, budget.reply_bytes, prints.then_some(&lines))?;
        let scripts: mlua::Result<Vec<_>> = scripts.iter().map(|script| load(&lua, script)).collect();
        let scripts = scripts?;
        let stepped = Arc::clone(&meter);
        lua.gc_collect()?;
        lua.gc_stop();
        lua.set_interrupt(move |lua| stepped.step(lua));
        let clean_bytes = lua.used_memory();
        Ok(Self {
            lua,
            meter,
            clock,
            lines,
            budget,
            library,
            scripts,
            clean_bytes,
        })
    }

    /// Runs one complete call. Later calls cannot observe any effect of it.
    pub(crate) fn session<'v, T>(
        &self,
        setting: &CallSettings<'v>,
        run: impl FnOnce(&Session<'_, 'v>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let script = self.scripts.get(setting.script);
        let script = script.ok_or_else(|| Fault::new(FaultKind::HostBug, "no such script"))?;
        let lazy = Lazy::new(&self.library.incomplete, &script.mentioned);
        let result = self.lua.scope(|scope| {
            let fill = scope.create_function(|lua, table: Table| lazy.fill(lua, &table))?;
            let globals = self.begin(setting, script, &lazy, fill)?;
            let result = run(&Session {
                machine: self,
                script,
                globals,
                lazy: &lazy,
            });
            Ok(result.and_then(|value| self.meter.in_time().map(|()| value)))
        });
        result.unwrap_or_else(|error| Err(host_bug(&error)))
    }

    /// Returns the lines that were printed since they were last taken.
    pub(crate) fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the globals and starts the meter.
    fn begin<'v>(
        &self,
        setting: &CallSettings<'v>,
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
        // The meter starts last, so that every script has its whole budget.
        self.meter.begin(used, used.saturating_sub(self.clean_bytes));
        Ok(globals)
    }

    /// Returns true if the state is equivalent to a new one after a call with this result. A state that hit a limit
    /// is not: it may have been stopped at any point.
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

    /// Returns true if the state holds little garbage. Collects it first if that is worthwhile.
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

    /// Frees everything that calls have left behind, including the globals of the last one.
    fn collect(&self) -> mlua::Result<()> {
        self.meter.rest();
        self.library.fresh.call::<()>(())?;
        for script in &self.scripts {
            script.top_level.set_environment(self.lua.globals())?;
        }
        self.lua.gc_collect()
    }

    /// Returns the resources of the last call.
    pub(crate) fn spent(&self) -> Spent {
        self.meter.spent(self.used_bytes())
    }

    /// Returns the memory use of the state in bytes, including garbage.
    pub(crate) fn used_bytes(&self) -> usize {
        self.lua.used_memory()
    }
}

/// Loads a script. The bytecode always comes from our own compiler in this process.
fn load(lua: &Lua, script: &Script) -> mlua::Result<Loaded> {
    let chunk = lua.load(script.bytecode.as_slice()).set_mode(ChunkMode::Binary);
    let top_level = chunk.set_name(format!("@{}", script.origin)).into_function()?;
    let mentioned = script.mentioned.clone();
    let mentioned_table = lua.create_table_from(mentioned.iter().map(|name| (name, true)))?;
    Ok(Loaded {
        top_level,
        mentioned,
        mentioned_table,
    })
}

fn host_bug(error: &mlua::Error) -> Fault {
    Fault::new(
        FaultKind::HostBug,
        format!("the Lua state could not be prepared: {error}"),
    )
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

    /// Returns the value of a global variable.
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
        let arguments = arguments
            .into_iter()
            .map(|argument| self.lazy.value(&self.machine.lua, argument));
        let arguments: mlua::Result<MultiValue> = arguments.collect();
        self.settle(arguments.and_then(|arguments| self.limited(|| function.call(arguments))))
    }

    /// Converts the result of a function to JSON.
    pub(crate) fn encode(
        &self,
        value: &mlua::Value,
        empties: &EmptyTables,
        bytes_max: usize,
    ) -> Result<Value, NotJson> {
        encode(value, empties, bytes_max, &|table| {
            self.lazy.fill(&self.machine.lua, table)
        })
        .0
    }

    /// Runs a script under the memory limit. The host's own work is bounded by its input and three times as fast
    /// without the limit.
    fn limited<T>(&self, run: impl FnOnce() -> mlua::Result<T>) -> mlua::Result<T> {
        let lua = &self.machine.lua;
        lua.set_memory_limit(self.machine.meter.limit_bytes())?;
        let result = run();
        lua.set_memory_limit(UNLIMITED)?;
        result
    }

    /// Returns the result of a script. A script that was stopped or is late has none, even if it caught the error.
    fn settle<T>(&self, result: mlua::Result<T>) -> Result<T, Fault> {
        let meter = &self.machine.meter;
        match (result, meter.stopped()) {
            (Ok(value), None) => meter.in_time().map(|()| value),
            (Ok(_), Some(fault)) => Err(fault.clone()),
            (Err(error), _) => Err(fault(&error, meter)),
        }
    }
}
