//! Registration on an in-process control plane, with failures and other clients at chosen requests.

use std::path::Path;

use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::client::Body;
use tower::BoxError;

use super::super::testing::server;
use super::*;

const CLUSTER: &str = "/clusters/m1";
/// Token of the account for Karmada's cluster proxy.
const PROXY: &str = "proxy";

/// Returns true if a request has a method and the end of its path.
fn matches(request: &Request<Body>, (method, path): &(Method, &str)) -> bool {
    request.method() == method && request.uri().path().ends_with(path)
}

/// Returns a client whose requests of one sort fail.
fn refusing(server: &Client, which: (Method, &'static str)) -> Client {
    let server = server.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (server, which) = (server.clone(), which.clone());
        async move {
            if !matches(&request, &which) {
                return Ok::<_, BoxError>(server.send(request).await?);
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
                "message": "refused by the test",
            });
            let answer = Response::builder()
                .status(403)
                .header("content-type", "application/json");
            Ok(answer.body(Body::from(serde_json::to_vec(&status)?))?)
        }
    });
    Client::new(service, "default")
}

/// Returns a client before whose requests of one sort another client acts.
fn preceded<F, Acts>(server: &Client, which: (Method, &'static str), act: F) -> Client
where
    F: Fn(Client) -> Acts + Clone + Send + 'static,
    Acts: Future<Output = ()> + Send + 'static,
{
    let server = server.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (server, act) = (server.clone(), act.clone());
        let is_it = matches(&request, &which);
        async move {
            if is_it {
                act(server.clone()).await;
            }
            Ok::<_, BoxError>(server.send(request).await?)
        }
    });
    Client::new(service, "default")
}

fn account(token: &str) -> Account {
    Account {
        token: token.to_owned(),
        ca_bundle: b"authority".to_vec(),
    }
}

fn push_spec(id: &str) -> Value {
    json!({"id": id, "syncMode": "Push", "apiEndpoint": format!("https://{id}")})
}

async fn push(hub: &Client, id: &str, replace: bool) -> anyhow::Result<()> {
    Registration::check(hub, "m1", id, replace)
        .await?
        .push(&account(id), &account(PROXY), push_spec(id))
        .await
}

async fn cluster(hub: &Client) -> Cluster {
    Api::<Cluster>::all(hub.clone()).get("m1").await.unwrap()
}

async fn names<K>(hub: &Client) -> Vec<String>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let listed = Api::<K>::all(hub.clone()).list(&ListParams::default()).await.unwrap();
    listed.iter().map(|object| object.name_any()).collect()
}

/// Returns the token that the controllers use for the cluster.
async fn token_in_use(hub: &Client) -> String {
    let reference = cluster(hub).await.spec.secret_ref.unwrap();
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
    let secret = secrets.get(reference["name"].as_str().unwrap()).await.unwrap();
    String::from_utf8(secret.data.unwrap()["token"].0.clone()).unwrap()
}

fn error(outcome: anyhow::Result<()>) -> String {
    format!("{:#}", outcome.unwrap_err())
}

#[tokio::test]
async fn another_cluster_under_a_used_name_is_refused_without_the_flag() {
    let hub = server("hub").client();
    for (name, id) in [("member1", "uid-a"), ("made-by-hand", "")] {
        let cluster = json!({"metadata": {"name": name}, "spec": {"id": id, "syncMode": "Push"}});
        apply::<Cluster>(&Api::all(hub.clone()), cluster).await.unwrap();
    }
    let check = async |name: &str, id: &str, replace: bool, expected: &str| {
        let refused = Registration::check(&hub, name, id, replace).await.err();
        let text = refused.map(|error| error.to_string()).unwrap_or_default();
        assert!(
            text.starts_with(expected) && text.is_empty() == expected.is_empty(),
            "{name} {id}: {text}"
        );
    };
    // Repeated join of the same cluster.
    check("member1", "uid-a", false, "").await;
    check("member1", "uid-b", false, "member1 is the name of another cluster").await;
    check("member1", "uid-b", true, "").await;
    check("member2", "uid-a", false, "this cluster is already a member: member1").await;
    check("member2", "uid-a", true, "this cluster is already a member: member1").await;
    check("made-by-hand", "uid-c", false, "").await;
    for (name, id, expected) in [
        ("member1", "uid-b", true),
        ("member1", "uid-a", false),
        ("m3", "uid-c", false),
    ] {
        let registration = Registration::check(&hub, name, id, true).await.unwrap();
        assert_eq!(registration.takes_name(), expected, "{name} {id}");
    }
}

