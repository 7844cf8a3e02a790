use std::sync::Arc;

use bulkhead_core::policy::{EngineKind, Policy};
use bulkhead_plugin::{Engine, LoadError, LoadStage, Module, PluginSource};
use mlua::chunk::Compiler;

use crate::library::Library;
use crate::machine::{Global, Setting};
use crate::mentioned::Mentioned;
use crate::policy::LuaPolicy;
use crate::pool::Pool;

/// Limits of the engine itself; what a call may cost is the plugin's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Longest script, in bytes. Compiling is not metered, its cost grows with the length.
    pub script_bytes_max: usize,
}

impl Default for Options {
    /// 1 MiB, which is more than an object in the API can hold.
    fn default() -> Self {
        Self { script_bytes_max: 1 << 20 }
    }
}

/// Loads plugins that are written in Lua.
pub struct LuaEngine {
    options: Options,
    compiler: Compiler,
    library: Arc<Library>,
}

impl LuaEngine {
    /// An engine. It holds no Lua state; every plugin that it loads has its own.
    pub fn new(options: Options) -> Self {
        let compiler = Compiler::new().set_optimization_level(1).set_debug_level(1);
        let library = Arc::new(Library::compile(&compiler));
        Self { options, compiler, library }
    }
}

impl Default for LuaEngine {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

/// A compiled script.
pub(crate) struct Script {
    /// Where it came from, for messages.
    pub(crate) origin: String,
    /// What Luau runs.
    pub(crate) bytecode: Vec<u8>,
    /// The names in its text.
    pub(crate) mentioned: Mentioned,
}

impl Engine for LuaEngine {
    fn kind(&self) -> EngineKind {
        EngineKind::Lua
    }

    fn load(&self, source: &PluginSource) -> Result<Arc<dyn Policy>, LoadError> {
        if source.modules.iter().all(|module| module.entries.is_empty()) {
            let origin = source.modules.first().map_or("", |module| &module.origin);
            let message = "no script is declared to answer anything".to_owned();
            return Err(load_error(source, origin, LoadStage::Inspected, message));
        }
        let compiled: Result<Vec<_>, _> = source.modules.iter().map(|module| self.compile(source, module)).collect();
        let pool = Pool::new(Arc::clone(&self.library), compiled?, source.budget);
        for (script, module) in source.modules.iter().enumerate() {
            inspect(source, module, &pool, script)?;
        }
        Ok(Arc::new(LuaPolicy::new(source, pool)))
    }
}

impl LuaEngine {
    fn compile(&self, source: &PluginSource, module: &Module) -> Result<Script, LoadError> {
        let origin = &module.origin;
        if module.code.len() > self.options.script_bytes_max {
            let (size, most) = (module.code.len(), self.options.script_bytes_max);
            let message = format!("the script has {size} bytes, at most {most} are allowed");
            return Err(load_error(source, origin, LoadStage::Inspected, message));
        }
        let syntax = |error: mlua::Error| {
            // Luau's message begins with the line.
            let message = match error {
                mlua::Error::SyntaxError { message, .. } => format!("{origin}:{message}"),
                other => other.to_string(),
            };
            load_error(source, origin, LoadStage::Compiled, message)
        };
        let bytecode = self.compiler.compile(&module.code).map_err(syntax)?;
        Ok(Script { origin: origin.clone(), bytecode, mentioned: Mentioned::read(&module.code) })
    }
}

/// Runs the script's top level, within the budget, to see whether it defines what it promises.
fn inspect(source: &PluginSource, module: &Module, pool: &Pool, script: usize) -> Result<(), LoadError> {
    let failed = |message: String| load_error(source, &module.origin, LoadStage::Inspected, message);
    let setting = Setting { script, config: &source.config, now: None };
    let missing = pool.session(&setting, |session| {
        session.run()?;
        let absent =
            module.entries.iter().map(|entry| entry.point.function()).find_map(|name| match session.global(name) {
                Global::Function(_) => None,
                Global::Absent => Some(format!("the script defines no global function {name}")),
                Global::Other(type_name) => Some(format!("{name} is a {type_name}, not a function")),
            });
        Ok(absent)
    });
    match missing {
        Ok(None) => Ok(()),
        Ok(Some(message)) => Err(failed(message)),
        Err(fault) => Err(failed(fault.to_string())),
    }
}

fn load_error(source: &PluginSource, origin: &str, stage: LoadStage, message: String) -> LoadError {
    LoadError { plugin: source.name.clone(), origin: origin.to_owned(), stage, message }
}
