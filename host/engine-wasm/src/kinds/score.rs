//! How good is each feasible cluster for a binding?

use bulkhead_core::call::ScoreCall;
use bulkhead_core::policy::Fault;
use wasmtime::component::Instance;

use crate::host::{Candidates, Document};
use crate::session::{Session, exported, seconds};

pub(crate) fn ask(session: &mut Session<'_>, of: &Instance, call: &ScoreCall<'_>) -> Result<Vec<i64>, Fault> {
    let guest = exported(session.code.exports.score.as_ref())?.load(&mut session.store, of);
    let guest = session.loaded(guest)?;
    let binding = session.document(Document::of(call.binding))?;
    let feasible = session.candidates(Candidates::new(call.binding, call.clusters))?;
    let scores = guest.call_score(&mut session.store, binding, feasible, seconds(call.now));
    Ok(session.answered(scores)?.into_iter().map(i64::from).collect())
}
