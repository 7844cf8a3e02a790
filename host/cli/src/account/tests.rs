//! The command on an in-process control plane.

use bulkhead_apiserver::{ApiServer, Clock, Fidelity, Options, kinds};
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
    let options = Options {
        kinds: kinds::kubernetes(),
        fidelity: Fidelity::People,
        ..Options::new("hub", 1, clock)
    };
    let client = ApiServer::new(options).client();
    for name in namespaces {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::<Namespace>::all(client.clone())
            .create(&PostParams::default(), &namespace)
            .await
            .unwrap();
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
    let listed = Api::<K>::all(client.clone())
        .list(&ListParams::default())
        .await
        .unwrap();
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
        let mut leases = 0;
        for object in &objects {
            resource(object["kind"].as_str().unwrap()).unwrap();
            if object["metadata"]["name"]
                .as_str()
                .unwrap()
                .ends_with("-lease.elsewhere")
            {
                leases += 1;
                assert_eq!(
                    object["metadata"]["namespace"],
                    "elsewhere",
                    "{}: {object}",
                    mode.name()
                );
            }
            if object["kind"].as_str().unwrap().ends_with("Binding") {
                let subject = json!({"kind": "ServiceAccount", "name": "bulkhead", "namespace": "elsewhere"});
                assert_eq!(object["subjects"], json!([subject]), "{}", mode.name());
            }
        }
        let bindings = objects
            .iter()
            .filter(|object| object["kind"] == "ClusterRoleBinding")
            .count();
        assert_eq!((bindings, leases), (1, 2), "{}", mode.name());
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
    let account = Account {
        client: &client,
        namespace: "karmada-system",
        dry_run: false,
    };
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
    assert_eq!(
        names::<ClusterRole>(&client).await,
        ["bulkhead-finish", "bulkhead-report"]
    );
    let role = Api::<ClusterRole>::all(client.clone())
        .get("bulkhead-report")
        .await
        .unwrap();
    let verbs: Vec<_> = role
        .rules
        .iter()
        .flatten()
        .flat_map(|rule| rule.verbs.clone())
        .collect();
    assert!(
        !verbs.is_empty()
            && verbs
                .iter()
                .all(|verb| ["get", "list", "watch"].contains(&verb.as_str())),
        "{verbs:?}"
    );
}

/// Returns the bindings with their first subjects, as `name namespace/account`.
async fn bound(client: &Client) -> Vec<String> {
    let listed = Api::<ClusterRoleBinding>::all(client.clone())
        .list(&ListParams::default())
        .await
        .unwrap();
    let subject = |binding: &ClusterRoleBinding| {
        let subject = &binding.subjects.as_ref().unwrap()[0];
        format!(
            "{} {}/{}",
            binding.name_any(),
            subject.namespace.clone().unwrap_or_default(),
            subject.name
        )
    };
    listed.iter().map(subject).collect()
}

