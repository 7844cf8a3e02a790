//! `bulkhead join` and `bulkhead unjoin`: member clusters of a control plane.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bulkhead_api::Cluster;
use bulkhead_controllers::{WritePermit, connect};
use clap::Args;
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::run::hub;

/// Namespace of the Secrets with members' credentials, and of what is made in a member (as Karmada's).
const NAMESPACE: &str = "karmada-cluster";
/// Who writes these objects.
const MANAGER: &str = "bulkhead-join";
/// How long the member may take to make the token.
const TOKEN_WAIT: Duration = Duration::from_secs(30);

/// Make a cluster a member: an account for Bulkhead in it, its credentials on the control plane, its Cluster object.
#[derive(Args)]
pub(crate) struct JoinArguments {
    /// Name of the member cluster.
    name: String,

    #[command(flatten)]
    hub: hub::Arguments,

    /// Kubeconfig of the member, with the right to make accounts there.
    #[arg(long, value_name = "FILE")]
    member_kubeconfig: PathBuf,

    /// Context of the member's kubeconfig, in place of its current one.
    #[arg(long, value_name = "NAME")]
    member_context: Option<String>,

    /// Provider, for placements.
    #[arg(long, default_value = "")]
    cluster_provider: String,

    /// Region, for placements.
    #[arg(long, default_value = "")]
    cluster_region: String,

    /// Zones, for placements.
    #[arg(long, value_delimiter = ',')]
    cluster_zones: Vec<String>,
}

/// Take a member cluster out. Its Cluster object waits until what ran there has been let go.
#[derive(Args)]
pub(crate) struct UnjoinArguments {
    /// Name of the member cluster.
    name: String,

    #[command(flatten)]
    hub: hub::Arguments,
}

/// Runs `join`.
pub(crate) fn join(arguments: &JoinArguments) -> ExitCode {
    finish(async {
        let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
        let member = member_config(arguments).await?;
        let account = account(&member).await.with_context(|| format!("making an account in {}", member.cluster_url))?;
        register(&hub.unguarded, arguments, &member, &account).await?;
        Ok(format!("{} joined: kubectl get cluster {}", arguments.name, arguments.name))
    })
}

/// Runs `unjoin`.
pub(crate) fn unjoin(arguments: &UnjoinArguments) -> ExitCode {
    finish(async {
        let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
        let clusters: Api<Cluster> = Api::all(hub.unguarded);
        let deleted = clusters.delete(&arguments.name, &DeleteParams::default()).await;
        deleted.with_context(|| format!("deleting the Cluster {}", arguments.name))?;
        Ok(format!("{} leaves; its Secret in {NAMESPACE} goes with it", arguments.name))
    })
}

fn finish(work: impl Future<Output = anyhow::Result<String>>) -> ExitCode {
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")
        .and_then(|runtime| runtime.block_on(work));
    match outcome {
        Ok(text) => {
            let _ = writeln!(anstream::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(anstream::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn member_config(arguments: &JoinArguments) -> anyhow::Result<Config> {
    let about = || format!("reading the member's kubeconfig {}", arguments.member_kubeconfig.display());
    let file = Kubeconfig::read_from(&arguments.member_kubeconfig).with_context(about)?;
    let options = KubeConfigOptions { context: arguments.member_context.clone(), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(file, &options).await.with_context(about)
}

/// What Bulkhead needs to reach the member.
struct Account {
    token: String,
    ca_bundle: Vec<u8>,
    /// Uid of the member's `kube-system`, which tells clusters apart.
    cluster_id: String,
}

/// Makes a service account with a token that does not run out.
async fn account(config: &Config) -> anyhow::Result<Account> {
    let client = connect(config.clone(), &WritePermit::unlimited())?;
    let name = "bulkhead";
    apply::<Namespace>(&Api::all(client.clone()), json!({"metadata": {"name": NAMESPACE}})).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    apply(&accounts, json!({"metadata": {"name": name, "namespace": NAMESPACE}})).await?;
    let binding = json!({
        "metadata": {"name": "bulkhead-controller-manager"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
    });
    apply::<ClusterRoleBinding>(&Api::all(client.clone()), binding).await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let secret = json!({
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {"kubernetes.io/service-account.name": name}},
        "type": "kubernetes.io/service-account-token",
    });
    apply(&secrets, secret).await?;
    let started = tokio::time::Instant::now();
    let (token, ca_bundle) = loop {
        let data = secrets.get(name).await?.data.unwrap_or_default();
        if let Some(token) = data.get("token").filter(|token| !token.0.is_empty()) {
            let token = String::from_utf8(token.0.clone()).context("the token is not text")?;
            break (token, data.get("ca.crt").map(|ca| ca.0.clone()).unwrap_or_default());
        }
        if started.elapsed() > TOKEN_WAIT {
            bail!("the token of {NAMESPACE}/{name} was not made; is the token controller running there?");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let system = Api::<Namespace>::all(client).get("kube-system").await?;
    Ok(Account { token, ca_bundle, cluster_id: system.metadata.uid.unwrap_or_default() })
}

async fn register(hub: &Client, arguments: &JoinArguments, config: &Config, account: &Account) -> anyhow::Result<()> {
    let name = &arguments.name;
    let existing: Vec<_> = Api::<Cluster>::all(hub.clone()).list(&Default::default()).await?.items;
    let twin = existing.iter().find(|cluster| {
        cluster.spec.id == account.cluster_id && cluster.metadata.name.as_deref() != Some(name.as_str())
    });
    if let Some(twin) = twin {
        bail!("this cluster is a member already: {}", twin.metadata.name.as_deref().unwrap_or_default());
    }
    apply::<Namespace>(&Api::all(hub.clone()), json!({"metadata": {"name": NAMESPACE}})).await?;
    let bytes = |bytes: &[u8]| k8s_openapi::ByteString(bytes.to_vec());
    let secret = json!({
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"token": bytes(account.token.as_bytes()), "caBundle": bytes(&account.ca_bundle)},
    });
    apply::<Secret>(&Api::namespaced(hub.clone(), NAMESPACE), secret).await?;
    let mut spec = json!({
        "id": account.cluster_id,
        "syncMode": "Push",
        "apiEndpoint": config.cluster_url.to_string().trim_end_matches('/'),
        "secretRef": {"namespace": NAMESPACE, "name": name},
        "zones": arguments.cluster_zones,
    });
    let texts = [("provider", &arguments.cluster_provider), ("region", &arguments.cluster_region)];
    for (field, value) in texts.into_iter().filter(|(_, value)| !value.is_empty()) {
        spec[field] = json!(value);
    }
    if config.accept_invalid_certs || account.ca_bundle.is_empty() {
        spec["insecureSkipTLSVerification"] = json!(true);
    }
    let cluster = json!({"metadata": {"name": name}, "spec": spec});
    apply::<Cluster>(&Api::all(hub.clone()), cluster).await
}

/// Applies an object on the server side.
async fn apply<K>(api: &Api<K>, mut object: Value) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let patched = api.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object)).await;
    patched.with_context(|| format!("applying {} {name}", K::kind(&())))?;
    Ok(())
}
