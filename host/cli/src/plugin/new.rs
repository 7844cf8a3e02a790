//! `bulkhead plugin new`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};

/// Create a directory with a plugin that builds, loads and passes its tests.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin new hold --kind eviction-check --lang lua
  bulkhead plugin new game-health --kind health")]
pub(crate) struct Arguments {
    /// Directory to create; its name becomes the plugin's name.
    #[arg(value_name = "DIRECTORY")]
    folder: PathBuf,

    /// Call that the plugin implements.
    #[arg(long, value_enum)]
    kind: Kind,

    /// Programming language.
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    lang: Language,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Interpret the health of an object.
    Health,
    /// Add and remove taints of member clusters.
    ClusterTaint,
    /// Select the clusters that a binding can run on.
    Filter,
    /// Score the feasible clusters.
    Score,
    /// Hold or release graceful evictions.
    EvictionCheck,
    /// Implement Karmada's other interpreter operations.
    ResourceInterpreter,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// WebAssembly component in Rust, with a copy of the SDK.
    Rust,
    /// Lua script.
    Lua,
}

/// Files generated for a kind of plugin.
struct Template {
    rust: &'static str,
    lua: &'static str,
    cases: &'static str,
    /// Additional lines of plugin.yaml for a script.
    lua_manifest: &'static str,
    summary: &'static str,
}

macro_rules! template {
    ($name:literal, $summary:literal, $lua_manifest:literal) => {
        Template {
            rust: include_str!(concat!("templates/", $name, ".rs.txt")),
            lua: include_str!(concat!("templates/", $name, ".lua")),
            cases: include_str!(concat!("templates/", $name, ".yaml")),
            lua_manifest: $lua_manifest,
            summary: $summary,
        }
    };
}

impl Kind {
    fn template(self) -> Template {
        match self {
            Self::Health => {
                template!(
                    "health",
                    "reports the health of a Deployment",
                    "kinds: [{apiVersion: apps/v1, kind: Deployment}]\n"
                )
            }
            Self::ClusterTaint => {
                template!(
                    "cluster-taint",
                    "taints a cluster that is not ready",
                    "taintKeys: [example.io/not-ready]\n"
                )
            }
            Self::Filter => template!("filter", "lets workloads run only on clusters with a label", ""),
            Self::Score => template!("score", "prefers clusters of one region", ""),
            Self::EvictionCheck => template!("eviction-check", "holds old copies until replicas are available", ""),
            Self::ResourceInterpreter => template!(
                "resource-interpreter",
                "reports the replicas of a custom resource",
                "kinds: [{apiVersion: example.io/v1, kind: Game}]\n"
            ),
        }
    }
}

/// Copies of the SDK and the WIT contract, so that a new plugin builds without a checkout of this repository.
const VENDORED: [(&str, &str); 17] = [
    (
        "plugins/sdk/src/bindings.rs",
        include_str!("../../../../plugins/sdk/src/bindings.rs"),
    ),
    (
        "plugins/sdk/src/export.rs",
        include_str!("../../../../plugins/sdk/src/export.rs"),
    ),
    (
        "plugins/sdk/src/kinds.rs",
        include_str!("../../../../plugins/sdk/src/kinds.rs"),
    ),
    (
        "plugins/sdk/src/lib.rs",
        include_str!("../../../../plugins/sdk/src/lib.rs"),
    ),
    (
        "plugins/sdk/src/verdict.rs",
        include_str!("../../../../plugins/sdk/src/verdict.rs"),
    ),
    ("plugins/sdk/Cargo.toml", include_str!("templates/sdk.toml")),
    (
        "plugins/sdk/wit/binding.wit",
        include_str!("../../../../wit/binding.wit"),
    ),
    (
        "plugins/sdk/wit/cluster.wit",
        include_str!("../../../../wit/cluster.wit"),
    ),
    (
        "plugins/sdk/wit/context.wit",
        include_str!("../../../../wit/context.wit"),
    ),
    (
        "plugins/sdk/wit/eviction.wit",
        include_str!("../../../../wit/eviction.wit"),
    ),
    ("plugins/sdk/wit/health.wit", include_str!("../../../../wit/health.wit")),
    (
        "plugins/sdk/wit/interpreter.wit",
        include_str!("../../../../wit/interpreter.wit"),
    ),
    ("plugins/sdk/wit/object.wit", include_str!("../../../../wit/object.wit")),
    (
        "plugins/sdk/wit/scheduling.wit",
        include_str!("../../../../wit/scheduling.wit"),
    ),
    ("plugins/sdk/wit/taints.wit", include_str!("../../../../wit/taints.wit")),
    ("plugins/sdk/wit/types.wit", include_str!("../../../../wit/types.wit")),
    ("plugins/sdk/wit/worlds.wit", include_str!("../../../../wit/worlds.wit")),
];

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = &arguments.folder;
    let name = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    if !is_name(&name) {
        bail!("{name:?} is not a plugin name; use lower-case letters, digits and dashes, beginning with a letter");
    }
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} already exists and is not empty", folder.display());
    }
    let template = arguments.kind.template();
    let write = |file: &str, text: &str| write(&folder.join(file), &text.replace("{{name}}", &name));
    write("cases/cases.yaml", template.cases)?;
    let build = match arguments.lang {
        Language::Lua => {
            write(&format!("{name}.lua"), template.lua)?;
            write(
                "plugin.yaml",
                &format!("name: {name}\nlua: {name}.lua\n{}", template.lua_manifest),
            )?;
            ""
        }
        Language::Rust => {
            write("src/lib.rs", template.rust)?;
            write("Cargo.toml", include_str!("templates/plugin.toml"))?;
            write(".cargo/config.toml", include_str!("templates/cargo-config.toml"))?;
            write(".gitignore", "/target\n/*.wasm\n")?;
            write("plugin.yaml", &format!("name: {name}\nwasm: {name}.wasm\n"))?;
            for (file, text) in VENDORED {
                write(&format!("vendor/{file}"), text)?;
            }
            "bulkhead plugin build\n"
        }
    };
    let readme = include_str!("templates/README.md");
    write(
        "README.md",
        &readme
            .replace("{{summary}}", template.summary)
            .replace("{{build}}", build),
    )?;
    let mut out = anstream::stdout().lock();
    writeln!(
        out,
        "created {}; next, in that directory:\n\n{build}bulkhead plugin test",
        folder.display()
    )?;
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

fn is_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(inner) && !name.ends_with('-')
}
