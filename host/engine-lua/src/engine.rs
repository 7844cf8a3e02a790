use std::sync::Arc;

use bulkhead_core::manifest::{Dialect, EntryPoint};
use bulkhead_core::policy::{EngineKind, Fault, FaultKind, PolicyId};
use bulkhead_plugin::{
    Description, Engine, Entry, Inspection, LoadError, LoadStage, Loaded, LogSink, Module, PluginSource, check_config,
};
use mlua::chunk::Compiler;

use crate::culprit::explained;
use crate::dialect::bridged;
use crate::edit::Difference;
use crate::foreign::foreign;
use crate::library::Library;
use crate::machine::{CallSettings, Global, Session};
use crate::mentioned::Mentioned;
use crate::names::no_function;
use crate::options::Options;
use crate::policy::LuaPolicy;
use crate::pool::Pool;
use crate::script::Script;

/// Loader of plugins written in Lua.
pub struct LuaEngine {
    options: Options,
    compiler: Compiler,
    library: Arc<Library>,
    lines: Option<LogSink>,
}

impl LuaEngine {
    /// Creates an engine. It holds no Lua state; every plugin that it loads has its own.
    pub fn new(options: Options) -> Self {
        let compiler = Compiler::new().set_optimization_level(1).set_debug_level(1);
        let library = Arc::new(Library::compile(&compiler, options.pod_detail));
        Self {
            options,
            compiler,
            library,
            lines: None,
        }
    }

    /// Sends the lines that scripts print to a receiver, with the level [`Level::Info`](bulkhead_plugin::Level).
    /// Without one they are discarded.
    #[must_use]
    pub fn with_lines(self, lines: LogSink) -> Self {
        Self {
            lines: Some(lines),
            ..self
        }
    }
}

impl Default for LuaEngine {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Engine for LuaEngine {
    fn kind(&self) -> EngineKind {
        EngineKind::Lua
    }

    fn load(&self, source: &PluginSource) -> Result<Loaded, LoadError> {
        if source.modules.is_empty() {
            return Err(LoadError::new(
                source,
                LoadStage::Fetched,
                "a Lua plugin is at least one script",
            ));
        }
        let compiled: Result<Vec<_>, _> = source
            .modules
            .iter()
            .map(|module| self.compile(source, module))
            .collect();
        let library = match source.dialect {
            Dialect::Karmada => Arc::clone(&self.library),
            Dialect::Argo => Arc::new(self.library.in_dialect(Dialect::Argo)),
        };
        let described = describe(source);
        let id = PolicyId {
            name: source.name.clone(),
            version: described.version.clone(),
            engine: EngineKind::Lua,
        };
        let mut pool = Pool::new(library, compiled?, source.budget);
        if let Some(lines) = &self.lines {
            pool = pool.with_lines(id.clone(), Arc::clone(lines));
        }
        let mut entries = Vec::new();
        for (script, module) in source.modules.iter().enumerate() {
            let answers = match source.inspection {
                Inspection::AtLoading => inspect(source, module, &pool, script)?,
                Inspection::AtCalls => module.entries.clone(),
            };
            entries.extend(answers.into_iter().map(|entry| (entry, script)));
        }
        let taints = entries.iter().any(|(entry, _)| entry.point == EntryPoint::ClusterTaint);
        if taints && source.taint_keys.is_empty() {
            let message = "it may change no taint; list the keys of those that it changes in taintKeys";
            return Err(LoadError::new(source, LoadStage::Described, message));
        }
        // A script without a schema accepts any configuration.
        if source.config_schema.is_some() {
            let checked = check_config(source.config_schema.as_ref(), &source.config);
            checked.map_err(|message| LoadError::new(source, LoadStage::Configured, message))?;
        }
        let description = Description {
            remarks: remarks(source, &entries),
            ..described
        };
        let policy = LuaPolicy::new(source, id, entries, pool, self.options);
        Ok(Loaded {
            policy: Arc::new(policy),
            description,
        })
    }
}

impl LuaEngine {
    /// Compiles a script to bytecode. Returns an error with the line if the script is invalid.
    pub(crate) fn bytecode(&self, origin: &str, code: &[u8]) -> Result<Vec<u8>, String> {
        // Luau's message begins with the line.
        let syntax = |error: mlua::Error| match error {
            mlua::Error::SyntaxError { message, .. } => format!("{origin}:{message}"),
            other => other.to_string(),
        };
        let no_equivalent = |found: Difference| format!("{origin}:{}: {}", found.line, found.message);
        // A text that is not UTF-8 is compiled unchanged.
        let bridged = std::str::from_utf8(code)
            .map_or(Ok(None), bridged)
            .map_err(no_equivalent)?;
        self.compiler
            .compile(bridged.as_ref().map_or(code, |text| text.as_bytes()))
            .map_err(syntax)
    }

    /// Returns the library that scripts are started with.
    pub(crate) fn library(&self) -> &Arc<Library> {
        &self.library
    }

