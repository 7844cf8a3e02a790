//! Plugin argument of a command.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bulkhead_conformance::Case;
use bulkhead_core::call::{Call, CallKind, Reply};
use bulkhead_core::manifest::{Instances, PluginManifest};
use bulkhead_core::pod::Detail;
use bulkhead_core::policy::{Build, Capability, EngineKind, Fault, Policy, PolicyId, Usage};
use bulkhead_plugin::{Bounded, Engine, FoundPlugin, LoadError, LoadStage, Loaded, PluginSource, read_document};
use bulkhead_server::engines::EngineArguments;
use clap::Args;
use k8s_openapi::ByteString;
use serde_json::{Map, Value};

use crate::guest_lines::guest_lines;
use crate::interpret::Places;

/// Name of the manifest of a plugin directory.
pub(super) const MANIFEST: &str = "plugin.yaml";

/// Name of the file with the cases of a customization, beside it.
const CUSTOMIZATION_CASES: &str = "cases_test.yaml";

/// Plugin to use.
#[derive(Args)]
pub(super) struct Which {
    /// Component (.wasm), script (.lua), ResourceInterpreterCustomization (.yaml), or directory with a plugin.yaml.
    #[arg(value_name = "PLUGIN", default_value = ".")]
    path: PathBuf,

    /// Configuration in JSON or YAML, or @FILE; overrides that in plugin.yaml.
    #[arg(long, value_name = "CONFIG")]
    config: Option<String>,

    /// Reuse instances of a component between calls, if it declares support for it.
    #[arg(long)]
    reused: bool,

    #[command(flatten)]
    engines: EngineArguments,
}

/// Plugin with the engines that can run it.
pub(super) struct Target {
    pub(super) source: PluginSource,
    /// True for a Karmada customization.
    pub(super) is_customization: bool,
    /// Directory of the plugin, if it has one of its own.
    folder: Option<PathBuf>,
    engines: Vec<Arc<dyn Engine>>,
    /// Places of a customization's scripts; none for other plugins.
    places: Arc<Places>,
}

/// Policy whose faults name lines of the user's file, as those of `bulkhead interpret` do.
struct Located {
    policy: Arc<dyn Policy>,
    places: Arc<Places>,
}

impl Policy for Located {
    fn id(&self) -> &PolicyId {
        self.policy.id()
    }

    fn capabilities(&self) -> &[Capability] {
        self.policy.capabilities()
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let located = |fault: Fault| Fault {
            message: self.places.located(&fault.message),
            ..fault
        };
        self.policy.call(call).map_err(located)
    }

    fn usage_of(&self, kind: CallKind) -> Usage {
        self.policy.usage_of(kind)
    }

    fn build(&self) -> Option<&Build> {
        self.policy.build()
    }
}

impl Which {
    /// Reads the plugin.
    pub(super) fn target(&self) -> anyhow::Result<Target> {
        if is_yaml(&self.path) {
            return self.customization();
        }
        let folder = self.path.is_dir().then(|| self.path.clone());
        let mut manifest = match &folder {
            Some(folder) => read_manifest(folder)?,
            None => bare_manifest(&self.path)?,
        };
        if let Some(config) = &self.config {
            manifest.config = read_config(config)?;
        }
        if self.reused {
            manifest.instances = Instances::Reused;
        }
        let mistakes: Vec<_> = manifest.mistakes().iter().map(ToString::to_string).collect();
        if !mistakes.is_empty() {
            bail!("{}: {}", self.path.display(), mistakes.join("; "));
        }
        let beside = folder
            .as_deref()
            .or_else(|| self.path.parent())
            .unwrap_or(Path::new("."));
        let read = |file: &str| {
            let path = beside.join(file);
            (path.display().to_string(), fs::read(&path))
        };
        let hint = if folder.is_some() {
            " (`bulkhead plugin build` makes the component)"
        } else {
            ""
        };
        let found = FoundPlugin::find(manifest, read).map_err(|problem| anyhow::anyhow!("{problem}{hint}"))?;
        let engines = self.engines.start_with(Detail::default(), guest_lines())?;
        Ok(Target {
            source: found.source,
            is_customization: false,
            folder,
            engines,
            places: Arc::default(),
        })
    }

