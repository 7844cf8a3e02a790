use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use bulkhead_core::policy::{EngineKind, Policy, PolicyId, PolicySet};

use crate::{Bounded, CallCounts, Engine, LoadError, LoadStage, PluginSource};

/// Where policies come from. Earlier layers are asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Named in the configuration, in its order.
    Plugins,
    /// Scripts of ResourceInterpreterCustomization objects.
    Customizations,
    /// ClusterTaintPolicy objects.
    TaintPolicies,
    /// Compiled in.
    Builtins,
}

/// What became of a policy so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginReport {
    /// Who it is.
    pub id: PolicyId,
    /// Where it came from.
    pub layer: Layer,
    /// How often it was called.
    pub counts: CallCounts,
}

/// The policies in force. A layer is replaced as a whole, and readers keep the set they started with.
pub struct Registry {
    engines: Vec<Arc<dyn Engine>>,
    state: RwLock<State>,
    observers: Mutex<Vec<Weak<Observer>>>,
}

type Observer = dyn Fn() + Send + Sync;

/// Keeps an observer registered for as long as it lives.
#[must_use = "the observer is removed when this is dropped"]
pub struct RegistrySubscription(#[expect(dead_code, reason = "held for its reference count")] Arc<Observer>);

#[derive(Default)]
struct State {
    layers: BTreeMap<Layer, Vec<Arc<Bounded>>>,
    current: Arc<PolicySet>,
}

impl Registry {
    /// A registry with no policies that can load plugins for these engines.
    pub fn new(engines: Vec<Arc<dyn Engine>>) -> Self {
        Self { engines, state: RwLock::default(), observers: Mutex::default() }
    }

    /// Loads a plugin without putting it in force.
    pub fn load(&self, source: &PluginSource) -> Result<Arc<dyn Policy>, LoadError> {
        let engine = self.engines.iter().find(|engine| engine.kind() == source.engine);
        engine.ok_or_else(|| no_engine(source))?.load(source)
    }

    /// Puts a layer in force, in that order, in place of what the layer held.
    pub fn replace(&self, layer: Layer, policies: Vec<Arc<dyn Policy>>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.layers.insert(layer, policies.into_iter().map(|policy| Arc::new(Bounded::new(policy))).collect());
        let all = state.layers.values().flatten().map(|policy| Arc::clone(policy) as Arc<dyn Policy>).collect();
        state.current = Arc::new(PolicySet::new(all));
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

    /// Calls `observer` after every change of the policies in force, until the subscription is dropped.
    pub fn subscribe(&self, observer: impl Fn() + Send + Sync + 'static) -> RegistrySubscription {
        let observer: Arc<Observer> = Arc::new(observer);
        self.observers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&observer));
        RegistrySubscription(observer)
    }

    /// Counts that a policy in shadow would have decided otherwise.
    pub fn count_divergence(&self, of: &PolicyId) {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(policy) = state.layers.values().flatten().find(|policy| policy.id() == of) {
            policy.count_divergence();
        }
    }

    /// The policies in force.
    pub fn policies(&self) -> Arc<PolicySet> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).current)
    }

    /// Every policy in force with its counters, in order.
    pub fn report(&self) -> Vec<PluginReport> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let of_layer = |(layer, policies): (&Layer, &Vec<Arc<Bounded>>)| {
            let layer = *layer;
            policies
                .iter()
                .map(move |policy| PluginReport { id: policy.id().clone(), layer, counts: policy.counts() })
                .collect::<Vec<_>>()
        };
        state.layers.iter().flat_map(of_layer).collect()
    }
}

fn no_engine(source: &PluginSource) -> LoadError {
    let message = match source.engine {
        EngineKind::Builtin => "built-in policies are not loaded".to_owned(),
        EngineKind::Wasm | EngineKind::Lua => format!("this host has no {} engine", source.engine.as_str()),
    };
    let origin = source.modules.first().map_or_else(String::new, |module| module.origin.clone());
    LoadError { plugin: source.name.clone(), origin, stage: LoadStage::Inspected, message }
}
