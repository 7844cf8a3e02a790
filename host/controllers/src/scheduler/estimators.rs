//! Accurate estimators: connections to those of the existing clusters, and the query before a decision (Karmada:
//! `pkg/scheduler/scheduler.go:reconcileEstimatorConnection`, `pkg/estimator/client/accurate.go`).

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use bulkhead_core::decide::schedule::SchedulerOptions;
use bulkhead_core::decide::schedule::capacity::{AccurateEstimates, AssumedWorkload, estimate_request};
use bulkhead_core::model::{Binding, Placement, SyncMode};
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_estimator::endpoint::{Location, ServiceShape};
use bulkhead_estimator::{EstimatorPool, EstimatorQuery, Identity, Security};
use bulkhead_runtime::controller::{self, Action, Error};
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Api;

use super::Dependencies;
use crate::flags::Flags;

const NAME: &str = "scheduler-estimator";
/// Maximum number of connections that are established at the same time. One that hangs takes ten seconds.
const WORKERS: usize = 8;

/// Creates the pool that the flags describe, with its certificates; `None` while estimators are disabled. The error
/// names the flag.
pub fn estimator_pool(flags: &Flags) -> Result<Option<Arc<EstimatorPool>>, String> {
    if !flags.enable_scheduler_estimator {
        return Ok(None);
    }
    let read = |flag: &str, path: &str| {
        fs::read(path).map_err(|error| format!("scheduler-estimator-{flag}: reading {path}: {error}"))
    };
    let (cert, key) = (
        &flags.scheduler_estimator_cert_file,
        &flags.scheduler_estimator_key_file,
    );
    let identity = if cert.is_empty() || key.is_empty() {
        None
    } else {
        Some(Identity {
            certificate: read("cert-file", cert)?,
            key: read("key-file", key)?,
        })
    };
    let security = match flags.scheduler_estimator_ca_file.as_str() {
        _ if flags.insecure_skip_estimator_verify => Security::Unverified { identity },
        "" => Security::Plain,
        ca => Security::Verified {
            ca: read("ca-file", ca)?,
            identity,
        },
    };
    Ok(Some(Arc::new(EstimatorPool::new(
        security,
        flags.scheduler_estimator_timeout.0,
    ))))
}

/// Keeps one connection to the estimator of each cluster. Returns at once if estimators are disabled.
pub(super) async fn run(deps: Dependencies) {
    let Some(pool) = deps.estimators.clone() else { return };
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let changed = Arc::clone(&queue);
    let _clusters = deps
        .stores
        .clusters
        .subscribe(move |change| changed.add(Key::of(change.object())));
    let failed = deps.failures.counter(NAME, |key: &Key| key.named("Cluster"));
    let reconcile = move |key: Key| {
        let (deps, pool) = (deps.clone(), Arc::clone(&pool));
        async move { reconcile(&deps, &pool, &key.name).await }
    };
    controller::run(queue, WORKERS, reconcile, failed).await;
}

async fn reconcile(deps: &Dependencies, pool: &EstimatorPool, cluster: &str) -> Result<Action, Error> {
    let flags = &deps.flags;
    let wanted = deps.stores.cluster(cluster).is_some_and(|cluster| {
        cluster.spec.sync_mode == SyncMode::Push || !flags.disable_scheduler_estimator_in_pull_mode
    });
    if !wanted {
        pool.disconnect(cluster);
        return Ok(Action::Wait);
    }
    if pool.is_connected(cluster) {
        return Ok(Action::Wait);
    }
    let location = location(flags);
    let (services, name) = (
        Api::<Service>::namespaced(deps.hub.clone(), &location.namespace),
        location.service(cluster),
    );
    let service = services
        .get_opt(&name)
        .await
        .map_err(Error::api(format!("getting the Service {name}")))?;
    let addresses = location.addresses(cluster, service.as_ref().map(shape).as_ref());
    let addresses = addresses.map_err(|error| Error::NotYet(error.to_string()))?;
    pool.connect(cluster, &addresses)
        .await
        .map_err(|error| Error::NotYet(error.to_string()))?;
    Ok(Action::Wait)
}

fn location(flags: &Flags) -> Location {
    Location {
        namespace: flags.scheduler_estimator_service_namespace.clone(),
        prefix: flags.scheduler_estimator_service_prefix.clone(),
        port: flags.scheduler_estimator_port,
    }
}

