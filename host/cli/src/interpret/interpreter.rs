//! Loads the interpreters that the arguments name.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bulkhead_core::manifest::Dialect;
use bulkhead_core::policy::{EngineKind, Policy};
use bulkhead_engine_lua::{EmptyItems, LuaEngine, Options};
use bulkhead_engine_wasm::WasmEngine;
use bulkhead_plugin::{Bounded, Engine, Module, PluginSource};
use bulkhead_server::engines::EngineArguments;

use super::customization::{self, Customization, Parsed};
use super::input::{STDIN, read};
use super::place::Place;
use crate::guest_lines::guest_lines;

/// Content of an interpreter file.
pub(super) enum Found {
    /// ResourceInterpreterCustomization.
    Customization(Customization),
    /// Lua script: its place and its unmodified source.
    Script(Place, String),
    /// Wasm component: its path and its bytes.
    Component(PathBuf, Vec<u8>),
}

/// Loaded interpreter with the places of its scripts.
pub(super) struct Interpreter {
    pub(super) policy: Arc<dyn Policy>,
    places: Vec<Place>,
    /// Operations of the scripts that read the clock; `None` for a script with any operation.
    with_clock: Vec<Option<&'static str>>,
}

impl Interpreter {
    /// Creates an interpreter whose messages contain no lines of a user's file.
    pub(super) fn built_in(policy: Arc<dyn Policy>) -> Self {
        Self {
            policy: Arc::new(Bounded::new(policy)),
            places: Vec::new(),
            with_clock: Vec::new(),
        }
    }

    /// Returns true if a script for an operation reads the clock.
    pub(super) fn reads_clock(&self, operation: &str) -> bool {
        self.with_clock.iter().any(|of| of.is_none_or(|of| of == operation))
    }

    /// Replaces the scripts' line numbers in an engine message with those of the file.
    pub(super) fn located(&self, message: &str) -> String {
        self.places
            .iter()
            .fold(message.to_owned(), |message, place| place.located(&message))
    }
}

/// Reads and loads interpreters.
pub(super) struct Loader<'a> {
    /// Conventions that scripts follow.
    pub(super) dialect: Dialect,
    /// True if directories are searched recursively.
    pub(super) recursive: bool,
    engines: &'a EngineArguments,
    wasm: OnceCell<WasmEngine>,
}

impl<'a> Loader<'a> {
    /// Creates a loader. The engine for components starts with the first component.
    pub(super) fn new(dialect: Dialect, recursive: bool, engines: &'a EngineArguments) -> Self {
        Self {
            dialect,
            recursive,
            engines,
            wasm: OnceCell::new(),
        }
    }

    /// Reads all interpreters in these files and directories, in order of name within a directory.
    pub(super) fn find(&self, files: &[PathBuf]) -> anyhow::Result<Vec<Found>> {
        let mut found = Vec::new();
        for file in self.listed(files)? {
            found.extend(find_in(&file)?);
        }
        Ok(found)
    }

    /// Returns the files themselves, and the candidate interpreter files in the directories among them.
    pub(super) fn listed(&self, files: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        let mut listed = Vec::new();
        for file in files {
            if !file.is_dir() {
                listed.push(file.clone());
                continue;
            }
            let before = listed.len();
            self.walk(file, &mut listed)?;
            if listed.len() == before {
                bail!("there is no customization, script or component in {}", file.display());
            }
        }
        Ok(listed)
    }

    fn walk(&self, folder: &Path, listed: &mut Vec<PathBuf>) -> anyhow::Result<()> {
        for file in files_of(folder)? {
            if file.is_dir() && self.recursive {
                // A symbolic link to a parent would repeat its files at each level.
                if !is_parent(&file, folder) {
                    self.walk(&file, listed)?;
                }
            } else if kind_of(&file).is_some() && !is_test(&file) {
                listed.push(file);
            }
        }
        Ok(())
    }

    /// Loads the interpreters of these files in call order: customizations by name, as in Karmada, then the others
    /// in the order of the listing. Without files, returns the interpreters shipped with the program.
    pub(super) fn load(&self, files: &[PathBuf]) -> anyhow::Result<Vec<Interpreter>> {
        self.load_with(files, EmptyItems::default())
    }

    /// Loads interpreters like [`Self::load`], whose scripts get an empty list of status items in this form.
    pub(super) fn load_with(&self, files: &[PathBuf], no_items: EmptyItems) -> anyhow::Result<Vec<Interpreter>> {
        if files.is_empty() {
            return Ok(built_in());
        }
        let mut found = self.find(files)?;
        let key = |found: &Found| match found {
            Found::Customization(customization) => (0, customization.name.clone()),
            Found::Script(..) | Found::Component(..) => (1, String::new()),
        };
        found.sort_by_key(key);
        found
            .iter()
            .filter_map(|found| self.load_one(found, no_items).transpose())
            .collect()
    }

