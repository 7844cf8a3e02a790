//! Control plane of a simulation: the kinds that it serves, and the components of a process beside it.

use std::sync::Arc;

use bulkhead_api::{KindInfo, REGISTERED};
use bulkhead_apiserver::{ResourceKind, kinds::kubernetes};
use bulkhead_controllers::flags::Flags;
use bulkhead_controllers::{Components, Evaluator, Members, NoWebhooks, Scope, Stores, WriteBudget};
use bulkhead_core::journal::Journal;
use bulkhead_plugin::Registry;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::dynamic::DynamicStores;
use bulkhead_runtime::events::Events;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::kinds::Kinds;
use kube::Client;

/// Returns the kinds of Kubernetes, Karmada and Bulkhead.
pub(crate) fn kinds() -> impl Iterator<Item = ResourceKind> {
    kubernetes().into_iter().chain(REGISTERED.iter().map(registered))
}

fn registered(info: &KindInfo) -> ResourceKind {
    let kind = if info.namespaced {
        ResourceKind::namespaced(info.group, info.version, info.kind, info.plural)
    } else {
        ResourceKind::cluster_scoped(info.group, info.version, info.kind, info.plural)
    };
    let kind = kind.with_short_names(info.short_names).with_categories(info.categories);
    if info.status_subresource {
        kind.with_status()
    } else {
        kind
    }
}

/// Process that runs controllers in a simulation.
pub(crate) struct Process {
    /// Client of the control plane.
    pub(crate) hub: Client,
    /// Clients of the member clusters.
    pub(crate) members: Arc<dyn Members>,
    /// Clock for decisions and timestamps.
    pub(crate) clock: Clock,
    /// Policies in force.
    pub(crate) registry: Arc<Registry>,
    /// Journal of decisions.
    pub(crate) journal: Journal,
    /// Settings.
    pub(crate) flags: Flags,
    /// Sender of Kubernetes events.
    pub(crate) events: Events,
    /// Key of the binding whose scheduling is explained in the journal.
    pub(crate) explain: Option<String>,
}

impl Process {
    /// Returns the components of its controllers. Plugins are evaluated inline, so that results do not depend on the
    /// machine.
    pub(crate) fn components(self) -> Components {
        let Self {
            hub,
            members,
            clock,
            registry,
            journal,
            flags,
            events,
            explain,
        } = self;
        let scheduler_budget = Arc::new(WriteBudget::new(flags.kube_api_qps, flags.kube_api_burst));
        Components {
            stores: Arc::new(Stores::default()),
            kinds: Arc::new(Kinds::new(hub.clone())),
            members,
            scope: Scope::Push,
            lease_runtime: None,
            clock,
            registry,
            evaluator: Evaluator::inline(),
            plugins: None,
            journal: Arc::new(journal),
            flags: Arc::new(flags),
            events,
            failures: Arc::new(Failures::default()),
            metrics: Arc::default(),
            scheduler: Arc::default(),
            pending_status: Arc::default(),
            contacts: Arc::default(),
            interpreters_loaded: Arc::default(),
            scheduler_budget,
            estimators: None,
            explain,
            templates: Arc::new(DynamicStores::new(None)),
            member_objects: Arc::new(DynamicStores::new(Some("karmada.io/managed=true"))),
            webhooks: Arc::new(NoWebhooks),
            uncovered: Arc::default(),
            requests: Arc::default(),
            hub,
        }
    }
}
