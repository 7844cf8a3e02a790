//! Plugins that come as objects of kind `Plugin`, with their code in themselves.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bulkhead_core::composition::Composition;
use serde_json::{Map, Value};

use crate::catalog::{Catalog, CatalogError, Fingerprint, Listed, Listing, found};
use crate::{FoundPlugin, LoadError, LoadStage, ManifestProblem, PluginManifest};

/// A plugin as an object says it.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginObject {
    /// Name of the object, which is that of the plugin.
    pub name: String,
    /// Generation of the object.
    pub generation: i64,
    /// Its `spec`: the fields of a plugin in a list but the name, with the text of the script in `lua`, or the component
    /// in `wasm`, in base64.
    pub spec: Map<String, Value>,
}

impl PluginObject {
    /// The plugin that the object describes.
    ///
    /// # Errors
    ///
    /// What is wrong with it, with the field, and what would be right.
    pub fn find(&self) -> Result<FoundPlugin, LoadError> {
        let origin = format!("Plugin {}", self.name);
        let error = |problem: &ManifestProblem| {
            let (plugin, origin) = (self.name.clone(), origin.clone());
            LoadError { plugin, origin, stage: problem.stage, message: format!("spec: {problem}") }
        };
        let manifest = self.manifest().map_err(|problem| error(&problem))?;
        found("spec: ", &origin, manifest, |field| {
            (format!("{origin} {field}"), self.code(field.trim_start_matches(SPEC)))
        })
        .map_err(|problem| LoadError { origin: origin.clone(), ..problem })
    }

    /// The manifest, which names the field that the code is in where another one names a file.
    fn manifest(&self) -> Result<PluginManifest, ManifestProblem> {
        let mistake = |field, message: String| ManifestProblem { field, message, stage: LoadStage::Verified };
        let mut fields = self.spec.clone();
        for field in CODE {
            match fields.get_mut(field) {
                Some(Value::String(code)) if code.is_empty() => {
                    return Err(mistake(field, "is empty; it holds the code".to_owned()));
                }
                Some(Value::String(code)) => *code = format!("{SPEC}{field}"),
                Some(Value::Null) | None => {}
                Some(other) => return Err(mistake(field, format!("is {other}; it holds the code, as text"))),
            }
        }
        if fields.insert("name".to_owned(), self.name.clone().into()).is_some() {
            return Err(mistake("name", "is not to be given: a plugin has the name of its object".to_owned()));
        }
        serde_json::from_value(Value::Object(fields)).map_err(|error| mistake("", error.to_string()))
    }

    fn code(&self, field: &str) -> io::Result<Vec<u8>> {
        let text = self.spec.get(field).and_then(Value::as_str).unwrap_or_default();
        if field == "lua" {
            return Ok(text.as_bytes().to_vec());
        }
        // As `base64` without an option prints it, in lines.
        let text: String = text.split_ascii_whitespace().collect();
        BASE64_STANDARD.decode(text).map_err(|error| io::Error::other(format!("it is not base64: {error}")))
    }
}

/// Before the name of the field that the code is in.
const SPEC: &str = "spec.";
/// The fields that it may be in.
const CODE: [&str; 2] = ["wasm", "lua"];

/// The objects that there are, as somebody tells who watches them.
#[derive(Debug, Default)]
pub struct Objects(RwLock<State>);

#[derive(Debug, Default)]
struct State {
    objects: Vec<PluginObject>,
    revision: u64,
}

impl Objects {
    /// Puts other objects in the place of those before. They are asked in the order of their names.
    pub fn set(&self, mut objects: Vec<PluginObject>) {
        objects.sort_by(|left, right| left.name.cmp(&right.name));
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if state.objects != objects {
            *state = State { objects, revision: state.revision + 1 };
        }
    }
}

impl Catalog for Objects {
    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_revision(self.0.read().unwrap_or_else(PoisonError::into_inner).revision)
    }

    fn read(&self) -> Result<Listing, CatalogError> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner).objects.clone();
        let listed = |object: PluginObject| Listed {
            generation: Some(object.generation),
            manifest: object.manifest().ok().map(Box::new),
            found: object.find(),
            name: object.name,
        };
        let plugins = objects.into_iter().map(listed).collect();
        Ok(Listing { composition: Composition::default(), plugins, stale: None })
    }
}

/// Files, and after them objects. The rules by which answers become one are those of the list of files.
///
/// Files that cannot be read stay as they were, and objects go on changing: who deletes one that holds everything is not
/// kept from it by a mistake in a file.
pub struct Together {
    files: Option<Box<dyn Catalog>>,
    objects: Arc<Objects>,
    /// The files when they could be read.
    before: Mutex<Option<Listing>>,
}