#[tokio::test]
async fn karmadas_cluster_proxy_finds_its_token_by_the_cluster() {
    let hub = server("hub").client();
    push(&hub, "uid-a", false).await.unwrap();
    let reference = cluster(&hub).await.spec.impersonator_secret_ref.unwrap();
    assert_eq!(
        reference,
        json!({"namespace": NAMESPACE, "name": "m1.uid-a.impersonator"})
    );
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
    let data = secrets.get("m1.uid-a.impersonator").await.unwrap().data.unwrap();
    let texts: Vec<_> = data
        .iter()
        .map(|(key, value)| (key.as_str(), value.0.as_slice()))
        .collect();
    assert_eq!(texts, [("token", PROXY.as_bytes())]);
}

#[tokio::test]
async fn a_replacement_that_fails_leaves_the_former_cluster_working() {
    let hub = server("hub").client();
    push(&hub, "uid-a", false).await.unwrap();
    let before = cluster(&hub).await;
    let failed = push(&refusing(&hub, (Method::PATCH, CLUSTER)), "uid-b", true).await;
    let message = error(failed);
    assert!(
        message.starts_with("m1 has not joined: its Cluster is unchanged; the same command continues"),
        "{message}"
    );
    assert!(
        !message.contains("unjoin"),
        "it would remove the former cluster: {message}"
    );
    assert_eq!(
        cluster(&hub).await.metadata.resource_version,
        before.metadata.resource_version
    );
    assert_eq!(token_in_use(&hub).await, "uid-a");
    push(&hub, "uid-b", true).await.unwrap();
    let after = cluster(&hub).await;
    assert_eq!(
        (after.spec.id.as_str(), after.spec.api_endpoint.as_str()),
        ("uid-b", "https://uid-b")
    );
    assert_eq!(after.metadata.uid, before.metadata.uid);
    assert_eq!(token_in_use(&hub).await, "uid-b");
    assert_eq!(
        names::<Secret>(&hub).await,
        ["m1.uid-b", "m1.uid-b.impersonator"],
        "the former tokens are removed"
    );
}

#[tokio::test]
async fn former_credentials_that_cannot_be_removed_are_named_and_removed_by_the_next_attempt() {
    let hub = server("hub").client();
    push(&hub, "uid-a", false).await.unwrap();
    let refused = refusing(&hub, (Method::DELETE, "/secrets/m1.uid-a"));
    let message = error(push(&refused, "uid-b", true).await);
    assert!(
        message.starts_with("m1 joined, but earlier credentials are left; run the same command again"),
        "{message}"
    );
    assert_eq!(token_in_use(&hub).await, "uid-b");
    push(&hub, "uid-b", true).await.unwrap();
    assert_eq!(names::<Secret>(&hub).await, ["m1.uid-b", "m1.uid-b.impersonator"]);
}

#[tokio::test]
async fn a_repeated_join_keeps_what_it_does_not_mention_and_replaces_the_secret_of_an_earlier_version() {
    let hub = server("hub").client();
    make_namespace(&hub, NAMESPACE).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
    apply(&secrets, json!({"metadata": {"name": "m1"}, "data": {"token": "dA=="}}))
        .await
        .unwrap();
    let by_hand = serde_json::from_value(json!({"metadata": {"name": "m1.by-hand"}})).unwrap();
    secrets.create(&PostParams::default(), &by_hand).await.unwrap();
    let reference = json!({"namespace": NAMESPACE, "name": "m1"});
    let spec = json!({
        "id": "uid-a", "syncMode": "Push", "region": "eu", "proxyURL": "http://proxy", "secretRef": reference,
    });
    apply::<Cluster>(
        &Api::all(hub.clone()),
        json!({"metadata": {"name": "m1"}, "spec": spec}),
    )
    .await
    .unwrap();
    let registration = Registration::check(&hub, "m1", "uid-a", false).await.unwrap();
    let mut spec = push_spec("uid-a");
    spec["proxyURL"] = Value::Null;
    registration.push(&account("new"), &account(PROXY), spec).await.unwrap();
    let after = cluster(&hub).await.spec;
    assert_eq!((after.region.as_str(), after.proxy_url.as_str()), ("eu", ""));
    assert_eq!(token_in_use(&hub).await, "new");
    assert_eq!(
        names::<Secret>(&hub).await,
        ["m1.by-hand", "m1.uid-a", "m1.uid-a.impersonator"],
        "a Secret of another program stays"
    );
}

/// Creates the Secret of an agent's account with its token, as the token controller does.
async fn granted(hub: &Client, id: &str) {
    make_namespace(hub, NAMESPACE).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
    let name = secret_name(&agent::account_name("m1"), id);
    let data = json!({"token": ByteString(id.as_bytes().to_vec())});
    let kind = "kubernetes.io/service-account-token";
    let secret = serde_json::from_value(json!({"metadata": {"name": name}, "type": kind, "data": data})).unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
}

