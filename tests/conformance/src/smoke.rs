//! The part of the laws that a host can afford whenever it loads a plugin.

use bulkhead_core::call::CallKind;
use bulkhead_core::policy::{Capability, FaultKind, Policy};

use crate::answer::{Answer, ask, fault_name};
use crate::inputs::{Inputs, Sample};

/// Most capabilities that are looked at. A policy for dozens of kinds of object has the same code for most.
const CAPABILITIES_MAX: usize = 5;
/// Junk per capability.
const JUNK: usize = 2;
/// Plain questions of a resource interpreter, one per operation.
const OPERATIONS: usize = 7;

/// Asks a few questions for each of what the policy answers: a plain one twice, an empty one and junk. It costs at most
/// 64 calls. An error says which question had which fault, or two answers.
///
/// What counts as a fault is what counts as one in the laws: an error of the plugin's own is an answer, running out of
/// budget is not. Karmada's own conventions let a script fail on an object without a status, so a host that runs such
/// scripts should warn of what this finds and not refuse them.
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
    let plain = if capability.kind == CallKind::Interpret { OPERATIONS } else { 1 };
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
    Err(format!("asked twice about {}: {}", sample.what, first.difference(&second)))
}

fn answered(policy: &dyn Policy, sample: &Sample) -> Result<Answer, String> {
    let answer = ask(policy, &sample.question);
    let fault = answer.fault().filter(|fault| !matches!(fault.kind, FaultKind::Unsupported | FaultKind::GuestError));
    match fault {
        Some(fault) => Err(format!("asked about {}: {} ({fault})", sample.what, fault_name(fault.kind))),
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
            assert!(why.contains(words) && why.contains("trap (attempt to index nil)"), "{why}");
        };
        check(|call| object(call).get("status").is_none(), "health: asked about Game without fields");
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
            Ok(Reply::Health(HealthVerdict { health: Health::Healthy, reason }))
        };
        let why = smoke(&Scripted::good(CallKind::Health).answering(answer)).unwrap_err();
        assert!(
            why.starts_with("health: asked twice about Game that has all it wants: Healthy (Call3) first"),
            "{why}"
        );
    }
}
