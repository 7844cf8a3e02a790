use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use bulkhead_core::call::CallKind;
use bulkhead_core::composition::{Composition, Mode};
use bulkhead_core::manifest::{BreakerThresholds, Fallback, PluginManifest, Scope, Scores, Tenancy, Terms};
use bulkhead_core::policy::{Capability, EngineKind, Policy, PolicyEntry, PolicyId, PolicySet};
use bulkhead_core::scoped::Scoped;

use crate::circuit_breaker::{CircuitBreaker, ResolvedFallback};
use crate::not_loaded::NotLoaded;
use crate::{Bounded, BreakerState, CallCounts, Engine, KindReport, LoadError, LoadStage, Loaded, PluginSource};

/// Origin of policies. Earlier layers are called first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Plugins named in the configuration, in its order.
    Plugins,
    /// Scripts of ResourceInterpreterCustomization objects.
    Customizations,
    /// Hooks of ResourceInterpreterWebhookConfiguration objects.
    Webhooks,
    /// Interpreters that come with the program, for kinds that Kubernetes does not have.
    Library,
    /// ClusterTaintPolicy objects.
    TaintPolicies,
    /// Built-in policies.
    Builtins,
}

/// Status of an active policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginReport {
    /// Id of the policy.
    pub id: PolicyId,
    /// Layer that it belongs to.
    pub layer: Layer,
    /// Participation in decisions.
    pub mode: Mode,
    /// State of its breaker; closed for policies without one.
    pub breaker: BreakerState,
    /// Call counters.
    pub counts: CallCounts,
    /// Counters, durations and resources by kind of call, for the kinds that it answers.
    pub kinds: Vec<KindReport>,
}

/// Loaded plugin with the terms of its participation.
#[derive(Clone)]
pub struct Installed {
    plugin: Arc<CircuitBreaker>,
    mode: Mode,
    weight: u32,
    scores: Scores,
    scope: Scope,
    /// Tenant that trust limits it to; none for all namespaces.
    tenancy: Option<Tenancy>,
}

impl Installed {
    /// Returns the id of the plugin.
    pub fn id(&self) -> &PolicyId {
        self.plugin.id()
    }

    /// Returns the plugin with its bounds and its breaker, for direct calls.
    pub fn policy(&self) -> Arc<dyn Policy> {
        Arc::clone(&self.plugin) as Arc<dyn Policy>
    }

    /// Returns the plugin as decisions see it: within its scope, and for a tenant with its holds alone.
    fn scoped(&self) -> Arc<dyn Policy> {
        Scoped::limit(self.policy(), &self.scope, self.tenancy.as_ref())
    }

    /// Returns the calls that it answers.
    pub(crate) fn capabilities(&self) -> &[Capability] {
        self.plugin.capabilities()
    }

    /// Limits it to a tenant, or to none. Returns true if it had another limit. The next installation has the effect.
    pub fn limit_to(&mut self, tenancy: Option<&Tenancy>) -> bool {
        let is_other = self.tenancy.as_ref() != tenancy;
        self.tenancy = tenancy.cloned();
        is_other
    }

    /// Makes its calls faults during a quarantine, in place of the answers of an earlier version.
    pub(crate) fn drop_fallback(&self) {
        self.plugin.drop_fallback();
    }

    /// Returns the kinds of calls that it answers.
    pub(crate) fn kinds(&self) -> Vec<CallKind> {
        self.plugin
            .capabilities()
            .iter()
            .map(|capability| capability.kind)
            .collect()
    }

    /// Returns the state of its breaker.
    pub fn breaker(&self) -> BreakerState {
        self.plugin.state()
    }

    /// Returns its participation in decisions.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns its call counters.
    pub fn counts(&self) -> CallCounts {
        self.plugin.plugin().counts()
    }
}

/// The active policies. A layer is replaced as a whole, and readers keep the set that they started with.
pub struct Registry {
    engines: Vec<Arc<dyn Engine>>,
    state: RwLock<State>,
    observers: Mutex<Vec<Weak<Observer>>>,
}

type Observer = dyn Fn() + Send + Sync;

