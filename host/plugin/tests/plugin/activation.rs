//! Activation of a catalog's plugins: changed ones are loaded, and the previous version stays active if loading
//! fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bulkhead_core::call::{Call, CallKind, HealthCall, HealthVerdict, Reason, Reply};
use bulkhead_core::combine;
use bulkhead_core::composition::Mode;
use bulkhead_core::manifest::PluginObject;
use bulkhead_core::model::Health;
use bulkhead_core::policy::{Capability, EngineKind, Fault, Policy, PolicyId};
use bulkhead_core::time::Time;
use bulkhead_plugin::{
    Catalog, CatalogError, CombinedCatalog, Data, Directory, Engine, Fingerprint, LIST, Layer, Listing, LoadError,
    LoadStage, Loaded, Loading, Objects, PluginSource, Plugins, Refresh, Registry, Watch,
};
use serde_json::json;

use crate::described;

/// Loads `healthy` and `unhealthy` as plugins; any other text is invalid.
struct Texts;

struct FixedReply(PolicyId, [Capability; 1], Health);

impl Policy for FixedReply {
    fn id(&self) -> &PolicyId {
        &self.0
    }
    fn capabilities(&self) -> &[Capability] {
        &self.1
    }
    fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
        Ok(Reply::Health(HealthVerdict {
            health: self.2,
            reason: Reason::new("Said", ""),
        }))
    }
}

impl Engine for Texts {
    fn kind(&self) -> EngineKind {
        EngineKind::Wasm
    }

    fn load(&self, source: &PluginSource) -> Result<Loaded, LoadError> {
        let code = source.modules.first().map(|module| &*module.code);
        let health = match code {
            Some(b"healthy") => Health::Healthy,
            Some(b"unhealthy") => Health::Unhealthy,
            _ => return Err(LoadError::new(source, LoadStage::Inspected, "is no plugin")),
        };
        let digest = source.digest();
        let id = PolicyId {
            name: source.name.clone(),
            version: digest.short(),
            engine: EngineKind::Wasm,
        };
        let description = described(digest);
        Ok(Loaded {
            policy: Arc::new(FixedReply(id, [Capability::any(CallKind::Health)], health)),
            description,
        })
    }
}

pub(crate) fn registry() -> Arc<Registry> {
    Arc::new(Registry::new(vec![Arc::new(Texts)]))
}

fn in_directory(path: &Path) -> Plugins {
    Plugins::new(registry(), Box::new(Directory::new(path)), Loading::default())
}

pub(crate) fn health(plugins: &Plugins) -> Health {
    let object = Arc::new(json!({"apiVersion": "v1", "kind": "Pod"}));
    let call = HealthCall {
        object: &object,
        now: Time::from_millis(0),
    };
    combine::health(&plugins.registry().policies(), call).health
}

/// Returns the name and stage of every plugin, with the error of the newest version.
fn stages(plugins: &Plugins) -> Vec<(String, LoadStage, Option<String>)> {
    let actual = plugins.status().into_iter();
    actual
        .map(|status| (status.name, status.stage, status.refused.map(|refused| refused.message)))
        .collect()
}

fn active(name: &str) -> (String, LoadStage, Option<String>) {
    (name.to_owned(), LoadStage::Active, None)
}

pub(crate) fn list(plugins: &str) -> String {
    format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginList\nplugins:\n{plugins}")
}

#[test]
fn a_bad_version_leaves_the_one_before_in_force() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.wasm"), "healthy").unwrap();
    let plugins = in_directory(folder.path());
    assert_eq!(plugins.refresh(), Refresh::Changed);
    assert_eq!(plugins.refresh(), Refresh::Unchanged);
    assert_eq!(
        (health(&plugins), stages(&plugins)),
        (Health::Healthy, vec![active("a")])
    );
    fs::write(folder.path().join("a.wasm"), "garbage").unwrap();
    assert_eq!(plugins.refresh(), Refresh::Changed);
    let refused = ("a".to_owned(), LoadStage::Inspected, Some("is no plugin".to_owned()));
    assert_eq!((health(&plugins), stages(&plugins)), (Health::Healthy, vec![refused]));
    fs::write(folder.path().join("a.wasm"), "unhealthy").unwrap();
    plugins.refresh();
    assert_eq!(
        (health(&plugins), stages(&plugins)),
        (Health::Unhealthy, vec![active("a")])
    );
    fs::remove_file(folder.path().join("a.wasm")).unwrap();
    plugins.refresh();
    assert_eq!((health(&plugins), stages(&plugins)), (Health::Healthy, Vec::new()));
}

