use std::sync::atomic::{AtomicBool, Ordering};

use bulkhead_core::journal::Outcome;
use bulkhead_plugin::Layer;
use bulkhead_runtime::events;
use http::{Method, Request};
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::client::Body;
use tower::service_fn;

use super::*;
use crate::testing::{Renames, cluster, components, hub_of_works, member};

const NAMESPACE: &str = "karmada-es-m1";

/// Returns the Work of a ConfigMap, as every control plane renders it that calls the member `m1`.
fn work(work_id: &str, template_uid: &str, value: &str, resolution: &str) -> Work {
    let labels = json!({keys::MANAGED: "true", keys::WORK_ID: work_id});
    let annotations = json!({
        keys::WORK_NAMESPACE: NAMESPACE,
        keys::WORK_NAME: "settings",
        keys::TEMPLATE_UID: template_uid,
        keys::CONFLICT_RESOLUTION: resolution,
    });
    serde_json::from_value(json!({
        "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {
            "name": "settings", "namespace": NAMESPACE, "labels": {keys::WORK_ID: work_id},
            "finalizers": [keys::EXECUTION_FINALIZER],
        },
        "spec": {"workload": {"manifests": [{
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"from": value},
            "metadata": {"name": "settings", "namespace": "default", "labels": labels, "annotations": annotations},
        }]}},
    }))
    .unwrap()
}

/// Control plane that has the member.
struct Hub {
    execution: Execution,
    works: Api<Work>,
    /// Keeps the channel of the events open.
    #[expect(dead_code, reason = "held, not read")]
    events: events::Writer,
}

impl Hub {
    fn new(seed: u64, member: &Client) -> Self {
        let hub = hub_of_works(seed).client();
        let (components, events) = components(hub.clone(), member.clone());
        let execution = Execution {
            deps: components.execution(),
            waiting: Mutex::default(),
        };
        Self {
            execution,
            works: Api::namespaced(hub, NAMESPACE),
            events,
        }
    }

    /// Stores a Work in place of the previous one, and applies it.
    async fn apply(&self, work: Work) -> Result<Work, Error> {
        if let Some(before) = self.works.get_opt("settings").await.unwrap() {
            let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            self.works
                .patch("settings", &PatchParams::default(), &patch)
                .await
                .unwrap();
            let uid = Preconditions {
                uid: before.uid(),
                resource_version: None,
            };
            self.works
                .delete("settings", &DeleteParams::default().preconditions(uid))
                .await
                .unwrap();
        }
        let stored = self.works.create(&PostParams::default(), &work).await.unwrap();
        self.execution.apply_all(&stored, "m1").await.map(|_| stored)
    }

    async fn applied(&self) -> String {
        let work = self.works.get("settings").await.unwrap();
        let condition = Condition::find(&work.status.conditions, APPLIED).unwrap();
        format!("{:?}: {}", condition.status, condition.message)
    }

