//! Calls of a plugin that its cases make.

use std::collections::BTreeMap;

use bulkhead_core::call::Call;
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::policy::{Capability, Policy};

use crate::cases::Case;
use crate::report::Coverage;

/// Returns the coverage of the calls that a capability names.
fn of(capability: &Capability, cases: &[Case]) -> Coverage {
    let mut coverage = Coverage {
        kind: capability.kind,
        object_kind: capability
            .object_kind
            .as_ref()
            .map(|(api_version, kind)| format!("{api_version} {kind}")),
        cases: 0,
        operations: BTreeMap::new(),
    };
    for case in cases {
        case.call.with_call(|call| {
            if !capability.answers(call) {
                return;
            }
            coverage.cases += 1;
            if let Call::Interpret(call) = call {
                *coverage
                    .operations
                    .entry(EntryPoint::of(&call.operation).function())
                    .or_default() += 1;
            }
        });
    }
    coverage
}

/// Returns the coverage of each call that a plugin answers, in order of its capabilities.
pub fn coverage(policy: &dyn Policy, cases: &[Case]) -> Vec<Coverage> {
    let capabilities = policy.capabilities().iter();
    capabilities.map(|capability| of(capability, cases)).collect()
}

#[cfg(test)]
mod tests {
    use bulkhead_core::call::CallKind;

    use super::*;
    use crate::parse_cases;

    #[test]
    fn cases_are_counted_by_call_object_kind_and_operation() {
        let object = "{apiVersion: game/v1, kind: Game, metadata: {name: g}}";
        let health = |name: &str| {
            format!("- {{name: {name}, kind: health, input: {{object: {object}}}, expect: {{health: Healthy}}}}\n")
        };
        let replicas = format!(
            "- {{name: c, kind: interpret, operation: InterpretReplica, input: {{object: {object}}}, expect: {{noRule: true}}}}\n"
        );
        let text = format!("cases:\n{}{}{replicas}", health("a"), health("b"));
        let cases = parse_cases("cases.yaml", &text).unwrap();
        let on_game = Capability::on(CallKind::Health, "game/v1", "Game");
        assert_eq!(of(&on_game, &cases).to_string(), "health of game/v1 Game: 2 cases");
        let on_other = Capability::on(CallKind::Health, "batch/v1", "Job");
        assert_eq!(of(&on_other, &cases).to_string(), "health of batch/v1 Job: no cases");
        let interprets = Capability::any(CallKind::Interpret);
        assert_eq!(of(&interprets, &cases).to_string(), "interpret: 1 case (GetReplicas 1)");
        assert_eq!(
            of(&Capability::any(CallKind::Score), &cases).to_string(),
            "score: no cases"
        );
    }
}
