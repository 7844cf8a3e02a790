//! Components that controllers share, and the selection of those that each one depends on.
//!
//! Only [`crate::manager`] and this module know all controllers. A controller knows its own `Dependencies`.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bulkhead_core::journal::Journal;
use bulkhead_estimator::EstimatorPool;
use bulkhead_plugin::Registry;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::dynamic::DynamicStores;
use bulkhead_runtime::events::Events;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::kinds::Kinds;
use bulkhead_runtime::lease_runtime::LeaseRuntime;
use kube::Client;
use tokio::runtime::Handle;

use crate::binding_kind::Bindings;
use crate::contact::{Contacts, Reported};
use crate::decision_log::DecisionLog;
use crate::evaluate::{Decider, Evaluator};
use crate::failover_notes::FailoverNotes;
use crate::flags::Flags;
use crate::interpreter::{Interpreters, InterpretersLoaded, UncoveredKinds};
use crate::members::{Members, Scope};
use crate::metrics::Metrics;
use crate::pending_status::PendingStatus;
use crate::plugins::PluginObjects;
use crate::readiness::Readiness;
use crate::scheduler::{Evictions, RunningScheduler, WriteBudget};
use crate::stores::Stores;
use crate::taint_manager::EvictionsQueued;
use crate::templates::Templates;
use crate::webhook::Webhooks;
use crate::writers::Writers;
use crate::{
    agent, application_failover, binding, binding_status, cluster, cluster_status, cluster_taints, customizations,
    dependencies, detector, drain, execution, failover_record, graceful_eviction, plugins, rebalancer, scheduler,
    taint_manager, work_status,
};

/// Clients on the runtime of leases and probes.
#[derive(Clone)]
pub struct LeaseClients {
    /// Client of the control plane.
    pub hub: Client,
    /// Clients of member clusters.
    pub members: Arc<dyn Members>,
}

/// Components that the controllers of one process share. Cheap to clone.
#[derive(Clone)]
pub struct Components {
    /// The control plane.
    pub hub: Client,
    /// Caches of the control plane's objects.
    pub stores: Arc<Stores>,
    /// Kinds that the control plane serves.
    pub kinds: Arc<Kinds>,
    /// Member clusters.
    pub members: Arc<dyn Members>,
    /// Member clusters that these controllers talk to.
    pub scope: Scope,
    /// Runtime of leases and probes; none if they run on the runtime of all controllers.
    pub lease_runtime: Option<LeaseRuntime<LeaseClients>>,
    /// Clock for decisions and timestamps.
    pub clock: Clock,
    /// Policies in force.
    pub registry: Arc<Registry>,
    /// Evaluator of decisions that call plugins.
    pub evaluator: Evaluator,
    /// Plugins defined by `Plugin` objects; none if this process does not watch them.
    pub plugins: Option<Arc<PluginObjects>>,
    /// Journal of decisions.
    pub journal: Arc<Journal>,
    /// Settings.
    pub flags: Arc<Flags>,
    /// Sender of Kubernetes events.
    pub events: Events,
    /// Counts of failed reconciles.
    pub failures: Arc<Failures>,
    /// Prometheus metrics.
    pub metrics: Arc<Metrics>,
    /// Rate limit of the scheduler's writes.
    pub scheduler_budget: Arc<WriteBudget>,
    /// Scheduler of this process, for controllers that evict bindings.
    pub scheduler: Arc<RunningScheduler>,
    /// Evictions that this process has queued.
    pub queued: Arc<EvictionsQueued>,
    /// Evidence that member clusters respond and that their reports are current.
    pub contacts: Arc<Contacts>,
    /// Scheduler status fields that are not written yet.
    pub pending_status: Arc<PendingStatus>,
    /// Decisions about old copies that no FailoverRecord has yet.
    pub failover_notes: Arc<FailoverNotes>,
    /// Load state of the interpreters from customizations.
    pub interpreters_loaded: Arc<InterpretersLoaded>,
    /// Accurate estimators, if enabled.
    pub estimators: Option<Arc<EstimatorPool>>,
    /// Key of the binding whose scheduling is explained in the journal, as `namespace/name` or `name`.
    pub explain: Option<String>,
    /// Caches of resource templates, from the API server that [`HUB`](crate::HUB) names.
    pub templates: Arc<DynamicStores>,
    /// Caches of managed objects in member clusters, by cluster.
    pub member_objects: Arc<DynamicStores>,
    /// Transport to webhook interpreters.
    pub webhooks: Arc<dyn Webhooks>,
    /// Kinds in use without a health interpreter.
    pub uncovered: Arc<UncoveredKinds>,
    /// Number of requests sent to webhook interpreters.
    pub requests: Arc<AtomicU64>,
}

