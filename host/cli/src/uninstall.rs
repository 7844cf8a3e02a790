//! `bulkhead uninstall`: removes the objects and the annotations of an installation from its control plane.

mod annotations;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use bulkhead_api::ResourceInterpreterWebhookConfiguration;
use bulkhead_controllers::permissions::Mode;
use bulkhead_controllers::roles;
use bulkhead_core::time::Time;
use bulkhead_runtime::connection::WritePermit;
use bulkhead_runtime::controller::is_not_found;
use bulkhead_server::leader::MODES;
use bulkhead_server::{WEBHOOK_SECRET, hub, mode};
use clap::Args;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::account::{self, shown};
use crate::conflict::advice;
use crate::join::finish;

/// End of the names of the registered webhooks, and beginning of the annotations on objects of Bulkhead.
const OURS: &str = "bulkhead.dev";

/// Remove an installation from its control plane: webhook registrations, annotations, roles, account, certificate and
/// Lease.
///
/// Stop its processes first. Objects of other modes and of other installations are kept, and so are the definitions of
/// kinds. A repeated command removes the rest.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead uninstall --mode evict --dry-run
  bulkhead uninstall --mode report,finish,evict --kubeconfig karmada.kubeconfig")]
pub(crate) struct UninstallArguments {
    /// Modes of the installation, separated by commas; each has roles of its own.
    #[arg(long, required = true, value_delimiter = ',', value_name = "MODES", value_parser = mode::parse)]
    mode: Vec<Mode>,

    #[command(flatten)]
    hub: hub::HubArguments,

    /// Namespace of the account and of the Lease.
    #[arg(short, long, value_name = "NAMESPACE", default_value = roles::NAMESPACE)]
    namespace: String,

    /// Name of the Lease and of the webhook registrations.
    #[arg(long, value_name = "NAME", default_value = "bulkhead")]
    leader_elect_resource_name: String,

    /// Check the changes on the server without storing them.
    #[arg(long)]
    dry_run: bool,

    /// Remove the objects although a process renews the Lease.
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &UninstallArguments) -> ExitCode {
    finish(uninstall(arguments))
}

async fn uninstall(arguments: &UninstallArguments) -> anyhow::Result<String> {
    let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
    let installation = Installation {
        client: &hub.unguarded,
        namespace: &arguments.namespace,
        name: &arguments.leader_elect_resource_name,
        modes: &arguments.mode,
        dry_run: arguments.dry_run,
    };
    let mut lines = Vec::new();
    let removed = installation
        .remove(arguments.force, Time::new(bulkhead_server::now()), &mut lines)
        .await;
    match removed {
        Ok(()) if lines.is_empty() => Ok("there is nothing to remove".to_owned()),
        Ok(()) => Ok(lines.join("\n")),
        Err(error) if lines.is_empty() => Err(error),
        Err(error) => Err(error.context(format!("{}; removing the rest", lines.join("; ")))),
    }
}

/// Installation on a control plane.
struct Installation<'a> {
    client: &'a Client,
    namespace: &'a str,
    /// Name of the Lease and of the registrations.
    name: &'a str,
    /// Modes to remove.
    modes: &'a [Mode],
    /// True if the server checks each change and does not store it.
    dry_run: bool,
}

