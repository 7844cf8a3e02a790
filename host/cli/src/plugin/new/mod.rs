//! `bulkhead plugin new`.

mod sdk;
mod templates;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;

use super::kind::Kind;
use super::language::Language;

/// Create a directory with a plugin that builds, loads and passes its tests.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin new hold --kind eviction-check --lang lua
  bulkhead plugin new game-health --kind health
  bulkhead plugin new cheapest --kind score --lang python")]
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

/// A new plugin in memory.
struct Files {
    /// Text of each file by path.
    files: Vec<(String, String)>,
    /// Command that builds the plugin; empty for a script.
    build: &'static str,
    /// Command that runs the tests of the language; empty if the template has none.
    own_tests: &'static str,
}

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
    let made = files(arguments.lang, arguments.kind);
    for (file, text) in &made.files {
        write(
            &folder.join(file.replace("{{name}}", &name)),
            &text.replace("{{name}}", &name),
        )?;
    }
    let (build, own_tests) = (made.build, made.own_tests);
    let mut out = anstream::stdout().lock();
    writeln!(
        out,
        "created {}; next, in that directory:\n\n{own_tests}{build}bulkhead plugin test",
        folder.display()
    )?;
    Ok(())
}

/// Adds the files of a folder.
fn folder(add: &mut impl FnMut(&str, &str), path: &str, texts: &[(&str, &str)]) {
    for (file, text) in texts {
        add(&format!("{path}/{file}"), text);
    }
}

/// Returns the files of a new plugin. `{{name}}` stands for its name, in paths too.
fn files(language: Language, kind: Kind) -> Files {
    let template = templates::of(kind);
    let mut files = Vec::new();
    let mut add = |path: &str, text: &str| files.push((path.to_owned(), text.to_owned()));
    add("cases/cases.yaml", template.cases);
    let mut build = "bulkhead plugin build\n";
    let mut own_tests = "";
    match language {
        Language::Lua => {
            build = "";
            add("{{name}}.lua", template.lua);
            let manifest = format!("name: {{{{name}}}}\nlua: {{{{name}}}}.lua\n{}", template.lua_manifest);
            add("plugin.yaml", &manifest);
        }
        Language::Rust => {
            add("src/lib.rs", template.rust);
            add("Cargo.toml", include_str!("../templates/plugin.toml"));
            add(".cargo/config.toml", include_str!("../templates/cargo-config.toml"));
            add(".gitignore", "/target\n/*.wasm\n");
            folder(&mut add, "vendor/plugins/sdk", &sdk::RUST);
        }
        Language::Python => {
            own_tests = "python3 -m unittest\n";
            let [plugin, tests] = template.python;
            add("plugin.py", plugin);
            add("tests/__init__.py", include_str!("../templates/python/tests_init.py"));
            add("tests/test_plugin.py", tests);
            add("pyproject.toml", include_str!("../templates/python/pyproject.toml"));
            add(".gitignore", "/.build\n/*.wasm\n__pycache__\n");
            folder(&mut add, "vendor/bulkhead", sdk::PYTHON);
        }
        Language::JavaScript => {
            own_tests = "npm test\n";
            let [plugin, tests] = template.javascript;
            add("src/plugin.js", plugin);
            add("tests/plugin.test.js", tests);
            add("package.json", include_str!("../templates/javascript/package.json"));
            add(".gitignore", "/.build\n/*.wasm\nnode_modules\n");
            folder(&mut add, "vendor/bulkhead", sdk::JAVASCRIPT);
        }
        Language::TypeScript => {
            own_tests = "npm install\nnpm test\n";
            let [plugin, tests] = template.typescript;
            add("src/plugin.ts", plugin);
            add("tests/plugin.test.ts", tests);
            add("package.json", include_str!("../templates/typescript/package.json"));
            add("tsconfig.json", include_str!("../templates/typescript/tsconfig.json"));
            add(".gitignore", "/.build\n/*.wasm\nnode_modules\n");
            folder(&mut add, "vendor/bulkhead", sdk::JAVASCRIPT);
        }
        Language::C => {
            own_tests = "make test\n";
            let [plugin, tests] = template.c;
            add("plugin.c", plugin);
            add("tests/test_plugin.c", tests);
            add("Makefile", include_str!("../templates/c/Makefile"));
            add("compile_flags.txt", include_str!("../templates/c/compile_flags.txt"));
            add(".gitignore", "/.build\n/*.wasm\n");
            folder(&mut add, "vendor/bulkhead", sdk::C);
        }
        Language::Go => {
            own_tests = "go test ./...\n";
            let [plugin, tests] = template.go;
            add("plugin.go", plugin);
            add("plugin_test.go", tests);
            add("go.mod", include_str!("../templates/go/go.mod.txt"));
            add(".gitignore", "/.build\n/*.wasm\n");
            folder(&mut add, "bulkhead", sdk::GO);
        }
    }
    if language != Language::Lua {
        add("plugin.yaml", &templates::manifest(language, kind));
        folder(&mut add, language.wit_folder(), sdk::WIT);
    }
    if let Some(settings) = templates::settings(language, kind) {
        add("build.yaml", &settings);
    }
    let commands = format!("{own_tests}{build}");
    let readme = include_str!("../templates/README.md");
    let readme = readme
        .replace("{{summary}}", template.summary)
        .replace("{{build}}", &commands);
    add("README.md", &(readme + templates::readme(language)));
    Files {
        files,
        build,
        own_tests,
    }
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