    /// Returns the directory of the plugin, if it has one of its own.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.path.is_dir().then_some(&*self.path)
    }

    /// Returns the files and directories that the plugin and its own cases are read from.
    pub(super) fn inputs(&self) -> Vec<PathBuf> {
        let mut inputs = vec![self.path.clone()];
        if is_yaml(&self.path) {
            inputs.push(self.path.with_file_name(CUSTOMIZATION_CASES));
        }
        let config = self.config.as_deref().and_then(|config| config.strip_prefix('@'));
        inputs.extend(config.map(PathBuf::from));
        inputs
    }

    /// Returns another plugin, used in the same way.
    pub(super) fn other(&self, path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            config: self.config.clone(),
            reused: self.reused,
            engines: self.engines.clone(),
        }
    }

    /// Reads the code of the plugin as it is, a component or a script.
    pub(super) fn code(&self) -> anyhow::Result<Vec<u8>> {
        if is_yaml(&self.path) {
            bail!(
                "{}: a customization is an object of the control plane, not a plugin",
                self.path.display()
            );
        }
        let (manifest, folder) = self.manifest()?;
        let (_, _, code) = self.read_code(&manifest, &folder)?;
        Ok(code)
    }

    /// Returns the manifest, and the folder that its files are in.
    fn manifest(&self) -> anyhow::Result<(PluginManifest, PathBuf)> {
        if self.path.is_dir() {
            return Ok((read_manifest(&self.path)?, self.path.clone()));
        }
        let folder = self.path.parent().unwrap_or(Path::new(".")).to_path_buf();
        Ok((bare_manifest(&self.path)?, folder))
    }

    /// Returns the engine, the file and the code.
    fn read_code(&self, manifest: &PluginManifest, folder: &Path) -> anyhow::Result<(EngineKind, PathBuf, Vec<u8>)> {
        let (engine, file) = manifest
            .code()
            .map_err(|problem| anyhow::anyhow!("{}: {problem}", self.path.display()))?;
        let file = folder.join(file);
        let code = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        Ok((engine, file, code))
    }

    /// Builds the spec of a `Plugin` object, including the code.
    pub(super) fn spec(&self) -> anyhow::Result<Map<String, Value>> {
        if is_yaml(&self.path) {
            bail!("{} is an object already", self.path.display());
        }
        let mut spec = Map::new();
        if self.path.is_dir() {
            let (path, text) = manifest_text(&self.path)?;
            spec = read_document(&path.display().to_string(), &text).map_err(anyhow::Error::msg)?;
        }
        let (manifest, folder) = self.manifest()?;
        spec.remove("name");
        if let Some(config) = &self.config {
            spec.insert("config".to_owned(), read_config(config)?);
        }
        if self.reused {
            spec.insert("instances".to_owned(), "reused".into());
        }
        let (engine, file, code) = self.read_code(&manifest, &folder)?;
        let (field, code) = match engine {
            EngineKind::Lua => (
                "lua",
                String::from_utf8(code)
                    .with_context(|| file.display().to_string())?
                    .into(),
            ),
            _ => ("wasm", serde_json::to_value(ByteString(code))?),
        };
        spec.insert(field.to_owned(), code);
        Ok(spec)
    }

    /// Reads the scripts of a customization, which has no configuration.
    fn customization(&self) -> anyhow::Result<Target> {
        if self.config.is_some() || self.reused {
            bail!(
                "{}: a customization has no configuration, and no instances to keep",
                self.path.display()
            );
        }
        let (source, places) = crate::interpret::customization_source(&self.path)?;
        let folder = self.path.parent().map(Path::to_path_buf);
        let engines = self.engines.start_with(Detail::default(), guest_lines())?;
        Ok(Target {
            source,
            is_customization: true,
            folder,
            engines,
            places: Arc::new(places),
        })
    }
}

impl Target {
    /// Loads the plugin.
    pub(super) fn load(&self) -> Result<Loaded, LoadError> {
        self.load_source(&self.source)
    }

    /// Loads the plugin and makes a smoke test, as a host does. Returns the policy with its limits too.
    pub(super) fn checked(&self) -> anyhow::Result<(Loaded, Arc<dyn Policy>)> {
        let loaded = self.load()?;
        let policy = bounded(&loaded);
        bulkhead_conformance::smoke(&*policy)
            .map_err(|message| LoadError::new(&self.source, LoadStage::SmokeTested, message))?;
        Ok((loaded, policy))
    }

