//! Tests that plugins that block occupy neither the workers of the runtime nor the runtime of leases and probes.
//!
//! The plugins block until the test opens a gate. The tests count events, so that no outcome depends on timing.

use std::sync::mpsc;

use bulkhead_api::{Cluster, Work};
use bulkhead_apiserver::ApiServer;
use bulkhead_core::journal::Journal;
use bulkhead_core::policy::EngineKind;
use bulkhead_core::time::Time;
use bulkhead_plugin::{Layer, Registry};
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::connection::{WritePermit, permitted};
use bulkhead_runtime::events;
use bulkhead_runtime::lease_runtime::LeaseRuntime;
use http::{Method, Request};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tower::{Service, ServiceExt, service_fn};

use super::*;
use crate::components::{Components, LeaseClients};
use crate::flags::{Flags, GoDuration};
use crate::heartbeat::LEASE_NAMESPACE;
use crate::members::{MemberError, Members, Scope};
use crate::testing::{self, Latch};
use crate::{Manager, WriteBudget};

/// Timeout of each step on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(90);

struct Blocks {
    id: PolicyId,
    capabilities: [Capability; 1],
    entered: mpsc::Sender<()>,
    gate: Latch,
}

impl Policy for Blocks {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
        self.entered.send(()).unwrap();
        self.gate.pass();
        Err(Fault::new(FaultKind::Unsupported, "no opinion"))
    }
}

/// Access to a member that counts its probes.
struct Probed {
    client: Client,
    probes: mpsc::Sender<()>,
}

impl Members for Probed {
    fn client(&self, _: &str) -> Result<Client, MemberError> {
        let _ = self.probes.send(());
        Ok(self.client.clone())
    }
}

/// Returns a client that reports writes of leases.
fn counting(server: &ApiServer, leases: mpsc::Sender<()>) -> Client {
    let service = server.service();
    let counting = service_fn(move |request: Request<Body>| {
        if request.method() == Method::PUT && request.uri().path().contains("/leases/") {
            let _ = leases.send(());
        }
        let mut service = service.clone();
        async move { service.ready().await?.call(request).await }
    });
    Client::new(permitted(counting, &WritePermit::unlimited()), "default")
}

/// A process whose plugins block, on a runtime with `workers` workers.
struct Process {
    runtime: Runtime,
    lease_runtime: Runtime,
    hub: ApiServer,
    gate: Latch,
    entered: mpsc::Receiver<()>,
    probes: mpsc::Receiver<()>,
    leases: mpsc::Receiver<()>,
    _manager: Manager,
}

impl Process {
    fn start(workers: usize, scope: Scope, kind: CallKind, clusters: usize, controllers: &[&str]) -> Self {
        let runtime = |threads| {
            Builder::new_multi_thread()
                .worker_threads(threads)
                .enable_all()
                .build()
                .unwrap()
        };
        let (runtime, lease_runtime) = (runtime(workers), runtime(1));
        let ((entered, entries), gate) = (mpsc::channel(), Latch::default());
        let ((probed, probes), (renewed, leases)) = (mpsc::channel(), mpsc::channel());
        let entered_runtime = runtime.enter();
        let (hub, member) = (testing::hub_of_everything(1), testing::hub_of_everything(2));
        let registry = Arc::new(Registry::new(Vec::new()));
        let id = PolicyId {
            engine: EngineKind::Lua,
            ..PolicyId::builtin("blocks")
        };
        let blocks = Blocks {
            id,
            capabilities: [Capability::any(kind)],
            entered,
            gate: gate.clone(),
        };
        registry.replace(Layer::Plugins, vec![Arc::new(blocks)]);
        let clock = Clock::new(|| Time::from_millis(1_767_225_600_000).timestamp());
        let (emitter, _) = events::events(hub.client(), clock.clone());
        let lease_clients = {
            let _entered = lease_runtime.enter();
            let members = Arc::new(Probed {
                client: member.client(),
                probes: probed,
            });
            LeaseRuntime {
                runtime: lease_runtime.handle().clone(),
                clients: LeaseClients {
                    hub: counting(&hub, renewed),
                    members,
                },
            }
        };
        let (unread, _) = mpsc::channel();
        let limits = PoolLimits {
            threads: 6,
            lane_threads: 4,
            waiting: 100,
        };
        let (base, _) = testing::components(hub.client(), member.client());
        let components = Components {
            members: Arc::new(Probed {
                client: member.client(),
                probes: unread,
            }),
            scope,
            lease_runtime: Some(lease_clients),
            clock,
            registry,
            evaluator: Evaluator::on(Pool::start("test", limits).unwrap()),
            journal: Arc::new(Journal::new(0)),
            flags: Arc::new(Flags {
                cluster_status_update_frequency: GoDuration(Duration::from_millis(20)),
                cluster_lease_duration: GoDuration(Duration::from_millis(100)),
                enable_cluster_resource_modeling: false,
                ..Flags::default()
            }),
            events: emitter,
            scheduler_budget: Arc::new(WriteBudget::new(100.0, 100)),
            ..base
        };
        runtime.block_on(objects(&hub, clusters, matches!(components.scope, Scope::Push)));
        let manager = Manager::watch(components);
        for name in controllers {
            assert!(manager.start_controller(name), "{name}");
        }
        drop(entered_runtime);
        Self {
            runtime,
            lease_runtime,
            hub,
            gate,
            entered: entries,
            probes,
            leases,
            _manager: manager,
        }
    }