/// A directory in which a plugin is replaced as soon as it has been read.
struct ReplacedMeanwhile {
    directory: Directory,
    plugin: PathBuf,
    next: Mutex<Option<&'static str>>,
}

impl Catalog for ReplacedMeanwhile {
    fn fingerprint(&self) -> Fingerprint {
        self.directory.fingerprint()
    }

    fn read(&self) -> Result<Listing, CatalogError> {
        let listing = self.directory.read();
        if let Some(next) = self.next.lock().unwrap().take() {
            fs::write(&self.plugin, next).unwrap();
        }
        listing
    }
}

#[test]
fn a_change_at_the_worst_moment_is_in_force_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("a.wasm");
    fs::write(&plugin, "healthy").unwrap();
    let directory = Directory::new(folder.path());
    let catalog = ReplacedMeanwhile {
        directory,
        plugin,
        next: Mutex::new(Some("unhealthy")),
    };
    let plugins = Plugins::new(registry(), Box::new(catalog), Loading::default());
    // This refresh read the old version, and the new one existed before it ended.
    plugins.refresh();
    assert_eq!(health(&plugins), Health::Healthy);
    // The next refresh detects the change, with time left for reading and loading.
    assert_eq!(plugins.refresh(), Refresh::Changed);
    assert_eq!(health(&plugins), Health::Unhealthy);
    assert!(Watch::INTERVAL <= Duration::from_millis(500), "{:?}", Watch::INTERVAL);
}

#[test]
fn one_bad_plugin_does_not_touch_the_others() {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in [("a.wasm", "healthy"), ("b.wasm", "unhealthy")] {
        fs::write(folder.path().join(file), text).unwrap();
    }
    let text = list("- {name: a, wasm: a.wasm}\n- {name: b, wasm: b.wasm}\n");
    fs::write(folder.path().join(LIST), text).unwrap();
    let plugins = in_directory(folder.path());
    plugins.refresh();
    health(&plugins);
    let bad = "- {name: a, wasm: a.wasm}\n- {name: b, wasm: b.wasm, answers: [health]}\n- {name: c, wasm: c.wasm}\n";
    fs::write(folder.path().join(LIST), list(bad)).unwrap();
    plugins.refresh();
    let actual = stages(&plugins);
    assert_eq!(actual[0], active("a"));
    assert!(
        actual[1]
            .2
            .as_ref()
            .unwrap()
            .starts_with("plugins.yaml:5:3: answers is for scripts"),
        "{actual:?}"
    );
    assert_eq!(actual[1].1, LoadStage::Verified);
    assert!(
        actual[2].1 == LoadStage::Fetched && actual[2].2.as_ref().unwrap().contains("c.wasm"),
        "{actual:?}"
    );
    let counts: Vec<_> = plugins.status().iter().map(|status| status.counts.calls).collect();
    assert_eq!(counts, [1, 0, 0], "what did not change is not loaded again");
}