    async fn remove(&self) {
        let cluster: bulkhead_api::Cluster = serde_json::from_value(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"},
            "spec": {"syncMode": "Push"},
            "status": {"conditions": [{
                "type": "Ready", "status": "True", "reason": "ClusterReady", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        }))
        .unwrap();
        let work = self.works.get("settings").await.unwrap();
        self.execution.remove(&work, &cluster.to_model()).await.unwrap();
    }
}

/// Returns the permanent ID of the Work of the object in the member, and the value in the object.
async fn observed(member: &Client) -> Option<(String, String)> {
    let api: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(member.clone(), "default");
    let object = api.get_opt("settings").await.unwrap()?;
    Some((
        object.labels().get(keys::WORK_ID).cloned().unwrap_or_default(),
        object.data.unwrap()["from"].clone(),
    ))
}

fn is(work_id: &str, value: &str) -> (String, String) {
    (work_id.to_owned(), value.to_owned())
}

#[tokio::test]
async fn two_control_planes_with_one_member_leave_each_others_objects_alone() {
    let member = member().client();
    let (a, b) = (Hub::new(1, &member), Hub::new(2, &member));
    a.apply(work("id-a", "template-a", "a", "abort")).await.unwrap();
    assert_eq!(observed(&member).await, Some(is("id-a", "a")));
    for resolution in ["abort", "overwrite"] {
        let refused = b
            .apply(work("id-b", "template-b", "b", resolution))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("belongs to Work karmada-es-m1/settings with permanent id id-a"),
            "{refused}"
        );
        assert!(
            b.applied()
                .await
                .starts_with("False: Failed to apply all manifests (0/1)"),
            "{}",
            b.applied().await
        );
        assert_eq!(observed(&member).await, Some(is("id-a", "a")));
    }
    b.remove().await;
    assert_eq!(observed(&member).await, Some(is("id-a", "a")));
    a.remove().await;
    assert_eq!(observed(&member).await, None);
    // The name is free now.
    b.apply(work("id-b", "template-b", "b", "abort")).await.unwrap();
    assert_eq!(observed(&member).await, Some(is("id-b", "b")));
}

#[tokio::test]
async fn a_work_that_was_made_anew_takes_over_the_objects_of_its_template() {
    let member = member().client();
    let hub = Hub::new(1, &member);
    hub.apply(work("id-1", "template", "before", "abort")).await.unwrap();
    // The cluster left while it was unreachable, and joined again.
    hub.apply(work("id-2", "template", "after", "abort")).await.unwrap();
    assert_eq!(observed(&member).await, Some(is("id-2", "after")));
    hub.remove().await;
    assert_eq!(observed(&member).await, None);
}

