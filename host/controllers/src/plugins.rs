//! Plugins defined by objects: loading of the newest ones, and their status.
//!
//! Every process, a standby too, loads them before it decides anything: a plugin that holds evictions must not be
//! missing for the first of them. Only the leader writes their status, with a separate controller.
//!
//! Trust in images comes from objects too. A process with images decides nothing until these objects are listed.

mod trust;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bulkhead_api::{Plugin, PluginStatus, PluginTrust};
use bulkhead_core::call::CallKind;
use bulkhead_core::composition::Mode;
use bulkhead_core::manifest::trust::object::TrustObject;
use bulkhead_core::model::{Condition, ConditionStatus};
use bulkhead_core::time::Time;
use bulkhead_plugin::{
    BreakerState, LoadStage, Objects, PluginStatus as LoadStatus, Plugins, Refresh, Refused, TrustObjects,
};
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{self, Action, Error, is_not_found};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::Store;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::SetOnce;

use crate::decision_log::DecisionLog;
use crate::stores::Stores;
use crate::subjects::about;
use crate::writers::writer;

const NAME: &str = "plugin-status-controller";
/// Interval of status updates: circuit breakers send no notifications.
const REFRESH: Duration = Duration::from_secs(5);
/// Interval of checks for changes that no watch reports: finished loads and pauses that are over.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Delay of the next check whether a plugin is loaded.
const LOADING: Duration = Duration::from_millis(200);
/// Interval of checks whether the kind exists, while no list of it arrives.
const LISTING: Duration = Duration::from_secs(2);
/// Type of the condition that tells if the newest version is in force.
const LOADED: &str = "Loaded";
/// Type of the condition that tells if a version is called and its answers are used.
const ANSWERING: &str = "Answering";

/// Plugins in force, and the objects among them.
pub struct PluginObjects {
    plugins: Arc<Plugins>,
    objects: Arc<Objects>,
    trust: Arc<TrustObjects>,
    changed: Box<dyn Fn(&Plugins) + Send + Sync>,
    synced: SetOnce<()>,
    /// Set once the `PluginTrust` objects are listed, or known not to be served.
    trust_known: SetOnce<()>,
}

impl PluginObjects {
    /// Creates the set. `objects` is part of the catalog of `plugins`, and `trust` of its source of images. `changed`
    /// is called after objects were loaded.
    pub fn new(
        plugins: Arc<Plugins>,
        objects: Arc<Objects>,
        trust: Arc<TrustObjects>,
        changed: impl Fn(&Plugins) + Send + Sync + 'static,
    ) -> Self {
        Self {
            plugins,
            objects,
            trust,
            changed: Box::new(changed),
            synced: SetOnce::new(),
            trust_known: SetOnce::new(),
        }
    }

    /// Returns the status of every listed plugin.
    pub fn status(&self) -> Vec<LoadStatus> {
        self.plugins.status()
    }

    /// True if the objects that existed at the start are loaded or refused.
    pub fn has_synced(&self) -> bool {
        self.synced.initialized()
    }

    /// Waits until the objects that existed at the start are loaded or refused.
    pub async fn wait_for_cache_sync(&self) {
        self.synced.wait().await;
    }

    /// Keeps the objects of the stores in force until the future is dropped.
    pub(crate) async fn keep(self: Arc<Self>, stores: Arc<Stores>, hub: Client) {
        futures::join!(
            self.keep_trust(&stores.plugin_trusts, &hub),
            self.keep_plugins(&stores, &hub)
        );
    }

    async fn keep_plugins(self: &Arc<Self>, stores: &Stores, hub: &Client) {
        let store = &stores.plugins;
        // Files are loaded even if the control plane does not respond.
        self.refresh().await;
        if wait_until_known(store, hub).await == Known::Unserved {
            self.end_start().await;
            store.wait_for_cache_sync().await;
        }
        let queue: Arc<WorkQueue<()>> = Arc::default();
        queue.add(());
        let (changed, is_stale) = (Arc::clone(&queue), Arc::new(AtomicBool::new(true)));
        let stale = Arc::clone(&is_stale);
        let _objects = store.subscribe(move |_| {
            stale.store(true, Ordering::Release);
            changed.add(());
        });
        loop {
            queue.next().await;
            // Objects may contain large code, so they are converted only after a change.
            if is_stale.swap(false, Ordering::AcqRel) {
                self.objects
                    .set(store.list().iter().map(|plugin| plugin.to_object()).collect());
            }
            if self.synced.initialized() {
                self.look();
            } else {
                self.end_start().await;
            }
            queue.done(&(), false);
            // Finished loads are then reported, and loads that ran out of time are tried again.
            queue.add_after((), POLL_INTERVAL);
        }
    }

