//! From the bytes of a component to a policy, stage by stage.

use std::sync::Arc;

use bulkhead_core::call::CallKind;
use bulkhead_core::policy::{Capability, EngineKind, Fault, Policy, PolicyId};
use bulkhead_plugin::{Engine, LoadError, LoadStage, Module, PluginSource};
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};
use wasmtime::{Config, Engine as Wasmtime};

use crate::bindings::EveryKind;
use crate::bindings::bulkhead::policy::types::Metadata;
use crate::bindings::exports::bulkhead::policy as exports;
use crate::host::Host;
use crate::policy::{Code, Exports, WasmPolicy};
use crate::ticker::Ticker;

/// Version of the contract that this engine speaks.
const CONTRACT: &str = "bulkhead:policy";
const CONTRACT_VERSION: &str = "0.1.0";

/// Takes the log lines of plugins: who, level (0 debug, 1 info, 2 warn), line.
pub type LogSink = Arc<dyn Fn(&PolicyId, u8, &str) + Send + Sync>;

/// How the engine runs.
#[derive(Clone)]
pub struct Options {
    /// Stack of a guest, in bytes.
    pub stack_bytes_max: usize,
    /// Where log lines go; nowhere if absent.
    pub log: Option<LogSink>,
}

impl Default for Options {
    fn default() -> Self {
        Self { stack_bytes_max: 512 << 10, log: None }
    }
}

