//! `bulkhead join` and `bulkhead unjoin`: member clusters of a control plane.

mod account;
mod agent;
mod leave;
#[cfg(test)]
mod testing;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bulkhead_api::Cluster;
use bulkhead_controllers::flags::GoDuration;
use bulkhead_controllers::{WritePermit, connect};
use clap::Args;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use self::account::{Account, apply, make_namespace, set_user};
use self::leave::Leaving;
pub(crate) use self::leave::check_member;
use crate::help;
use crate::kubeconfig::Destination;
use crate::run::hub;

/// Namespace of the Secrets with members' credentials, and of the objects created in a member (same as Karmada's).
const NAMESPACE: &str = "karmada-cluster";
/// Name of the service account in a Push member.
const ACCOUNT: &str = "bulkhead";
/// Name of the ClusterRoleBinding that grants that account cluster-admin.
const BINDING: &str = "bulkhead-controller-manager";
/// Maximum length of a member's name in bytes: a DNS label, minus the prefix of its execution namespace (same as
/// Karmada's).
const NAME_BYTES_MAX: usize = 48;

/// Register a member cluster.
///
/// Creates an account for Bulkhead in the member, stores its credentials on the control plane and creates its Cluster
/// object. With --pull, creates an account on the control plane for the agent in the member instead.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead join member1 --cluster-kubeconfig member1.kubeconfig
  bulkhead join member1 --cluster-kubeconfig member1.kubeconfig --cluster-region eu --dry-run
  bulkhead join member2 --cluster-kubeconfig member2.kubeconfig --pull agent.kubeconfig")]
pub(crate) struct JoinArguments {
    /// Name of the member cluster: lower-case letters, digits and hyphens.
    #[arg(value_parser = member_name)]
    name: String,

    /// Check the clusters and the name, and print the result. Nothing is written.
    #[arg(long)]
    dry_run: bool,

    /// Register a Pull member, in which `bulkhead agent` runs. The agent's kubeconfig for the control plane is
    /// written to this file.
    #[arg(long, value_name = "FILE")]
    pull: Option<PathBuf>,

    /// Join even if another physical cluster has this name. The existing Cluster object then refers to the new
    /// cluster, which receives the same workloads; those in the former cluster keep running, unmanaged. To move them
    /// instead, unjoin it first.
    #[arg(long)]
    replace_cluster: bool,

    /// Kubeconfig of the member, with permission to create accounts in it; with --pull, to read its kube-system
    /// namespace.
    #[arg(long, visible_alias = "member-kubeconfig", value_name = "FILE", help_heading = help::MEMBER)]
    cluster_kubeconfig: PathBuf,

    /// Context of the member's kubeconfig, overriding the current context.
    #[arg(long, visible_alias = "member-context", value_name = "NAME", help_heading = help::MEMBER)]
    cluster_context: Option<String>,

    /// Provider of the cluster, for placements.
    #[arg(long, default_value = "", help_heading = help::MEMBER)]
    cluster_provider: String,

    /// Region of the cluster, for placements.
    #[arg(long, default_value = "", help_heading = help::MEMBER)]
    cluster_region: String,

    /// Zones of the cluster, for placements.
    #[arg(long, value_delimiter = ',', help_heading = help::MEMBER)]
    cluster_zones: Vec<String>,

    #[command(flatten)]
    hub: hub::HubArguments,
}

/// Remove a member cluster.
///
/// Deletes its Cluster object and waits until its workloads are released; then removes its credentials on the control
/// plane, the account of its agent, and with --cluster-kubeconfig the account in the member.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead unjoin member1 --cluster-kubeconfig member1.kubeconfig
  bulkhead unjoin member1 --dry-run")]
pub(crate) struct UnjoinArguments {
    /// Name of the member cluster.
    name: String,

    /// Print the objects that would be removed, and remove none: the API servers only check the deletions.
    #[arg(long)]
    dry_run: bool,

    /// Maximum time to wait for the deletion of the Cluster object.
    #[arg(long, visible_alias = "timeout", value_name = "DURATION", default_value = "1m")]
    wait: GoDuration,

    /// Kubeconfig of the member, with permission to delete accounts in it; the objects that `join` created in it are
    /// deleted.
    #[arg(long, visible_alias = "member-kubeconfig", value_name = "FILE", help_heading = help::MEMBER)]
    cluster_kubeconfig: Option<PathBuf>,

    /// Context of the member's kubeconfig, overriding the current context.
    #[arg(long, visible_alias = "member-context", value_name = "NAME", requires = "cluster_kubeconfig",
          help_heading = help::MEMBER)]
    cluster_context: Option<String>,

    #[command(flatten)]
    hub: hub::HubArguments,
}

