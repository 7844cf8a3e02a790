//! Simulated federation in one process: control plane, member clusters, controllers.

mod disruptions;
mod people;
mod person;
mod plugins;
mod workloads;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use bulkhead_api::Cluster;
use bulkhead_apiserver as apiserver;
use bulkhead_apiserver::{ApiServer, Link, ResourceKind};
use bulkhead_controllers::clock_handover::{self, ObservedRenewal};
use bulkhead_controllers::{
    Components, Manager, MemberError, Members, OneMember, Process, Scope, Stores, controller_names,
};
use bulkhead_core::composition::Composition;
use bulkhead_core::journal::{Journal, Sink};
use bulkhead_core::model::SyncMode;
use bulkhead_core::names::{keys, split_api_version};
use bulkhead_core::time::Time;
use bulkhead_emulator::MemberCluster;
use bulkhead_plugin::{Engine, Installed};
use bulkhead_runtime::clock::{Clock, WallClock};
use bulkhead_runtime::dynamic::DynamicStores;
use bulkhead_runtime::events;
use bulkhead_runtime::kinds::Kinds;
use bulkhead_runtime::tasks::Tasks;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(super) use self::person::PRODUCER_PERSON;
pub(super) use self::plugins::PluginObserver;
use super::member;
use super::report_only_process::ReportOnlyProcess;
use crate::control_plane;
use crate::scenario::{ClusterSpec, CustomKind, FailureModeSpec, Loaded, ManifestObject, ObjectOrigin};

/// Start time of every simulation, in milliseconds since the Unix epoch, so that no output depends on the date.
const EPOCH_MS: i64 = 1_767_225_600_000;
/// Maximum number of decisions kept in memory.
const JOURNAL_RECORDS_MAX: usize = 1_000_000;
/// Maximum time for member clusters to become ready before the scenario starts.
const JOIN_MAX: Duration = Duration::from_mins(2);

/// Control plane, member clusters and controllers of a simulation.
pub(super) struct Federation {
    clock: apiserver::Clock,
    hub: ApiServer,
    members: BTreeMap<String, SimulatedMember>,
    /// Controllers; shared with request hooks that stop them.
    manager: Arc<Mutex<Manager>>,
    context: Components,
    kinds: Kinds,
    composition: Composition,
    /// Wall clock of the controllers, which faults can step. Each process has a decision clock that starts at it. All
    /// other clocks advance with tokio's.
    wall: WallClock,
    /// True once a scheduler succeeded another one.
    scheduler_succeeded: AtomicBool,
    /// Plugins in force, by name.
    plugins: Mutex<BTreeMap<String, Installed>>,
    /// Observer of the questions to plugins, if there is one.
    observer: Option<Box<dyn PluginObserver>>,
    report_only: Option<ReportOnlyProcess>,
    tasks: Tasks,
}

/// Member cluster with its connections.
struct SimulatedMember {
    cluster: MemberCluster,
    /// Link between the agent of a Pull cluster and the control plane.
    uplink: Link,
    reachable: bool,
    /// True if the health endpoint reports ready.
    healthy: bool,
    /// Current failures of workloads in the cluster.
    failure_modes: Vec<FailureModeSpec>,
    /// Agent of a Pull cluster, which stops when it is dropped.
    agent: Option<Manager>,
}

/// Options for starting a federation.
pub(super) struct Start {
    /// Random seed.
    pub(super) seed: u64,
    /// Engines for plugins.
    pub(super) engines: Vec<Arc<dyn Engine>>,
    /// Key of the binding whose scheduling is explained in the journal.
    pub(super) explain: Option<String>,
    /// Additional sink for decisions.
    pub(super) sink: Option<Box<dyn Sink>>,
    /// Observer of the questions to plugins.
    pub(super) observer: Option<Box<dyn PluginObserver>>,
}

struct MemberClients(BTreeMap<String, Client>);

