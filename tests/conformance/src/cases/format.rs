//! Fields of a case file as they are written. The parent module documents their meaning.

use std::collections::BTreeMap;

use bulkhead_core::call::CallKind;
use bulkhead_core::model::{Health, TaintEffect};
use bulkhead_core::policy::FaultKind;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_saphyr::Spanned;

/// A case file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseFile {
    pub(crate) cases: Vec<Spanned<CaseSpec>>,
}

/// A case.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseSpec {
    pub(crate) name: Spanned<String>,
    pub(crate) kind: CallKind,
    pub(crate) operation: Option<Spanned<OperationSpec>>,
    pub(crate) config: Option<Value>,
    pub(crate) input: Spanned<InputSpec>,
    pub(crate) expect: Spanned<ExpectSpec>,
    #[serde(default)]
    pub(crate) budget: BudgetSpec,
}

/// An interpreter operation, by Karmada's name.
#[derive(Clone, Copy, Deserialize)]
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
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BudgetSpec {
    pub(crate) steps: Option<u64>,
}

/// Inputs of all call kinds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InputSpec {
    pub(crate) object: Option<Spanned<Value>>,
    pub(crate) desired: Option<Spanned<Value>>,
    pub(crate) observed: Option<Spanned<Value>>,
    pub(crate) cluster: Option<Spanned<Value>>,
    pub(crate) clusters: Option<Spanned<Vec<Spanned<Value>>>>,
    pub(crate) binding: Option<Spanned<Value>>,
    pub(crate) task: Option<Spanned<Value>>,
    pub(crate) reports: Option<Spanned<Vec<Spanned<Value>>>>,
    pub(crate) replicas: Option<Spanned<i32>>,
    pub(crate) now: Option<Spanned<String>>,
}

/// Expected answers of all call kinds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ExpectSpec {
    pub(crate) health: Option<Spanned<Health>>,
    pub(crate) taints: Option<Spanned<Vec<Spanned<ChangeSpec>>>>,
    pub(crate) clusters: Option<Spanned<BTreeMap<String, Spanned<FilterSpec>>>>,
    pub(crate) scores: Option<Spanned<BTreeMap<String, i64>>>,
    pub(crate) order: Option<Spanned<Vec<String>>>,
    pub(crate) verdict: Option<Spanned<VerdictSpec>>,
    pub(crate) recheck_after_seconds: Option<Spanned<u32>>,
    /// Null is a valid result: the status of an object without one.
    #[serde(default, deserialize_with = "even_null")]
    pub(crate) result: Option<Spanned<Value>>,
    pub(crate) contains: Option<Spanned<Value>>,
    pub(crate) no_rule: Option<Spanned<bool>>,
    pub(crate) fault: Option<Spanned<FaultKind>>,
    pub(crate) reason: Option<Spanned<String>>,
    pub(crate) message: Option<Spanned<String>>,
}

fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Spanned<Value>>, D::Error> {
    Spanned::deserialize(deserializer).map(Some)
}

/// A taint change.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeSpec {
    pub(crate) add: Option<AddSpec>,
    pub(crate) remove: Option<RemoveSpec>,
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
}

/// A taint to add.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddSpec {
    pub(crate) key: String,
    pub(crate) value: Option<String>,
    pub(crate) effect: TaintEffect,
}

/// A taint to remove.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveSpec {
    pub(crate) key: String,
    pub(crate) effect: TaintEffect,
}

/// A verdict on a cluster, with or without its reason.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`fit`, `unfit`, `abstain`, or a map with `verdict` and optionally `reason` and `message`"
)]
pub(crate) enum FilterSpec {
    Short(FitSpec),
    Long(LongFilterSpec),
}

/// A verdict on a cluster without its reason.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FitSpec {
    Fit,
    Unfit,
    Abstain,
}

/// A verdict on a cluster with its reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LongFilterSpec {
    pub(crate) verdict: FitSpec,
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
}

/// A verdict on an eviction task.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum VerdictSpec {
    Release,
    Hold,
    Abstain,
}
