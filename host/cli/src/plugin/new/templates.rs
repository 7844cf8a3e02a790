//! Templates of plugins by kind and language.

use crate::plugin::kind::Kind;
use crate::plugin::language::Language;

/// Files generated for a kind of plugin.
pub(super) struct Template {
    pub(super) rust: &'static str,
    pub(super) lua: &'static str,
    pub(super) python: [&'static str; 2],
    pub(super) javascript: [&'static str; 2],
    pub(super) typescript: [&'static str; 2],
    pub(super) c: [&'static str; 2],
    pub(super) go: [&'static str; 2],
    pub(super) cases: &'static str,
    /// Additional lines of plugin.yaml for a script.
    pub(super) lua_manifest: &'static str,
    pub(super) summary: &'static str,
}

macro_rules! template {
    ($name:literal, $summary:literal, $lua_manifest:literal) => {
        Template {
            rust: include_str!(concat!("../templates/", $name, ".rs.txt")),
            lua: include_str!(concat!("../templates/", $name, ".lua")),
            python: [
                include_str!(concat!("../templates/python/", $name, ".py")),
                include_str!(concat!("../templates/python/", $name, "_test.py")),
            ],
            javascript: [
                include_str!(concat!("../templates/javascript/", $name, ".js")),
                include_str!(concat!("../templates/javascript/", $name, ".test.js")),
            ],
            typescript: [
                include_str!(concat!("../templates/typescript/", $name, ".ts")),
                include_str!(concat!("../templates/typescript/", $name, ".test.ts")),
            ],
            c: [
                include_str!(concat!("../templates/c/", $name, ".c")),
                include_str!(concat!("../templates/c/", $name, "_test.c")),
            ],
            go: [
                include_str!(concat!("../templates/go/", $name, ".go.txt")),
                include_str!(concat!("../templates/go/", $name, "_test.go.txt")),
            ],
            cases: include_str!(concat!("../templates/", $name, ".yaml")),
            lua_manifest: $lua_manifest,
            summary: $summary,
        }
    };
}

/// Returns the template of a kind.
pub(super) fn of(kind: Kind) -> Template {
    match kind {
        Kind::Health => {
            template!(
                "health",
                "reports the health of a Deployment",
                "kinds: [{apiVersion: apps/v1, kind: Deployment}]\n"
            )
        }
        Kind::ClusterTaint => {
            template!(
                "cluster-taint",
                "taints a cluster that is not ready",
                "taintKeys: [example.io/not-ready]\n"
            )
        }
        Kind::Filter => template!("filter", "lets workloads run only on clusters with a label", ""),
        Kind::Score => template!("score", "prefers clusters of one region", ""),
        Kind::EvictionCheck => template!("eviction-check", "holds old copies until replicas are available", ""),
        Kind::ResourceInterpreter => template!(
            "resource-interpreter",
            "reports the replicas of a custom resource",
            "kinds: [{apiVersion: example.io/v1, kind: Game}]\n"
        ),
    }
}

/// Returns the plugin.yaml of a component.
pub(super) fn manifest(language: Language, kind: Kind) -> String {
    let columns = matches!(kind, Kind::Filter | Kind::Score | Kind::EvictionCheck);
    let budget = match language {
        Language::Python if columns => {
            "# Python takes thousands of steps for each cluster; the default is 10000000.\n\
             budget: {steps: 100000000}\n"
        }
        Language::JavaScript | Language::TypeScript if columns => {
            "# JavaScript takes up to 200000 steps for each cluster; the default is 10000000.\n\
             budget: {steps: 1000000000}\n"
        }
        _ => "",
    };
    format!("name: {{{{name}}}}\nwasm: {{{{name}}}}.wasm\n{budget}")
}

/// Returns the build.yaml of a plugin; none for languages that need none.
pub(super) fn settings(language: Language, kind: Kind) -> Option<String> {
    let name = match language {
        Language::Rust | Language::Lua => return None,
        Language::Python => "python",
        Language::JavaScript => "javascript",
        Language::TypeScript => "typescript",
        Language::C => "c",
        Language::Go => "go",
    };
    Some(format!(
        "# Read by `bulkhead plugin build`.\nlanguage: {name}\nkinds: [{}]\n",
        kind.name()
    ))
}

/// Returns the part of the README about a language.
pub(super) fn readme(language: Language) -> &'static str {
    match language {
        Language::Rust | Language::Lua => "",
        Language::Python => include_str!("../templates/python/README.md"),
        Language::JavaScript => include_str!("../templates/javascript/README.md"),
        Language::TypeScript => include_str!("../templates/typescript/README.md"),
        Language::C => include_str!("../templates/c/README.md"),
        Language::Go => include_str!("../templates/go/README.md"),
    }
}
