//! S10 and S11: a plugin is asked inside of its scope only, and the plugin of a tenant lets nothing go.
//!
//! A wrapper around the code of each plugin sees the questions that arrive there, below everything that keeps questions
//! from it. Scopes are evaluated by rules of their own, from the text of the manifest. Records are checked as well: a
//! plugin has no recorded verdict on something outside of its scope, and each release of an eviction check follows from
//! the replies of the other policies.

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_core::call::{Call, CallKind, EvictionVerdict, Reply};
use bulkhead_core::composition::{EvictionRule, Mode};
use bulkhead_core::journal::{
    Decision, DecisionInput, DecisionRecord, PolicySlot, Record, RecordedCall, RecordedReply,
};
use bulkhead_core::manifest::{NamePattern, ObjectKind, Scope};
use bulkhead_core::model::{Binding, Health};
use bulkhead_core::policy::{Build, Capability, Fault, FaultKind, Policy, PolicyId, Usage};
use bulkhead_plugin::FoundPlugin;
use serde_json::Value;

use super::Inspector;
use crate::report::Violation;
use crate::simulation::federation::PluginObserver;

/// Invariant of questions.
const ASKED: &str = "S10";
/// Invariant of tenants.
const LETS_GO: &str = "S11";

/// Scopes of the plugins that were in force so far, by name. The previous version of a plugin in quarantine answers the
/// calls of the new one, so any scope of the name counts.
#[derive(Default)]
pub(super) struct Scopes {
    plugins: BTreeMap<String, Vec<Reach>>,
    last_decision: Option<Arc<DecisionRecord>>,
}

/// Questions that a plugin may be asked.
#[derive(Clone, PartialEq)]
struct Reach {
    scope: Scope,
    /// Namespaces of the tenant; none for a plugin of the platform.
    tenant: Option<Vec<NamePattern>>,
}

/// Subject of a question.
struct Question<'a> {
    kind: CallKind,
    workload: Option<Workload<'a>>,
    /// Cluster of a question about one cluster.
    cluster: Option<&'a str>,
}

/// Workload of a question.
struct Workload<'a> {
    /// Namespace; empty for a workload of cluster scope.
    namespace: &'a str,
    name: &'a str,
    api_version: &'a str,
    kind: &'a str,
    /// Labels; bindings do not have those of their workloads.
    labels: Option<&'a Value>,
}

impl<'a> Workload<'a> {
    fn of_object(object: &'a Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        Self {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            labels: object.pointer("/metadata/labels"),
        }
    }

    fn of_binding(binding: &'a Binding) -> Self {
        let resource = &binding.spec.resource;
        Self {
            namespace: binding.namespace.as_deref().unwrap_or_default(),
            name: &resource.name,
            api_version: &resource.api_version,
            kind: &resource.kind,
            labels: None,
        }
    }
}

impl<'a> Question<'a> {
    fn of_call(call: &'a Call<'_>) -> Self {
        let (workload, cluster) = match call {
            Call::Health(call) => (Some(Workload::of_object(call.object)), None),
            Call::Interpret(call) => (Some(Workload::of_object(call.operation.object())), None),
            Call::Filter(call) => (Some(Workload::of_binding(call.binding)), None),
            Call::Score(call) => {
                // A plugin that ranks evictions is asked about the cluster that the binding leaves.
                let mut clusters = call.clusters.iter().map(|cluster| cluster.name.as_str());
                let first = clusters.next().filter(|_| call.clusters.len() == 1);
                (Some(Workload::of_binding(call.binding)), first)
            }
            Call::EvictionCheck(call) => (
                Some(Workload::of_binding(call.binding)),
                Some(call.task.from_cluster.as_str()),
            ),
            Call::ClusterTaint(call) => (None, Some(call.cluster.name.as_str())),
        };
        let kind = call.kind();
        Self {
            kind,
            workload,
            cluster,
        }
    }

    /// Returns the question of a recorded call.
    fn of_record(decision: &'a DecisionRecord, call: &'a RecordedCall) -> Self {
        let workload = match &decision.input {
            DecisionInput::Health { object, .. } => Some(Workload::of_object(object)),
            DecisionInput::Taint { .. } => None,
            _ => decision.binding().map(Workload::of_binding),
        };
        let has_cluster = matches!(call.kind, CallKind::EvictionCheck | CallKind::ClusterTaint);
        Self {
            kind: call.kind,
            workload,
            cluster: has_cluster.then_some(call.about.as_str()),
        }
    }

    /// Describes the subject.
    fn about(&self) -> String {
        let cluster = self.cluster.map(|cluster| format!(" on {cluster}")).unwrap_or_default();
        match &self.workload {
            Some(workload) => format!("{}/{} ({}){cluster}", workload.namespace, workload.name, workload.kind),
            None => cluster.trim_start().to_owned(),
        }
    }
}

