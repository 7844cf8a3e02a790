//! Change tracking of the control plane's objects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::{AnyBinding, Cluster, ClusterResourceBinding, ResourceBinding};
use bulkhead_apiserver::{ApiServer, ChangeType, KindId, Object, ObjectKey, Subscription};
use bulkhead_core::model::{self, Binding, ObjectReference, Placement, REMOVE_ON_MISMATCH_SECONDS, TaintEffect};
use bulkhead_core::names;
use serde_json::Value;

use super::selects;
use crate::simulation::member;

const BINDING_VERSION: &str = "work.karmada.io/v1alpha2";

/// Latest state of the objects.
pub(super) struct Hub {
    server: ApiServer,
    kinds: Kinds,
    changes: Subscription,
    /// Bindings of both kinds, by key.
    pub(super) bindings: BTreeMap<String, Arc<Binding>>,
    /// Clusters by name.
    pub(super) clusters: BTreeMap<String, Arc<model::Cluster>>,
    /// Placed templates, by the name of their Works.
    placed: BTreeMap<String, ObjectReference>,
    /// Works by name and cluster; true if the Work is being deleted.
    pub(super) works: BTreeMap<String, BTreeMap<String, bool>>,
}

#[derive(Clone, Copy)]
struct Kinds {
    binding: KindId,
    cluster_binding: KindId,
    cluster: KindId,
    work: KindId,
    taint_policy: KindId,
    override_policies: [KindId; 2],
}

/// Change of an object.
pub(super) enum Step {
    /// Change of a binding; `None` means that it does not exist.
    Binding {
        /// State before the change.
        before: Option<Arc<Binding>>,
        /// State after the change.
        after: Option<Arc<Binding>>,
    },
    /// Change of a cluster.
    Cluster {
        /// State before the change; `None` if the cluster was created.
        before: Option<Arc<model::Cluster>>,
        /// State after the change; `None` if the cluster was deleted.
        after: Option<Arc<model::Cluster>>,
    },
    /// Start of the deletion of a Work, or its immediate removal.
    WorkGoes {
        /// Name of the Work, which identifies the resource.
        name: String,
        /// Target cluster of the Work.
        cluster: String,
    },
}

impl Hub {
    /// Starts tracking a control plane; `None` if it does not serve the required kinds.
    pub(super) fn new(server: &ApiServer) -> Option<Self> {
        let kinds = Kinds {
            binding: server.kind_id(BINDING_VERSION, "ResourceBinding")?,
            cluster_binding: server.kind_id(BINDING_VERSION, "ClusterResourceBinding")?,
            cluster: server.kind_id("cluster.karmada.io/v1alpha1", "Cluster")?,
            work: server.kind_id("work.karmada.io/v1alpha1", "Work")?,
            taint_policy: server.kind_id("policy.karmada.io/v1alpha1", "ClusterTaintPolicy")?,
            override_policies: [
                server.kind_id("policy.karmada.io/v1alpha1", "OverridePolicy")?,
                server.kind_id("policy.karmada.io/v1alpha1", "ClusterOverridePolicy")?,
            ],
        };
        let all = [kinds.binding, kinds.cluster_binding, kinds.cluster, kinds.work];
        let changes = server.store().subscribe(&all);
        let (bindings, clusters, works, placed) = Default::default();
        let mut hub = Self {
            server: server.clone(),
            kinds,
            changes,
            bindings,
            clusters,
            placed,
            works,
        };
        hub.list();
        Some(hub)
    }

    /// Returns the changes since the previous call, in order. Returns `None` if the history was lost, after listing
    /// everything again.
    pub(super) fn drain(&mut self) -> Option<Vec<Step>> {
        let Ok(changes) = self.changes.drain() else {
            self.list();
            return None;
        };
        let step = |change: Arc<bulkhead_apiserver::Change>| {
            let exists = change.change_type() != ChangeType::Deleted;
            self.apply(change.key.kind, &change.object, exists)
        };
        Some(changes.into_iter().filter_map(step).collect())
    }

    fn list(&mut self) {
        self.bindings.clear();
        self.clusters.clear();
        self.works.clear();
        let Kinds {
            binding,
            cluster_binding,
            cluster,
            work,
            ..
        } = self.kinds;
        for kind in [binding, cluster_binding, cluster, work] {
            for object in self.server.store().list(kind, None) {
                self.apply(kind, &object, true);
            }
        }
    }

    fn apply(&mut self, kind: KindId, object: &Object, exists: bool) -> Option<Step> {
        if kind == self.kinds.work {
            return self.apply_work(object, exists);
        }
        let text = object.bytes();
        if kind == self.kinds.cluster {
            let cluster = Arc::new(serde_json::from_slice::<Cluster>(&text).ok()?.to_model());
            let name = cluster.name.clone();
            let after = exists.then_some(cluster);
            let before = match &after {
                Some(after) => self.clusters.insert(name, Arc::clone(after)),
                None => self.clusters.remove(&name),
            };
            return Some(Step::Cluster { before, after });
        }
        let model = if kind == self.kinds.binding {
            serde_json::from_slice::<ResourceBinding>(&text).ok()?.to_model()
        } else {
            serde_json::from_slice::<ClusterResourceBinding>(&text).ok()?.to_model()
        };
        let key = model.key();
        if model.spec.placement.is_some() && model.deletion_timestamp.is_none() {
            self.placed.insert(work_name(&model), model.spec.resource.clone());
        }
        let after = exists.then(|| Arc::new(model));
        let before = match &after {
            Some(after) => self.bindings.insert(key, Arc::clone(after)),
            None => self.bindings.remove(&key),
        };
        Some(Step::Binding { before, after })
    }

