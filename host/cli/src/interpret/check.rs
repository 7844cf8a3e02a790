//! Checks interpreters for mistakes, including those that an API server accepts.
//!
//! | check | mistake |
//! | --- | --- |
//! | shape | a document of another kind, without a target, or with an unknown field |
//! | syntax | the script is not valid Lua; reported with line and column of the file |
//! | functions | the function of the rule is missing or not a function, or the script also defines the function of another rule |
//! | names | a variable that nothing defines is indexed or called, or a function that a library does not have, with the nearest name; position 0 of a list is read; nil stands for a table |
//! | results | on a sample object the result has the wrong type or is missing, or the script exceeds its budget or requests something forbidden |
//! | arguments | on a sample object the script modifies a read-only argument |
//! | dialect | code that Karmada's Lua VM rejects although Bulkhead's accepts it; a warning for scripts outside a customization |
//!
//! The sample objects have the fields of most workloads. A script that fails on one of them can be correct, and nil
//! can be the right result for a field that the sample does not have. Those cases are warnings only, one for each
//! message of a function.
//!
//! The text has the form of `karmadactl interpret --check`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use bulkhead_conformance::plain_calls;
use bulkhead_core::manifest::{Dialect, EntryPoint};
use bulkhead_core::policy::{EngineKind, FaultKind, Policy};
use bulkhead_engine_lua::{Difference, LuaEngine, SyntaxError, always_nil, check_syntax, foreign};
use bulkhead_plugin::{Engine, Entry, Module, PluginSource};
use serde::Serialize;

use super::customization::{Customization, Parsed, Script};
use super::input::STDIN;
use super::interpreter::{Found, Loader, find_in, is_customizations, parse, script_source};
use super::place::Place;
use crate::output::Format;

/// Separator between the output of two documents.
const RULE: &str = "-----------------------------------";
/// Entry points of interpreters.
const INTERPRETERS: [EntryPoint; 8] = [
    EntryPoint::Retain,
    EntryPoint::Replicas,
    EntryPoint::Components,
    EntryPoint::Revise,
    EntryPoint::ReflectStatus,
    EntryPoint::AggregateStatus,
    EntryPoint::Health,
    EntryPoint::Dependencies,
];

/// Wraps a function so that it fails when it changes an argument or returns nothing. The placeholders `FUNCTION`,
/// `ARGUMENT` and `NEEDED` are replaced by its name, the position of the argument to watch (0 for none), and `true`
/// if it must return a value.
const WATCH: &str = include_str!("watch.lua");
/// Maximum number of warnings about failures on samples.
const TRAPS_MAX: usize = 3;
/// Substrings of the wrapper's error messages.
const WATCHED: [&str; 2] = ["modifies its input, at ", "returns nothing"];

/// Result of the check of one script.
#[derive(Default)]
struct Finding {
    error: Option<String>,
    warnings: Vec<String>,
}

impl Finding {
    fn error(message: String) -> Self {
        Self {
            error: Some(message),
            warnings: Vec::new(),
        }
    }
}

/// Result for one document, script or component.
#[derive(Default, Serialize)]
struct Checked {
    /// Name of the document, or of its file. Absent for a field that no document reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// API version and kind of the objects that a customization is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Error of the document as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Results for the rules of a customization, or one result for a script or a component.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<Rule>,
}

/// Result for one rule.
#[derive(Serialize)]
struct Rule {
    /// Name of the operation; absent outside of a customization.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    /// The customization has no script for the operation.
    Unset,
    Passed,
    Failed,
}

impl Rule {
    fn new(operation: Option<String>, Finding { error, warnings }: Finding) -> Self {
        let outcome = if error.is_some() {
            Outcome::Failed
        } else {
            Outcome::Passed
        };
        Self {
            operation,
            outcome,
            error,
            warnings,
        }
    }

