use bulkhead_apiserver::ApiServer;
use bulkhead_core::policy::PolicyId;
use bulkhead_plugin::{CombinedCatalog, Loading, Registry};
use bulkhead_runtime::events;
use kube::api::PostParams;
use serde_json::json;

use super::*;
use crate::components::Components;
use crate::testing::{Scripts, components, hub_of_everything, member, object, written_events};

fn load_status(mode: Option<Mode>, breaker: BreakerState, refused: Option<LoadStage>) -> LoadStatus {
    let refused = refused.map(|stage| Refused {
        stage,
        origin: "Plugin p spec.lua".to_owned(),
        message: "no end".to_owned(),
    });
    LoadStatus {
        name: "p".to_owned(),
        generation: Some(2),
        stage: refused.as_ref().map_or(LoadStage::Active, |refused| refused.stage),
        active: mode.map(|_| PolicyId::builtin("p")),
        digest: None,
        listed_image: None,
        image: None,
        answers: Vec::new(),
        permitted: None,
        mode,
        breaker,
        counts: Default::default(),
        remarks: Vec::new(),
        is_loading: false,
        held: Vec::new(),
        refused,
    }
}

fn condition_texts(status: &PluginStatus) -> Vec<String> {
    let text =
        |condition: &Condition| format!("{}={} {}", condition.type_, condition.status.as_str(), condition.reason);
    status.conditions.iter().map(text).collect()
}

#[test]
fn conditions_tell_what_became_of_a_plugin() {
    let check = |load_status: LoadStatus, expected: [&str; 2]| {
        let status = status(&Plugin::default(), load_status, Time::from_millis(0));
        assert_eq!(
            (status.observed_generation, condition_texts(&status)),
            (2, expected.map(str::to_owned).to_vec())
        );
    };
    let (on, closed) = (Some(Mode::Enforce), BreakerState::Closed);
    check(
        load_status(on, closed, None),
        ["Loaded=True Active", "Answering=True Enforced"],
    );
    check(
        load_status(Some(Mode::Shadow), closed, None),
        ["Loaded=True Active", "Answering=True Shadow"],
    );
    check(
        load_status(Some(Mode::Off), closed, None),
        ["Loaded=True Active", "Answering=False SwitchedOff"],
    );
    check(
        load_status(on, BreakerState::Open, None),
        ["Loaded=True Active", "Answering=False Quarantined"],
    );
    check(
        load_status(on, BreakerState::HalfOpen, None),
        ["Loaded=True Active", "Answering=False Probed"],
    );
    let bad = Some(LoadStage::Compiled);
    check(
        load_status(on, closed, bad),
        ["Loaded=False NotCompiled", "Answering=True Enforced"],
    );
    check(
        load_status(None, closed, bad),
        ["Loaded=False NotCompiled", "Answering=False NoVersion"],
    );
    let quarantined = load_status(None, closed, Some(LoadStage::Quarantined));
    check(quarantined, ["Loaded=False Quarantined", "Answering=False NoVersion"]);
    let holding = LoadStatus {
        held: vec![CallKind::EvictionCheck],
        ..load_status(None, closed, bad)
    };
    check(holding, ["Loaded=False NotCompiled", "Answering=False NotLoaded"]);
}

#[test]
fn events_are_for_what_changed() {
    let status = |mode, breaker, refused| {
        status(
            &Plugin::default(),
            load_status(mode, breaker, refused),
            Time::from_millis(0),
        )
    };
    let check = |before: &[Condition], after: PluginStatus, expected: &[&str]| {
        let changes = changed_conditions(before, &after.conditions);
        assert_eq!(changes.iter().map(reason).collect::<Vec<_>>(), expected);
    };
    let on = Some(Mode::Enforce);
    let sound = || status(on, BreakerState::Closed, None);
    check(&[], sound(), &["PluginLoaded"]);
    check(&sound().conditions, sound(), &[]);
    check(
        &sound().conditions,
        status(on, BreakerState::Open, None),
        &["PluginSilent"],
    );
    check(
        &status(on, BreakerState::Open, None).conditions,
        sound(),
        &["PluginAnswers"],
    );
    check(
        &sound().conditions,
        status(on, BreakerState::Closed, Some(LoadStage::Compiled)),
        &["PluginRefused"],
    );
}