#[test]
fn a_list_that_cannot_be_read_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.wasm"), "unhealthy").unwrap();
    fs::write(folder.path().join(LIST), list("- {name: a, wasm: a.wasm}\n")).unwrap();
    let plugins = in_directory(folder.path());
    plugins.refresh();
    let check = |text: &str, part: &str| {
        fs::write(folder.path().join(LIST), text).unwrap();
        plugins.refresh();
        let error = plugins.list_error().unwrap();
        assert!(error.contains(part) && error.contains(LIST), "{error}");
        assert_eq!(
            (health(&plugins), stages(&plugins)),
            (Health::Unhealthy, vec![active("a")])
        );
    };
    check("plugins: [", "plugins.yaml:1:10: unclosed bracket");
    check(
        "apiVersion: v1\nkind: ConfigMap\n",
        "is a \"v1 ConfigMap\"; a list of plugins is bulkhead.dev/v1alpha1",
    );
    check(
        &list("- {name: a, wasm: a.wasm}\n- {name: a, wasm: b.wasm}\n"),
        "plugins.yaml:5:3: a second plugin is named \"a\"",
    );
    check(&list("- {name: a, wasm: a.wasm, colour: red}\n"), "colour");
    fs::write(folder.path().join(LIST), list("- {name: a, wasm: a.wasm}\n")).unwrap();
    plugins.refresh();
    assert_eq!(plugins.list_error(), None);
}

#[test]
fn a_digest_that_is_asked_for_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.wasm"), "healthy").unwrap();
    let check = |sha256: &str| {
        let text = list(&format!("- {{name: a, wasm: a.wasm, sha256: '{sha256}'}}\n"));
        fs::write(folder.path().join(LIST), text).unwrap();
        let plugins = in_directory(folder.path());
        plugins.refresh();
        stages(&plugins).remove(0)
    };
    let wrong = check(&"0".repeat(64));
    let message = wrong.2.unwrap();
    assert_eq!(wrong.1, LoadStage::Verified);
    let right = message.rsplit_once(' ').unwrap().1.to_uppercase();
    assert_eq!(check(&right), active("a"));
}

#[cfg(unix)]
#[test]
fn a_directory_that_is_swapped_by_a_link_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let version = |name: &str, text: &str| {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("a.wasm"), text).unwrap();
    };
    version("v1", "healthy");
    version("v2", "unhealthy");
    // Layout of a mounted ConfigMap: the file is a link into a directory behind another link.
    std::os::unix::fs::symlink("v1", folder.path().join("data")).unwrap();
    fs::create_dir(folder.path().join("mount")).unwrap();
    std::os::unix::fs::symlink("../data/a.wasm", folder.path().join("mount/a.wasm")).unwrap();
    let plugins = in_directory(&folder.path().join("mount"));
    plugins.refresh();
    assert_eq!(health(&plugins), Health::Healthy);
    std::os::unix::fs::symlink("v2", folder.path().join("next")).unwrap();
    fs::rename(folder.path().join("next"), folder.path().join("data")).unwrap();
    assert_eq!(plugins.refresh(), Refresh::Changed);
    assert_eq!(health(&plugins), Health::Unhealthy);
}

#[test]
fn data_of_an_object_is_a_catalog_too() {
    let files = |plugin: &str, text: &str| {
        BTreeMap::from([
            (
                LIST.to_owned(),
                list(&format!("- {{name: a, wasm: {plugin}}}\n")).into_bytes(),
            ),
            ("a.wasm".to_owned(), text.as_bytes().to_vec()),
        ])
    };
    let data = Arc::new(Data::new(
        "ConfigMap bulkhead-system/plugins",
        files("a.wasm", "unhealthy"),
    ));
    let plugins = Plugins::new(registry(), Box::new(Arc::clone(&data)), Loading::default());
    plugins.refresh();
    assert_eq!(health(&plugins), Health::Unhealthy);
    data.set(files("b.wasm", "healthy"));
    assert_eq!(plugins.refresh(), Refresh::Changed);
    let message = stages(&plugins).remove(0).2.unwrap();
    assert!(
        message.contains("ConfigMap bulkhead-system/plugins b.wasm: the data has no such key"),
        "{message}"
    );
    data.set(files("a.wasm", "healthy"));
    plugins.refresh();
    assert_eq!(
        (health(&plugins), stages(&plugins)),
        (Health::Healthy, vec![active("a")])
    );
}

