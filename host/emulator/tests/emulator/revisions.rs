//! ControllerRevisions of DaemonSets and StatefulSets in members for people.

use std::time::Duration;

use bulkhead_apiserver::Fidelity;
use bulkhead_emulator::{MemberCluster, MemberOptions};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, StatefulSet};
use kube::Resource;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::*;

/// Returns number and image of each revision.
async fn revisions(member: &MemberCluster) -> Vec<String> {
    let api: Api<ControllerRevision> = Api::default_namespaced(member.server().client());
    let listed = api.list(&ListParams::default()).await.unwrap();
    let shown = |revision: ControllerRevision| {
        let data = json!(revision.data);
        let image = &data["spec"]["template"]["spec"]["containers"][0]["image"];
        format!("{} {}", revision.revision, image.as_str().unwrap())
    };
    let mut shown: Vec<_> = listed.items.into_iter().map(shown).collect();
    shown.sort();
    shown
}

/// Creates a workload, changes its image, and applies the data of its first revision as `kubectl rollout undo` does.
async fn is_undone<K>(object: Value)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + std::fmt::Debug,
    K: serde::Serialize + DeserializeOwned,
{
    let member = running(MemberOptions {
        fidelity: Fidelity::People,
        ..member_options()
    });
    let api: Api<K> = Api::default_namespaced(member.server().client());
    api.create(&PostParams::default(), &from(object)).await.unwrap();
    let wait = || tokio::time::sleep(Duration::from_mins(1));
    wait().await;
    assert_eq!(revisions(&member).await, ["1 app:1"]);
    let containers = json!([{"name": "main", "image": "app:2"}]);
    let image = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    api.patch("web", &PatchParams::default(), &Patch::Merge(image))
        .await
        .unwrap();
    wait().await;
    assert_eq!(revisions(&member).await, ["1 app:1", "2 app:2"]);
    let all: Api<ControllerRevision> = Api::default_namespaced(member.server().client());
    let listed = all.list(&ListParams::default()).await.unwrap();
    let first = listed
        .items
        .into_iter()
        .find(|revision| revision.revision == 1)
        .unwrap();
    api.patch("web", &PatchParams::default(), &Patch::Strategic(json!(first.data)))
        .await
        .unwrap();
    wait().await;
    assert_eq!(revisions(&member).await, ["2 app:2", "3 app:1"]);
    let undone = json!(api.get("web").await.unwrap());
    assert_eq!(undone["spec"]["template"]["spec"]["containers"][0]["image"], "app:1");
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    })
}

#[tokio::test(start_paused = true)]
async fn each_template_of_a_daemon_set_has_a_revision_that_undoes_the_next_one() {
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template()});
    is_undone::<DaemonSet>(json!({"metadata": {"name": "web"}, "spec": spec})).await;
}

#[tokio::test(start_paused = true)]
async fn each_template_of_a_stateful_set_has_a_revision_that_undoes_the_next_one() {
    let selector = json!({"matchLabels": {"app": "web"}});
    let spec = json!({"serviceName": "web", "replicas": 2, "selector": selector, "template": template()});
    is_undone::<StatefulSet>(json!({"metadata": {"name": "web"}, "spec": spec})).await;
}
