//! What the objects of the control plane must and must not look like.

use std::collections::{BTreeMap, BTreeSet};

use bulkhead_api::{AnyBinding, Cluster, ClusterResourceBinding, ResourceBinding, Work};
use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::decide::evict::PRODUCER_TAINT_MANAGER;
use bulkhead_core::model::{Binding, PurgeMode};
use bulkhead_core::names::{self, keys};
use bulkhead_core::time::Time;
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Inspector;
use crate::simulation::federation::Federation;

/// Follows the objects, one look after the other.
pub(in crate::simulation) struct Observed {
    inspector: Inspector,
    /// Evictions per second.
    rate: f64,
    bindings: BTreeMap<String, Facts>,
    /// Taints that were there from the start and that nobody here added, as cluster and `key:effect`.
    foreign: BTreeSet<(String, String)>,
    /// When tasks of the taint manager came up, in seconds since the Unix epoch.
    evictions_s: Vec<i64>,
    rate_told: bool,
}

/// What is known of a binding.
#[derive(Clone, Debug, Default, PartialEq)]
struct Facts {
    /// Clusters whose copy has to stay: targets, and tasks that hold.
    held: BTreeSet<String>,
    /// Tasks by cluster, with who made them and when.
    tasks: BTreeMap<String, (String, Option<Time>)>,
    /// Clusters with a Work that is not being deleted.
    works: BTreeSet<String>,
}

fn list<K: DeserializeOwned>(federation: &Federation, api_version: &str, kind: &str) -> Vec<K> {
    let Some(kind) = federation.hub().kind_id(api_version, kind) else { return Vec::new() };
    let objects = federation.hub().store().list(kind, None);
    objects.iter().filter_map(|object| serde_json::from_value(Value::clone(object.value())).ok()).collect()
}

fn bindings(federation: &Federation) -> Vec<Binding> {
    let namespaced = list::<ResourceBinding>(federation, "work.karmada.io/v1alpha2", "ResourceBinding");
    let scoped = list::<ClusterResourceBinding>(federation, "work.karmada.io/v1alpha2", "ClusterResourceBinding");
    let models = namespaced.iter().map(AnyBinding::to_model);
    models.chain(scoped.iter().map(AnyBinding::to_model)).collect()
}

fn clusters(federation: &Federation) -> Vec<Cluster> {
    list(federation, "cluster.karmada.io/v1alpha1", "Cluster")
}

/// Works by name: the clusters that have one which is not being deleted, and those that have one which is.
fn works(federation: &Federation) -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let mut found: BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
    for work in list::<Work>(federation, "work.karmada.io/v1alpha1", "Work") {
        let namespace = work.namespace().unwrap_or_default();
        let Some(cluster) = names::cluster_of_execution_namespace(&namespace) else { continue };
        let (live, going) = found.entry(work.name_any()).or_default();
        let clusters = if work.metadata.deletion_timestamp.is_some() { going } else { live };
        clusters.insert(cluster.to_owned());
    }
    found
}

/// Taints of a cluster that no policy added.
fn foreign_taints(cluster: &Cluster) -> Vec<(String, String)> {
    let model = cluster.to_model();
    let ours = |key: &str| key == keys::NOT_READY_TAINT || key == keys::UNREACHABLE_TAINT;
    let foreign = model.spec.taints.iter().filter(|taint| model.taint_owner(taint).is_none() && !ours(&taint.key));
    foreign.map(|taint| (model.name.clone(), taint.identity())).collect()
}

fn work_name(binding: &Binding) -> String {
    let resource = &binding.spec.resource;
    names::work_name(&resource.kind, &resource.name, &resource.namespace)
}

impl Observed {
    /// Follows a federation whose clusters have joined.
    pub(in crate::simulation) fn new(federation: &Federation, inspector: Inspector) -> Self {
        let rate = federation.context().flags.resource_eviction_rate;
        let foreign = clusters(federation).iter().flat_map(foreign_taints).collect();
        let (bindings, evictions_s) = (BTreeMap::new(), Vec::new());
        Self { inspector, rate, bindings, foreign, evictions_s, rate_told: false }
    }

    /// Looks at everything, and compares with the last time.
    pub(in crate::simulation) fn look(&mut self, federation: &Federation, at: GoDuration) {
        let works = works(federation);
        let mut seen = BTreeMap::new();
        for binding in bindings(federation) {
            let name = work_name(&binding);
            let facts = facts(&binding, works.get(&name).map(|(live, _)| live));
            if let Some(before) = self.bindings.remove(&binding.key()) {
                self.tasks(&binding.key(), &before, &facts, at);
                self.copies(&binding, &before, &facts, at);
            }
            seen.insert(binding.key(), facts);
        }
        self.bindings = seen;
        self.rates(at);
        let there: BTreeSet<_> = clusters(federation).iter().flat_map(foreign_taints).collect();
        for (cluster, taint) in self.foreign.difference(&there) {
            self.inspector.found("S6", at, format!("{cluster} lost the taint {taint}, which is not ours"));
        }
        self.foreign.retain(|taint| there.contains(taint));
    }

