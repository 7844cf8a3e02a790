//! What a script finds when it starts: the libraries that Karmada opens, as it opens them.
//! (Karmada: `pkg/resourceinterpreter/customized/declarative/luavm/lua.go:setLib`, `pkg/util/lifted/lua`.)

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bulkhead_core::pod::Detail;
use bulkhead_core::time::Time;
use mlua::chunk::{ChunkMode, Compiler};
use mlua::{Function, Lua, Table};

use crate::fault::{Denied, position};
use crate::kube;

/// Name of our own chunk in positions.
pub(crate) const LIBRARY_NAME: &str = "bulkhead";

/// Present, so that `type(load)` says what it says in Karmada, but of no use.
const UNSUPPORTED: [&str; 14] = [
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
const UNSUPPORTED_IN_STRING: [&str; 3] = ["rep", "gsub", "dump"];

/// The part of the library that is written in Lua, compiled.
pub(crate) struct Library {
    bytecode: Vec<u8>,
    detail: Detail,
}

/// What the library gives to the state that it was put into.
pub(crate) struct Opened {
    /// Makes the globals of one call. It is given the function that completes a table of the host's, and a table with
    /// the names that the script mentions.
    pub(crate) fresh: Function,
    /// The metatable of such a table until it is complete.
    pub(crate) incomplete: Table,
}

impl Library {
    pub(crate) fn compile(compiler: &Compiler, detail: Detail) -> Self {
        let bytecode = compiler.compile(include_str!("library.luau"));
        Self { bytecode: bytecode.expect("the library compiles, as its tests show"), detail }
    }

    /// Puts the library into a new state, for good. `bytes_max` bounds what a table may amount to when it
    /// crosses into `kube`.
    pub(crate) fn open(&self, lua: &Lua, clock: &Arc<Clock>, bytes_max: usize) -> mlua::Result<Opened> {
        let open = lua.load(self.bytecode.as_slice()).set_mode(ChunkMode::Binary).set_name(format!("={LIBRARY_NAME}"));
        let refused = lua.create_table()?;
        refused.raw_set("_G", unsupported(lua, &UNSUPPORTED)?)?;
        refused.raw_set("string", unsupported(lua, &UNSUPPORTED_IN_STRING)?)?;
        let kube = kube::functions(lua, bytes_max, self.detail)?;
        let (fresh, incomplete) = open.call((now(lua, Arc::clone(clock))?, require(lua)?, kube, refused))?;
        Ok(Opened { fresh, incomplete })
    }
}

fn denied(lua: &Lua, message: &str) -> mlua::Error {
    mlua::Error::external(Denied(format!("{}{message}", position(lua))))
}

fn unsupported(lua: &Lua, names: &[&'static str]) -> mlua::Result<Table> {
    let functions = lua.create_table()?;
    for &name in names {
        let refuse = lua.create_function(move |lua, _: mlua::MultiValue| -> mlua::Result<()> {
            let message = format!("call function {name} is not supported in karmada customized resourceinterpreter.");
            Err(denied(lua, &message))
        })?;
        functions.raw_set(name, refuse)?;
    }
    Ok(functions)
}

/// The time that `os.time()` and `os.date()` tell: that of the call. Karmada reads the clock; a call that brings
/// no time cannot have one here, because its answer has to be the same whenever it is asked.
pub(crate) struct Clock(AtomicI64);

impl Clock {
    /// What the counter holds during a call without time. No time is that long ago.
    const NONE: i64 = i64::MIN;

    pub(crate) fn stopped() -> Self {
        Self(AtomicI64::new(Self::NONE))
    }

    /// Sets the time of the call that begins.
    pub(crate) fn set(&self, now: Option<Time>) {
        self.0.store(now.map_or(Self::NONE, |now| now.as_millis().div_euclid(1000)), Ordering::Relaxed);
    }

    /// In whole seconds since the Unix epoch.
    fn seconds(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|seconds| *seconds != Self::NONE)
    }
}

fn now(lua: &Lua, clock: Arc<Clock>) -> mlua::Result<Function> {
    lua.create_function(move |lua, ()| {
        clock.seconds().ok_or_else(|| denied(lua, "the current time is not available to this function"))
    })
}

/// The end of the search for a module: there are none but those of the library.
fn require(lua: &Lua) -> mlua::Result<Function> {
    lua.create_function(|lua, name: String| -> mlua::Result<()> {
        Err(denied(lua, &format!("module {name} not found, the only module is kube")))
    })
}
