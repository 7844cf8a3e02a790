//! Cases of scripts: their own scripts, scripts in a folder, and Bulkhead's library.
//!
//! Every script is loaded like a customization. A third-party case runs the unchanged script of its own file in the
//! folder from the options. Without such a folder, Bulkhead's library answers for the kinds that it covers.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulkhead_api::ResourceInterpreterCustomization;
use bulkhead_core::manifest::Budget;
use bulkhead_core::pod::Detail;
use bulkhead_core::policy::{EngineKind, Policy, PolicySet};
use bulkhead_core::time::Time;
use bulkhead_engine_lua::{Conversions, EmptyItems, LuaEngine, Options as EngineOptions, Probe};
use bulkhead_plugin::{Customization, Engine, load_customizations};
use serde_json::{Value, json};

use super::case::{Arguments, Case, Gvk, customization, read};
use super::outcome::{Outcome, ask, classes};
use super::{Options, Ran};

/// Folder in the paths of cases below which paths start with the group of the kind.
const ROOT: &str = "resourcecustomizations/";
/// Parent of [`ROOT`] in Karmada's repository.
const UPSTREAM: &str = "pkg/resourceinterpreter/default/thirdparty/";

/// Loader and runner of scripts.
pub(super) struct Scripts {
    options: Options,
    engines: RefCell<Vec<(EngineOptions, Arc<LuaEngine>)>>,
    /// Kinds without a customization, with the number of cases.
    uncovered: RefCell<BTreeMap<Gvk, usize>>,
    /// Cases whose outcome equals that of reference Lua, where Karmada's Lua VM differs.
    as_reference: RefCell<BTreeSet<String>>,
    /// Cases that need Karmada's own conversions, which lose or invent data.
    as_karmada: RefCell<BTreeSet<String>>,
}

impl Scripts {
    /// Creates a runner for the locations in the options.
    pub(super) fn new(options: &Options) -> Self {
        Self {
            options: options.clone(),
            engines: RefCell::default(),
            uncovered: RefCell::default(),
            as_reference: RefCell::default(),
            as_karmada: RefCell::default(),
        }
    }

    /// Returns the notes to print after all cases.
    pub(super) fn notes(&self) -> Vec<String> {
        let uncovered = self.uncovered.borrow();
        let line = |(kind, count): (&Gvk, &usize)| format!("{} {} ({count})", kind.api_version(), kind.kind);
        let mut notes = Vec::new();
        if !uncovered.is_empty() {
            let kinds: Vec<_> = uncovered.iter().map(line).collect();
            notes.push(format!("not covered, and not run: {}", kinds.join(", ")));
        }
        let as_reference = self.as_reference.borrow();
        if !as_reference.is_empty() {
            let cases: Vec<_> = as_reference.iter().map(String::as_str).collect();
            let note = "passed with what reference Lua does, which the file records beside Karmada's outcome";
            notes.push(format!("{} cases {note}: {}", cases.len(), cases.join(", ")));
        }
        let as_karmada = self.as_karmada.borrow();
        if !as_karmada.is_empty() {
            let cases: Vec<_> = as_karmada.iter().map(String::as_str).collect();
            notes.push(format!(
                "{} cases passed with Conversions::Karmada only: {}",
                cases.len(),
                cases.join(", ")
            ));
        }
        notes
    }

    fn engine(&self, options: EngineOptions) -> Arc<LuaEngine> {
        let mut engines = self.engines.borrow_mut();
        if let Some((_, engine)) = engines.iter().find(|(known, _)| *known == options) {
            return Arc::clone(engine);
        }
        let engine = Arc::new(LuaEngine::new(options));
        engines.push((options, Arc::clone(&engine)));
        engine
    }

    /// Returns the policies for these customizations.
    pub(super) fn policies(&self, case: &Case, customizations: &[Customization]) -> Vec<Arc<dyn Policy>> {
        self.policies_with(case, customizations, Conversions::Safe)
    }

    fn policies_with(
        &self,
        case: &Case,
        customizations: &[Customization],
        conversions: Conversions,
    ) -> Vec<Arc<dyn Policy>> {
        let pod_detail = if case.gate("ResourceQuotaEstimate") {
            Detail::PriorityClass
        } else {
            Detail::Plain
        };
        // The cases distinguish an empty list from a missing list.
        let has_list = case.inputs.get("statusItems").is_some_and(Value::is_array);
        let no_items = if has_list {
            EmptyItems::EmptyTable
        } else {
            EmptyItems::Nil
        };
        let engine = self.engine(EngineOptions {
            pod_detail,
            conversions,
            no_items,
            ..EngineOptions::default()
        });
        load_customizations(customizations, &|source| engine.load(source)).policies
    }

