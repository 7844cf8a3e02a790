//! ResourceInterpreterCustomization objects → policies (Karmada: `pkg/resourceinterpreter/customized/declarative`).

use std::sync::Arc;

use bulkhead_api::ResourceInterpreterCustomization;
use bulkhead_core::combine::Attribution;
use bulkhead_core::journal::Decision;
use bulkhead_core::manifest::EntryPoint;
use bulkhead_plugin::{Customization, Layer, LoadedCustomizations, Registry, load_customizations};
use bulkhead_runtime::controller::{self, Action, Error};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::ObjectName;
use bulkhead_runtime::queue::WorkQueue;
use kube::ResourceExt;

use crate::decision_log::{DecisionLog, Record};
use crate::evaluate::Decider;
use crate::interpreter::InterpretersLoaded;
use crate::members::Scope;
use crate::stores::Stores;
use crate::subjects::{about, input, subject};

const NAME: &str = "interpreter-customization-controller";

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) decider: Decider,
    pub(crate) failures: Arc<Failures>,
    pub(crate) loaded: Arc<InterpretersLoaded>,
    pub(crate) log: DecisionLog,
    pub(crate) scope: Scope,
    pub(crate) stores: Arc<Stores>,
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    deps.stores.customizations.wait_for_cache_sync().await;
    let queue: Arc<WorkQueue<()>> = Arc::default();
    queue.add(());
    let changed = Arc::clone(&queue);
    let _customizations = deps.stores.customizations.subscribe(move |_| changed.add(()));
    let reconcile = {
        let deps = deps.clone();
        move |()| {
            let deps = deps.clone();
            async move {
                let loading = deps.clone();
                let loaded = deps.decider.off_workers(NAME, move || load(&loading)).await;
                loaded.map_err(|why| Error::Undecided(format!("loading customizations: {why}")))?;
                deps.loaded.done();
                Ok(Action::Wait)
            }
        }
    };
    controller::run(
        queue,
        1,
        reconcile,
        deps.failures
            .counter(NAME, |()| ObjectName::all("ResourceInterpreterCustomization")),
    )
    .await;
}

/// Loads all customizations anew. A script that does not load is reported and answers with faults; the others stay in
/// force.
fn load(deps: &Dependencies) {
    let customizations = deps.stores.customizations.list();
    let outcome = install(&deps.decider.registry, customizations.iter().map(AsRef::as_ref));
    for customization in &customizations {
        let name = customization.name_any();
        let target = &customization.spec.target;
        let answers = outcome.shadowed.iter().filter(|(shadowed, ..)| *shadowed == name);
        for (_, point, winner) in answers {
            let message = format!(
                "{} of {} {} is answered by {winner}",
                point.function(),
                target.api_version,
                target.kind
            );
            report(deps, customization, EventType::Warning, "RuleShadowed", &message);
        }
        for (_, remark) in outcome.remarks.iter().filter(|(about, _)| *about == name) {
            report(deps, customization, EventType::Warning, "NotPortable", remark);
        }
        if let Some((_, error)) = outcome.faulty.iter().find(|(faulty, _)| *faulty == name) {
            report(
                deps,
                customization,
                EventType::Warning,
                "CustomizationRefused",
                &error.to_string(),
            );
        } else if customization.spec.customizations.scripts().next().is_some() {
            let message = format!("the customization interprets {} {}", target.api_version, target.kind);
            report(deps, customization, EventType::Normal, "CustomizationLoaded", &message);
        }
    }
}

/// Replaces the customizations of a registry. Returns their errors and remarks.
pub fn install<'c>(
    registry: &Registry,
    customizations: impl Iterator<Item = &'c ResourceInterpreterCustomization>,
) -> LoadedCustomizations {
    let sets: Vec<_> = customizations.map(set_of).collect();
    let mut outcome = load_customizations(&sets, &|source| registry.load(source));
    registry.replace(Layer::Customizations, std::mem::take(&mut outcome.policies));
    outcome
}

fn report(
    deps: &Dependencies,
    about_: &ResourceInterpreterCustomization,
    type_: EventType,
    code: &'static str,
    message: &str,
) {
    deps.log.record(Record {
        controller: NAME,
        subject: subject(about_),
        cluster: None,
        decision: Decision::PluginsChanged,
        attribution: Attribution::rule(code, message),
        effect: String::new(),
        inputs: vec![input(about_)],
    });
    // Every process loads it; one event is enough.
    if deps.scope == Scope::Push {
        deps.log.events.emit(NAME, about(about_), type_, code, message);
    }
}

/// Returns the scripts of a customization.
fn set_of(customization: &ResourceInterpreterCustomization) -> Customization {
    let spec = &customization.spec;
    let script = |(rule, script): (&str, &str)| Some((EntryPoint::of_rule(rule)?, script.to_owned()));
    Customization {
        name: customization.name_any(),
        origin: format!("ResourceInterpreterCustomization {}", customization.name_any()),
        api_version: spec.target.api_version.clone(),
        kind: spec.target.kind.clone(),
        scripts: spec.customizations.scripts().filter_map(script).collect(),
    }
}

#[cfg(test)]
mod tests;
