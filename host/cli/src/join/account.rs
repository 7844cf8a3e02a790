//! Service accounts with a token that does not expire.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bulkhead_runtime::controller::is_conflict;
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{IMPERSONATOR, NAMESPACE};

/// Field manager of the objects written by `join`.
pub(super) const MANAGER: &str = "bulkhead-join";
/// Label of namespaces, and of the account for Karmada's cluster proxy, that `join` created.
pub(super) const MADE_BY: (&str, &str) = ("app.kubernetes.io/managed-by", MANAGER);
/// Prefix of the annotations of an account with the control planes that use it. The uid of the control plane's
/// `kube-system` follows; the value is the name that it has for the cluster.
const USED_BY: &str = "control-plane.bulkhead.dev/";
/// Maximum time to wait for the token controller to create the token.
pub(super) const TOKEN_WAIT: Duration = Duration::from_secs(30);

/// Credentials for an API server.
pub(super) struct Account {
    /// Bearer token.
    pub(super) token: String,
    /// CA bundle that verifies the server's certificate, in PEM.
    pub(super) ca_bundle: Vec<u8>,
}

impl Account {
    /// Creates a service account with that name and waits for its token in a Secret.
    pub(super) async fn make(client: &Client, namespace: &str, name: &str, secret: &str) -> anyhow::Result<Self> {
        make_namespace(client, namespace).await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
        apply(&accounts, json!({"metadata": {"name": name, "namespace": namespace}})).await?;
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let annotations = json!({"kubernetes.io/service-account.name": name});
        let metadata = json!({"name": secret, "namespace": namespace, "annotations": annotations});
        apply(
            &secrets,
            json!({"metadata": metadata, "type": "kubernetes.io/service-account-token"}),
        )
        .await?;
        let started = tokio::time::Instant::now();
        loop {
            let read = secrets
                .get(secret)
                .await
                .with_context(|| format!("reading the Secret {namespace}/{secret}"))?;
            let data = read.data.unwrap_or_default();
            if let Some(token) = data.get("token").filter(|token| !token.0.is_empty()) {
                let token = String::from_utf8(token.0.clone()).context("the token is not text")?;
                let ca_bundle = data.get("ca.crt").map(|ca| ca.0.clone()).unwrap_or_default();
                return Ok(Self { token, ca_bundle });
            }
            if started.elapsed() > TOKEN_WAIT {
                bail!("the token of {namespace}/{name} was not created; check that the token controller runs there");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Creates the service account that Karmada's cluster proxy uses in a member. Karmada grants it the permissions;
    /// without Karmada it has none. An account that `karmadactl` created for another control plane is used as it is, and
    /// does not get the `managed-by` label.
    pub(super) async fn make_impersonator(client: &Client) -> anyhow::Result<Self> {
        make_namespace(client, NAMESPACE).await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
        let (label, value) = MADE_BY;
        let account = json!({"metadata": {"name": IMPERSONATOR, "labels": {label: value}}});
        let account = serde_json::from_value(account).context("building a ServiceAccount")?;
        // Not applied: `make` applies the account without the label, and would remove it.
        match accounts.create(&PostParams::default(), &account).await {
            Err(error) if !is_conflict(&error) => {
                return Err(error).with_context(|| format!("creating the ServiceAccount {IMPERSONATOR}"));
            }
            _ => {}
        }
        Self::make(client, NAMESPACE, IMPERSONATOR, IMPERSONATOR).await
    }
}

/// Records in an account that a control plane uses it under this name of the cluster, or with `None` that it does not.
pub(super) async fn set_user(
    accounts: &Api<ServiceAccount>,
    account: &str,
    control_plane: &str,
    name: Option<&str>,
) -> anyhow::Result<()> {
    let annotations = json!({format!("{USED_BY}{control_plane}"): name});
    // Not applied: the configuration that the next `join` applies has no such annotation, and would remove it.
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    let patched = accounts.patch(account, &PatchParams::default(), &patch).await;
    patched.with_context(|| format!("annotating the ServiceAccount {account}"))?;
    Ok(())
}

/// Returns the control planes that use an account: their uids, with the names that they have for its cluster.
pub(super) async fn users(accounts: &Api<ServiceAccount>, account: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let found = accounts
        .get_opt(account)
        .await
        .with_context(|| format!("reading the ServiceAccount {account}"))?;
    let annotations = found.map(|found| found.annotations().clone()).unwrap_or_default();
    let user = |(key, name): (String, String)| Some((key.strip_prefix(USED_BY)?.to_owned(), name));
    Ok(annotations.into_iter().filter_map(user).collect())
}

/// Creates a namespace with the `managed-by` label, unless it exists.
pub(super) async fn make_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let namespaces = Api::<Namespace>::all(client.clone());
    if namespaces
        .get_opt(name)
        .await
        .with_context(|| format!("reading the Namespace {name}"))?
        .is_some()
    {
        return Ok(());
    }
    let (label, value) = MADE_BY;
    apply(
        &namespaces,
        json!({"metadata": {"name": name, "labels": {label: value}}}),
    )
    .await
}

/// Applies an object with server-side apply, forcing conflicts.
pub(super) async fn apply<K>(api: &Api<K>, mut object: Value) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let patched = api
        .patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object))
        .await;
    patched.with_context(|| format!("applying {} {name}", K::kind(&())))?;
    Ok(())
}

/// Returns the names of the Secrets that `join` made for an owner, those of earlier versions included.
pub(super) async fn secrets_of(secrets: &Api<Secret>, owner: &str) -> anyhow::Result<Vec<String>> {
    let all = secrets.list(&ListParams::default()).await;
    let all = all.with_context(|| format!("listing the Secrets in {NAMESPACE}"))?;
    // A Secret with this name may belong to another program.
    let is_ours = |secret: &&Secret| {
        secret
            .managed_fields()
            .iter()
            .any(|by| by.manager.as_deref() == Some(MANAGER))
    };
    let of_owner = |name: &String| {
        let rest = name.strip_prefix(owner);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    Ok(all
        .items
        .iter()
        .filter(is_ours)
        .map(|secret| secret.name_any())
        .filter(of_owner)
        .collect())
}
