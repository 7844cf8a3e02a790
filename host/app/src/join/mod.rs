//! `bulkhead join` and `bulkhead unjoin`: member clusters of a control plane.

mod account;
mod agent;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bulkhead_api::Cluster;
use bulkhead_controllers::{WritePermit, connect};
use clap::Args;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::DeleteParams;
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use self::account::{Account, apply};
use crate::run::hub;

/// Namespace of the Secrets with members' credentials, and of what is made in a member (as Karmada's).
const NAMESPACE: &str = "karmada-cluster";

/// Make a cluster a member: an account for Bulkhead in it, its credentials on the control plane, its Cluster object.
/// With --pull it is the other way round: an account on the control plane for the agent in the member.
#[derive(Args)]
pub(crate) struct JoinArguments {
    /// Name of the member cluster.
    name: String,

    #[command(flatten)]
    hub: hub::HubArguments,

    /// Kubeconfig of the member, with the right to make accounts there; for --pull, to read its kube-system namespace.
    #[arg(long, value_name = "FILE")]
    member_kubeconfig: PathBuf,

    /// The member is not reached from here: `bulkhead agent` runs in it. Its kubeconfig for the control plane is
    /// written to this file.
    #[arg(long, value_name = "FILE")]
    pull: Option<PathBuf>,

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
    hub: hub::HubArguments,
}

/// Runs `join`.
pub(crate) fn join(arguments: &JoinArguments) -> ExitCode {
    finish(async {
        let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
        let (file, context) = (&arguments.member_kubeconfig, arguments.member_context.clone());
        let member = hub::config_in("the member's kubeconfig", file, context).await?;
        let client = connect(member.clone(), &WritePermit::unlimited(), &Arc::default())?;
        let id = cluster_id(&client).await.with_context(|| format!("reading kube-system of {}", member.cluster_url))?;
        refuse_twin(&hub.unguarded, &arguments.name, &id).await?;
        let name = &arguments.name;
        let Some(file) = &arguments.pull else {
            let about = || format!("making an account in {}", member.cluster_url);
            let account = push_account(&client).await.with_context(about)?;
            register_push(&hub.unguarded, arguments, &member, &account, &id).await?;
            return Ok(format!("{name} joined: kubectl get cluster {name}"));
        };
        apply::<Cluster>(&Api::all(hub.unguarded.clone()), arguments.cluster("Pull", &id)).await?;
        agent::allow(&hub, name, file).await?;
        Ok(format!(
            "{name} joined; it is ready once this runs in it:\n  bulkhead agent --cluster-name {name} --kubeconfig {} \
             --member-kubeconfig ...",
            file.display()
        ))
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

/// Runs a command that talks to a control plane, and prints what it came to.
pub(crate) fn finish(work: impl Future<Output = anyhow::Result<String>>) -> ExitCode {
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

/// Uid of `kube-system`, which tells clusters apart.
async fn cluster_id(client: &Client) -> anyhow::Result<String> {
    let system = Api::<Namespace>::all(client.clone()).get("kube-system").await?;
    Ok(system.metadata.uid.unwrap_or_default())
}

async fn refuse_twin(hub: &Client, name: &str, id: &str) -> anyhow::Result<()> {
    let existing = Api::<Cluster>::all(hub.clone()).list(&Default::default()).await?.items;
    let is_twin = |cluster: &&Cluster| cluster.spec.id == id && cluster.metadata.name.as_deref() != Some(name);
    match existing.iter().find(is_twin) {
        Some(twin) => bail!("this cluster is a member already: {}", twin.metadata.name.as_deref().unwrap_or_default()),
        None => Ok(()),
    }
}

/// An account in the member that may do everything there.
async fn push_account(client: &Client) -> anyhow::Result<Account> {
    let binding = json!({
        "metadata": {"name": "bulkhead-controller-manager"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "bulkhead", "namespace": NAMESPACE}],
    });
    apply::<ClusterRoleBinding>(&Api::all(client.clone()), binding).await?;
    Account::make(client, NAMESPACE, "bulkhead").await
}

async fn register_push(
    hub: &Client,
    arguments: &JoinArguments,
    config: &Config,
    account: &Account,
    id: &str,
) -> anyhow::Result<()> {
    let name = &arguments.name;
    apply::<Namespace>(&Api::all(hub.clone()), json!({"metadata": {"name": NAMESPACE}})).await?;
    let bytes = |bytes: &[u8]| k8s_openapi::ByteString(bytes.to_vec());
    let secret = json!({
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"token": bytes(account.token.as_bytes()), "caBundle": bytes(&account.ca_bundle)},
    });
    apply::<Secret>(&Api::namespaced(hub.clone(), NAMESPACE), secret).await?;
    let mut cluster = arguments.cluster("Push", id);
    let spec = &mut cluster["spec"];
    spec["apiEndpoint"] = json!(config.cluster_url.to_string().trim_end_matches('/'));
    spec["secretRef"] = json!({"namespace": NAMESPACE, "name": name});
    if config.accept_invalid_certs || account.ca_bundle.is_empty() {
        spec["insecureSkipTLSVerification"] = json!(true);
    }
    apply::<Cluster>(&Api::all(hub.clone()), cluster).await
}

impl JoinArguments {
    /// The Cluster, as far as both modes have it in common.
    fn cluster(&self, sync_mode: &str, id: &str) -> Value {
        let mut spec = json!({"id": id, "syncMode": sync_mode, "zones": self.cluster_zones});
        let texts = [("provider", &self.cluster_provider), ("region", &self.cluster_region)];
        for (field, value) in texts.into_iter().filter(|(_, value)| !value.is_empty()) {
            spec[field] = json!(value);
        }
        json!({"metadata": {"name": self.name}, "spec": spec})
    }
}