/// Returns true if one of the patterns is the name, or its start with `*` after it.
fn is_in(patterns: &[NamePattern], name: &str) -> bool {
    let matches = |pattern: String| match pattern.split_once('*') {
        Some((start, _)) => name.starts_with(start),
        None => pattern == name,
    };
    !name.is_empty() && patterns.iter().map(ToString::to_string).any(matches)
}

impl Reach {
    fn of(plugin: &FoundPlugin) -> Self {
        let tenancy = plugin.grant.tenancy.as_ref();
        Self {
            scope: plugin.manifest.scope.clone(),
            tenant: tenancy.map(|tenancy| tenancy.namespaces.clone()),
        }
    }

    /// Returns true if every given selector matches a property that the question has.
    fn covers(&self, question: &Question<'_>) -> bool {
        let Scope {
            namespaces,
            labels,
            kinds,
            clusters,
        } = &self.scope;
        let namespace = question.workload.as_ref().map_or("", |workload| workload.namespace);
        let is_of_tenant = self.tenant.as_ref().is_none_or(|tenant| {
            matches!(question.kind, CallKind::Health | CallKind::EvictionCheck) && is_in(tenant, namespace)
        });
        let in_namespace = namespaces.is_empty() || is_in(namespaces, namespace);
        let on_cluster = clusters.is_empty() || is_in(clusters, question.cluster.unwrap_or_default());
        let workload = question.workload.as_ref();
        let has_labels = labels.iter().all(|(key, value)| {
            let labels = workload.and_then(|workload| workload.labels);
            labels.and_then(|labels| labels.get(key)?.as_str()) == Some(value.as_str())
        });
        let is_of_kind = kinds.is_empty()
            || workload.is_some_and(|workload| {
                let is_kind = |one: &ObjectKind| one.api_version == workload.api_version && one.kind == workload.kind;
                kinds.iter().any(is_kind)
            });
        is_of_tenant && in_namespace && on_cluster && has_labels && is_of_kind
    }
}

