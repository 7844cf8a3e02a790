use bulkhead_api::Cluster;
use bulkhead_core::combine::PolicyFault;
use bulkhead_core::names::keys;
use bulkhead_core::policy::{Fault, FaultKind, PolicyId};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::components::Components;
use crate::testing::{components, hub_of_works, member};

#[test]
fn a_fault_is_recorded_once_while_it_lasts() {
    let memory = Memory::default();
    let check = |work: &str, messages: &[&str], expected: &[&str]| {
        let fault = |message: &&str| {
            let fault = Fault::new(FaultKind::Trap, *message);
            PolicyFault {
                policy: PolicyId::builtin("script"),
                fault,
            }
        };
        let diagnostics = Diagnostics {
            faults: messages.iter().map(fault).collect(),
            ..Diagnostics::default()
        };
        let new = memory
            .without_recorded(&Key::new("karmada-es-m1", work), diagnostics)
            .faults;
        let new: Vec<_> = new.iter().map(|fault| fault.fault.message.as_str()).collect();
        assert_eq!(new, expected, "{work} {messages:?}");
    };
    check("web", &["no status"], &["no status"]);
    check("web", &["no status"], &[]);
    check("db", &["no status"], &["no status"]);
    check("web", &["no status", "no replicas"], &["no replicas"]);
    check("web", &["no status"], &[]);
    check("web", &[], &[]);
    check("web", &["no status"], &["no status"]);
    memory.forget(&Key::new("karmada-es-m1", "web"));
    check("web", &["no status"], &["no status"]);
}

/// Work `settings` of the ready Push cluster `m1`, and its object there.
struct Settings {
    components: Components,
    memory: Arc<Memory>,
    works: Api<Work>,
    objects: Api<ConfigMap>,
}

const RECHECKED: Action = Action::After(OWNER_RECHECK);

impl Settings {
    /// Places the object and reports it.
    async fn reported() -> Self {
        let (hub, member) = (hub_of_works(1).client(), member().client());
        let (components, _events) = components(hub.clone(), member.clone());
        let (clusters, works) = (
            Arc::clone(&components.stores.clusters),
            Arc::clone(&components.stores.works),
        );
        tokio::spawn(clusters.run_informer(Api::all(hub.clone()), watcher::Config::default()));
        tokio::spawn(works.run_informer(Api::all(hub.clone()), watcher::Config::default()));
        let cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"},
            "spec": {"syncMode": "Push"},
        });
        let clusters = Api::<Cluster>::all(hub.clone());
        create(&clusters, cluster).await;
        let ready = status(&["Ready"]);
        clusters
            .patch_status("m1", &PatchParams::default(), &ready)
            .await
            .unwrap();
        let settings = Self {
            components,
            memory: Arc::default(),
            works: Api::namespaced(hub, "karmada-es-m1"),
            objects: Api::namespaced(member.clone(), "default"),
        };
        settings.create_work("settings", "ours").await;
        settings.set_applied(&[APPLIED]).await;
        settings.place("ours", "settings", "template").await;
        let kind = ObjectKind::new("v1", "ConfigMap");
        let components = &settings.components;
        components.contacts.expect_reports();
        components
            .member_objects
            .ensure("m1", &kind, &components.kinds, || Ok(member))
            .await
            .unwrap();
        assert!(settings.is_unreported(), "this process has not seen the object yet");
        assert_eq!(settings.report().await, (Some(Health::Healthy), Action::Wait));
        assert!(!settings.is_unreported());
        settings
    }

    async fn create_work(&self, name: &str, id: &str) {
        let work = json!({
            "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
            "metadata": {"name": name, "labels": {keys::WORK_ID: id}},
            "spec": {"workload": {"manifests": [config_map(id, name, "template")]}},
        });
        create(&self.works, work).await;
    }

    async fn set_applied(&self, conditions: &[&str]) {
        let applied = status(conditions);
        let patched = self
            .works
            .patch_status("settings", &PatchParams::default(), &applied)
            .await;
        patched.unwrap();
    }

    async fn place(&self, work_id: &str, work: &str, template_uid: &str) {
        create(&self.objects, config_map(work_id, work, template_uid)).await;
    }

    async fn delete_object(&self) {
        self.objects.delete("settings", &Default::default()).await.unwrap();
    }

    /// Reports the object. Returns the health in the Work, and the next action.
    async fn report(&self) -> (Option<Health>, Action) {
        // The informers deliver the changes, and a loss is written one second later.
        let mut action = Action::Wait;
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_secs(2)).await;
            action = reconcile(self.components.work_status(), Arc::clone(&self.memory), key())
                .await
                .unwrap();
        }
        let work = self.works.get("settings").await.unwrap();
        (work.status.manifest_statuses[0].health, action)
    }

    fn is_unreported(&self) -> bool {
        let works = [key()].into_iter();
        self.components.contacts.unreported(works).contains("settings")
    }
}

