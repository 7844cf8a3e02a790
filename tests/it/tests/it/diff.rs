//! Effect of another plugin version on recorded decisions.

use std::sync::Arc;

use bulkhead_core::policy::{EngineKind, Policy};
use bulkhead_plugin::{Bounded, Module, PluginSource};
use bulkhead_simulator::recorded::diff::{Class, Comparison, compare};

use crate::replay::recorded;
use crate::support::engines;

fn script(name: &str, text: &str) -> Arc<dyn Policy> {
    let module = Module {
        origin: format!("{name}.lua"),
        code: text.into(),
        entries: Vec::new(),
    };
    let source = PluginSource::new(name, EngineKind::Lua, vec![module]);
    let engine = engines()
        .into_iter()
        .find(|engine| engine.kind() == EngineKind::Lua)
        .unwrap();
    Arc::new(Bounded::new(engine.load(&source).unwrap().policy))
}

fn diff(example: &str, name: &str, text: &str) -> Comparison {
    compare(&recorded(example, 1).records, &script(name, text), name)
}

fn classes(comparison: &Comparison) -> Vec<Class> {
    comparison.classes.keys().copied().collect()
}

#[test]
fn a_check_that_always_holds_turns_releases_into_holds() {
    let text =
        "function EvictionCheck(binding, task, observed, now)\n  return {verdict = 'hold', reason = 'Always'}\nend";
    let comparison = diff("nginx-divided", "careful", text);
    assert_eq!(
        classes(&comparison),
        [Class::ReleasedToHeld, Class::ReasonOnly],
        "{comparison:?}"
    );
    assert!(comparison.changes_verdicts());
    let change = comparison
        .changes
        .iter()
        .find(|change| change.class == Class::ReleasedToHeld)
        .unwrap();
    assert_eq!(change.cluster.as_deref(), Some("member1"));
    assert!(
        change.before.starts_with("released") && change.after.starts_with("held (careful: Always"),
        "{change:?}"
    );
}

#[test]
fn a_check_in_place_of_the_recorded_one_is_compared_with_it() {
    let text = "function EvictionCheck(binding, task, observed, now)\n  return {verdict = 'abstain'}\nend";
    let comparison = diff("change-freeze", "change-freeze", text);
    assert_eq!(comparison.replaced, 1, "{comparison:?}");
    // Another check held the old copy as well, so only the reason changes.
    assert_eq!(classes(&comparison), [Class::ReasonOnly], "{comparison:?}");
    assert!(
        comparison.changes[0].before.starts_with("change-freeze: ChangeFreeze"),
        "{comparison:?}"
    );
    assert!(!comparison.changes_verdicts());
}

#[test]
fn a_script_with_another_verdict_is_reported_for_each_object() {
    let text = "function InterpretHealth(object)\n  return false\nend";
    let comparison = diff("nginx-duplicated", "pessimist", text);
    assert_eq!(classes(&comparison).first(), Some(&Class::Health), "{comparison:?}");
    assert!(
        comparison
            .changes
            .iter()
            .any(|change| change.before == "Healthy" && change.after.starts_with("Unhealthy"))
    );
}

#[test]
fn a_filter_that_lets_nothing_pass_leaves_workloads_without_a_place() {
    let text = "function Filter(binding, clusters, now)\n  local verdicts = {}\n  for i, cluster in ipairs(clusters) do\n    \
                verdicts[i] = {fit = false, reason = 'No', message = 'no'}\n  end\n  return verdicts\nend";
    let comparison = diff("nginx-duplicated", "closed", text);
    assert!(classes(&comparison).contains(&Class::NotPlaced), "{comparison:?}");
}

#[test]
fn a_plugin_that_fails_is_a_class_of_its_own() {
    let text = "function EvictionCheck(binding, task, observed, now)\n  error('broken')\nend";
    let comparison = diff("nginx-divided", "broken", text);
    assert!(classes(&comparison).contains(&Class::Fault), "{comparison:?}");
    assert!(comparison.changes_verdicts());
}

#[test]
fn a_plugin_without_an_opinion_changes_nothing() {
    let text = "function EvictionCheck(binding, task, observed, now)\n  return {verdict = 'abstain'}\nend";
    let comparison = diff("nginx-divided", "silent", text);
    assert!(
        comparison.compared > 0 && comparison.unchanged == comparison.compared,
        "{comparison:?}"
    );
    assert!(!comparison.changes_verdicts());
}
