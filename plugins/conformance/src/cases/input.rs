//! Inputs of a case.

use std::sync::Arc;

use bulkhead_core::call::CallKind;
use bulkhead_core::model::{AggregatedStatusItem, Binding, Cluster};
use bulkhead_core::time::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::build::{At, position_of};
use super::format::{InputSpec, OperationSpec};
use super::model;
use crate::owned_call::{Candidates, Eviction, NOW, Request};

impl At<'_> {
    pub(super) fn now(&mut self, input: &InputSpec) -> Option<Time> {
        let Some(now) = &input.now else {
            return Some(Time::from_millis(NOW));
        };
        let time = serde_json::from_value(Value::String(now.value.clone()));
        if time.is_err() {
            let message = format!("{:?} is not an RFC 3339 time, such as 2026-01-01T00:00:00Z", now.value);
            self.problem(position_of(now), "input.now", &message);
        }
        time.ok()
    }

    /// Returns the request, or `None` after reporting what is invalid.
    pub(super) fn request(
        &mut self,
        kind: CallKind,
        operation: Option<&Spanned<OperationSpec>>,
        input: &Spanned<InputSpec>,
    ) -> Option<Request> {
        if let Some(operation) = operation.filter(|_| kind != CallKind::Interpret) {
            self.problem(position_of(operation), "operation", "only interpret cases have one");
        }
        if kind == CallKind::Interpret && operation.is_none() {
            self.problem(
                self.position,
                "operation",
                "is missing; an interpret case needs one, such as InterpretReplica",
            );
            return None;
        }
        let wanted: &[&str] = match (kind, operation.map(|operation| operation.value)) {
            (CallKind::ClusterTaint, _) => &["cluster"],
            (CallKind::Filter | CallKind::Score, _) => &["binding", "clusters"],
            (CallKind::EvictionCheck, _) => &["binding", "task", "reports"],
            (CallKind::Interpret, Some(OperationSpec::Revise)) => &["object", "replicas"],
            (CallKind::Interpret, Some(OperationSpec::Retain)) => &["desired", "observed"],
            (CallKind::Interpret, Some(OperationSpec::AggregateStatus)) => &["object", "reports"],
            (CallKind::Health | CallKind::Interpret, _) => &["object"],
        };
        self.only(kind, wanted, input)?;
        let input = &input.value;
        Some(match (kind, operation.map(|operation| operation.value)) {
            (CallKind::Health, _) => Request::Health(object(input.object.as_ref()?)),
            (CallKind::ClusterTaint, _) => {
                Request::ClusterTaint(Box::new(self.model("cluster", input.cluster.as_ref()?)?))
            }
            (CallKind::Filter, _) => Request::Filter(Box::new(self.candidates(input)?)),
            (CallKind::Score, _) => Request::Score(Box::new(self.candidates(input)?)),
            (CallKind::EvictionCheck, _) => {
                let binding = self.model("binding", input.binding.as_ref()?);
                let task = self.model("task", input.task.as_ref()?);
                let observed = self.reports(input);
                Request::EvictionCheck(Box::new(Eviction {
                    binding: binding?,
                    task: task?,
                    observed: observed?,
                }))
            }
            (CallKind::Interpret, operation) => match operation? {
                OperationSpec::Replicas => Request::Replicas(object(input.object.as_ref()?)),
                OperationSpec::Components => Request::Components(object(input.object.as_ref()?)),
                OperationSpec::Revise => {
                    Request::Revise(object(input.object.as_ref()?), input.replicas.as_ref()?.value)
                }
                OperationSpec::Retain => {
                    Request::Retain(object(input.desired.as_ref()?), object(input.observed.as_ref()?))
                }
                OperationSpec::ReflectStatus => Request::ReflectStatus(object(input.object.as_ref()?)),
                OperationSpec::AggregateStatus => {
                    Request::AggregateStatus(object(input.object.as_ref()?), self.reports(input)?)
                }
                OperationSpec::Dependencies => Request::Dependencies(object(input.object.as_ref()?)),
            },
        })
    }

    /// Reports every missing input and every input that this kind does not take.
    fn only(&mut self, kind: CallKind, wanted: &[&str], input: &Spanned<InputSpec>) -> Option<()> {
        let (whole, input) = (position_of(input), &input.value);
        let given = [
            ("object", input.object.as_ref().map(position_of)),
            ("desired", input.desired.as_ref().map(position_of)),
            ("observed", input.observed.as_ref().map(position_of)),
            ("cluster", input.cluster.as_ref().map(position_of)),
            ("clusters", input.clusters.as_ref().map(position_of)),
            ("binding", input.binding.as_ref().map(position_of)),
            ("task", input.task.as_ref().map(position_of)),
            ("reports", input.reports.as_ref().map(position_of)),
            ("replicas", input.replicas.as_ref().map(position_of)),
        ];
        let mut fine = true;
        for (name, at) in given {
            let message = match (wanted.contains(&name), at) {
                // Without reports no cluster has reported yet.
                (true, None) if name == "reports" => continue,
                (true, None) => "is missing".to_owned(),
                (false, Some(_)) => format!("is not an input of this {kind} case, which has {}", wanted.join(", ")),
                (true, Some(_)) | (false, None) => continue,
            };
            self.problem(at.unwrap_or(whole), &format!("input.{name}"), &message);
            fine = false;
        }
        fine.then_some(())
    }

    fn model<T: Serialize + DeserializeOwned>(&mut self, field: &str, written: &Spanned<Value>) -> Option<T> {
        let read = model::read(&written.value);
        read.map_err(|message| self.problem(position_of(written), &format!("input.{field}"), &message))
            .ok()
    }

    fn list<T: Serialize + DeserializeOwned>(
        &mut self,
        field: &str,
        written: Option<&Spanned<Vec<Spanned<Value>>>>,
    ) -> Option<Vec<T>> {
        let read = written?
            .value
            .iter()
            .enumerate()
            .map(|(index, one)| self.model(&format!("{field}[{index}]"), one));
        // Collects all elements first, so that the problems of every element are reported.
        read.collect::<Vec<_>>().into_iter().collect()
    }

    fn reports(&mut self, input: &InputSpec) -> Option<Vec<AggregatedStatusItem>> {
        match &input.reports {
            Some(reports) => self.list("reports", Some(reports)),
            None => Some(Vec::new()),
        }
    }

    fn candidates(&mut self, input: &InputSpec) -> Option<Candidates> {
        let binding: Option<Binding> = self.model("binding", input.binding.as_ref()?);
        let clusters: Option<Vec<Cluster>> = self.list("clusters", input.clusters.as_ref());
        Some(Candidates {
            binding: binding?,
            clusters: clusters?.into_iter().map(Arc::new).collect(),
        })
    }
}

fn object(written: &Spanned<Value>) -> Arc<Value> {
    Arc::new(written.value.clone())
}
