//! Plugins in JavaScript and TypeScript, by componentize-js.

use std::process::Command;

use super::Source;
use super::toolchain::{Toolchain, Toolchains, run};
use crate::plugin::language::Language;

const TOOLCHAIN: Toolchain = Toolchain {
    name: "componentize-js-0.23.0",
    files: &[
        ("package.json", include_str!("javascript/package.json")),
        ("package-lock.json", include_str!("javascript/package-lock.json")),
        ("build.mjs", include_str!("javascript/build.mjs")),
    ],
    install: &[&[
        "npm",
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]],
};

/// Checks the source without the tests, which need packages of their own.
const TYPES: &str = r#"{
  "extends": "../tsconfig.json",
  "compilerOptions": { "noEmit": true, "types": [] },
  "include": ["../src"]
}
"#;

pub(super) fn build(source: &Source<'_>, toolchains: &Toolchains) -> anyhow::Result<()> {
    let toolchain = toolchains.get(&TOOLCHAIN)?;
    let module = if source.settings.language == Language::TypeScript {
        let project = source.write("tsconfig.json", TYPES)?;
        let mut command = Command::new(toolchain.join("node_modules/.bin/tsc"));
        command.current_dir(source.folder).arg("--project").arg(project);
        run(command)?;
        "plugin.ts"
    } else {
        "plugin.js"
    };
    let wit = source.write_contract()?;
    let entry = source.write("plugin.js", &entry(module, &source.settings.interfaces()))?;
    let mut command = Command::new("node");
    command
        .current_dir(source.folder)
        .arg(toolchain.join("build.mjs"))
        .args([entry, wit])
        .arg(Source::WORLD)
        .arg(&source.component);
    run(command)
}

/// Returns the module that the component starts with.
fn entry(module: &str, interfaces: &[&str]) -> String {
    let exports = interfaces.join(", ");
    format!(
        "import definition from '../src/{module}';\nimport {{ exported }} from '../vendor/bulkhead/component.js';\n\n\
         export const {{ plugin, {exports} }} = exported(definition);\n"
    )
}
