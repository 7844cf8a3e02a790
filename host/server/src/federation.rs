//! Runtime state on the control plane: stores, plugins, clients of members, controllers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_api::ResourceInterpreterCustomization;
use bulkhead_controllers::flags::Flags;
use bulkhead_controllers::{
    Components, Evaluator, EvictionsQueued, HttpsWebhooks, LeaseClients, Manager, MemberClients, Members, OneMember,
    PluginObjects, Pool, PoolLimits, Scope, Stores, WriteBudget, estimator_pool,
};
use bulkhead_plugin::{
    Catalog, CombinedCatalog, CrashMarks, Directory, Engine, Loading, Objects, PluginStatus, Plugins, Registry,
    SmokeTest, Watch,
};
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::connection::{ResponseCounts, WritePermit};
use bulkhead_runtime::dynamic::DynamicStores;
use bulkhead_runtime::events;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::kinds::Kinds;
use bulkhead_runtime::lease_runtime::LeaseRuntime;
use bulkhead_runtime::store::Store;
use kube::Client;
use tracing::{info, warn};

use super::endpoint::State;
use super::hub::Hub;
use super::metrics::Observed;
use super::{failure_log, journal};
use crate::images::PluginSources;

/// Maximum number of decisions kept in memory, where they have no readers; `--journal` stores them.
const JOURNAL_RECORDS_MAX: usize = 0;

/// Prepared state without controllers, which start when this process becomes the leader.
pub(super) struct Federation {
    context: Components,
    clients: Arc<MemberClients>,
    lease_clients: Arc<MemberClients>,
    events: events::Writer,
    directory: Option<Watch>,
}

/// Running informers, and controllers once they are started. Dropping it stops them.
pub(super) struct Running {
    manager: Manager,
    plugins: Option<Arc<PluginObjects>>,
    _directory: Option<Watch>,
}

/// Member of an agent.
pub(super) struct AgentOf {
    /// Name of the member.
    pub(super) name: String,
    /// Client of the member.
    pub(super) client: Client,
    /// Client of the member on the runtime of leases and probes.
    pub(super) lease_client: Client,
}

/// Components of the controllers, besides the control plane.
pub(super) struct Parts<'a> {
    /// Settings of the controllers.
    pub(super) flags: Flags,
    /// Engines for plugins.
    pub(super) engines: Vec<Arc<dyn Engine>>,
    /// Sources of plugins.
    pub(super) plugins: PluginSources,
    /// Record of the plugins that ended a process.
    pub(super) crash_marks: Option<Arc<CrashMarks>>,
    /// Write permit of this process.
    pub(super) permit: WritePermit,
    /// Member that this process is the agent of; `None` on the control plane.
    pub(super) agent_of: Option<AgentOf>,
    /// True if the process only answers requests to interpreters, on the control plane.
    pub(super) only_interprets: bool,
    /// Journal on disk, in addition to the one in memory.
    pub(super) decisions: Option<&'a journal::Running>,
}

