//! The command on an in-process control plane.

use bulkhead_controlplane::{ApiServer, Clock, Fidelity, Options, kinds};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::ResourceExt as _;
use kube::api::ListParams;
use kube::client::Body;
use tower::BoxError;

use super::*;

/// Creates a control plane with namespaces.
async fn control_plane(namespaces: &[&str]) -> Client {
    let clock = Clock::new(Time::from_millis(0).timestamp());
    let options = Options { kinds: kinds::kubernetes(), fidelity: Fidelity::People, ..Options::new("hub", 1, clock) };
    let client = ApiServer::new(options).client();
    for name in namespaces {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    }
    client
}

/// Grants tokens, which the in-process server does not. A token contains the requested seconds.
fn granting(server: Client) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = server.clone();
        async move {
            if !request.uri().path().ends_with("/serviceaccounts/bulkhead/token") {
                return Ok::<_, BoxError>(server.send(request).await?);
            }
            let asked = request.into_body().collect().await?.to_bytes();
            let mut answer: Value = serde_json::from_slice(&asked)?;
            let seconds = answer["spec"]["expirationSeconds"].as_i64().unwrap_or_default();
            let ends = Time::from_millis(0).plus_seconds(seconds).to_string();
            answer["status"] = json!({"token": format!("for {seconds} s"), "expirationTimestamp": ends});
            Ok(Response::new(Body::from(serde_json::to_vec(&answer)?)))
        }
    });
    Client::new(service, "default")
}

async fn names<K>(client: &Client) -> Vec<String>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let listed = Api::<K>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    listed.iter().map(|object| object.name_any()).collect()
}

#[test]
fn the_manifests_of_each_mode_are_objects_of_known_kinds_for_one_account() {
    for mode in Mode::ALL {
        let objects = objects(&[mode], "elsewhere").unwrap();
        assert_eq!(objects[0]["kind"], "ServiceAccount");
        assert_eq!(
            objects[0]["metadata"],
            json!({
                "name": "bulkhead",
                "namespace": "elsewhere",
                "labels": {"app.kubernetes.io/name": "bulkhead", "app.kubernetes.io/component": "rbac"},
            })
        );
        for object in &objects {
            resource(object["kind"].as_str().unwrap()).unwrap();
            if object["metadata"]["name"].as_str().unwrap().ends_with("-lease") {
                assert_eq!(object["metadata"]["namespace"], "elsewhere", "{}: {object}", mode.name());
            }
            if object["kind"].as_str().unwrap().ends_with("Binding") {
                let subject = json!({"kind": "ServiceAccount", "name": "bulkhead", "namespace": "elsewhere"});
                assert_eq!(object["subjects"], json!([subject]), "{}", mode.name());
            }
        }
        let bindings = objects.iter().filter(|object| object["kind"] == "ClusterRoleBinding").count();
        assert_eq!(bindings, 1, "{}", mode.name());
    }
}

#[test]
fn modes_that_are_named_twice_have_their_roles_once() {
    let modes = [Mode::Finish, Mode::Interpret, Mode::Finish];
    let objects = objects(&modes, "karmada-system").unwrap();
    let roles = objects.iter().filter(|object| object["kind"] == "ClusterRole");
    let names: Vec<_> = roles.map(|role| role["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bulkhead-finish", "bulkhead-interpret"]);
}

#[tokio::test]
async fn applying_twice_leaves_one_account_with_the_roles_of_both_modes() {
    let client = control_plane(&["karmada-system"]).await;
    let account = Account { client: &client, namespace: "karmada-system", dry_run: false };
    let lines = account.apply(&[Mode::Report]).await.unwrap();
    let expected = [
        "applied ServiceAccount karmada-system/bulkhead",
        "applied ClusterRole bulkhead-report",
        "applied ClusterRoleBinding bulkhead-report",
        "applied Role karmada-system/bulkhead-report-lease",
        "applied RoleBinding karmada-system/bulkhead-report-lease",
    ];
    assert_eq!(lines, expected);
    account.apply(&[Mode::Report, Mode::Finish]).await.unwrap();
    assert_eq!(names::<ServiceAccount>(&client).await, ["bulkhead"]);
    assert_eq!(names::<ClusterRole>(&client).await, ["bulkhead-finish", "bulkhead-report"]);
    let role = Api::<ClusterRole>::all(client.clone()).get("bulkhead-report").await.unwrap();
    let verbs: Vec<_> = role.rules.iter().flatten().flat_map(|rule| rule.verbs.clone()).collect();
    assert!(!verbs.is_empty() && verbs.iter().all(|verb| ["list", "watch"].contains(&verb.as_str())), "{verbs:?}");
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let client = control_plane(&["karmada-system"]).await;
    let account = Account { client: &client, namespace: "karmada-system", dry_run: true };
    let lines = account.apply(&[Mode::Evict]).await.unwrap();
    assert!(lines.iter().all(|line| line.ends_with(" (dry run)")), "{lines:?}");
    assert_eq!(names::<ServiceAccount>(&client).await, [""; 0]);
    assert_eq!(names::<ClusterRole>(&client).await, [""; 0]);
}

#[tokio::test]
async fn a_namespace_that_does_not_exist_is_named() {
    let client = control_plane(&["karmada-system"]).await;
    let account = Account { client: &client, namespace: "elsewhere", dry_run: false };
    let refused = account.apply(&[Mode::Report]).await.unwrap_err().to_string();
    assert!(refused.starts_with("there is no namespace elsewhere on the control plane"), "{refused}");
}

#[tokio::test]
async fn a_token_is_requested_for_the_given_time() {
    let client = granting(control_plane(&["karmada-system"]).await);
    let account = Account { client: &client, namespace: "karmada-system", dry_run: false };
    account.apply(&[Mode::Report]).await.unwrap();
    let (token, ends) = account.token(GoDuration::from_secs(7200)).await.unwrap();
    assert_eq!((token.as_str(), ends), ("for 7200 s", Time::from_millis(7_200_000)));
}

#[tokio::test]
async fn a_server_that_grants_no_token_is_an_error_that_names_the_account() {
    let client = control_plane(&["karmada-system"]).await;
    let account = Account { client: &client, namespace: "karmada-system", dry_run: false };
    account.apply(&[Mode::Report]).await.unwrap();
    let refused = account.token(GoDuration::from_secs(7200)).await.unwrap_err().to_string();
    assert_eq!(refused, "requesting a token of ServiceAccount karmada-system/bulkhead");
}