fn shape(service: &Service) -> ServiceShape {
    let spec = service.spec.as_ref();
    let port = spec.and_then(|spec| spec.ports.as_ref()?.first()?.target_port.clone());
    ServiceShape {
        type_: spec.and_then(|spec| spec.type_.clone()).unwrap_or_default(),
        external_name: spec.and_then(|spec| spec.external_name.clone()).unwrap_or_default(),
        target_port: match port {
            Some(IntOrString::Int(port)) => u16::try_from(port).ok(),
            _ => None,
        },
    }
}

/// Queries the estimators about a binding. Returns `None` if there are none, or if room does not matter.
pub(super) async fn ask(
    pool: Option<&EstimatorPool>,
    binding: &Binding,
    placement: &Placement,
    clusters: &ClusterSnapshot,
    options: &SchedulerOptions,
    assumed: &BTreeMap<String, Vec<AssumedWorkload>>,
) -> Option<AccurateEstimates> {
    let pool = pool?;
    let about = estimate_request(&binding.spec, placement, clusters, options)?;
    Some(
        pool.ask(&EstimatorQuery {
            binding,
            about: &about,
            assumed,
        })
        .await,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flags_say_how_estimators_are_reached() {
        let check = |flags: serde_json::Value, expected: &str| {
            let flags: Flags = serde_json::from_value(flags).unwrap();
            let message = match estimator_pool(&flags) {
                Ok(None) => "none".to_owned(),
                Ok(Some(pool)) => format!("{pool:?}"),
                Err(error) => error,
            };
            assert!(message.contains(expected), "{message}");
        };
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pem");
        fs::write(&file, "PEM").unwrap();
        check(json!({}), "none");
        check(json!({"enable-scheduler-estimator": true}), "Plain");
        check(json!({"enable-scheduler-estimator": true}), "timeout: 3s");
        check(
            json!({"enable-scheduler-estimator": true, "scheduler-estimator-ca-file": file}),
            "identity: None",
        );
        let both = json!({
            "enable-scheduler-estimator": true, "scheduler-estimator-ca-file": file,
            "scheduler-estimator-cert-file": file, "scheduler-estimator-key-file": file,
        });
        check(both, "identity: Some(Identity)");
        check(
            json!({"enable-scheduler-estimator": true, "insecure-skip-estimator-verify": true}),
            "Unverified",
        );
        let missing = json!({"enable-scheduler-estimator": true, "scheduler-estimator-ca-file": "/missing.pem"});
        check(missing, "scheduler-estimator-ca-file: reading /missing.pem");
    }

    #[test]
    fn a_service_is_read_as_karmada_reads_it() {
        let check = |spec: serde_json::Value, expected: (&str, &str, Option<u16>)| {
            let service: Service = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
            let (type_, external_name, target_port) = expected;
            let (type_, external_name) = (type_.to_owned(), external_name.to_owned());
            assert_eq!(
                shape(&service),
                ServiceShape {
                    type_,
                    external_name,
                    target_port
                }
            );
        };
        let ports = json!([{"port": 1, "targetPort": 30001}, {"port": 2}]);
        check(
            json!({"type": "ExternalName", "externalName": "10.0.0.1", "ports": ports}),
            ("ExternalName", "10.0.0.1", Some(30001)),
        );
        check(
            json!({"type": "ClusterIP", "ports": [{"port": 1, "targetPort": "grpc"}]}),
            ("ClusterIP", "", None),
        );
        check(json!({}), ("", "", None));
    }

    #[tokio::test]
    async fn a_cluster_without_a_connection_is_an_error_of_that_cluster() {
        let cluster = |name: &str| {
            Arc::new(bulkhead_core::model::Cluster {
                name: name.to_owned(),
                ..Default::default()
            })
        };
        let clusters = ClusterSnapshot::new(["m1", "m2"].map(cluster));
        let options = SchedulerOptions::default();
        let mut binding = Binding::default();
        let (placement, assumed) = (Placement::default(), BTreeMap::new());
        let pool = EstimatorPool::new(Security::Plain, std::time::Duration::from_secs(3));
        assert_eq!(
            ask(Some(&pool), &binding, &placement, &clusters, &options, &assumed).await,
            None
        );
        binding.spec.replicas = 1;
        assert_eq!(
            ask(None, &binding, &placement, &clusters, &options, &assumed).await,
            None
        );
        let answers = ask(Some(&pool), &binding, &placement, &clusters, &options, &assumed)
            .await
            .unwrap()
            .0;
        assert_eq!(answers.keys().collect::<Vec<_>>(), ["m1", "m2"]);
        assert!(answers.values().all(Result::is_err));
    }
}
