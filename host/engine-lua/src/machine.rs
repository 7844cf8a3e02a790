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

use crate::decode::decode;
use crate::engine::Script;
use crate::fault::fault;
use crate::library::{Clock, Library};
use crate::meter::{Meter, garbage_bytes_max};

/// A state that has grown by more than this is thrown away: freeing it whole is cheaper than searching it.
const SEARCHED_BYTES_MAX: usize = 4 << 20;
/// What a state may have grown by after its garbage is gone, in bytes: stacks and tables of the machine itself, which
/// grow with the largest call.
const GROWTH_BYTES_MAX: usize = 256 << 10;
/// No limit, in the machine's terms.
const UNLIMITED: usize = 0;

/// What one call brings along.
pub(crate) struct Setting<'a> {
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
    /// Makes the globals of one call.
    fresh: Function,
    /// The scripts' top levels, in the plugin's order.
    scripts: Vec<Function>,
    /// What the state takes while nothing of any call is left in it.
    clean_bytes: usize,
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
        let fresh = library.open(&lua, &clock, budget.reply_bytes)?;
        let scripts: mlua::Result<Vec<_>> = scripts.iter().map(|script| load(&lua, script)).collect();
        let scripts = scripts?;
        let meter = Arc::new(Meter::new(budget));
        let stepped = Arc::clone(&meter);
        lua.gc_collect()?;
        lua.gc_stop();
        lua.set_interrupt(move |lua| stepped.step(lua));
        let clean_bytes = lua.used_memory();
        Ok(Self { lua, meter, clock, budget, fresh, scripts, clean_bytes })
    }

    /// Runs one call from its beginning to its end. Nothing that happens in it is there for the next one.
    pub(crate) fn session<T>(
        &self,
        setting: &Setting<'_>,
        run: impl FnOnce(&Session<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let session = self.begin(setting).map_err(|error| host_bug(&error))?;
        run(&session)
    }

    fn begin(&self, setting: &Setting<'_>) -> mlua::Result<Session<'_>> {
        self.clock.set(setting.now);
        self.meter.rest();
        let globals: Table = self.fresh.call(())?;
        if !setting.config.is_null() {
            globals.raw_set("config", decode(&self.lua, setting.config)?)?;
        }
        let used = self.used_bytes();
        // Only now, so that every script has its whole budget to itself.
        self.meter.begin(used, used.saturating_sub(self.clean_bytes));
        Ok(Session { machine: self, globals })
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
        self.fresh.call::<()>(())?;
        for script in &self.scripts {
            script.set_environment(self.lua.globals())?;
        }
        self.lua.gc_collect()
    }

    /// What the state takes at present, garbage included.
    pub(crate) fn used_bytes(&self) -> usize {
        self.lua.used_memory()
    }
}

/// The bytecode was made by our own compiler in this process; nobody else's is ever loaded.
fn load(lua: &Lua, script: &Script) -> mlua::Result<Function> {
    let chunk = lua.load(script.bytecode.as_slice()).set_mode(ChunkMode::Binary);
    chunk.set_name(format!("@{}", script.origin)).into_function()
}

fn host_bug(error: &mlua::Error) -> Fault {
    Fault::new(FaultKind::HostBug, format!("the Lua state could not be prepared: {error}"))
}

/// One call in a state.
pub(crate) struct Session<'m> {
    machine: &'m Machine,
    globals: Table,
}

impl Session<'_> {
    /// Runs a script's top level.
    pub(crate) fn run(&self, script: usize) -> Result<(), Fault> {
        let top_level = self.machine.scripts.get(script);
        let top_level = top_level.ok_or_else(|| Fault::new(FaultKind::HostBug, "no such script"))?;
        self.settle(top_level.set_environment(self.globals.clone()).and_then(|_| self.limited(|| top_level.call(()))))
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
    pub(crate) fn call<'a>(
        &self,
        function: &Function,
        arguments: impl IntoIterator<Item = &'a Value>,
    ) -> Result<MultiValue, Fault> {
        let decoded = arguments.into_iter().map(|argument| decode(&self.machine.lua, argument));
        let decoded: mlua::Result<Vec<_>> = decoded.collect();
        let result = decoded.and_then(|arguments| self.limited(|| function.call(MultiValue::from_vec(arguments))));
        self.settle(result)
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

    /// A script that was stopped has no result, whatever it made of the error.
    fn settle<T>(&self, result: mlua::Result<T>) -> Result<T, Fault> {
        let meter = &self.machine.meter;
        match (result, meter.stopped()) {
            (Ok(value), None) => Ok(value),
            (Ok(_), Some(fault)) => Err(fault.clone()),
            (Err(error), _) => Err(fault(&error, meter)),
        }
    }
}
