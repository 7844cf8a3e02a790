//! Leases in the namespace of the installation, and those of Karmada's controllers: holders and modes.

use bulkhead_core::time::Time;
use bulkhead_server::leader::MODES;
use k8s_openapi::api::coordination::v1 as k8s;
use kube::{Api, Client, ResourceExt};

use crate::doctor::checks;
use crate::doctor::facts::{Facts, Lease, Name};
use bulkhead_server::mode::{KARMADA_LEASES, KARMADA_NAMESPACE};

pub(super) async fn gather(client: &Client, facts: &mut Facts) {
    let own = facts.installation.lease.clone();
    let namespace = own
        .as_ref()
        .map_or(KARMADA_NAMESPACE, |name| &name.namespace)
        .to_owned();
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
    if namespace != KARMADA_NAMESPACE {
        of_karmada(client, facts).await;
    }
}

/// Adds the Leases of Karmada's controllers, for an installation in another namespace. A Lease that cannot be read does
/// not count as absent.
async fn of_karmada(client: &Client, facts: &mut Facts) {
    let leases: Api<k8s::Lease> = Api::namespaced(client.clone(), KARMADA_NAMESPACE);
    for name in KARMADA_LEASES {
        match leases.get_opt(name).await {
            Ok(found) => facts.leases.extend(found.map(lease)),
            Err(error) => {
                facts.unread(checks::OWNERS, &format!("the Lease {KARMADA_NAMESPACE}/{name}"), &error);
            }
        }
    }
}

fn lease(lease: k8s::Lease) -> Lease {
    let modes = lease
        .annotations()
        .get(MODES)
        .map(|modes| modes.split(',').map(str::to_owned).collect());
    let name = Name {
        namespace: lease.namespace().unwrap_or_default(),
        name: lease.name_any(),
    };
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

#[cfg(test)]
mod tests {
    use bulkhead_apiserver::{ApiServer, Clock, Options, kinds};
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_installation_in_another_namespace_finds_the_controllers_of_karmada() {
        let clock = Clock::new(Time::from_millis(0).timestamp());
        let options = Options {
            auto_create_namespaces: true,
            ..Options::new("hub", 1, clock)
        };
        let client = ApiServer::new(Options {
            kinds: kinds::kubernetes(),
            ..options
        })
        .client();
        let found = async |namespace: &str| {
            let lease = json!({"namespace": namespace, "name": "bulkhead"});
            let mut facts: Facts = serde_json::from_value(json!({
                "now": "2026-08-01T12:00:00Z",
                "installation": {"modes": ["evict"], "controllers": [], "lease": lease},
                "controlPlane": {},
            }))
            .unwrap();
            gather(&client, &mut facts).await;
            facts
                .leases
                .iter()
                .map(|lease| lease.name.to_string())
                .collect::<Vec<_>>()
        };
        let named = [
            ("failover", "bulkhead"),
            (KARMADA_NAMESPACE, KARMADA_LEASES[0]),
            (KARMADA_NAMESPACE, "elector"),
        ];
        for (namespace, name) in named {
            let lease = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
            Api::<k8s::Lease>::namespaced(client.clone(), namespace)
                .create(&Default::default(), &lease)
                .await
                .unwrap();
        }
        let of_karmada = "karmada-system/karmada-controller-manager";
        assert_eq!(found("failover").await, ["failover/bulkhead", of_karmada]);
        assert_eq!(found(KARMADA_NAMESPACE).await, ["karmada-system/elector", of_karmada]);
    }
}
