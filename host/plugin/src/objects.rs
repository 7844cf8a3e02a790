//! Plugins from `Plugin` objects, which contain their code or name an image.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bulkhead_core::composition::Composition;
use bulkhead_core::manifest::{Digest, PluginObject};

use crate::catalog::{Catalog, CatalogEntry, CatalogError, Fingerprint, Listing, found, of_image};
use crate::manifest::stage_of;
use crate::{FoundPlugin, Grant, ImageProblem, Images, LoadError};

/// Name of the list of objects at a source of images.
const OBJECTS: &str = "Plugin objects";

/// Returns the plugin that an object describes.
///
/// # Errors
///
/// The invalid field, with cause and remedy.
pub fn find_object(object: &PluginObject) -> Result<FoundPlugin, LoadError> {
    let origin = object.origin();
    let manifest = object.manifest().map_err(|problem| LoadError {
        plugin: object.name.clone(),
        origin: origin.clone(),
        stage: stage_of(problem.kind),
        message: format!("spec: {problem}"),
    })?;
    found("spec: ", &origin, manifest, |field| object.code(field)).map_err(|problem| LoadError { origin, ..problem })
}

/// Existing `Plugin` objects, as reported by their watcher.
#[derive(Default)]
pub struct Objects {
    state: RwLock<State>,
    /// Source of the images that objects name.
    images: Option<Arc<dyn Images>>,
}

#[derive(Debug, Default)]
struct State {
    objects: Vec<PluginObject>,
    revision: u64,
}

impl Objects {
    /// Returns a set without objects, with a source of the images that they name.
    pub fn with_images(images: Arc<dyn Images>) -> Self {
        Self {
            state: RwLock::default(),
            images: Some(images),
        }
    }

    /// Replaces the objects. They are called in the order of their names.
    pub fn set(&self, mut objects: Vec<PluginObject>) {
        objects.sort_by(|left, right| left.name.cmp(&right.name));
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.objects != objects {
            *state = State {
                objects,
                revision: state.revision + 1,
            };
        }
    }

    /// Returns the entry of an object.
    fn listed(&self, object: PluginObject) -> CatalogEntry {
        let manifest = object.manifest().ok();
        let generation = Some(object.generation);
        let in_registry = |manifest| of_image("spec: ", manifest, self.images.as_deref());
        if let Some(entry) = manifest.as_ref().and_then(in_registry) {
            return CatalogEntry { generation, ..entry };
        }
        CatalogEntry {
            generation,
            manifest: manifest.map(Box::new),
            image: None,
            grant: Grant::default(),
            found: find_object(&object),
            newer: None,
            name: object.name,
        }
    }
}

impl Catalog for Objects {
    fn fingerprint(&self) -> Fingerprint {
        let revision = self.state.read().unwrap_or_else(PoisonError::into_inner).revision;
        let images = self.images.iter().map(|images| images.revision());
        images.fold(Fingerprint::of_revision(revision), |all, images| {
            all.and(Fingerprint::of_revision(images))
        })
    }

    fn is_pending(&self) -> bool {
        self.images.as_ref().is_some_and(|images| images.is_pending())
    }

    fn verify_again(&self, image: &str, code: &Digest) -> Result<Grant, ImageProblem> {
        self.images
            .as_ref()
            .map_or_else(|| Ok(Grant::default()), |images| images.verify_again(image, code))
    }

    fn read(&self) -> Result<Listing, CatalogError> {
        let objects = self
            .state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .objects
            .clone();
        if let Some(images) = &self.images {
            let named = objects
                .iter()
                .filter_map(|object| object.spec.get("image")?.as_str().map(str::to_owned));
            images.listed(OBJECTS, named.collect());
        }
        Ok(Listing {
            composition: Composition::default(),
            plugins: objects.into_iter().map(|object| self.listed(object)).collect(),
            stale: None,
        })
    }
}

