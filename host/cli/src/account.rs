//! `bulkhead account`: the account that `bulkhead run` uses in a mode, with its roles and its kubeconfig.

mod bindings;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use bulkhead_controllers::flags::GoDuration;
use bulkhead_controllers::permissions::Mode;
use bulkhead_controllers::roles::{self, ACCOUNT};
use bulkhead_core::time::Time;
use bulkhead_runtime::connection::WritePermit;
use bulkhead_server::leader::MODES;
use bulkhead_server::{hub, mode};
use clap::{Args, ValueEnum};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use self::bindings::Binding;
use crate::exit;
use crate::join::finish;
use crate::kubeconfig::{Access, Destination, Trust};

/// Field manager of the objects.
const MANAGER: &str = "bulkhead-account";

/// Create the account of `bulkhead run` in a mode: ServiceAccount, roles and kubeconfig.
///
/// Prints the manifests. With --apply it applies them and removes the roles that the account has from other modes, and
/// with --write-kubeconfig it also requests a token. Repeat the command to renew the token: a running process reads its
/// kubeconfig again.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead account --mode report
  bulkhead account --mode report --apply --write-kubeconfig bulkhead.kubeconfig")]
pub(crate) struct AccountArguments {
    /// Modes of the process, separated by commas; each has roles of its own. Name the modes of all processes that use
    /// the account.
    #[arg(long, required = true, value_delimiter = ',', value_name = "MODES", value_parser = mode::parse)]
    mode: Vec<Mode>,

    #[command(flatten)]
    hub: hub::HubArguments,

    /// Namespace of the account and of the Lease.
    #[arg(short, long, value_name = "NAMESPACE", default_value = roles::NAMESPACE)]
    namespace: String,

    /// Apply the manifests to the control plane instead of printing them.
    #[arg(long)]
    apply: bool,

    /// Check the manifests on the server without storing them.
    #[arg(long, requires = "apply", conflicts_with = "write_kubeconfig")]
    dry_run: bool,

    /// Request a token for the account, and write a kubeconfig with it to this file.
    #[arg(long, value_name = "FILE", requires = "apply")]
    write_kubeconfig: Option<PathBuf>,

    /// Requested validity of the token; the API server can grant less.
    #[arg(long, value_name = "DURATION", default_value = "720h", requires = "write_kubeconfig")]
    duration: GoDuration,

    /// Format of the manifests.
    #[arg(short, long, value_enum, default_value_t = Output::Yaml, conflicts_with = "apply")]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Documents with a comment about each rule.
    Yaml,
    /// A List.
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: &AccountArguments) -> ExitCode {
    if arguments.apply {
        finish(apply(arguments))
    } else {
        exit::code(print(arguments).map(|()| true))
    }
}

/// Returns the modes in order, each of them once.
fn distinct(modes: &[Mode]) -> Vec<Mode> {
    let mut modes = modes.to_vec();
    modes.sort_unstable();
    modes.dedup();
    modes
}

/// Returns the names of the modes, separated by commas.
fn mode_names(modes: &[Mode]) -> String {
    distinct(modes)
        .into_iter()
        .map(Mode::name)
        .collect::<Vec<_>>()
        .join(",")
}

/// Returns the manifests of several modes as YAML documents.
fn manifests(modes: &[Mode], namespace: &str) -> String {
    let roles = distinct(modes).into_iter().map(|mode| roles::roles(mode, namespace));
    std::iter::once(roles::account(namespace)).chain(roles).collect()
}

/// Returns the manifests of several modes as objects.
fn objects(modes: &[Mode], namespace: &str) -> anyhow::Result<Vec<Value>> {
    let parsed: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&manifests(modes, namespace));
    let documents = parsed.map_err(|error| anyhow!("parsing the manifests: {error}"))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

fn print(arguments: &AccountArguments) -> anyhow::Result<()> {
    let (modes, namespace) = (&arguments.mode, arguments.namespace.as_str());
    let mut out = anstream::stdout().lock();
    match arguments.output {
        Output::Yaml => write!(out, "{}", manifests(modes, namespace))?,
        Output::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects(modes, namespace)?});
            writeln!(out, "{}", serde_json::to_string_pretty(&list)?)?;
        }
    }
    Ok(())
}