    fn add_to(&self, text: &mut String) {
        let indented = |message: &str| message.replace('\n', "\n        ");
        let head = match &self.operation {
            Some(operation) => {
                let name = format!("{operation}:");
                format!("    {name:<26} ")
            }
            None => "    ".to_owned(),
        };
        let _ = match (self.outcome, &self.error) {
            (_, Some(error)) => writeln!(text, "{head}ERROR: {}", indented(error)),
            (Outcome::Unset, None) => writeln!(text, "{head}UNSET"),
            (_, None) => writeln!(text, "{head}PASS"),
        };
        for warning in &self.warnings {
            let _ = writeln!(text, "        WARNING: {}", indented(warning));
        }
    }
}

impl Checked {
    fn failed(source: String, error: String) -> Self {
        Self {
            source: Some(source),
            error: Some(error),
            ..Self::default()
        }
    }

    fn is_fine(&self) -> bool {
        self.error.is_none() && self.rules.iter().all(|rule| rule.outcome != Outcome::Failed)
    }

    fn text(&self) -> String {
        let mut text = format!("{RULE}\n");
        if let Some(source) = &self.source {
            let _ = writeln!(text, "SOURCE: {source}");
        }
        if let Some(error) = &self.error {
            let _ = writeln!(text, "ERROR: {error}");
        }
        if let Some(target) = &self.target {
            let _ = writeln!(text, "TARGET: {target}\nRULERS:");
        }
        for rule in &self.rules {
            rule.add_to(&mut text);
        }
        text
    }
}

/// Checks the files and prints a result for each rule. Returns true if there are no errors.
pub(super) fn run(loader: &Loader<'_>, files: &[PathBuf], format: Format) -> anyhow::Result<bool> {
    if let Some(gone) = files.iter().find(|file| **file != Path::new(STDIN) && !file.exists()) {
        bail!("there is no {}", gone.display());
    }
    let mut checked = Vec::new();
    for file in loader.listed(files)? {
        check_file(loader, &file, &mut checked)?;
    }
    let texts = || checked.iter().map(Checked::text).collect::<String>();
    format.print(texts, &checked)?;
    Ok(checked.iter().all(Checked::is_fine))
}

fn check_file(loader: &Loader<'_>, file: &Path, checked: &mut Vec<Checked>) -> anyhow::Result<()> {
    if !is_customizations(file) {
        checked.extend(find_in(file)?.iter().map(|found| other(loader, found)));
        return Ok(());
    }
    let Parsed { documents, unread, .. } = match parse(file) {
        Ok(parsed) => parsed,
        Err(error) => {
            checked.push(Checked::failed(file.display().to_string(), format!("{error:#}")));
            return Ok(());
        }
    };
    checked.extend(documents.into_iter().map(|document| match document {
        Ok(customization) => of_customization(&customization),
        Err(unfit) => Checked::failed(unfit.source, unfit.message),
    }));
    checked.extend(unread.map(|unread| Checked {
        error: Some(unread),
        ..Checked::default()
    }));
    Ok(())
}

/// Checks a customization, rule by rule.
fn of_customization(customization: &Customization) -> Checked {
    let (api_version, kind) = &customization.target;
    let rule = |point: EntryPoint| {
        let operation = Some(point.operation().unwrap_or_default().to_owned());
        match customization.scripts.iter().find(|script| script.point == point) {
            None => Rule {
                operation,
                outcome: Outcome::Unset,
                error: None,
                warnings: Vec::new(),
            },
            Some(script) => Rule::new(operation, of_rule(customization, script)),
        }
    };
    Checked {
        source: Some(customization.name.clone()),
        target: Some(format!("{api_version} {kind}")),
        error: None,
        rules: INTERPRETERS.into_iter().map(rule).collect(),
    }
}

/// Checks a standalone script or a component.
fn other(loader: &Loader<'_>, found: &Found) -> Checked {
    let (source, finding) = match found {
        Found::Customization(customization) => return of_customization(customization),
        Found::Script(place, code) => (place.origin.clone(), bare(place, code, loader.dialect)),
        Found::Component(file, code) => {
            let error = loader
                .load_component(file, code)
                .err()
                .map(|error| format!("{error:#}"));
            (
                file.display().to_string(),
                Finding {
                    error,
                    warnings: Vec::new(),
                },
            )
        }
    };
    Checked {
        source: Some(source),
        rules: vec![Rule::new(None, finding)],
        ..Checked::default()
    }
}