/// Plugins from files, followed by plugins from objects. The rules for combining answers are those of the list of
/// files.
///
/// If the files cannot be read, they keep their previous state while objects still change: an operator can delete an
/// object that holds all evictions even if a file is invalid.
pub struct CombinedCatalog {
    files: Option<Box<dyn Catalog>>,
    objects: Arc<Objects>,
    /// Listing of the files when they were last readable.
    before: Mutex<Option<Listing>>,
}

impl CombinedCatalog {
    /// Combines an optional catalog of files with objects.
    pub fn new(files: Option<Box<dyn Catalog>>, objects: Arc<Objects>) -> Self {
        Self {
            files,
            objects,
            before: Mutex::default(),
        }
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

impl Catalog for CombinedCatalog {
    fn fingerprint(&self) -> Fingerprint {
        let files = self.files.as_ref().map(|files| files.fingerprint()).unwrap_or_default();
        files.and(self.objects.fingerprint())
    }

    fn is_pending(&self) -> bool {
        self.files.as_ref().is_some_and(|files| files.is_pending()) || self.objects.is_pending()
    }

    fn verify_again(&self, image: &str, code: &Digest) -> Result<Grant, ImageProblem> {
        let of_files = self
            .files
            .as_ref()
            .map_or_else(|| Ok(Grant::default()), |files| files.verify_again(image, code))?;
        let of_objects = self.objects.verify_again(image, code)?;
        // Files without a source of images limit nothing.
        Ok(if of_files == Grant::default() {
            of_objects
        } else {
            of_files
        })
    }

    fn read(&self) -> Result<Listing, CatalogError> {
        let mut objects = self.objects.read()?;
        let Some(mut listing) = self.files()? else {
            return Ok(objects);
        };
        listing.plugins.append(&mut objects.plugins);
        Ok(listing)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use bulkhead_core::manifest::MovedTag;
    use bulkhead_core::policy::EngineKind;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Data, FoundImage, ImageProblem, LIST, LoadStage};

    fn object(name: &str, spec: Value) -> PluginObject {
        let Value::Object(spec) = spec else {
            panic!("a spec is a map")
        };
        PluginObject {
            name: name.to_owned(),
            generation: 3,
            spec,
        }
    }

    #[test]
    fn an_object_has_its_code_in_itself() {
        let script = find_object(&object(
            "vital",
            json!({"lua": "function Score() end", "scores": "evictions"}),
        ))
        .unwrap();
        assert_eq!(
            (script.source.name.as_str(), script.source.origin()),
            ("vital", "Plugin vital spec.lua")
        );
        assert_eq!(script.source.modules[0].code[..], *b"function Score() end");
        let component = find_object(&object("freeze", json!({"wasm": "AGFz\nbQ==\n", "mode": "shadow"}))).unwrap();
        assert_eq!(component.source.modules[0].code[..], *b"\0asm");
    }

    #[test]
    fn mistakes_name_the_object_and_the_field() {
        let check = |spec: Value, expected: &str| {
            let error = find_object(&object("p", spec)).unwrap_err().to_string();
            assert_eq!(error, format!("plugin p (Plugin p) failed to {expected}"));
        };
        check(
            json!({}),
            "verify: spec: needs exactly one of wasm, lua and image, the location of its code",
        );
        check(json!({"lua": ""}), "verify: spec: lua is empty; it holds the code");
        check(json!({"lua": 3}), "verify: spec: lua is 3; it holds the code, as text");
        check(
            json!({"lua": "x", "name": "q"}),
            "verify: spec: name must not be set: a plugin has the name of its object",
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

    /// Images of a registry with one script.
    struct OneScript;

    impl Images for OneScript {
        fn revision(&self) -> u64 {
            7
        }

        fn is_pending(&self) -> bool {
            false
        }

        fn listed(&self, list: &str, images: BTreeSet<String>) {
            assert_eq!((list, images.len()), ("Plugin objects", 2), "two objects name the same");
        }

        fn find(&self, image: &str, _: MovedTag) -> Result<FoundImage, ImageProblem> {
            if image != "r.io/a:1" {
                return Err(ImageProblem {
                    stage: LoadStage::Fetched,
                    message: "it is gone".to_owned(),
                });
            }
            Ok(FoundImage {
                engine: EngineKind::Lua,
                origin: "r.io/a@sha256:1".to_owned(),
                code: b"function Score() end".to_vec(),
                grant: Grant::default(),
                signer: Some("team".to_owned()),
                newer: None,
            })
        }

        fn grant(&self, _: &str) -> Grant {
            Grant::default()
        }

        fn verify_again(&self, image: &str, _: &Digest) -> Result<Grant, ImageProblem> {
            Err(ImageProblem {
                stage: LoadStage::Verified,
                message: format!("{image} is revoked"),
            })
        }
    }

    #[test]
    fn an_object_may_name_an_image() {
        let objects = Objects::with_images(Arc::new(OneScript));
        let kinds = json!([{"apiVersion": "v1", "kind": "Pod"}]);
        objects.set(vec![
            object("a", json!({"image": "r.io/a:1", "kinds": kinds})),
            object("b", json!({"image": "r.io/b:1"})),
            object("c", json!({"image": "r.io/a:1", "sha256": "0"})),
        ]);
        let plugins = objects.read().unwrap().plugins;
        let found = plugins[0].found.as_ref().unwrap();
        assert_eq!(
            (found.source.origin(), plugins[0].generation),
            ("r.io/a@sha256:1", Some(3))
        );
        assert_eq!(found.source.object_kinds.len(), 1);
        let build = found.source.build();
        let signed = build.image.map(|image| image.to_string());
        assert_eq!(signed.as_deref(), Some("r.io/a@sha256:1, signed by team"));
        let catalog = CombinedCatalog::new(None, Arc::new(objects));
        let withdrawn = catalog.verify_again("r.io/a@sha256:1", &found.source.digest());
        assert_eq!(withdrawn.unwrap_err().message, "r.io/a@sha256:1 is revoked");
        let error = |index: usize| plugins[index].found.as_ref().unwrap_err().to_string();
        assert_eq!(error(1), "plugin b (r.io/b:1) failed to fetch: spec: it is gone");
        assert!(error(2).contains("sha256 is for files"), "{}", error(2));
        let without = Objects::default();
        without.set(vec![object("a", json!({"image": "r.io/a:1"}))]);
        let error = without.read().unwrap().plugins.remove(0).found.unwrap_err();
        assert!(error.to_string().contains("image is not pulled here"), "{error}");
    }

    #[test]
    fn objects_come_after_files_and_what_is_the_same_changes_nothing() {
        let list = "apiVersion: bulkhead.dev/v1alpha1\nkind: PluginList\ncomposition: {health: worst-opinion}\n\
                    plugins: [{name: z, lua: z.lua}]\n";
        let files = [(LIST, list), ("z.lua", "")].map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
        let files = Data::new("ConfigMap plugins", BTreeMap::from(files));
        let files = Arc::new(files);
        let both = CombinedCatalog::new(Some(Box::new(Arc::clone(&files))), Arc::default());
        let before = both.fingerprint();
        let objects = || vec![object("b", json!({"lua": "x"})), object("a", json!({"lua": "x"}))];
        both.objects.set(objects());
        let after = both.fingerprint();
        assert_ne!(before, after);
        both.objects.set(objects());
        assert_eq!(after, both.fingerprint());
        let listing = both.read().unwrap();
        let names: Vec<_> = listing
            .plugins
            .iter()
            .map(|listed| (listed.name.as_str(), listed.generation))
            .collect();
        assert_eq!(names, [("z", None), ("a", Some(3)), ("b", Some(3))]);
        assert_ne!(listing.composition, Composition::default());
        // An invalid file keeps its previous state and does not prevent the removal of an object.
        files.set(BTreeMap::from([(LIST.to_owned(), b"plugins: 3".to_vec())]));
        both.objects.set(Vec::new());
        let listing = both.read().unwrap();
        assert_eq!(
            listing
                .plugins
                .iter()
                .map(|listed| listed.name.as_str())
                .collect::<Vec<_>>(),
            ["z"]
        );
        assert!(
            listing
                .stale
                .is_some_and(|error| error.to_string().starts_with("ConfigMap plugins plugins.yaml"))
        );
    }
}