async fn apply(arguments: &AccountArguments) -> anyhow::Result<String> {
    let destination = arguments
        .write_kubeconfig
        .as_deref()
        .map(Destination::open)
        .transpose()?;
    let config = arguments.hub.config().await?;
    let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
    let account = Account {
        client: &hub.unguarded,
        namespace: &arguments.namespace,
        dry_run: arguments.dry_run,
    };
    let mut lines = account.apply(&arguments.mode).await?;
    if let (Some(path), Some(destination)) = (&arguments.write_kubeconfig, destination) {
        let (token, ends) = account.token(arguments.duration).await?;
        let access = Access {
            server: &hub.address,
            user: ACCOUNT,
            token: &token,
            trust: Trust::of(&config)?,
            tls_server_name: config.tls_server_name.clone(),
            proxy_url: config.proxy_url.as_ref().map(ToString::to_string),
        };
        destination.write(&access)?;
        lines.push(format!("wrote {}; its token expires at {ends}", path.display()));
    }
    Ok(lines.join("\n"))
}

/// Account on a control plane.
struct Account<'a> {
    client: &'a Client,
    namespace: &'a str,
    /// True if the server checks each write and does not store it.
    dry_run: bool,
}

/// Returns a text in an object; empty if there is none.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns kind, namespace and name of an object; the namespace is empty for one without.
fn identity(object: &Value) -> (&str, &str, &str) {
    (
        text(object, "/kind"),
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    )
}

/// Formats kind, namespace and name.
pub(crate) fn shown(kind: &str, namespace: &str, name: &str) -> String {
    let place = if namespace.is_empty() {
        String::new()
    } else {
        format!("{namespace}/")
    };
    format!("{kind} {place}{name}")
}

/// Removes the roles that the account in a namespace has in these modes, and the account once it has no role. Adds a
/// line for each object to `lines`.
///
/// # Errors
///
/// The control plane refuses a request. The lines name the objects that were removed before.
pub(crate) async fn remove(
    client: &Client,
    namespace: &str,
    modes: &[Mode],
    dry_run: bool,
    lines: &mut Vec<String>,
) -> anyhow::Result<()> {
    Account {
        client,
        namespace,
        dry_run,
    }
    .remove_modes(modes, lines)
    .await
}

