//! Calls of a plugin that its cases make.

use std::collections::BTreeMap;

use bulkhead_core::call::{Call, CallKind};
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::policy::{Capability, Policy};
use serde::Serialize;

use crate::Case;

/// Calls that a plugin answers, and the number of its cases that make them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// Call kind.
    pub kind: CallKind,
    /// `apiVersion` and kind of the objects, separated by a space; absent for every kind, or for calls without an
    /// object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_kind: Option<String>,
    /// Number of cases.
    pub cases: usize,
    /// Number of cases by interpreter operation, under the name of its Lua function; empty for other calls.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<&'static str, usize>,
}

impl Coverage {
    fn of(capability: &Capability, cases: &[Case]) -> Self {
        let mut coverage = Self {
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
}

impl std::fmt::Display for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(object_kind) = &self.object_kind {
            write!(f, " of {object_kind}")?;
        }
        let noun = if self.cases == 1 { "case" } else { "cases" };
        match self.cases {
            0 => write!(f, ": no cases")?,
            cases => write!(f, ": {cases} {noun}")?,
        }
        let operations: Vec<_> = self
            .operations
            .iter()
            .map(|(name, cases)| format!("{name} {cases}"))
            .collect();
        if operations.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", operations.join(", "))
    }
}

/// Returns the coverage of each call that a plugin answers, in order of its capabilities.
pub fn coverage(policy: &dyn Policy, cases: &[Case]) -> Vec<Coverage> {
    let capabilities = policy.capabilities().iter();
    capabilities.map(|capability| Coverage::of(capability, cases)).collect()
}

#[cfg(test)]
mod tests {
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
        assert_eq!(
            Coverage::of(&on_game, &cases).to_string(),
            "health of game/v1 Game: 2 cases"
        );
        let on_other = Capability::on(CallKind::Health, "batch/v1", "Job");
        assert_eq!(
            Coverage::of(&on_other, &cases).to_string(),
            "health of batch/v1 Job: no cases"
        );
        let interprets = Capability::any(CallKind::Interpret);
        assert_eq!(
            Coverage::of(&interprets, &cases).to_string(),
            "interpret: 1 case (GetReplicas 1)"
        );
        assert_eq!(
            Coverage::of(&Capability::any(CallKind::Score), &cases).to_string(),
            "score: no cases"
        );
    }
}
