//! Scripts that interpret one kind of object, and the combination of several sets of them into policies. (Karmada:
//! `pkg/resourceinterpreter/customized/declarative/configmanager`.)
//!
//! The first set by name answers an operation on a kind; empty scripts are ignored. All scripts for dependencies are
//! called and their results merged. A script that does not load answers with a fault, so that no lower level answers
//! in its place and its objects never count as healthy by accident.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use bulkhead_core::call::{Call, Interpretation, Operation, Reply};
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::model::DependentObjectReference;
use bulkhead_core::policy::{Capability, EngineKind, Fault, FaultKind, Policy, PolicyId};

use crate::{Entry, Inspection, LoadError, LoadStage, Loaded, Module, PluginSource};

/// Set of scripts for one kind of object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Customization {
    /// Name, unique among those that are loaded together.
    pub name: String,
    /// Origin of the scripts for messages, to which the rule is appended.
    pub origin: String,
    /// `apiVersion` of the objects, compared exactly.
    pub api_version: String,
    /// Kind of the objects, compared exactly.
    pub kind: String,
    /// Scripts, each with the function that it implements.
    pub scripts: Vec<(EntryPoint, String)>,
}

/// Result of loading the sets.
#[derive(Default)]
pub struct LoadedCustomizations {
    /// Policies in the order in which they are called.
    pub policies: Vec<Arc<dyn Policy>>,
    /// Names of the sets that were loaded without problems.
    pub loaded: Vec<String>,
    /// Sets with a script that did not load or does not define its function, by name. Those scripts answer with
    /// faults.
    pub faulty: Vec<(String, LoadError)>,
    /// Warnings for the authors, by name: constructs that work here but not in Karmada.
    pub remarks: Vec<(String, String)>,
    /// Scripts that are not called because another set has one for the same kind and operation: set, operation, and
    /// the other set.
    pub shadowed: Vec<(String, EntryPoint, String)>,
}

/// Loads sets of scripts with `load`, in the order of their names.
pub fn load_customizations(
    customizations: &[Customization],
    load: &dyn Fn(&PluginSource) -> Result<Loaded, LoadError>,
) -> LoadedCustomizations {
    let mut sorted: Vec<_> = customizations.iter().collect();
    sorted.sort_by(|left, right| left.name.cmp(&right.name));
    let mut outcome = LoadedCustomizations::default();
    let remarks = RefCell::new(BTreeSet::new());
    let load = &|source: &PluginSource| {
        let loaded = load(source)?;
        remarks.borrow_mut().extend(loaded.description.remarks.iter().cloned());
        Ok(loaded)
    };
    let mut taken: Vec<(&Customization, EntryPoint)> = Vec::new();
    let mut dependencies: Vec<CombinedDependencies> = Vec::new();
    for customization in sorted {
        let (mut single, mut problem) = (Vec::new(), None);
        for (point, script) in customization.scripts.iter().filter(|(_, script)| !script.is_empty()) {
            if *point == EntryPoint::Dependencies {
                let source = source(customization, &customization.name, &[(*point, script)]);
                let policy = load_source(&source, load, &mut problem);
                CombinedDependencies::add(&mut dependencies, customization, policy);
                continue;
            }
            let same =
                |(other, taken): &&(&Customization, EntryPoint)| taken == point && same_kind(other, customization);
            if let Some((winner, _)) = taken.iter().find(same) {
                outcome
                    .shadowed
                    .push((customization.name.clone(), *point, winner.name.clone()));
            } else {
                taken.push((customization, *point));
                single.push((*point, script.as_str()));
            }
        }
        outcome
            .policies
            .extend(policies(customization, &single, load, &mut problem));
        let found = remarks.take().into_iter();
        outcome
            .remarks
            .extend(found.map(|remark| (customization.name.clone(), remark)));
        match problem {
            Some(error) => outcome.faulty.push((customization.name.clone(), error)),
            None => outcome.loaded.push(customization.name.clone()),
        }
    }
    outcome.policies.extend(
        dependencies
            .into_iter()
            .map(|united| Arc::new(united) as Arc<dyn Policy>),
    );
    outcome
}

fn same_kind(left: &Customization, right: &Customization) -> bool {
    left.api_version == right.api_version && left.kind == right.kind
}

/// Returns one policy for all scripts or, if one of them does not load, one for each.
fn policies(
    customization: &Customization,
    scripts: &[(EntryPoint, &str)],
    load: &dyn Fn(&PluginSource) -> Result<Loaded, LoadError>,
    problem: &mut Option<LoadError>,
) -> Vec<Arc<dyn Policy>> {
    if scripts.is_empty() {
        return Vec::new();
    }
    let together = source(customization, &customization.name, scripts);
    if scripts.len() == 1 {
        return vec![load_source(&together, load, problem)];
    }
    match load(&together) {
        Ok(loaded) => return vec![loaded.policy],
        Err(error) => *problem = Some(error),
    }
    let alone = |script: &(EntryPoint, &str)| {
        let name = format!("{}/{}", customization.name, script.0.function());
        load_source(
            &source(customization, &name, std::slice::from_ref(script)),
            load,
            problem,
        )
    };
    scripts.iter().map(alone).collect()
}