impl Members for MemberClients {
    fn client(&self, cluster: &str) -> Result<Client, MemberError> {
        let found = self.0.get(cluster).cloned();
        found.ok_or_else(|| MemberError::Broken(format!("there is no member cluster {cluster}")))
    }
}

fn custom_kinds(scenario: &Loaded) -> Vec<ResourceKind> {
    let kind = |custom: &CustomKind| {
        let (group, version) = split_api_version(&custom.api_version);
        ResourceKind {
            group: group.to_owned().into(),
            version: version.to_owned().into(),
            kind: custom.kind.clone().into(),
            plural: custom.plural.clone().into(),
            ..ResourceKind::namespaced("", "", "", "").with_status()
        }
    };
    scenario.custom_kinds.iter().map(kind).collect()
}

/// Starts the member clusters of a scenario.
fn start_members(
    scenario: &Loaded,
    seed: u64,
    clock: &apiserver::Clock,
    tasks: &Tasks,
) -> BTreeMap<String, SimulatedMember> {
    let mut members = BTreeMap::new();
    for spec in &scenario.clusters {
        let cluster = member::build(spec, custom_kinds(scenario), seed, clock.clone());
        tasks.spawn(cluster.run());
        let failure_modes = spec.failure_modes.clone();
        let (uplink, reachable, healthy) = (Link::new(), true, true);
        let member = SimulatedMember {
            cluster,
            uplink,
            reachable,
            healthy,
            failure_modes,
            agent: None,
        };
        members.insert(spec.name.clone(), member);
    }
    members
}

impl Federation {
    /// Starts the federation and waits until the member clusters have joined. Must run on a current-thread runtime
    /// with a paused clock.
    pub(super) async fn start(scenario: &Loaded, start: Start) -> anyhow::Result<Self> {
        let Start {
            seed,
            engines,
            explain,
            sink,
            observer,
        } = start;
        let clock = apiserver::Clock::new(Time::from_millis(EPOCH_MS).timestamp());
        let hub = control_plane::server(seed, clock.clone(), &scenario.flags, custom_kinds(scenario));
        let registry = Arc::new(bulkhead_defaults::registry::build(&scenario.flags, engines));
        let tasks = Tasks::default();
        let members = start_members(scenario, seed, &clock, &tasks);
        let clients = members
            .iter()
            .map(|(name, member)| (name.clone(), member.cluster.client()))
            .collect();
        let ticking = clock.clone();
        let wall = WallClock::new(move || ticking.now());
        let time = Clock::following(wall.clone());
        let (emitter, writer) = events::events(hub.client(), time.clone());
        tasks.spawn(writer.run());
        let journal = match sink {
            Some(sink) => Journal::with_sink(JOURNAL_RECORDS_MAX, 0, sink),
            None => Journal::new(JOURNAL_RECORDS_MAX),
        };
        let context = Process {
            hub: hub.client(),
            members: Arc::new(MemberClients(clients)),
            clock: time,
            registry,
            journal,
            flags: scenario.flags.clone(),
            events: emitter,
            explain,
        }
        .components();
        let kinds = Kinds::new(hub.client());
        let manager = Arc::new(Mutex::new(Manager::start(context.clone())));
        let composition = scenario.composition;
        let report_only = None;
        let mut federation = Self {
            clock,
            hub,
            members,
            manager,
            context,
            kinds,
            composition,
            wall,
            scheduler_succeeded: AtomicBool::new(false),
            plugins: Mutex::default(),
            observer,
            report_only,
            tasks,
        };
        federation.join(scenario).await?;
        if scenario.witness {
            federation.report_only = Some(ReportOnlyProcess::start(
                federation.hub(),
                federation.member_clusters(),
                federation.clock_of_new_process(),
                federation.context().clone(),
            ));
        }
        Ok(federation)
    }

