//! Simulated member cluster: an API server, an emulator of its controllers, and the link to its clients.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bulkhead_apiserver::{
    ApiServer, Clock, Contents, Fidelity, Link, ObjectKey, Options, Persistence, ResourceKind, kinds,
};
use serde_json::{Value, json};

use crate::controllers::{Emulator, POD_OBJECTS_MAX, ReplicaReady, Settings, Timing};
use crate::failure::{FailureMode, FailureSwitch, Failures};
use crate::nodes::{Amount, Nodes};

/// Capacity of a cluster, split evenly over its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// CPU as a Kubernetes quantity, such as `16` or `500m`.
    pub cpu: String,
    /// Memory as a Kubernetes quantity, such as `64Gi`.
    pub memory: String,
    /// Number of pods.
    pub pods: u64,
}

/// Initial behaviour of workloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// Failure of every pod of the cluster.
    pub failure: Option<FailureMode>,
    /// Images that cannot be pulled; `*` matches any text.
    pub unpullable_images: Vec<String>,
    /// Time that the pods of a Job run after they become ready.
    pub job_duration: Duration,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            failure: None,
            unpullable_images: Vec::new(),
            job_duration: Duration::from_secs(10),
        }
    }
}

/// Options of a member cluster.
#[derive(Clone)]
pub struct MemberOptions {
    /// Name of the cluster; also the prefix of its nodes' names.
    pub name: String,
    /// Seed of uids and of the jitter of pods.
    pub seed: u64,
    /// Source of time.
    pub clock: Clock,
    /// Version reported by `/version` and the nodes, such as `v1.35.0`.
    pub kubernetes_version: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Capacity of all nodes together.
    pub capacity: Capacity,
    /// Time that pods take to become ready.
    pub replica_ready: ReplicaReady,
    /// Maximum number of pods of one revision of a workload that have an object each. Further ones are in groups; see
    /// [`pods_in`](crate::pods_in).
    pub pod_objects_max: u64,
    /// Initial behaviour of workloads.
    pub behaviour: Behaviour,
    /// Kinds served in addition to Kubernetes' own. No controller acts on their objects.
    pub custom_kinds: Vec<ResourceKind>,
    /// Degree to which the API server follows Kubernetes.
    pub fidelity: Fidelity,
    /// Objects that every new namespace gets.
    pub namespace_objects: Vec<Value>,
    /// Receiver of changes in addition to memory.
    pub persistence: Option<Arc<dyn Persistence>>,
    /// Contents restored at the start.
    pub contents: Contents,
}

impl MemberOptions {
    /// Returns the options of a cluster with three nodes, 48 CPUs, 192 GiB of memory and capacity for 330 pods. Pods
    /// become ready after two to three seconds.
    pub fn new(name: &str, seed: u64, clock: Clock) -> Self {
        Self {
            name: name.to_owned(),
            seed,
            clock,
            kubernetes_version: "v1.35.0".to_owned(),
            nodes: 3,
            capacity: Capacity {
                cpu: "48".to_owned(),
                memory: "192Gi".to_owned(),
                pods: 330,
            },
            replica_ready: ReplicaReady {
                base: Duration::from_secs(2),
                jitter: Duration::from_secs(1),
            },
            pod_objects_max: POD_OBJECTS_MAX,
            behaviour: Behaviour::default(),
            custom_kinds: Vec::new(),
            fidelity: Fidelity::default(),
            namespace_objects: Vec::new(),
            persistence: None,
            contents: Contents::default(),
        }
    }

    /// Returns the share of one node. Unparsable quantities count as 0.
    fn node_capacity(&self) -> Amount {
        let nodes = u64::from(self.nodes.max(1));
        let total = Amount::new(&self.capacity.cpu, &self.capacity.memory, self.capacity.pods);
        Amount {
            cpu_milli: total.cpu_milli / nodes,
            memory_bytes: total.memory_bytes / nodes,
            pods: total.pods / nodes,
        }
    }
}

/// Simulated member cluster; clones share the same cluster.
///
/// It serves the built-in kinds and starts with its nodes and the namespaces `default` and `kube-system`. Workloads
/// make progress only while [`MemberCluster::run`] is being polled.
#[derive(Clone)]
pub struct MemberCluster {
    options: Arc<MemberOptions>,
    server: ApiServer,
    link: Link,
    switch: Arc<FailureSwitch>,
}

