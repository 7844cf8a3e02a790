//! Features relevant to people and their tools: field ownership, dry runs, tables, schemas, definitions.

use bulkhead_apiserver::{ApiServer, Fidelity, Options, kinds};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::support::*;

fn people() -> ApiServer {
    server_with(Options {
        fidelity: Fidelity::People,
        kinds: kinds::kubernetes().into_iter().chain([kinds::definitions()]).collect(),
        ..options()
    })
}

fn settings(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data})
}

async fn apply(server: &ApiServer, manager: &str, force: bool, data: Value) -> kube::Result<ConfigMap> {
    let params = PatchParams {
        force,
        ..PatchParams::apply(manager)
    };
    configmaps(server)
        .patch("settings", &params, &Patch::Apply(settings(data)))
        .await
}

/// Returns the managers with the paths that they own, as `fieldsV1`.
fn owners(object: &impl Resource) -> Vec<(String, Value)> {
    let entries = object.meta().managed_fields.iter().flatten();
    entries
        .map(|entry| (entry.manager.clone().unwrap(), json!(entry.fields_v1.clone().unwrap())))
        .collect()
}

fn data_of(object: &ConfigMap) -> Value {
    json!(object.data)
}

#[tokio::test(start_paused = true)]
async fn an_apply_changes_what_it_owns_and_takes_back_what_it_leaves_out() {
    let server = people();
    let made = apply(&server, "a", false, json!({"x": "1", "y": "1"})).await.unwrap();
    assert_eq!(
        owners(&made),
        [("a".to_owned(), json!({"f:data": {"f:x": {}, "f:y": {}}}))]
    );
    let same = apply(&server, "a", false, json!({"x": "1", "y": "1"})).await.unwrap();
    assert_eq!(same.resource_version(), made.resource_version());
    let other = apply(&server, "b", false, json!({"y": "1", "z": "1"})).await.unwrap();
    assert_eq!(data_of(&other), json!({"x": "1", "y": "1", "z": "1"}));
    // `x` has no other owner and is removed; `y` stays because `b` owns it too.
    let less = apply(&server, "a", false, json!({})).await.unwrap();
    assert_eq!(data_of(&less), json!({"y": "1", "z": "1"}));
}

#[tokio::test(start_paused = true)]
async fn a_field_of_somebody_else_is_a_conflict_unless_it_is_forced() {
    let server = people();
    apply(&server, "a", false, json!({"x": "1"})).await.unwrap();
    let status = match apply(&server, "b", false, json!({"x": "2"})).await.unwrap_err() {
        kube::Error::Api(status) => status,
        other => panic!("{other}"),
    };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"a\": .data.x"
    );
    assert_eq!(status.details.unwrap().causes[0].field, ".data.x");
    let forced = apply(&server, "b", true, json!({"x": "2"})).await.unwrap();
    assert_eq!(owners(&forced), [("b".to_owned(), json!({"f:data": {"f:x": {}}}))]);

    // An updater owns the fields that it changed, and an apply conflicts with it as well.
    let params = PatchParams {
        field_manager: Some("c".to_owned()),
        ..PatchParams::default()
    };
    let patched = configmaps(&server)
        .patch("settings", &params, &Patch::Merge(json!({"data": {"x": "3"}})))
        .await;
    assert_eq!(
        owners(&patched.unwrap()),
        [("c".to_owned(), json!({"f:data": {"f:x": {}}}))]
    );
    assert_eq!(refusal(apply(&server, "b", false, json!({"x": "2"})).await).0, 409);
}