fn member_name(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_name = (1..=NAME_BYTES_MAX).contains(&text.len())
        && text.bytes().all(fits)
        && !text.starts_with('-')
        && !text.ends_with('-')
        // The Secret of a Push member would replace that of an agent.
        && !text.starts_with(agent::ACCOUNT_PREFIX);
    is_name.then(|| text.to_owned()).ok_or_else(|| {
        format!(
            "must be lower-case letters, digits and hyphens, not at the ends, at most {NAME_BYTES_MAX} characters, and \
             not start with {}",
            agent::ACCOUNT_PREFIX
        )
    })
}

/// Runs `join`.
pub(crate) fn join(arguments: &JoinArguments) -> ExitCode {
    finish(async {
        let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
        let (file, context) = (&arguments.cluster_kubeconfig, arguments.cluster_context.clone());
        let member = hub::config_in("the member's kubeconfig", file, context).await?;
        let client = connect(member.clone(), &WritePermit::unlimited(), &Arc::default())?;
        let id = cluster_id(&client).await.with_context(|| format!("reading kube-system of {}", member.cluster_url))?;
        let replaces = check_identity(&hub.unguarded, &arguments.name, &id, arguments.replace_cluster).await?;
        let (name, member_file) = (&arguments.name, file.display());
        if arguments.dry_run {
            return Ok(format!("{name} can join, with the id {id} (dry run)"));
        }
        // Opened first: with an unwritable path, the agent of a replaced cluster keeps its token.
        let destination = arguments.pull.as_deref().map(Destination::open).transpose()?;
        if replaces {
            agent::revoke(&hub.unguarded, name).await?;
        }
        let (Some(file), Some(destination)) = (&arguments.pull, destination) else {
            let registered = async {
                let about = || format!("creating an account in {}", member.cluster_url);
                let control_plane = control_plane_id(&hub.unguarded).await?;
                let account = push_account(&client, &control_plane, name).await.with_context(about)?;
                register_push(&hub.unguarded, arguments, &member, &account, &id).await
            };
            registered.await.with_context(|| {
                format!(
                    "{name} has not joined; `bulkhead unjoin {name} --cluster-kubeconfig {member_file}` removes the \
                     objects created so far"
                )
            })?;
            return Ok(format!("{name} joined: kubectl get cluster {name}"));
        };
        let registered = async {
            agent::allow(&hub, name, destination).await?;
            apply::<Cluster>(&Api::all(hub.unguarded.clone()), arguments.cluster("Pull", &id)).await?;
            agent::make_lease(&hub.unguarded, name).await
        };
        registered.await.with_context(|| {
            format!(
                "{name} has not joined; `bulkhead unjoin {name}` removes the objects created so far; the same command \
                 continues from them"
            )
        })?;
        Ok(format!(
            "{name} joined; it is ready once this runs in it:\n  bulkhead agent --cluster-name {name} --kubeconfig {} \
             --cluster-kubeconfig ...",
            file.display()
        ))
    })
}

/// Runs `unjoin`.
pub(crate) fn unjoin(arguments: &UnjoinArguments) -> ExitCode {
    finish(async {
        let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
        let member = match &arguments.cluster_kubeconfig {
            None => None,
            Some(file) => {
                let context = arguments.cluster_context.clone();
                let config = hub::config_in("the member's kubeconfig", file, context).await?;
                Some(connect(config, &WritePermit::unlimited(), &Arc::default())?)
            }
        };
        let (name, timeout) = (arguments.name.as_str(), arguments.wait.0);
        let dry_run = arguments.dry_run;
        Leaving { hub: hub.unguarded, member, name, timeout, dry_run }.leave().await
    })
}

/// Runs a command against a control plane and prints its result or error.
pub(crate) fn finish(work: impl Future<Output = anyhow::Result<String>>) -> ExitCode {
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")
        .and_then(|runtime| runtime.block_on(work));
    crate::exit::code(outcome.and_then(|text| {
        writeln!(anstream::stdout(), "{text}")?;
        Ok(true)
    }))
}

/// Returns the uid of `kube-system`, which identifies a cluster.
async fn cluster_id(client: &Client) -> anyhow::Result<String> {
    let system = Api::<Namespace>::all(client.clone()).get("kube-system").await?;
    Ok(system.metadata.uid.unwrap_or_default())
}

/// Returns the uid of `kube-system` of a control plane; empty if there is no such namespace.
async fn control_plane_id(hub: &Client) -> anyhow::Result<String> {
    let system = Api::<Namespace>::all(hub.clone()).get_opt("kube-system").await;
    let system = system.context("reading kube-system of the control plane")?;
    Ok(system.and_then(|system| system.metadata.uid).unwrap_or_default())
}

