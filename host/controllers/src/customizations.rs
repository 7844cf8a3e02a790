//! ResourceInterpreterCustomization objects → policies (Karmada: `pkg/resourceinterpreter/customized/declarative`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bulkhead_api::ResourceInterpreterCustomization;
use bulkhead_core::combine::Because;
use bulkhead_core::journal::Decision;
use bulkhead_core::policy::{EngineKind, Policy};
use bulkhead_plugin::{Entry, EntryPoint, Layer, Module, PluginSource};
use kube::ResourceExt;

use crate::context::{Context, Record, about, input, subject};
use crate::controller::{self, Action};
use crate::events::EventType;
use crate::queue::WorkQueue;

const NAME: &str = "interpreter-customization-controller";

/// Runs the controller, for ever.
pub(crate) async fn run(context: Context) {
    let queue: Arc<WorkQueue<()>> = Arc::default();
    let changed = Arc::clone(&queue);
    let _customizations = context.stores.customizations.subscribe(move |_| changed.add(()));
    let reconcile = {
        let context = context.clone();
        move |()| {
            load(&context);
            std::future::ready(Ok(Action::Wait))
        }
    };
    controller::run(queue, 1, reconcile, context.failed(NAME)).await;
}

/// Loads all customizations anew. One that does not load is reported and left out; the others stand.
fn load(context: &Context) {
    let mut policies: Vec<Arc<dyn Policy>> = Vec::new();
    let mut taken = BTreeSet::new();
    // The store is ordered by name, which is the order that decides who wins an operation.
    for customization in context.stores.customizations.list() {
        let (source, unsupported) = source_of(&customization, &mut taken);
        for rule in unsupported {
            let message = format!("the rule {rule} is not run by this version");
            report(context, &customization, EventType::Warning, "RuleNotSupported", &message);
        }
        if source.modules.is_empty() {
            continue;
        }
        match context.registry.load(&source) {
            Ok(loaded) => {
                let target = &customization.spec.target;
                let message = format!("its scripts interpret {} {} from now on", target.api_version, target.kind);
                report(context, &customization, EventType::Normal, "CustomizationLoaded", &message);
                policies.push(loaded.policy);
            }
            Err(error) => {
                report(context, &customization, EventType::Warning, "CustomizationRefused", &error.to_string());
            }
        }
    }
    context.registry.replace(Layer::Customizations, policies);
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
        because: Because::rule(code, message),
        effect: String::new(),
        inputs: vec![input(about_)],
    });
    context.events.emit(NAME, about(about_), type_, code, message);
}

/// The scripts of a customization that nobody before it has for the same kind and operation, and the rules that
/// this host does not run.
fn source_of(
    customization: &ResourceInterpreterCustomization,
    taken: &mut BTreeSet<(String, String, EntryPoint)>,
) -> (PluginSource, Vec<&'static str>) {
    let rules = BTreeMap::from([
        ("healthInterpretation", EntryPoint::Health),
        ("replicaResource", EntryPoint::Replicas),
        ("replicaRevision", EntryPoint::Revise),
        ("statusReflection", EntryPoint::ReflectStatus),
        ("statusAggregation", EntryPoint::AggregateStatus),
    ]);
    let target = &customization.spec.target;
    let (mut modules, mut unsupported) = (Vec::new(), Vec::new());
    for (rule, script) in customization.spec.customizations.scripts() {
        let Some(point) = rules.get(rule).copied() else {
            unsupported.push(rule);
            continue;
        };
        if !taken.insert((target.api_version.clone(), target.kind.clone(), point)) {
            continue;
        }
        modules.push(Module {
            origin: format!("ResourceInterpreterCustomization {} {rule}.luaScript", customization.name_any()),
            code: script.as_bytes().to_vec(),
            entries: vec![Entry { point, object_kind: Some((target.api_version.clone(), target.kind.clone())) }],
        });
    }
    (PluginSource::new(customization.name_any(), EngineKind::Lua, modules), unsupported)
}