impl Components {
    /// Returns the runtime of leases and probes with components for it; without a separate one, the runtime of the
    /// caller.
    pub(crate) fn on_lease_runtime(&self) -> (Handle, Self) {
        let own = || LeaseClients {
            hub: self.hub.clone(),
            members: Arc::clone(&self.members),
        };
        let (runtime, LeaseClients { hub, members }) = LeaseRuntime::or_current(self.lease_runtime.clone(), own);
        (
            runtime,
            Self {
                hub,
                members,
                ..self.clone()
            },
        )
    }

    fn log(&self) -> DecisionLog {
        DecisionLog {
            journal: Arc::clone(&self.journal),
            clock: self.clock.clone(),
            registry: Arc::clone(&self.registry),
            events: self.events.clone(),
            failovers: Arc::clone(&self.failover_notes),
        }
    }

    fn decider(&self) -> Decider {
        Decider {
            evaluator: self.evaluator.clone(),
            registry: Arc::clone(&self.registry),
            log: self.log(),
            metrics: Arc::clone(&self.metrics),
        }
    }

    fn interpreters(&self) -> Interpreters {
        Interpreters {
            decider: self.decider(),
            clock: self.clock.clone(),
            hooks: Arc::clone(&self.stores.webhooks),
            webhooks: Arc::clone(&self.webhooks),
            requests: Arc::clone(&self.requests),
            uncovered: Arc::clone(&self.uncovered),
            no_interpreter: self.flags.health_without_interpreter,
            loaded: Arc::clone(&self.interpreters_loaded),
        }
    }

    fn bindings(&self) -> Bindings {
        Bindings {
            stores: Arc::clone(&self.stores),
            hub: self.hub.clone(),
            pending_status: Arc::clone(&self.pending_status),
        }
    }

    fn templates(&self) -> Templates {
        Templates {
            cache: Arc::clone(&self.templates),
            kinds: Arc::clone(&self.kinds),
            hub: self.hub.clone(),
        }
    }

    fn writers(&self) -> Writers {
        Writers {
            stores: Arc::clone(&self.stores),
            hub: self.hub.clone(),
        }
    }

    fn readiness(&self) -> Readiness {
        Readiness {
            writers: self.writers(),
            log: self.log(),
            metrics: Arc::clone(&self.metrics),
        }
    }

    fn evictions(&self) -> Evictions {
        Evictions {
            bindings: self.bindings(),
            log: self.log(),
            clock: self.clock.clone(),
            scheduler: Arc::clone(&self.scheduler),
        }
    }

    pub(crate) fn reported(&self) -> Reported {
        Reported {
            stores: Arc::clone(&self.stores),
            contacts: Arc::clone(&self.contacts),
            members: Arc::clone(&self.members),
            kinds: Arc::clone(&self.kinds),
            lease_duration: self.flags.cluster_lease_duration.0,
        }
    }
}

/// Dependencies of each controller.
impl Components {
    pub(crate) fn agent(&self) -> agent::Dependencies {
        agent::Dependencies {
            clock: self.clock.clone(),
            contacts: Arc::clone(&self.contacts),
            failures: Arc::clone(&self.failures),
            flags: Arc::clone(&self.flags),
            hub: self.hub.clone(),
            scope: self.scope.clone(),
            stores: Arc::clone(&self.stores),
        }
    }

