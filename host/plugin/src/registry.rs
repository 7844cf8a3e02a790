use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use bulkhead_core::call::CallKind;
use bulkhead_core::composition::{Composition, Mode};
use bulkhead_core::policy::{Capability, EngineKind, Member, Policy, PolicyId, PolicySet, Usage};

use serde::Deserialize;

use crate::guard::{Guarded, StandIn};
use crate::not_loaded::NotLoaded;
use crate::{
    Bounded, Breaker, BreakerState, CallCounts, Engine, Fallback, LoadError, LoadStage, Loaded, PluginManifest,
    PluginSource,
};

/// Where policies come from. Earlier layers are asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Named in the configuration, in its order.
    Plugins,
    /// Scripts of ResourceInterpreterCustomization objects.
    Customizations,
    /// Hooks of ResourceInterpreterWebhookConfiguration objects.
    Webhooks,
    /// The interpreters that come with the program, for kinds that Kubernetes does not have.
    Library,
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
    /// Whether its answers count.
    pub mode: Mode,
    /// What its breaker is doing; closed for policies without one.
    pub breaker: BreakerState,
    /// How often it was called.
    pub counts: CallCounts,
    /// What the calls cost.
    pub usage: Usage,
}

/// A loaded plugin with how it takes part.
#[derive(Clone)]
pub struct Installed {
    plugin: Arc<Guarded>,
    mode: Mode,
    weight: u32,
    scores: Scores,
}

/// What the scores of a plugin order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Scores {
    /// The clusters that a binding could be placed on.
    #[default]
    Placements,
    /// The bindings that wait to leave a cluster: the plugin is asked about each with that cluster as the only one, and
    /// the higher score goes first. The scheduler does not ask it.
    Evictions,
}

/// How a plugin takes part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Whether its answers count.
    pub mode: Mode,
    /// What its scores are multiplied with.
    pub weight: u32,
    /// What its scores order.
    pub scores: Scores,
    /// When it is put in quarantine.
    pub breaker: Breaker,
    /// Who answers meanwhile.
    pub fallback: Fallback,
}

impl Installed {
    /// Who it is.
    pub fn id(&self) -> &PolicyId {
        self.plugin.id()
    }

    /// The plugin with its bounds and its breaker, to be asked directly.
    pub fn policy(&self) -> Arc<dyn Policy> {
        Arc::clone(&self.plugin) as Arc<dyn Policy>
    }

    /// Kinds of calls that it answers.
    pub(crate) fn kinds(&self) -> Vec<CallKind> {
        self.plugin.capabilities().iter().map(|capability| capability.kind).collect()
    }

    /// What its breaker is doing.
    pub fn breaker(&self) -> BreakerState {
        self.plugin.state()
    }

    /// Whether its answers count.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What happened so far.
    pub fn counts(&self) -> CallCounts {
        self.plugin.plugin().counts()
    }
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

/// A policy in its layer.
struct Seat {
    member: Member,
    bounded: Arc<Bounded>,
    guarded: Option<Arc<Guarded>>,
}

#[derive(Default)]
struct State {
    layers: BTreeMap<Layer, Vec<Seat>>,
    composition: Composition,
    current: Arc<PolicySet>,
    /// Plugins that order evictions and are asked for nothing else.
    evictions: Vec<Seat>,
    eviction_order: Arc<PolicySet>,
}

impl Registry {
    /// A registry with no policies that can load plugins for these engines.
    pub fn new(engines: Vec<Arc<dyn Engine>>) -> Self {
        Self { engines, state: RwLock::default(), observers: Mutex::default() }
    }

    /// Loads a plugin without putting it in force.
    pub fn load(&self, source: &PluginSource) -> Result<Loaded, LoadError> {
        let engine = self.engines.iter().find(|engine| engine.kind() == source.engine);
        engine.ok_or_else(|| no_engine(source))?.load(source)
    }

    /// Gives a loaded plugin its bounds, its breaker and its stand-in. `previous` is the version that was in force
    /// before.
    pub fn prepare(&self, loaded: &Loaded, terms: &Terms, previous: Option<&Installed>) -> Result<Installed, String> {
        let stand_in = match &terms.fallback {
            Fallback::FailStatic => StandIn::Fault,
            Fallback::Abstain => StandIn::Abstain,
            Fallback::Previous => {
                let plugin = previous.map(|previous| Arc::clone(previous.plugin.plugin()) as Arc<dyn Policy>);
                plugin.map_or(StandIn::Fault, StandIn::Policy)
            }
            Fallback::Builtin(name) => StandIn::Policy(self.builtin(name)?),
        };
        let only_scores = loaded.policy.capabilities().iter().all(|capability| capability.kind == CallKind::Score);
        if terms.scores == Scores::Evictions && !only_scores {
            return Err("scores: evictions is for plugins that only score".to_owned());
        }
        let bounded = Bounded::with_taint_keys(Arc::clone(&loaded.policy), loaded.description.taint_keys.clone());
        let plugin = Arc::new(Guarded::new(Arc::new(bounded), terms.breaker, stand_in));
        Ok(Installed { plugin, mode: terms.mode, weight: terms.weight, scores: terms.scores })
    }

