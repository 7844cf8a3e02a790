//! What runs on the control plane: stores, plugins, clients of members, controllers.

use std::path::Path;
use std::sync::Arc;

use bulkhead_controllers::flags::Flags;
use bulkhead_controllers::{
    Clock, Context, DynamicStores, Failures, HttpsWebhooks, Kinds, Manager, MemberClients, Scope, Stores, Tasks,
    WritePermit, events,
};
use bulkhead_core::journal::Journal;
use bulkhead_core::time::Time;
use bulkhead_plugin::{Directory, Engine, Plugins, Registry, Watch};

use super::endpoint::State;
use super::hub::Hub;
use super::say;

/// Most decisions that are kept in memory.
const JOURNAL_RECORDS_MAX: usize = 20_000;

/// Everything but the controllers, which start when this process is elected.
pub(super) struct Federation {
    context: Context,
    members: Arc<MemberClients>,
    tasks: Tasks,
    _plugins: Option<Watch>,
}

/// Running controllers. They stop when this is dropped.
pub(super) struct Running {
    manager: Manager,
    _federation: Federation,
}

impl Federation {
    /// Loads the plugins and prepares the rest.
    pub(super) fn start(
        hub: &Hub,
        flags: Flags,
        engines: Vec<Arc<dyn Engine>>,
        plugins: Option<&Path>,
        permit: &WritePermit,
        state: &State,
    ) -> anyhow::Result<Self> {
        let registry = Arc::new(bulkhead::standard::registry(&flags, engines));
        let plugins = plugins.map(|path| watch(&registry, path)).transpose()?;
        let clock = Clock::new(|| Time::new(super::now()));
        let (emitter, writer) = events::events(hub.client.clone(), clock.clone());
        let tasks = Tasks::default();
        tasks.spawn(writer.run());
        let stores = Arc::new(Stores::default());
        let members = MemberClients::new(hub.client.clone(), Arc::clone(&stores.clusters), permit.clone());
        let context = Context {
            hub: hub.client.clone(),
            stores,
            kinds: Arc::new(Kinds::new(hub.client.clone())),
            members: Arc::clone(&members) as _,
            scope: Scope::Push,
            clock,
            registry,
            journal: Arc::new(Journal::new(JOURNAL_RECORDS_MAX)),
            flags: Arc::new(flags),
            events: emitter,
            failures: Arc::new(Failures::default()),
            metrics: Arc::default(),
            explain: None,
            templates: Arc::new(DynamicStores::new(None)),
            member_objects: Arc::new(DynamicStores::new(Some("karmada.io/managed=true"))),
            webhooks: Arc::new(HttpsWebhooks::new(hub.unguarded.clone(), system_roots())),
            uncovered: Arc::default(),
            requests: Arc::default(),
        };
        state.observe(context.clone());
        Ok(Self { context, members, tasks, _plugins: plugins })
    }

    /// Starts the controllers that are wanted.
    pub(super) fn run(self, wanted: impl Fn(&str) -> bool) -> Running {
        self.tasks.spawn(Arc::clone(&self.members).run());
        let manager = Manager::start_only(self.context.clone(), wanted);
        Running { manager, _federation: self }
    }
}

impl Running {
    /// Stops the controllers at their next await.
    pub(super) async fn stop(self) {
        drop(self.manager);
        tokio::task::yield_now().await;
    }
}

/// The authorities that this system trusts. Those that cannot be read are left out: a hook that needs one is reported
/// as unreachable, and the others work.
fn system_roots() -> rustls::RootCertStore {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Loads the plugins of a directory and keeps them fresh. One that does not load is said and left out.
fn watch(registry: &Arc<Registry>, path: &Path) -> anyhow::Result<Watch> {
    let plugins =
        Plugins::new(Arc::clone(registry), Box::new(Directory::new(path)), Some(Box::new(bulkhead_conformance::smoke)));
    plugins.refresh();
    if let Some(error) = plugins.list_error() {
        anyhow::bail!("{error}");
    }
    for status in plugins.status() {
        match &status.refused {
            None => say(&format!("plugin {} is active", status.name)),
            Some(refused) => say(&format!("plugin {} was refused: {refused:?}", status.name)),
        }
    }
    Ok(Watch::start(Arc::new(plugins), Watch::INTERVAL)?)
}
