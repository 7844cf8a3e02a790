//! What runs on the control plane: stores, plugins, clients of members, controllers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_api::ResourceInterpreterCustomization;
use bulkhead_controllers::flags::Flags;
use bulkhead_controllers::{
    Answers, Clock, Context, DynamicStores, Evaluator, Failures, HttpsWebhooks, Kinds, Manager, MemberClients, Members,
    OneMember, PluginObjects, Pool, PoolLimits, Scope, Store, Stores, Vital, WriteBudget, WritePermit, estimator_pool,
    events,
};
use bulkhead_core::journal::Journal;
use bulkhead_core::time::Time;
use bulkhead_plugin::{Catalog, Directory, Engine, Objects, PluginStatus, Plugins, Registry, Together, Watch};
use kube::Client;

use super::endpoint::{Observed, State};
use super::hub::Hub;
use super::{journal, news, say};

/// Most decisions that are kept in memory, where nobody reads them: whoever wants to has `--journal`.
const JOURNAL_RECORDS_MAX: usize = 0;

/// Everything but the controllers, which start when this process is elected.
pub(super) struct Federation {
    context: Context,
    clients: Arc<MemberClients>,
    vital_clients: Arc<MemberClients>,
    events: events::Writer,
    directory: Option<Watch>,
}

/// Running informers, and controllers once they are started. They stop when this is dropped.
pub(super) struct Running {
    manager: Manager,
    plugins: Option<Arc<PluginObjects>>,
    _directory: Option<Watch>,
}

/// The member of an agent.
pub(super) struct AgentOf {
    /// Its name.
    pub(super) name: String,
    /// A client for it.
    pub(super) client: Client,
    /// The same for the runtime of leases and probes.
    pub(super) vital: Client,
}

/// What the controllers are made of, beside the control plane.
pub(super) struct Parts<'a> {
    /// Settings.
    pub(super) flags: Flags,
    /// What runs plugins.
    pub(super) engines: Vec<Arc<dyn Engine>>,
    /// Where plugins are that are files.
    pub(super) plugins: Option<&'a Path>,
    /// Until when this process may write.
    pub(super) permit: WritePermit,
    /// The member that this process is the agent of; none on the control plane.
    pub(super) agent_of: Option<AgentOf>,
    /// The journal that decisions are recorded in, beside the one in memory.
    pub(super) decisions: Option<&'a journal::Running>,
}

impl Federation {
    /// Begins to load the plugins, and prepares the rest.
    pub(super) fn start(hub: &Hub, parts: Parts<'_>, state: &State) -> anyhow::Result<Self> {
        let Parts { flags, engines, plugins, permit, agent_of, decisions } = parts;
        let registry = Arc::new(bulkhead::standard::registry(&flags, engines));
        let (plugins, directory) = load_and_watch(&registry, plugins)?;
        let clock = Clock::new(|| Time::new(super::now()));
        let (emitter, events) = events::events(hub.client.clone(), clock.clone());
        let stores = Arc::new(Stores::default());
        let member_answers = Arc::<Answers>::default();
        let vital_hub = hub.reloading.vital_client();
        let clients_by = |hub: &Client| {
            let (clusters, answers) = (Arc::clone(&stores.clusters), Arc::clone(&member_answers));
            MemberClients::new(hub.clone(), clusters, permit.clone(), answers)
        };
        let (clients, vital_clients) = (clients_by(&hub.client), clients_by(&vital_hub));
        let (scope, members, vital_members): (_, Arc<dyn Members>, Arc<dyn Members>) = match agent_of {
            None => (Scope::Push, Arc::clone(&clients) as _, Arc::clone(&vital_clients) as _),
            Some(AgentOf { name, client, vital }) => {
                let member = |client| Arc::new(OneMember::new(name.clone(), client));
                (Scope::Agent(name.clone()), member(client), member(vital))
            }
        };
        let runtime = hub.reloading.vital_runtime().clone();
        let vital = Some(Vital { runtime, hub: vital_hub, members: vital_members });
        let transport = flags.interpreter_webhook_transport;
        let webhooks = Arc::new(HttpsWebhooks::new(hub.unguarded.clone(), system_roots(), transport));
        let context = Context {
            hub: hub.client.clone(),
            stores,
            kinds: Arc::new(Kinds::new(hub.client.clone())),
            members,
            scope,
            vital,
            clock,
            registry,
            evaluator: evaluator()?,
            plugins: Some(plugins),
            journal: Arc::new({
                let last_id = decisions.map_or(0, |kept| kept.last_id);
                Journal::with_sink(JOURNAL_RECORDS_MAX, last_id, journal::logged(decisions))
                    .of_process(journal::process_uid())
            }),
            scheduler: Arc::default(),
            observations: Arc::default(),
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
        let answers = [("control-plane", Arc::clone(&hub.answers)), ("member", member_answers)];
        state.observe(Observed { context: context.clone(), answers });
        Ok(Self { context, clients, vital_clients, events, directory })
    }

    /// The policies in force.
    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.context.registry
    }