impl Installation<'_> {
    /// Removes the installation. Adds a line for each object to `lines`.
    ///
    /// # Errors
    ///
    /// A process runs in one of the modes and `force` is false, or the control plane refuses a request. The Lease is
    /// removed last, so that a repeated command knows the modes.
    async fn remove(&self, force: bool, now: Time, lines: &mut Vec<String>) -> anyhow::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), self.namespace);
        let lease = leases
            .get_opt(self.name)
            .await
            .with_context(|| format!("reading {}", self.lease()))?;
        let recorded = lease.as_ref().map(modes_of).unwrap_or_default();
        if let Some(lease) = lease.as_ref().filter(|lease| !force && is_held(lease, now)) {
            self.check_stopped(lease, &recorded)?;
        }
        // Karmada calls a registered interpreter about every object, so its registration goes first.
        if self.modes.contains(&Mode::Interpret) {
            let api: Api<ResourceInterpreterWebhookConfiguration> = Api::all(self.client.clone());
            let is_ours = |found: &ResourceInterpreterWebhookConfiguration| {
                found.webhooks.iter().all(|hook| is_our_hook(&hook.name))
            };
            lines.extend(self.delete(&api, "", self.name, is_ours).await?);
        }
        let remaining: Vec<_> = recorded
            .iter()
            .filter(|mode| !self.names(mode))
            .map(String::as_str)
            .collect();
        // Mode report writes nothing and has no Lease.
        let is_shared_removed = remaining.is_empty() && self.modes.iter().any(|mode| *mode != Mode::Report);
        if is_shared_removed {
            self.remove_shared(lines).await?;
        } else if !remaining.is_empty() {
            let kept = "its admission webhook, certificate and annotations";
            lines.push(format!(
                "kept {}, {kept}: the installation has mode {} too",
                self.lease(),
                remaining.join(",")
            ));
        }
        account::remove(self.client, self.namespace, self.modes, self.dry_run, lines).await?;
        if is_shared_removed {
            let is_ours = |found: &Lease| found.annotations().contains_key(MODES);
            lines.extend(self.delete(&leases, self.namespace, self.name, is_ours).await?);
        }
        Ok(())
    }

    /// Removes the objects and annotations that all modes share, except for the Lease.
    async fn remove_shared(&self, lines: &mut Vec<String>) -> anyhow::Result<()> {
        let admission: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let is_ours =
            |found: &MutatingWebhookConfiguration| found.webhooks.iter().flatten().all(|hook| is_our_hook(&hook.name));
        lines.extend(self.delete(&admission, "", self.name, is_ours).await?);
        let others = self.other_installations().await?;
        if others.is_empty() {
            annotations::clear(self.client, self.dry_run, lines).await?;
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), self.namespace);
            let is_ours = |found: &Secret| found.annotations().keys().any(|key| key.starts_with(OURS));
            lines.extend(self.delete(&secrets, self.namespace, WEBHOOK_SECRET, is_ours).await?);
        } else {
            let others = others.join(", ");
            lines.push(format!(
                "kept the annotations and the certificate: {others} is of another installation"
            ));
        }
        Ok(())
    }

    /// Returns the Leases of other installations on the control plane.
    async fn other_installations(&self) -> anyhow::Result<Vec<String>> {
        let leases: Api<Lease> = Api::all(self.client.clone());
        let listed = leases
            .list(&ListParams::default())
            .await
            .context("listing the Leases")?;
        let is_own =
            |lease: &Lease| lease.name_any() == self.name && lease.namespace().as_deref() == Some(self.namespace);
        let others = listed
            .items
            .iter()
            .filter(|lease| lease.annotations().contains_key(MODES) && !is_own(lease));
        Ok(others
            .map(|lease| shown("Lease", &lease.namespace().unwrap_or_default(), &lease.name_any()))
            .collect())
    }

    /// Checks that no process runs in one of the modes. The Lease is held.
    fn check_stopped(&self, lease: &Lease, recorded: &BTreeSet<String>) -> anyhow::Result<()> {
        if recorded.is_empty() || recorded.iter().any(|mode| self.names(mode)) {
            let holder = lease
                .spec
                .as_ref()
                .and_then(|spec| spec.holder_identity.as_deref())
                .unwrap_or_default();
            let modes = recorded.iter().map(String::as_str).collect::<Vec<_>>().join(",");
            bail!(
                "{holder} renews {} in mode {modes}; nothing was removed; stop all processes of the installation \
                 first, or use --force: a running process writes some of the objects again",
                self.lease()
            );
        }
        Ok(())
    }

    /// Returns true if a mode is one of those to remove.
    fn names(&self, mode: &str) -> bool {
        self.modes.iter().any(|known| known.name() == mode)
    }

    fn lease(&self) -> String {
        shown("Lease", self.namespace, self.name)
    }

    /// Deletes the version of an object that was read, if it is one of Bulkhead. Returns a line about it, `None` if
    /// there is none.
    async fn delete<K>(
        &self,
        api: &Api<K>,
        namespace: &str,
        name: &str,
        is_ours: impl Fn(&K) -> bool,
    ) -> anyhow::Result<Option<String>>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let shown = shown(&K::kind(&()), namespace, name);
        let found = api.get_opt(name).await.with_context(|| format!("reading {shown}"))?;
        let Some(found) = found else { return Ok(None) };
        if !is_ours(&found) {
            return Ok(Some(format!("kept {shown}: another program made it")));
        }
        let preconditions = Preconditions {
            resource_version: found.meta().resource_version.clone(),
            uid: None,
        };
        let parameters = DeleteParams {
            dry_run: self.dry_run,
            ..DeleteParams::default().preconditions(preconditions)
        };
        match api.delete(name, &parameters).await {
            Ok(_) => Ok(Some(format!("removed {shown}{}", note(self.dry_run)))),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => {
                let advice = advice(&error, "");
                Err(error).with_context(|| format!("removing {shown}{advice}"))
            }
        }
    }
}

/// Returns the end of a line about a change.
fn note(dry_run: bool) -> &'static str {
    if dry_run { " (dry run)" } else { "" }
}

fn is_our_hook(name: &str) -> bool {
    name.strip_suffix(OURS).is_some_and(|rest| rest.ends_with('.'))
}

/// Returns the modes that are recorded in a Lease.
fn modes_of(lease: &Lease) -> BTreeSet<String> {
    let modes = lease.annotations().get(MODES).map(String::as_str).unwrap_or_default();
    modes
        .split(',')
        .filter(|mode| !mode.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns true if a Lease has a holder and was renewed within its duration.
fn is_held(lease: &Lease, now: Time) -> bool {
    let Some(spec) = &lease.spec else { return false };
    let has_holder = spec.holder_identity.as_ref().is_some_and(|holder| !holder.is_empty());
    let lasts_ms = i64::from(spec.lease_duration_seconds.unwrap_or_default()) * 1000;
    let renewed = spec.renew_time.as_ref().map(|renewed| Time::new(renewed.0));
    has_holder && renewed.is_some_and(|renewed| now.millis_since(renewed) < lasts_ms)
}

#[cfg(test)]
mod tests;
