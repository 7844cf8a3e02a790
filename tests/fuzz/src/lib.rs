//! Readers of data that a person, a client or a damaged disk hands over, as functions of its bytes.
//!
//! Each function has a program in `targets`, which libFuzzer calls with inputs that reach new code; `cargo xtask fuzz`
//! builds and runs them. `tests/it/tests/edited` calls some of them with edits of valid inputs, and bounds their memory.
//! An input that once failed is kept in `tests/it/corpus`.
//!
//! A function returns for every input. It panics if the reader does, or if a result is not as promised.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bulkhead_api::admission::{self, AdmissionContext, AdmissionOptions, Denied, Operation};
use bulkhead_api::webhook::serve;
use bulkhead_core::jsonpath::{Path, Template};
use bulkhead_core::policy::PolicySet;
use bulkhead_core::time::Time;
use bulkhead_engine_lua::LuaEngine;
use bulkhead_journal::segment;
use bulkhead_plugin::{Catalog as _, Data, Engine, LIST, Module, PluginSource, read_documents};
use bulkhead_plugins_builtin as builtin;
use serde_json::Value;
use tempfile::TempDir;

/// Script beside each list of plugins.
const SCRIPT: &str =
    "function InterpretHealth(object)\n  return object.spec.replicas == object.status.readyReplicas\nend\n";

/// Reads documents of YAML, and JSON. An error names the file.
pub fn yaml(input: &[u8]) {
    drop(serde_json::from_slice::<Value>(input));
    let text = String::from_utf8_lossy(input);
    if let Err(message) = read_documents::<Value>("input.yaml", &text, &serde_saphyr::Options::default()) {
        assert!(message.starts_with("input.yaml"), "{message}");
    }
}

/// Reads a list of plugins, which may name the script `a.lua`. An error names the object and the file.
pub fn plugins(input: &[u8]) {
    let files = [(LIST, input), ("a.lua", SCRIPT.as_bytes())];
    let files: BTreeMap<_, _> = files.map(|(name, content)| (name.to_owned(), content.to_vec())).into();
    if let Err(error) = Data::new("ConfigMap default/plugins", files).read() {
        assert!(
            error.to_string().contains("ConfigMap default/plugins plugins.yaml"),
            "{error}"
        );
    }
}

/// Loads a plugin in Lua.
pub fn script(input: &[u8]) {
    static ENGINE: LazyLock<LuaEngine> = LazyLock::new(LuaEngine::default);
    load(&*ENGINE, input);
}

/// Loads code with an engine.
pub fn load(engine: &dyn Engine, code: &[u8]) {
    let module = Module {
        origin: "input".to_owned(),
        code: code.into(),
        entries: Vec::new(),
    };
    drop(engine.load(&PluginSource::new("edited", engine.kind(), vec![module])));
}

/// Answers a request to the webhook that interprets objects. An answer has the id of its request.
pub fn review(input: &[u8]) {
    static POLICIES: LazyLock<PolicySet> = LazyLock::new(|| PolicySet::new(builtin::all()));
    if let Ok(serve::Answer { response, .. }) = serve::answer(&POLICIES, input, Time::from_millis(0)) {
        assert!(response["response"]["uid"].is_string(), "{response}");
    }
}

/// Admits an object that is created, and one that replaces itself: `{"group": …, "kind": …, "object": …}`. A denial has
/// a text. Scripts have a function of their own, [`script`].
pub fn admission(input: &[u8]) {
    admissions(input, &mut Alone);
}

/// Like [`admission()`], in any context.
pub fn admissions(input: &[u8], context: &mut dyn AdmissionContext) {
    let Ok(review) = serde_json::from_slice::<Value>(input) else {
        return;
    };
    for operation in [Operation::Create, Operation::Update] {
        if let Err(denied) = admit(&review, operation, context) {
            assert!(!denied.to_string().is_empty());
        }
    }
}

/// Admits the object of a review, which replaces itself in an update.
///
/// # Errors
///
/// The object is denied.
pub fn admit(review: &Value, operation: Operation, context: &mut dyn AdmissionContext) -> Result<(), Denied> {
    let request = admission::Request {
        group: review["group"].as_str().unwrap_or_default(),
        kind: review["kind"].as_str().unwrap_or_default(),
        operation,
        namespace: review.pointer("/object/metadata/namespace").and_then(Value::as_str),
        old: Some(&review["object"]).filter(|_| operation == Operation::Update),
    };
    let mut object = review["object"].clone();
    admission::admit(&request, &mut object, context, AdmissionOptions::default())
}

/// Context of an admission at one moment, without other objects.
struct Alone;

impl AdmissionContext for Alone {
    fn new_id(&mut self) -> String {
        "1".to_owned()
    }

    fn now(&self) -> Time {
        Time::from_millis(0)
    }

    fn others(&self) -> Vec<Value> {
        Vec::new()
    }

    fn script_error(&self, _script: &str) -> Option<String> {
        None
    }
}

/// Reads the only segment of a journal.
///
/// # Panics
///
/// The folder for temporary files cannot be written.
pub fn journal(input: &[u8]) {
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));
    std::fs::write(segment::path(FOLDER.path(), 1), input).expect("writing the segment");
    if let Ok(contents) = bulkhead_journal::read(FOLDER.path()) {
        assert!(
            contents.records.len() <= input.len(),
            "{} records of {} bytes",
            contents.records.len(),
            input.len()
        );
    }
}

/// Evaluates a template of JSONPath, and a bare path, in the first line for the object in the other lines.
pub fn jsonpath(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (template, object) = text.split_once('\n').unwrap_or((text.as_ref(), "{}"));
    let object: Value = serde_json::from_str(object).unwrap_or_default();
    if let Ok(template) = template.parse::<Template>() {
        drop(template.evaluate(&object));
    }
    if let Ok(path) = template.parse::<Path>() {
        drop(path.first(&object).cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reader_takes_any_bytes() {
        let readers: [fn(&[u8]); 7] = [admission, journal, jsonpath, plugins, review, script, yaml];
        for reader in readers {
            for input in [
                &b""[..],
                b"\0",
                b"{}",
                b"{.a[?(@.b==1)]}\n{\"a\": [{\"b\": 1}]}",
                &[0xff; 64],
            ] {
                reader(input);
            }
        }
    }

    #[test]
    fn an_object_for_admission_is_admitted() {
        let review = br#"{"group": "bulkhead.dev", "kind": "ClusterDrain",
            "object": {"metadata": {"name": "a"}, "spec": {"clusterName": "m1"}}}"#;
        admission(review);
    }
}