/// Returns a client of the member. Just before its first deletion, another process releases the object.
fn released_before_deletion(member: Client) -> Client {
    let released = Arc::new(AtomicBool::new(false));
    let service = service_fn(move |request: Request<Body>| {
        let (member, released) = (member.clone(), Arc::clone(&released));
        async move {
            if request.method() == Method::DELETE && !released.swap(true, Ordering::Relaxed) {
                let api: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(member.clone(), "default");
                let patch = Patch::Merge(json!({"metadata": {"labels": {keys::MANAGED: null}}}));
                api.patch("settings", &PatchParams::default(), &patch).await?;
            }
            member.send(request).await
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn an_object_that_changes_hands_before_its_deletion_stays() {
    let member = member().client();
    let hub = Hub::new(1, &released_before_deletion(member.clone()));
    hub.apply(work("id-1", "template", "ours", "abort")).await.unwrap();
    hub.remove().await;
    assert_eq!(observed(&member).await, Some(is("id-1", "ours")));
}

/// Returns a client of the member, and its requests other than lists and watches.
fn noted(member: Client) -> (Client, Arc<Mutex<Vec<String>>>) {
    let requests = Arc::<Mutex<Vec<String>>>::default();
    let noted = Arc::clone(&requests);
    let service = service_fn(move |request: Request<Body>| {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        if request.method() != Method::GET || path.ends_with("/settings") {
            noted.lock().unwrap().push(format!("{} {path}", request.method()));
        }
        assert!(!query.contains("dryRun"), "{query}");
        let member = member.clone();
        async move { member.send(request).await }
    });
    (Client::new(service, "default"), requests)
}

const READ: &str = "GET /api/v1/namespaces/default/configmaps/settings";
const CREATE: &str = "POST /api/v1/namespaces/default/configmaps";

fn taken(requests: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut *requests.lock().unwrap())
}

/// Lets the informers of the member deliver its changes.
async fn delivered() {
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_no_cache_has_is_created_without_a_read_and_its_namespace_on_demand() {
    let clock = bulkhead_apiserver::Clock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let member = bulkhead_apiserver::ApiServer::new(bulkhead_apiserver::Options {
        kinds: bulkhead_apiserver::kinds::kubernetes(),
        ..bulkhead_apiserver::Options::new("m1", 7, clock)
    })
    .client();
    let (client, requests) = noted(member.clone());
    let hub = Hub::new(1, &client);
    hub.apply(work("id-1", "template", "a", "abort")).await.unwrap();
    assert_eq!(
        taken(&requests),
        [READ, CREATE, "POST /api/v1/namespaces", CREATE],
        "no list is complete yet"
    );
    delivered().await;
    let api: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(member.clone(), "default");
    api.delete("settings", &DeleteParams::default()).await.unwrap();
    delivered().await;
    hub.apply(work("id-1", "template", "b", "abort")).await.unwrap();
    assert_eq!(taken(&requests), [CREATE]);
    assert_eq!(observed(&member).await, Some(is("id-1", "b")));
    delivered().await;
    hub.apply(work("id-1", "template", "c", "abort")).await.unwrap();
    assert_eq!(
        taken(&requests),
        [READ, "PUT /api/v1/namespaces/default/configmaps/settings"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_exists_without_the_label_of_the_cache_is_read_and_stays() {
    let member = member().client();
    let (client, requests) = noted(member.clone());
    let hub = Hub::new(1, &client);
    hub.apply(work("id-1", "template", "a", "abort")).await.unwrap();
    delivered().await;
    let api: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(member.clone(), "default");
    let released = Patch::Merge(json!({"metadata": {"labels": {keys::MANAGED: null}}}));
    api.patch("settings", &PatchParams::default(), &released).await.unwrap();
    delivered().await;
    taken(&requests);
    for expected in [&[CREATE, READ][..], &[READ]] {
        let refused = if expected.len() == 2 {
            hub.apply(work("id-1", "template", "b", "abort")).await.map(drop)
        } else {
            let failed = hub.works.get("settings").await.unwrap();
            hub.execution.apply_all(&failed, "m1").await.map(drop)
        };
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("already exists in the cluster m1"), "{refused}");
        assert_eq!(taken(&requests), expected);
    }
    assert_eq!(observed(&member).await, Some(is("id-1", "a")));
    let records = hub.execution.deps.log.journal.records();
    let outcomes: Vec<_> = records.iter().map(|record| record.outcome).collect();
    assert_eq!(
        outcomes,
        [Outcome::Taken, Outcome::Abandoned],
        "the second one was not written"
    );
}

#[tokio::test]
async fn an_object_that_an_interpreter_retains_under_another_name_is_refused() {
    let (components, _events) = components(hub_of_works(1).client(), member().client());
    components.registry.replace(Layer::Builtins, vec![Renames::policy()]);
    let execution = Execution {
        deps: components.execution(),
        waiting: Mutex::default(),
    };
    let object: DynamicObject =
        serde_json::from_value(json!({"metadata": {"name": "settings", "namespace": "default"}})).unwrap();
    let (work, kind) = (work("id", "template", "a", "abort"), ObjectKind::new("v1", "ConfigMap"));
    let refused = execution
        .retained(&work, &kind, object.clone(), &object)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("another object: metadata.name is \"other\", not \"settings\""),
        "{refused}"
    );
}

#[tokio::test]
async fn a_work_of_a_lost_cluster_keeps_its_finalizer_and_is_recorded_once() {
    let (components, _events) = components(hub_of_works(1).client(), member().client());
    components
        .stores
        .clusters
        .replace_all([cluster("m1", false, &json!([]))]);
    let mut leaving = work("id", "template", "a", "abort");
    leaving.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    components.stores.works.replace_all([leaving]);
    let execution = Execution {
        deps: components.execution(),
        waiting: Mutex::default(),
    };
    for _ in 0..2 {
        let refused = execution
            .reconcile(Key::new(NAMESPACE, "settings"))
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains("cluster(m1) not ready"), "{refused}");
    }
    let records = components.journal.records();
    assert_eq!(
        records.iter().map(|record| record.entry.decision).collect::<Vec<_>>(),
        [Decision::RemovalWaits]
    );
}