async fn pull(hub: &Client, id: &str, replace: bool, file: &Path) -> anyhow::Result<()> {
    let spec = json!({"id": id, "syncMode": "Pull", "secretRef": null});
    let registration = Registration::check(hub, "m1", id, replace).await?;
    registration.pull("https://hub", spec, Destination::open(file)?).await
}

#[tokio::test]
async fn the_agent_of_a_replaced_cluster_keeps_its_token_until_the_new_one_has_joined() {
    let hub = server("hub").client();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.kubeconfig");
    let token = || {
        let text = std::fs::read(&file).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["users"][0]["user"]["token"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for id in ["uid-a", "uid-b"] {
        granted(&hub, id).await;
    }
    pull(&hub, "uid-a", false, &file).await.unwrap();
    assert_eq!(token(), "uid-a");
    let message = error(pull(&refusing(&hub, (Method::PATCH, CLUSTER)), "uid-b", true, &file).await);
    assert!(
        message.starts_with("m1 has not joined: its Cluster is unchanged"),
        "{message}"
    );
    assert_eq!(token(), "uid-a");
    assert!(
        names::<Secret>(&hub)
            .await
            .contains(&"bulkhead-agent-m1.uid-a".to_owned())
    );
    pull(&hub, "uid-b", true, &file).await.unwrap();
    assert_eq!(
        (token().as_str(), cluster(&hub).await.spec.id.as_str()),
        ("uid-b", "uid-b")
    );
    assert_eq!(names::<Secret>(&hub).await, ["bulkhead-agent-m1.uid-b"]);
    assert_eq!(names::<ServiceAccount>(&hub).await, ["bulkhead-agent-m1"]);
    // A Push member needs no agent.
    push(&hub, "uid-c", true).await.unwrap();
    assert_eq!(names::<Secret>(&hub).await, ["m1.uid-c", "m1.uid-c.impersonator"]);
    assert_eq!(names::<ServiceAccount>(&hub).await, [""; 0]);
}

#[tokio::test]
async fn of_two_joins_of_a_name_at_once_the_second_one_changes_nothing() {
    let hub = server("hub").client();
    let other = |server: Client| async move { push(&server, "uid-a", false).await.unwrap() };
    let message = error(push(&preceded(&hub, (Method::POST, "/clusters"), other), "uid-b", false).await);
    assert!(
        message.starts_with("another client registered m1 meanwhile"),
        "{message}"
    );
    assert_eq!(
        (cluster(&hub).await.spec.id.as_str(), token_in_use(&hub).await.as_str()),
        ("uid-a", "uid-a")
    );
    // The same with --replace-cluster on both sides.
    let other = |server: Client| async move { push(&server, "uid-b", true).await.unwrap() };
    let message = error(push(&preceded(&hub, (Method::GET, CLUSTER), other), "uid-c", true).await);
    assert!(
        message.starts_with("another client replaced or removed m1 meanwhile"),
        "{message}"
    );
    assert_eq!(
        (cluster(&hub).await.spec.id.as_str(), token_in_use(&hub).await.as_str()),
        ("uid-b", "uid-b")
    );
}

#[tokio::test]
async fn a_report_of_the_cluster_between_read_and_write_is_no_conflict() {
    let hub = server("hub").client();
    push(&hub, "uid-a", false).await.unwrap();
    let left = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(2));
    let reports = move |server: Client| {
        let left = std::sync::Arc::clone(&left);
        async move {
            let count = left.load(std::sync::atomic::Ordering::Relaxed);
            if count == 0 {
                return;
            }
            left.store(count - 1, std::sync::atomic::Ordering::Relaxed);
            let patch = Patch::Merge(json!({"status": {"kubernetesVersion": format!("v1.{count}")}}));
            Api::<Cluster>::all(server)
                .patch_status("m1", &PatchParams::default(), &patch)
                .await
                .unwrap();
        }
    };
    push(&preceded(&hub, (Method::PATCH, CLUSTER), reports), "uid-b", true)
        .await
        .unwrap();
    assert_eq!(cluster(&hub).await.spec.id, "uid-b");
}

#[tokio::test]
async fn a_cluster_that_joins_under_two_names_at_once_is_reported() {
    let hub = server("hub").client();
    let other = |server: Client| async move {
        let spec = json!({"id": "uid-a", "syncMode": "Push"});
        let twin = json!({"metadata": {"name": "m2"}, "spec": spec});
        apply::<Cluster>(&Api::all(server), twin).await.unwrap();
    };
    let message = error(push(&preceded(&hub, (Method::POST, "/clusters"), other), "uid-a", false).await);
    assert!(
        message.starts_with("m1 joined, but another client registered the same cluster as m2"),
        "{message}"
    );
}