#[tokio::test(start_paused = true)]
async fn lists_of_pods_are_owned_by_element() {
    let server = people();
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> = Api::default_namespaced(server.client());
    let container = |name: &str, more: Value| {
        let mut container = json!({"name": name, "image": "app:1"});
        container
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
            },
        })
    };
    let apply = async |manager: &str, object: Value| {
        deployments
            .patch("web", &PatchParams::apply(manager), &Patch::Apply(object))
            .await
            .unwrap()
    };
    apply("a", container("main", json!({"ports": [{"containerPort": 80}]}))).await;
    let both = apply("b", container("side", json!({}))).await;
    let names = |object: k8s_openapi::api::apps::v1::Deployment| -> Vec<String> {
        let pod = object.spec.unwrap().template.spec.unwrap();
        pod.containers.into_iter().map(|container| container.name).collect()
    };
    assert_eq!(
        both.spec.as_ref().unwrap().replicas,
        Some(1),
        "defaults are there, and nobody owns them"
    );
    let owned = owners(&both)[1].1.to_string();
    assert!(
        owned.contains(r#""k:{\"name\":\"side\"}":{".":{}"#) && !owned.contains("replicas"),
        "{owned}"
    );
    assert_eq!(names(both), ["main", "side"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_and_stores_nothing() {
    let server = people();
    let before = server.store().resource_version();
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let made = configmaps(&server).create(&params, &configmap("a", "1")).await.unwrap();
    assert!(made.uid().is_some());
    create_configmap(&server, "b", "1").await;
    let patch = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let patched = configmaps(&server)
        .patch("b", &patch, &Patch::Merge(json!({"data": {"key": "2"}})))
        .await
        .unwrap();
    assert_eq!(data_of(&patched), json!({"key": "2"}));
    let delete = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    configmaps(&server).delete("b", &delete).await.unwrap();
    assert_eq!(
        data_of(&configmaps(&server).get("b").await.unwrap()),
        json!({"key": "1"})
    );
    assert_eq!(server.store().resource_version(), before + 1);
}

async fn get(server: &ApiServer, path: &str, accept: &str) -> Value {
    let request = http::Request::get(path)
        .header("accept", accept)
        .body(Vec::new())
        .unwrap();
    server.client().request(request).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn clients_get_tables_metadata_and_everything_about_discovery_at_once() {
    let server = people();
    create_configmap(&server, "a", "1").await;
    let path = "/api/v1/namespaces/default/configmaps";
    let table = get(
        &server,
        path,
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    )
    .await;
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"][0]["cells"], json!(["a", 1, "0s"]));
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "a");
    let accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    assert_eq!(get(&server, path, accept).await["items"][0]["data"], Value::Null);
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let groups = get(&server, "/apis", accept).await;
    let apps = groups["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|group| group["metadata"]["name"] == "apps")
        .unwrap();
    assert_eq!(
        apps["versions"][0]["resources"][0]["subresources"][1]["subresource"],
        "scale"
    );
    let index = get(&server, "/openapi/v3", "application/json").await;
    let document = index["paths"]["apis/apps/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap()
        .to_owned();
    let document = get(&server, &document, "application/json").await;
    let spec = &document["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"];
    assert_eq!(spec["properties"]["replicas"]["type"], "integer");
}

#[tokio::test(start_paused = true)]
async fn a_definition_makes_a_kind_and_takes_its_objects_with_it() {
    let server = people();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.io"},
        "spec": {
            "group": "example.io",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
            }}}],
        },
    });
    let kind = server
        .kind_id("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        .unwrap();
    let created = server.store().create(kind, "", definition.clone()).unwrap();
    // An update without the defaults changes nothing.
    let key = bulkhead_apiserver::ObjectKey::new(kind, "", "widgets.example.io");
    let updated = server.store().update(&key, definition).unwrap();
    assert_eq!(updated.resource_version(), created.resource_version());
    let widgets = server.kind_id("example.io/v1", "Widget").unwrap();
    let make = |spec: Value| {
        server.store().create(
            widgets,
            "default",
            json!({"metadata": {"generateName": "w-"}, "spec": spec}),
        )
    };
    let widget = make(json!({"size": 1, "colour": "red"})).unwrap();
    assert_eq!(widget.content()["spec"], json!({"size": 1}));
    assert_eq!(make(json!({"size": "big"})).unwrap_err().code, 422);
    server.store().delete(&key, &Default::default()).unwrap();
    assert!(server.kind_id("example.io/v1", "Widget").is_none());
    assert!(server.store().list(widgets, None).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_deleted_in_the_foreground_waits_for_what_blocks_it() {
    let server = people();
    let owner = create_configmap(&server, "owner", "1").await;
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid(),
        "blockOwnerDeletion": true});
    let held: ConfigMap =
        from(json!({"metadata": {"name": "held", "ownerReferences": [reference], "finalizers": ["x/y"]}}));
    let api = configmaps(&server);
    api.create(&PostParams::default(), &held).await.unwrap();
    let waiting = api
        .delete("owner", &DeleteParams::foreground())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert_eq!(waiting.finalizers(), ["foregroundDeletion"]);
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("held", &PatchParams::default(), &none).await.unwrap();
    assert_eq!(refusal(api.get("owner").await).0, 404);
}

