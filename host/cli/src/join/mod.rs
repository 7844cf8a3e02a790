//! `bulkhead join` and `bulkhead unjoin`: member clusters of a control plane.

mod account;
mod agent;
mod gone;
mod leave;
mod register;
mod removal;
#[cfg(test)]
mod testing;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bulkhead_controllers::connect;
use bulkhead_controllers::flags::GoDuration;
use bulkhead_runtime::connection::WritePermit;
use bulkhead_server::help;
use bulkhead_server::hub;
use clap::Args;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::config::AuthInfo;
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use self::account::{Account, TOKEN_WAIT, apply, set_user};
use self::leave::Leaving;
pub(crate) use self::leave::check_member;
use self::register::Registration;
use crate::block_on::block_on;
use crate::kubeconfig::Destination;

/// Namespace of the Secrets with members' credentials, and of the objects created in a member (same as Karmada's).
const NAMESPACE: &str = "karmada-cluster";
/// Name of the service account in a Push member.
const ACCOUNT: &str = "bulkhead";
/// Name of the service account that Karmada's cluster proxy impersonates users with, as `karmadactl join` names it.
const IMPERSONATOR: &str = "karmada-impersonator";
/// Name of the ClusterRoleBinding that grants that account cluster-admin.
const BINDING: &str = "bulkhead-controller-manager";
/// Maximum length of a member's name in bytes: a DNS label, minus the prefix of its execution namespace (same as
/// Karmada's).
const NAME_BYTES_MAX: usize = 48;
/// Interval between the attempts to use the token of a new account.
const TOKEN_INTERVAL: Duration = Duration::from_millis(500);

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
    /// instead, unjoin it first. The credentials of the former cluster are removed last: if the command fails, it stays
    /// a member.
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

    /// Uid of a control plane that no longer exists, and that had this name for the cluster. Only the member is cleaned
    /// up: the account in it is removed, unless another control plane uses it. No control plane is contacted.
    #[arg(long, value_name = "UID", requires = "cluster_kubeconfig", conflicts_with_all = ["kubeconfig", "context"],
          help_heading = help::MEMBER)]
    gone_control_plane: Option<String>,

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
        let id = cluster_id(&client)
            .await
            .with_context(|| format!("reading kube-system of {}", member.cluster_url))?;
        let name = &arguments.name;
        let mut registration = Registration::check(&hub.unguarded, name, &id, arguments.replace_cluster).await?;
        if arguments.dry_run {
            return Ok(format!("{name} can join, with the id {id} (dry run)"));
        }
        // Opened before any object is created, so that an unwritable path fails first.
        let destination = arguments.pull.as_deref().map(Destination::open).transpose()?;
        let (Some(path), Some(destination)) = (&arguments.pull, destination) else {
            registration.undo = format!("{} --cluster-kubeconfig {}", registration.undo, file.display());
            let made = async {
                let about = || format!("creating an account in {}", member.cluster_url);
                let control_plane = control_plane_id(&hub.unguarded).await?;
                let account = push_account(&client, &control_plane, name).await.with_context(about)?;
                check_token(&member, &account.token, &id).await?;
                let impersonator = Account::make_impersonator(&client).await.with_context(about)?;
                anyhow::Ok((account, impersonator))
            };
            let (account, impersonator) = made.await.with_context(|| registration.not_joined())?;
            registration
                .push(
                    &account,
                    &impersonator,
                    arguments.push_spec(&registration, &member, &account),
                )
                .await?;
            return Ok(format!("{name} joined: kubectl get cluster {name}"));
        };
        registration
            .pull(&hub.address, arguments.pull_spec(&registration), destination)
            .await?;
        Ok(format!(
            "{name} joined; it is ready once this runs in it:\n  bulkhead agent --cluster-name {name} --kubeconfig {} \
             --cluster-kubeconfig ...",
            path.display()
        ))
    })
}

/// Runs `unjoin`.
pub(crate) fn unjoin(arguments: &UnjoinArguments) -> ExitCode {
    finish(async {
        let (name, timeout, dry_run) = (arguments.name.as_str(), arguments.wait.0, arguments.dry_run);
        if let Some(control_plane) = &arguments.gone_control_plane {
            let member = arguments
                .member()
                .await?
                .context("--gone-control-plane needs --cluster-kubeconfig")?;
            return gone::forget(&member, name, control_plane, dry_run).await;
        }
        let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
        let member = arguments.member().await?;
        Leaving {
            hub: hub.unguarded,
            member,
            name,
            timeout,
            dry_run,
        }
        .leave()
        .await
    })
}

