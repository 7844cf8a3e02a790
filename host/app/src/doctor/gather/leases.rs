//! Leases in the namespace of the installation: holders and modes.

use bulkhead_core::time::Time;
use k8s_openapi::api::coordination::v1 as k8s;
use kube::{Api, Client, ResourceExt};

use crate::doctor::checks;
use crate::doctor::facts::{Facts, Lease, Name};
use crate::run::leader::MODES;

pub(super) async fn gather(client: &Client, facts: &mut Facts) {
    let own = facts.installation.lease.clone();
    let namespace = own.as_ref().map_or("karmada-system", |name| &name.namespace).to_owned();
    let leases: Api<k8s::Lease> = Api::namespaced(client.clone(), &namespace);
    match leases.list(&Default::default()).await {
        Ok(list) => facts.leases = list.items.into_iter().map(lease).collect(),
        Err(error) => {
            facts.unread(checks::OWNERS, &format!("other Leases in {namespace}"), &error);
            // The account of the program may read its own Lease.
            if let Some(own) = own
                && let Ok(Some(found)) = leases.get_opt(&own.name).await
            {
                facts.leases.push(lease(found));
            }
        }
    }
}

fn lease(lease: k8s::Lease) -> Lease {
    let modes = lease.annotations().get(MODES).map(|modes| modes.split(',').map(str::to_owned).collect());
    let name = Name { namespace: lease.namespace().unwrap_or_default(), name: lease.name_any() };
    let spec = lease.spec.unwrap_or_default();
    Lease {
        name,
        holder: spec.holder_identity.unwrap_or_default(),
        acquired: spec.acquire_time.map(|time| Time::new(time.0)),
        renewed: spec.renew_time.map(|time| Time::new(time.0)),
        duration_s: spec.lease_duration_seconds.unwrap_or_default().into(),
        modes: modes.unwrap_or_default(),
    }
}