    fn tasks(&mut self, binding: &str, before: &Facts, after: &Facts, at: GoDuration) {
        for (cluster, (producer, created)) in &after.tasks {
            if before.tasks.contains_key(cluster) {
                continue;
            }
            if !self.inspector.with(|ledger| ledger.recorded.has_eviction(binding, cluster)) {
                self.inspector.found("S7", at, format!("{binding} leaves {cluster}, and no record says so"));
            }
            if producer == PRODUCER_TAINT_MANAGER {
                self.evictions_s.extend(created.map(|created| created.as_millis().div_euclid(1000)));
            }
        }
        for cluster in before.tasks.keys().filter(|cluster| !after.tasks.contains_key(*cluster)) {
            if !self.inspector.with(|ledger| ledger.recorded.has_end(binding, cluster)) {
                self.inspector.found("S1", at, format!("the task of {binding} for {cluster} is lost"));
            }
        }
    }

    /// A copy that was held and is held must not have been taken away in between.
    fn copies(&self, binding: &Binding, before: &Facts, after: &Facts, at: GoDuration) {
        if binding.deletion_timestamp.is_some() {
            return;
        }
        for cluster in before.works.intersection(&before.held).filter(|cluster| after.held.contains(*cluster)) {
            let ended = self.inspector.with(|ledger| ledger.recorded.has_end(&binding.key(), cluster));
            if !after.works.contains(cluster) && !ended {
                self.inspector.found("S1", at, format!("the copy of {} on {cluster} is taken away", binding.key()));
            }
        }
    }

    /// In any window there are no more than its length allows, and one. Tasks have whole seconds.
    fn rates(&mut self, at: GoDuration) {
        if self.rate_told || self.rate <= 0.0 {
            return;
        }
        self.evictions_s.sort_unstable();
        for (first, start_s) in self.evictions_s.iter().enumerate() {
            for (count, end_s) in (1..).zip(&self.evictions_s[first..]) {
                let allowed = ((end_s - start_s + 1) as f64 * self.rate).floor() as usize + 1;
                if count > allowed {
                    let window_s = end_s - start_s + 1;
                    let seen = format!("{count} evictions in {window_s} s at {} per second", self.rate);
                    self.inspector.found("S2", at, seen);
                    self.rate_told = true;
                    return;
                }
            }
        }
    }

    /// Looks at what is left when everything has been well for long enough.
    pub(in crate::simulation) fn end(&self, federation: &Federation, at: GoDuration) {
        let found = |invariant, seen| self.inspector.found(invariant, at, seen);
        for cluster in clusters(federation) {
            let model = cluster.to_model();
            let condition = |key: &str| key == keys::NOT_READY_TAINT || key == keys::UNREACHABLE_TAINT;
            let left: Vec<_> = model.spec.taints.iter().filter(|taint| condition(&taint.key)).collect();
            if !model.is_ready() || !left.is_empty() {
                found("L2", format!("{} is back and cannot be used: ready {}, {left:?}", model.name, model.is_ready()));
            }
        }
        let works = works(federation);
        for binding in bindings(federation).iter().filter(|binding| binding.deletion_timestamp.is_none()) {
            let key = binding.key();
            let kept = |task: &&bulkhead_core::model::GracefulEvictionTask| task.suppress_deletion != Some(true);
            for task in binding.spec.graceful_eviction_tasks.iter().filter(kept) {
                found("L1", format!("the eviction of {key} from {} never ends", task.from_cluster));
            }
            if binding.spec.placement.is_some() && binding.spec.clusters.is_empty() && binding.spec.replicas > 0 {
                found("L3", format!("{key} is placed nowhere"));
            }
            let targets: BTreeSet<_> = binding.spec.clusters.iter().map(|target| target.name.clone()).collect();
            let (live, going) = works.get(&work_name(binding)).cloned().unwrap_or_default();
            if !targets.is_subset(&live) {
                found("L3", format!("{key} is not dispatched to every target: {targets:?}, Works in {live:?}"));
            }
            if !going.is_empty() {
                found("L3", format!("old copies of {key} are never removed: {going:?}"));
            }
        }
    }
}

fn facts(binding: &Binding, works: Option<&BTreeSet<String>>) -> Facts {
    let tasks = &binding.spec.graceful_eviction_tasks;
    let holding = tasks.iter().filter(|task| task.purge_mode != Some(PurgeMode::Directly));
    let targets = binding.spec.clusters.iter().map(|target| target.name.clone());
    Facts {
        held: holding.map(|task| task.from_cluster.clone()).chain(targets).collect(),
        tasks: tasks
            .iter()
            .map(|task| (task.from_cluster.clone(), (task.producer.clone(), task.creation_timestamp)))
            .collect(),
        works: works.cloned().unwrap_or_default(),
    }
}
