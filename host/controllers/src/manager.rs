//! Running controllers, and the informers that they share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_runtime::panics::Panics;
use bulkhead_runtime::store::Store;
use bulkhead_runtime::tasks::Tasks;
use bulkhead_runtime::unread::Unread;
use kube::runtime::watcher;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet};

use crate::components::Components;
use crate::members::Scope;
use crate::{
    agent, application_failover, binding, binding_status, cluster, cluster_status, cluster_taints, customizations,
    dependencies, detector, drain, execution, failover_record, graceful_eviction, plugins, rebalancer, scheduler,
    taint_manager, work_status,
};

type Run = fn(&Components) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// Caches that must be in sync before a controller starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CacheSync {
    /// None. The controller waits for its own caches: it handles clusters one by one, and unrelated ones must not
    /// delay it.
    NotRequired,
    /// None. The controller runs on the runtime of leases and probes: a member whose lease is not renewed is evicted.
    LeaseRuntime,
    /// The plugins, and every object of the kinds that controllers share. Before that, unknown objects look like
    /// missing ones: no cluster fits, no policy matches, no plugin holds, nothing is left on a cluster.
    Required,
}

/// Name of the controller that loads interpreters. Others wait for it.
const INTERPRETERS: &str = "interpreterCustomization";

/// Controllers of the control plane, by their names in Karmada's `--controllers` if they have one. A static: crates that
/// use a constant compile the functions in it again.
static CONTROLLERS: &[(&str, CacheSync, Run)] = &[
    (INTERPRETERS, CacheSync::NotRequired, |all| {
        Box::pin(customizations::run(all.customizations()))
    }),
    ("detector", CacheSync::Required, |all| {
        Box::pin(detector::run(all.detector()))
    }),
    ("scheduler", CacheSync::Required, |all| {
        Box::pin(scheduler::run(all.scheduler()))
    }),
    ("binding", CacheSync::Required, |all| {
        Box::pin(binding::run(all.binding()))
    }),
    ("execution", CacheSync::Required, |all| {
        Box::pin(execution::run(all.execution()))
    }),
    ("workStatus", CacheSync::Required, |all| {
        Box::pin(work_status::run(all.work_status()))
    }),
    ("bindingStatus", CacheSync::Required, |all| {
        Box::pin(binding_status::run(all.binding_status()))
    }),
    ("clusterStatus", CacheSync::LeaseRuntime, |all| {
        Box::pin(cluster_status::run(all.cluster_status()))
    }),
    ("cluster", CacheSync::NotRequired, |all| {
        Box::pin(cluster::run(all.cluster()))
    }),
    ("clustertaintpolicy", CacheSync::NotRequired, |all| {
        Box::pin(cluster_taints::run(all.cluster_taints()))
    }),
    ("taintManager", CacheSync::Required, |all| {
        Box::pin(taint_manager::run(all.taint_manager()))
    }),
    ("clusterDrain", CacheSync::Required, |all| {
        Box::pin(drain::run(all.drain()))
    }),
    ("gracefulEviction", CacheSync::Required, |all| {
        Box::pin(graceful_eviction::run(all.graceful_eviction()))
    }),
    ("failoverRecord", CacheSync::Required, |all| {
        Box::pin(failover_record::run(all.failover_record()))
    }),
    ("dependenciesDistributor", CacheSync::Required, |all| {
        Box::pin(dependencies::run(all.dependencies()))
    }),
    ("applicationFailover", CacheSync::Required, |all| {
        Box::pin(application_failover::run(all.application_failover()))
    }),
    ("workloadRebalancer", CacheSync::Required, |all| {
        Box::pin(rebalancer::run(all.rebalancer()))
    }),
    ("pluginStatus", CacheSync::NotRequired, |all| {
        Box::pin(plugins::run(all.plugins()))
    }),
];

/// The controllers of an agent in a Pull cluster.
static AGENT_CONTROLLERS: &[(&str, CacheSync, Run)] = &[
    (INTERPRETERS, CacheSync::NotRequired, |all| {
        Box::pin(customizations::run(all.customizations()))
    }),
    ("execution", CacheSync::Required, |all| {
        Box::pin(execution::run(all.execution()))
    }),
    ("workStatus", CacheSync::Required, |all| {
        Box::pin(work_status::run(all.work_status()))
    }),
    ("clusterStatus", CacheSync::LeaseRuntime, |all| {
        Box::pin(cluster_status::run(all.cluster_status()))
    }),
    ("lease", CacheSync::LeaseRuntime, |all| {
        Box::pin(agent::run(all.agent()))
    }),
];

/// Returns the names of the controllers that can be stopped and started.
pub fn controller_names() -> impl Iterator<Item = &'static str> {
    CONTROLLERS.iter().map(|(name, ..)| *name)
}

/// Running controllers. Dropping the manager stops them all.
pub struct Manager {
    components: Components,
    controllers: &'static [(&'static str, CacheSync, Run)],
    running: Mutex<BTreeMap<&'static str, AbortHandle>>,
    tasks: Mutex<JoinSet<()>>,
    informers: Tasks,
    /// Controllers whose own kinds have informers.
    informed: Mutex<BTreeSet<&'static str>>,
    panics: Panics,
}

impl Manager {
    /// Starts the informers and every controller of the components' scope.
    pub fn start(components: Components) -> Self {
        let manager = Self::watch(components);
        for name in manager.names() {
            manager.start_controller(name);
        }
        manager
    }