    pub(crate) fn application_failover(&self) -> application_failover::Dependencies {
        application_failover::Dependencies {
            evictions: self.evictions(),
            clock: self.clock.clone(),
            failures: Arc::clone(&self.failures),
            flags: Arc::clone(&self.flags),
            log: self.log(),
            reported: self.reported(),
            stores: Arc::clone(&self.stores),
        }
    }

    pub(crate) fn binding(&self) -> binding::Dependencies {
        binding::Dependencies {
            bindings: self.bindings(),
            clock: self.clock.clone(),
            failures: Arc::clone(&self.failures),
            flags: Arc::clone(&self.flags),
            hub: self.hub.clone(),
            interpreters: self.interpreters(),
            log: self.log(),
            stores: Arc::clone(&self.stores),
            templates: self.templates(),
            writers: self.writers(),
        }
    }

    pub(crate) fn binding_status(&self) -> binding_status::Dependencies {
        binding_status::Dependencies {
            bindings: self.bindings(),
            clock: self.clock.clone(),
            failures: Arc::clone(&self.failures),
            interpreters: self.interpreters(),
            stores: Arc::clone(&self.stores),
            templates: self.templates(),
        }
    }

    pub(crate) fn cluster(&self) -> cluster::Dependencies {
        cluster::Dependencies {
            clock: self.clock.clone(),
            contacts: Arc::clone(&self.contacts),
            failures: Arc::clone(&self.failures),
            flags: Arc::clone(&self.flags),
            hub: self.hub.clone(),
            log: self.log(),
            readiness: self.readiness(),
            scope: self.scope.clone(),
            stores: Arc::clone(&self.stores),
            writers: self.writers(),
        }
    }

    pub(crate) fn cluster_status(&self) -> cluster_status::Dependencies {
        cluster_status::Dependencies {
            clock: self.clock.clone(),
            contacts: Arc::clone(&self.contacts),
            failures: Arc::clone(&self.failures),
            flags: Arc::clone(&self.flags),
            member_objects: Arc::clone(&self.member_objects),
            members: Arc::clone(&self.members),
            metrics: Arc::clone(&self.metrics),
            readiness: self.readiness(),
            scope: self.scope.clone(),
            stores: Arc::clone(&self.stores),
        }
    }

    pub(crate) fn cluster_taints(&self) -> cluster_taints::Dependencies {
        cluster_taints::Dependencies {
            clock: self.clock.clone(),
            contacts: Arc::clone(&self.contacts),
            decider: self.decider(),
            failures: Arc::clone(&self.failures),
            flags: Arc::clone(&self.flags),
            log: self.log(),
            stores: Arc::clone(&self.stores),
            writers: self.writers(),
        }
    }

    pub(crate) fn customizations(&self) -> customizations::Dependencies {
        customizations::Dependencies {
            decider: self.decider(),
            failures: Arc::clone(&self.failures),
            loaded: Arc::clone(&self.interpreters_loaded),
            log: self.log(),
            scope: self.scope.clone(),
            stores: Arc::clone(&self.stores),
        }
    }

    pub(crate) fn dependencies(&self) -> dependencies::Dependencies {
        dependencies::Dependencies {
            bindings: self.bindings(),
            failures: Arc::clone(&self.failures),
            flags: Arc::clone(&self.flags),
            hub: self.hub.clone(),
            interpreters: self.interpreters(),
            log: self.log(),
            stores: Arc::clone(&self.stores),
            templates: self.templates(),
        }
    }

    pub(crate) fn detector(&self) -> detector::Dependencies {
        detector::Dependencies {
            failures: Arc::clone(&self.failures),
            flags: Arc::clone(&self.flags),
            hub: self.hub.clone(),
            interpreters: self.interpreters(),
            log: self.log(),
            stores: Arc::clone(&self.stores),
            templates: self.templates(),
        }
    }

