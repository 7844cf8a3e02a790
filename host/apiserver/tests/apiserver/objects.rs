//! Reading and writing objects.

use std::sync::Arc;

use bulkhead_apiserver::{Admission, AdmissionRequest, DenialReason, Denied, Operation, Options, ResourceKind};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, LogParams, Patch, PatchParams, PostParams, Preconditions,
};
use kube::{ResourceExt, discovery::Discovery};
use serde_json::json;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_created_object_gets_the_metadata_only_a_server_sets() {
    let server = server();
    let created = create_configmap(&server, "a", "1").await;
    assert_eq!(created.metadata.generation, Some(1));
    assert_eq!(created.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(created.uid().unwrap().len(), 36);
    assert_eq!(
        created.creation_timestamp().unwrap().0.to_string(),
        "2026-01-01T00:00:00Z"
    );
    assert_eq!(configmaps(&server).get("a").await.unwrap(), created);
}

#[tokio::test(start_paused = true)]
async fn refusals_carry_the_code_and_reason_of_kubernetes() {
    let server = server();
    let api = configmaps(&server);
    let post = PostParams::default();
    let first = create_configmap(&server, "a", "1").await;
    assert_eq!(refusal(api.get("b").await), (404, "NotFound".to_owned()));
    assert_eq!(
        refusal(api.create(&post, &configmap("a", "2")).await),
        (409, "AlreadyExists".to_owned())
    );
    let mut changed = first.clone();
    changed.data = Some([("key".to_owned(), "2".to_owned())].into());
    api.replace("a", &post, &changed).await.unwrap();
    assert_eq!(
        refusal(api.replace("a", &post, &changed).await),
        (409, "Conflict".to_owned())
    );
    assert_eq!(
        refusal(api.create(&post, &ConfigMap::default()).await),
        (422, "Invalid".to_owned())
    );
    let elsewhere: Api<ConfigMap> = Api::namespaced(server.client(), "missing");
    assert_eq!(
        refusal(elsewhere.create(&post, &configmap("a", "1")).await),
        (404, "NotFound".to_owned())
    );
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    assert_eq!(refusal(pods.logs("a", &LogParams::default()).await).0, 501);
    let apply = PatchParams::apply("test");
    let patch = Patch::Apply(configmap("a", "3"));
    assert_eq!(
        refusal(api.patch("a", &apply, &patch).await),
        (415, "UnsupportedMediaType".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_without_a_version_is_unconditional_and_an_equal_one_changes_nothing() {
    let server = server();
    let api = configmaps(&server);
    let created = create_configmap(&server, "a", "1").await;
    let same = api
        .replace("a", &PostParams::default(), &configmap("a", "1"))
        .await
        .unwrap();
    assert_eq!(same.resource_version(), created.resource_version());
    let changed = api
        .replace("a", &PostParams::default(), &configmap("a", "2"))
        .await
        .unwrap();
    assert_ne!(changed.resource_version(), created.resource_version());
    assert_eq!(changed.uid(), created.uid());
    assert_eq!(changed.metadata.generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn generated_names_are_unique() {
    let server = server();
    let object: ConfigMap = from(json!({"metadata": {"generateName": "a-"}}));
    let api = configmaps(&server);
    let first = api.create(&PostParams::default(), &object).await.unwrap().name_any();
    let second = api.create(&PostParams::default(), &object).await.unwrap().name_any();
    assert!(first.starts_with("a-") && first.len() == 7, "{first}");
    assert_ne!(first, second);
}

#[tokio::test(start_paused = true)]
async fn spec_and_status_are_written_apart() {
    let server = server();
    let api: Api<Deployment> = Api::default_namespaced(server.client());
    let mut object = deployment("web", 1, "1");
    object.status = from(json!({"replicas": 5}));
    let created = api.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(created.status, None);

    let status = Patch::Merge(json!({"status": {"replicas": 3}, "spec": {"replicas": 9}}));
    let reported = api.patch_status("web", &PatchParams::default(), &status).await.unwrap();
    assert_eq!(reported.status.unwrap().replicas, Some(3));
    assert_eq!(reported.spec.as_ref().unwrap().replicas, Some(1));
    assert_eq!(reported.metadata.generation, Some(1));

    // A JSON patch of the status may read other fields.
    let operations = json!([{"op": "copy", "from": "/spec/replicas", "path": "/status/readyReplicas"}]);
    let request = http::Request::patch("/apis/apps/v1/namespaces/default/deployments/web/status")
        .header("content-type", "application/json-patch+json")
        .body(operations.to_string().into_bytes())
        .unwrap();
    let copied: Deployment = server.client().request(request).await.unwrap();
    assert_eq!(copied.status.unwrap().ready_replicas, Some(1));
    assert_eq!(copied.spec.as_ref().unwrap().replicas, Some(1));

    let spec = Patch::Merge(json!({"status": {"replicas": 7}, "spec": {"replicas": 2}}));
    let scaled = api.patch("web", &PatchParams::default(), &spec).await.unwrap();
    assert_eq!(scaled.status.unwrap().replicas, Some(3));
    assert_eq!(scaled.metadata.generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn patches_apply_by_their_type_and_honour_a_version() {
    let server = server();
    let api = configmaps(&server);
    let created = create_configmap(&server, "a", "1").await;
    let params = PatchParams::default();
    let merge = Patch::Merge(json!({"data": {"key": null, "other": "2"}}));
    let merged = api.patch("a", &params, &merge).await.unwrap();
    assert_eq!(merged.data, Some([("other".to_owned(), "2".to_owned())].into()));

    let stale = Patch::Merge(json!({"metadata": {"resourceVersion": created.resource_version()}, "data": {}}));
    assert_eq!(refusal(api.patch("a", &params, &stale).await).0, 409);

    let client = server.client();
    let path = "/api/v1/namespaces/default/configmaps/a";
    let send = |content_type: &'static str, patch: serde_json::Value| {
        let request = http::Request::patch(path)
            .header("content-type", content_type)
            .body(patch.to_string().into_bytes())
            .unwrap();
        client.request::<ConfigMap>(request)
    };
    let operations = json!([{"op": "test", "path": "/data/other", "value": "2"},
        {"op": "replace", "path": "/data/other", "value": "3"}]);
    let patched = send("application/json-patch+json", operations.clone()).await.unwrap();
    assert_eq!(patched.data.unwrap()["other"], "3");
    assert_eq!(refusal(send("application/json-patch+json", operations).await).0, 422);

    let strategic = json!({"metadata": {"finalizers": ["x/y"]}});
    let kept = send("application/strategic-merge-patch+json", strategic).await.unwrap();
    assert_eq!(kept.finalizers(), ["x/y"]);
}

#[tokio::test(start_paused = true)]
async fn pages_follow_each_other_without_gaps_and_selectors_narrow_them() {
    let server = server();
    for index in 0..7 {
        let parity = ["even", "odd"][index % 2];
        let object: ConfigMap = from(json!({"metadata": {"name": format!("c{index}"), "labels": {"parity": parity}}}));
        configmaps(&server)
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }
    let api: Api<ConfigMap> = Api::all(server.client());
    let mut params = ListParams::default().limit(3);
    let mut names = Vec::new();
    let mut pages = 0;
    loop {
        let page = api.list(&params).await.unwrap();
        pages += 1;
        names.extend(page.items.iter().map(ResourceExt::name_any));
        match page.metadata.continue_ {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(pages, 3);
    assert_eq!(names, ["c0", "c1", "c2", "c3", "c4", "c5", "c6"]);

    let select = |params: ListParams| {
        let api = api.clone();
        async move {
            let list = api.list(&params).await.unwrap();
            list.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
        }
    };
    assert_eq!(
        select(ListParams::default().labels("parity=odd")).await,
        ["c1", "c3", "c5"]
    );
    assert_eq!(
        select(ListParams::default().labels("parity notin (odd),parity")).await,
        ["c0", "c2", "c4", "c6"]
    );
    assert_eq!(select(ListParams::default().fields("metadata.name=c4")).await, ["c4"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_with_a_finalizer_goes_when_the_last_finalizer_goes() {
    let server = server();
    let api = configmaps(&server);
    let object: ConfigMap = from(json!({"metadata": {"name": "a", "finalizers": ["x/y"]}}));
    api.create(&PostParams::default(), &object).await.unwrap();
    let terminating = api.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(terminating.metadata.deletion_timestamp.is_some());
    assert_eq!(terminating.metadata.generation, Some(2));

    let params = PatchParams::default();
    let more = Patch::Merge(json!({"metadata": {"finalizers": ["x/y", "x/z"]}}));
    assert_eq!(refusal(api.patch("a", &params, &more).await).0, 422);
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("a", &params, &none).await.unwrap();
    assert_eq!(refusal(api.get("a").await).0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_with_a_wrong_precondition_is_a_conflict() {
    let server = server();
    let created = create_configmap(&server, "a", "1").await;
    let with_uid = |uid: Option<String>| DeleteParams {
        preconditions: Some(Preconditions {
            uid,
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let api = configmaps(&server);
    let wrong = api.delete("a", &with_uid(Some("other".to_owned()))).await;
    assert_eq!(refusal(wrong), (409, "Conflict".to_owned()));
    assert!(api.delete("a", &with_uid(created.uid())).await.unwrap().is_right());
}

#[tokio::test(start_paused = true)]
async fn dependents_go_with_their_last_owner() {
    let server = server();
    let first = create_configmap(&server, "first", "1").await;
    let second = create_configmap(&server, "second", "1").await;
    let reference = |owner: &ConfigMap| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid()});
    let api = configmaps(&server);
    for (name, owners) in [
        ("of-first", vec![reference(&first)]),
        ("of-both", vec![reference(&first), reference(&second)]),
    ] {
        let object: ConfigMap = from(json!({"metadata": {"name": name, "ownerReferences": owners}}));
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let of_first = api.get("of-first").await.unwrap();
    let grandchild: ConfigMap =
        from(json!({"metadata": {"name": "grandchild", "ownerReferences": [reference(&of_first)]}}));
    api.create(&PostParams::default(), &grandchild).await.unwrap();

    api.delete("first", &DeleteParams::default()).await.unwrap();
    let remaining = api.list(&ListParams::default()).await.unwrap();
    let names: Vec<_> = remaining.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["of-both", "second"]);
    assert_eq!(remaining.items[0].owner_references().len(), 1);
    api.delete("second", &DeleteParams::default()).await.unwrap();
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_stays_until_its_contents_are_gone() {
    let server = server();
    create_namespace(server.client(), "apps").await;
    let api: Api<ConfigMap> = Api::namespaced(server.client(), "apps");
    let held: ConfigMap = from(json!({"metadata": {"name": "held", "finalizers": ["x/y"]}}));
    api.create(&PostParams::default(), &held).await.unwrap();
    api.create(&PostParams::default(), &configmap("free", "1"))
        .await
        .unwrap();

    let namespaces: Api<Namespace> = Api::all(server.client());
    namespaces.delete("apps", &DeleteParams::default()).await.unwrap();
    assert_eq!(refusal(api.get("free").await).0, 404);
    let phase = namespaces.get("apps").await.unwrap().status.unwrap().phase;
    assert_eq!(phase.as_deref(), Some("Terminating"));
    let late = api.create(&PostParams::default(), &configmap("late", "1")).await;
    assert_eq!(refusal(late), (403, "Forbidden".to_owned()));

    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("held", &PatchParams::default(), &none).await.unwrap();
    assert_eq!(refusal(namespaces.get("apps").await).0, 404);
}

#[tokio::test(start_paused = true)]
async fn the_namespaces_of_kubernetes_stay() {
    let server = server();
    let namespaces: Api<Namespace> = Api::all(server.client());
    for name in ["default", "kube-system", "kube-public"] {
        let refused = namespaces
            .delete(name, &DeleteParams::default())
            .await
            .map(drop)
            .unwrap_err();
        let kube::Error::Api(status) = refused else {
            panic!("{name}: {refused}")
        };
        let expected = format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        assert_eq!((status.code, status.message), (403, expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_selector() {
    let server = server();
    let labelled: ConfigMap = from(json!({"metadata": {"name": "a", "labels": {"x": "1"}}}));
    let api = configmaps(&server);
    api.create(&PostParams::default(), &labelled).await.unwrap();
    create_configmap(&server, "b", "1").await;
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("x=1"))
        .await
        .unwrap();
    let remaining = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(remaining.items.len(), 1);
    assert_eq!(server.objects_total()["configmaps"], 1);
}

struct StampCreator;

impl Admission for StampCreator {
    fn admit(&self, request: AdmissionRequest<'_>) -> Result<(), Denied> {
        if request.operation == Operation::Create {
            request.object["data"]["id"] = json!((request.ids)());
        } else if request.object["data"]["id"] != request.old.unwrap()["data"]["id"] {
            let (field, message) = (String::new(), "id is immutable".to_owned());
            return Err(Denied {
                reason: DenialReason::Forbidden,
                field,
                message,
            });
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn admission_changes_and_denies_writes() {
    let server = server_with(Options {
        admission: Some(Arc::new(StampCreator)),
        kinds: vec![
            ResourceKind::namespaced("", "v1", "ConfigMap", "configmaps"),
            ResourceKind::cluster_scoped("", "v1", "Namespace", "namespaces"),
        ],
        ..options()
    });
    let created = create_configmap(&server, "a", "1").await;
    assert_eq!(created.data.unwrap()["id"].len(), 36);
    let change = Patch::Merge(json!({"data": {"id": "mine"}}));
    let denied = configmaps(&server).patch("a", &PatchParams::default(), &change).await;
    assert_eq!(refusal(denied), (403, "Forbidden".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn discovery_finds_a_kind_registered_at_run_time() {
    let server = server();
    server.register(ResourceKind::cluster_scoped("example.io", "v1alpha1", "Widget", "widgets").with_status());
    let discovery = Discovery::new(server.client()).run().await.unwrap();
    let (widget, capabilities) = discovery
        .groups()
        .flat_map(kube::discovery::ApiGroup::recommended_resources)
        .find(|(resource, _)| resource.kind == "Widget")
        .unwrap();
    assert_eq!(widget.plural, "widgets");
    assert!(
        capabilities
            .subresources
            .iter()
            .any(|(resource, _)| resource.plural.ends_with("status"))
    );
    let api: Api<DynamicObject> = Api::all_with(server.client(), &widget);
    let created = api
        .create(&PostParams::default(), &DynamicObject::new("w", &widget))
        .await
        .unwrap();
    assert_eq!(created.types.unwrap().api_version, "example.io/v1alpha1");
    let version = server.client().apiserver_version().await.unwrap();
    assert_eq!(version.git_version, "v1.35.0");
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_by_verb_and_resource() {
    let server = server();
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    pods.list(&ListParams::default()).await.unwrap();
    pods.list(&ListParams::default()).await.unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(server.client());
    assert_eq!(refusal(deployments.get("a").await).0, 404);
    let expected = [("get deployments.apps".to_owned(), 1), ("list pods".to_owned(), 2)];
    assert_eq!(server.requests(), expected.into());
}
