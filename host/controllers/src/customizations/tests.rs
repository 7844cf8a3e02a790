use k8s_openapi::api::core::v1::Event;
use serde_json::json;

use super::*;
use crate::components::Components;
use crate::testing::{Scripts, components, hub_of_works, member, object, written_events};

/// Returns a customization of the health of one kind.
fn customization(name: &str, kind: &str, script: &str) -> ResourceInterpreterCustomization {
    object(json!({
        "metadata": {"name": name, "uid": name},
        "spec": {
            "target": {"apiVersion": "example.io/v1", "kind": kind},
            "customizations": {"healthInterpretation": {"luaScript": script}},
        },
    }))
}

/// Loads customizations in a process with this scope. Returns the number of policies in force, the records about
/// customizations as name and reason, and the reasons of events.
async fn loaded(
    scope: Scope,
    customizations: Vec<ResourceInterpreterCustomization>,
) -> (usize, Vec<(String, String)>, Vec<String>) {
    let hub = hub_of_works(1).client();
    let (base, events) = components(hub.clone(), member().client());
    let components = Components {
        registry: Arc::new(Registry::new(vec![Arc::new(Scripts)])),
        scope,
        ..base
    };
    components.stores.customizations.replace_all(customizations);
    load(&components.customizations());
    let policies = components.registry.policies().iter().count();
    let records = components.journal.records();
    let records = records.iter().map(|record| {
        let entry = &record.entry;
        (entry.subject.name.clone(), entry.attribution.reason.code.clone())
    });
    let records = records.collect();
    drop(components);
    let events = written_events(hub, events).await;
    let events = events.into_iter().filter_map(|event: Event| event.reason).collect();
    (policies, records, events)
}

fn text(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, reason): &(&str, &str)| ((*name).to_owned(), (*reason).to_owned());
    pairs.iter().map(owned).collect()
}

#[tokio::test]
async fn a_script_that_does_not_load_is_refused_and_the_other_ones_answer() {
    let given = vec![
        customization("games", "Game", "broken"),
        customization("shops", "Shop", "sound"),
    ];
    let (policies, records, mut events) = loaded(Scope::Push, given).await;
    assert_eq!(policies, 2, "the broken one answers with faults");
    assert_eq!(
        records,
        text(&[("games", "CustomizationRefused"), ("shops", "CustomizationLoaded")])
    );
    events.sort();
    assert_eq!(events, ["CustomizationLoaded", "CustomizationRefused"]);
}

#[tokio::test]
async fn the_first_of_two_customizations_of_one_rule_answers() {
    let given = vec![
        customization("first", "Game", "sound"),
        customization("second", "Game", "sound too"),
    ];
    let (policies, records, _) = loaded(Scope::Push, given).await;
    assert_eq!(policies, 1);
    let expected = [
        ("first", "CustomizationLoaded"),
        ("second", "RuleShadowed"),
        ("second", "CustomizationLoaded"),
    ];
    assert_eq!(records, text(&expected));
}

#[tokio::test]
async fn an_agent_records_its_customizations_without_events() {
    let given = vec![customization("games", "Game", "sound")];
    let (policies, records, events) = loaded(Scope::Agent("m1".to_owned()), given).await;
    assert_eq!((policies, records), (1, text(&[("games", "CustomizationLoaded")])));
    assert_eq!(events, [""; 0]);
}

#[tokio::test]
async fn customizations_are_replaced_as_a_whole() {
    let registry = Registry::new(vec![Arc::new(Scripts)]);
    let one = customization("games", "Game", "sound");
    install(&registry, std::iter::once(&one));
    assert_eq!(registry.policies().iter().count(), 1);
    install(&registry, std::iter::empty());
    assert_eq!(registry.policies().iter().count(), 0);
}