/// Loads a script, even if it compiles but does not define its function. In that case every call is a fault, exactly
/// as in Karmada.
fn load_source(
    source: &PluginSource,
    load: &dyn Fn(&PluginSource) -> Result<Loaded, LoadError>,
    problem: &mut Option<LoadError>,
) -> Arc<dyn Policy> {
    let error = match load(source) {
        Ok(loaded) => return loaded.policy,
        Err(error) => error,
    };
    let policy = if error.stage == LoadStage::Inspected {
        let unseen = PluginSource {
            inspection: Inspection::AtCalls,
            ..source.clone()
        };
        load(&unseen).map(|loaded| loaded.policy)
    } else {
        Err(error.clone())
    };
    problem.get_or_insert(error);
    policy.unwrap_or_else(|error| Arc::new(Unloadable::new(source, &error)))
}

fn source(customization: &Customization, name: &str, scripts: &[(EntryPoint, &str)]) -> PluginSource {
    let object_kind = (customization.api_version.clone(), customization.kind.clone());
    let module = |(point, script): &(EntryPoint, &str)| Module {
        origin: match point.rule() {
            Some(rule) => format!("{} {rule}.luaScript", customization.origin),
            None => customization.origin.clone(),
        },
        code: (*script).into(),
        entries: vec![Entry {
            point: *point,
            object_kind: Some(object_kind.clone()),
        }],
    };
    PluginSource::new(name, EngineKind::Lua, scripts.iter().map(module).collect())
}

/// Policy for a script that did not load. Every call that the script would have answered is the same fault.
struct Unloadable {
    id: PolicyId,
    capabilities: Vec<Capability>,
    points: BTreeSet<EntryPoint>,
    fault: Fault,
}

impl Unloadable {
    fn new(source: &PluginSource, error: &LoadError) -> Self {
        let entries = || source.modules.iter().flat_map(|module| &module.entries);
        let id = PolicyId {
            name: source.name.clone(),
            version: source.digest().short(),
            engine: source.engine,
        };
        let fault = Fault::new(FaultKind::NotLoaded, error.message.clone());
        let capabilities = entries().map(Entry::capability).collect();
        Self {
            id,
            capabilities,
            points: entries().map(|entry| entry.point).collect(),
            fault,
        }
    }
}

impl Policy for Unloadable {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        match call {
            Call::Interpret(call) if !self.points.contains(&EntryPoint::of(&call.operation)) => {
                Ok(Reply::Interpret(None))
            }
            _ => Err(self.fault.clone()),
        }
    }
}

/// All scripts that return the dependencies of one kind of object.
struct CombinedDependencies {
    id: PolicyId,
    capabilities: [Capability; 1],
    parts: Vec<Arc<dyn Policy>>,
}

impl CombinedDependencies {
    fn add(united: &mut Vec<Self>, customization: &Customization, policy: Arc<dyn Policy>) {
        let capability = Capability::on(
            bulkhead_core::call::CallKind::Interpret,
            customization.api_version.clone(),
            customization.kind.clone(),
        );
        if let Some(united) = united
            .iter_mut()
            .find(|united| united.capabilities.contains(&capability))
        {
            united.id.name = format!("{}+{}", united.id.name, customization.name);
            united.id.version = format!("{}+{}", united.id.version, policy.id().version);
            united.parts.push(policy);
        } else {
            let (name, version) = (
                format!("{}/{}", customization.name, "dependencies"),
                &policy.id().version,
            );
            let id = PolicyId {
                name,
                version: version.clone(),
                engine: EngineKind::Lua,
            };
            united.push(Self {
                id,
                capabilities: [capability],
                parts: vec![policy],
            });
        }
    }

    /// Sorts the dependencies and removes duplicates. Those with a selector are kept as often as they were returned,
    /// as in Karmada.
    fn combine(parts: Vec<DependentObjectReference>) -> Vec<DependentObjectReference> {
        let mut united: Vec<DependentObjectReference> = Vec::new();
        for reference in parts {
            if reference.label_selector.is_some() || !united.contains(&reference) {
                united.push(reference);
            }
        }
        let key = |reference: &DependentObjectReference| {
            let DependentObjectReference {
                api_version,
                kind,
                namespace,
                name,
                label_selector: _,
            } = reference.clone();
            (api_version, kind, namespace, name)
        };
        united.sort_by_key(key);
        united
    }
}

impl Policy for CombinedDependencies {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        if !matches!(call, Call::Interpret(call) if matches!(call.operation, Operation::Dependencies { .. })) {
            return Ok(Reply::Interpret(None));
        }
        let mut found = Vec::new();
        for part in &self.parts {
            match part.call(call)? {
                Reply::Interpret(Some(Interpretation::Dependencies(more))) => found.extend(more),
                Reply::Interpret(None) => {}
                other => {
                    let message = format!("{} answered with {other:?}", part.id());
                    return Err(Fault::new(FaultKind::BadReply, message));
                }
            }
        }
        Ok(Reply::Interpret(Some(Interpretation::Dependencies(Self::combine(
            found,
        )))))
    }
}

#[cfg(test)]
mod tests;
