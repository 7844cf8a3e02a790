//! Calls of eviction checks.

use std::sync::Arc;

use bulkhead_core::call::{EvictionCheckCall, EvictionVerdict};
use bulkhead_core::policy::Fault;
use wasmtime::component::Instance;

use super::reason;
use crate::host::bindings::exports::bulkhead::policy::eviction::Verdict;
use crate::host::{LentBinding, LentTask};
use crate::session::{Session, exported};

pub(crate) fn ask(
    session: &mut Session<'_>,
    of: &Instance,
    call: &EvictionCheckCall<'_>,
) -> Result<EvictionVerdict, Fault> {
    let guest = exported(session.code.exports.eviction.as_ref())?.load(&mut session.store, of);
    let guest = session.loaded(guest)?;
    let binding = session.lend(LentBinding::observed(Arc::new(call.binding.clone()), call.observed))?;
    let task = session.lend(LentTask(call.task.clone()))?;
    let verdict = guest.call_check(&mut session.store, binding, task);
    Ok(match session.answered(verdict)? {
        Verdict::Release(why) => EvictionVerdict::Release(reason(why)),
        Verdict::Hold(hold) => EvictionVerdict::Hold {
            reason: reason(hold.reason),
            recheck_after_s: hold.recheck_after_s,
        },
        Verdict::Abstain => EvictionVerdict::Abstain,
    })
}