fn key() -> Key {
    Key::new("karmada-es-m1", "settings")
}

fn status(conditions: &[&str]) -> Patch<Value> {
    let at = "2026-01-01T00:00:00Z";
    let condition =
        |type_: &&str| json!({"type": type_, "status": "True", "reason": "R", "message": "", "lastTransitionTime": at});
    let conditions: Vec<_> = conditions.iter().map(condition).collect();
    Patch::Merge(json!({"status": {"conditions": conditions}}))
}

fn config_map(work_id: &str, work: &str, template_uid: &str) -> Value {
    let annotations = json!({
        keys::WORK_NAMESPACE: "karmada-es-m1", keys::WORK_NAME: work, keys::TEMPLATE_UID: template_uid,
    });
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "settings", "namespace": "default", "annotations": annotations,
            "labels": {keys::MANAGED: "true", keys::WORK_ID: work_id},
        },
    })
}

async fn create<K: Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug>(api: &Api<K>, object: Value) {
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Two control planes place an object of the same name in one member, which both call `m1`.
#[tokio::test(start_paused = true)]
async fn the_health_of_an_object_of_another_control_plane_is_not_reported() {
    let settings = Settings::reported().await;
    settings.create_work("earlier", "earlier").await;
    settings.delete_object().await;
    assert_eq!(
        settings.report().await,
        (Some(Health::Healthy), RECHECKED),
        "the object may return under another owner"
    );
    settings.place("theirs", "settings", "another").await;
    assert_eq!(settings.report().await, (Some(Health::Unknown), RECHECKED));
    // The object of another Work of the same template is taken over when that Work is gone, without a change of the
    // object.
    settings.delete_object().await;
    settings.place("earlier", "earlier", "template").await;
    assert_eq!(settings.report().await, (Some(Health::Unknown), RECHECKED));
    settings.works.delete("earlier", &Default::default()).await.unwrap();
    assert_eq!(settings.report().await, (Some(Health::Healthy), Action::Wait));
}

#[tokio::test(start_paused = true)]
async fn the_report_about_a_missing_object_is_not_current() {
    let settings = Settings::reported().await;
    settings.delete_object().await;
    assert_eq!(settings.report().await, (Some(Health::Healthy), RECHECKED));
    assert!(settings.is_unreported());
    settings.place("ours", "settings", "template").await;
    assert_eq!(settings.report().await, (Some(Health::Healthy), Action::Wait));
    assert!(!settings.is_unreported());
}

#[tokio::test(start_paused = true)]
async fn a_change_of_an_object_that_cannot_be_applied_is_unreported() {
    let settings = Settings::reported().await;
    settings.set_applied(&[]).await;
    let labels = Patch::Merge(json!({"metadata": {"labels": {"tier": "front"}}}));
    let patched = settings
        .objects
        .patch("settings", &PatchParams::default(), &labels)
        .await;
    patched.unwrap();
    assert_eq!(settings.report().await, (Some(Health::Healthy), Action::Wait));
    assert!(settings.is_unreported());
}