/// Grants the account of a namespace a mode with the names of earlier versions, which were those of every namespace.
async fn as_before(client: &Client, mode: Mode, namespace: &str, managed_by: Option<&str>) {
    let text = roles::roles(mode, namespace).replace(&format!(".{namespace}\n"), "\n");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    for mut object in documents.into_iter().filter(|document| !document.is_null()) {
        if let Some(manager) = managed_by {
            object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!(manager);
        }
        Account {
            client,
            namespace,
            dry_run: false,
        }
        .write(&object, false)
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn the_roles_of_an_earlier_mode_are_removed_and_named() {
    let client = control_plane(&["karmada-system", "karmada-cluster"]).await;
    let account = Account {
        client: &client,
        namespace: "karmada-system",
        dry_run: false,
    };
    account.apply(&[Mode::All, Mode::Interpret]).await.unwrap();
    let rehearsed = Account {
        client: &client,
        namespace: "karmada-system",
        dry_run: true,
    };
    let rehearsed = rehearsed.apply(&[Mode::Finish]).await.unwrap();
    assert!(
        rehearsed.contains(&"removed ClusterRole bulkhead-all (dry run)".to_owned()),
        "{rehearsed:?}"
    );
    assert_eq!(
        names::<ClusterRole>(&client).await,
        ["bulkhead-all", "bulkhead-interpret"]
    );
    let lines = account.apply(&[Mode::Finish]).await.unwrap();
    let mut removed: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("removed ")).collect();
    removed.sort_unstable();
    let expected = [
        "ClusterRole bulkhead-all",
        "ClusterRole bulkhead-interpret",
        "ClusterRoleBinding bulkhead-all",
        "ClusterRoleBinding bulkhead-interpret",
        "Role karmada-cluster/bulkhead-all",
        "Role karmada-system/bulkhead-all",
        "Role karmada-system/bulkhead-all-lease",
        "Role karmada-system/bulkhead-interpret-lease",
        "RoleBinding karmada-cluster/bulkhead-all",
        "RoleBinding karmada-system/bulkhead-all",
        "RoleBinding karmada-system/bulkhead-all-lease",
        "RoleBinding karmada-system/bulkhead-interpret-lease",
    ];
    assert_eq!(removed, expected);
    assert_eq!(names::<ClusterRole>(&client).await, ["bulkhead-finish"]);
    assert_eq!(names::<Role>(&client).await, ["bulkhead-finish-lease"]);
    assert_eq!(bound(&client).await, ["bulkhead-finish karmada-system/bulkhead"]);
}

#[tokio::test]
async fn accounts_of_two_namespaces_take_nothing_from_each_other() {
    let client = control_plane(&["karmada-system", "failover"]).await;
    for namespace in ["karmada-system", "failover", "karmada-system"] {
        Account {
            client: &client,
            namespace,
            dry_run: false,
        }
        .apply(&[Mode::Report])
        .await
        .unwrap();
    }
    let expected = [
        "bulkhead-report karmada-system/bulkhead",
        "bulkhead-report.failover failover/bulkhead",
    ];
    assert_eq!(bound(&client).await, expected);
    // The end of one does not touch the other.
    Account {
        client: &client,
        namespace: "failover",
        dry_run: false,
    }
    .apply(&[Mode::Finish])
    .await
    .unwrap();
    let expected = [
        "bulkhead-finish.failover failover/bulkhead",
        "bulkhead-report karmada-system/bulkhead",
    ];
    assert_eq!(bound(&client).await, expected);
}

#[tokio::test]
async fn a_binding_of_another_account_is_refused_before_anything_is_written() {
    let client = control_plane(&["karmada-system", "failover"]).await;
    as_before(&client, Mode::Report, "failover", None).await;
    let ours = Account {
        client: &client,
        namespace: "karmada-system",
        dry_run: false,
    };
    let refused = ours.apply(&[Mode::Finish, Mode::Report]).await.unwrap_err().to_string();
    let expected = "ClusterRoleBinding bulkhead-report gives its role to ServiceAccount failover/bulkhead";
    assert!(refused.starts_with(expected), "{refused}");
    assert_eq!(names::<ServiceAccount>(&client).await, [""; 0]);
    assert_eq!(names::<ClusterRole>(&client).await, ["bulkhead-report"]);
    // The remedy of the message.
    let theirs = Account {
        client: &client,
        namespace: "failover",
        dry_run: false,
    };
    let lines = theirs.apply(&[Mode::Report]).await.unwrap();
    assert!(
        lines.contains(&"removed ClusterRoleBinding bulkhead-report".to_owned()),
        "{lines:?}"
    );
    ours.apply(&[Mode::Finish, Mode::Report]).await.unwrap();
    assert_eq!(bound(&client).await.len(), 3);
}

#[tokio::test]
async fn bindings_of_helm_and_roles_in_use_are_kept() {
    let client = control_plane(&["karmada-system", "failover"]).await;
    as_before(&client, Mode::Evict, "failover", Some("Helm")).await;
    as_before(&client, Mode::Report, "failover", None).await;
    let user = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "auditors"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bulkhead-report"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "auditors"}],
    });
    let account = Account {
        client: &client,
        namespace: "failover",
        dry_run: false,
    };
    account.write(&user, false).await.unwrap();
    let lines = account.apply(&[Mode::Finish]).await.unwrap();
    assert!(
        lines.contains(&"kept ClusterRoleBinding bulkhead-evict: Helm manages it".to_owned()),
        "{lines:?}"
    );
    assert!(
        lines.contains(&"removed ClusterRoleBinding bulkhead-report".to_owned()),
        "{lines:?}"
    );
    let kept = ["bulkhead-evict", "bulkhead-finish.failover", "bulkhead-report"];
    assert_eq!(names::<ClusterRole>(&client).await, kept);
}

#[tokio::test]
async fn a_missing_namespace_is_found_before_the_first_write() {
    let client = control_plane(&["karmada-system"]).await;
    let account = Account {
        client: &client,
        namespace: "karmada-system",
        dry_run: false,
    };
    let refused = account.apply(&[Mode::Report, Mode::All]).await.unwrap_err().to_string();
    assert!(
        refused.starts_with("there is no namespace karmada-cluster on the control plane"),
        "{refused}"
    );
    assert_eq!(names::<ServiceAccount>(&client).await, [""; 0]);
    assert_eq!(names::<ClusterRole>(&client).await, [""; 0]);
}

