//! What a script finds when it starts: the libraries that Karmada opens, as it opens them.
//! (Karmada: `pkg/resourceinterpreter/customized/declarative/luavm/lua.go:setLib`, `pkg/util/lifted/lua`.)

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
}

impl Library {
    pub(crate) fn compile(compiler: &Compiler) -> Self {
        let bytecode = compiler.compile(include_str!("library.luau"));
        Self { bytecode: bytecode.expect("the library compiles, as its tests show") }
    }

    /// Puts the library into a state. `bytes_max` bounds what a table may amount to when it crosses into `kube`.
    pub(crate) fn open(&self, lua: &Lua, now: Option<Time>, bytes_max: usize) -> mlua::Result<()> {
        let open = lua.load(self.bytecode.as_slice()).set_mode(ChunkMode::Binary).set_name(format!("={LIBRARY_NAME}"));
        let kube = lua.create_function(move |lua, ()| kube::functions(lua, bytes_max))?;
        open.call::<()>((clock(lua, now)?, require(lua)?, kube))?;
        let globals = lua.globals();
        for name in UNSUPPORTED {
            globals.raw_set(name, unsupported(lua, name)?)?;
        }
        let string: Table = globals.raw_get("string")?;
        for name in UNSUPPORTED_IN_STRING {
            string.raw_set(name, unsupported(lua, name)?)?;
        }
        Ok(())
    }
}

fn denied(lua: &Lua, message: &str) -> mlua::Error {
    mlua::Error::external(Denied(format!("{}{message}", position(lua))))
}

fn unsupported(lua: &Lua, name: &'static str) -> mlua::Result<Function> {
    lua.create_function(move |lua, _: mlua::MultiValue| -> mlua::Result<()> {
        let message = format!("call function {name} is not supported in karmada customized resourceinterpreter.");
        Err(denied(lua, &message))
    })
}

/// The time that `os.time()` and `os.date()` tell: that of the call. Karmada reads the clock; a call that brings
/// no time cannot have one here, because its answer has to be the same whenever it is asked.
fn clock(lua: &Lua, now: Option<Time>) -> mlua::Result<Function> {
    lua.create_function(move |lua, ()| {
        let seconds = now.map(|now| now.as_millis().div_euclid(1000));
        seconds.ok_or_else(|| denied(lua, "the current time is not available to this function"))
    })
}

/// The end of the search for a module: there are none but those of the library.
fn require(lua: &Lua) -> mlua::Result<Function> {
    lua.create_function(|lua, name: String| -> mlua::Result<()> {
        Err(denied(lua, &format!("module {name} not found, the only module is kube")))
    })
}