#[test]
fn a_plugin_that_fails_its_first_questions_is_not_put_in_force() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.wasm"), "unhealthy").unwrap();
    let test = Box::new(|policy: &dyn Policy| Err(format!("{} answers nonsense", policy.id().name)));
    let options = Loading {
        smoke_test: Some(test),
        ..Loading::default()
    };
    let plugins = Plugins::new(registry(), Box::new(Directory::new(folder.path())), options);
    plugins.refresh();
    let refused = (
        "a".to_owned(),
        LoadStage::SmokeTested,
        Some("a answers nonsense".to_owned()),
    );
    assert_eq!((health(&plugins), stages(&plugins)), (Health::Unknown, vec![refused]));
}

#[test]
fn mode_and_fallback_are_as_the_list_says() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.wasm"), "unhealthy").unwrap();
    let registry = registry();
    let id = PolicyId::builtin("Native");
    let native = FixedReply(id, [Capability::any(CallKind::Health)], Health::Healthy);
    registry.replace(Layer::Builtins, vec![Arc::new(native)]);
    let plugins = Plugins::new(registry, Box::new(Directory::new(folder.path())), Loading::default());
    let check = |settings: &str, expected: Health, stage: LoadStage| {
        fs::write(
            folder.path().join(LIST),
            list(&format!("- {{name: a, wasm: a.wasm{settings}}}\n")),
        )
        .unwrap();
        plugins.refresh();
        assert_eq!(
            (health(&plugins), stages(&plugins)[0].1),
            (expected, stage),
            "{settings}"
        );
    };
    check(", mode: shadow", Health::Healthy, LoadStage::Active);
    assert_eq!(plugins.status()[0].mode, Some(Mode::Shadow));
    check(", mode: off", Health::Healthy, LoadStage::Active);
    check("", Health::Unhealthy, LoadStage::Active);
    check(", fallback: {builtin: Native}", Health::Unhealthy, LoadStage::Active);
    check(", fallback: {builtin: Nobody}", Health::Unhealthy, LoadStage::Active);
    let message = stages(&plugins)[0].2.clone().unwrap();
    assert!(
        message.contains("unknown built-in policy \"Nobody\"; expected one of Native"),
        "{message}"
    );
}

/// Two active plugins with the same name would answer twice, and references to the name would be ambiguous.
#[test]
fn a_name_belongs_to_the_first_plugin_with_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.wasm"), "healthy").unwrap();
    let objects = Arc::<Objects>::default();
    let files = Some(Box::new(Directory::new(folder.path())) as Box<dyn Catalog>);
    let plugins = Plugins::new(
        registry(),
        Box::new(CombinedCatalog::new(files, Arc::clone(&objects))),
        Loading::default(),
    );
    let object = |name: &str, code: &str| {
        let serde_json::Value::Object(spec) = json!({"wasm": code}) else {
            panic!("a spec is a map")
        };
        PluginObject {
            name: name.to_owned(),
            generation: 7,
            spec,
        }
    };
    let (healthy, unhealthy) = ("aGVhbHRoeQ==", "dW5oZWFsdGh5");
    objects.set(vec![object("a", unhealthy), object("b", healthy)]);
    assert_eq!(plugins.refresh(), Refresh::Changed);
    let actual: Vec<_> = plugins
        .status()
        .iter()
        .map(|status| (status.generation, status.to_string()))
        .collect();
    let [file, second, other] = actual.as_slice() else {
        panic!("{actual:?}")
    };
    assert!(file.0.is_none() && file.1.contains("is active"), "{file:?}");
    assert_eq!(second.0, Some(7));
    let why = "plugin a is not active; the newest version was refused: Plugin a spec.wasm failed to verify: its name is \
               taken by another plugin, of the plugin directory; names are unique";
    assert_eq!(second.1, why);
    assert!(
        other.1.contains("plugin b") && other.1.contains("is active"),
        "{other:?}"
    );
    assert_eq!(health(&plugins), Health::Healthy);
    let names = |plugins: &Plugins| plugins.registry().policies().entries().len();
    assert_eq!(names(&plugins), 2);
    // The file was removed, so the object takes the name.
    fs::remove_file(folder.path().join("a.wasm")).unwrap();
    plugins.refresh();
    assert_eq!(health(&plugins), Health::Unhealthy);
    assert_eq!(names(&plugins), 2);
}
