use bulkhead_api::{AnyBinding, Work};
use bulkhead_core::names::keys;
use serde_json::{Value, json};

use super::*;
use crate::testing::{binding_of_web, cluster, components, hub_of_works, member, object};

fn version_of(resource_version: &str) -> ObjectMeta {
    object(json!({"uid": "u", "resourceVersion": resource_version}))
}

#[test]
fn a_version_is_unreported_until_the_work_has_the_report_about_it() {
    let (contacts, work) = (Contacts::default(), Key::new("karmada-es-m1", "web"));
    let heartbeat = || contacts.unreported([work.clone()].into_iter());
    let unreported = || heartbeat().contains("web");
    assert!(!unreported(), "the reports are of another process");
    contacts.expect_reports();
    assert!(unreported(), "its object may be missing since the last process");
    contacts.seen(&work, &version_of("5"));
    assert!(unreported());
    contacts.derived(&work, &version_of("5"), Some(Health::Unhealthy));
    assert!(unreported(), "its write may fail");
    assert!(!heartbeat().may_be_healthy("web"));
    contacts.reported(&work, &version_of("5"));
    assert!(!unreported());
    contacts.seen(&work, &version_of("6"));
    assert!(unreported());
    assert!(
        heartbeat().may_be_healthy("web"),
        "the health of this version is not known yet"
    );
    contacts.reported(&work, &version_of("6"));
    assert!(!unreported());
    contacts.forget_work(&work);
    assert!(unreported(), "the object is missing");
}

/// Returns the Pull cluster `m1` of a uid.
fn pull_cluster(uid: &str) -> Cluster {
    let mut cluster = cluster("m1", true, &json!([]));
    cluster.spec.sync_mode = SyncMode::Pull;
    cluster.metadata.uid = Some(uid.to_owned());
    cluster
}

/// Returns the targets of the binding of `web` that do not count. Its only target is the Pull cluster `m1`, which reports
/// `web` as healthy; `work` is the Work there, if there is one.
fn unconfirmed(work: Option<Value>, unreported: &[String]) -> UnconfirmedTargets {
    unconfirmed_after(&pull_cluster("u"), work, unreported)
}

/// As `unconfirmed`, with the cluster that sent the last heartbeat.
fn unconfirmed_after(heard: &Cluster, work: Option<Value>, unreported: &[String]) -> UnconfirmedTargets {
    let (components, _events) = components(hub_of_works(1).client(), member().client());
    components.stores.clusters.replace_all([pull_cluster("u")]);
    if let Some(work) = work {
        components.stores.works.replace_all([object::<Work>(work)]);
    }
    components.contacts.expect_heartbeats();
    let unreported = Unreported::of(unreported.iter().map(|work| (work.clone(), true)).collect());
    components.contacts.heard(heard, unreported);
    components.reported().unconfirmed(&binding_in_m1("Healthy"))
}

fn binding_in_m1(health: &str) -> Binding {
    let binding = binding_of_web(&json!({"clusters": [{"name": "m1", "replicas": 1}]}));
    let mut binding = binding.to_model();
    binding.status.aggregated_status = object(json!([{"clusterName": "m1", "health": health}]));
    binding
}

fn work(metadata: &Value, health: &str) -> Value {
    let name = names::work_name("Deployment", "web", "default");
    let mut work = json!({
        "metadata": {"name": name, "namespace": "karmada-es-m1", "resourceVersion": "3"},
        "spec": {"workload": {"manifests": []}},
        "status": {"manifestStatuses": [{"identifier": {"ordinal": 0, "version": "v1", "kind": "Deployment",
            "resource": "deployments", "name": "web"}, "health": health}]},
    });
    for (field, value) in metadata.as_object().unwrap() {
        work["metadata"][field] = value.clone();
    }
    work
}

#[tokio::test]
async fn a_healthy_report_counts_while_the_work_supports_it_and_the_agent_has_no_newer_one() {
    let outdated = UnconfirmedTargets::from([("m1".to_owned(), Unconfirmed::Outdated)]);
    let healthy = || Some(work(&json!({}), "Healthy"));
    let of_web = [names::work_name("Deployment", "web", "default")];
    assert_eq!(unconfirmed(healthy(), &[]), UnconfirmedTargets::default());
    let of_another = ["another".to_owned()];
    assert_eq!(unconfirmed(healthy(), &of_another), UnconfirmedTargets::default());
    assert_eq!(unconfirmed(healthy(), &of_web), outdated);
    assert_eq!(unconfirmed(Some(work(&json!({}), "Unhealthy")), &[]), outdated);
    // The copy that was reported goes, and the next Work has no report yet.
    let going = json!({"deletionTimestamp": "1970-01-01T00:00:00Z", "finalizers": [keys::EXECUTION_FINALIZER]});
    assert_eq!(unconfirmed(Some(work(&going, "Healthy")), &[]), outdated);
    assert_eq!(unconfirmed(None, &[]), outdated);
}

#[tokio::test]
async fn a_heartbeat_of_another_cluster_of_the_same_name_confirms_nothing() {
    let unreachable = UnconfirmedTargets::from([("m1".to_owned(), Unconfirmed::Unreachable)]);
    let healthy = Some(work(&json!({}), "Healthy"));
    assert_eq!(unconfirmed_after(&pull_cluster("former"), healthy, &[]), unreachable);
}

/// The Work has the failure from before a partition, and its agent has not repeated the report about the recovery yet.
#[tokio::test]
async fn an_unhealthy_report_counts_unless_the_agent_has_a_newer_one() {
    let (components, _events) = components(hub_of_works(1).client(), member().client());
    let cluster = pull_cluster("u");
    components.stores.clusters.replace_all([cluster.clone()]);
    components.contacts.expect_heartbeats();
    let of_web = names::work_name("Deployment", "web", "default");
    let may_be_healthy = async |unreported: &str, for_agent: bool| {
        let unreported = Unreported::of([(unreported.to_owned(), for_agent)].into());
        components.contacts.heard(&cluster, unreported);
        let binding = binding_in_m1("Unhealthy");
        let reported = components.reported();
        reported.may_be_healthy_in(&binding, ["m1"].into_iter()).await
    };
    assert!(may_be_healthy(&of_web, true).await);
    assert!(!may_be_healthy(&of_web, false).await, "the agent knows that it is not");
    assert!(!may_be_healthy("another", true).await);
}
