//! Lease heartbeat of a Pull cluster's agent (Karmada: `cluster_status_controller.go:initLeaseController`).

use std::sync::Arc;

use bulkhead_core::names::execution_namespace;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{Error, is_not_found};
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client};

use crate::contact::Contacts;
use crate::flags::Flags;
use crate::heartbeat::{self, LEASE_NAMESPACE, Unreported};
use crate::members::Scope;
use crate::stores::Stores;

const NAME: &str = "cluster-lease-controller";

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) clock: Clock,
    pub(crate) contacts: Arc<Contacts>,
    pub(crate) failures: Arc<Failures>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) hub: Client,
    pub(crate) scope: Scope,
    pub(crate) stores: Arc<Stores>,
}

/// Renews the lease of the agent's cluster at the configured interval until the future is dropped. A renewal that fails,
/// or that is not answered before the next one is due, is not retried on its own: the age of the lease shows the outage.
pub(crate) async fn run(deps: Dependencies) {
    let Scope::Agent(cluster) = deps.scope.clone() else {
        return std::future::pending().await;
    };
    let period = deps.flags.cluster_lease_renew_interval();
    let mut ticks = tokio::time::interval(period);
    loop {
        ticks.tick().await;
        let renewed = tokio::time::timeout(period, renew(&deps, &cluster)).await;
        let unanswered = |_| Err(operation(&cluster)(kube::Error::Service("no answer in time".into())));
        if let Err(error) = renewed.unwrap_or_else(unanswered) {
            deps.failures.count(NAME, &error);
        }
    }
}

/// Writes the current time into the Lease, and if there are reports that the control plane does not have yet, for
/// example because writes failed. `bulkhead join` creates it, or the cluster controller if it is missing.
/// Agents cannot create Leases, because a role cannot restrict `create` to a name.
async fn renew(deps: &Dependencies, name: &str) -> Result<(), Error> {
    if deps.stores.cluster(name).is_none() {
        return Ok(());
    }
    let api: Api<Lease> = Api::namespaced(deps.hub.clone(), LEASE_NAMESPACE);
    let Some(mut lease) = api.get_opt(name).await.map_err(operation(name))? else {
        return Err(Error::NotYet(format!(
            "lease {LEASE_NAMESPACE}/{name} does not exist yet"
        )));
    };
    let duration_s = i32::try_from(deps.flags.cluster_lease_duration.as_secs()).unwrap_or(i32::MAX);
    let renew_time = MicroTime(deps.clock.now());
    heartbeat::mark(&mut lease, &renew_time, unreported(deps, name));
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(name.to_owned()),
        lease_duration_seconds: Some(duration_s),
        renew_time: Some(renew_time),
        ..lease.spec.unwrap_or_default()
    });
    match api.replace(name, &PostParams::default(), &lease).await {
        Err(error) if !is_not_found(&error) => Err(operation(name)(error)),
        _ => Ok(()),
    }
}

/// Returns the Works of the cluster that have a report which this process cannot confirm.
fn unreported(deps: &Dependencies, cluster: &str) -> Unreported {
    if !deps.stores.works.has_synced() {
        return Unreported::all();
    }
    let works = deps.stores.works.list_namespace(&execution_namespace(cluster));
    let with_report = works.iter().filter(|work| !work.status.manifest_statuses.is_empty());
    deps.contacts.unreported(with_report.map(|work| Key::of(&**work)))
}

fn operation(name: &str) -> impl FnOnce(kube::Error) -> Error {
    Error::api(format!("renewing lease {LEASE_NAMESPACE}/{name}"))
}

#[cfg(test)]
mod tests;
