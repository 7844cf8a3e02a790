//! `-o text|json|yaml`: every format has the same data and the same exit code.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Creates a folder with the inputs of the commands.
fn folder() -> PathBuf {
    let folder = super::folder("formats");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("scenario.yaml", super::HEAD);
    write(
        "deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 2}\n",
    );
    write(
        "hold.lua",
        "function EvictionCheck(binding, task, observed, now)\n  return 'hold', 'Full'\nend\n",
    );
    write("broken.lua", "function InterpretHealth(obj)\n  return obj.\nend\n");
    folder
}

fn run(folder: &Path, words: &[&str], format: &str) -> (Option<i32>, String) {
    let output = super::bulkhead()
        .args(words)
        .args(["-o", format])
        .current_dir(folder)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        !text.is_empty(),
        "{words:?} -o {format}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.code(), text)
}

/// Replaces numbers, because memory and time differ between two runs.
fn without_numbers(value: Value) -> Value {
    match value {
        Value::Number(_) => Value::from(0),
        Value::Array(items) => items.into_iter().map(without_numbers).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, without_numbers(value)))
            .collect(),
        other => other,
    }
}

#[test]
fn every_format_has_the_same_data_and_exit_code() {
    let folder = folder();
    let kinds = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .join("plugins/lua/kinds");
    let library = kinds.join("apps.kruise.io/v1alpha1/CloneSet").display().to_string();
    let commands: [(i32, &[&str]); 13] = [
        (0, &["version"]),
        (0, &["profiles"]),
        (0, &["simulate", "scenario.yaml"]),
        (0, &["interpret", "--show", "list"]),
        (
            0,
            &[
                "interpret",
                "--operation",
                "InterpretReplica",
                "--desired-file",
                "deployment.yaml",
            ],
        ),
        (0, &["interpret", "-f", &library, "--check"]),
        (1, &["interpret", "-f", "broken.lua", "--check"]),
        (0, &["interpret", "--test", &library]),
        (0, &["plugin", "inspect", "hold.lua"]),
        (0, &["plugin", "object", "hold.lua"]),
        (0, &["plugin", "test", "hold.lua"]),
        (1, &["doctor", "--mode=finish", "--kubeconfig=/nowhere/a"]),
        (0, &["interpret", "--show", "ray.io/v1/RayJob"]),
    ];
    for (expected, words) in &commands {
        let (code, json) = run(&folder, words, "json");
        assert_eq!(code, Some(*expected), "{words:?}: {json}");
        let json: Value = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{words:?}: {error}: {json}"));
        let (code, yaml) = run(&folder, words, "yaml");
        assert_eq!(code, Some(*expected), "{words:?}: {yaml}");
        let data: Value = serde_saphyr::from_str(&yaml).unwrap_or_else(|error| panic!("{words:?}: {error}: {yaml}"));
        assert_eq!(without_numbers(data), without_numbers(json), "{words:?}");
        let (code, text) = run(&folder, words, "text");
        assert_eq!(code, Some(*expected), "{words:?}: {text}");
        assert!(
            serde_json::from_str::<Value>(&text).is_err(),
            "{words:?} prints data as text: {text}"
        );
    }
}

#[test]
fn definitions_are_documents_a_list_or_names() {
    let folder = folder();
    let words = ["crds", "--group", "bulkhead.dev"];
    let (_, yaml) = run(&folder, &words, "yaml");
    let list: Value = serde_json::from_str(&run(&folder, &words, "json").1).unwrap();
    let items = list["items"].as_array().unwrap();
    assert_eq!(
        (list["kind"].as_str(), items.len()),
        (Some("List"), yaml.matches("---\napiVersion:").count())
    );
    let (_, text) = run(&folder, &words, "text");
    assert_eq!(text.lines().count(), items.len());
    assert!(
        text.lines()
            .any(|line| line.split_whitespace().eq(["plugins.bulkhead.dev", "Plugin"])),
        "{text}"
    );
}

#[test]
fn a_configuration_is_a_file_a_list_or_a_table() {
    let folder = folder();
    let words = ["config", "print", "--mode=finish"];
    let (_, table) = run(&folder, &words, "text");
    let row = |name: &str| {
        let mut words = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        words
            .find(|words| words.first() == Some(&name))
            .unwrap_or_default()
            .join(" ")
    };
    assert_eq!(row("NAME"), "NAME VALUE FROM");
    assert_eq!(
        (row("mode"), row("journal")),
        ("mode [\"finish\"] flag".to_owned(), "journal unset default".to_owned())
    );
}