/// Sends a request and returns the code and the body.
async fn send(server: &ApiServer, method: &str, path: &str, content_type: &str, body: Vec<u8>) -> (u16, Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type);
    let response = server.client().send(request.body(body.into()).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    (
        code,
        serde_json::from_slice(&response.into_body().collect_bytes().await.unwrap()).unwrap(),
    )
}

async fn post(server: &ApiServer, path: &str, body: &Value) -> (u16, Value) {
    send(server, "POST", path, "application/json", body.to_string().into_bytes()).await
}

fn tabs() -> Value {
    let spec = json!({
        "type": "object",
        "required": ["schedule"],
        "properties": {
            "schedule": {"type": "string", "pattern": r"^(\d+|\*)( (\d+|\*)){4}$"},
            "least": {"type": "integer"},
            "size": {"type": "integer"},
        },
        "x-kubernetes-validations": [
            {"rule": "!has(self.least) || self.least <= self.size", "message": "size must not be less than least"},
        ],
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "tabs.example.io"},
        "spec": {
            "group": "example.io",
            "names": {"kind": "Tab", "plural": "tabs"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                "subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
                "selectableFields": [{"jsonPath": ".spec.schedule"}],
            }],
        },
    })
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TABS: &str = "/apis/example.io/v1/namespaces/default/tabs";