type Broken = (&'static str, String);

impl Scopes {
    /// Adds the scope of a plugin that comes into force.
    fn permit(&mut self, plugin: &FoundPlugin) {
        let reach = Reach::of(plugin);
        let known = self.plugins.entry(plugin.source.name.clone()).or_default();
        if !known.contains(&reach) {
            known.push(reach);
        }
    }

    /// Returns true if a plugin may be asked a question. Policies that are not plugins may be asked everything.
    fn may_ask(&self, plugin: &str, question: &Question<'_>) -> bool {
        let known = self.plugins.get(plugin);
        known.is_none_or(|known| known.iter().any(|reach| reach.covers(question)))
    }

    /// Returns true if a policy is the plugin of a tenant.
    fn is_of_tenant(&self, policy: &PolicyId) -> bool {
        let known = self.plugins.get(&policy.name);
        known.is_some_and(|known| known.iter().all(|reach| reach.tenant.is_some()))
    }

    /// Returns the violation of a question that arrives at a plugin.
    fn ask(&self, plugin: &str, call: &Call<'_>) -> Option<Broken> {
        let question = Question::of_call(call);
        (!self.may_ask(plugin, &question)).then(|| (ASKED, outside(plugin, &question)))
    }

    /// Checks a record. Returns the violations.
    pub(super) fn look(&mut self, record: &Record, decision: Option<&Arc<DecisionRecord>>) -> Vec<Broken> {
        let mut broken = Vec::new();
        let has_limits = |reach: &Reach| !reach.scope.is_everything() || reach.tenant.is_some();
        if !self.plugins.values().flatten().any(has_limits) {
            return broken;
        }
        broken.extend(self.let_go_by_tenant(record));
        let Some(decision) = decision else { return broken };
        let last = self.last_decision.as_ref();
        if !last.is_some_and(|last| Arc::ptr_eq(last, decision)) {
            broken.extend(self.replies(record, decision));
            self.last_decision = Some(Arc::clone(decision));
        }
        broken.extend(self.released_by_tenants(record, decision));
        broken
    }

    /// Checks that no release and no healthy verdict is that of a tenant's plugin.
    fn let_go_by_tenant(&self, record: &Record) -> Option<Broken> {
        let entry = &record.entry;
        let policy = entry.attribution.policy.as_ref();
        let policy = policy.filter(|policy| self.is_of_tenant(policy))?;
        let heals = entry.decision == Decision::HealthChanged && entry.effect == Health::Healthy.as_str();
        let lets_go = heals || entry.decision == Decision::Released;
        lets_go.then(|| {
            let (id, name, decision) = (record.id, &policy.name, entry.decision);
            (
                LETS_GO,
                format!("record {id}: {decision:?} because of {name}, the plugin of a tenant"),
            )
        })
    }

    /// Checks the recorded replies of plugins.
    fn replies(&self, record: &Record, decision: &DecisionRecord) -> Vec<Broken> {
        let mut broken = Vec::new();
        for call in &decision.calls {
            let Some(slot) = decision.policies.get(call.slot) else {
                continue;
            };
            let (name, question) = (&slot.policy.name, Question::of_record(decision, call));
            if !self.may_ask(name, &question) && !is_abstention(&call.reply) {
                broken.push((ASKED, format!("record {}: {}", record.id, outside(name, &question))));
            }
            let lets_go = match &call.reply {
                RecordedReply::EvictionCheck(verdict) => matches!(verdict, EvictionVerdict::Release(_)),
                RecordedReply::Health(verdict) => verdict.health == Health::Healthy,
                _ => false,
            };
            if lets_go && self.is_of_tenant(&slot.policy) {
                let (id, about) = (record.id, question.about());
                let seen = format!("record {id}: {name}, the plugin of a tenant, lets {about} go");
                broken.push((LETS_GO, seen));
            }
        }
        broken
    }

    /// Checks that the other policies release a copy that an eviction check releases.
    fn released_by_tenants(&self, record: &Record, decision: &DecisionRecord) -> Option<Broken> {
        let entry = &record.entry;
        // Without a policy, the release is that of the host: a person, or the end of a grace period.
        entry
            .attribution
            .policy
            .as_ref()
            .filter(|_| entry.decision == Decision::Released)?;
        let cluster = entry.cluster.as_deref()?;
        let is_of_tenant = |slot: &PolicySlot| self.is_of_tenant(&slot.policy);
        if !decision.policies.iter().any(is_of_tenant) {
            return None;
        }
        // A check may be repeated without the reports that do not count; the last reply is the one that counts.
        let reply = |slot: usize| {
            let mut calls = decision.calls.iter().rev();
            let is_own = |call: &&RecordedCall| {
                call.slot == slot && call.kind == CallKind::EvictionCheck && call.about == cluster
            };
            calls.find(is_own).map(|call| &call.reply)
        };
        let (mut releases, mut holds) = (0_usize, 0_usize);
        for (position, slot) in decision.policies.iter().enumerate() {
            match reply(position).filter(|_| slot.mode == Mode::Enforce && !is_of_tenant(slot)) {
                None => {}
                Some(RecordedReply::EvictionCheck(EvictionVerdict::Release(_))) => releases += 1,
                Some(reply) if is_abstention(reply) => {}
                Some(_) => holds += 1,
            }
        }
        let is_released = match decision.composition.eviction_check {
            EvictionRule::AnyHoldWins => releases >= 1 && holds == 0,
            EvictionRule::AnyReleaseWins => releases >= 1,
            EvictionRule::Quorum(least) => releases >= 1 && releases >= least as usize,
        };
        (!is_released).then(|| {
            let (id, key) = (record.id, entry.subject.key());
            let seen = format!("record {id}: {key} is released on {cluster}, and held without the plugins of tenants");
            (LETS_GO, seen)
        })
    }
}

/// Returns true for a reply that does not count.
fn is_abstention(reply: &RecordedReply) -> bool {
    match reply {
        RecordedReply::EvictionCheck(verdict) => *verdict == EvictionVerdict::Abstain,
        RecordedReply::Fault { kind, .. } => *kind == FaultKind::Unsupported,
        _ => false,
    }
}

fn outside(plugin: &str, question: &Question<'_>) -> String {
    let (kind, about) = (question.kind, question.about());
    format!("the plugin {plugin} is asked ({kind}) about {about}, which is outside of its scope")
}

/// Records the scopes of plugins that come into force, and inspects every call.
impl PluginObserver for Inspector {
    fn permit(&self, plugins: &[FoundPlugin]) {
        self.with(|ledger| plugins.iter().for_each(|plugin| ledger.scopes.permit(plugin)));
    }

    fn watch(&self, plugin: &str, policy: Arc<dyn Policy>) -> Arc<dyn Policy> {
        Arc::new(Watched {
            plugin: plugin.to_owned(),
            policy,
            inspector: self.clone(),
        })
    }
}

/// Code of a plugin whose calls are inspected.
struct Watched {
    plugin: String,
    policy: Arc<dyn Policy>,
    inspector: Inspector,
}

impl Policy for Watched {
    fn id(&self) -> &PolicyId {
        self.policy.id()
    }

    fn capabilities(&self) -> &[Capability] {
        self.policy.capabilities()
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        self.inspector.with(|ledger| {
            if let Some((invariant, seen)) = ledger.scopes.ask(&self.plugin, call) {
                let at_ms = call.now().as_millis();
                ledger.found(Violation { invariant, at_ms, seen });
            }
        });
        self.policy.call(call)
    }

    fn usage_of(&self, kind: CallKind) -> Usage {
        self.policy.usage_of(kind)
    }

    fn build(&self) -> Option<&Build> {
        self.policy.build()
    }
}

#[cfg(test)]
mod tests;
