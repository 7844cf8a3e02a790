//! ResourceInterpreterCustomization objects → policies (Karmada: `pkg/resourceinterpreter/customized/declarative`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bulkhead_api::ResourceInterpreterCustomization;
use bulkhead_core::combine::Attribution;
use bulkhead_core::journal::Decision;
use bulkhead_plugin::{Customization, EntryPoint, Layer, LoadedCustomizations, Registry, load_customizations};
use kube::ResourceExt;
use tokio::sync::SetOnce;

use crate::context::{Context, Record, Scope, about, input, subject};
use crate::controller::{self, Action, Error};
use crate::events::EventType;
use crate::queue::WorkQueue;

const NAME: &str = "interpreter-customization-controller";

/// Load state of the interpreters that customizations define. Before they are loaded, an object seems to have no
/// interpreter.
#[derive(Default)]
pub struct InterpretersLoaded {
    expected: AtomicBool,
    loaded: SetOnce<()>,
}

impl InterpretersLoaded {
    /// Records that the controller that loads them was started.
    pub(crate) fn expect(&self) {
        self.expected.store(true, Ordering::SeqCst);
    }

    fn done(&self) {
        // Every change loads them again.
        let _ = self.loaded.set(());
    }

    /// Waits until they are loaded, unless no controller loads them.
    async fn wait(&self) {
        if self.expected.load(Ordering::SeqCst) {
            self.loaded.wait().await;
        }
    }
}

impl Context {
    /// Waits until all interpreters are known. An interpretation before that may be wrong.
    pub(crate) async fn wait_for_interpreters(&self) {
        self.stores.webhooks.wait_for_cache_sync().await;
        self.interpreters_loaded.wait().await;
    }
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(context: Context) {
    context.stores.customizations.wait_for_cache_sync().await;
    let queue: Arc<WorkQueue<()>> = Arc::default();
    queue.add(());
    let changed = Arc::clone(&queue);
    let _customizations = context.stores.customizations.subscribe(move |_| changed.add(()));
    let reconcile = {
        let context = context.clone();
        move |()| {
            let context = context.clone();
            async move {
                let loading = context.clone();
                let loaded = context.off_workers(NAME, move || load(&loading)).await;
                loaded.map_err(|why| Error::Undecided(format!("loading customizations: {why}")))?;
                context.interpreters_loaded.done();
                Ok(Action::Wait)
            }
        }
    };
    controller::run(queue, 1, reconcile, context.failed(NAME)).await;
}

/// Loads all customizations anew. A script that does not load is reported and answers with faults; the others stay in
/// force.
fn load(context: &Context) {
    let customizations = context.stores.customizations.list();
    let outcome = install(&context.registry, customizations.iter().map(AsRef::as_ref));
    for customization in &customizations {
        let name = customization.name_any();
        let target = &customization.spec.target;
        let answers = outcome.shadowed.iter().filter(|(shadowed, ..)| *shadowed == name);
        for (_, point, winner) in answers {
            let message =
                format!("{} of {} {} is answered by {winner}", point.function(), target.api_version, target.kind);
            report(context, customization, EventType::Warning, "RuleShadowed", &message);
        }
        for (_, remark) in outcome.remarks.iter().filter(|(about, _)| *about == name) {
            report(context, customization, EventType::Warning, "NotPortable", remark);
        }
        if let Some((_, error)) = outcome.faulty.iter().find(|(faulty, _)| *faulty == name) {
            report(context, customization, EventType::Warning, "CustomizationRefused", &error.to_string());
        } else if customization.spec.customizations.scripts().next().is_some() {
            let message = format!("the customization interprets {} {}", target.api_version, target.kind);
            report(context, customization, EventType::Normal, "CustomizationLoaded", &message);
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
    context: &Context,
    about_: &ResourceInterpreterCustomization,
    type_: EventType,
    code: &'static str,
    message: &str,
) {
    context.record(Record {
        controller: NAME,
        subject: subject(about_),
        cluster: None,
        decision: Decision::PluginsChanged,
        attribution: Attribution::rule(code, message),
        effect: String::new(),
        inputs: vec![input(about_)],
    });
    // Every process loads it; one event is enough.
    if context.scope == Scope::Push {
        context.events.emit(NAME, about(about_), type_, code, message);
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
