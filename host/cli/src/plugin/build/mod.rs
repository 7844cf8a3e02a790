//! `bulkhead plugin build`: components from source in every language.

mod c;
mod go;
mod javascript;
mod module;
mod python;
mod rust;
mod settings;
mod toolchain;

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bulkhead_core::policy::EngineKind;
use clap::{Args, FromArgMatches as _};

use self::settings::Settings;
use self::toolchain::Toolchains;
use super::language::Language;
use super::target::{MANIFEST, read_manifest};

/// Folder of intermediate files in the directory of a plugin.
const WORK: &str = ".build";

/// Build the component of a plugin from its source.
///
/// The language is that of build.yaml; a directory with a Cargo.toml and without build.yaml is in Rust. The component
/// has the name that plugin.yaml gives it. Toolchains are installed from the package registries at fixed versions, each
/// once: componentize-py for Python, componentize-js, esbuild and tsc for JavaScript and TypeScript, the C compiler
/// of Zig for C. Rust needs cargo with the target wasm32-unknown-unknown, Go needs go 1.24 or newer.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin build
  bulkhead plugin build game-health")]
pub(crate) struct Arguments {
    /// Directory of the plugin.
    #[arg(value_name = "DIRECTORY", default_value = ".")]
    folder: PathBuf,

    /// Directory of installed toolchains. The default is bulkhead/toolchains in $XDG_CACHE_HOME or in ~/.cache.
    #[arg(long, value_name = "DIR", env = "BULKHEAD_TOOLCHAINS", hide_env_values = true)]
    toolchains: Option<PathBuf>,

    /// Install nothing: fail if a toolchain is missing, with the commands that install it.
    #[arg(long)]
    no_install: bool,
}

impl Arguments {
    /// Returns the arguments of a build of a directory, with the defaults of the command and of the environment.
    pub(super) fn defaults(folder: &Path) -> anyhow::Result<Self> {
        let command = Self::augment_args(clap::Command::new("build").no_binary_name(true));
        let matches = command.try_get_matches_from([OsStr::new("--"), folder.as_os_str()])?;
        Ok(Self::from_arg_matches(&matches)?)
    }
}

/// Returns true if a directory has the source of a component.
pub(super) fn has_source(folder: &Path) -> bool {
    folder.join(settings::FILE).is_file() || folder.join("Cargo.toml").is_file()
}

/// Source of a plugin, and the component to write.
struct Source<'a> {
    folder: &'a Path,
    settings: Settings,
    /// Path of the component, relative to the folder.
    component: PathBuf,
}

impl Source<'_> {
    /// Name of the world of the component.
    const WORLD: &'static str = "component";

    /// Writes an intermediate file. Returns its path, relative to the folder of the plugin.
    fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = Path::new(WORK).join(name);
        let file = self.folder.join(&path);
        let parent = file.parent().unwrap_or(self.folder);
        fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        Ok(path)
    }

    /// Writes the contract with the world of this component. Returns its folder, relative to that of the plugin.
    fn write_contract(&self) -> anyhow::Result<PathBuf> {
        let contract = self.folder.join(self.settings.language.wit_folder());
        let files = fs::read_dir(&contract)
            .with_context(|| format!("reading {}, the copy of the plugin contract", contract.display()))?;
        let wit = Path::new(WORK).join("wit");
        match fs::remove_dir_all(self.folder.join(&wit)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("clearing {}", wit.display()));
            }
            _ => (),
        }
        for file in files {
            let path = file.with_context(|| format!("reading {}", contract.display()))?.path();
            if path.extension().is_some_and(|extension| extension == "wit") {
                let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                self.write(&format!("wit/{name}"), &text)?;
            }
        }
        self.write("wit/component.wit", &self.settings.world(Self::WORLD))?;
        Ok(wit)
    }

    /// Writes the component of a module that the SDK connects by itself. Paths are relative to the folder of the plugin.
    fn write_component(&self, module: &Path, wit: &Path) -> anyhow::Result<()> {
        let path = self.folder.join(module);
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let encoded = module::component(bytes, &self.folder.join(wit), Self::WORLD)?;
        let path = self.folder.join(&self.component);
        fs::write(&path, encoded).with_context(|| format!("writing {}", path.display()))
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = &arguments.folder;
    let Some(settings) = Settings::read(folder)? else {
        return rust::run(folder);
    };
    let manifest = read_manifest(folder)?;
    let component = match manifest.code() {
        Ok((EngineKind::Wasm, file)) => PathBuf::from(file),
        _ => bail!(
            "{} has no wasm; give the component that the build writes a name, for example wasm: {}.wasm",
            folder.join(MANIFEST).display(),
            manifest.name
        ),
    };
    let source = Source {
        folder,
        settings,
        component,
    };
    let toolchains = Toolchains::new(arguments.toolchains.as_deref(), !arguments.no_install)?;
    match source.settings.language {
        Language::Rust => return rust::run(folder),
        Language::Lua => bail!("{}: a script needs no build", folder.display()),
        Language::Python => python::build(&source, &toolchains)?,
        Language::JavaScript | Language::TypeScript => javascript::build(&source, &toolchains)?,
        Language::C => c::build(&source, &toolchains)?,
        Language::Go => go::build(&source)?,
    }
    report(&folder.join(&source.component))
}

/// Prints the path and the size of a component.
fn report(component: &Path) -> anyhow::Result<()> {
    let size = fs::metadata(component)
        .with_context(|| format!("reading {}", component.display()))?
        .len();
    writeln!(anstream::stdout(), "{}: {size} bytes", component.display())?;
    Ok(())
}
