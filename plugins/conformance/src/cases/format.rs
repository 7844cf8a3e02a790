//! Fields of a case file as they are written. The parent module documents their meaning.

use std::collections::BTreeMap;

use bulkhead_core::call::CallKind;
use bulkhead_core::model::{Health, TaintEffect};
use bulkhead_core::policy::FaultKind;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

/// A case file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseFile {
    /// Cases, each with a unique name.
    #[schemars(with = "Vec<CaseSpec>")]
    pub(crate) cases: Vec<Spanned<CaseSpec>>,
}

/// A case.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseSpec {
    /// Sentence, unique in its file.
    #[schemars(with = "String")]
    pub(crate) name: Spanned<String>,
    /// Kind of the call.
    pub(crate) kind: CallKind,
    /// Operation of an `interpret` case.
    #[schemars(with = "Option<OperationSpec>")]
    pub(crate) operation: Option<Spanned<OperationSpec>>,
    /// Configuration to load the plugin with; without it, the plugin is used as loaded.
    pub(crate) config: Option<Value>,
    /// Input of the call.
    #[schemars(with = "InputSpec")]
    pub(crate) input: Spanned<InputSpec>,
    /// Expected answer.
    #[schemars(with = "ExpectSpec")]
    pub(crate) expect: Spanned<ExpectSpec>,
    /// Maximum cost of the answer.
    #[serde(default)]
    pub(crate) budget: BudgetSpec,
}

/// An interpreter operation, by Karmada's name.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
pub(crate) enum OperationSpec {
    #[serde(rename = "InterpretReplica")]
    Replicas,
    #[serde(rename = "InterpretComponent")]
    Components,
    #[serde(rename = "ReviseReplica")]
    Revise,
    Retain,
    #[serde(rename = "InterpretStatus")]
    ReflectStatus,
    AggregateStatus,
    #[serde(rename = "InterpretDependency")]
    Dependencies,
}

/// Maximum cost of a case.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BudgetSpec {
    /// Maximum number of steps of the engine.
    pub(crate) steps: Option<u64>,
}

/// Inputs of all call kinds.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InputSpec {
    /// Object of a `health` or `interpret` case.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(crate) object: Option<Spanned<Value>>,
    /// Object of the control plane, for `Retain`.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(crate) desired: Option<Spanned<Value>>,
    /// Object of the member cluster, for `Retain`.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(crate) observed: Option<Spanned<Value>>,
    /// Member cluster of a `cluster-taint` case.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(crate) cluster: Option<Spanned<Value>>,
    /// Candidates of a `filter` or `score` case.
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub(crate) clusters: Option<Spanned<Vec<Spanned<Value>>>>,
    /// Binding of a `filter`, `score` or `eviction-check` case.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(crate) binding: Option<Spanned<Value>>,
    /// Graceful eviction task of an `eviction-check` case.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(crate) task: Option<Spanned<Value>>,
    /// Statuses that the member clusters reported, for `eviction-check` and `AggregateStatus`.
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub(crate) reports: Option<Spanned<Vec<Spanned<Value>>>>,
    /// Desired replicas, for `ReviseReplica`.
    #[schemars(with = "Option<i32>")]
    pub(crate) replicas: Option<Spanned<i32>>,
    /// Time of the call in RFC 3339; 2026-01-01T00:00:00Z if absent.
    #[schemars(with = "Option<String>")]
    pub(crate) now: Option<Spanned<String>>,
}

/// Expected answers of all call kinds.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ExpectSpec {
    /// Verdict of a `health` case.
    #[schemars(with = "Option<Health>")]
    pub(crate) health: Option<Spanned<Health>>,
    /// Changes of a `cluster-taint` case, in order.
    #[schemars(with = "Option<Vec<ChangeSpec>>")]
    pub(crate) taints: Option<Spanned<Vec<Spanned<ChangeSpec>>>>,
    /// Verdicts of a `filter` case, by name of the cluster.
    #[schemars(with = "Option<BTreeMap<String, FilterSpec>>")]
    pub(crate) clusters: Option<Spanned<BTreeMap<String, Spanned<FilterSpec>>>>,
    /// Scores of a `score` case, by name of the cluster.
    #[schemars(with = "Option<BTreeMap<String, i64>>")]
    pub(crate) scores: Option<Spanned<BTreeMap<String, i64>>>,
    /// Clusters of a `score` case, from best to worst.
    #[schemars(with = "Option<Vec<String>>")]
    pub(crate) order: Option<Spanned<Vec<String>>>,
    /// Verdict of an `eviction-check` case.
    #[schemars(with = "Option<VerdictSpec>")]
    pub(crate) verdict: Option<Spanned<VerdictSpec>>,
    /// Time after which a hold is checked again.
    #[schemars(with = "Option<u32>")]
    pub(crate) recheck_after_seconds: Option<Spanned<u32>>,
    /// Null is a valid result: the status of an object without one.
    #[serde(default, deserialize_with = "present_value")]
    #[schemars(with = "Value")]
    pub(crate) result: Option<Spanned<Value>>,
    /// Part of the result of an `interpret` case.
    #[schemars(with = "Option<Value>")]
    pub(crate) contains: Option<Spanned<Value>>,
    /// True if an `interpret` case has no rule for the operation.
    #[schemars(with = "Option<bool>")]
    pub(crate) no_rule: Option<Spanned<bool>>,
    /// Fault in place of an answer.
    #[schemars(with = "Option<FaultKind>")]
    pub(crate) fault: Option<Spanned<FaultKind>>,
    /// Reason code of the verdict.
    #[schemars(with = "Option<String>")]
    pub(crate) reason: Option<Spanned<String>>,
    /// Message of the verdict.
    #[schemars(with = "Option<String>")]
    pub(crate) message: Option<Spanned<String>>,
}

fn present_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Spanned<Value>>, D::Error> {
    Spanned::deserialize(deserializer).map(Some)
}

/// A taint change.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeSpec {
    /// Taint that is added.
    pub(crate) add: Option<AddSpec>,
    /// Taint that is removed.
    pub(crate) remove: Option<RemoveSpec>,
    /// Reason code of the change.
    pub(crate) reason: Option<String>,
    /// Message of the change.
    pub(crate) message: Option<String>,
}

/// A taint to add.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddSpec {
    /// Key of the taint.
    pub(crate) key: String,
    /// Value of the taint.
    pub(crate) value: Option<String>,
    /// Effect of the taint.
    pub(crate) effect: TaintEffect,
}

/// A taint to remove.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveSpec {
    /// Key of the taint.
    pub(crate) key: String,
    /// Effect of the taint.
    pub(crate) effect: TaintEffect,
}

/// A verdict on a cluster, with or without its reason.
#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "`fit`, `unfit`, `abstain`, or a map with `verdict` and optionally `reason` and `message`"
)]
pub(crate) enum FilterSpec {
    Short(FitSpec),
    Long(LongFilterSpec),
}

/// A verdict on a cluster without its reason.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FitSpec {
    Fit,
    Unfit,
    Abstain,
}

/// A verdict on a cluster with its reason.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LongFilterSpec {
    /// Verdict on the cluster.
    pub(crate) verdict: FitSpec,
    /// Reason code of the verdict.
    pub(crate) reason: Option<String>,
    /// Message of the verdict.
    pub(crate) message: Option<String>,
}

/// A verdict on an eviction task.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum VerdictSpec {
    Release,
    Hold,
    Abstain,
}
