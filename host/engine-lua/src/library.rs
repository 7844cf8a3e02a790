//! Initial globals of a script: the libraries that Karmada opens, with the same contents. (Karmada:
//! `pkg/resourceinterpreter/customized/declarative/luavm/lua.go:setLib`, `pkg/util/lifted/lua`.)

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_core::manifest::Dialect;
use bulkhead_core::pod::Detail;
use bulkhead_core::time::Time;
use bulkhead_plugin::{Level, Lines, one_line};
use mlua::chunk::{ChunkMode, Compiler};
use mlua::{Function, Lua, LuaString, Table};

use crate::kube;
use crate::meter::Meter;
use crate::position::{Denied, LIBRARY_NAME, position};

/// Functions that exist, so that `type(load)` has the same result as in Karmada, but always fail.
pub(crate) const UNSUPPORTED: [&str; 14] = [
    "collectgarbage",
    "dofile",
    "getfenv",
    "getmetatable",
    "load",
    "loadfile",
    "loadstring",
    "rawequal",
    "rawget",
    "rawset",
    "setfenv",
    "setmetatable",
    "module",
    "newproxy",
];
/// The same in the table `string`. Argo CD opens the whole table, so its scripts may call all but the last one.
pub(crate) const UNSUPPORTED_IN_STRING: [&str; 3] = ["rep", "gsub", "dump"];
/// Maximum length of a module name in a message, in characters.
const MODULE_CHARS_MAX: usize = 100;

/// Compiled part of the library that is written in Lua.
#[derive(Clone)]
pub(crate) struct Library {
    bytecode: Vec<u8>,
    detail: Detail,
    dialect: Dialect,
}

/// Functions and metatable that the library provides to its state.
pub(crate) struct Opened {
    /// Creates the globals of one call. Arguments: the function that fills the host's tables, and a table with the
    /// names that the script mentions.
    pub(crate) fresh: Function,
    /// Metatable of the host's incomplete tables.
    pub(crate) incomplete: Table,
}

impl Library {
    pub(crate) fn compile(compiler: &Compiler, detail: Detail) -> Self {
        let bytecode = compiler.compile(include_str!("library.luau"));
        let bytecode = bytecode.expect("the library compiles, as its tests show");
        Self {
            bytecode,
            detail,
            dialect: Dialect::Karmada,
        }
    }

    /// Returns the library for scripts of a dialect.
    pub(crate) fn in_dialect(&self, dialect: Dialect) -> Self {
        Self {
            dialect,
            ..self.clone()
        }
    }

    /// Returns the functions of `string` that the scripts may not call.
    fn unsupported_in_string(&self) -> &'static [&'static str] {
        match self.dialect {
            Dialect::Karmada => &UNSUPPORTED_IN_STRING,
            Dialect::Argo => &["dump"],
        }
    }

    /// Installs the library in a new state. `bytes_max` bounds the size of a table passed to `kube`; `lines` gets what
    /// scripts print.
    pub(crate) fn open(
        &self,
        lua: &Lua,
        clock: &Arc<Clock>,
        meter: &Arc<Meter>,
        bytes_max: usize,
        lines: Option<&Arc<Mutex<Lines>>>,
    ) -> mlua::Result<Opened> {
        let open = lua
            .load(self.bytecode.as_slice())
            .set_mode(ChunkMode::Binary)
            .set_name(format!("={LIBRARY_NAME}"));
        let refused = lua.create_table()?;
        refused.raw_set("_G", unsupported(lua, meter, &UNSUPPORTED)?)?;
        refused.raw_set("string", unsupported(lua, meter, self.unsupported_in_string())?)?;
        let kube = kube::functions(lua, meter, bytes_max, self.detail)?;
        let (now, missing) = (
            now(lua, Arc::clone(clock), Arc::clone(meter))?,
            missing(lua, Arc::clone(meter))?,
        );
        let show = lines.map(|lines| show(lua, Arc::clone(lines))).transpose()?;
        let (fresh, incomplete) = open.call((now, missing, kube, refused, spend(lua, Arc::clone(meter))?, show))?;
        Ok(Opened { fresh, incomplete })
    }
}

/// Returns the error that the library raises when a script uses a forbidden function. Raising it here would add a
/// stack trace with names of arbitrary length, in memory that no limit counts.
fn refusal(lua: &Lua, meter: &Meter, message: &str) -> mlua::Result<mlua::Value> {
    meter.refuse(lua)?;
    let denied = Denied(format!("{}{message}", position(lua)));
    Ok(mlua::Value::Error(Box::new(mlua::Error::external(denied))))
}

fn unsupported(lua: &Lua, meter: &Arc<Meter>, names: &[&'static str]) -> mlua::Result<Table> {
    let functions = lua.create_table()?;
    for &name in names {
        let meter = Arc::clone(meter);
        let refuse = lua.create_function(move |lua, ()| {
            let message = format!("call function {name} is not supported in karmada customized resourceinterpreter.");
            refusal(lua, &meter, &message)
        })?;
        functions.raw_set(name, refuse)?;
    }
    Ok(functions)
}

/// Time returned by `os.time()` and `os.date()`: that of the call. Karmada reads the clock. A call without a time
/// cannot have one here, because its answer must not depend on when it is made.
pub(crate) struct Clock(AtomicI64);

impl Clock {
    /// Value during a call without a time. It cannot be a real time.
    const NONE: i64 = i64::MIN;

    pub(crate) fn stopped() -> Self {
        Self(AtomicI64::new(Self::NONE))
    }

    /// Sets the time of the next call.
    pub(crate) fn set(&self, now: Option<Time>) {
        self.0.store(
            now.map_or(Self::NONE, |now| now.as_millis().div_euclid(1000)),
            Ordering::Relaxed,
        );
    }

    /// Returns the time in whole seconds since the Unix epoch.
    fn seconds(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|seconds| *seconds != Self::NONE)
    }
}

/// Creates the function that returns the time, or nil and the error to raise.
fn now(lua: &Lua, clock: Arc<Clock>, meter: Arc<Meter>) -> mlua::Result<Function> {
    lua.create_function(move |lua, ()| match clock.seconds() {
        Some(seconds) => Ok((Some(seconds), mlua::Value::Nil)),
        None => Ok((
            None,
            refusal(lua, &meter, "the current time is not available to this function")?,
        )),
    })
}

/// Creates the last searcher of `require`, which returns the error to raise: only the library's own modules exist.
fn missing(lua: &Lua, meter: Arc<Meter>) -> mlua::Result<Function> {
    lua.create_function(move |lua, name: LuaString| {
        let bytes = name.as_bytes();
        // A character has at most four bytes.
        let start = bytes.get(..4 * MODULE_CHARS_MAX).unwrap_or(&bytes);
        let name = one_line(&String::from_utf8_lossy(start), MODULE_CHARS_MAX);
        refusal(
            lua,
            &meter,
            &format!("module {name} not found, the only module is kube"),
        )
    })
}

/// Creates the function that keeps a printed line.
fn show(lua: &Lua, lines: Arc<Mutex<Lines>>) -> mlua::Result<Function> {
    lua.create_function(move |_, line: LuaString| {
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(Level::Info, &line.as_bytes());
        Ok(())
    })
}

/// Creates the function that charges steps for work that the Lua machine does without an interrupt.
fn spend(lua: &Lua, meter: Arc<Meter>) -> mlua::Result<Function> {
    lua.create_function(move |lua, steps: f64| meter.spend(lua, steps as u64))
}