    /// Waits until `calls` calls block at the same time.
    fn blocked(&self, calls: usize) {
        for _ in 0..calls {
            self.entered.recv_timeout(TIMEOUT).expect("a plugin is asked");
        }
        // Earlier counts say nothing about the present.
        self.probes.try_iter().for_each(drop);
        self.leases.try_iter().for_each(drop);
    }

    /// Asserts that a worker of the main runtime is free.
    fn has_worker(&self) {
        let (sender, listed) = mpsc::channel();
        let entered = self.runtime.enter();
        let clusters = Api::<Cluster>::all(self.hub.client());
        drop(entered);
        self.runtime.spawn(async move {
            let list = clusters.list(&ListParams::default()).await.unwrap();
            sender.send(list.items.len()).unwrap();
        });
        assert!(listed.recv_timeout(TIMEOUT).expect("a worker is free") > 0);
    }

    fn end(self) {
        self.gate.open();
        self.runtime.shutdown_background();
        self.lease_runtime.shutdown_background();
    }
}

async fn objects(hub: &ApiServer, clusters: usize, is_push: bool) {
    for number in 1..=clusters {
        let cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": format!("member{number}"), "finalizers": ["karmada.io/cluster-controller"]},
            "spec": {
                "syncMode": if is_push { "Push" } else { "Pull" },
                "apiEndpoint": "https://member",
                "secretRef": {"namespace": "default", "name": "member"},
            },
        });
        let cluster = serde_json::from_value(cluster).unwrap();
        Api::<Cluster>::all(hub.client())
            .create(&PostParams::default(), &cluster)
            .await
            .unwrap();
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(format!("member{number}")),
                ..ObjectMeta::default()
            },
            ..Lease::default()
        };
        let leases = Api::<Lease>::namespaced(hub.client(), LEASE_NAMESPACE);
        leases.create(&PostParams::default(), &lease).await.unwrap();
    }
    for number in 1..=4 {
        let name = format!("app{number}");
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default",
            "labels": {"karmada.io/managed": "true"},
            "annotations": {"work.karmada.io/namespace": "karmada-es-member1", "work.karmada.io/name": name}}});
        let work = json!({
            "apiVersion": "work.karmada.io/v1alpha1",
            "kind": "Work",
            "metadata": {"name": name, "namespace": "karmada-es-member1"},
            "spec": {"workload": {"manifests": [manifest]}},
        });
        let work = serde_json::from_value(work).unwrap();
        let works = Api::<Work>::namespaced(hub.client(), "karmada-es-member1");
        works.create(&PostParams::default(), &work).await.unwrap();
    }
}

#[test]
fn four_plugins_that_block_delay_no_probe_on_two_workers() {
    let controllers = ["clustertaintpolicy", "clusterStatus"];
    let process = Process::start(2, Scope::Push, CallKind::ClusterTaint, 4, &controllers);
    process.blocked(4);
    for _ in 0..12 {
        process.probes.recv_timeout(TIMEOUT).expect("clusters are probed");
    }
    process.has_worker();
    process.end();
}

#[test]
fn four_plugins_that_block_delay_no_heartbeat_of_an_agent_on_one_worker() {
    let controllers = ["execution", "workStatus", "clusterStatus", "lease"];
    let process = Process::start(1, Scope::Agent("member1".to_owned()), CallKind::Health, 1, &controllers);
    process.blocked(4);
    for _ in 0..4 {
        process.leases.recv_timeout(TIMEOUT).expect("the lease is renewed");
        process.probes.recv_timeout(TIMEOUT).expect("the member is probed");
    }
    process.has_worker();
    process.end();
}
