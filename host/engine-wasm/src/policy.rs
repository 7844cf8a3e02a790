//! Policy of a loaded component.

use bulkhead_core::call::{Call, CallKind, Reply};
use bulkhead_core::model::Binding;
use bulkhead_core::policy::{Build, Capability, Fault, FaultKind, Policy, PolicyId, Usage};
use bulkhead_plugin::{LogSink, UsageMeter};
use serde_json::Value;

use crate::host::About;
use crate::host::pointer::pointer;
use crate::kinds;
use crate::session::{Code, Session};

/// A loaded component.
pub(crate) struct WasmPolicy {
    pub(crate) id: PolicyId,
    pub(crate) capabilities: Vec<Capability>,
    pub(crate) code: Code,
    pub(crate) log: Option<LogSink>,
    pub(crate) meter: UsageMeter,
    pub(crate) build: Build,
}

impl Policy for WasmPolicy {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let about = About {
            now_ms: call.now().as_millis(),
            seed: seed(call),
            plugin_name: self.id.name.clone(),
        };
        let mut session = Session::new(&self.code, about)?;
        let outcome = answer(&mut session, call).and_then(|reply| session.in_time().map(|()| reply));
        session.store.data_mut().flush(self.log.as_ref(), &self.id);
        self.meter.record(call.kind(), session.steps(), session.memory_bytes());
        if outcome
            .as_ref()
            .err()
            .is_none_or(|fault| fault.kind == FaultKind::Unsupported)
        {
            session.end_well();
        }
        outcome
    }

    fn usage_of(&self, kind: CallKind) -> Usage {
        self.meter.usage_of(kind)
    }

    fn build(&self) -> Option<&Build> {
        Some(&self.build)
    }
}

/// Makes a call in a session.
pub(crate) fn answer(session: &mut Session<'_>, call: &Call<'_>) -> Result<Reply, Fault> {
    let instance = session.configured()?;
    match call {
        Call::Health(call) => kinds::health::ask(session, &instance, call).map(Reply::Health),
        Call::ClusterTaint(call) => kinds::cluster_taint::ask(session, &instance, call).map(Reply::ClusterTaint),
        Call::Filter(call) => kinds::filter::ask(session, &instance, call).map(Reply::Filter),
        Call::Score(call) => kinds::score::ask(session, &instance, call).map(Reply::Score),
        Call::EvictionCheck(call) => kinds::eviction_check::ask(session, &instance, call).map(Reply::EvictionCheck),
        Call::Interpret(call) => kinds::interpreter::ask(session, &instance, call).map(Reply::Interpret),
    }
}

/// Returns a seed that depends only on the call: FNV-1a over the kind of call and the subject's name.
fn seed(call: &Call<'_>) -> u64 {
    let binding = |binding: &Binding| (binding.namespace.clone().unwrap_or_default(), binding.name.clone());
    let of = |object: &Value, field: &str| {
        pointer(object, field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let object = |object: &Value| (of(object, "/metadata/namespace"), of(object, "/metadata/name"));
    let (namespace, name) = match call {
        Call::Health(call) => object(call.object),
        Call::Interpret(call) => object(call.operation.object()),
        Call::ClusterTaint(call) => (String::new(), call.cluster.name.clone()),
        Call::Filter(call) => binding(call.binding),
        Call::Score(call) => binding(call.binding),
        Call::EvictionCheck(call) => binding(call.binding),
    };
    let parts = [call.kind().as_str(), &namespace, &name];
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
