//! Trust in the images of active versions: a withdrawal takes them out of force, and nothing else does.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard};

use bulkhead_core::call::{CallKind, HealthCall};
use bulkhead_core::combine;
use bulkhead_core::manifest::{BudgetLimits, Digest, MovedTag, Tenancy};
use bulkhead_core::model::Health;
use bulkhead_core::policy::EngineKind;
use bulkhead_core::time::Time;
use bulkhead_plugin::{
    Directory, FoundImage, Grant, ImageProblem, Images, LIST, LoadStage, Loading, PluginStatus, Plugins,
};
use serde_json::json;

use crate::activation::{health, list, registry};

/// Images with the code of the newest one as version.
struct Shelf(Mutex<State>);

struct State {
    revision: u64,
    newest: &'static str,
    /// Versions that are not trusted.
    withdrawn: Vec<&'static str>,
    grant: Grant,
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        state.revision += 1;
        change(&mut state);
    }

    fn check(&self, image: &str) -> Result<Grant, ImageProblem> {
        let state = self.lock();
        if state.withdrawn.iter().any(|version| image.ends_with(version)) {
            return Err(ImageProblem {
                stage: LoadStage::Verified,
                message: format!("{image} is not trusted"),
            });
        }
        Ok(state.grant.clone())
    }
}

impl Images for Shelf {
    fn revision(&self) -> u64 {
        self.lock().revision
    }

    fn is_pending(&self) -> bool {
        false
    }

    fn listed(&self, _: &str, _: BTreeSet<String>) {}

    fn find(&self, _: &str, _: MovedTag) -> Result<FoundImage, ImageProblem> {
        let newest = self.lock().newest;
        let origin = format!("r.io/a@{newest}");
        Ok(FoundImage {
            engine: EngineKind::Wasm,
            grant: self.check(&origin)?,
            origin,
            code: newest.as_bytes().to_vec(),
            signer: Some("team".to_owned()),
            newer: None,
        })
    }

    fn grant(&self, _: &str) -> Grant {
        self.lock().grant.clone()
    }

    fn verify_again(&self, image: &str, code: &Digest) -> Result<Grant, ImageProblem> {
        assert!(
            ["healthy", "unhealthy"]
                .iter()
                .any(|one| Digest::of(std::iter::once(one.as_bytes())) == *code)
        );
        self.check(image)
    }
}

/// Starts with an image of a healthy version.
fn started() -> (tempfile::TempDir, Arc<Shelf>, Plugins) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(LIST), list("- {name: a, image: 'r.io/a:1'}\n")).unwrap();
    let shelf = Arc::new(Shelf(Mutex::new(State {
        revision: 0,
        newest: "unhealthy",
        withdrawn: Vec::new(),
        grant: Grant::default(),
    })));
    let images: Arc<dyn Images> = Arc::clone(&shelf) as Arc<dyn Images>;
    let directory = Directory::new(folder.path()).with_images(images);
    let plugins = Plugins::new(registry(), Box::new(directory), Loading::default());
    plugins.refresh();
    assert_eq!(
        (health(&plugins), stage(&plugins)),
        (Health::Unhealthy, LoadStage::Active)
    );
    (folder, shelf, plugins)
}

fn status(plugins: &Plugins) -> PluginStatus {
    plugins.status().remove(0)
}

fn stage(plugins: &Plugins) -> LoadStage {
    status(plugins).stage
}

#[test]
fn a_withdrawn_version_leaves_and_its_calls_are_faults_until_the_trust_returns() {
    let (folder, shelf, plugins) = started();
    let image = status(&plugins).image.unwrap();
    assert_eq!(image.to_string(), "r.io/a@unhealthy, signed by team");
    shelf.change(|state| state.withdrawn = vec!["unhealthy"]);
    for _ in 0..2 {
        plugins.refresh();
        let left = status(&plugins);
        assert_eq!(
            (left.stage, left.active, left.held),
            (LoadStage::Trusted, None, vec![CallKind::Health])
        );
        let message = left.refused.unwrap().to_string();
        assert_eq!(
            message,
            "r.io/a@unhealthy failed to stay trusted: r.io/a@unhealthy is not trusted; the version in force was taken \
             out of force (TrustWithdrawn)"
        );
        assert_eq!(health(&plugins), Health::Unknown);
        // Its calls stay known when the list is read again.
        fs::write(
            folder.path().join(LIST),
            list("- {name: a, image: 'r.io/a:1', weight: 2}\n"),
        )
        .unwrap();
    }
    shelf.change(|state| state.withdrawn.clear());
    plugins.refresh();
    assert_eq!(
        (health(&plugins), stage(&plugins)),
        (Health::Unhealthy, LoadStage::Active)
    );
    // A withdrawal counts while the list cannot be read.
    fs::write(folder.path().join(LIST), "plugins: 3").unwrap();
    shelf.change(|state| state.withdrawn = vec!["unhealthy"]);
    plugins.refresh();
    assert!(plugins.list_error().is_some());
    assert_eq!(
        (health(&plugins), stage(&plugins)),
        (Health::Unknown, LoadStage::Trusted)
    );
}

#[test]
fn a_next_version_that_is_not_trusted_leaves_the_one_before_in_force() {
    let (_folder, shelf, plugins) = started();
    shelf.change(|state| (state.newest, state.withdrawn) = ("@healthy", vec!["@healthy"]));
    plugins.refresh();
    let kept = status(&plugins);
    assert_eq!((health(&plugins), kept.stage), (Health::Unhealthy, LoadStage::Verified));
    assert!(kept.active.is_some() && kept.held.is_empty(), "{kept}");
}

