//! Plugins of a list that are images: pulled, verified, loaded, and kept in force when the registry fails.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bulkhead_core::policy::{EngineKind, Policy};
use bulkhead_engine_lua::LuaEngine;
use bulkhead_engine_wasm::WasmEngine;
use bulkhead_oci::artifact::{Artifact, Metadata};
use bulkhead_oci::{Access, Cache, Client, Digest, Reference, RegistryImages, SourceOptions, Store};
use bulkhead_plugin::{
    Directory, Engine, LoadStage, Loading, PluginStatus, Plugins, Registry as Policies, TrustObjects,
};

use crate::registry::{Authentication, Fault, Registry};

pub(crate) const HEALTH: &str = "function InterpretHealth(obj) return true end";
pub(crate) const HEALTH_AND_CHECK: &str = "function InterpretHealth(obj) return true end\n\
                                function EvictionCheck(binding, task, observed, now) return {verdict = 'abstain'} end";

/// Registry and folder of a test.
pub(crate) struct Place {
    pub(crate) registry: Registry,
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            registry: Registry::start(Authentication::None),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn client(&self) -> Client {
        let plain_http = BTreeSet::from([self.registry.address.to_string()]);
        Client::new(Access {
            plain_http,
            ..Access::default()
        })
        .unwrap()
    }

    pub(crate) fn push(&self, code: &'static str) -> Digest {
        self.push_artifact(EngineKind::Lua, code.as_bytes())
    }

    pub(crate) fn push_artifact(&self, engine: EngineKind, code: &[u8]) -> Digest {
        let artifact = Artifact::of(engine, code.to_vec().into(), &Metadata::default()).unwrap();
        run(artifact.push(&self.client(), &self.image())).unwrap()
    }

    pub(crate) fn image(&self) -> Reference {
        self.registry.image("plugins/alive:1").parse().unwrap()
    }

