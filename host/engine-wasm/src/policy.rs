//! A plugin in force.

use bulkhead_core::call::{Call, Reply};
use bulkhead_core::policy::{Capability, Fault, Policy, PolicyId};

use crate::kinds;
use crate::log::LogSink;
use crate::session::{Code, Session};

/// A loaded component.
pub(crate) struct WasmPolicy {
    pub(crate) id: PolicyId,
    pub(crate) capabilities: Vec<Capability>,
    pub(crate) code: Code,
    pub(crate) log: Option<LogSink>,
}

impl Policy for WasmPolicy {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let mut session = Session::new(&self.code)?;
        let outcome = answer(&mut session, call);
        session.store.data_mut().lines.flush(self.log.as_ref(), &self.id);
        outcome
    }
}

fn answer(session: &mut Session<'_>, call: &Call<'_>) -> Result<Reply, Fault> {
    let instance = session.configured()?;
    match call {
        Call::Health(call) => kinds::health::ask(session, &instance, call).map(Reply::Health),
        Call::ClusterTaint(call) => kinds::cluster_taint::ask(session, &instance, call).map(Reply::ClusterTaint),
        Call::Filter(call) => kinds::filter::ask(session, &instance, call).map(Reply::Filter),
        Call::Score(call) => kinds::score::ask(session, &instance, call).map(Reply::Score),
        Call::EvictionCheck(call) => kinds::eviction_check::ask(session, &instance, call).map(Reply::EvictionCheck),
        // The contract has no such interface, so no component has a rule for it.
        Call::Interpret(_) => Ok(Reply::Interpret(None)),
    }
}