fn tab(spec: Value) -> Value {
    json!({"apiVersion": "example.io/v1", "kind": "Tab", "metadata": {"name": "a"}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn custom_resources_obey_patterns_and_rules() {
    let server = people();
    assert_eq!(post(&server, DEFINITIONS, &tabs()).await.0, 201);
    let (code, status) = post(&server, TABS, &tab(json!({"schedule": "x"}))).await;
    let why = r#"Invalid value: "x": spec.schedule in body should match '^(\d+|\*)( (\d+|\*)){4}$'"#;
    assert_eq!((code, &status["details"]["causes"][0]["message"]), (422, &json!(why)));
    assert_eq!(status["details"]["causes"][0]["field"], "spec.schedule");
    let spec = json!({"schedule": "* * * * *", "least": 2, "size": 1});
    let (code, status) = post(&server, TABS, &tab(spec)).await;
    let message = "Tab.example.io \"a\" is invalid: spec: Invalid value: \"object\": size must not be less than least";
    assert_eq!((code, &status["message"]), (422, &json!(message)));
    let mut broken = tabs();
    broken["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["pattern"] =
        json!("(");
    assert_eq!(
        post(&server, DEFINITIONS, &broken).await.0,
        409,
        "the definition exists"
    );
    let path = format!("{DEFINITIONS}/tabs.example.io");
    let (code, status) = send(
        &server,
        "PUT",
        &path,
        "application/json",
        broken.to_string().into_bytes(),
    )
    .await;
    assert_eq!((code, status["reason"].as_str()), (422, Some("Invalid")));
}

#[tokio::test(start_paused = true)]
async fn custom_resources_can_be_scaled_and_selected_by_declared_fields() {
    let server = people();
    post(&server, DEFINITIONS, &tabs()).await;
    assert_eq!(
        post(&server, TABS, &tab(json!({"schedule": "* * * * *", "size": 1})))
            .await
            .0,
        201
    );
    let patch = json!({"spec": {"replicas": 3}}).to_string().into_bytes();
    let path = format!("{TABS}/a/scale");
    let (code, scale) = send(&server, "PATCH", &path, "application/merge-patch+json", patch).await;
    assert_eq!((code, &scale["spec"]["replicas"]), (200, &json!(3)));
    let stored = get(&server, &format!("{TABS}/a"), "application/json").await;
    assert_eq!(stored["spec"]["size"], 3);
    let selected = get(
        &server,
        &format!("{TABS}?fieldSelector=spec.schedule%3Dother"),
        "application/json",
    )
    .await;
    assert_eq!(selected["items"], json!([]));
    let path = format!("{TABS}?fieldSelector=spec.size%3D3");
    let (code, status) = send(&server, "GET", &path, "application/json", Vec::new()).await;
    assert_eq!(
        (code, status["message"].as_str()),
        (400, Some("field label not supported: spec.size"))
    );
}

#[tokio::test(start_paused = true)]
async fn objects_of_people_are_refused_where_kubernetes_refuses_them() {
    let server = people();
    let path = "/api/v1/namespaces/default/configmaps";
    let (code, status) = post(&server, path, &json!({"metadata": {"name": "Bad_Name"}})).await;
    assert_eq!(
        (code, status["details"]["causes"][0]["field"].as_str()),
        (422, Some("metadata.name"))
    );
    let settings = |value: &str| json!({"metadata": {"name": "a"}, "immutable": true, "data": {"k": value}});
    assert_eq!(post(&server, path, &settings("1")).await.0, 201);
    let body = settings("2").to_string().into_bytes();
    let (code, status) = send(&server, "PUT", &format!("{path}/a"), "application/json", body).await;
    let message = "ConfigMap \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set";
    assert_eq!((code, status["message"].as_str()), (422, Some(message)));
    let secret = json!({"metadata": {"name": "a"}, "data": {"k": "*"}});
    assert_eq!(
        post(&server, "/api/v1/namespaces/default/secrets", &secret).await.0,
        400
    );
    let service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
    let (code, made) = post(&server, "/api/v1/namespaces/default/services", &service).await;
    assert_eq!(code, 201);
    assert!(
        made["spec"]["clusterIP"].as_str().unwrap().starts_with("10.96."),
        "{}",
        made["spec"]
    );
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}});
    let (code, made) = post(&server, "/api/v1/namespaces/default/pods", &pod).await;
    assert_eq!((code, made["status"]["phase"].as_str()), (201, Some("Pending")));
}

#[tokio::test(start_paused = true)]
async fn kubectl_may_ask_for_its_rights_and_for_openapi_v2() {
    let server = people();
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let (code, review) = post(&server, path, &json!({"spec": {}})).await;
    assert_eq!((code, &review["status"]["allowed"]), (201, &json!(true)));
    // A kind that is not served is missing, in any form of the body.
    let protobuf = "application/vnd.kubernetes.protobuf";
    let (code, _) = send(
        &server,
        "POST",
        "/apis/example.io/v1/things",
        protobuf,
        b"k8s\0".to_vec(),
    )
    .await;
    assert_eq!(code, 404);
    let path = "/api/v1/namespaces/default/serviceaccounts/a/token";
    assert_eq!(send(&server, "POST", path, protobuf, b"k8s\0".to_vec()).await.0, 501);
    let document = get(&server, "/openapi/v2", "application/json").await;
    assert_eq!(document["swagger"], "2.0");
}

#[tokio::test(start_paused = true)]
async fn every_namespace_gets_the_objects_of_the_options() {
    let server = server_with(Options {
        namespace_objects: vec![kinds::default_account()],
        ..options()
    });
    let account = get(
        &server,
        "/api/v1/namespaces/default/serviceaccounts/default",
        "application/json",
    )
    .await;
    assert_eq!(account["metadata"]["namespace"], "default");
}
