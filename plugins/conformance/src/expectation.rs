//! Expected verdicts of cases and their comparison with answers.

use std::collections::{BTreeMap, BTreeSet};

use bulkhead_core::call::{EvictionVerdict, FilterVerdict, Interpretation, Reason, Reply, TaintChange};
use bulkhead_core::model::{Health, TaintEffect};
use bulkhead_core::policy::{Fault, FaultKind};
use serde_json::Value;

use crate::call_result::{fault_name, filter_verdict, interpretation, shown};
use crate::outputs::Outputs;
use crate::owned_call::OwnedCall;

/// Expected answer. Values that the case leaves out are not compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Expectation {
    /// A health and its reason.
    Health(Health, Why),
    /// Exactly these taint changes, in this order.
    Taints(Vec<ExpectedChange>),
    /// Verdicts by cluster name. Clusters without an entry may get any verdict.
    Filter(BTreeMap<String, ExpectedFilter>),
    /// Scores by cluster name, and cluster names from best to worst with strictly decreasing scores.
    Score(BTreeMap<String, i64>, Vec<String>),
    /// A verdict on a task and its reason.
    EvictionCheck(ExpectedVerdict, Why),
    /// An interpretation equal to this value: replicas as `{"replicas": 3, "requirements": {…}}`, everything else
    /// unchanged.
    Result(Value),
    /// An interpretation with at least these members, at any depth. Lists must be equal.
    Contains(Value),
    /// Results by Karmada's names. Results without an entry may have any value.
    Outputs(Outputs),
    /// No rule for this operation.
    NoRule,
    /// A fault of this kind instead of a reply.
    Fault(FaultKind),
}

/// Expected reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Why {
    /// Expected code; `None` if the code is not compared.
    pub code: Option<String>,
    /// Expected message; `None` if the message is not compared.
    pub message: Option<String>,
}

/// Expected taint change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedChange {
    /// True if the taint is added, false if it is removed.
    pub adds: bool,
    /// Key of the taint.
    pub key: String,
    /// Value of the taint; `None` if the value is not compared, and for a removal.
    pub value: Option<String>,
    /// Effect of the taint.
    pub effect: TaintEffect,
    /// Expected reason of the change.
    pub why: Why,
}

/// Expected verdict on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedFilter {
    /// The cluster fits.
    Fit,
    /// The cluster does not fit.
    Unfit(Why),
    /// No opinion.
    Abstain,
}

/// Expected verdict on an eviction task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedVerdict {
    /// The old copy may be removed.
    Release,
    /// The old copy must stay. The seconds until the next check are compared if given.
    Hold(Option<u32>),
    /// No opinion.
    Abstain,
}

impl Why {
    fn fits(&self, reason: &Reason) -> bool {
        let same = |expected: &Option<String>, got: &String| expected.as_ref().is_none_or(|expected| expected == got);
        same(&self.code, &reason.code) && same(&self.message, &reason.message)
    }

    fn shown(&self) -> String {
        match (&self.code, &self.message) {
            (None, None) => String::new(),
            (Some(code), None) => format!(" ({code})"),
            (None, Some(message)) => format!(" (…: {message})"),
            (Some(code), Some(message)) => format!(" ({code}: {message})"),
        }
    }
}