    /// Loads the plugin with another configuration.
    pub(super) fn load_with(&self, config: &Value) -> Result<Arc<dyn Policy>, LoadError> {
        let source = PluginSource {
            config: config.clone(),
            ..self.source.clone()
        };
        self.load_source(&source).map(|loaded| bounded(&loaded))
    }

    fn load_source(&self, source: &PluginSource) -> Result<Loaded, LoadError> {
        let engine = self.engines.iter().find(|engine| engine.kind() == source.engine);
        let missing = || LoadError::new(source, LoadStage::Inspected, "no engine runs it");
        let located = |error: LoadError| LoadError {
            message: self.places.located(&error.message),
            ..error
        };
        let mut loaded = engine.ok_or_else(missing)?.load(source).map_err(located)?;
        if self.is_customization {
            for remark in &mut loaded.description.remarks {
                *remark = self.places.located(remark);
            }
            loaded.policy = Arc::new(Located {
                policy: loaded.policy,
                places: Arc::clone(&self.places),
            });
        }
        Ok(loaded)
    }

    /// Returns the path of the plugin's cases: the given one, or the plugin's own directory `cases`, or the file
    /// `cases_test.yaml` beside a customization.
    pub(super) fn cases(&self, named: Option<&Path>) -> Option<PathBuf> {
        let name = if self.is_customization {
            CUSTOMIZATION_CASES
        } else {
            "cases"
        };
        let own = || {
            self.folder
                .as_ref()
                .map(|folder| folder.join(name))
                .filter(|cases| cases.exists())
        };
        named.map(Path::to_path_buf).or_else(own)
    }
}

/// Loads the plugin at a path. Returns its name and policy.
pub(crate) fn load(
    path: &Path,
    config: Option<&str>,
    engines: &EngineArguments,
) -> anyhow::Result<(String, Arc<dyn Policy>)> {
    let (path, config) = (path.to_path_buf(), config.map(str::to_owned));
    let target = Which {
        path,
        config,
        reused: false,
        engines: engines.clone(),
    }
    .target()?;
    let loaded = target.load()?;
    Ok((target.source.name.clone(), bounded(&loaded)))
}

/// Reads a file or a directory of cases.
pub(super) fn read_cases(path: &Path) -> anyhow::Result<Vec<Case>> {
    bulkhead_conformance::read_cases(path).map_err(|errors| anyhow::anyhow!("{errors}"))
}

/// Wraps the plugin with the limits that a host applies.
pub(super) fn bounded(loaded: &Loaded) -> Arc<dyn Policy> {
    let keys = loaded.description.taint_keys.clone();
    Arc::new(Bounded::with_taint_keys(Arc::clone(&loaded.policy), keys))
}

fn is_yaml(path: &Path) -> bool {
    path.is_file() && matches!(path.extension().and_then(OsStr::to_str), Some("yaml" | "yml" | "json"))
}

fn manifest_text(folder: &Path) -> anyhow::Result<(PathBuf, String)> {
    let path = folder.join(MANIFEST);
    let text = fs::read_to_string(&path).with_context(|| {
        format!(
            "reading {}; a plugin directory has one (`bulkhead plugin new` writes it)",
            path.display()
        )
    })?;
    Ok((path, text))
}

/// Reads the manifest of a plugin directory.
pub(super) fn read_manifest(folder: &Path) -> anyhow::Result<PluginManifest> {
    let (path, text) = manifest_text(folder)?;
    read_document(&path.display().to_string(), &text).map_err(anyhow::Error::msg)
}

fn bare_manifest(path: &Path) -> anyhow::Result<PluginManifest> {
    let engine = match path.extension().and_then(OsStr::to_str) {
        Some("wasm") => EngineKind::Wasm,
        Some("lua") => EngineKind::Lua,
        _ if !path.exists() => bail!("{}: no such file or directory", path.display()),
        _ => bail!(
            "{} is neither a component (.wasm), a script (.lua), a customization (.yaml) nor a directory",
            path.display()
        ),
    };
    let part = |part: Option<&OsStr>| part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(PluginManifest::of_file(
        &part(path.file_stem()),
        engine,
        &part(path.file_name()),
    ))
}

fn read_config(config: &str) -> anyhow::Result<Value> {
    let (origin, text) = match config.strip_prefix('@') {
        Some(file) => (
            file,
            fs::read_to_string(file).with_context(|| format!("reading {file}"))?,
        ),
        None => ("--config", config.to_owned()),
    };
    read_document(origin, &text).map_err(anyhow::Error::msg)
}
