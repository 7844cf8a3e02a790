//! Expectations of a case.

use std::collections::BTreeSet;

use bulkhead_core::call::CallKind;
use bulkhead_core::model::TaintEffect;
use bulkhead_plugin::Position;
use serde_saphyr::Spanned;

use super::build::{At, position_of};
use super::format::{ChangeSpec, ExpectSpec, FilterSpec, FitSpec, VerdictSpec};
use crate::expectation::{Expectation, ExpectedChange, ExpectedFilter, ExpectedVerdict, Why};
use crate::owned_call::OwnedCall;

impl At<'_> {
    /// Reports every cluster in `expect` that is not a candidate in the input.
    pub(super) fn names(&mut self, call: &OwnedCall, expect: &Spanned<ExpectSpec>) {
        let Some(clusters) = call.clusters() else { return };
        let known: BTreeSet<_> = clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        let expect = &expect.value;
        let verdicts = expect
            .clusters
            .iter()
            .flat_map(|map| map.value.keys().map(|name| ("clusters", position_of(map), name)));
        let scores = expect
            .scores
            .iter()
            .flat_map(|map| map.value.keys().map(|name| ("scores", position_of(map), name)));
        let order = expect
            .order
            .iter()
            .flat_map(|list| list.value.iter().map(|name| ("order", position_of(list), name)));
        for (field, at, name) in verdicts.chain(scores).chain(order) {
            if !known.contains(name.as_str()) {
                self.problem(
                    at,
                    &format!("expect.{field}"),
                    &format!("there is no cluster {name:?} in the input"),
                );
            }
        }
    }

    /// Returns the expectation, or `None` after reporting what is invalid.
    pub(super) fn expectation(&mut self, kind: CallKind, written: &Spanned<ExpectSpec>) -> Option<Expectation> {
        let (at, expect) = (position_of(written), &written.value);
        let wanted: &[&str] = match kind {
            CallKind::Health => &["health", "reason", "message"],
            CallKind::ClusterTaint => &["taints"],
            CallKind::Filter => &["clusters"],
            CallKind::Score => &["scores", "order"],
            CallKind::EvictionCheck => &["verdict", "recheckAfterSeconds", "reason", "message"],
            CallKind::Interpret => &["result", "contains", "noRule"],
        };
        let given = expect.given();
        let main = |name: &&str| !matches!(*name, "reason" | "message" | "recheckAfterSeconds");
        if let Some(fault) = &expect.fault {
            let others = given.iter().find(|(name, _)| *name != "fault");
            if let Some((name, at)) = others {
                self.problem(
                    *at,
                    &format!("expect.{name}"),
                    "a fault is the whole answer, nothing else can be expected",
                );
                return None;
            }
            return Some(Expectation::Fault(fault.value));
        }
        let mut fine = true;
        for (name, at) in given.iter().filter(|(name, _)| !wanted.contains(name)) {
            let message = format!("a {kind} case expects {} or fault", wanted.join(", "));
            self.problem(*at, &format!("expect.{name}"), &message);
            fine = false;
        }
        let mains: Vec<_> = given
            .iter()
            .filter(|(name, _)| wanted.contains(name) && main(name))
            .collect();
        if fine && mains.is_empty() {
            let mains: Vec<_> = wanted.iter().copied().filter(main).collect();
            self.problem(
                at,
                "expect",
                &format!("expects nothing; a {kind} case needs {} or fault", mains.join(" or ")),
            );
            fine = false;
        }
        if let [_, (name, at), ..] = mains.as_slice()
            && kind == CallKind::Interpret
        {
            self.problem(
                *at,
                &format!("expect.{name}"),
                "only one of result, contains and noRule can be expected",
            );
            fine = false;
        }
        if fine { self.expected(kind, expect) } else { None }
    }

    fn expected(&mut self, kind: CallKind, expect: &ExpectSpec) -> Option<Expectation> {
        let text = |text: &Option<Spanned<String>>| text.as_ref().map(|text| text.value.clone());
        let why = Why {
            code: text(&expect.reason),
            message: text(&expect.message),
        };
        Some(match kind {
            CallKind::Health => Expectation::Health(expect.health.as_ref()?.value, why),
            CallKind::ClusterTaint => {
                let changes = expect
                    .taints
                    .as_ref()?
                    .value
                    .iter()
                    .enumerate()
                    .map(|(index, spec)| self.change(index, spec));
                Expectation::Taints(changes.collect::<Vec<_>>().into_iter().collect::<Option<_>>()?)
            }
            CallKind::Filter => {
                let verdict = |(name, spec): (&String, &Spanned<FilterSpec>)| (name.clone(), filter(&spec.value));
                Expectation::Filter(expect.clusters.as_ref()?.value.iter().map(verdict).collect())
            }
            CallKind::Score => {
                let scores = expect.scores.as_ref().map(|scores| scores.value.clone());
                let order = expect.order.as_ref().map(|order| order.value.clone());
                Expectation::Score(scores.unwrap_or_default(), order.unwrap_or_default())
            }
            CallKind::EvictionCheck => {
                let recheck = expect.recheck_after_seconds.as_ref();
                let verdict = match expect.verdict.as_ref()?.value {
                    VerdictSpec::Hold => ExpectedVerdict::Hold(recheck.map(|seconds| seconds.value)),
                    VerdictSpec::Release => ExpectedVerdict::Release,
                    VerdictSpec::Abstain => ExpectedVerdict::Abstain,
                };
                if let Some(recheck) = recheck.filter(|_| !matches!(verdict, ExpectedVerdict::Hold(_))) {
                    self.problem(
                        position_of(recheck),
                        "expect.recheckAfterSeconds",
                        "only a hold is asked about again",
                    );
                }
                Expectation::EvictionCheck(verdict, why)
            }
            CallKind::Interpret => match (&expect.result, &expect.contains, &expect.no_rule) {
                (Some(result), _, _) => Expectation::Result(result.value.clone()),
                (None, Some(part), _) => Expectation::Contains(part.value.clone()),
                (None, None, Some(no_rule)) if no_rule.value => Expectation::NoRule,
                (None, None, no_rule) => {
                    let at = no_rule.as_ref().map_or(self.position, position_of);
                    self.problem(at, "expect.noRule", "can only be true; leave it out to expect a rule");
                    return None;
                }
            },
        })
    }

    fn change(&mut self, index: usize, spec: &Spanned<ChangeSpec>) -> Option<ExpectedChange> {
        let (at, spec) = (position_of(spec), &spec.value);
        let why = Why {
            code: spec.reason.clone(),
            message: spec.message.clone(),
        };
        let effect = spec
            .add
            .as_ref()
            .map(|add| &add.effect)
            .or(spec.remove.as_ref().map(|remove| &remove.effect));
        if let Some(effect) = effect.filter(|effect| effect.is_foreign()) {
            let known = TaintEffect::KNOWN.join(", ");
            let problem = format!("effect {:?} is none of {known}", effect.as_str());
            self.problem(at, &format!("expect.taints[{index}]"), &problem);
            return None;
        }
        match (&spec.add, &spec.remove) {
            (Some(add), None) => {
                let (key, value, effect) = (add.key.clone(), add.value.clone(), add.effect.clone());
                Some(ExpectedChange {
                    adds: true,
                    key,
                    value,
                    effect,
                    why,
                })
            }
            (None, Some(remove)) => {
                let (key, effect) = (remove.key.clone(), remove.effect.clone());
                Some(ExpectedChange {
                    adds: false,
                    key,
                    value: None,
                    effect,
                    why,
                })
            }
            _ => {
                self.problem(at, &format!("expect.taints[{index}]"), "needs either add or remove");
                None
            }
        }
    }
}