impl Expectation {
    /// Returns the mismatch between this expectation and an answer, or `None` if they match.
    pub(crate) fn objection(&self, call: &OwnedCall, reply: &Result<Reply, Fault>) -> Option<String> {
        let names = || -> Vec<&str> {
            call.clusters()
                .into_iter()
                .flatten()
                .map(|cluster| cluster.name.as_str())
                .collect()
        };
        let fits = match (self, reply) {
            (Self::Health(health, why), Ok(Reply::Health(actual))) => {
                *health == actual.health && why.fits(&actual.reason)
            }
            (Self::Taints(expected), Ok(Reply::ClusterTaint(actual))) => {
                expected.len() == actual.changes.len()
                    && expected.iter().zip(&actual.changes).all(|(e, got)| e.fits(got))
            }
            (Self::Filter(expected), Ok(Reply::Filter(actual))) => return filter_objection(expected, &names(), actual),
            (Self::Score(scores, order), Ok(Reply::Score(actual))) => {
                return score_objection(scores, order, &names(), actual);
            }
            (Self::EvictionCheck(expected, why), Ok(Reply::EvictionCheck(actual))) => expected.fits(why, actual),
            (Self::Result(expected), Ok(Reply::Interpret(Some(actual)))) => {
                same_json(expected, &interpretation(actual))
            }
            (Self::Contains(expected), Ok(Reply::Interpret(Some(actual)))) => {
                contains(&interpretation(actual), expected)
            }
            (Self::Outputs(expected), Ok(reply)) => expected.fit(&Outputs::of(&call.request, reply)),
            (Self::NoRule, Ok(Reply::Interpret(actual))) => actual.is_none(),
            (Self::Fault(kind), Err(fault)) => *kind == fault.kind,
            _ => false,
        };
        let got = || match (self, reply) {
            (Self::Outputs(_), Ok(reply)) => Outputs::of(&call.request, reply).shown(),
            _ => shown_whole(reply),
        };
        (!fits).then(|| format!("expected {}\n     got {}", self.shown(), got()))
    }

    fn shown(&self) -> String {
        match self {
            Self::Health(health, why) => format!("{}{}", health.as_str(), why.shown()),
            Self::Taints(changes) if changes.is_empty() => "no changes of taints".to_owned(),
            Self::Taints(changes) => changes.iter().map(ExpectedChange::shown).collect::<Vec<_>>().join(", "),
            Self::Filter(expected) => format!("{expected:?}"),
            Self::Score(scores, order) => format!("{scores:?} in the order {order:?}"),
            Self::EvictionCheck(verdict, why) => format!("{}{}", verdict.shown(), why.shown()),
            Self::Result(value) => value.to_string(),
            Self::Contains(value) => format!("at least {value}"),
            Self::Outputs(outputs) => outputs.shown(),
            Self::NoRule => "no rule".to_owned(),
            Self::Fault(kind) => format!("the fault {}", fault_name(*kind)),
        }
    }
}

/// Formats a reply. Interpreted objects and statuses are not truncated, because the difference may be at their end.
fn shown_whole(reply: &Result<Reply, Fault>) -> String {
    match reply {
        Ok(Reply::Interpret(Some(actual @ (Interpretation::Object(_) | Interpretation::Status(_))))) => {
            interpretation(actual).to_string()
        }
        other => shown(other),
    }
}

impl ExpectedChange {
    fn fits(&self, change: &TaintChange) -> bool {
        match change {
            TaintChange::Add { taint, reason } => {
                let value = self.value.as_ref().is_none_or(|value| *value == taint.value);
                self.adds && value && (&self.key, &self.effect) == (&taint.key, &taint.effect) && self.why.fits(reason)
            }
            TaintChange::Remove { key, effect, reason } => {
                !self.adds && (&self.key, &self.effect) == (key, effect) && self.why.fits(reason)
            }
        }
    }

    fn shown(&self) -> String {
        let verb = if self.adds { "add" } else { "remove" };
        let value = self
            .value
            .as_ref()
            .map_or_else(String::new, |value| format!("={value}"));
        format!(
            "{verb} {}{value}:{}{}",
            self.key,
            self.effect.as_str(),
            self.why.shown()
        )
    }
}

impl ExpectedVerdict {
    fn fits(&self, why: &Why, actual: &EvictionVerdict) -> bool {
        match (self, actual) {
            (Self::Release, EvictionVerdict::Release(reason)) => why.fits(reason),
            (
                Self::Hold(seconds),
                EvictionVerdict::Hold {
                    reason,
                    recheck_after_s,
                },
            ) => why.fits(reason) && (seconds.is_none() || seconds == recheck_after_s),
            (Self::Abstain, EvictionVerdict::Abstain) => true,
            _ => false,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Release => "release".to_owned(),
            Self::Hold(None) => "hold".to_owned(),
            Self::Hold(Some(seconds)) => format!("hold, again after {seconds} s"),
            Self::Abstain => "abstain".to_owned(),
        }
    }
}

