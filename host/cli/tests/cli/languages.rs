//! `bulkhead plugin new` and `build` for every language, as far as no toolchain is needed. `cargo xtask full languages`
//! builds the plugins.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::plugin::KINDS;

/// Languages with a build.yaml, and files that a plugin in each of them has.
const LANGUAGES: [(&str, &[&str]); 5] = [
    (
        "python",
        &[
            "plugin.py",
            "tests/__init__.py",
            "tests/test_plugin.py",
            "vendor/bulkhead/component.py",
            "vendor/wit/types.wit",
        ],
    ),
    (
        "javascript",
        &[
            "src/plugin.js",
            "tests/plugin.test.js",
            "package.json",
            "vendor/bulkhead/index.d.ts",
            "vendor/wit/types.wit",
        ],
    ),
    (
        "typescript",
        &[
            "src/plugin.ts",
            "tests/plugin.test.ts",
            "tsconfig.json",
            "vendor/bulkhead/testing.d.ts",
            "vendor/wit/types.wit",
        ],
    ),
    (
        "c",
        &[
            "plugin.c",
            "tests/test_plugin.c",
            "Makefile",
            "vendor/bulkhead/bulkhead.h",
            "vendor/wit/types.wit",
        ],
    ),
    (
        "go",
        &[
            "plugin.go",
            "plugin_test.go",
            "go.mod",
            "bulkhead/bulkhead.go",
            "bulkhead/wit/types.wit",
        ],
    ),
];

/// Creates the test's own folder, empty.
fn folder(name: &str) -> PathBuf {
    super::folder(&format!("languages/{name}"))
}

/// Runs `bulkhead plugin` in a folder. Returns exit code and combined output.
fn plugin(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = super::bulkhead();
    command.env_remove("BULKHEAD_TOOLCHAINS").arg("plugin").args(arguments);
    let output = command.current_dir(folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

/// Returns the text of every file below a folder.
fn texts(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(texts(&path));
        } else {
            let text = fs::read_to_string(&path).unwrap();
            found.insert(path, text);
        }
    }
    found
}

#[test]
fn a_new_plugin_of_each_language_and_kind_is_complete() {
    for (language, files) in LANGUAGES {
        for kind in KINDS {
            let folder = folder(&format!("{language}-{kind}"));
            let (code, message) = plugin(&folder, &["new", "--kind", kind, "--lang", language, "mine"]);
            assert_eq!(code, Some(0), "{language} {kind}: {message}");
            assert!(
                message.contains("bulkhead plugin build\nbulkhead plugin test"),
                "{message}"
            );
            let mine = folder.join("mine");
            for file in files
                .iter()
                .chain(&["plugin.yaml", "cases/cases.yaml", "README.md", ".gitignore"])
            {
                assert!(mine.join(file).is_file(), "{language} {kind}: {file}");
            }
            let settings = fs::read_to_string(mine.join("build.yaml")).unwrap();
            assert!(
                settings.ends_with(&format!("language: {language}\nkinds: [{kind}]\n")),
                "{settings}"
            );
            for (path, text) in texts(&mine) {
                for mark in ["{{name}}", "{{build}}", "{{summary}}"] {
                    assert!(!text.contains(mark), "{}: {text}", path.display());
                }
            }
        }
    }
}

#[test]
fn the_manifest_of_an_interpreted_language_has_steps_for_many_clusters() {
    for (language, kind, expected) in [
        ("python", "filter", true),
        ("typescript", "eviction-check", true),
        ("javascript", "health", false),
        ("go", "filter", false),
        ("c", "score", false),
    ] {
        let folder = folder(&format!("budget-{language}"));
        plugin(&folder, &["new", "--kind", kind, "--lang", language, "mine"]);
        let manifest = fs::read_to_string(folder.join("mine/plugin.yaml")).unwrap();
        assert_eq!(
            manifest.contains("budget: {steps: "),
            expected,
            "{language} {kind}: {manifest}"
        );
    }
}

#[test]
fn a_missing_toolchain_is_named_with_the_commands_that_install_it() {
    for (language, commands) in [
        (
            "python",
            &[
                "python3 -m venv venv",
                "pip install --quiet --disable-pip-version-check componentize-py==",
            ][..],
        ),
        ("javascript", &["npm ci"]),
        ("typescript", &["npm ci"]),
        ("c", &["python3 -m venv venv", "ziglang=="]),
    ] {
        let folder = folder(&format!("missing-{language}"));
        plugin(&folder, &["new", "--kind", "health", "--lang", language, "mine"]);
        let (code, message) = plugin(&folder, &["build", "mine", "--no-install", "--toolchains", "none"]);
        assert_eq!(code, Some(2), "{message}");
        for expected in commands.iter().chain(&["is not installed in", "none/"]) {
            assert!(message.contains(expected), "{language}: {message}");
        }
        assert!(!folder.join("none").exists(), "{language}: nothing is installed");
    }
}

#[test]
fn a_folder_that_cannot_be_built_is_refused_with_the_reason() {
    let folder = folder("refused");
    let build = || plugin(&folder, &["build", "mine"]);
    fs::create_dir_all(folder.join("mine")).unwrap();
    assert!(build().1.contains("it is not a plugin directory"), "{:?}", build());

    fs::write(folder.join("mine/build.yaml"), "language: perl\nkinds: [health]\n").unwrap();
    let (code, message) = build();
    assert_eq!(code, Some(2), "{message}");
    assert!(
        message.contains("mine/build.yaml:1") && message.contains("perl"),
        "{message}"
    );

    fs::write(folder.join("mine/build.yaml"), "language: c\nkinds: [health]\n").unwrap();
    fs::write(folder.join("mine/plugin.yaml"), "name: mine\nlua: mine.lua\n").unwrap();
    let message = build().1;
    assert!(message.contains("plugin.yaml has no wasm"), "{message}");
}
