//! A policy that is loaded on its first call.

use std::sync::{Arc, OnceLock};

use bulkhead_core::call::{Call, CallKind, Reply};
use bulkhead_core::policy::{Build, Capability, EngineKind, Fault, FaultKind, Policy, PolicyId, Usage};
use bulkhead_plugin::Engine;

use crate::{Kind, customization};

/// Interpreter of one kind of the library.
///
/// Its capabilities are known without reading its scripts. For an operation without a script it returns that it has
/// no rule, and the next policy is called.
pub(crate) struct LazyPolicy {
    id: PolicyId,
    capabilities: Vec<Capability>,
    kind: &'static Kind,
    engine: Arc<dyn Engine>,
    loaded: OnceLock<Result<Arc<dyn Policy>, Fault>>,
}

impl LazyPolicy {
    pub(crate) fn new(kind: &'static Kind, engine: Arc<dyn Engine>) -> Self {
        let name = format!("{} {}", kind.api_version, kind.kind);
        let id = PolicyId {
            name,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: EngineKind::Lua,
        };
        let calls = [CallKind::Health, CallKind::Interpret].into_iter();
        let calls = calls.filter(|call| kind.has_health || *call != CallKind::Health);
        let capabilities = calls
            .map(|call| Capability::on(call, kind.api_version, kind.kind))
            .collect();
        Self {
            id,
            capabilities,
            kind,
            engine,
            loaded: OnceLock::new(),
        }
    }

    fn policy(&self) -> Result<&Arc<dyn Policy>, Fault> {
        self.loaded.get_or_init(|| self.load()).as_ref().map_err(Clone::clone)
    }

    /// Loads the scripts. They are compiled in and tested, so an error is a bug of the host.
    fn load(&self) -> Result<Arc<dyn Policy>, Fault> {
        let host_bug = |message: String| Fault::new(FaultKind::HostBug, message);
        let origin = self.kind.folder();
        let parsed = customization::parse(&origin, self.kind.text).map_err(|error| host_bug(error.to_string()))?;
        let loaded = self.engine.load(&customization::source(&parsed, &origin));
        loaded
            .map(|loaded| loaded.policy)
            .map_err(|error| host_bug(error.to_string()))
    }
}

impl Policy for LazyPolicy {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        self.policy()?.call(call)
    }

    fn usage_of(&self, kind: CallKind) -> Usage {
        self.loaded
            .get()
            .and_then(|loaded| loaded.as_ref().ok())
            .map_or_else(Usage::default, |policy| policy.usage_of(kind))
    }

    fn build(&self) -> Option<&Build> {
        self.loaded.get()?.as_ref().ok()?.build()
    }
}