impl MemberCluster {
    /// Creates a cluster with its nodes and namespaces.
    pub fn new(mut options: MemberOptions) -> Self {
        let mut kinds = kinds::kubernetes();
        if options.fidelity == Fidelity::People {
            kinds.extend(kinds::stored());
            kinds.push(kinds::definitions());
        }
        kinds.extend(options.custom_kinds.iter().cloned());
        let server = ApiServer::new(Options {
            kinds,
            kubernetes_version: options.kubernetes_version.clone(),
            fidelity: options.fidelity,
            namespace_objects: options.namespace_objects.clone(),
            persistence: options.persistence.clone(),
            ..Options::new(&options.name, options.seed, options.clock.clone())
        });
        let _of_kinds_that_are_gone = server.restore(std::mem::take(&mut options.contents));
        let cluster = Self {
            switch: Arc::new(FailureSwitch::new(Failures {
                cluster: options.behaviour.failure,
                unpullable_images: options.behaviour.unpullable_images.clone(),
                ..Failures::default()
            })),
            options: Arc::new(options),
            server,
            link: Link::new(),
        };
        cluster.create_first_objects();
        cluster
    }

    fn create_first_objects(&self) {
        let store = self.server.store();
        let kind = |kind| {
            self.server
                .kind_id("v1", kind)
                .expect("a member cluster serves the built-in kinds")
        };
        let is_there = |kind_name, name: &str| store.get(&ObjectKey::new(kind(kind_name), "", name)).is_some();
        for name in ["default", "kube-system"]
            .into_iter()
            .filter(|name| !is_there("Namespace", name))
        {
            store
                .create(kind("Namespace"), "", json!({"metadata": {"name": name}}))
                .expect("the first namespaces are valid");
        }
        if self.options.fidelity == Fidelity::People {
            for name in ["kube-public", "kube-node-lease"]
                .into_iter()
                .filter(|name| !is_there("Namespace", name))
            {
                let namespace = json!({"metadata": {"name": name}});
                store
                    .create(kind("Namespace"), "", namespace)
                    .expect("the first namespaces are valid");
            }
            if store
                .get(&ObjectKey::new(kind("Service"), "default", "kubernetes"))
                .is_none()
            {
                store
                    .create(kind("Service"), "default", kinds::api_service())
                    .expect("the first Service is valid");
            }
        }
        let nodes = self.nodes();
        for index in (0..nodes.total()).filter(|index| !is_there("Node", &nodes.name(*index))) {
            let node = nodes.object(index, &self.options.kubernetes_version, self.options.clock.now());
            let status = node["status"].clone();
            let created = store
                .create(kind("Node"), "", node)
                .and_then(|_| store.set_status(&ObjectKey::new(kind("Node"), "", &nodes.name(index)), status));
            created.expect("nodes with distinct names are valid");
        }
    }

    fn nodes(&self) -> Nodes {
        Nodes::new(&self.options.name, self.options.nodes, self.options.node_capacity())
    }

    /// Returns the cluster's name.
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// Returns the cluster's API server for access without the link.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Returns the link between clients and the cluster. The emulator does not use it: workloads of a disconnected
    /// cluster keep running.
    pub fn link(&self) -> Link {
        self.link.clone()
    }

    /// Returns a client behind the link. Must be called within a tokio runtime.
    pub fn client(&self) -> kube::Client {
        self.server.client_through(self.link.clone())
    }

    /// Runs the emulator of the cluster's controllers and kubelets until the future is dropped. To be called once per
    /// cluster.
    pub fn run(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let timing = Timing {
            seed: self.options.seed,
            replica_ready: self.options.replica_ready,
            job_duration: self.options.behaviour.job_duration,
        };
        let settings = Settings {
            timing,
            has_replica_sets: self.options.fidelity == Fidelity::People,
            pod_objects_max: self.options.pod_objects_max,
        };
        Emulator::new(&self.server, self.nodes(), settings, Arc::clone(&self.switch)).run()
    }

    /// Sets or clears the failure of all pods of the cluster.
    pub fn set_failure(&self, failure: Option<FailureMode>) {
        self.switch.change(|failures| failures.cluster = failure);
    }

    /// Sets or clears the failure of the pods of one workload, or of one bare pod. Takes precedence over
    /// [`MemberCluster::set_failure`].
    pub fn set_workload_failure(&self, namespace: &str, name: &str, failure: Option<FailureMode>) {
        let key = (namespace.to_owned(), name.to_owned());
        self.switch.change(|failures| {
            match failure {
                Some(failure) => failures.workloads.insert(key, failure),
                None => failures.workloads.remove(&key),
            };
        });
    }

    /// Sets the images that cannot be pulled; `*` matches any text. Running pods keep running.
    pub fn set_unpullable_images(&self, patterns: &[&str]) {
        let patterns = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        self.switch.change(|failures| failures.unpullable_images = patterns);
    }
}
