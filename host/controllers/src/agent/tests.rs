use bulkhead_api::Work;
use bulkhead_apiserver::ApiServer;
use bulkhead_core::time::Time;
use bulkhead_runtime::events;
use serde_json::json;

use super::*;
use crate::components::Components;
use crate::testing::{cluster, components, hub_of_works, member, object};

/// Control plane of the agent of `m1`.
struct Hub {
    server: ApiServer,
    components: Components,
    leases: Api<Lease>,
    /// Keeps the channel of the events open.
    #[expect(dead_code, reason = "held, not read")]
    events: events::Writer,
}

impl Hub {
    fn new() -> Self {
        let server = hub_of_works(1);
        let (base, events) = components(server.client(), member().client());
        let components = Components {
            scope: Scope::Agent("m1".to_owned()),
            ..base
        };
        components
            .stores
            .clusters
            .replace_all([cluster("m1", true, &json!([]))]);
        Self {
            leases: Api::namespaced(server.client(), LEASE_NAMESPACE),
            server,
            components,
            events,
        }
    }

    async fn with_lease() -> Self {
        let hub = Self::new();
        let lease = object(json!({
            "metadata": {"name": "m1"}, "spec": {"holderIdentity": "", "leaseTransitions": 3},
        }));
        hub.leases.create(&PostParams::default(), &lease).await.unwrap();
        hub
    }

    async fn renew(&self) -> Result<(), Error> {
        renew(&self.components.agent(), "m1").await
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_writes_the_time_the_holder_and_the_duration() {
    let hub = Hub::with_lease().await;
    hub.components.stores.works.replace_all([]);
    hub.renew().await.unwrap();
    let lease = hub.leases.get("m1").await.unwrap();
    assert_eq!(heartbeat::marked(&lease), Unreported::default());
    let spec = lease.spec.unwrap();
    assert_eq!(spec.renew_time, Some(MicroTime(Time::from_millis(0).timestamp())));
    assert_eq!(spec.holder_identity.as_deref(), Some("m1"));
    assert_eq!(spec.lease_duration_seconds, Some(40));
    assert_eq!(spec.lease_transitions, Some(3), "other fields stay");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_marks_every_work_until_the_works_are_listed() {
    let hub = Hub::with_lease().await;
    hub.renew().await.unwrap();
    let lease = hub.leases.get("m1").await.unwrap();
    assert_eq!(heartbeat::marked(&lease), Unreported::all());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_marks_a_report_that_this_process_cannot_confirm() {
    let hub = Hub::with_lease().await;
    let identifier = json!({
        "ordinal": 0, "version": "v1", "group": "apps", "kind": "Deployment", "resource": "deployments",
        "namespace": "default", "name": "web",
    });
    let work = |name: &str, status| -> Work {
        object(json!({"metadata": {"name": name, "namespace": "karmada-es-m1"}, "spec": {}, "status": status}))
    };
    let reported = work(
        "web",
        json!({"manifestStatuses": [{"identifier": identifier, "health": "Healthy"}]}),
    );
    let works = [reported, work("new", json!({}))];
    hub.components.stores.works.replace_all(works);
    hub.components.contacts.expect_reports();
    hub.renew().await.unwrap();
    let marked = heartbeat::marked(&hub.leases.get("m1").await.unwrap());
    assert!(marked.contains("web") && !marked.contains("new"), "{marked:?}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_cluster_writes_nothing() {
    let hub = Hub::with_lease().await;
    hub.components.stores.clusters.replace_all([]);
    let writes = hub.server.writes();
    hub.renew().await.unwrap();
    assert_eq!(hub.server.writes(), writes);
}

#[tokio::test(start_paused = true)]
async fn a_missing_lease_is_waited_for() {
    let error = Hub::new().renew().await.unwrap_err();
    assert!(matches!(error, Error::NotYet(_)), "{error}");
}