#[test]
fn a_version_leaves_that_answers_more_than_it_may() {
    let (_folder, shelf, plugins) = started();
    shelf.change(|state| state.grant.kinds = Some(BTreeSet::from([CallKind::EvictionCheck])));
    plugins.refresh();
    let left = status(&plugins);
    assert!(
        left.active.is_none() && left.held.is_empty(),
        "it may not hold either: {left}"
    );
    let message = left.refused.unwrap().message;
    assert!(
        message.contains("it answers health calls, and the rule that trusts its image permits eviction-check"),
        "{message}"
    );
    shelf.change(|state| state.grant.kinds = Some(BTreeSet::from([CallKind::Health])));
    plugins.refresh();
    assert_eq!(
        (health(&plugins), stage(&plugins)),
        (Health::Unhealthy, LoadStage::Active)
    );
}

#[test]
fn a_budget_above_the_maximum_is_refused_and_the_version_before_stays() {
    let (folder, shelf, plugins) = started();
    let refusal = |plugins: &Plugins| {
        let kept = status(plugins);
        assert_eq!((health(plugins), kept.stage), (Health::Unhealthy, LoadStage::Verified));
        assert!(kept.active.is_some() && kept.held.is_empty(), "{kept}");
        kept.refused.unwrap().message
    };
    // A lower maximum takes nothing out of force.
    shelf.change(|state| {
        state.grant = Grant {
            rule: "trust.yaml rule \"r.io\"".to_owned(),
            max_budget: BudgetLimits {
                steps: Some(1_000),
                ..BudgetLimits::default()
            },
            ..Grant::default()
        };
    });
    plugins.refresh();
    let expected = "its budget.steps of 10000000 is above the maximum of 1000, which trust.yaml rule \"r.io\" sets; \
                    lower the budget of the plugin, or raise maxBudget.steps of the rule (BudgetTooLarge)";
    assert_eq!(refusal(&plugins), expected);
    // A version that asks for more than the maximum does not replace the one in force.
    shelf.change(|state| state.newest = "healthy");
    plugins.refresh();
    assert_eq!(refusal(&plugins), expected);
    let with = |steps: u32| {
        let plugin = format!("- {{name: a, image: 'r.io/a:1', budget: {{steps: {steps}}}}}\n");
        fs::write(folder.path().join(LIST), list(&plugin)).unwrap();
    };
    with(1_001);
    plugins.refresh();
    assert!(refusal(&plugins).starts_with("its budget.steps of 1001 is above the maximum of 1000"));
    with(1_000);
    plugins.refresh();
    assert_eq!(
        (health(&plugins), stage(&plugins)),
        (Health::Healthy, LoadStage::Active)
    );
}

/// Returns the health of an object in a namespace.
fn health_in(plugins: &Plugins, namespace: &str) -> Health {
    let object = Arc::new(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace}}));
    let call = HealthCall {
        object: &object,
        now: Time::from_millis(0),
    };
    combine::health(&plugins.registry().policies(), call).health
}

#[test]
fn a_plugin_of_a_tenant_is_asked_about_its_namespaces_only() {
    let (_folder, shelf, plugins) = started();
    let of = |namespace: &str| Tenancy {
        namespaces: vec![namespace.to_owned().try_into().unwrap()],
    };
    let health = |plugins: &Plugins| ["a", "b"].map(|namespace| health_in(plugins, namespace));
    assert_eq!(health(&plugins), [Health::Unhealthy, Health::Unhealthy]);
    // The limit counts at once, before the version is loaded again.
    shelf.change(|state| state.grant.tenancy = Some(of("a")));
    plugins.look();
    assert_eq!(health(&plugins), [Health::Unhealthy, Health::Healthy]);
    plugins.refresh();
    assert_eq!(stage(&plugins), LoadStage::Active);
    assert_eq!(health(&plugins), [Health::Unhealthy, Health::Healthy]);
    // The faults of a version that is not trusted any more stay in the namespaces.
    shelf.change(|state| state.withdrawn = vec!["unhealthy"]);
    plugins.refresh();
    assert_eq!(health(&plugins), [Health::Unknown, Health::Healthy]);
    shelf.change(|state| (state.grant.tenancy, state.withdrawn) = (None, Vec::new()));
    plugins.refresh();
    assert_eq!(health(&plugins), [Health::Unhealthy, Health::Unhealthy]);
}

#[test]
fn a_scope_that_calls_lack_is_refused() {
    let (folder, _shelf, plugins) = started();
    let with = |scope: &str| {
        let plugin = format!("- {{name: a, image: 'r.io/a:1', scope: {scope}}}\n");
        fs::write(folder.path().join(LIST), list(&plugin)).unwrap();
        plugins.refresh();
    };
    with("{clusters: [member1]}");
    let refused = status(&plugins).refused.unwrap();
    assert_eq!(refused.stage, LoadStage::Active);
    assert!(
        refused.message.contains("scope.clusters cannot select health calls"),
        "{refused}"
    );
    with("{namespaces: [a], kinds: [{apiVersion: v1, kind: Pod}]}");
    assert_eq!(status(&plugins).refused, None);
    assert_eq!(
        ["a", "b"].map(|name| health_in(&plugins, name)),
        [Health::Unhealthy, Health::Healthy]
    );
}