/// Returns a client with another command at the same time: that one gives the account mode `evict` when this one writes
/// its first binding.
fn overtaken(server: Client) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = server.clone();
        async move {
            let writes = request.method() == http::Method::PATCH
                && !request.uri().query().unwrap_or_default().contains("dryRun");
            if writes && request.uri().path().ends_with("/clusterrolebindings/bulkhead-report") {
                let other = Account {
                    client: &server,
                    namespace: "karmada-system",
                    dry_run: false,
                };
                let account = other.manifests(&[Mode::Evict]).unwrap().remove(0);
                other.write(&account, false).await.unwrap();
            }
            Ok::<_, BoxError>(server.send(request).await?)
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn two_commands_at_once_are_reported() {
    let client = overtaken(control_plane(&["karmada-system"]).await);
    let account = Account {
        client: &client,
        namespace: "karmada-system",
        dry_run: false,
    };
    let refused = account.apply(&[Mode::Report]).await.unwrap_err().to_string();
    let expected = "another command changed ServiceAccount karmada-system/bulkhead meanwhile: its modes are evict, not \
                    report";
    assert!(refused.starts_with(expected), "{refused}");
    account.apply(&[Mode::Finish]).await.unwrap();
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let client = control_plane(&["karmada-system"]).await;
    let account = Account {
        client: &client,
        namespace: "karmada-system",
        dry_run: true,
    };
    let lines = account.apply(&[Mode::Evict]).await.unwrap();
    assert!(lines.iter().all(|line| line.ends_with(" (dry run)")), "{lines:?}");
    assert_eq!(names::<ServiceAccount>(&client).await, [""; 0]);
    assert_eq!(names::<ClusterRole>(&client).await, [""; 0]);
}

#[tokio::test]
async fn a_namespace_that_does_not_exist_is_named() {
    let client = control_plane(&["karmada-system"]).await;
    let account = Account {
        client: &client,
        namespace: "elsewhere",
        dry_run: false,
    };
    let refused = account.apply(&[Mode::Report]).await.unwrap_err().to_string();
    assert!(
        refused.starts_with("there is no namespace elsewhere on the control plane"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_token_is_requested_for_the_given_time() {
    let client = granting(control_plane(&["karmada-system"]).await);
    let account = Account {
        client: &client,
        namespace: "karmada-system",
        dry_run: false,
    };
    account.apply(&[Mode::Report]).await.unwrap();
    let (token, ends) = account.token(GoDuration::from_secs(7200)).await.unwrap();
    assert_eq!((token.as_str(), ends), ("for 7200 s", Time::from_millis(7_200_000)));
}

#[tokio::test]
async fn a_server_that_grants_no_token_is_an_error_that_names_the_account() {
    let client = control_plane(&["karmada-system"]).await;
    let account = Account {
        client: &client,
        namespace: "karmada-system",
        dry_run: false,
    };
    account.apply(&[Mode::Report]).await.unwrap();
    let refused = account
        .token(GoDuration::from_secs(7200))
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(refused, "requesting a token of ServiceAccount karmada-system/bulkhead");
}

#[tokio::test]
async fn the_roles_of_a_mode_are_removed_and_the_account_with_the_last_of_them() {
    let client = control_plane(&["karmada-system"]).await;
    let account = Account {
        client: &client,
        namespace: "karmada-system",
        dry_run: false,
    };
    account.apply(&[Mode::Report, Mode::Finish]).await.unwrap();
    let remove = async |modes: &[Mode], dry_run: bool| {
        let mut lines = Vec::new();
        remove(&client, "karmada-system", modes, dry_run, &mut lines)
            .await
            .map(|()| lines)
            .unwrap()
    };
    let rehearsed = remove(&[Mode::Report], true).await;
    assert!(
        rehearsed.contains(&"removed ClusterRole bulkhead-report (dry run)".to_owned()),
        "{rehearsed:?}"
    );
    let lines = remove(&[Mode::Report], false).await;
    assert!(
        lines.contains(&"removed ClusterRole bulkhead-report".to_owned()),
        "{lines:?}"
    );
    let kept = "kept ServiceAccount karmada-system/bulkhead: ClusterRoleBinding bulkhead-finish needs it";
    assert_eq!(lines.last().map(String::as_str), Some(kept));
    assert_eq!(names::<ClusterRole>(&client).await, ["bulkhead-finish"]);
    let lines = remove(&[Mode::Finish], false).await;
    assert_eq!(
        lines.last().map(String::as_str),
        Some("removed ServiceAccount karmada-system/bulkhead")
    );
    assert_eq!(names::<Role>(&client).await, [""; 0]);
    assert_eq!(remove(&[Mode::Finish, Mode::Report], false).await, [""; 0]);
}