/// Control plane with the Plugin `p`, and a process that loads it.
struct Hub {
    server: ApiServer,
    components: Components,
    objects: Arc<PluginObjects>,
    reported: Arc<Reported>,
    api: Api<Plugin>,
    events: events::Writer,
}

impl Hub {
    async fn new(script: &str) -> Self {
        let server = hub_of_everything(1);
        let (base, events) = components(server.client(), member().client());
        let components = Components {
            registry: Arc::new(Registry::new(vec![Arc::new(Scripts)])),
            ..base
        };
        let objects = Arc::<Objects>::default();
        let catalog = CombinedCatalog::new(None, Arc::clone(&objects));
        let plugins = Plugins::new(Arc::clone(&components.registry), Box::new(catalog), Loading::default());
        let api: Api<Plugin> = Api::all(server.client());
        let plugin = object(json!({"metadata": {"name": "p"}, "spec": {"lua": script}}));
        let created = api.create(&PostParams::default(), &plugin).await.unwrap();
        components.stores.plugins.replace_all([created]);
        Self {
            server,
            components,
            objects: Arc::new(PluginObjects::new(Arc::new(plugins), objects, Arc::default(), |_| {})),
            reported: Arc::default(),
            api,
            events,
        }
    }

    /// Loads the objects of the store.
    async fn load(&self) {
        let plugins = self.components.stores.plugins.list();
        self.objects
            .objects
            .set(plugins.iter().map(|plugin| plugin.to_object()).collect());
        self.objects.refresh().await;
    }

    async fn reconcile(&self) -> Action {
        let (objects, reported) = (Arc::clone(&self.objects), Arc::clone(&self.reported));
        let reconciled = reconcile(self.components.plugins(), objects, reported, Key::new("", "p"));
        reconciled.await.unwrap()
    }

    async fn conditions(&self) -> Vec<String> {
        condition_texts(&self.api.get("p").await.unwrap().status)
    }

    /// Returns the reasons of all events.
    async fn events(self) -> Vec<String> {
        let Self {
            server,
            components,
            events,
            ..
        } = self;
        drop(components);
        let events = written_events(server.client(), events).await;
        events.into_iter().filter_map(|event| event.reason).collect()
    }
}

#[tokio::test]
async fn the_status_of_a_plugin_follows_its_load_and_is_written_once() {
    let hub = Hub::new("sound").await;
    let writes = hub.server.writes();
    assert_eq!(hub.reconcile().await, Action::After(LOADING), "it is not loaded yet");
    assert_eq!(hub.server.writes(), writes);

    hub.load().await;
    assert_eq!(hub.reconcile().await, Action::After(REFRESH));
    assert_eq!(
        hub.conditions().await,
        ["Loaded=True Active", "Answering=True Enforced"]
    );
    let status = hub.api.get("p").await.unwrap().status;
    assert_eq!((status.observed_generation, status.sha256.len()), (1, 64));

    let writes = hub.server.writes();
    assert_eq!(hub.reconcile().await, Action::After(REFRESH));
    assert_eq!(hub.server.writes(), writes, "nothing changed");
    assert_eq!(hub.events().await, ["PluginLoaded"]);
}

#[tokio::test]
async fn a_plugin_that_does_not_load_is_refused() {
    let hub = Hub::new("broken").await;
    hub.load().await;
    assert_eq!(hub.reconcile().await, Action::After(REFRESH));
    assert_eq!(
        hub.conditions().await,
        ["Loaded=False NotCompiled", "Answering=False NotLoaded"]
    );
    assert_eq!(hub.events().await, ["PluginRefused"]);
}

#[tokio::test]
async fn a_deleted_plugin_is_forgotten() {
    let hub = Hub::new("sound").await;
    hub.load().await;
    hub.reconcile().await;
    assert_eq!(hub.reported.lock().unwrap().len(), 1);
    hub.components.stores.plugins.replace_all([]);
    assert_eq!(hub.reconcile().await, Action::Wait);
    assert_eq!(hub.reported.lock().unwrap().len(), 0);
}