impl Federation {
    /// Starts loading the plugins, and prepares everything else.
    pub(super) fn start(hub: &Hub, parts: Parts<'_>, state: &State) -> anyhow::Result<Self> {
        let Parts {
            flags,
            engines,
            plugins,
            crash_marks,
            permit,
            agent_of,
            only_interprets,
            decisions,
        } = parts;
        let registry = Arc::new(bulkhead_defaults::registry::build(&flags, engines));
        let (plugins, directory) = load_and_watch(&registry, plugins, crash_marks)?;
        let clock = Clock::new(super::now);
        let (emitter, events) = events::events(hub.client.clone(), clock.clone());
        let stores = Arc::new(Stores::default());
        let member_responses = Arc::<ResponseCounts>::default();
        let lease_hub = hub.reloading.lease_client();
        let clients_by = |hub: &Client| {
            let (clusters, responses) = (Arc::clone(&stores.clusters), Arc::clone(&member_responses));
            MemberClients::new(hub.clone(), clusters, permit.clone(), responses)
        };
        let (clients, lease_clients) = (clients_by(&hub.client), clients_by(&lease_hub));
        let (scope, members, lease_members): (_, Arc<dyn Members>, Arc<dyn Members>) = match agent_of {
            None => {
                let scope = if only_interprets {
                    Scope::Interpreter
                } else {
                    Scope::Push
                };
                (scope, Arc::clone(&clients) as _, Arc::clone(&lease_clients) as _)
            }
            Some(AgentOf {
                name,
                client,
                lease_client,
            }) => {
                let member = |client| Arc::new(OneMember::new(name.clone(), client));
                (Scope::Agent(name.clone()), member(client), member(lease_client))
            }
        };
        let runtime = hub.reloading.lease_runtime().clone();
        let lease_runtime = Some(LeaseRuntime {
            runtime,
            clients: LeaseClients {
                hub: lease_hub,
                members: lease_members,
            },
        });
        let transport = flags.interpreter_webhook_transport;
        let webhooks = Arc::new(HttpsWebhooks::new(hub.unguarded.clone(), system_roots(), transport));
        let context = Components {
            hub: hub.client.clone(),
            stores,
            kinds: Arc::new(Kinds::new(hub.client.clone())),
            members,
            scope,
            lease_runtime,
            clock,
            registry,
            evaluator: evaluator()?,
            plugins: Some(plugins),
            journal: Arc::new(journal::journal(JOURNAL_RECORDS_MAX, decisions).of_process(journal::process_uid())),
            scheduler: Arc::default(),
            queued: Arc::default(),
            pending_status: Arc::default(),
            failover_notes: Arc::default(),
            contacts: Arc::default(),
            interpreters_loaded: Arc::default(),
            scheduler_budget: Arc::new(WriteBudget::new(flags.kube_api_qps, flags.kube_api_burst)),
            estimators: estimator_pool(&flags).map_err(anyhow::Error::msg)?,
            flags: Arc::new(flags),
            events: emitter,
            failures: Arc::new(Failures::default()),
            metrics: Arc::default(),
            explain: None,
            templates: Arc::new(DynamicStores::new(None)),
            member_objects: Arc::new(DynamicStores::new(Some("karmada.io/managed=true"))),
            webhooks,
            uncovered: Arc::default(),
            requests: Arc::default(),
        };
        let responses = [
            ("control-plane", Arc::clone(&hub.responses)),
            ("member", member_responses),
        ];
        state.observe(Observed {
            context: context.clone(),
            responses,
        });
        Ok(Self {
            context,
            clients,
            lease_clients,
            events,
            directory,
        })
    }

    /// Returns the registry of policies.
    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.context.registry
    }

    /// Returns the clock of decisions.
    pub(super) fn clock(&self) -> &Clock {
        &self.context.clock
    }

    /// Returns the evictions that this process has queued.
    pub(super) fn queued(&self) -> Arc<EvictionsQueued> {
        Arc::clone(&self.context.queued)
    }

    /// Returns the store of known customizations.
    pub(super) fn customizations(&self) -> Arc<Store<ResourceInterpreterCustomization>> {
        Arc::clone(&self.context.stores.customizations)
    }

    /// Starts the informers, so that the controllers can start immediately on election. Clients of Push members are
    /// created only for controllers that use them. Problems are logged and recorded in `state`.
    pub(super) fn watch(self, members: bool, state: &State) -> Running {
        let (manager, plugins) = (Manager::watch(self.context.clone()), self.context.plugins.clone());
        if members {
            manager.spawn("clients of members", self.clients.run());
            manager.spawn_on_lease_runtime("clients for probes", self.lease_clients.run());
        }
        manager.spawn("events", self.events.run());
        manager.spawn("failure log", failure_log::run(self.context, state.clone()));
        Running {
            manager,
            plugins,
            _directory: self.directory,
        }
    }
}

impl Running {
    /// Waits until the set of plugins is known. An earlier decision could miss a plugin that holds.
    pub(super) async fn wait_for_plugins(&self) {
        if let Some(plugins) = &self.plugins {
            plugins.wait_for_cache_sync().await;
        }
    }

    /// Starts the given controllers.
    pub(super) fn run(&self, wanted: &[&str]) {
        for name in wanted {
            self.manager.start_controller(name);
        }
    }

    /// Starts every controller.
    pub(super) fn run_all(&self) {
        let names: Vec<_> = self.manager.names().collect();
        self.run(&names);
    }

    /// Waits until a controller or informer panics. Returns its name and the reason.
    pub(super) async fn failed(&self) -> String {
        self.manager.failed().await
    }

    /// Blocks new writes, waits for the responses to those in flight, and stops the controllers.
    pub(super) async fn stop_within(self, permit: &WritePermit, limit: Duration) {
        if tokio::time::timeout(limit, permit.stop()).await.is_err() {
            warn!(
                "writes that were not answered within {} s are abandoned",
                limit.as_secs()
            );
        }
    }
}

