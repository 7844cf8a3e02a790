//! The heartbeat of a Pull cluster's agent (Karmada: `cluster_status_controller.go:initLeaseController`).

use bulkhead_api::Cluster;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Resource};

use crate::cluster::LEASE_NAMESPACE;
use crate::context::{Context, Scope};
use crate::controller::{Error, is_not_found};

const NAME: &str = "cluster-lease-controller";

/// Renews the lease of the agent's cluster four times per lease duration, for ever. A renewal that fails, or that is not
/// answered until the next one is due, is left for the next turn: the lease says by its age that nobody got through.
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

async fn renew(context: &Context, name: &str) -> Result<(), Error> {
    let Some(cluster) = context.stores.cluster(name) else { return Ok(()) };
    let api: Api<Lease> = Api::namespaced(context.hub.clone(), LEASE_NAMESPACE);
    let existing = api.get_opt(name).await.map_err(operation(name))?;
    let mut lease = existing.clone().unwrap_or_else(|| new_lease(name, &cluster));
    let duration_s = i32::try_from(context.flags.cluster_lease_duration.as_secs()).unwrap_or(i32::MAX);
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(name.to_owned()),
        lease_duration_seconds: Some(duration_s),
        renew_time: Some(MicroTime(context.clock.now().timestamp())),
        ..lease.spec.unwrap_or_default()
    });
    let written = match existing {
        None => api.create(&PostParams::default(), &lease).await,
        Some(_) => api.replace(name, &PostParams::default(), &lease).await,
    };
    match written {
        Err(error) if !is_not_found(&error) => Err(operation(name)(error)),
        _ => Ok(()),
    }
}

fn operation(name: &str) -> impl FnOnce(kube::Error) -> Error {
    Error::api(format!("renewing lease {LEASE_NAMESPACE}/{name}"))
}

fn new_lease(name: &str, cluster: &Cluster) -> Lease {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(LEASE_NAMESPACE.to_owned()),
        owner_references: cluster.owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    Lease { metadata, spec: None }
}