    /// Returns the template whose Works have this name, if it still exists.
    pub(super) fn template_of(&self, work: &str) -> Option<&ObjectReference> {
        self.placed.get(work).filter(|template| self.exists(template))
    }

    /// Returns true if a template still exists with the same uid, and is not being deleted.
    pub(super) fn exists(&self, template: &ObjectReference) -> bool {
        self.live(template)
            .is_some_and(|object| object.uid() == template.uid && !object.is_terminating())
    }

    /// Returns the generation of a workload's template and the images of its containers.
    pub(super) fn images(&self, template: &ObjectReference) -> Option<(i64, Vec<String>)> {
        if !member::WORKLOAD_KINDS.iter().any(|(_, kind)| *kind == template.kind) {
            return None;
        }
        let object = self.live(template)?;
        let generation = object.content()["metadata"]["generation"].as_i64();
        Some((generation.unwrap_or(0), member::images_of(object.content())))
    }

    fn live(&self, template: &ObjectReference) -> Option<Arc<Object>> {
        let kind = self.server.kind_id(&template.api_version, &template.kind)?;
        self.server
            .store()
            .get(&ObjectKey::new(kind, &template.namespace, &template.name))
    }

    /// Returns true if an override policy may change templates on their way to a member cluster.
    pub(super) fn has_overrides(&self) -> bool {
        let mut kinds = self.kinds.override_policies.iter();
        kinds.any(|kind| !self.server.store().list(*kind, None).is_empty())
    }

    /// Returns true if all taint policies depend on the Ready condition only.
    pub(super) fn only_readiness_taints(&self) -> bool {
        let policies = self.server.store().list(self.kinds.taint_policy, None);
        policies.iter().all(|policy| {
            let spec = &policy.content()["spec"];
            let conditions = ["addOnConditions", "matchConditions"].map(|field| spec[field].as_array());
            let mut conditions = conditions.into_iter().flatten().flatten();
            conditions.all(|condition| condition["conditionType"] == "Ready")
        })
    }

    /// Returns the longest time for which a taint policy keeps its taint on a cluster that its conditions do not match any
    /// more.
    pub(super) fn removal_window(&self) -> Duration {
        let policies = self.server.store().list(self.kinds.taint_policy, None);
        let windows = policies.iter().flat_map(|policy| {
            let spec = &policy.content()["spec"];
            let of = |field: &str, default_s: u64| -> Vec<u64> {
                let taints = spec[field].as_array().into_iter().flatten();
                let window = |taint: &Value| taint["removeOnMismatchSeconds"].as_u64().unwrap_or(default_s);
                taints.map(window).collect()
            };
            let default_s = u64::try_from(REMOVE_ON_MISMATCH_SECONDS).unwrap_or(0);
            [of("taints", 0), of("taintsToAdd", default_s)].concat()
        });
        Duration::from_secs(windows.max().unwrap_or(0))
    }

    /// Returns true if some cluster can run the workload.
    pub(super) fn has_place(&self, binding: &Binding) -> bool {
        binding.spec.placement.is_none() || self.places(binding).next().is_some()
    }

    /// Returns the clusters that can run the workload: ready, selected, and without an untolerated taint.
    pub(super) fn places<'a>(&'a self, binding: &'a Binding) -> impl Iterator<Item = &'a str> {
        let blocks = |effect: &TaintEffect| matches!(effect, TaintEffect::NoSchedule | TaintEffect::NoExecute);
        let is_open = move |placement: &Placement, cluster: &model::Cluster| {
            let tolerated = |taint: &model::Taint| {
                let mut tolerations = placement.cluster_tolerations.iter();
                tolerations.any(|toleration| toleration.tolerates(taint))
            };
            let mut taints = cluster.spec.taints.iter().filter(|taint| blocks(&taint.effect));
            cluster.is_ready() && selects(placement, cluster) && taints.all(tolerated)
        };
        let placement = binding.spec.placement.as_ref();
        let open = move |cluster: &&Arc<model::Cluster>| placement.is_some_and(|placement| is_open(placement, cluster));
        self.clusters.values().filter(open).map(|cluster| cluster.name.as_str())
    }

    fn apply_work(&mut self, work: &Object, exists: bool) -> Option<Step> {
        let name = work.name();
        let cluster = names::cluster_of_execution_namespace(work.namespace())?;
        let going = !exists || work.is_terminating();
        let clusters = self.works.entry(name.to_owned()).or_default();
        let went = if exists {
            clusters.insert(cluster.to_owned(), going)
        } else {
            clusters.remove(cluster)
        };
        (going && went == Some(false)).then(|| Step::WorkGoes {
            name: name.to_owned(),
            cluster: cluster.to_owned(),
        })
    }
}

/// Returns the name of the Works of a binding.
pub(super) fn work_name(binding: &Binding) -> String {
    let resource = &binding.spec.resource;
    names::work_name(&resource.kind, &resource.name, &resource.namespace)
}