    /// Loads the plugins that exist at the start. The trust in images depends on objects, which may trust or revoke
    /// them, so those plugins are loaded or verified once the objects are known. A process without images does not need
    /// them.
    async fn end_start(self: &Arc<Self>) {
        self.refresh().await;
        if self.trust.is_expected() {
            self.trust_known.wait().await;
            self.refresh().await;
        }
        let _ = self.synced.set(());
    }

    /// Keeps the rules of trust in force. A change takes plugins out of force at once.
    async fn keep_trust(&self, store: &Arc<Store<PluginTrust>>, hub: &Client) {
        if wait_until_known(store, hub).await == Known::Unserved {
            self.set_trust(Vec::new());
            // Only a complete list counts: with a part of it, images of other objects would be refused.
            store.wait_for_cache_sync().await;
        }
        let queue: Arc<WorkQueue<()>> = Arc::default();
        queue.add(());
        let changed = Arc::clone(&queue);
        let _objects = store.subscribe(move |_| changed.add(()));
        loop {
            queue.next().await;
            self.set_trust(store.list().iter().map(|trust| trust.to_object()).collect());
            queue.done(&(), false);
        }
    }

    fn set_trust(&self, objects: Vec<TrustObject>) {
        let is_other = self.trust.set(objects);
        let _ = self.trust_known.set(());
        if is_other {
            self.look();
        }
    }

    /// Starts to load changed plugins.
    fn look(&self) {
        if self.plugins.look() == Refresh::Changed {
            (self.changed)(&self.plugins);
        }
    }

    /// Loads changed plugins, and waits for them as long as at a start.
    async fn refresh(self: &Arc<Self>) {
        let this = Arc::clone(self);
        let loaded = tokio::task::spawn_blocking(move || {
            this.plugins.refresh();
            (this.changed)(&this.plugins);
        });
        if let Err(error) = loaded.await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

/// Knowledge about the objects of a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// They are listed.
    Listed,
    /// The control plane does not serve the kind, so there are none.
    Unserved,
}

/// Waits until the objects are listed, or the control plane answers that it does not serve the kind.
async fn wait_until_known<K>(store: &Store<K>, hub: &Client) -> Known
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + 'static,
{
    let unserved = async {
        let api = Api::<K>::all(hub.clone());
        loop {
            tokio::time::sleep(LISTING).await;
            let listed = api.list_metadata(&ListParams::default().limit(1)).await;
            if listed.is_err_and(|error| is_not_found(&error)) {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        () = store.wait_for_cache_sync() => Known::Listed,
        () = unserved => Known::Unserved,
    }
}

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) clock: Clock,
    pub(crate) failures: Arc<Failures>,
    pub(crate) hub: Client,
    pub(crate) log: DecisionLog,
    pub(crate) plugins: Option<Arc<PluginObjects>>,
    pub(crate) stores: Arc<Stores>,
}

/// Runs the controller that writes the status of plugins and of their trust, until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    let Some(objects) = deps.plugins.clone() else {
        return std::future::pending().await;
    };
    futures::join!(trust::run(deps.clone()), run_plugins(deps, objects));
}

async fn run_plugins(deps: Dependencies, objects: Arc<PluginObjects>) {
    objects.wait_for_cache_sync().await;
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let plugins = Arc::clone(&queue);
    let _plugins = deps.stores.plugins.subscribe(move |change| {
        // Writes of the status by others are ignored.
        if change.is_generation_change() {
            plugins.add(Key::of(change.object()));
        }
    });
    let reconcile = {
        let deps = deps.clone();
        let reported = Arc::<Reported>::default();
        move |key| reconcile(deps.clone(), Arc::clone(&objects), Arc::clone(&reported), key)
    };
    controller::run(
        queue,
        1,
        reconcile,
        deps.failures.counter(NAME, |key: &Key| key.named("Plugin")),
    )
    .await;
}

/// Last status that this process reported for each plugin. Two leaders in different modes may differ in breakers and
/// files. Each one reports a state once, so that they do not contradict each other forever.
type Reported = Mutex<BTreeMap<Key, (Option<String>, PluginStatus)>>;

