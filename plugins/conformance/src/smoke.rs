//! Subset of the laws that is cheap enough to run whenever a host loads a plugin.

use bulkhead_core::call::CallKind;
use bulkhead_core::policy::{Capability, FaultKind, Policy};

use crate::call_result::{CallResult, ask, fault_name};
use crate::inputs::{Inputs, Sample};

/// Maximum number of capabilities tested. A policy for dozens of object kinds shares its code between most of them.
const CAPABILITIES_MAX: usize = 5;
/// Number of junk inputs per capability.
const JUNK: usize = 2;
/// Number of plain calls to a resource interpreter, one per operation.
const OPERATIONS: usize = 7;

/// End of a message about a trap. Objects of custom resources have fields of any type.
const TRAP_HINT: &str = "; a field of an object may be absent or of another type: test it before it is used, in Lua \
                         with type(observedObj.status) == 'table'";

/// Makes a few calls per capability of the policy: a plain one twice, an empty one and junk. This takes at most 64
/// calls. The error names the call and its fault, or the two different answers.
///
/// Faults count as in the laws: the plugin's own error is an answer, running out of budget is a failure. Karmada's
/// conventions allow a script to fail on an object without a status. A host that runs such scripts should therefore
/// treat the findings as warnings and not reject the scripts.
pub fn smoke(policy: &dyn Policy) -> Result<(), String> {
    for capability in policy.capabilities().iter().take(CAPABILITIES_MAX) {
        smoke_of(policy, capability).map_err(|why| format!("{}: {why}", capability.kind))?;
    }
    Ok(())
}

fn smoke_of(policy: &dyn Policy, capability: &Capability) -> Result<(), String> {
    let inputs = Inputs::small(capability.kind, std::slice::from_ref(capability));
    let junk = inputs.junk.iter().step_by(inputs.junk.len().div_ceil(JUNK).max(1));
    for sample in inputs.empty.iter().take(1).chain(junk) {
        answered(policy, sample)?;
    }
    let plain = if capability.kind == CallKind::Interpret {
        OPERATIONS
    } else {
        1
    };
    let mut first = None;
    for sample in inputs.plain.iter().take(plain) {
        let answer = answered(policy, sample)?;
        first = first.or(Some((sample, answer)));
    }
    let Some((sample, first)) = first else { return Ok(()) };
    let second = answered(policy, sample)?;
    if first.same(&second) {
        return Ok(());
    }
    Err(format!(
        "asked twice about {}: {}",
        sample.what,
        first.difference(&second)
    ))
}

fn answered(policy: &dyn Policy, sample: &Sample) -> Result<CallResult, String> {
    let answer = ask(policy, &sample.call);
    let fault = answer
        .fault()
        .filter(|fault| !matches!(fault.kind, FaultKind::Unsupported | FaultKind::GuestError));
    match fault {
        Some(fault) => {
            let hint = if fault.kind == FaultKind::Trap { TRAP_HINT } else { "" };
            Err(format!(
                "asked about {}: {} ({fault}){hint}",
                sample.what,
                fault_name(fault.kind)
            ))
        }
        None => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use bulkhead_core::call::{Call, HealthVerdict, Reason, Reply};
    use bulkhead_core::model::Health;
    use bulkhead_core::policy::Fault;
    use serde_json::json;

    use super::*;
    use crate::scripted::{Scripted, good, object};

    #[test]
    fn a_policy_that_behaves_passes_at_little_cost() {
        for kind in CallKind::ALL {
            assert_eq!(smoke(&Scripted::good(kind)), Ok(()));
        }
        let many = |number: usize| Capability::on(CallKind::Interpret, "example.io/v1", format!("Kind{number}"));
        let policy = Scripted::with((0..50).map(many).collect());
        assert_eq!(smoke(&policy), Ok(()));
        assert!(policy.calls() <= 64, "{} calls", policy.calls());
    }

    #[test]
    fn a_policy_that_chokes_on_what_is_empty_or_junk_does_not_pass() {
        let check = |when: fn(&Call<'_>) -> bool, words: &str| {
            let fault = || Fault::new(FaultKind::Trap, "attempt to index nil");
            let trap = move |call: &Call<'_>| if when(call) { Err(fault()) } else { Ok(good(call)) };
            let why = smoke(&Scripted::good(CallKind::Health).answering(trap)).unwrap_err();
            assert!(
                why.contains(words) && why.contains("trap (attempt to index nil)"),
                "{why}"
            );
            assert!(why.ends_with(TRAP_HINT), "{why}");
        };
        check(
            |call| object(call).get("status").is_none(),
            "health: asked about Game without fields",
        );
        check(
            |call| object(call)["metadata"] == json!(null) && object(call).get("status").is_some(),
            "metadata is null",
        );
    }

    #[test]
    fn a_policy_that_changes_its_mind_does_not_pass() {
        let calls = AtomicU64::new(0);
        let answer = move |_: &Call<'_>| {
            let reason = Reason::new(format!("Call{}", calls.fetch_add(1, Ordering::Relaxed)), "");
            Ok(Reply::Health(HealthVerdict {
                health: Health::Healthy,
                reason,
            }))
        };
        let why = smoke(&Scripted::good(CallKind::Health).answering(answer)).unwrap_err();
        assert!(
            why.starts_with("health: asked twice about Game with all replicas ready: Healthy (Call3) first"),
            "{why}"
        );
    }
}
