//! What runs on the control plane: stores, plugins, clients of members, controllers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bulkhead_api::ResourceInterpreterCustomization;
use bulkhead_controllers::flags::Flags;
use bulkhead_controllers::{
    Answers, Clock, Context, DynamicStores, Failures, HttpsWebhooks, Kinds, Manager, MemberClients, Members, OneMember,
    Scope, Store, Stores, WriteBudget, WritePermit, estimator_pool, events,
};
use bulkhead_core::journal::Journal;
use bulkhead_core::time::Time;
use bulkhead_plugin::{Directory, Engine, PluginStatus, Plugins, Registry, Watch};
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
    events: events::Writer,
    plugins: Option<Watch>,
}

/// Running informers, and controllers once they are started. They stop when this is dropped.
pub(super) struct Running {
    manager: Manager,
    _plugins: Option<Watch>,
}

/// What the controllers are made of, beside the control plane.
pub(super) struct Parts<'a> {
    /// Settings.
    pub(super) flags: Flags,
    /// What runs plugins.
    pub(super) engines: Vec<Arc<dyn Engine>>,
    /// Where plugins are.
    pub(super) plugins: Option<&'a Path>,
    /// Until when this process may write.
    pub(super) permit: WritePermit,
    /// The member that this process is the agent of, with a client for it; none on the control plane.
    pub(super) agent_of: Option<(String, Client)>,
    /// The journal that decisions are recorded in, beside the one in memory.
    pub(super) decisions: Option<&'a journal::Running>,
}

impl Federation {
    /// Loads the plugins and prepares the rest.
    pub(super) fn start(hub: &Hub, parts: Parts<'_>, state: &State) -> anyhow::Result<Self> {
        let Parts { flags, engines, plugins, permit, agent_of, decisions } = parts;
        let registry = Arc::new(bulkhead::standard::registry(&flags, engines));
        let plugins = plugins.map(|path| watch(&registry, path)).transpose()?;
        let clock = Clock::new(|| Time::new(super::now()));
        let (emitter, events) = events::events(hub.client.clone(), clock.clone());
        let stores = Arc::new(Stores::default());
        let member_answers = Arc::<Answers>::default();
        let clients =
            MemberClients::new(hub.client.clone(), Arc::clone(&stores.clusters), permit, Arc::clone(&member_answers));
        let (scope, members): (_, Arc<dyn Members>) = match agent_of {
            None => (Scope::Push, Arc::clone(&clients) as _),
            Some((name, client)) => (Scope::Agent(name.clone()), Arc::new(OneMember::new(name, client))),
        };
        let transport = flags.interpreter_webhook_transport;
        let webhooks = Arc::new(HttpsWebhooks::new(hub.unguarded.clone(), system_roots(), transport));
        let context = Context {
            hub: hub.client.clone(),
            stores,
            kinds: Arc::new(Kinds::new(hub.client.clone())),
            members,
            scope,
            clock,
            registry,
            journal: Arc::new({
                let last_id = decisions.map_or(0, |kept| kept.last_id);
                Journal::with_sink(JOURNAL_RECORDS_MAX, last_id, journal::logged(decisions))
            }),
            scheduler: Arc::default(),
            observations: Arc::default(),
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
        Ok(Self { context, clients, events, plugins })
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
        let manager = Manager::watch(self.context.clone());
        if members {
            manager.spawn("clients of members", self.clients.run());
        }
        manager.spawn("events", self.events.run());
        manager.spawn("news", news::tell(self.context, state.clone()));
        Running { manager, _plugins: self.plugins }
    }
}

impl Running {
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

/// The authorities that this system trusts. Those that cannot be read are left out: a hook that needs one is reported
/// as unreachable, and the others work.
fn system_roots() -> rustls::RootCertStore {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Loads the plugins of a directory.
///
/// # Errors
///
/// Why the list of plugins could not be read. One that does not load is left out, and its status says why.
pub(crate) fn load(registry: &Arc<Registry>, path: &Path) -> anyhow::Result<Plugins> {
    let plugins =
        Plugins::new(Arc::clone(registry), Box::new(Directory::new(path)), Some(Box::new(bulkhead_conformance::smoke)));
    plugins.refresh();
    match plugins.list_error() {
        Some(error) => Err(anyhow::Error::msg(error)),
        None => Ok(plugins),
    }
}

/// Loads the plugins of a directory and keeps them fresh. What becomes of them is said.
fn watch(registry: &Arc<Registry>, path: &Path) -> anyhow::Result<Watch> {
    let plugins = load(registry, path)?;
    let told = Mutex::default();
    tell(&plugins, &told);
    Ok(Watch::start(Arc::new(plugins), Watch::INTERVAL, move |plugins| tell(plugins, &told))?)
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