impl UnjoinArguments {
    /// Returns a client of the member, if its kubeconfig is given.
    async fn member(&self) -> anyhow::Result<Option<Client>> {
        let Some(file) = &self.cluster_kubeconfig else {
            return Ok(None);
        };
        let config = hub::config_in("the member's kubeconfig", file, self.cluster_context.clone()).await?;
        Ok(Some(connect(config, &WritePermit::unlimited(), &Arc::default())?))
    }
}

/// Runs a command against a control plane and prints its result or error.
pub(crate) fn finish(work: impl Future<Output = anyhow::Result<String>>) -> ExitCode {
    crate::exit::code(block_on(work).and_then(|text| {
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

/// Waits until the API server of a member accepts the token of a new account, and its permissions.
///
/// # Errors
///
/// The token is not accepted within [`TOKEN_WAIT`], or by another cluster.
async fn check_token(config: &Config, token: &str, id: &str) -> anyhow::Result<()> {
    let mut config = config.clone();
    config.auth_info = AuthInfo::default();
    config.auth_info.token = Some(token.to_owned().into());
    let client = connect(config, &WritePermit::unlimited(), &Arc::default())?;
    let started = tokio::time::Instant::now();
    loop {
        match cluster_id(&client).await {
            Ok(found) if found == id => return Ok(()),
            Ok(found) => bail!("its API server answers for another cluster: kube-system has uid {found}, not {id}"),
            Err(error) if started.elapsed() > TOKEN_WAIT => {
                return Err(error).context("its API server does not accept the token of the new account");
            }
            Err(_) => tokio::time::sleep(TOKEN_INTERVAL).await,
        }
    }
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
    let account = Account::make(client, NAMESPACE, ACCOUNT, ACCOUNT).await?;
    if !control_plane.is_empty() {
        let accounts = Api::namespaced(client.clone(), NAMESPACE);
        set_user(&accounts, ACCOUNT, control_plane, Some(name)).await?;
    }
    Ok(account)
}

/// Fields of a Cluster about the connection to a Push member.
const CONNECTION: [&str; 5] = [
    "apiEndpoint",
    "secretRef",
    "impersonatorSecretRef",
    "proxyURL",
    "insecureSkipTLSVerification",
];

impl JoinArguments {
    /// Returns the fields of the Cluster that Push and Pull members have in common. Omitted properties keep their
    /// values, unless those are the values of another cluster.
    fn spec(&self, sync_mode: &str, registration: &Registration<'_>) -> Value {
        let mut spec = json!({"id": registration.id, "syncMode": sync_mode});
        let zones = &self.cluster_zones;
        for (field, value, is_given) in [
            (
                "provider",
                json!(self.cluster_provider),
                !self.cluster_provider.is_empty(),
            ),
            ("region", json!(self.cluster_region), !self.cluster_region.is_empty()),
            ("zones", json!(zones), !zones.is_empty()),
        ] {
            if is_given {
                spec[field] = value;
            } else if registration.takes_name() {
                spec[field] = Value::Null;
            }
        }
        spec
    }

    /// Returns the fields of the Cluster of a Push member, except for its Secrets.
    fn push_spec(&self, registration: &Registration<'_>, config: &Config, account: &Account) -> Value {
        let mut spec = self.spec("Push", registration);
        spec["apiEndpoint"] = json!(config.cluster_url.to_string().trim_end_matches('/'));
        spec["proxyURL"] = json!(config.proxy_url.as_ref().map(ToString::to_string));
        let is_unverified = config.accept_invalid_certs || account.ca_bundle.is_empty();
        spec["insecureSkipTLSVerification"] = json!(is_unverified.then_some(true));
        spec
    }

    /// Returns the fields of the Cluster of a Pull member.
    fn pull_spec(&self, registration: &Registration<'_>) -> Value {
        let mut spec = self.spec("Pull", registration);
        if registration.takes_name() {
            for field in CONNECTION {
                spec[field] = Value::Null;
            }
        }
        spec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_wherever_a_member_is_named() {
        for right in ["m1", "eu-west-1", "a", &"a".repeat(NAME_BYTES_MAX)] {
            assert_eq!(member_name(right).as_deref(), Ok(right));
        }
        for wrong in [
            "",
            "M1",
            "m.1",
            "-m",
            "m-",
            "m_1",
            "é",
            "bulkhead-agent-m1",
            &"a".repeat(NAME_BYTES_MAX + 1),
        ] {
            assert!(member_name(wrong).is_err(), "{wrong:?}");
        }
    }
}
