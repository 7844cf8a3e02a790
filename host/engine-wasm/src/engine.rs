//! Conversion of a component's bytes to a policy, stage by stage.

mod prepared;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use bulkhead_core::manifest::Instances;
use bulkhead_core::policy::{EngineKind, Fault, FaultKind};
use bulkhead_plugin::{
    Description, Engine, LoadError, LoadStage, Loaded, LogSink, ModuleCode, PluginSource, UsageMeter, check_config,
};
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};
use wasmtime::{Config, Engine as Wasmtime, OptLevel};

use crate::access;
use crate::bound;
use crate::cache::{Cache, CacheOptions, CacheReport};
use crate::host::bindings::EveryKind;
use crate::host::bindings::bulkhead::policy::types::{Metadata, ObjectKind};
use crate::host::bindings::exports::bulkhead::policy as exports;
use crate::host::wasi;
use crate::host::{About, Host};
use crate::origin::Access;
use crate::outline::{self, Binary, Outline};
use crate::policy::WasmPolicy;
use crate::pool::{self, Allocation, Started};
use crate::session::{Code, Exports, Session};
use crate::slots::Slots;
use crate::ticker::Ticker;
use crate::{contract, metadata};

/// Options of the engine.
#[derive(Clone)]
pub struct Options {
    /// Stack size of a guest, in bytes.
    pub stack_bytes_max: usize,
    /// Maximum number of concurrent instances of all plugins together; at least 1. Further calls wait for another one
    /// to end. Reused instances count while they are idle, and are dropped when another plugin needs their slot.
    pub instances_max: u32,
    /// Allocation of instance memory. If the address space is too small, memory is always allocated on demand.
    pub allocation: Allocation,
    /// Receiver of log lines; absent to discard them.
    pub log: Option<LogSink>,
    /// Cache of compiled components; absent to disable it.
    pub cache: Option<CacheOptions>,
    /// Minimum size in bytes of components that are configured once, so that each call starts from a snapshot of that
    /// state. Their first load takes up to twice the time. Smaller ones are configured before each call.
    pub snapshot_bytes_min: usize,
}

impl Default for Options {
    /// Returns 512 KiB of stack, 32 pooled instances, no log, no cache, and snapshots of components of 1 MiB and more.
    fn default() -> Self {
        Self {
            stack_bytes_max: 512 << 10,
            instances_max: 32,
            allocation: Allocation::Pooled,
            log: None,
            cache: None,
            snapshot_bytes_min: 1 << 20,
        }
    }
}