    /// Writes a list with one plugin.
    pub(crate) fn list(&self, fields: &str) {
        let image = self.registry.image("plugins/alive:1");
        let list = format!(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: PluginList\nplugins: [{{name: alive, image: '{image}'{fields}}}]\n"
        );
        fs::create_dir_all(self.path("plugins")).unwrap();
        fs::write(self.path("plugins/plugins.yaml"), list).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn start(&self, trust: Option<&Path>) -> Plugins {
        self.start_with(trust, None)
    }

    /// Starts with `PluginTrust` objects, as a process with a control plane does.
    pub(crate) fn start_with(&self, trust: Option<&Path>, trust_objects: Option<Arc<TrustObjects>>) -> Plugins {
        let options = SourceOptions {
            trust: trust.map(Path::to_path_buf),
            trust_objects,
            tag_interval: Duration::from_millis(30),
            retry_base: Duration::from_millis(10),
            retry_max: Duration::from_millis(50),
        };
        let cache = Cache::open(self.path("images"), Cache::BYTES_MAX).unwrap();
        let images = RegistryImages::start(Store::new(self.client(), cache), options).unwrap();
        let wasm = WasmEngine::new(Default::default()).unwrap();
        let engines: Vec<Arc<dyn Engine>> = vec![Arc::new(LuaEngine::default()), Arc::new(wasm)];
        let directory = Directory::new(self.path("plugins")).with_images(Arc::new(images));
        let smoke = Box::new(|policy: &dyn Policy| bulkhead_conformance::smoke(policy));
        let loading = Loading {
            smoke_test: Some(smoke),
            ..Loading::default()
        };
        Plugins::new(Arc::new(Policies::new(engines)), Box::new(directory), loading)
    }
}

/// Runs a future to its end.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

pub(crate) fn status(plugins: &Plugins) -> PluginStatus {
    plugins.status().remove(0)
}

/// Refreshes until the status is the expected one.
pub(crate) fn until(plugins: &Plugins, expected: impl Fn(&PluginStatus) -> bool) -> PluginStatus {
    let start = Instant::now();
    loop {
        plugins.refresh();
        let status = status(plugins);
        if expected(&status) {
            return status;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{status}");
    }
}

pub(crate) fn refused(status: &PluginStatus) -> String {
    status.refused.as_ref().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn an_image_is_in_force_after_the_start_and_stays_when_the_tag_moves() {
    let place = Place::new();
    place.push(HEALTH);
    place.list("");
    let plugins = place.start(None);
    plugins.refresh();
    let first = status(&plugins);
    assert!(first.refused.is_none() && first.active.is_some(), "{first}");
    let second = place.push(HEALTH_AND_CHECK);
    let moved = until(&plugins, |status| status.refused.is_some());
    assert!(refused(&moved).contains("TagMoved"), "{moved}");
    assert!(moved.to_string().contains("plugin alive"), "{moved}");
    assert_eq!(moved.digest, first.digest, "the first stays in force");
    assert!(moved.held.is_empty(), "{moved}");
    place.list(", movedTag: follow");
    let followed = until(&plugins, |status| status.digest != first.digest);
    assert!(followed.refused.is_none(), "{followed} after {second}");
}

#[test]
fn a_start_while_the_registry_is_down_has_the_cached_version() {
    let place = Place::new();
    place.push(HEALTH);
    place.list("");
    let before = place.start(None);
    before.refresh();
    let digest = status(&before).digest;
    drop(before);
    place.registry.fail("", Fault::Status(503), usize::MAX);
    let plugins = place.start(None);
    plugins.refresh();
    let cached = status(&plugins);
    assert!(cached.active.is_some() && cached.held.is_empty(), "{cached}");
    assert_eq!(cached.digest, digest);
    let noticed = until(&plugins, |status| status.refused.is_some());
    assert!(refused(&noticed).contains("RegistryServerError"), "{noticed}");
    assert_eq!(noticed.digest, digest);
}

#[test]
fn an_image_that_cannot_be_pulled_holds_until_it_can() {
    let place = Place::new();
    place.list("");
    let plugins = place.start(None);
    let missing = until(&plugins, |status| refused(status).contains("ImageNotFound"));
    assert!(missing.active.is_none() && !missing.held.is_empty(), "{missing}");
    assert_eq!(missing.stage, LoadStage::Fetched);
    place.push(HEALTH);
    let pulled = until(&plugins, |status| status.active.is_some());
    assert!(pulled.held.is_empty(), "{pulled}");
}

#[test]
fn a_plugin_may_not_answer_calls_that_the_trust_file_does_not_permit() {
    let place = Place::new();
    place.push(HEALTH_AND_CHECK);
    place.list("");
    let trust = place.path("trust.yaml");
    let rule = |kinds: &str| {
        let host = place.registry.address;
        let text = format!(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules: [{{images: '{host}', unsigned: true, kinds: [{kinds}]}}]\n"
        );
        fs::write(&trust, text).unwrap();
    };
    rule("health");
    let plugins = place.start(Some(&trust));
    plugins.refresh();
    let denied = until(&plugins, |status| {
        refused(status).contains("the rule that trusts its image permits")
    });
    assert!(
        refused(&denied).contains("it answers eviction-check calls, and the rule that trusts its image permits health"),
        "{denied}"
    );
    let held: Vec<_> = denied.held.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(held, ["health"], "it may not hold evictions either");
    rule("health, eviction-check");
    until(&plugins, |status| status.active.is_some() && status.refused.is_none());
}

#[test]
fn a_plugin_may_not_have_a_larger_budget_than_the_trust_file_permits() {
    let place = Place::new();
    place.push(HEALTH);
    place.list(", budget: {wallClockMs: 900}");
    let trust = place.path("trust.yaml");
    let rule = |max_budget: &str| {
        let host = place.registry.address;
        let text = format!(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules: [{{images: '{host}', unsigned: true, maxBudget: {max_budget}}}]\n"
        );
        fs::write(&trust, text).unwrap();
    };
    rule("{wallClockMs: 500, steps: 20000000}");
    let plugins = place.start(Some(&trust));
    let denied = until(&plugins, |status| refused(status).contains("(BudgetTooLarge)"));
    let part = format!(
        "budget.wallClockMs of 900 is above the maximum of 500, which {} rule \"{}\" sets",
        trust.display(),
        place.registry.address
    );
    assert!(refused(&denied).contains(&part), "no {part:?} in: {denied}");
    assert!(denied.active.is_none() && !denied.held.is_empty(), "{denied}");
    rule("{wallClockMs: 1000}");
    let permitted = until(&plugins, |status| status.active.is_some() && status.refused.is_none());
    // A lower maximum leaves the version in force, and says so.
    rule("{wallClockMs: 899}");
    let kept = until(&plugins, |status| refused(status).contains("(BudgetTooLarge)"));
    assert_eq!(
        (kept.digest, kept.held.len()),
        (permitted.digest, 0),
        "the version before stays"
    );
}