/// The engine could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// wasmtime refused its configuration, or could not bind the contract.
    #[error("setting up wasmtime")]
    Wasmtime(#[source] wasmtime::Error),
    /// The thread of the wall-clock backstop could not be started.
    #[error("starting the epoch ticker")]
    Ticker(#[from] std::io::Error),
}

/// Loads components.
pub struct WasmEngine {
    engine: Wasmtime,
    linker: Linker<Host>,
    ticker: Arc<Ticker>,
    options: Options,
}

impl WasmEngine {
    /// Sets wasmtime up and starts the ticker.
    pub fn new(options: Options) -> Result<Self, StartError> {
        let mut config = Config::new();
        config
            .wasm_component_model(true)
            .consume_fuel(true)
            .epoch_interruption(true)
            .max_wasm_stack(options.stack_bytes_max)
            .cranelift_nan_canonicalization(true)
            .wasm_relaxed_simd(false);
        let engine = Wasmtime::new(&config).map_err(StartError::Wasmtime)?;
        let mut linker = Linker::new(&engine);
        EveryKind::add_to_linker::<_, HasSelf<_>>(&mut linker, |host: &mut Host| host).map_err(StartError::Wasmtime)?;
        let ticker = Arc::new(Ticker::start(engine.clone())?);
        Ok(Self { engine, linker, ticker, options })
    }

    fn compile(&self, at: &At<'_>, code: &[u8]) -> Result<Component, LoadError> {
        if !code.starts_with(b"\0asm") {
            return Err(at.error(LoadStage::Inspected, "is no WebAssembly in binary form"));
        }
        // Bytes 4 to 8 tell a core module (version 1, layer 0) from a component (layer 1).
        if code.get(6..8) == Some(&[0, 0]) {
            let message = "is a core module; turn it into a component, for example with `wasm-tools component new`";
            return Err(at.error(LoadStage::Inspected, message));
        }
        Component::from_binary(&self.engine, code).map_err(|error| at.error(LoadStage::Compiled, format!("{error:#}")))
    }

    /// Looks at imports and exports without running anything.
    fn inspect(&self, at: &At<'_>, component: &Component) -> Result<(InstancePre<Host>, Exports), LoadError> {
        let kind = component.component_type();
        for (name, _) in kind.imports(&self.engine) {
            if !is_offered(name) {
                let message = format!(
                    "imports {name}, which no plugin gets; a plugin may import interfaces of \
                     {CONTRACT}@{CONTRACT_VERSION} and nothing else"
                );
                return Err(at.error(LoadStage::Inspected, message));
            }
        }
        let bound = self.linker.instantiate_pre(component);
        let bound = bound.map_err(|error| at.error(LoadStage::Inspected, format!("{error:#}")))?;
        let plugin = exports::plugin::GuestIndices::new(&bound).map_err(|_| {
            let message = format!("does not export {CONTRACT}/plugin@{CONTRACT_VERSION}, which every plugin must");
            at.error(LoadStage::Inspected, message)
        })?;
        let exports = Exports {
            plugin,
            health: exports::health::GuestIndices::new(&bound).ok(),
            taints: exports::taints::GuestIndices::new(&bound).ok(),
            filter: exports::filter::GuestIndices::new(&bound).ok(),
            score: exports::score::GuestIndices::new(&bound).ok(),
            eviction: exports::eviction::GuestIndices::new(&bound).ok(),
        };
        if exports.kinds().is_empty() {
            let message = format!(
                "exports no kind of policy; one of health, taints, filter, score, eviction of \
                 {CONTRACT}@{CONTRACT_VERSION} is needed"
            );
            return Err(at.error(LoadStage::Inspected, message));
        }
        Ok((bound, exports))
    }
}

impl Exports {
    fn kinds(&self) -> Vec<CallKind> {
        [
            self.health.as_ref().map(|_| CallKind::Health),
            self.taints.as_ref().map(|_| CallKind::ClusterTaint),
            self.filter.as_ref().map(|_| CallKind::Filter),
            self.score.as_ref().map(|_| CallKind::Score),
            self.eviction.as_ref().map(|_| CallKind::EvictionCheck),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl Engine for WasmEngine {
    fn kind(&self) -> EngineKind {
        EngineKind::Wasm
    }

    fn load(&self, source: &PluginSource) -> Result<Arc<dyn Policy>, LoadError> {
        let [module] = source.modules.as_slice() else {
            let at = At { plugin: &source.name, origin: "" };
            return Err(at.error(LoadStage::Fetched, "a Wasm plugin is exactly one component"));
        };
        let at = At { plugin: &source.name, origin: &module.origin };
        let component = self.compile(&at, &module.code)?;
        let (component, exports) = self.inspect(&at, &component)?;
        let code = Code {
            engine: self.engine.clone(),
            component,
            exports,
            budget: source.budget,
            config: source.config.to_string(),
            _ticker: Arc::clone(&self.ticker),
        };
        let metadata = describe(&code).map_err(|fault| at.fault(LoadStage::Described, &fault))?;
        let configured = code.store().and_then(|mut store| code.instantiate(&mut store).map(drop));
        configured.map_err(|fault| at.fault(LoadStage::Configured, &fault))?;
        let version = format!("{}+{}", metadata.version, digest(module));
        let id = PolicyId { name: source.name.clone(), version, engine: EngineKind::Wasm };
        let capabilities = capabilities(&code.exports, &metadata);
        Ok(Arc::new(WasmPolicy { id, capabilities, code, log: self.options.log.clone() }))
    }
}

fn describe(code: &Code) -> Result<Metadata, Fault> {
    let mut store = code.store()?;
    let instance = code.component.instantiate(&mut store);
    let instance = code.checked(&store, instance)?;
    let plugin = code.exports.plugin.load(&mut store, &instance);
    let plugin = code.checked(&store, plugin)?;
    let described = plugin.call_describe(&mut store);
    code.checked(&store, described)
}

fn capabilities(exports: &Exports, metadata: &Metadata) -> Vec<Capability> {
    let mut capabilities = Vec::new();
    for kind in exports.kinds() {
        if kind == CallKind::Health && !metadata.object_kinds.is_empty() {
            let of_kind = metadata.object_kinds.iter();
            capabilities.extend(of_kind.map(|object| Capability::on(kind, &object.api_version, &object.kind)));
        } else {
            capabilities.push(Capability::any(kind));
        }
    }
    capabilities
}

fn is_offered(import: &str) -> bool {
    let rest = import.strip_prefix(CONTRACT).and_then(|rest| rest.strip_prefix('/'));
    rest.and_then(|rest| rest.split_once('@')).is_some_and(|(interface, version)| {
        version == CONTRACT_VERSION && ["types", "object", "clusters", "log"].contains(&interface)
    })
}

/// FNV-1a, 64 bits: enough to tell versions of a plugin apart, and no proof against somebody who tries.
fn digest(module: &Module) -> String {
    let hash = module
        .code
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{:012x}", hash >> 16)
}

/// Which plugin an error is about.
struct At<'a> {
    plugin: &'a str,
    origin: &'a str,
}

impl At<'_> {
    fn error(&self, stage: LoadStage, message: impl Into<String>) -> LoadError {
        LoadError { plugin: self.plugin.to_owned(), origin: self.origin.to_owned(), stage, message: message.into() }
    }

    fn fault(&self, stage: LoadStage, fault: &Fault) -> LoadError {
        self.error(stage, fault.to_string())
    }
}