    /// Runs a case with customizations. If the outcome differs from the expectation, Karmada's own conversions are
    /// tried, and cases that need them are recorded.
    fn asked(&self, case: &Case, customizations: &[Customization]) -> Result<Outcome, String> {
        let arguments = Arguments::read(&case.inputs)?;
        let ask = |conversions| {
            let policies = PolicySet::new(self.policies_with(case, customizations, conversions));
            let outcome = ask(&policies, &case.operation, &arguments)?;
            let nobody = outcome == Outcome::no_handler();
            Ok::<_, String>(if nobody {
                Outcome::Result(json!({"enabled": false}))
            } else {
                outcome
            })
        };
        let outcome = ask(Conversions::Safe)?;
        if super::compare::is_expected(case, &outcome) {
            return Ok(outcome);
        }
        let as_karmada = ask(Conversions::Karmada)?;
        if !super::compare::is_expected(case, &as_karmada) {
            return Ok(outcome);
        }
        self.as_karmada.borrow_mut().insert(case.title.clone());
        Ok(as_karmada)
    }

    /// Runs a case with its own scripts.
    pub(super) fn declarative(&self, case: &Case) -> Result<Outcome, String> {
        self.asked(case, &case.customizations()?)
    }

    /// Runs a case of a script that is bundled with Karmada.
    pub(super) fn third_party(&self, case: &Case) -> Result<Ran, String> {
        let path = case.source.get("customization").and_then(Value::as_str);
        let Some(found) = self.of_kind(path, &case.kind)? else {
            *self.uncovered.borrow_mut().entry(case.kind.clone()).or_default() += 1;
            return Ok(Ran::Skipped("no script covers their kind".to_owned()));
        };
        self.asked(case, &[found]).map(Ran::Outcome)
    }

    /// Returns the customization of a kind: from its file, or from Bulkhead's library. `None` if there is none.
    pub(super) fn of_kind(&self, path: Option<&str>, kind: &Gvk) -> Result<Option<Customization>, String> {
        let below_root = format!("{}/{}", kind.api_version(), kind.kind);
        let file = match (&self.options.customizations, &self.options.library) {
            (Some(folder), _) => {
                let path = path.map_or_else(|| format!("{below_root}/customizations.yaml"), str::to_owned);
                let found = candidates(folder, &path).find(|file| file.is_file());
                return found.map_or(Ok(None), |file| load(&file).map(Some));
            }
            (None, Some(library)) => library.join(below_root).join("customization.yaml"),
            (None, None) => return Ok(None),
        };
        if file.is_file() {
            load(&file).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Runs a case of the Lua language alone.
    pub(super) fn plain(&self, case: &Case) -> Result<Outcome, String> {
        let arguments: Vec<Value> = read(case.inputs.get("args").unwrap_or(&Value::Null), "args")?;
        let results = case.inputs.get("returns").and_then(Value::as_u64).unwrap_or(1);
        let probe = Probe {
            script: case.script.as_deref().unwrap_or_default(),
            function: case.inputs.get("function").and_then(Value::as_str).unwrap_or_default(),
            arguments: &arguments,
            results: usize::try_from(results).unwrap_or_default(),
            budget: Budget::default(),
            now: Time::from_millis(1_767_225_600_000),
        };
        let outcome = match self.engine(EngineOptions::default()).probe(&probe) {
            Ok(results) => Outcome::Result(results.iter().map(typed).collect()),
            Err(fault) => Outcome::Failed(classes(EngineKind::Lua, fault.kind), fault.to_string()),
        };
        let expected = super::compare::is_expected(case, &outcome);
        if !expected && let Some(result) = reference(case, &outcome) {
            self.as_reference.borrow_mut().insert(case.title.clone());
            return Ok(result);
        }
        Ok(outcome)
    }
}

/// Returns the expected outcome if the actual one is recorded in the file for reference Lua.
fn reference(case: &Case, outcome: &Outcome) -> Option<Outcome> {
    let same = |engine: &Value| match outcome {
        Outcome::Result(result) => engine
            .get("expected")
            .is_some_and(|recorded| super::compare::same_values(recorded, result)),
        Outcome::Failed(..) => engine.get("error").is_some(),
    };
    let expected = match (&case.expected, &case.error) {
        (Some(expected), _) => Outcome::Result(expected.clone()),
        (None, Some(_)) => Outcome::Failed(&["luaRuntime"], String::new()),
        (None, None) => return None,
    };
    case.other_engines.values().any(same).then_some(expected)
}

fn typed(value: &Value) -> Value {
    match value {
        Value::Null => json!({"type": "nil"}),
        Value::Bool(_) => json!({"type": "boolean", "value": value}),
        Value::Number(_) => json!({"type": "number", "value": value}),
        Value::String(_) => json!({"type": "string", "value": value}),
        Value::Array(_) | Value::Object(_) => json!({"type": "table", "value": value}),
    }
}

/// Returns the possible paths of a file: below the folder with the whole path, or with the part after the root.
fn candidates<'a>(folder: &'a Path, path: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    let below_root = path.split_once(ROOT).map_or(path, |(_, below)| below);
    [String::new(), ROOT.to_owned(), format!("{UPSTREAM}{ROOT}")]
        .into_iter()
        .map(move |root| folder.join(root).join(below_root))
}

fn load(file: &Path) -> Result<Customization, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let object: ResourceInterpreterCustomization =
        serde_saphyr::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(customization(&object))
}