    /// Creates namespaces and Cluster objects, starts the agents, and waits until all clusters are ready.
    async fn join(&mut self, scenario: &Loaded) -> anyhow::Result<()> {
        for namespace in ["default", "karmada-system", "karmada-cluster"] {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            let object = ManifestObject {
                origin: ObjectOrigin::generated("set-up"),
                value: object,
            };
            anyhow::ensure!(self.apply(&object).await?, "set-up: the control plane refuses writes");
        }
        let clusters: Api<Cluster> = Api::all(self.client());
        for spec in &scenario.clusters {
            let cluster = serde_json::from_value(cluster_object(spec))?;
            let created = clusters.create(&PostParams::default(), &cluster).await;
            created.with_context(|| format!("joining the cluster {}", spec.name))?;
            if spec.sync_mode == SyncMode::Pull {
                self.start_agent(&spec.name);
            }
        }
        let deadline = Instant::now() + JOIN_MAX;
        loop {
            let joined = self.context.stores.clusters.list();
            let ready = |name: &str| {
                joined.iter().any(|cluster| {
                    let model = cluster.to_model();
                    model.name == name && model.is_ready() && !model.spec.taints.iter().any(is_condition_taint)
                })
            };
            if scenario.clusters.iter().all(|spec| ready(&spec.name)) {
                break;
            }
            if Instant::now() > deadline {
                bail!(
                    "the member clusters did not all become ready within {} s",
                    JOIN_MAX.as_secs()
                );
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // API timestamps have a resolution of one second, so the scenario starts on a full second.
        let past_second = self.now().as_millis().rem_euclid(1000);
        tokio::time::sleep(Duration::from_millis(1000 - past_second.unsigned_abs())).await;
        Ok(())
    }

    /// Starts the agent of a Pull cluster. It reaches the control plane over its own link, and its cluster directly.
    fn start_agent(&mut self, name: &str) {
        let clock = self.clock_of_new_process();
        let Some(member) = self.members.get_mut(name) else {
            return;
        };
        let hub = self.hub.client_through(member.uplink.clone());
        let (emitter, writer) = events::events(hub.clone(), clock.clone());
        let context = Components {
            clock,
            stores: Arc::new(Stores::default()),
            kinds: Arc::new(Kinds::new(hub.clone())),
            members: Arc::new(OneMember::new(name.to_owned(), member.cluster.server().client())),
            scope: Scope::Agent(name.to_owned()),
            events: emitter,
            contacts: Arc::default(),
            templates: Arc::new(DynamicStores::new(None)),
            member_objects: Arc::new(DynamicStores::new(Some("karmada.io/managed=true"))),
            hub,
            ..self.context.clone()
        };
        let agent = Manager::start(context);
        agent.tasks().spawn(writer.run());
        member.agent = Some(agent);
    }

    /// Returns a client of the control plane.
    pub(super) fn client(&self) -> Client {
        self.hub.client()
    }

    /// Returns the virtual time.
    pub(super) fn now(&self) -> Time {
        Time::new(self.clock.now())
    }

    /// Returns the journal with every decision so far.
    pub(super) fn journal(&self) -> &Journal {
        &self.context.journal
    }

    /// Returns the shared context of the controllers.
    pub(super) fn context(&self) -> &Components {
        &self.context
    }

    /// Returns the member clusters, in order of name.
    pub(super) fn member_clusters(&self) -> impl Iterator<Item = (&str, &MemberCluster)> {
        self.members
            .iter()
            .map(|(name, member)| (name.as_str(), &member.cluster))
    }

    /// Returns the longest silence of a member cluster that cannot be detected: the duration of the Lease for a Pull
    /// cluster, zero for a Push cluster, which is probed.
    pub(super) fn silence_max(&self, name: &str) -> Duration {
        let is_pull = self.members.get(name).is_some_and(|member| member.agent.is_some());
        if is_pull {
            self.context.flags.cluster_lease_duration.0
        } else {
            Duration::ZERO
        }
    }

    /// Returns the control plane's API server.
    pub(super) fn hub(&self) -> &ApiServer {
        &self.hub
    }

    /// Returns the report-only process, if there is one.
    pub(super) fn report_only(&self) -> Option<&ReportOnlyProcess> {
        self.report_only.as_ref()
    }

    /// Stops controllers without shutdown, as a crash does; `*` stops all.
    pub(super) fn stop_controllers(&self, name: &str) {
        stop(&self.manager, name);
    }

    /// Returns a function that stops all controllers and can be called from any task.
    pub(super) fn killer(&self) -> impl Fn() + Send + Sync + use<> {
        let manager = Arc::clone(&self.manager);
        move || stop(&manager, "*")
    }

    /// Returns the decision clock of a process that starts now.
    pub(super) fn clock_of_new_process(&self) -> Clock {
        Clock::following(self.wall.clone())
    }

    /// Sets the decision clock to that of a process which started at the present wall time, has observed the last
    /// renewal of the leader's Lease, and is elected now.
    fn hand_over_clock(&self) {
        let (clock, own) = (&self.context.clock, self.clock_of_new_process().read());
        let mut lease = Lease::default();
        clock_handover::stamp(&mut lease, clock.read());
        let renewal = ObservedRenewal {
            seen_for: Duration::ZERO,
            unseen_max: Some(Duration::ZERO),
        };
        let start = clock_handover::start(&lease, renewal, own).ok().flatten();
        clock.continue_from(start.unwrap_or(own.time), Instant::now());
    }

    /// True once a scheduler succeeded another one. The summaries that it starts from may be older than the placements of
    /// its predecessor.
    pub(super) fn has_succeeding_scheduler(&self) -> bool {
        self.scheduler_succeeded.load(Ordering::Relaxed)
    }

    /// Simulates a change of leaders: controllers and caches start empty.
    pub(super) fn change_leader(&mut self) {
        self.hand_over_clock();
        self.scheduler_succeeded.store(true, Ordering::Relaxed);
        self.context = Components {
            stores: Arc::new(Stores::default()),
            templates: Arc::new(DynamicStores::new(None)),
            member_objects: Arc::new(DynamicStores::new(Some("karmada.io/managed=true"))),
            contacts: Arc::default(),
            failover_notes: Arc::default(),
            ..self.context.clone()
        };
        let successor = Manager::start(self.context.clone());
        *self.manager.lock().unwrap_or_else(PoisonError::into_inner) = successor;
    }

    /// Restarts controllers; `*` restarts all, as another process does.
    pub(super) fn start_controllers(&self, name: &str) {
        if name == "*" {
            self.hand_over_clock();
        }
        if ["*", "scheduler"].contains(&name) {
            self.scheduler_succeeded.store(true, Ordering::Relaxed);
        }
        for controller in controller_names().filter(|controller| name == "*" || name == *controller) {
            self.manager
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .start_controller(controller);
        }
    }
}

fn stop(manager: &Mutex<Manager>, name: &str) {
    let manager = manager.lock().unwrap_or_else(PoisonError::into_inner);
    for controller in controller_names().filter(|controller| name == "*" || name == *controller) {
        manager.stop_controller(controller);
    }
}

fn is_condition_taint(taint: &bulkhead_core::model::Taint) -> bool {
    taint.key == keys::NOT_READY_TAINT || taint.key == keys::UNREACHABLE_TAINT
}

fn cluster_object(spec: &ClusterSpec) -> Value {
    let secret = json!({"namespace": "karmada-cluster", "name": spec.name});
    let mut object = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": spec.name, "labels": spec.labels},
        "spec": {
            "syncMode": spec.sync_mode,
            "apiEndpoint": format!("https://{}.example:6443", spec.name),
            "secretRef": secret,
            "taints": spec.taints,
            "zones": spec.zones,
        },
    });
    for (field, value) in [("provider", &spec.provider), ("region", &spec.region)] {
        if !value.is_empty() {
            object["spec"][field] = json!(value);
        }
    }
    object
}
