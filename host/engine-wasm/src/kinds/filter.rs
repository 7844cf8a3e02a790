//! Calls of scheduler filters.

use std::sync::Arc;

use bulkhead_core::call::{FilterCall, FilterVerdict};
use bulkhead_core::policy::Fault;
use wasmtime::component::Instance;

use super::reason;
use crate::host::bindings::exports::bulkhead::policy::filter::Verdict;
use crate::host::{Candidates, LentBinding};
use crate::session::{Session, exported};

pub(crate) fn ask(
    session: &mut Session<'_>,
    of: &Instance,
    call: &FilterCall<'_>,
) -> Result<Vec<FilterVerdict>, Fault> {
    let guest = exported(session.code.exports.filter.as_ref())?.load(&mut session.store, of);
    let guest = session.loaded(guest)?;
    let binding = Arc::new(call.binding.clone());
    let candidates = session.lend(Candidates::new(Arc::clone(&binding), call.clusters))?;
    let binding = session.lend(LentBinding::new(binding))?;
    let verdicts = guest.call_filter(&mut session.store, binding, candidates);
    Ok(session.answered(verdicts)?.into_iter().map(verdict).collect())
}

fn verdict(verdict: Verdict) -> FilterVerdict {
    match verdict {
        Verdict::Fit => FilterVerdict::Fit,
        Verdict::Unfit(why) => FilterVerdict::Unfit(reason(why)),
        Verdict::Abstain => FilterVerdict::Abstain,
    }
}