    /// The customizations there are, as far as they are known.
    pub(super) fn customizations(&self) -> Arc<Store<ResourceInterpreterCustomization>> {
        Arc::clone(&self.context.stores.customizations)
    }

    /// Begins to watch the control plane, so that the controllers can start at once when it is their turn. The clients
    /// of Push members are made only for controllers that use them. What goes wrong is said, and in `state`.
    pub(super) fn watch(self, members: bool, state: &State) -> Running {
        let (manager, plugins) = (Manager::watch(self.context.clone()), self.context.plugins.clone());
        if members {
            manager.spawn("clients of members", self.clients.run());
            manager.spawn_vital("clients for probes", self.vital_clients.run());
        }
        manager.spawn("events", self.events.run());
        manager.spawn("news", news::tell(self.context, state.clone()));
        Running { manager, plugins, _directory: self.directory }
    }
}

impl Running {
    /// Waits until it is known which plugins there are. Who decides anything before may miss one that holds.
    pub(super) async fn plugins_known(&self) {
        if let Some(plugins) = &self.plugins {
            plugins.known().await;
        }
    }

    /// Starts these controllers.
    pub(super) fn run(&self, wanted: &[&str]) {
        for name in wanted {
            self.manager.start_controller(name);
        }
    }

    /// Starts every controller there is.
    pub(super) fn run_all(&self) {
        let names: Vec<_> = self.manager.names().collect();
        self.run(&names);
    }

    /// Waits until one of them panics, and says which one and why.
    pub(super) async fn failed(&self) -> String {
        self.manager.failed().await
    }

    /// Lets nobody write any more, waits for the answers to what was sent, and stops the controllers.
    pub(super) async fn stop_within(self, permit: &WritePermit, limit: Duration) {
        if tokio::time::timeout(limit, permit.stop()).await.is_err() {
            say(&format!("writes that were not answered within {} s are left behind", limit.as_secs()));
        }
    }
}

/// Threads for the decisions of all controllers.
fn evaluator() -> anyhow::Result<Evaluator> {
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let pool = Pool::start("policy", PoolLimits::for_processors(processors));
    Ok(Evaluator::on(pool.context("starting the threads of policies")?))
}

/// The authorities that this system trusts. Those that cannot be read are left out: a hook that needs one is reported
/// as unreachable, and the others work.
fn system_roots() -> rustls::RootCertStore {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Loads plugins: those of a directory at once, those that are objects when they are told of.
///
/// # Errors
///
/// Why the list of plugins could not be read. One that does not load is left out, and its status says why.
pub(crate) fn load(registry: &Arc<Registry>, path: Option<&Path>, objects: &Arc<Objects>) -> anyhow::Result<Plugins> {
    let plugins = catalog(registry, path, objects);
    plugins.refresh();
    readable(&plugins)?;
    Ok(plugins)
}

fn catalog(registry: &Arc<Registry>, path: Option<&Path>, objects: &Arc<Objects>) -> Plugins {
    let files = path.map(|path| Box::new(Directory::new(path)) as Box<dyn Catalog>);
    let catalog = Together::new(files, Arc::clone(objects));
    Plugins::new(Arc::clone(registry), Box::new(catalog), Some(Box::new(bulkhead_conformance::smoke)))
}

/// # Errors
///
/// Why the list of plugins could not be read.
fn readable(plugins: &Plugins) -> anyhow::Result<()> {
    plugins.list_error().map_or(Ok(()), |error| Err(anyhow::Error::msg(error)))
}

/// Begins to keep plugins in force, without waiting for any to load. What becomes of them is said.
fn load_and_watch(
    registry: &Arc<Registry>,
    path: Option<&Path>,
) -> anyhow::Result<(Arc<PluginObjects>, Option<Watch>)> {
    let objects = Arc::<Objects>::default();
    let plugins = Arc::new(catalog(registry, path, &objects));
    plugins.look();
    readable(&plugins)?;
    let told = Arc::<Mutex<BTreeSet<String>>>::default();
    let tell = move |plugins: &Plugins| tell(plugins, &told);
    let watch = path.map(|_| Watch::start(Arc::clone(&plugins), Watch::INTERVAL, tell.clone())).transpose()?;
    Ok((Arc::new(PluginObjects::new(plugins, objects, tell)), watch))
}

/// Says what became of the plugins, as far as that is news.
fn tell(plugins: &Plugins, told: &Mutex<BTreeSet<String>>) {
    let unreadable = plugins.list_error().map(|error| format!("the plugins stay as they are: {error}"));
    let of_plugin = |status: PluginStatus| {
        let remarks = status.remarks.iter().map(|remark| format!("plugin {}: {remark}", status.name));
        std::iter::once(status.to_string()).chain(remarks).collect::<Vec<_>>()
    };
    let lines: BTreeSet<_> = plugins.status().into_iter().flat_map(of_plugin).chain(unreadable).collect();
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    lines.difference(&told).for_each(|line| say(line));
    *told = lines;
}