/// Subscription of an observer; dropping it removes the observer.
#[must_use = "the observer is removed when this is dropped"]
pub struct RegistrySubscription(#[expect(dead_code, reason = "held for its reference count")] Arc<Observer>);

/// Policy in a layer.
struct LayerSlot {
    entry: PolicyEntry,
    bounded: Arc<Bounded>,
    circuit_breaker: Option<Arc<CircuitBreaker>>,
}

#[derive(Default)]
struct State {
    layers: BTreeMap<Layer, Vec<LayerSlot>>,
    composition: Composition,
    current: Arc<PolicySet>,
    /// Plugins that only rank evictions.
    evictions: Vec<LayerSlot>,
    eviction_order: Arc<PolicySet>,
}

impl Registry {
    /// Creates a registry without policies that can load plugins for these engines.
    pub fn new(engines: Vec<Arc<dyn Engine>>) -> Self {
        Self {
            engines,
            state: RwLock::default(),
            observers: Mutex::default(),
        }
    }

    /// Loads a plugin without activating it.
    pub fn load(&self, source: &PluginSource) -> Result<Loaded, LoadError> {
        let engine = self.engines.iter().find(|engine| engine.kind() == source.engine);
        engine.ok_or_else(|| no_engine(source))?.load(source)
    }

    /// Wraps a loaded plugin with its bounds, its breaker and its fallback. `previous` is the previously active
    /// version.
    pub fn prepare(&self, loaded: &Loaded, terms: &Terms, previous: Option<&Installed>) -> Result<Installed, String> {
        let fallback = match &terms.fallback {
            Fallback::FailStatic => ResolvedFallback::Fault,
            Fallback::Abstain => ResolvedFallback::Abstain,
            Fallback::Previous => {
                let plugin = previous.map(|previous| Arc::clone(previous.plugin.plugin()) as Arc<dyn Policy>);
                plugin.map_or(ResolvedFallback::Fault, ResolvedFallback::Policy)
            }
            Fallback::Builtin(name) => ResolvedFallback::Policy(self.builtin(name)?),
        };
        let mut kinds = loaded.policy.capabilities().iter().map(|capability| capability.kind);
        if let Some(objection) = kinds.find_map(|kind| terms.objection(kind)) {
            return Err(objection);
        }
        let bounded = Bounded::with_taint_keys(Arc::clone(&loaded.policy), loaded.description.taint_keys.clone());
        let plugin = Arc::new(CircuitBreaker::new(Arc::new(bounded), terms.breaker, fallback));
        Ok(Installed {
            plugin,
            mode: terms.mode,
            weight: terms.weight,
            scores: terms.scores,
            scope: terms.scope.clone(),
            tenancy: None,
        })
    }

    /// Creates the placeholder for a plugin of which no version could be loaded. Returns `None` if the plugin is not
    /// enforced, answers no calls, or its fallback is to abstain.
    pub(crate) fn placeholder(
        &self,
        name: &str,
        manifest: Option<&PluginManifest>,
        capabilities: Vec<Capability>,
        why: &str,
    ) -> Option<Installed> {
        let terms = manifest.map_or_else(
            || Terms {
                weight: 1,
                ..Terms::default()
            },
            PluginManifest::terms,
        );
        if terms.mode != Mode::Enforce || terms.fallback == Fallback::Abstain || capabilities.is_empty() {
            return None;
        }
        let fallback = match &terms.fallback {
            Fallback::Builtin(name) => self.builtin(name).ok(),
            Fallback::FailStatic | Fallback::Abstain | Fallback::Previous => None,
        };
        let policy = NotLoaded::new(name, manifest, capabilities, why, fallback);
        // A quarantine would only hide the cause.
        let thresholds = BreakerThresholds {
            faults: 0,
            ..BreakerThresholds::default()
        };
        let plugin = Arc::new(CircuitBreaker::new(
            Arc::new(Bounded::new(Arc::new(policy))),
            thresholds,
            ResolvedFallback::Fault,
        ));
        Some(Installed {
            plugin,
            mode: terms.mode,
            weight: terms.weight,
            scores: terms.scores,
            scope: terms.scope.clone(),
            tenancy: None,
        })
    }

    fn builtin(&self, name: &str) -> Result<Arc<dyn Policy>, String> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let slots = || state.layers.get(&Layer::Builtins).into_iter().flatten();
        let found = slots().find(|slot| slot.bounded.id().name == name);
        found.map(|slot| Arc::clone(&slot.entry.policy)).ok_or_else(|| {
            let known: Vec<_> = slots().map(|slot| slot.bounded.id().name.as_str()).collect();
            format!(
                "fallback: unknown built-in policy {name:?}; expected one of {}",
                known.join(", ")
            )
        })
    }

    /// Replaces the policies of a layer. All of them are enforced, in this order.
    pub fn replace(&self, layer: Layer, policies: Vec<Arc<dyn Policy>>) {
        let slot = |policy| {
            let bounded = Arc::new(Bounded::new(policy));
            let entry = PolicyEntry::enforced(Arc::clone(&bounded) as Arc<dyn Policy>);
            LayerSlot {
                entry,
                bounded,
                circuit_breaker: None,
            }
        };
        self.put(layer, policies.into_iter().map(slot).collect(), None);
    }

    /// Replaces the active plugins, in this order, and the rules for combining answers.
    pub fn install(&self, plugins: &[Installed], composition: Composition) {
        let slot = |installed: &Installed| {
            let circuit_breaker = Arc::clone(&installed.plugin);
            let bounded = Arc::clone(circuit_breaker.plugin());
            let (policy, mode, weight) = (installed.scoped(), installed.mode, installed.weight);
            LayerSlot {
                entry: PolicyEntry { policy, mode, weight },
                bounded,
                circuit_breaker: Some(circuit_breaker),
            }
        };
        let (evictions, others): (Vec<_>, Vec<_>) = plugins
            .iter()
            .partition(|installed| installed.scores == Scores::Evictions);
        let evictions: Vec<_> = evictions.into_iter().map(slot).collect();
        {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            let entries = evictions.iter().map(|slot| slot.entry.clone()).collect();
            state.eviction_order = Arc::new(PolicySet::composed(entries, composition));
            state.evictions = evictions;
        }
        self.put(
            Layer::Plugins,
            others.into_iter().map(slot).collect(),
            Some(composition),
        );
    }

    fn put(&self, layer: Layer, slots: Vec<LayerSlot>, composition: Option<Composition>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.layers.insert(layer, slots);
        state.composition = composition.unwrap_or(state.composition);
        let entries = state.layers.values().flatten().map(|slot| slot.entry.clone()).collect();
        state.current = Arc::new(PolicySet::composed(entries, state.composition));
        drop(state);
        let observers: Vec<_> = {
            let mut observers = self.observers.lock().unwrap_or_else(PoisonError::into_inner);
            observers.retain(|observer| observer.strong_count() > 0);
            observers.iter().filter_map(Weak::upgrade).collect()
        };
        for observer in observers {
            observer();
        }
    }

    /// Calls `observer` after every change of the active policies, until the subscription is dropped.
    pub fn subscribe(&self, observer: impl Fn() + Send + Sync + 'static) -> RegistrySubscription {
        let observer: Arc<Observer> = Arc::new(observer);
        self.observers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::downgrade(&observer));
        RegistrySubscription(observer)
    }

    /// Counts a decision that a policy in shadow mode would have made differently.
    pub fn count_divergence(&self, of: &PolicyId) {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = state
            .layers
            .values()
            .flatten()
            .chain(&state.evictions)
            .find(|slot| slot.bounded.id() == of)
        {
            slot.bounded.count_divergence();
        }
    }

    /// Returns the active policies.
    pub fn policies(&self) -> Arc<PolicySet> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).current)
    }

    /// Returns the plugins whose scores rank evictions.
    pub fn eviction_order(&self) -> Arc<PolicySet> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).eviction_order)
    }

    /// Returns the active policies of the layers before the given one.
    pub fn policies_before(&self, layer: Layer) -> PolicySet {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let entries = state
            .layers
            .range(..layer)
            .flat_map(|(_, slots)| slots)
            .map(|slot| slot.entry.clone());
        PolicySet::composed(entries.collect(), state.composition)
    }

    /// Returns the active policies and one more, which is called last in its layer. It is bounded like all others.
    pub fn policies_with(&self, layer: Layer, policy: Arc<dyn Policy>) -> PolicySet {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let entry = |slots: &[LayerSlot]| slots.iter().map(|slot| slot.entry.clone()).collect::<Vec<_>>();
        let mut entries: Vec<_> = state
            .layers
            .range(..=layer)
            .flat_map(|(_, slots)| entry(slots))
            .collect();
        entries.push(PolicyEntry::enforced(Arc::new(Bounded::new(policy))));
        let after = state.layers.iter().filter(|(other, _)| **other > layer);
        entries.extend(after.flat_map(|(_, slots)| entry(slots)));
        PolicySet::composed(entries, state.composition)
    }

    /// Returns the status of every active policy, in order.
    pub fn report(&self) -> Vec<PluginReport> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let slots = state
            .layers
            .iter()
            .flat_map(|(layer, slots)| slots.iter().map(move |slot| (*layer, slot)));
        let slots = state.evictions.iter().map(|slot| (Layer::Plugins, slot)).chain(slots);
        let report = |(layer, slot): (Layer, &LayerSlot)| PluginReport {
            id: slot.bounded.id().clone(),
            layer,
            mode: slot.entry.mode,
            breaker: slot
                .circuit_breaker
                .as_ref()
                .map_or(BreakerState::Closed, |circuit_breaker| circuit_breaker.state()),
            counts: slot.bounded.counts(),
            kinds: slot.bounded.kinds(),
        };
        slots.map(report).collect()
    }
}

fn no_engine(source: &PluginSource) -> LoadError {
    let message = match source.engine {
        EngineKind::Builtin => "built-in policies are not loaded".to_owned(),
        EngineKind::Webhook => "webhooks are called, not loaded".to_owned(),
        EngineKind::Wasm | EngineKind::Lua => format!("this host has no {} engine", source.engine.as_str()),
    };
    LoadError::new(source, LoadStage::Inspected, message)
}