    /// Starts the informers, but no controller yet.
    pub fn watch(components: Components) -> Self {
        let controllers = match components.scope {
            Scope::Push | Scope::Interpreter => CONTROLLERS,
            Scope::Agent(_) => AGENT_CONTROLLERS,
        };
        let (running, tasks, informers, informed, panics) = Default::default();
        let manager = Self {
            components,
            controllers,
            running,
            tasks,
            informers,
            informed,
            panics,
        };
        manager.start_informers();
        manager
    }

    /// Returns the names of the controllers of the components' scope.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.controllers.iter().map(|(name, ..)| *name)
    }

    /// Starts a controller unless it runs. Returns true if a controller of this name exists.
    pub fn start_controller(&self, name: &str) -> bool {
        let controller = self.controllers.iter().find(|(known, ..)| *known == name);
        let Some(&(name, cache_sync, run)) = controller else {
            return false;
        };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.get(name).is_none_or(|handle| handle.is_finished()) {
            self.start_informers_of(name);
            if name == INTERPRETERS {
                self.components.interpreters_loaded.expect();
            }
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            let (runtime, components) = match cache_sync {
                CacheSync::LeaseRuntime => self.components.on_lease_runtime(),
                CacheSync::NotRequired | CacheSync::Required => (Handle::current(), self.components.clone()),
            };
            let controller = async move {
                if cache_sync == CacheSync::Required {
                    if let Some(plugins) = &components.plugins {
                        plugins.wait_for_cache_sync().await;
                    }
                    components.stores.wait_for_cache_sync(&components.scope).await;
                }
                run(&components).await;
            };
            let controller = self.panics.watch(format!("controller {name}"), controller);
            running.insert(name, tasks.spawn_on(controller, &runtime));
        }
        true
    }

    /// Stops a controller at its next await point, as a crash would: its memory and its unsent writes are lost.
    /// Returns true if it was running.
    pub fn stop_controller(&self, name: &str) -> bool {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(name).map(|handle| handle.abort()).is_some()
    }

    /// Waits until a controller or an informer panics, and returns its name with the reason. The task has ended, and
    /// only a new process restores it.
    pub async fn failed(&self) -> String {
        self.panics.first().await
    }

    /// Returns the tasks of the informers, to add tasks that live as long as the manager.
    pub fn tasks(&self) -> &Tasks {
        &self.informers
    }

    /// Runs a task on the runtime of leases and probes for as long as the manager lives.
    pub fn spawn_on_lease_runtime(&self, name: &str, task: impl Future<Output = ()> + Send + 'static) {
        let (runtime, _) = self.components.on_lease_runtime();
        self.informers
            .spawn_on(self.panics.watch(name.to_owned(), task), &runtime);
    }

    /// Runs a task for as long as the manager lives. [`Manager::failed`] reports its panic.
    pub fn spawn(&self, name: &str, task: impl Future<Output = ()> + Send + 'static) {
        self.informers.spawn(self.panics.watch(name.to_owned(), task));
    }

    fn start_informers(&self) {
        let Components { stores, hub, scope, .. } = &self.components;
        let decides = *scope != Scope::Interpreter;
        if decides {
            self.start_informer(&stores.clusters, Api::all(hub.clone()));
        }
        self.start_informer(&stores.customizations, Api::all(hub.clone()));
        if decides {
            self.start_informer(&stores.webhooks, Api::all(hub.clone()));
        }
        if let Some(plugins) = &self.components.plugins {
            self.start_informer(&stores.plugins, Api::all(hub.clone()));
            self.start_informer(&stores.plugin_trusts, Api::all(hub.clone()));
            self.spawn("plugins", Arc::clone(plugins).keep(Arc::clone(stores), hub.clone()));
        }
        match scope {
            Scope::Interpreter => {}
            Scope::Agent(cluster) => {
                let namespace = bulkhead_core::names::execution_namespace(cluster);
                self.start_informer(&stores.works, Api::namespaced(hub.clone(), &namespace));
            }
            Scope::Push => {
                self.start_informer(&stores.taint_policies, Api::all(hub.clone()));
                self.start_informer(&stores.eviction_pauses, Api::all(hub.clone()));
                self.start_informer(&stores.cluster_drains, Api::all(hub.clone()));
                self.start_informer(&stores.policies, Api::all(hub.clone()));
                self.start_informer(&stores.cluster_policies, Api::all(hub.clone()));
                self.start_informer(&stores.bindings, Api::all(hub.clone()));
                self.start_informer(&stores.cluster_bindings, Api::all(hub.clone()));
                self.start_informer(&stores.works, Api::all(hub.clone()));
            }
        }
    }

    /// Starts the informers of the kinds that only this controller reads. Processes without it need no permission for
    /// them, and no such kinds on the control plane.
    fn start_informers_of(&self, controller: &'static str) {
        let mut informed = self.informed.lock().unwrap_or_else(PoisonError::into_inner);
        if !informed.insert(controller) {
            return;
        }
        let Components { stores, hub, flags, .. } = &self.components;
        match controller {
            "binding" => {
                self.start_informer(&stores.override_policies, Api::all(hub.clone()));
                self.start_informer(&stores.cluster_override_policies, Api::all(hub.clone()));
            }
            "workloadRebalancer" => self.start_informer(&stores.rebalancers, Api::all(hub.clone())),
            "failoverRecord" if flags.failover_records => {
                self.start_informer(&stores.failover_records, Api::all(hub.clone()));
                self.start_informer(&stores.cluster_failover_records, Api::all(hub.clone()));
            }
            _ => {}
        }
    }

    fn start_informer<K>(&self, store: &Arc<Store<K>>, api: Api<Unread<K>>)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let informer = Arc::clone(store).run_informer(api, watcher::Config::default());
        self.spawn(&format!("informer of {}", K::plural(&())), informer);
    }
}

#[cfg(test)]
mod tests;