    /// Loads one interpreter; `None` for a customization without rules.
    fn load_one(&self, found: &Found, no_items: EmptyItems) -> anyhow::Result<Option<Interpreter>> {
        let (source, places): (_, Vec<Place>) = match found {
            Found::Customization(customization) if customization.scripts.is_empty() => return Ok(None),
            Found::Customization(customization) => {
                let places = customization
                    .scripts
                    .iter()
                    .map(|script| script.place.clone())
                    .collect();
                (customization.source(), places)
            }
            Found::Script(place, code) => (script_source(place, code, self.dialect), Vec::new()),
            Found::Component(file, code) => return self.load_component(file, code).map(Some),
        };
        let located = |message: String| {
            places
                .iter()
                .fold(message, |message: String, place: &Place| place.located(&message))
        };
        let options = Options {
            no_items,
            ..Options::default()
        };
        let engine = LuaEngine::new(options).with_lines(guest_lines());
        let loaded = engine.load(&source).map_err(|error| {
            let has_place = error.message.starts_with(&error.origin);
            let message = if has_place {
                error.message
            } else {
                format!("{}: {}", error.origin, error.message)
            };
            anyhow::anyhow!("{}", located(message))
        })?;
        let reads_clock = |code: &str| code.contains("os.time") || code.contains("os.date");
        let with_clock = match found {
            Found::Customization(customization) => {
                let scripts = customization.scripts.iter().filter(|script| reads_clock(&script.code));
                scripts.map(|script| script.point.operation()).collect()
            }
            Found::Script(_, code) if reads_clock(code) => vec![None],
            Found::Script(..) | Found::Component(..) => Vec::new(),
        };
        Ok(Some(Interpreter {
            policy: Arc::new(Bounded::new(loaded.policy)),
            places,
            with_clock,
        }))
    }

    /// Loads a component.
    pub(super) fn load_component(&self, file: &Path, code: &[u8]) -> anyhow::Result<Interpreter> {
        let origin = file.display().to_string();
        let module = Module {
            origin: origin.clone(),
            code: code.into(),
            entries: Vec::new(),
        };
        let engine = match self.wasm.get() {
            Some(engine) => engine,
            None => self.wasm.get_or_init({
                let engine = self.engines.start_wasm(guest_lines())?;
                || engine
            }),
        };
        let loaded = engine.load(&PluginSource::new(origin, EngineKind::Wasm, vec![module]))?;
        Ok(Interpreter::built_in(loaded.policy))
    }
}

/// Returns true if a directory is `folder` or one above it, after symbolic links.
fn is_parent(directory: &Path, folder: &Path) -> bool {
    match (directory.canonicalize(), folder.canonicalize()) {
        (Ok(directory), Ok(folder)) => folder.starts_with(directory),
        _ => false,
    }
}

/// Returns the entries of a directory, in order of name.
pub(super) fn files_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let reading = || format!("reading {}", folder.display());
    let entries = std::fs::read_dir(folder).with_context(reading)?;
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.with_context(reading)?;
    paths.sort();
    Ok(paths)
}

/// Returns true if the file name is that of a file with test cases.
pub(super) fn is_test(file: &Path) -> bool {
    file.file_stem()
        .and_then(OsStr::to_str)
        .is_some_and(|stem| stem.ends_with("_test"))
}

#[derive(Clone, Copy)]
enum FileKind {
    Customizations,
    Script,
    Component,
}

fn kind_of(file: &Path) -> Option<FileKind> {
    if file == Path::new(STDIN) {
        return Some(FileKind::Customizations);
    }
    match file.extension().and_then(OsStr::to_str) {
        Some("yaml" | "yml" | "json") => Some(FileKind::Customizations),
        Some("lua") => Some(FileKind::Script),
        Some("wasm") => Some(FileKind::Component),
        _ => None,
    }
}

/// Parses a file of customizations. An empty file is an error. Prints a warning for YAML that only other programs
/// accept.
pub(super) fn parse(file: &Path) -> anyhow::Result<Parsed> {
    let parsed = customization::parse(file, &read(file)?).map_err(anyhow::Error::msg)?;
    for warning in &parsed.warnings {
        writeln!(anstream::stderr(), "warning: {}: {warning}", file.display())?;
    }
    if parsed.documents.is_empty() {
        bail!("{} is empty", file.display());
    }
    Ok(parsed)
}

/// Returns true if the file name is that of a file with customizations.
pub(super) fn is_customizations(file: &Path) -> bool {
    matches!(kind_of(file), Some(FileKind::Customizations))
}

pub(super) fn find_in(file: &Path) -> anyhow::Result<Vec<Found>> {
    match kind_of(file) {
        Some(FileKind::Customizations) => {
            let Parsed { documents, unread, .. } = parse(file)?;
            let found = documents.into_iter().map(|document| {
                let customization = document.map_err(|unfit| anyhow::anyhow!("{}", unfit.message))?;
                Ok(Found::Customization(customization))
            });
            let found = found.collect::<anyhow::Result<_>>()?;
            unread.map_or(Ok(found), |unread| bail!("{unread}"))
        }
        Some(FileKind::Script) => Ok(vec![Found::Script(
            Place::of_file(&file.display().to_string()),
            read(file)?,
        )]),
        Some(FileKind::Component) => {
            let code = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
            Ok(vec![Found::Component(file.to_path_buf(), code)])
        }
        None => bail!(
            "{} is neither a customization (.yaml), a script (.lua) nor a component (.wasm)",
            file.display()
        ),
    }
}

/// Returns the customizations shipped with the program, followed by the native rules.
fn built_in() -> Vec<Interpreter> {
    let lua: Arc<dyn Engine> = Arc::new(LuaEngine::default());
    let native: [Arc<dyn Policy>; 2] = [
        Arc::new(bulkhead_plugins_builtin::NativeHealth::default()),
        Arc::new(bulkhead_plugins_builtin::NativeInterpreter::default()),
    ];
    bulkhead_plugins_lua::policies(&lua)
        .into_iter()
        .chain(native)
        .map(Interpreter::built_in)
        .collect()
}

/// Builds the source of a script that implements every function it defines.
pub(super) fn script_source(place: &Place, code: &str, dialect: Dialect) -> PluginSource {
    let code = dialect.translate(code.as_bytes().to_vec()).into();
    let module = Module {
        origin: place.origin.clone(),
        code,
        entries: Vec::new(),
    };
    PluginSource {
        dialect,
        ..PluginSource::new(place.origin.clone(), EngineKind::Lua, vec![module])
    }
}
