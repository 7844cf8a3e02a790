//! Lease heartbeat of a Pull cluster's agent (Karmada: `cluster_status_controller.go:initLeaseController`).

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::PostParams;

use crate::cluster::LEASE_NAMESPACE;
use crate::context::{Context, Scope};
use crate::controller::{Error, is_not_found};

const NAME: &str = "cluster-lease-controller";

/// Renews the lease of the agent's cluster four times per lease duration until the future is dropped. A renewal that
/// fails, or that is not answered before the next one is due, is not retried on its own: the age of the lease shows
/// the outage.
pub(crate) async fn run(context: Context) {
    let Scope::Agent(cluster) = context.scope.clone() else { return std::future::pending().await };
    let period = context.flags.cluster_lease_duration.0 / 4;
    let mut ticks = tokio::time::interval(period);
    loop {
        ticks.tick().await;
        let renewed = tokio::time::timeout(period, renew(&context, &cluster)).await;
        let unanswered = |_| Err(operation(&cluster)(kube::Error::Service("no answer in time".into())));
        if let Err(error) = renewed.unwrap_or_else(unanswered) {
            context.failures.count(NAME, &error);
        }
    }
}

/// Writes the current time into the Lease. `bulkhead join` creates it, or the cluster controller if it is missing.
/// Agents cannot create Leases, because a role cannot restrict `create` to a name.
async fn renew(context: &Context, name: &str) -> Result<(), Error> {
    if context.stores.cluster(name).is_none() {
        return Ok(());
    }
    let api: Api<Lease> = Api::namespaced(context.hub.clone(), LEASE_NAMESPACE);
    let Some(mut lease) = api.get_opt(name).await.map_err(operation(name))? else {
        return Err(Error::NotYet(format!("lease {LEASE_NAMESPACE}/{name} does not exist yet")));
    };
    let duration_s = i32::try_from(context.flags.cluster_lease_duration.as_secs()).unwrap_or(i32::MAX);
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(name.to_owned()),
        lease_duration_seconds: Some(duration_s),
        renew_time: Some(MicroTime(context.clock.now().timestamp())),
        ..lease.spec.unwrap_or_default()
    });
    match api.replace(name, &PostParams::default(), &lease).await {
        Err(error) if !is_not_found(&error) => Err(operation(name)(error)),
        _ => Ok(()),
    }
}

fn operation(name: &str) -> impl FnOnce(kube::Error) -> Error {
    Error::api(format!("renewing lease {LEASE_NAMESPACE}/{name}"))
}