fn of_rule(customization: &Customization, script: &Script) -> Finding {
    let place = &script.place;
    let refused = || foreign_to_karmada(place, &script.code).into_iter().next();
    let unknown = || unknown_names(place, &script.code).into_iter().next();
    if let Some(message) = syntax(place, &script.code).err().or_else(refused).or_else(unknown) {
        return Finding::error(message);
    }
    let policy = match load(customization.module(script)) {
        Ok(policy) => policy,
        Err(message) => return Finding::error(from_script(place, &message)),
    };
    let others = INTERPRETERS.into_iter().filter(|point| *point != script.point);
    let surplus: Vec<_> = others
        .filter(|point| defines(&script.code, *point))
        .map(EntryPoint::function)
        .collect();
    if !surplus.is_empty() {
        let (rule, wanted) = (script.rule, script.point.function());
        let message = format!(
            "{rule} has one function, {wanted}; the script defines {} too",
            surplus.join(", ")
        );
        return Finding::error(placed(place, &script.code, script.point, &message));
    }
    let tried = watched(customization.module(script), script.point).and_then(|()| results(&*policy, &[script.point]));
    let placed = |message: String| placed(place, &script.code, script.point, &message);
    match tried {
        Ok(warnings) => Finding {
            error: None,
            warnings: warnings.into_iter().map(placed).collect(),
        },
        Err(message) => Finding::error(placed(message)),
    }
}

/// Returns an engine's message with its place in the file, or else with that of the script.
fn from_script(place: &Place, message: &str) -> String {
    if message.contains(&format!("{}:", place.origin)) {
        return place.located(message);
    }
    place.located(&format!("{}: {message}", place.origin))
}

/// Prefixes a message with its own location, or with that of the function.
fn placed(place: &Place, code: &str, point: EntryPoint, message: &str) -> String {
    let message = place.located(message);
    let head = format!("function {}", point.function());
    let function = |(index, line): (usize, &str)| Some((index + 1, line.find(&head)? + 1));
    match code.lines().enumerate().find_map(function) {
        Some((line, column)) if !place.begins(&message) => format!("{}: {message}", place.at(line, column)),
        _ => message,
    }
}

/// Checks a standalone script; the functions that it defines determine its operations.
fn bare(place: &Place, code: &str, dialect: Dialect) -> Finding {
    if let Err(message) = syntax(place, code) {
        return Finding::error(message);
    }
    let unknown = if dialect == Dialect::Argo {
        Vec::new()
    } else {
        unknown_names(place, code)
    };
    if let Some(message) = unknown.into_iter().next() {
        return Finding::error(message);
    }
    let source = script_source(place, code, dialect);
    let policy = match LuaEngine::default().load(&source) {
        Ok(loaded) => loaded.policy,
        Err(error) => return Finding::error(from_script(place, &error.message)),
    };
    let translated = source
        .modules
        .first()
        .map(|module| String::from_utf8_lossy(&module.code).into_owned());
    let translated = translated.unwrap_or_default();
    let points: Vec<_> = INTERPRETERS
        .into_iter()
        .filter(|point| defines(&translated, *point))
        .collect();
    for point in &points {
        let entries = vec![Entry {
            point: *point,
            object_kind: None,
        }];
        let module = Module {
            origin: place.origin.clone(),
            code: translated.as_str().into(),
            entries,
        };
        if let Err(message) = watched(module, *point) {
            return Finding::error(message);
        }
    }
    match results(&*policy, &points) {
        Ok(warnings) if dialect == Dialect::Argo => Finding { error: None, warnings },
        Ok(warnings) => Finding {
            error: None,
            warnings: [foreign_to_karmada(place, code), warnings].concat(),
        },
        Err(message) => Finding::error(message),
    }
}

/// Checks the syntax of a script.
fn syntax(place: &Place, code: &str) -> Result<(), String> {
    let located = |error: SyntaxError| {
        format!(
            "{}: {}",
            place.at(error.line, error.column),
            place.referring(&error.message)
        )
    };
    check_syntax(code).map_err(located)
}

