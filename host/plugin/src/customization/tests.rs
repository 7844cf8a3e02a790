use bulkhead_core::call::{HealthCall, InterpretCall};
use bulkhead_core::time::Time;
use serde_json::{Value, json};

use super::*;
use crate::Description;

/// Engine whose scripts are names of dependencies, `broken`, or `shapeless`, which is detected only by
/// inspection.
struct Scripted(PolicyId, Vec<Capability>, Vec<Entry>, String);

impl Policy for Scripted {
    fn id(&self) -> &PolicyId {
        &self.0
    }

    fn capabilities(&self) -> &[Capability] {
        &self.1
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        if self.3 == "shapeless" {
            return Err(Fault::new(FaultKind::MissingExport, "shapeless"));
        }
        Ok(match call {
            Call::Interpret(call)
                if !self
                    .2
                    .iter()
                    .any(|entry| entry.point == EntryPoint::of(&call.operation)) =>
            {
                Reply::Interpret(None)
            }
            Call::Interpret(_) => {
                let reference = |name: &str| DependentObjectReference {
                    name: name.to_owned(),
                    ..Default::default()
                };
                let names = self.3.split(' ').map(reference).collect();
                Reply::Interpret(Some(Interpretation::Dependencies(names)))
            }
            _ => Reply::Score(Vec::new()),
        })
    }
}

fn load(source: &PluginSource) -> Result<Loaded, LoadError> {
    let text = |module: &Module| String::from_utf8_lossy(&module.code).into_owned();
    if source.modules.iter().any(|module| text(module) == "broken") {
        return Err(LoadError::new(source, LoadStage::Compiled, "broken"));
    }
    let shapeless = source.modules.iter().any(|module| text(module) == "shapeless");
    if shapeless && source.inspection == Inspection::AtLoading {
        return Err(LoadError::new(source, LoadStage::Inspected, "shapeless"));
    }
    let entries: Vec<_> = source
        .modules
        .iter()
        .flat_map(|module| module.entries.clone())
        .collect();
    let id = PolicyId {
        name: source.name.clone(),
        version: "1".to_owned(),
        engine: EngineKind::Lua,
    };
    let capabilities = entries.iter().map(Entry::capability).collect();
    let policy = Arc::new(Scripted(
        id,
        capabilities,
        entries,
        source.modules.first().map(text).unwrap_or_default(),
    ));
    let description = Description {
        name: String::new(),
        version: String::new(),
        summary: String::new(),
        digest: source.digest(),
        code_bytes: 0,
        contract: String::new(),
        imports: Vec::new(),
        taint_keys: Vec::new(),
        config_schema: None,
        reusable: false,
        remarks: Vec::new(),
    };
    Ok(Loaded { policy, description })
}

fn customization(name: &str, scripts: &[(EntryPoint, &str)]) -> Customization {
    Customization {
        name: name.to_owned(),
        origin: name.to_owned(),
        api_version: "v1".to_owned(),
        kind: "Widget".to_owned(),
        scripts: scripts
            .iter()
            .map(|(point, script)| (*point, (*script).to_owned()))
            .collect(),
    }
}

fn object() -> Arc<Value> {
    Arc::new(json!({"apiVersion": "v1", "kind": "Widget"}))
}

fn names(policy: &dyn Policy) -> Result<Vec<String>, FaultKind> {
    let object = object();
    let operation = Operation::Dependencies { object: &object };
    let call = Call::Interpret(InterpretCall {
        operation,
        now: Time::from_millis(0),
    });
    match policy.call(&call).map_err(|fault| fault.kind)? {
        Reply::Interpret(Some(Interpretation::Dependencies(found))) => {
            Ok(found.into_iter().map(|reference| reference.name).collect())
        }
        _ => Ok(Vec::new()),
    }
}

#[test]
fn the_first_by_name_answers_and_an_empty_script_is_none() {
    let sets = [
        customization("c", &[(EntryPoint::Health, "c"), (EntryPoint::Replicas, "c")]),
        customization("b", &[(EntryPoint::Health, "b")]),
        customization("a", &[(EntryPoint::Health, "")]),
    ];
    let outcome = load_customizations(&sets, &load);
    let answers: Vec<_> = outcome
        .policies
        .iter()
        .map(|policy| policy.id().name.as_str())
        .collect();
    assert_eq!(answers, ["b", "c"]);
    assert_eq!(
        outcome
            .policies
            .iter()
            .map(|policy| policy.capabilities().len())
            .collect::<Vec<_>>(),
        [1, 1]
    );
    assert_eq!(outcome.shadowed, [("c".to_owned(), EntryPoint::Health, "b".to_owned())]);
    assert!(outcome.faulty.is_empty());
}

#[test]
fn dependencies_of_all_sets_are_united() {
    let sets = [
        customization("b", &[(EntryPoint::Dependencies, "y x")]),
        customization("a", &[(EntryPoint::Dependencies, "z x")]),
    ];
    let outcome = load_customizations(&sets, &load);
    let [policy] = outcome.policies.as_slice() else {
        panic!("one policy for the kind")
    };
    assert_eq!(
        names(&**policy),
        Ok(vec!["x".to_owned(), "y".to_owned(), "z".to_owned()])
    );
    let sets = [
        sets[0].clone(),
        customization("a", &[(EntryPoint::Dependencies, "broken")]),
    ];
    let outcome = load_customizations(&sets, &load);
    assert_eq!(
        outcome
            .policies
            .iter()
            .map(|policy| names(&**policy))
            .collect::<Vec<_>>(),
        [Err(FaultKind::NotLoaded)]
    );
}

#[test]
fn a_script_that_does_not_load_answers_with_a_fault_and_leaves_its_neighbours_alone() {
    let check = |script: &str, expected: FaultKind| {
        let sets = [customization(
            "a",
            &[(EntryPoint::Health, script), (EntryPoint::Retain, "x")],
        )];
        let outcome = load_customizations(&sets, &load);
        assert_eq!(outcome.faulty.len(), 1);
        assert!(outcome.loaded.is_empty());
        let [health, retain] = outcome.policies.as_slice() else {
            panic!("one policy for each script")
        };
        let object = object();
        let call = Call::Health(HealthCall {
            object: &object,
            now: Time::from_millis(0),
        });
        assert_eq!(
            health.call(&call).map_err(|fault| fault.kind),
            Err(expected),
            "{script}"
        );
        assert!(
            retain
                .capabilities()
                .iter()
                .all(|capability| capability.answers(&Call::Interpret(InterpretCall {
                    operation: Operation::Retain {
                        desired: &object,
                        observed: &object
                    },
                    now: Time::from_millis(0),
                })))
        );
    };
    check("broken", FaultKind::NotLoaded);
    check("shapeless", FaultKind::MissingExport);
}
