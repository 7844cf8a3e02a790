//! May an old copy go?

use bulkhead_core::call::{EvictionCheckCall, EvictionVerdict};
use bulkhead_core::policy::Fault;
use serde_json::{Value, json};
use wasmtime::component::Instance;

use super::reason;
use crate::bindings::exports::bulkhead::policy::eviction::Verdict;
use crate::host::{self, Document};
use crate::session::{Session, exported, seconds};

pub(crate) fn ask(
    session: &mut Session<'_>,
    of: &Instance,
    call: &EvictionCheckCall<'_>,
) -> Result<EvictionVerdict, Fault> {
    let guest = exported(session.code.exports.eviction.as_ref())?.load(&mut session.store, of);
    let guest = session.loaded(guest)?;
    let binding = session.document(binding(call))?;
    let task = session.document(Document::of(call.task))?;
    let verdict = guest.call_check(&mut session.store, binding, task, seconds(call.now));
    Ok(match session.answered(verdict)? {
        Verdict::Release(why) => EvictionVerdict::Release(reason(why)),
        Verdict::Hold(hold) => {
            EvictionVerdict::Hold { reason: reason(hold.reason), recheck_after_s: hold.recheck_after_s }
        }
        Verdict::Abstain => EvictionVerdict::Abstain,
    })
}

/// The binding, with what the call says was observed as its aggregated status: the call may know better.
fn binding(call: &EvictionCheckCall<'_>) -> Value {
    let mut binding = host::json(call.binding);
    if call.observed != call.binding.status.aggregated_status {
        if !binding["status"].is_object() {
            binding["status"] = json!({});
        }
        binding["status"]["aggregatedStatus"] = host::json(&call.observed);
    }
    binding
}