impl ExpectSpec {
    /// Returns every field that is present, with its position.
    fn given(&self) -> Vec<(&'static str, Position)> {
        let fields = [
            ("health", self.health.as_ref().map(position_of)),
            ("taints", self.taints.as_ref().map(position_of)),
            ("clusters", self.clusters.as_ref().map(position_of)),
            ("scores", self.scores.as_ref().map(position_of)),
            ("order", self.order.as_ref().map(position_of)),
            ("verdict", self.verdict.as_ref().map(position_of)),
            (
                "recheckAfterSeconds",
                self.recheck_after_seconds.as_ref().map(position_of),
            ),
            ("result", self.result.as_ref().map(position_of)),
            ("contains", self.contains.as_ref().map(position_of)),
            ("noRule", self.no_rule.as_ref().map(position_of)),
            ("fault", self.fault.as_ref().map(position_of)),
            ("reason", self.reason.as_ref().map(position_of)),
            ("message", self.message.as_ref().map(position_of)),
        ];
        fields.into_iter().filter_map(|(name, at)| Some((name, at?))).collect()
    }
}

fn filter(spec: &FilterSpec) -> ExpectedFilter {
    let (verdict, why) = match spec {
        FilterSpec::Short(verdict) => (*verdict, Why::default()),
        FilterSpec::Long(long) => (
            long.verdict,
            Why {
                code: long.reason.clone(),
                message: long.message.clone(),
            },
        ),
    };
    match verdict {
        FitSpec::Fit => ExpectedFilter::Fit,
        FitSpec::Unfit => ExpectedFilter::Unfit(why),
        FitSpec::Abstain => ExpectedFilter::Abstain,
    }
}
