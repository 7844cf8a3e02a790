//! Calls of scheduler scores.

use std::sync::Arc;

use bulkhead_core::call::ScoreCall;
use bulkhead_core::policy::Fault;
use wasmtime::component::Instance;

use crate::host::{Candidates, LentBinding};
use crate::session::{Session, exported};

pub(crate) fn ask(session: &mut Session<'_>, of: &Instance, call: &ScoreCall<'_>) -> Result<Vec<i64>, Fault> {
    let guest = exported(session.code.exports.score.as_ref())?.load(&mut session.store, of);
    let guest = session.loaded(guest)?;
    let binding = Arc::new(call.binding.clone());
    let feasible = session.lend(Candidates::new(Arc::clone(&binding), call.clusters))?;
    let binding = session.lend(LentBinding::new(binding))?;
    let scores = guest.call_score(&mut session.store, binding, feasible);
    Ok(session.answered(scores)?.into_iter().map(i64::from).collect())
}
