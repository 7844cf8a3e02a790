//! Calls about the health of an object.

use std::sync::Arc;

use bulkhead_core::call::{HealthCall, HealthVerdict};
use bulkhead_core::model::Health;
use bulkhead_core::policy::Fault;
use wasmtime::component::Instance;

use super::reason;
use crate::host::Document;
use crate::host::bindings::bulkhead::policy::types::HealthState;
use crate::session::{Session, exported};

pub(crate) fn ask(session: &mut Session<'_>, of: &Instance, call: &HealthCall<'_>) -> Result<HealthVerdict, Fault> {
    let guest = exported(session.code.exports.health.as_ref())?.load(&mut session.store, of);
    let guest = session.loaded(guest)?;
    let observed = session.lend(Document::from(Arc::clone(call.object)))?;
    let verdict = guest.call_interpret(&mut session.store, observed);
    let verdict = session.answered(verdict)?;
    let health = match verdict.state {
        HealthState::Healthy => Health::Healthy,
        HealthState::Unhealthy => Health::Unhealthy,
        HealthState::Unknown => Health::Unknown,
    };
    Ok(HealthVerdict {
        health,
        reason: reason(verdict.reason),
    })
}