impl ExpectedFilter {
    fn fits(&self, actual: &FilterVerdict) -> bool {
        match (self, actual) {
            (Self::Fit, FilterVerdict::Fit) | (Self::Abstain, FilterVerdict::Abstain) => true,
            (Self::Unfit(why), FilterVerdict::Unfit(reason)) => why.fits(reason),
            _ => false,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Fit => "fit".to_owned(),
            Self::Unfit(why) => format!("unfit{}", why.shown()),
            Self::Abstain => "abstain".to_owned(),
        }
    }
}

fn filter_objection(
    expected: &BTreeMap<String, ExpectedFilter>,
    names: &[&str],
    actual: &[FilterVerdict],
) -> Option<String> {
    let actual: BTreeMap<_, _> = names.iter().copied().zip(actual).collect();
    let wrong = expected.iter().filter_map(|(name, expected)| {
        let got = actual.get(name.as_str());
        let fits = got.is_some_and(|got| expected.fits(got));
        let got = || got.map_or_else(|| "nothing".to_owned(), |got| filter_verdict(got));
        (!fits).then(|| format!("{name}: expected {}, got {}", expected.shown(), got()))
    });
    joined(wrong.collect())
}

fn score_objection(scores: &BTreeMap<String, i64>, order: &[String], names: &[&str], actual: &[i64]) -> Option<String> {
    let actual: BTreeMap<_, _> = names.iter().copied().zip(actual).collect();
    let got = |name: &String| actual.get(name.as_str()).map(|score| **score);
    let text = |score: Option<i64>| score.map_or_else(|| "nothing".to_owned(), |score| score.to_string());
    let wrong = scores.iter().filter(|(name, score)| got(name) != Some(**score));
    let mut wrong: Vec<_> = wrong
        .map(|(name, score)| format!("{name}: expected {score}, got {}", text(got(name))))
        .collect();
    for pair in order.windows(2) {
        if let [better, worse] = pair
            && got(better)
                .zip(got(worse))
                .is_none_or(|(better, worse)| better <= worse)
        {
            let (high, low) = (text(got(better)), text(got(worse)));
            wrong.push(format!("expected {better} above {worse}, got {high} and {low}"));
        }
    }
    joined(wrong)
}

fn joined(lines: Vec<String>) -> Option<String> {
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// True if both values are equal. Numbers are compared by value, so `3` equals `3.0`.
fn same_json(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_json(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<_> = one.keys().chain(other.keys()).collect();
            keys.into_iter().all(|key| {
                one.get(key)
                    .zip(other.get(key))
                    .is_some_and(|(one, other)| same_json(one, other))
            })
        }
        (one, other) => one == other,
    }
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|whole| contains(whole, part))),
        (whole, part) => same_json(whole, part),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        assert!(same_json(&json!({"a": [3, 1.5]}), &json!({"a": [3.0, 1.5]})));
        assert!(!same_json(&json!({"a": 3}), &json!({"a": "3"})));
        assert!(!same_json(&json!({"a": 3}), &json!({"a": 3, "b": null})));
    }

    #[test]
    fn a_part_is_contained_at_any_depth() {
        let whole = json!({"spec": {"replicas": 3, "list": [1, 2]}, "kind": "Game"});
        assert!(contains(&whole, &json!({"spec": {"replicas": 3}})));
        assert!(contains(&whole, &json!({"spec": {"list": [1, 2]}})));
        assert!(!contains(&whole, &json!({"spec": {"list": [1]}})));
        assert!(!contains(&whole, &json!({"spec": {"paused": null}})));
    }

    #[test]
    fn scores_are_expected_by_name_and_by_order() {
        let check = |scores: &[(&str, i64)], order: &[&str], expected: Option<&str>| {
            let scores = scores
                .iter()
                .map(|(name, score)| ((*name).to_owned(), *score))
                .collect();
            let order: Vec<_> = order.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(
                score_objection(&scores, &order, &["a", "b", "c"], &[10, 20, 20]).as_deref(),
                expected
            );
        };
        check(&[("a", 10), ("c", 20)], &["b", "a"], None);
        check(&[("a", 11)], &[], Some("a: expected 11, got 10"));
        check(&[], &["b", "c"], Some("expected b above c, got 20 and 20"));
        check(&[("d", 1)], &[], Some("d: expected 1, got nothing"));
    }
}
