//! Components of a process without servers: for simulations and tests.

use std::sync::Arc;

use bulkhead_core::journal::Journal;
use bulkhead_plugin::Registry;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::dynamic::DynamicStores;
use bulkhead_runtime::events::Events;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::kinds::Kinds;
use kube::Client;

use crate::components::Components;
use crate::evaluate::Evaluator;
use crate::flags::Flags;
use crate::members::{Members, Scope};
use crate::scheduler::WriteBudget;
use crate::stores::Stores;
use crate::webhook::NoWebhooks;

/// Process that runs controllers on an API server in process, without plugins from objects, estimators and webhooks.
pub struct Process {
    /// Client of the control plane.
    pub hub: Client,
    /// Clients of the member clusters.
    pub members: Arc<dyn Members>,
    /// Clock for decisions and timestamps.
    pub clock: Clock,
    /// Policies in force.
    pub registry: Arc<Registry>,
    /// Journal of decisions.
    pub journal: Journal,
    /// Settings.
    pub flags: Flags,
    /// Sender of Kubernetes events.
    pub events: Events,
    /// Key of the binding whose scheduling is explained in the journal.
    pub explain: Option<String>,
}

impl Process {
    /// Returns the components of its controllers. Plugins are evaluated inline, so that results do not depend on the
    /// machine.
    pub fn components(self) -> Components {
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
            queued: Arc::default(),
            pending_status: Arc::default(),
            failover_notes: Arc::default(),
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