impl Together {
    /// Files, if there are any, and objects.
    pub fn new(files: Option<Box<dyn Catalog>>, objects: Arc<Objects>) -> Self {
        Self { files, objects, before: Mutex::default() }
    }

    fn files(&self) -> Result<Option<Listing>, CatalogError> {
        let Some(files) = &self.files else { return Ok(None) };
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        match files.read() {
            Ok(listing) => *before = Some(listing),
            Err(error) => {
                let Some(before) = &mut *before else { return Err(error) };
                before.stale = Some(error);
            }
        }
        Ok(before.clone())
    }
}

impl Catalog for Together {
    fn fingerprint(&self) -> Fingerprint {
        let files = self.files.as_ref().map(|files| files.fingerprint()).unwrap_or_default();
        files.and(self.objects.fingerprint())
    }

    fn read(&self) -> Result<Listing, CatalogError> {
        let mut objects = self.objects.read()?;
        let Some(mut listing) = self.files()? else { return Ok(objects) };
        listing.plugins.append(&mut objects.plugins);
        Ok(listing)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::{Data, LIST};

    fn object(name: &str, spec: Value) -> PluginObject {
        let Value::Object(spec) = spec else { panic!("a spec is a map") };
        PluginObject { name: name.to_owned(), generation: 3, spec }
    }

    #[test]
    fn an_object_has_its_code_in_itself() {
        let script = object("vital", json!({"lua": "function Score() end", "scores": "evictions"})).find().unwrap();
        assert_eq!((script.source.name.as_str(), script.source.origin()), ("vital", "Plugin vital spec.lua"));
        assert_eq!(script.source.modules[0].code, b"function Score() end");
        let component = object("freeze", json!({"wasm": "AGFz\nbQ==\n", "mode": "shadow"})).find().unwrap();
        assert_eq!(component.source.modules[0].code, b"\0asm");
    }

    #[test]
    fn mistakes_name_the_object_and_the_field() {
        let check = |spec: Value, expected: &str| {
            let error = object("p", spec).find().unwrap_err().to_string();
            assert_eq!(error, format!("plugin p (Plugin p) failed to {expected}"));
        };
        check(json!({}), "verify: spec: needs exactly one of wasm and lua, where its code is");
        check(json!({"lua": ""}), "verify: spec: lua is empty; it holds the code");
        check(json!({"lua": 3}), "verify: spec: lua is 3; it holds the code, as text");
        check(
            json!({"lua": "x", "name": "q"}),
            "verify: spec: name is not to be given: a plugin has the name of its object",
        );
        check(
            json!({"lua": "x", "mode": "of"}),
            "verify: spec: unknown variant `of`, expected one of `enforce`, `shadow`, `off`",
        );
        check(
            json!({"lua": "x", "instances": "reused"}),
            "verify: spec: instances is for components; a script has a fresh environment for every call",
        );
        check(
            json!({"wasm": "?"}),
            "fetch: spec: failed to fetch Plugin p spec.wasm: it is not base64: Invalid symbol 63, offset 0.",
        );
    }

    #[test]
    fn objects_come_after_files_and_what_is_the_same_changes_nothing() {
        let list = "apiVersion: bulkhead.dev/v1alpha1\nkind: PluginList\ncomposition: {health: worst-opinion}\n\
                    plugins: [{name: z, lua: z.lua}]\n";
        let files = [(LIST, list), ("z.lua", "")].map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
        let files = Data::new("ConfigMap plugins", BTreeMap::from(files));
        let files = Arc::new(files);
        let both = Together::new(Some(Box::new(Arc::clone(&files))), Arc::default());
        let before = both.fingerprint();
        let objects = || vec![object("b", json!({"lua": "x"})), object("a", json!({"lua": "x"}))];
        both.objects.set(objects());
        let after = both.fingerprint();
        assert_ne!(before, after);
        both.objects.set(objects());
        assert_eq!(after, both.fingerprint());
        let listing = both.read().unwrap();
        let names: Vec<_> = listing.plugins.iter().map(|listed| (listed.name.as_str(), listed.generation)).collect();
        assert_eq!(names, [("z", None), ("a", Some(3)), ("b", Some(3))]);
        assert_ne!(listing.composition, Composition::default());
        // A mistake in the files leaves them as they were and keeps no object from going.
        files.set(BTreeMap::from([(LIST.to_owned(), b"plugins: 3".to_vec())]));
        both.objects.set(Vec::new());
        let listing = both.read().unwrap();
        assert_eq!(listing.plugins.iter().map(|listed| listed.name.as_str()).collect::<Vec<_>>(), ["z"]);
        assert!(listing.stale.is_some_and(|error| error.to_string().starts_with("ConfigMap plugins plugins.yaml")));
    }
}