/// Checks the identity of the joining cluster. Returns true if it replaces another cluster of the name.
///
/// # Errors
///
/// The cluster is a member under another name, or the name belongs to another cluster and `replace` is not set.
async fn check_identity(hub: &Client, name: &str, id: &str, replace: bool) -> anyhow::Result<bool> {
    let mut replaces = false;
    for member in Api::<Cluster>::all(hub.clone()).list(&Default::default()).await?.items {
        let (other, member_id) = (member.metadata.name.as_deref().unwrap_or_default(), &member.spec.id);
        if member_id == id && other != name {
            bail!("this cluster is already a member: {other}");
        }
        if other != name || member_id.is_empty() || member_id == id {
            continue;
        }
        if !replace {
            bail!(
                "{name} is the name of another cluster: its kube-system has uid {member_id}, that of this one {id}; \
                 `bulkhead unjoin {name}` removes the other one, --replace-cluster leaves its workloads running, \
                 unmanaged"
            );
        }
        replaces = true;
    }
    Ok(replaces)
}

/// Creates a service account with cluster-admin permissions in the member. Control planes that share the member share
/// the account.
async fn push_account(client: &Client, control_plane: &str, name: &str) -> anyhow::Result<Account> {
    let binding = json!({
        "metadata": {"name": BINDING},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    });
    apply::<ClusterRoleBinding>(&Api::all(client.clone()), binding).await?;
    let account = Account::make(client, NAMESPACE, ACCOUNT).await?;
    if !control_plane.is_empty() {
        let accounts = Api::namespaced(client.clone(), NAMESPACE);
        set_user(&accounts, ACCOUNT, control_plane, Some(name)).await?;
    }
    Ok(account)
}

async fn register_push(
    hub: &Client,
    arguments: &JoinArguments,
    config: &Config,
    account: &Account,
    id: &str,
) -> anyhow::Result<()> {
    let name = &arguments.name;
    make_namespace(hub, NAMESPACE).await?;
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
    if let Some(proxy) = &config.proxy_url {
        spec["proxyURL"] = json!(proxy.to_string());
    }
    if config.accept_invalid_certs || account.ca_bundle.is_empty() {
        spec["insecureSkipTLSVerification"] = json!(true);
    }
    apply::<Cluster>(&Api::all(hub.clone()), cluster).await
}

impl JoinArguments {
    /// Builds the fields of the Cluster that Push and Pull members have in common.
    fn cluster(&self, sync_mode: &str, id: &str) -> Value {
        let mut spec = json!({"id": id, "syncMode": sync_mode, "zones": self.cluster_zones});
        let texts = [("provider", &self.cluster_provider), ("region", &self.cluster_region)];
        for (field, value) in texts.into_iter().filter(|(_, value)| !value.is_empty()) {
            spec[field] = json!(value);
        }
        json!({"metadata": {"name": self.name}, "spec": spec})
    }
}

#[cfg(test)]
mod tests {
    use super::testing::server;
    use super::*;

    #[tokio::test]
    async fn another_cluster_under_a_used_name_is_refused_without_the_flag() {
        let hub = server("hub").client();
        for (name, id) in [("member1", "uid-a"), ("made-by-hand", "")] {
            let cluster = json!({"metadata": {"name": name}, "spec": {"id": id, "syncMode": "Push"}});
            apply::<Cluster>(&Api::all(hub.clone()), cluster).await.unwrap();
        }
        let check = async |name: &str, id: &str, replace: bool, expected: &str| {
            let refused = check_identity(&hub, name, id, replace).await.err();
            let text = refused.map(|error| error.to_string()).unwrap_or_default();
            assert!(text.starts_with(expected) && text.is_empty() == expected.is_empty(), "{name} {id}: {text}");
        };
        // Repeated join of the same cluster.
        check("member1", "uid-a", false, "").await;
        check("member1", "uid-b", false, "member1 is the name of another cluster").await;
        check("member1", "uid-b", true, "").await;
        check("member2", "uid-a", false, "this cluster is already a member: member1").await;
        check("member2", "uid-a", true, "this cluster is already a member: member1").await;
        check("made-by-hand", "uid-c", false, "").await;
        // The agent of the replaced cluster loses its account.
        for (name, id, expected) in [("member1", "uid-b", true), ("member1", "uid-a", false), ("m3", "uid-c", false)] {
            assert_eq!(check_identity(&hub, name, id, true).await.unwrap(), expected, "{name} {id}");
        }
    }

    #[test]
    fn a_name_fits_wherever_a_member_is_named() {
        for right in ["m1", "eu-west-1", "a", &"a".repeat(NAME_BYTES_MAX)] {
            assert_eq!(member_name(right).as_deref(), Ok(right));
        }
        for wrong in ["", "M1", "m.1", "-m", "m-", "m_1", "é", "bulkhead-agent-m1", &"a".repeat(NAME_BYTES_MAX + 1)] {
            assert!(member_name(wrong).is_err(), "{wrong:?}");
        }
    }
}