/// Error for an engine that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// wasmtime rejected its configuration or could not bind the contract.
    #[error("setting up wasmtime")]
    Wasmtime(#[source] wasmtime::Error),
    /// The thread of the wall-clock backstop could not be started.
    #[error("starting the epoch ticker")]
    Ticker(#[from] std::io::Error),
}

/// Loader of components.
pub struct WasmEngine {
    engine: Wasmtime,
    linker: Linker<Host>,
    ticker: Arc<Ticker>,
    pub(crate) slots: Arc<Slots>,
    allocation: Allocation,
    allocation_problem: Option<String>,
    cache: Option<Cache>,
    options: Options,
}

impl WasmEngine {
    /// Configures wasmtime and starts the ticker, which runs until the engine and every policy that it loaded are
    /// dropped.
    pub fn new(options: Options) -> Result<Self, StartError> {
        Self::start(options, OptLevel::Speed)
    }

    /// Starts an engine that compiles fast and runs each instance once, for snapshots.
    fn starter(&self) -> Result<Self, StartError> {
        let options = Options {
            instances_max: 1,
            allocation: Allocation::OnDemand,
            cache: None,
            snapshot_bytes_min: usize::MAX,
            ..self.options.clone()
        };
        Self::start(options, OptLevel::None)
    }

    fn start(options: Options, level: OptLevel) -> Result<Self, StartError> {
        let mut config = Config::new();
        config
            .wasm_component_model(true)
            .consume_fuel(true)
            .epoch_interruption(true)
            .max_wasm_stack(options.stack_bytes_max)
            // Results are identical on every machine: one NaN, and relaxed instructions in their strict form. Thread
            // support is not compiled into wasmtime.
            .cranelift_nan_canonicalization(true)
            .relaxed_simd_deterministic(true)
            // 64-bit memories cost a check at every access, and no plugin toolchain needs them.
            .wasm_memory64(false)
            // Windows and native debuggers alone need it: wasmtime walks the stack by frame pointers, and no panic passes
            // guest code. LLVM's libunwind, which static programs have, takes time to remove it that is quadratic in the
            // number of functions.
            .native_unwind_info(cfg!(windows))
            .cranelift_opt_level(level);
        let started = pool::start(&config, options.allocation, options.instances_max);
        let Started {
            engine,
            allocation,
            problem,
        } = started.map_err(StartError::Wasmtime)?;
        let mut linker = Linker::new(&engine);
        EveryKind::add_to_linker::<_, HasSelf<_>>(&mut linker, |host: &mut Host| host).map_err(StartError::Wasmtime)?;
        wasi::add_to_linker(&mut linker).map_err(StartError::Wasmtime)?;
        let ticker = Arc::new(Ticker::start(engine.clone())?);
        let slots = Arc::new(Slots::new(options.instances_max, Arc::clone(&ticker)));
        let cache = options.cache.clone().map(Cache::open);
        Ok(Self {
            engine,
            linker,
            ticker,
            slots,
            allocation,
            allocation_problem: problem,
            cache,
            options,
        })
    }

    /// Returns the effective allocation of instance memory.
    pub fn allocation(&self) -> Allocation {
        self.allocation
    }

    /// Returns the reason why the allocation differs from the options; `None` if it does not.
    pub fn allocation_problem(&self) -> Option<&str> {
        self.allocation_problem.as_deref()
    }

    /// Returns the number of reused instances that wait for their next call.
    pub fn idle_instances(&self) -> usize {
        self.slots.idle()
    }

    /// Returns the report of the cache of compiled components; `None` if there is no cache.
    pub fn cache_report(&self) -> Option<CacheReport> {
        self.cache.as_ref().map(Cache::report)
    }

    /// Compiles the component of a plugin, or takes it from the cache, and checks the types of its imports and exports.
    fn code(&self, at: &At<'_>, source: &PluginSource, bytes: &ModuleCode) -> Result<(Code, Outline), LoadError> {
        let prepared = self.prepared(source, bytes);
        let starts_configured = prepared.is_some();
        let component = match prepared {
            Some(component) => component,
            None => self
                .compile(bytes)
                .map_err(|error| at.error(LoadStage::Compiled, format!("{error:#}")))?,
        };
        self.bind(at, source, &component, starts_configured)
    }

    fn compile(&self, bytes: &ModuleCode) -> wasmtime::Result<Component> {
        let compile = || bound::compile(&self.engine, bytes);
        match &self.cache {
            Some(cache) => cache.component(&self.engine, &[bytes.digest().as_bytes()], compile),
            None => compile(),
        }
    }

    /// Binds a component to the host, and checks the types of its imports and exports.
    fn bind(
        &self,
        at: &At<'_>,
        source: &PluginSource,
        component: &Component,
        starts_configured: bool,
    ) -> Result<(Code, Outline), LoadError> {
        let types = component.component_type();
        // The names were read from the bytes before; wasmtime's own names are the authoritative ones.
        let imports = types.imports(&self.engine).map(|(name, _)| name.to_owned()).collect();
        let exports = types.exports(&self.engine).map(|(name, _)| name);
        let exports = exports
            .filter(|name| !access::is_added(name))
            .map(str::to_owned)
            .collect();
        let outline = Outline { imports, exports };
        at.unless(contract::objection(&outline), LoadStage::Inspected)?;
        let bound = self.linker.instantiate_pre(component);
        let bound = bound.map_err(|error| at.error(LoadStage::Inspected, format!("{error:#}")))?;
        let exports = at.exports(&bound, &outline)?;
        let code = Code {
            engine: self.engine.clone(),
            component: bound,
            exports,
            budget: source.budget,
            config: source.config.to_string(),
            starts_configured,
            access: starts_configured.then(|| Access::of(component)).flatten(),
            unused_copies: AtomicU32::new(0),
            instances: source.instances,
            slots: Arc::clone(&self.slots),
            plugin: self.slots.plugin(),
            ticker: Arc::clone(&self.ticker),
        };
        Ok((code, outline))
    }
}

impl Engine for WasmEngine {
    fn kind(&self) -> EngineKind {
        EngineKind::Wasm
    }

    fn load(&self, source: &PluginSource) -> Result<Loaded, LoadError> {
        let at = At::of(source);
        let [module] = source.modules.as_slice() else {
            return Err(at.error(LoadStage::Fetched, "a Wasm plugin is exactly one component"));
        };
        at.unless(foreign(&module.code), LoadStage::Inspected)?;
        let (mut code, outline) = self.code(&at, source, &module.code)?;
        let (object_kinds, description) = described(&at, source, &code, outline)?;
        if source.instances == Instances::Reused && !description.reusable {
            let message = "instances: reused needs a plugin that declares itself reusable";
            return Err(at.error(LoadStage::Described, message));
        }
        prepared::keep_access_if_it_works(&mut code, &about(source), object_kinds.first());
        let id = metadata::id(source, &description);
        let mut session =
            Session::new(&code, about(source)).map_err(|fault| at.error(LoadStage::Configured, fault.to_string()))?;
        let configured = configure(&mut session);
        session.store.data_mut().flush(self.options.log.as_ref(), &id);
        configured.map_err(|fault| at.error(stage(&fault), fault.to_string()))?;
        drop(session);
        let capabilities = metadata::capabilities(&code.exports, &object_kinds);
        let log = self.options.log.clone();
        Ok(Loaded {
            policy: Arc::new(WasmPolicy {
                id,
                capabilities,
                code,
                log,
                meter: UsageMeter::default(),
                build: source.build(),
            }),
            description,
        })
    }
}

/// Returns the reason why these bytes cannot be a plugin, if any. Does not compile them.
fn foreign(code: &[u8]) -> Option<String> {
    match outline::recognise(code) {
        Binary::Component => outline::read(code).and_then(|outline| {
            let reserved = outline.exports.iter().find(|name| access::is_added(name));
            let reserved = reserved.map(|name| format!("exports {name}, which this host adds to components itself"));
            reserved.or_else(|| contract::objection(&outline))
        }),
        Binary::CoreModule => Some(
            "is a core module; turn it into a component with `wasm-tools component new` (`cargo xtask guests` does so \
             for the plugins in examples/plugins, with wit-component)"
                .to_owned(),
        ),
        Binary::Foreign => Some("is not WebAssembly in binary form".to_owned()),
    }
}

/// Returns the kinds of objects and the description of a plugin, whose schema accepts the configuration.
fn described(
    at: &At<'_>,
    source: &PluginSource,
    code: &Code,
    outline: Outline,
) -> Result<(Vec<ObjectKind>, Description), LoadError> {
    let described = describe(code).map_err(|fault| at.error(LoadStage::Described, fault.to_string()))?;
    let object_kinds = described.object_kinds.clone();
    let description = metadata::description(described, source, outline);
    let description = description.map_err(|objection| at.error(LoadStage::Described, objection))?;
    let checked = check_config(description.config_schema.as_ref(), &source.config);
    checked.map_err(|message| at.error(LoadStage::Configured, message))?;
    Ok((object_kinds, description))
}

/// Returns the context of a plugin that is not called.
fn about(source: &PluginSource) -> About {
    About {
        plugin_name: source.name.clone(),
        ..About::default()
    }
}

/// Calls `describe`, which needs no configuration. An instance that starts configured is kept for the next call if it
/// can be given its state back: a new one costs milliseconds.
fn describe(code: &Code) -> Result<Metadata, Fault> {
    let mut session = Session::new(code, About::default())?;
    let instance = if code.starts_configured {
        session.configured()?
    } else {
        session.instantiate()?
    };
    let plugin = code.exports.plugin.load(&mut session.store, &instance);
    let plugin = session.loaded(plugin)?;
    let described = plugin.call_describe(&mut session.store);
    let metadata = session.returned(described)?;
    session.end_well();
    Ok(metadata)
}

/// Configures an instance as before a call, and checks the types of the functions of every kind.
fn configure(session: &mut Session<'_>) -> Result<(), Fault> {
    let instance = session.configured()?;
    let exports = &session.code.exports;
    let store = &mut session.store;
    let loaded = [
        (
            "health",
            exports
                .health
                .as_ref()
                .map(|kind| kind.load(&mut *store, &instance).map(drop)),
        ),
        (
            "taints",
            exports
                .taints
                .as_ref()
                .map(|kind| kind.load(&mut *store, &instance).map(drop)),
        ),
        (
            "filter",
            exports
                .filter
                .as_ref()
                .map(|kind| kind.load(&mut *store, &instance).map(drop)),
        ),
        (
            "score",
            exports
                .score
                .as_ref()
                .map(|kind| kind.load(&mut *store, &instance).map(drop)),
        ),
        (
            "eviction",
            exports
                .eviction
                .as_ref()
                .map(|kind| kind.load(&mut *store, &instance).map(drop)),
        ),
        (
            "interpreter",
            exports
                .interpreter
                .as_ref()
                .map(|kind| kind.load(&mut *store, &instance).map(drop)),
        ),
    ];
    let mistyped = |name, fault: Fault| {
        let interface = contract::interface(name);
        Fault::new(
            fault.kind,
            format!("its {interface} does not have the type of the contract: {fault}"),
        )
    };
    loaded
        .into_iter()
        .filter_map(|(name, kind)| Some((name, kind?)))
        .try_for_each(|(name, kind)| session.loaded(kind).map_err(|fault| mistyped(name, fault)))
}

/// Returns the stage of a fault. A function of the wrong type is detected during configuration, but is not a fault of
/// the configuration.
fn stage(fault: &Fault) -> LoadStage {
    if fault.kind == FaultKind::MissingExport {
        LoadStage::Inspected
    } else {
        LoadStage::Configured
    }
}

/// The plugin that an error is about.
struct At<'a> {
    plugin: &'a str,
    origin: &'a str,
}

