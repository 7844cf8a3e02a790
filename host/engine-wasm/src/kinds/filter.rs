//! Where can a binding run?

use bulkhead_core::call::{FilterCall, FilterVerdict};
use bulkhead_core::policy::Fault;
use wasmtime::component::Instance;

use super::reason;
use crate::bindings::exports::bulkhead::policy::filter::Verdict;
use crate::host::{Candidates, Document};
use crate::session::{Session, exported, seconds};

pub(crate) fn ask(
    session: &mut Session<'_>,
    of: &Instance,
    call: &FilterCall<'_>,
) -> Result<Vec<FilterVerdict>, Fault> {
    let guest = exported(session.code.exports.filter.as_ref())?.load(&mut session.store, of);
    let guest = session.loaded(guest)?;
    let binding = session.document(Document::of(call.binding))?;
    let candidates = session.candidates(Candidates::new(call.binding, call.clusters))?;
    let verdicts = guest.call_filter(&mut session.store, binding, candidates, seconds(call.now));
    Ok(session.answered(verdicts)?.into_iter().map(verdict).collect())
}

fn verdict(verdict: Verdict) -> FilterVerdict {
    match verdict {
        Verdict::Fit => FilterVerdict::Fit,
        Verdict::Unfit(why) => FilterVerdict::Unfit(reason(why)),
        Verdict::Abstain => FilterVerdict::Abstain,
    }
}
