//! Consistency checks between `host/deploy` and the program.
//!
//! These tests run neither Helm nor kustomize nor Prometheus; `host/deploy/check.sh` does.

mod gitops;
mod manifests;
mod monitoring;
mod promql;
pub(crate) mod rbac;
pub(crate) mod series;
mod workflows;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

/// Returns the path of a file or folder of the workspace.
fn path(name: &str) -> PathBuf {
    super::root().join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the non-empty documents of a YAML file.
fn yaml(name: &str) -> Vec<Value> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

/// Returns the only document of a YAML file.
fn one_yaml(name: &str) -> Value {
    let mut documents = yaml(name);
    assert_eq!(documents.len(), 1, "{name}");
    documents.remove(0)
}

/// Returns the text at a JSON pointer, or an empty text.
fn at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the files below a folder, as sorted paths relative to the workspace.
fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path(folder)).unwrap_or_else(|error| panic!("{folder}: {error}")) {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            found.extend(files(&name));
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
}