impl<'a> At<'a> {
    fn of(source: &'a PluginSource) -> Self {
        Self {
            plugin: &source.name,
            origin: source.modules.first().map_or("", |module| &module.origin),
        }
    }

    fn error(&self, stage: LoadStage, message: impl Into<String>) -> LoadError {
        LoadError {
            plugin: self.plugin.to_owned(),
            origin: self.origin.to_owned(),
            stage,
            message: message.into(),
        }
    }

    fn unless(&self, objection: Option<String>, stage: LoadStage) -> Result<(), LoadError> {
        objection.map_or(Ok(()), |message| Err(self.error(stage, message)))
    }

    /// Finds the functions of every exported interface. An exported interface without its functions is an error.
    fn exports(&self, bound: &InstancePre<Host>, outline: &Outline) -> Result<Exports, LoadError> {
        let incomplete = |error: wasmtime::Error| self.error(LoadStage::Inspected, format!("{error:#}"));
        let exported = |name| outline.exports.contains(&contract::interface(name));
        Ok(Exports {
            plugin: exports::plugin::GuestIndices::new(bound).map_err(incomplete)?,
            health: exported("health")
                .then(|| exports::health::GuestIndices::new(bound))
                .transpose()
                .map_err(incomplete)?,
            taints: exported("taints")
                .then(|| exports::taints::GuestIndices::new(bound))
                .transpose()
                .map_err(incomplete)?,
            filter: exported("filter")
                .then(|| exports::filter::GuestIndices::new(bound))
                .transpose()
                .map_err(incomplete)?,
            score: exported("score")
                .then(|| exports::score::GuestIndices::new(bound))
                .transpose()
                .map_err(incomplete)?,
            eviction: exported("eviction")
                .then(|| exports::eviction::GuestIndices::new(bound))
                .transpose()
                .map_err(incomplete)?,
            interpreter: exported("interpreter")
                .then(|| exports::interpreter::GuestIndices::new(bound))
                .transpose()
                .map_err(incomplete)?,
        })
    }
}