/// Returns a message for each construct that Karmada's Lua VM rejects although Bulkhead's accepts it.
fn foreign_to_karmada(place: &Place, code: &str) -> Vec<String> {
    let describe = |found: Difference| {
        format!(
            "{}: Karmada does not take {}",
            place.at(found.line, found.column),
            found.message
        )
    };
    foreign(code).into_iter().map(describe).collect()
}

/// Returns a message for each value that is nil on every object.
fn unknown_names(place: &Place, code: &str) -> Vec<String> {
    let describe = |found: Difference| format!("{}: {}", place.at(found.line, found.column), found.message);
    always_nil(code).into_iter().map(describe).collect()
}

fn load(module: Module) -> Result<std::sync::Arc<dyn Policy>, String> {
    let loaded = LuaEngine::default().load(&PluginSource::new("checked", EngineKind::Lua, vec![module]));
    loaded.map(|loaded| loaded.policy).map_err(|error| error.message)
}

/// Returns true if a script defines the entry point's global function.
fn defines(code: &str, point: EntryPoint) -> bool {
    let entries = vec![Entry {
        point,
        object_kind: None,
    }];
    load(Module {
        origin: String::new(),
        code: code.into(),
        entries,
    })
    .is_ok()
}

/// Runs the sample objects. Returns the first wrong result as an error. A script that fails on a sample is not
/// wrong, so each of its messages is a warning, and nil results in one warning per function.
fn results(policy: &dyn Policy, points: &[EntryPoint]) -> Result<Vec<String>, String> {
    let wrong = |kind: FaultKind| !matches!(kind, FaultKind::Trap | FaultKind::GuestError | FaultKind::Unsupported);
    let nil = |point: &EntryPoint| format!("{} returned nil", point.function());
    let is_nil = |message: &str| points.iter().any(|point| message.contains(&nil(point)));
    if let Some(message) = first_fault(policy, |kind, message| wrong(kind) && !is_nil(message)) {
        return Err(message);
    }
    let warning = |point| first_fault(policy, |_, message| message.contains(&nil(point)));
    let mut warnings: Vec<String> = points.iter().filter_map(warning).collect();
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..TRAPS_MAX {
        let is_new = |kind, message: &str| kind == FaultKind::Trap && seen.iter().all(|known| known != message);
        let Some(fault) = first_fault(policy, is_new) else {
            break;
        };
        seen.push(fault.lines().next().unwrap_or_default().to_owned());
        warnings.push(fault);
    }
    Ok(warnings)
}

/// Checks that a function does not modify its argument and returns a value. Functions that return the whole object
/// may modify it; only their other arguments are watched. The components function may return nil.
fn watched(mut module: Module, point: EntryPoint) -> Result<(), String> {
    let argument = match point {
        EntryPoint::Revise | EntryPoint::AggregateStatus => "0",
        EntryPoint::Retain => "2",
        _ => "1",
    };
    let needed = if point == EntryPoint::Components {
        "false"
    } else {
        "true"
    };
    let watch = WATCH
        .replace("FUNCTION", point.function())
        .replace("ARGUMENT", argument)
        .replace("NEEDED", needed);
    module.code = [&*module.code, b"\n", watch.as_bytes()].concat().into();
    let policy = load(module)?;
    let found = first_fault(&*policy, |_, message| WATCHED.iter().any(|what| message.contains(what)));
    found.map_or(Ok(()), Err)
}

/// Returns the first fault that `counts` selects, with the sample that caused it.
fn first_fault(policy: &dyn Policy, counts: impl Fn(FaultKind, &str) -> bool) -> Option<String> {
    for capability in policy.capabilities() {
        for (what, call) in plain_calls(capability) {
            let reply = call.with_call(|call| policy.call(call));
            if let Err(fault) = reply
                && counts(fault.kind, &fault.message)
            {
                return Some(format!("{}\nasked about a sample, {what}", fault.message));
            }
        }
    }
    None
}