    pub(crate) fn drain(&self) -> drain::Dependencies {
        drain::Dependencies {
            clock: self.clock.clone(),
            failures: Arc::clone(&self.failures),
            hub: self.hub.clone(),
            stores: Arc::clone(&self.stores),
        }
    }

    pub(crate) fn rebalancer(&self) -> rebalancer::Dependencies {
        rebalancer::Dependencies {
            bindings: self.bindings(),
            clock: self.clock.clone(),
            failures: Arc::clone(&self.failures),
        }
    }

    pub(crate) fn execution(&self) -> execution::Dependencies {
        execution::Dependencies {
            clock: self.clock.clone(),
            failures: Arc::clone(&self.failures),
            interpreters: self.interpreters(),
            kinds: Arc::clone(&self.kinds),
            log: self.log(),
            member_objects: Arc::clone(&self.member_objects),
            members: Arc::clone(&self.members),
            scope: self.scope.clone(),
            stores: Arc::clone(&self.stores),
            writers: self.writers(),
        }
    }

    pub(crate) fn failover_record(&self) -> failover_record::Dependencies {
        failover_record::Dependencies {
            clock: self.clock.clone(),
            failures: Arc::clone(&self.failures),
            flags: Arc::clone(&self.flags),
            hub: self.hub.clone(),
            notes: Arc::clone(&self.failover_notes),
            stores: Arc::clone(&self.stores),
        }
    }

    pub(crate) fn graceful_eviction(&self) -> graceful_eviction::Dependencies {
        graceful_eviction::Dependencies {
            bindings: self.bindings(),
            clock: self.clock.clone(),
            decider: self.decider(),
            failures: Arc::clone(&self.failures),
            flags: Arc::clone(&self.flags),
            log: self.log(),
            pending_status: Arc::clone(&self.pending_status),
            reported: self.reported(),
            stores: Arc::clone(&self.stores),
        }
    }

    pub(crate) fn plugins(&self) -> plugins::Dependencies {
        plugins::Dependencies {
            clock: self.clock.clone(),
            failures: Arc::clone(&self.failures),
            hub: self.hub.clone(),
            log: self.log(),
            plugins: self.plugins.clone(),
            stores: Arc::clone(&self.stores),
        }
    }

    pub(crate) fn scheduler(&self) -> scheduler::Dependencies {
        scheduler::Dependencies {
            bindings: self.bindings(),
            clock: self.clock.clone(),
            decider: self.decider(),
            estimators: self.estimators.clone(),
            explain: self.explain.clone(),
            failures: Arc::clone(&self.failures),
            flags: Arc::clone(&self.flags),
            hub: self.hub.clone(),
            log: self.log(),
            metrics: Arc::clone(&self.metrics),
            pending_status: Arc::clone(&self.pending_status),
            scheduler: Arc::clone(&self.scheduler),
            scheduler_budget: Arc::clone(&self.scheduler_budget),
            stores: Arc::clone(&self.stores),
        }
    }

    pub(crate) fn taint_manager(&self) -> taint_manager::Dependencies {
        taint_manager::Dependencies {
            bindings: self.bindings(),
            clock: self.clock.clone(),
            contacts: Arc::clone(&self.contacts),
            decider: self.decider(),
            failures: Arc::clone(&self.failures),
            flags: Arc::clone(&self.flags),
            log: self.log(),
            metrics: Arc::clone(&self.metrics),
            evictions: self.evictions(),
            queued: Arc::clone(&self.queued),
            stores: Arc::clone(&self.stores),
            templates: self.templates(),
            writers: self.writers(),
        }
    }

    pub(crate) fn work_status(&self) -> work_status::Dependencies {
        work_status::Dependencies {
            contacts: Arc::clone(&self.contacts),
            decider: self.decider(),
            failures: Arc::clone(&self.failures),
            interpreters: self.interpreters(),
            log: self.log(),
            member_objects: Arc::clone(&self.member_objects),
            scope: self.scope.clone(),
            stores: Arc::clone(&self.stores),
            writers: self.writers(),
        }
    }
}
