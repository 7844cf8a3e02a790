//! Finding of an explanation.

use serde::Serialize;

/// Finding of one gate, rule or policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Gate, rule or policy that was evaluated.
    pub gate: String,
    /// Verdict, in a word or two.
    pub verdict: String,
    /// Observed state.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub observed: String,
    /// Threshold that the observation was compared with.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub threshold: String,
    /// Change that would have led to another verdict.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub would_change: String,
    /// Findings that this one is based on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<Finding>,
}