async fn reconcile(
    deps: Dependencies,
    objects: Arc<PluginObjects>,
    reported: Arc<Reported>,
    key: Key,
) -> Result<Action, Error> {
    let entries = || reported.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(plugin) = deps.stores.plugins.get(&key) else {
        entries().remove(&key);
        return Ok(Action::Wait);
    };
    let load_status = objects
        .plugins
        .status()
        .into_iter()
        .find(|load_status| load_status.name == key.name && load_status.generation.is_some());
    let is_decided =
        |load_status: &LoadStatus| !load_status.is_loading && load_status.generation == plugin.metadata.generation;
    let Some(load_status) = load_status.filter(is_decided) else {
        // Still loading.
        return Ok(Action::After(LOADING));
    };
    let seen = (
        plugin.uid(),
        status(&Plugin::default(), load_status.clone(), Time::from_millis(0)),
    );
    if entries().get(&key) == Some(&seen) {
        return Ok(Action::After(REFRESH));
    }
    let status = status(&plugin, load_status, deps.clock.now::<Time>().truncated());
    let changes = changed_conditions(&plugin.status.conditions, &status.conditions);
    let changed = |plugin: &mut Plugin| {
        let changed = plugin.status != status;
        plugin.status = status.clone();
        changed
    };
    let writer = writer(&deps.stores.plugins, Api::all(deps.hub.clone()));
    writer.update_status(&plugin, changed).await?;
    entries().insert(key, seen);
    for condition in changes {
        let type_ = if condition.status == ConditionStatus::True {
            EventType::Normal
        } else {
            EventType::Warning
        };
        deps.log
            .events
            .emit(NAME, about(&*plugin), type_, reason(&condition), condition.message);
    }
    Ok(Action::After(REFRESH))
}

/// Returns the conditions that are worth an event. A plugin that answers from the start is not.
fn changed_conditions(before: &[Condition], after: &[Condition]) -> Vec<Condition> {
    let text = |condition: &Condition| (condition.reason.clone(), condition.message.clone());
    let is_changed = |condition: &&Condition| match Condition::find(before, &condition.type_) {
        Some(before) => text(before) != text(condition),
        None => condition.type_ == LOADED,
    };
    after.iter().filter(is_changed).cloned().collect()
}

/// Returns the reason of the event for a condition.
fn reason(condition: &Condition) -> &'static str {
    match (condition.type_.as_str(), condition.status) {
        (LOADED, ConditionStatus::True) => "PluginLoaded",
        (LOADED, _) => "PluginRefused",
        (_, ConditionStatus::True) => "PluginAnswers",
        _ => "PluginSilent",
    }
}

fn status(plugin: &Plugin, load_status: LoadStatus, now: Time) -> PluginStatus {
    let LoadStatus {
        generation,
        refused,
        active,
        digest,
        mode,
        breaker,
        remarks,
        held,
        ..
    } = load_status;
    let mut status = PluginStatus {
        observed_generation: generation.unwrap_or_default(),
        conditions: plugin.status.conditions.clone(),
        version: active.map(|active| active.version).unwrap_or_default(),
        sha256: digest.map(|digest| digest.to_string()).unwrap_or_default(),
        remarks,
    };
    status.set(loaded(refused.as_ref(), &status.version, now));
    status.set(if held.is_empty() {
        answering(mode, breaker, now)
    } else {
        holding(&held, now)
    });
    status
}

fn loaded(refused: Option<&Refused>, version: &str, now: Time) -> Condition {
    match refused {
        None => Condition::new(
            LOADED,
            ConditionStatus::True,
            "Active",
            format!("version {version} is active"),
            now,
        ),
        Some(refused) => {
            let reason = match refused.stage {
                LoadStage::Quarantined => "Quarantined".to_owned(),
                stage => format!("Not{stage:?}"),
            };
            Condition::new(LOADED, ConditionStatus::False, &reason, refused.to_string(), now)
        }
    }
}

/// Returns the condition of a plugin whose calls are faults because no version of it could be loaded.
fn holding(held: &[CallKind], now: Time) -> Condition {
    let kinds: Vec<_> = held.iter().map(|kind| kind.as_str()).collect();
    let message = format!(
        "no version is in force, so every {} call is a fault: evictions are held, taints stay, health is unknown",
        kinds.join(", ")
    );
    Condition::new(ANSWERING, ConditionStatus::False, "NotLoaded", message, now)
}

fn answering(mode: Option<Mode>, breaker: BreakerState, now: Time) -> Condition {
    use ConditionStatus::{False, True};
    let (status, reason, message) = match (mode, breaker) {
        (None, _) => (
            False,
            "NoVersion",
            "no version of the plugin has been active in this process",
        ),
        (Some(Mode::Off), _) => (False, "SwitchedOff", "spec.mode is off"),
        (Some(Mode::Shadow), BreakerState::Open | BreakerState::HalfOpen) => (
            False,
            "Quarantined",
            "the plugin failed too often; its answers would not count in shadow mode anyway",
        ),
        (_, BreakerState::Open) => (
            False,
            "Quarantined",
            "the plugin failed too often; spec.fallback answers",
        ),
        (_, BreakerState::HalfOpen) => (
            False,
            "Probed",
            "the plugin is called again in shadow mode; spec.fallback answers",
        ),
        (Some(Mode::Shadow), _) => (
            True,
            "Shadow",
            "the answers of the plugin are compared and do not count",
        ),
        (Some(Mode::Enforce), _) => (True, "Enforced", "the answers of the plugin count"),
    };
    Condition::new(ANSWERING, status, reason, message, now)
}

#[cfg(test)]
mod tests;
