//! Which controllers run, and the informers they share.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::task::{AbortHandle, JoinSet};

use crate::context::{Context, Scope, Stores};
use crate::dynamic::Tasks;
use crate::{
    agent, application_failover, binding, binding_status, cluster, cluster_status, cluster_taints, customizations,
    dependencies, detector, drain, execution, graceful_eviction, scheduler, taint_manager, work_status,
};

type Run = fn(Context) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// The controller that loads interpreters, which others wait for.
const INTERPRETERS: &str = "interpreterCustomization";

/// The controllers of the control plane, by the names that Karmada's `--controllers` uses where it has one.
const CONTROLLERS: &[(&str, Run)] = &[
    (INTERPRETERS, |context| Box::pin(customizations::run(context))),
    ("detector", |context| Box::pin(detector::run(context))),
    ("scheduler", |context| Box::pin(scheduler::run(context))),
    ("binding", |context| Box::pin(binding::run(context))),
    ("execution", |context| Box::pin(execution::run(context))),
    ("workStatus", |context| Box::pin(work_status::run(context))),
    ("bindingStatus", |context| Box::pin(binding_status::run(context))),
    ("clusterStatus", |context| Box::pin(cluster_status::run(context))),
    ("cluster", |context| Box::pin(cluster::run(context))),
    ("clustertaintpolicy", |context| Box::pin(cluster_taints::run(context))),
    ("taintManager", |context| Box::pin(taint_manager::run(context))),
    ("clusterDrain", |context| Box::pin(drain::run(context))),
    ("gracefulEviction", |context| Box::pin(graceful_eviction::run(context))),
    ("dependenciesDistributor", |context| Box::pin(dependencies::run(context))),
    ("applicationFailover", |context| Box::pin(application_failover::run(context))),
];

/// The controllers of an agent in a Pull cluster.
const AGENT_CONTROLLERS: &[(&str, Run)] = &[
    (INTERPRETERS, |context| Box::pin(customizations::run(context))),
    ("execution", |context| Box::pin(execution::run(context))),
    ("workStatus", |context| Box::pin(work_status::run(context))),
    ("clusterStatus", |context| Box::pin(cluster_status::run(context))),
    ("lease", |context| Box::pin(agent::run(context))),
];

/// Names of the controllers that can be stopped and started.
pub fn controller_names() -> impl Iterator<Item = &'static str> {
    CONTROLLERS.iter().map(|(name, _)| *name)
}

/// Running controllers. They all stop when this is dropped.
pub struct Manager {
    context: Context,
    controllers: &'static [(&'static str, Run)],
    running: Mutex<BTreeMap<&'static str, AbortHandle>>,
    tasks: Mutex<JoinSet<()>>,
    informers: Tasks,
}

impl Manager {
    /// Starts the informers and every controller that the context's scope calls for.
    pub fn start(context: Context) -> Self {
        let manager = Self::watch(context);
        for name in manager.names() {
            manager.start_controller(name);
        }
        manager
    }

    /// Starts the informers and no controller yet.
    pub fn watch(context: Context) -> Self {
        let controllers = match context.scope {
            Scope::Push => CONTROLLERS,
            Scope::Agent(_) => AGENT_CONTROLLERS,
        };
        let informers = Tasks::default();
        start_informers(&informers, &context.stores, &context.hub, &context.scope);
        Self { context, controllers, running: Mutex::default(), tasks: Mutex::default(), informers }
    }

    /// Names of the controllers that the context's scope calls for.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.controllers.iter().map(|(name, _)| *name)
    }

    /// Starts a controller unless it runs. Returns whether there is one of that name.
    pub fn start_controller(&self, name: &str) -> bool {
        let Some((name, run)) = self.controllers.iter().find(|(known, _)| *known == name) else { return false };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.get(name).is_none_or(|handle| handle.is_finished()) {
            if *name == INTERPRETERS {
                self.context.interpreters_loaded.expect();
            }
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            running.insert(name, tasks.spawn(run(self.context.clone())));
        }
        true
    }

    /// Stops a controller at its next await, as a crash would: it loses its memory and whatever it was about to
    /// write. Returns whether one ran.
    pub fn stop_controller(&self, name: &str) -> bool {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(name).map(|handle| handle.abort()).is_some()
    }

    /// The informers, for tasks that are to live as long as the manager.
    pub fn tasks(&self) -> &Tasks {
        &self.informers
    }
}

fn start_informers(tasks: &Tasks, stores: &Arc<Stores>, hub: &Client, scope: &Scope) {
    let everything = watcher::Config::default;
    tasks.spawn(Arc::clone(&stores.clusters).run_informer(Api::all(hub.clone()), everything()));
    tasks.spawn(Arc::clone(&stores.customizations).run_informer(Api::all(hub.clone()), everything()));
    tasks.spawn(Arc::clone(&stores.webhooks).run_informer(Api::all(hub.clone()), everything()));
    match scope {
        Scope::Agent(cluster) => {
            let namespace = bulkhead_core::names::execution_namespace(cluster);
            let works = Api::namespaced(hub.clone(), &namespace);
            tasks.spawn(Arc::clone(&stores.works).run_informer(works, everything()));
        }
        Scope::Push => {
            tasks.spawn(Arc::clone(&stores.taint_policies).run_informer(Api::all(hub.clone()), everything()));
            tasks.spawn(Arc::clone(&stores.eviction_pauses).run_informer(Api::all(hub.clone()), everything()));
            tasks.spawn(Arc::clone(&stores.cluster_drains).run_informer(Api::all(hub.clone()), everything()));
            tasks.spawn(Arc::clone(&stores.policies).run_informer(Api::all(hub.clone()), everything()));
            tasks.spawn(Arc::clone(&stores.cluster_policies).run_informer(Api::all(hub.clone()), everything()));
            tasks.spawn(Arc::clone(&stores.bindings).run_informer(Api::all(hub.clone()), everything()));
            tasks.spawn(Arc::clone(&stores.cluster_bindings).run_informer(Api::all(hub.clone()), everything()));
            tasks.spawn(Arc::clone(&stores.works).run_informer(Api::all(hub.clone()), everything()));
        }
    }
}
