//! Removal of the objects of a Work from a member cluster.

use std::sync::PoisonError;

use bulkhead_api::Work;
use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::ownership::Ownership;
use bulkhead_core::journal::Decision;
use bulkhead_core::names::keys;
use bulkhead_runtime::controller::{Action, Error, is_not_found};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::key::Key;
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use super::{DELETE_ATTEMPTS_MAX, Execution, NAME, describe};
use crate::member_owner;
use crate::subjects::about;
use crate::works::object_of;

impl Execution {
    /// Deletes the objects of the Work in the member, then removes the finalizer of the Work. While the member is not
    /// ready the Work stays, as the record of an old copy on a lost cluster.
    pub(super) async fn remove(&self, work: &Work, cluster: &bulkhead_core::model::Cluster) -> Result<Action, Error> {
        let key = Key::of(work);
        if cluster.is_ready() {
            for manifest in &work.spec.workload.manifests {
                let manifest = object_of(manifest)?;
                if work.spec.preserve_resources_on_deletion == Some(true) {
                    self.release_object(work, &cluster.name, &manifest).await?;
                } else {
                    self.delete_object(work, &cluster.name, &manifest).await?;
                }
            }
        } else if !cluster.is_terminating() {
            if self
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(key.clone())
            {
                let message = format!("cluster({}) not ready: the Work keeps its finalizer", cluster.name);
                self.record(
                    work,
                    &cluster.name,
                    Decision::RemovalWaits,
                    Attribution::rule("ClusterNotReady", message),
                    "",
                );
            }
            return Err(Error::NotYet(format!("cluster({}) not ready", cluster.name)));
        }
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        let remaining: Vec<_> = work
            .finalizers()
            .iter()
            .filter(|f| *f != keys::EXECUTION_FINALIZER)
            .cloned()
            .collect();
        let patch = json!({"metadata": {"finalizers": remaining}});
        match self
            .deps
            .writers
            .works(&key.namespace)
            .patch_despite_status(work, patch)
            .await
        {
            Err(error) if !is_not_found(&error) => Err(Error::api(format!("releasing Work {key}"))(error)),
            _ => Ok(Action::Wait),
        }
    }

    async fn delete_object(&self, work: &Work, cluster: &str, manifest: &Value) -> Result<(), Error> {
        let operation = || Error::api(format!("deleting {} in {cluster}", describe(manifest)));
        for attempt in 1.. {
            let Some((api, observed)) = self.observe(cluster, manifest).await? else {
                return Ok(());
            };
            if !self.may_remove(work, cluster, manifest, &observed) {
                return Ok(());
            }
            let attribution = Attribution::rule("WorkDeleted", "its Work is deleted and the cluster is ready");
            let record = self.record(work, cluster, Decision::Removed, attribution, &describe(manifest));
            // Deletes only the object that was read, not one that another process created or took over meanwhile.
            let preconditions = Preconditions {
                uid: observed.uid(),
                resource_version: observed.resource_version(),
            };
            let parameters = DeleteParams::background().preconditions(preconditions);
            let deleted = async {
                match api.delete(&observed.name_any(), &parameters).await {
                    Err(error) if !is_not_found(&error) => Err(operation()(error)),
                    _ => Ok(()),
                }
            };
            match self.deps.log.apply(&[record], deleted).await {
                // A running workload writes its status all the time.
                Err(error) if error.is_conflict() && attempt < DELETE_ATTEMPTS_MAX => {}
                deleted => return deleted,
            }
        }
        Ok(())
    }

    /// True if an object came from the Work. An object of another Work is left unchanged, with an event.
    fn may_remove(&self, work: &Work, cluster: &str, manifest: &Value, observed: &DynamicObject) -> bool {
        let recorded = member_owner::recorded(observed);
        let owner = member_owner::of(&self.deps.stores, work, manifest, &recorded);
        if owner == Ownership::Foreign {
            let message = format!(
                "{} in {cluster} is not deleted: it belongs to {recorded}",
                describe(manifest)
            );
            self.deps
                .log
                .events
                .emit(NAME, about(work), EventType::Warning, "DeletionSkipped", message);
        }
        owner == Ownership::Ours
    }

    /// Leaves the object in the member without Bulkhead's labels and annotations. An object that is gone needs no
    /// release: Karmada fails on it permanently.
    async fn release_object(&self, work: &Work, cluster: &str, manifest: &Value) -> Result<(), Error> {
        let Some((api, observed)) = self.observe(cluster, manifest).await? else {
            return Ok(());
        };
        if !self.may_remove(work, cluster, manifest, &observed) {
            return Ok(());
        }
        let nulls = |keys: &[&str]| {
            keys.iter()
                .map(|key| ((*key).to_owned(), Value::Null))
                .collect::<Value>()
        };
        let labels = nulls(&[
            keys::RESOURCE_BINDING_ID,
            keys::CLUSTER_RESOURCE_BINDING_ID,
            keys::PROPAGATION_POLICY_ID,
            keys::CLUSTER_PROPAGATION_POLICY_ID,
            keys::WORK_ID,
            keys::MANAGED,
        ]);
        let annotations = nulls(&[
            keys::MANAGED_ANNOTATIONS,
            keys::MANAGED_LABELS,
            keys::RESOURCE_BINDING_NAMESPACE,
            keys::RESOURCE_BINDING_NAME,
            keys::CLUSTER_RESOURCE_BINDING_NAME,
            keys::TEMPLATE_UID,
            keys::TEMPLATE_GENERATION,
            keys::WORK_NAMESPACE,
            keys::WORK_NAME,
        ]);
        let attribution = Attribution::rule("PreserveResourcesOnDeletion", "the policy preserves member objects");
        let record = self.record(
            work,
            cluster,
            Decision::Removed,
            attribution,
            "the object stays, unmanaged",
        );
        let version = observed.resource_version();
        let metadata = json!({"labels": labels, "annotations": annotations, "resourceVersion": version});
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let operation = Error::api(format!("releasing {} in {cluster}", describe(manifest)));
        let name = observed.name_any();
        let patched = async {
            api.patch(&name, &PatchParams::default(), &patch)
                .await
                .map(drop)
                .map_err(operation)
        };
        self.deps.log.apply(&[record], patched).await
    }
}