    fn compile(&self, source: &PluginSource, module: &Module) -> Result<Script, LoadError> {
        let origin = &module.origin;
        if module.code.len() > self.options.script_bytes_max {
            let (size, most) = (module.code.len(), self.options.script_bytes_max);
            let message = format!("the script has {size} bytes, at most {most} are allowed");
            return Err(load_error(source, origin, LoadStage::Inspected, message));
        }
        let bytecode = self
            .bytecode(origin, &module.code)
            .map_err(|message| load_error(source, origin, LoadStage::Compiled, message))?;
        let text = String::from_utf8_lossy(&module.code).into_owned();
        Ok(Script {
            origin: origin.clone(),
            bytecode,
            mentioned: Mentioned::read(&module.code),
            text,
        })
    }
}

/// Returns the description of a plugin. Scripts have no metadata of their own, so it comes from the operator.
fn describe(source: &PluginSource) -> Description {
    let digest = source.digest();
    Description {
        name: String::new(),
        version: digest.short(),
        summary: String::new(),
        digest,
        code_bytes: source.modules.iter().map(|module| module.code.len()).sum(),
        contract: "lua".to_owned(),
        imports: Vec::new(),
        taint_keys: source.taint_keys.clone(),
        config_schema: source.config_schema.clone(),
        reusable: false,
        remarks: Vec::new(),
    }
}

/// Returns remarks about constructs that Karmada would reject, for scripts that define a function of Karmada's.
fn remarks(source: &PluginSource, entries: &[(Entry, usize)]) -> Vec<String> {
    let is_karmadas = |script: usize| {
        entries
            .iter()
            .any(|(entry, of)| *of == script && entry.point.rule().is_some())
    };
    let modules = source
        .modules
        .iter()
        .enumerate()
        .filter(|(script, _)| is_karmadas(*script));
    let of_module = |(_, module): (usize, &Module)| {
        let found = std::str::from_utf8(&module.code).map(foreign).unwrap_or_default();
        let origin = module.origin.clone();
        let remark = move |found: Difference| {
            format!(
                "{origin}:{}:{}: Karmada does not take {}",
                found.line, found.column, found.message
            )
        };
        found.into_iter().map(remark).collect::<Vec<_>>()
    };
    modules.flat_map(of_module).collect()
}

/// Runs the script's top level within the budget. Returns the promised entries if they are defined, or else all
/// defined ones.
fn inspect(source: &PluginSource, module: &Module, pool: &Pool, script: usize) -> Result<Vec<Entry>, LoadError> {
    let failed = |message: String| load_error(source, &module.origin, LoadStage::Inspected, message);
    let setting = CallSettings {
        script,
        config: &source.config,
        now: None,
    };
    let found = pool.session(&setting, |session| {
        session.run()?;
        Ok(if module.entries.is_empty() {
            defined(source, session)
        } else {
            promised(module, session)
        })
    });
    found
        .map_err(|fault| failed(with_cause(&fault, module)))?
        .map_err(failed)
}

/// Returns the message of a fault at the top level of a script, with its cause if the text shows it.
fn with_cause(fault: &Fault, module: &Module) -> String {
    let text = String::from_utf8_lossy(&module.code);
    let cause = (fault.kind == FaultKind::Trap).then(|| explained(&fault.message, &module.origin, &text));
    cause.flatten().unwrap_or_else(|| fault.to_string())
}

/// Returns the entries that the operator names, or an error if the script does not define one of their functions.
fn promised(module: &Module, session: &Session<'_, '_>) -> Result<Vec<Entry>, String> {
    let names = module.entries.iter().map(|entry| entry.point.function());
    let missing = names.into_iter().find_map(|name| match session.global(name) {
        Global::Function(_) => None,
        Global::Absent => Some(no_function(name, &String::from_utf8_lossy(&module.code))),
        Global::Other(type_name) => Some(format!("{name} is a {type_name}, not a function")),
    });
    missing.map_or_else(|| Ok(module.entries.clone()), Err)
}

/// Returns an entry for every known function that the script defines.
fn defined(source: &PluginSource, session: &Session<'_, '_>) -> Result<Vec<Entry>, String> {
    let is_defined = |point: &EntryPoint| matches!(session.global(point.function()), Global::Function(_));
    let points = EntryPoint::ALL.into_iter().filter(is_defined);
    let entries: Vec<_> = points
        .flat_map(|point| Entry::on(point, &source.object_kinds))
        .collect();
    if entries.is_empty() {
        let known = EntryPoint::ALL.map(EntryPoint::function).join(", ");
        return Err(format!(
            "the script defines none of the known global functions: {known}"
        ));
    }
    Ok(entries)
}

fn load_error(source: &PluginSource, origin: &str, stage: LoadStage, message: String) -> LoadError {
    LoadError {
        plugin: source.name.clone(),
        origin: origin.to_owned(),
        stage,
        message,
    }
}
