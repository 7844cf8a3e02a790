//! Calls about cluster taints.

use std::sync::Arc;

use bulkhead_core::call::{ClusterTaintCall, TaintChange, TaintVerdict};
use bulkhead_core::model::{Taint, TaintEffect};
use bulkhead_core::policy::Fault;
use wasmtime::component::Instance;

use super::reason;
use crate::host::LentCluster;
use crate::host::bindings::bulkhead::policy::types;
use crate::host::bindings::exports::bulkhead::policy::taints::Change;
use crate::session::{Session, exported};

pub(crate) fn ask(
    session: &mut Session<'_>,
    of: &Instance,
    call: &ClusterTaintCall<'_>,
) -> Result<TaintVerdict, Fault> {
    let guest = exported(session.code.exports.taints.as_ref())?.load(&mut session.store, of);
    let guest = session.loaded(guest)?;
    let cluster = session.lend(LentCluster::from(Arc::new(call.cluster.clone())))?;
    let changes = guest.call_decide(&mut session.store, cluster);
    let changes = session.answered(changes)?;
    Ok(TaintVerdict {
        changes: changes.into_iter().map(change).collect(),
    })
}

fn change(change: Change) -> TaintChange {
    match change {
        Change::Add(added) => TaintChange::Add {
            taint: Taint {
                key: added.key,
                value: added.value,
                effect: effect(added.effect),
                time_added: None,
            },
            reason: reason(added.reason),
        },
        Change::Remove(removed) => TaintChange::Remove {
            key: removed.key,
            effect: effect(removed.effect),
            reason: reason(removed.reason),
        },
    }
}

fn effect(effect: types::TaintEffect) -> TaintEffect {
    match effect {
        types::TaintEffect::NoSchedule => TaintEffect::NoSchedule,
        types::TaintEffect::PreferNoSchedule => TaintEffect::PreferNoSchedule,
        types::TaintEffect::NoExecute => TaintEffect::NoExecute,
    }
}