    /// Makes the stand-in for a plugin of which no version could be loaded. None where the plugin would have no say, and
    /// where its manifest says that others decide as if it were not there.
    pub(crate) fn stand_in(
        &self,
        name: &str,
        manifest: Option<&PluginManifest>,
        capabilities: Vec<Capability>,
        why: &str,
    ) -> Option<Installed> {
        let terms = manifest.map_or_else(|| Terms { weight: 1, ..Terms::default() }, PluginManifest::terms);
        if terms.mode != Mode::Enforce || terms.fallback == Fallback::Abstain || capabilities.is_empty() {
            return None;
        }
        let fallback = match &terms.fallback {
            Fallback::Builtin(name) => self.builtin(name).ok(),
            Fallback::FailStatic | Fallback::Abstain | Fallback::Previous => None,
        };
        let policy = NotLoaded::new(name, manifest, capabilities, why, fallback);
        // Quarantine would only hide why there is no answer.
        let breaker = Breaker { faults: 0, ..Breaker::default() };
        let plugin = Arc::new(Guarded::new(Arc::new(Bounded::new(Arc::new(policy))), breaker, StandIn::Fault));
        Some(Installed { plugin, mode: terms.mode, weight: terms.weight, scores: terms.scores })
    }

    fn builtin(&self, name: &str) -> Result<Arc<dyn Policy>, String> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let seats = || state.layers.get(&Layer::Builtins).into_iter().flatten();
        let found = seats().find(|seat| seat.bounded.id().name == name);
        found.map(|seat| Arc::clone(&seat.member.policy)).ok_or_else(|| {
            let known: Vec<_> = seats().map(|seat| seat.bounded.id().name.as_str()).collect();
            format!("fallback: there is no built-in policy {name:?}; there are {}", known.join(", "))
        })
    }

    /// Puts a layer of policies in force, all of them enforced, in that order, in place of what the layer held.
    pub fn replace(&self, layer: Layer, policies: Vec<Arc<dyn Policy>>) {
        let seat = |policy| {
            let bounded = Arc::new(Bounded::new(policy));
            let member = Member::enforced(Arc::clone(&bounded) as Arc<dyn Policy>);
            Seat { member, bounded, guarded: None }
        };
        self.put(layer, policies.into_iter().map(seat).collect(), None);
    }

    /// Puts plugins in force, in that order, in place of those before, with the rules by which answers become one.
    pub fn install(&self, plugins: &[Installed], composition: Composition) {
        let seat = |installed: &Installed| {
            let guarded = Arc::clone(&installed.plugin);
            let bounded = Arc::clone(guarded.plugin());
            let (policy, mode, weight) = (Arc::clone(&guarded) as Arc<dyn Policy>, installed.mode, installed.weight);
            Seat { member: Member { policy, mode, weight }, bounded, guarded: Some(guarded) }
        };
        let (evictions, others): (Vec<_>, Vec<_>) =
            plugins.iter().partition(|installed| installed.scores == Scores::Evictions);
        let evictions: Vec<_> = evictions.into_iter().map(seat).collect();
        {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            let members = evictions.iter().map(|seat| seat.member.clone()).collect();
            state.eviction_order = Arc::new(PolicySet::composed(members, composition));
            state.evictions = evictions;
        }
        self.put(Layer::Plugins, others.into_iter().map(seat).collect(), Some(composition));
    }

    fn put(&self, layer: Layer, seats: Vec<Seat>, composition: Option<Composition>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.layers.insert(layer, seats);
        state.composition = composition.unwrap_or(state.composition);
        let members = state.layers.values().flatten().map(|seat| seat.member.clone()).collect();
        state.current = Arc::new(PolicySet::composed(members, state.composition));
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
        if let Some(seat) = state.layers.values().flatten().chain(&state.evictions).find(|seat| seat.bounded.id() == of)
        {
            seat.bounded.count_divergence();
        }
    }

    /// The policies in force.
    pub fn policies(&self) -> Arc<PolicySet> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).current)
    }

    /// The plugins by whose scores evictions are ordered.
    pub fn eviction_order(&self) -> Arc<PolicySet> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).eviction_order)
    }

    /// The policies in force of the layers that are asked before that one.
    pub fn policies_before(&self, layer: Layer) -> PolicySet {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let members = state.layers.range(..layer).flat_map(|(_, seats)| seats).map(|seat| seat.member.clone());
        PolicySet::composed(members.collect(), state.composition)
    }

    /// The policies in force and one more, which is asked last in its layer. It is bounded as all others are.
    pub fn policies_with(&self, layer: Layer, policy: Arc<dyn Policy>) -> PolicySet {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let member = |seats: &[Seat]| seats.iter().map(|seat| seat.member.clone()).collect::<Vec<_>>();
        let mut members: Vec<_> = state.layers.range(..=layer).flat_map(|(_, seats)| member(seats)).collect();
        members.push(Member::enforced(Arc::new(Bounded::new(policy))));
        let after = state.layers.iter().filter(|(other, _)| **other > layer);
        members.extend(after.flat_map(|(_, seats)| member(seats)));
        PolicySet::composed(members, state.composition)
    }

    /// Every policy in force with its counters, in order.
    pub fn report(&self) -> Vec<PluginReport> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let seats = state.layers.iter().flat_map(|(layer, seats)| seats.iter().map(move |seat| (*layer, seat)));
        let seats = state.evictions.iter().map(|seat| (Layer::Plugins, seat)).chain(seats);
        let report = |(layer, seat): (Layer, &Seat)| PluginReport {
            id: seat.bounded.id().clone(),
            layer,
            mode: seat.member.mode,
            breaker: seat.guarded.as_ref().map_or(BreakerState::Closed, |guarded| guarded.state()),
            counts: seat.bounded.counts(),
            usage: seat.bounded.usage(),
        };
        seats.map(report).collect()
    }
}

fn no_engine(source: &PluginSource) -> LoadError {
    let message = match source.engine {
        EngineKind::Builtin => "built-in policies are not loaded".to_owned(),
        EngineKind::Webhook => "webhooks are asked, not loaded".to_owned(),
        EngineKind::Wasm | EngineKind::Lua => format!("this host has no {} engine", source.engine.as_str()),
    };
    LoadError::new(source, LoadStage::Inspected, message)
}