/// Starts the threads for the decisions of all controllers.
fn evaluator() -> anyhow::Result<Evaluator> {
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let pool = Pool::start("policy", PoolLimits::for_processors(processors));
    Ok(Evaluator::on(pool.context("starting the threads of policies")?))
}

/// Returns the system's trusted CA certificates. Unreadable ones are skipped: only a webhook that needs one is
/// reported as unreachable.
pub fn system_roots() -> rustls::RootCertStore {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Loads plugins: those of a directory immediately, those in objects when the objects arrive.
///
/// # Errors
///
/// The list of plugins cannot be read. A plugin that does not load is skipped, and its status has the cause.
pub fn load(registry: &Arc<Registry>, sources: PluginSources, objects: &Arc<Objects>) -> anyhow::Result<Plugins> {
    let plugins = catalog(registry, sources.directory, objects, None);
    plugins.refresh();
    readable(&plugins)?;
    Ok(plugins)
}

fn catalog(
    registry: &Arc<Registry>,
    files: Option<Directory>,
    objects: &Arc<Objects>,
    crash_marks: Option<Arc<CrashMarks>>,
) -> Plugins {
    let files = files.map(|files| Box::new(files) as Box<dyn Catalog>);
    let catalog = CombinedCatalog::new(files, Arc::clone(objects));
    let smoke_test = Some(Box::new(bulkhead_conformance::smoke) as SmokeTest);
    Plugins::new(
        Arc::clone(registry),
        Box::new(catalog),
        Loading {
            smoke_test,
            crash_marks,
            ..Loading::default()
        },
    )
}

/// Checks that the list of plugins is readable.
///
/// # Errors
///
/// The list of plugins cannot be read.
fn readable(plugins: &Plugins) -> anyhow::Result<()> {
    plugins
        .list_error()
        .map_or(Ok(()), |error| Err(anyhow::Error::msg(error)))
}

/// Starts loading and watching plugins, without waiting for any of them. Their status is logged.
fn load_and_watch(
    registry: &Arc<Registry>,
    sources: PluginSources,
    crash_marks: Option<Arc<CrashMarks>>,
) -> anyhow::Result<(Arc<PluginObjects>, Option<Watch>)> {
    let (objects, trust) = (sources.objects(), sources.trust());
    let has_files = sources.directory.is_some();
    let plugins = catalog(registry, sources.directory, &objects, crash_marks.clone());
    let plugins = Arc::new(plugins);
    plugins.look();
    readable(&plugins)?;
    let logged = Arc::<Mutex<BTreeSet<_>>>::default();
    let log = move |plugins: &Plugins| log_changes(plugins, crash_marks.as_deref(), &logged);
    let watch = has_files
        .then(|| Watch::start(Arc::clone(&plugins), Watch::INTERVAL, log.clone()))
        .transpose()?;
    Ok((Arc::new(PluginObjects::new(plugins, objects, trust, log)), watch))
}

/// Logs changes of the plugins' status and of the record of those that ended a process.
fn log_changes(plugins: &Plugins, crash_marks: Option<&CrashMarks>, logged: &Mutex<BTreeSet<(bool, String)>>) {
    let problem = |line: String| (true, line);
    let unreadable = plugins
        .list_error()
        .map(|error| format!("cannot reload the plugins, which stay as they are: {error}"));
    let of_plugin = |status: PluginStatus| {
        let line = (status.refused.is_some() || !status.held.is_empty(), status.to_string());
        let remarks = status
            .remarks
            .iter()
            .map(|remark| problem(format!("plugin {}: {remark}", status.name)));
        std::iter::once(line).chain(remarks).collect::<Vec<_>>()
    };
    let lines: BTreeSet<_> = plugins
        .status()
        .into_iter()
        .flat_map(of_plugin)
        .chain(unreadable.map(problem))
        .chain(
            crash_marks
                .map(CrashMarks::problems)
                .unwrap_or_default()
                .into_iter()
                .map(problem),
        )
        .collect();
    let mut logged = logged.lock().unwrap_or_else(PoisonError::into_inner);
    for (is_problem, line) in lines.difference(&logged) {
        if *is_problem {
            warn!(target: "bulkhead::plugin", "{line}");
        } else {
            info!(target: "bulkhead::plugin", "{line}");
        }
    }
    *logged = lines;
}