impl Account<'_> {
    /// Applies the account with the roles of the modes, and removes the roles that it has from other modes. Returns a
    /// line for each object.
    ///
    /// # Errors
    ///
    /// A namespace does not exist, a binding belongs to another account, the server refuses a role (nothing was written
    /// then), or another command changed the account meanwhile.
    async fn apply(&self, modes: &[Mode]) -> anyhow::Result<Vec<String>> {
        let manifests = self.manifests(modes)?;
        let bindings = self.check(&manifests).await?;
        let mut lines = Vec::new();
        for manifest in &manifests {
            self.write(manifest, self.dry_run).await?;
            let (kind, namespace, name) = identity(manifest);
            lines.push(format!("applied {}{}", shown(kind, namespace, name), self.note()));
        }
        // Later than the new roles, so that a process of the account loses nothing that its mode needs.
        let removed = self.remove_left_over(&bindings, &manifests).await;
        let removed = removed.with_context(|| format!("{}; removing the roles of other modes", lines.join("; ")))?;
        lines.extend(removed);
        if !self.dry_run {
            self.confirm(modes).await?;
        }
        Ok(lines)
    }

    /// Returns the manifests. The ServiceAccount records the modes, so that two commands at once notice each other.
    fn manifests(&self, modes: &[Mode]) -> anyhow::Result<Vec<Value>> {
        let mut manifests = objects(modes, self.namespace)?;
        let accounts = manifests
            .iter_mut()
            .filter(|manifest| text(manifest, "/kind") == "ServiceAccount");
        for account in accounts {
            account["metadata"]["annotations"] = json!({MODES: mode_names(modes)});
        }
        Ok(manifests)
    }

    /// Checks everything that can be checked before the first write. Returns the bindings of the control plane.
    async fn check(&self, manifests: &[Value]) -> anyhow::Result<Vec<Binding>> {
        let namespaces: BTreeSet<_> = manifests
            .iter()
            .map(|manifest| text(manifest, "/metadata/namespace"))
            .collect();
        for namespace in namespaces.into_iter().filter(|namespace| !namespace.is_empty()) {
            self.check_namespace(namespace).await?;
        }
        let bindings = bindings::list(self.client).await?;
        let account = self.subject();
        for manifest in manifests {
            bindings
                .iter()
                .try_for_each(|binding| binding.check(manifest, &account))?;
        }
        // The server refuses a role with rights that the user has not. A binding can be checked only once its role
        // exists.
        for manifest in manifests
            .iter()
            .filter(|manifest| !text(manifest, "/kind").ends_with("Binding"))
        {
            self.write(manifest, true).await.context("nothing was written")?;
        }
        Ok(bindings)
    }

    /// Checks that the account has the modes of this command, as the last step.
    async fn confirm(&self, modes: &[Mode]) -> anyhow::Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), self.namespace);
        let about = || format!("reading ServiceAccount {}/{ACCOUNT}", self.namespace);
        let account = accounts.get_opt(ACCOUNT).await.with_context(about)?;
        let mut annotations = account
            .and_then(|account| account.metadata.annotations)
            .unwrap_or_default();
        let found = annotations.remove(MODES).unwrap_or_default();
        let wanted = mode_names(modes);
        if found != wanted {
            bail!(
                "another command changed ServiceAccount {}/{ACCOUNT} meanwhile: its modes are {}, not {wanted}, and it \
                 may have roles of both; run `bulkhead account --apply` once more with the wanted modes",
                self.namespace,
                if found.is_empty() { "unknown" } else { found.as_str() }
            );
        }
        Ok(())
    }

    /// Applies a manifest.
    async fn write(&self, manifest: &Value, dry_run: bool) -> anyhow::Result<()> {
        let (kind, namespace, name) = identity(manifest);
        let api = self.api(kind, namespace)?;
        let parameters = PatchParams {
            dry_run,
            ..PatchParams::apply(MANAGER).force()
        };
        let applied = api.patch(name, &parameters, &Patch::Apply(manifest)).await;
        applied.with_context(|| format!("applying {}", shown(kind, namespace, name)))?;
        Ok(())
    }

    /// Returns the API of a kind, in a namespace unless that is empty.
    fn api(&self, kind: &str, namespace: &str) -> anyhow::Result<Api<DynamicObject>> {
        let (client, resource) = (self.client.clone(), resource(kind)?);
        Ok(if namespace.is_empty() {
            Api::all_with(client, &resource)
        } else {
            Api::namespaced_with(client, namespace, &resource)
        })
    }

    /// Returns the account as the subject of a binding.
    fn subject(&self) -> String {
        format!("ServiceAccount {}/{ACCOUNT}", self.namespace)
    }

    /// Returns the end of a line about a write.
    fn note(&self) -> &'static str {
        if self.dry_run { " (dry run)" } else { "" }
    }

    /// Checks that a namespace exists.
    async fn check_namespace(&self, name: &str) -> anyhow::Result<()> {
        let found = Api::<Namespace>::all(self.client.clone()).get_opt(name).await;
        if found.with_context(|| format!("reading Namespace {name}"))?.is_none() {
            bail!("there is no namespace {name} on the control plane; `kubectl create namespace {name}` creates it");
        }
        Ok(())
    }

    /// Requests a token. Returns it with its end.
    async fn token(&self, duration: GoDuration) -> anyhow::Result<(String, Time)> {
        let about = || format!("requesting a token of ServiceAccount {}/{ACCOUNT}", self.namespace);
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), self.namespace);
        let spec = TokenRequestSpec {
            expiration_seconds: Some(duration.as_secs()),
            ..TokenRequestSpec::default()
        };
        let request = TokenRequest {
            spec,
            ..TokenRequest::default()
        };
        let granted = accounts
            .create_token_request(ACCOUNT, &PostParams::default(), &request)
            .await;
        let status = granted.with_context(about)?.status.with_context(about)?;
        Ok((status.token, Time::new(status.expiration_timestamp.0)))
    }
}

/// Returns the resource of a kind in the manifests.
fn resource(kind: &str) -> anyhow::Result<ApiResource> {
    Ok(match kind {
        "ServiceAccount" => ApiResource::erase::<ServiceAccount>(&()),
        "ClusterRole" => ApiResource::erase::<ClusterRole>(&()),
        "ClusterRoleBinding" => ApiResource::erase::<ClusterRoleBinding>(&()),
        "Role" => ApiResource::erase::<Role>(&()),
        "RoleBinding" => ApiResource::erase::<RoleBinding>(&()),
        other => bail!("the manifests have an object of kind {other}"),
    })
}

#[cfg(test)]
mod tests;
