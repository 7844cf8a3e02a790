//! Trust in images from `PluginTrust` objects: default deny once one exists, withdrawals without a restart, and nothing
//! that a mistake opens.

use std::fs;
use std::sync::Arc;

use bulkhead_core::manifest::trust::object::TrustObject;
use bulkhead_oci::Digest;
use bulkhead_plugin::{LoadStage, Plugins, TrustObjects};
use serde_json::{Value, json};

use crate::image_trust::{Signer, held, is_in_force};
use crate::images::{HEALTH, HEALTH_AND_CHECK, Place, refused, status, until};
use crate::registry::Fault;

fn object(name: &str, spec: Value) -> TrustObject {
    let Value::Object(spec) = spec else {
        panic!("a spec is a map")
    };
    TrustObject {
        name: name.to_owned(),
        generation: 1,
        spec,
    }
}

/// Returns an object whose only rule trusts the images of the registry that one of the signers has signed.
fn signed_by(place: &Place, signers: &[&Signer]) -> TrustObject {
    let keys: Vec<_> = signers.iter().map(|signer| json!({"pem": signer.pem()})).collect();
    object(
        "platform",
        json!({"rules": [{"images": place.registry.address.to_string(), "keys": keys}]}),
    )
}

/// Starts with a plugin, signed or not, whose objects are listed.
fn started(code: &'static str, signer: Option<&Signer>, objects: impl FnOnce(&Place) -> Vec<TrustObject>) -> Started {
    let place = Place::new();
    let digest = place.push(code);
    if let Some(signer) = signer {
        signer.sign(&place, &digest);
    }
    place.list("");
    let trust = Arc::<TrustObjects>::default();
    trust.set(objects(&place));
    let plugins = place.start_with(None, Some(Arc::clone(&trust)));
    plugins.refresh();
    assert!(is_in_force(&status(&plugins)), "{}", status(&plugins));
    Started {
        place,
        digest,
        trust,
        plugins,
    }
}

struct Started {
    place: Place,
    digest: Digest,
    trust: Arc<TrustObjects>,
    plugins: Plugins,
}

impl Started {
    /// Changes the objects, as the watch does, and checks for changes once.
    fn change(&self, objects: Vec<TrustObject>) {
        self.trust.set(objects);
        self.plugins.look();
    }

    /// Checks that the version was taken out of force by the last change, and returns the message.
    fn withdrawn(&self) -> String {
        let status = status(&self.plugins);
        assert!(
            status.active.is_none() && status.stage == LoadStage::Trusted,
            "{status}"
        );
        refused(&status)
    }
}

#[test]
fn an_object_that_appears_denies_an_unsigned_image() {
    let started = started(HEALTH_AND_CHECK, None, |_| Vec::new());
    started.change(vec![object("platform", json!({"rules": []}))]);
    let message = started.withdrawn();
    assert!(
        message.contains("PluginTrust objects: no rule trusts") && message.contains("(TrustWithdrawn)"),
        "{message}"
    );
    assert_eq!(held(&status(&started.plugins)), ["health", "eviction-check"]);
    let team = Signer::new("team");
    team.sign(&started.place, &started.digest);
    started.change(vec![signed_by(&started.place, &[&team])]);
    until(&started.plugins, is_in_force);
}

#[test]
fn the_first_object_leaves_a_signed_image_in_force() {
    let team = Signer::new("team");
    let started = started(HEALTH, Some(&team), |_| Vec::new());
    // Its signatures are in the cache, although no rule needed them.
    started.place.registry.fail("", Fault::Status(503), usize::MAX);
    started.change(vec![signed_by(&started.place, &[&team])]);
    assert!(is_in_force(&status(&started.plugins)), "{}", status(&started.plugins));
}

#[test]
fn a_removed_key_takes_a_plugin_out_of_force_at_once_and_without_the_registry() {
    let (team, other) = (Signer::new("team"), Signer::new("other"));
    let started = started(HEALTH, Some(&team), |place| vec![signed_by(place, &[&team])]);
    started.place.registry.fail("", Fault::Status(503), usize::MAX);
    started.change(vec![signed_by(&started.place, &[&other, &team])]);
    assert!(is_in_force(&status(&started.plugins)));
    started.change(vec![signed_by(&started.place, &[&other])]);
    let message = started.withdrawn();
    assert!(message.contains("none of its 1 signatures is by"), "{message}");
    started.change(vec![signed_by(&started.place, &[&team])]);
    until(&started.plugins, is_in_force);
    let revoked = json!({"rules": [], "revoked": [{"digest": started.digest.to_string(), "reason": "CVE-2026-1"}]});
    started.change(vec![signed_by(&started.place, &[&team]), object("security", revoked)]);
    let message = started.withdrawn();
    assert!(message.contains("is revoked by digest: CVE-2026-1"), "{message}");
}

#[test]
fn an_image_that_the_file_trusts_leaves_when_an_object_revokes_it() {
    let place = Place::new();
    let digest = place.push(HEALTH_AND_CHECK);
    place.list("");
    let file = format!(
        "apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules: [{{images: '{}', unsigned: true}}]\n",
        place.registry.address
    );
    fs::write(place.path("trust.yaml"), file).unwrap();
    let trust = Arc::<TrustObjects>::default();
    let plugins = place.start_with(Some(&place.path("trust.yaml")), Some(Arc::clone(&trust)));
    plugins.refresh();
    assert!(is_in_force(&status(&plugins)), "{}", status(&plugins));
    assert!(trust.is_expected(), "a process decides nothing before the list");
    let started = Started {
        place,
        digest,
        trust,
        plugins,
    };
    let revoked = json!({"rules": [], "revoked": [{"digest": started.digest.to_string()}]});
    started.change(vec![object("security", revoked)]);
    let message = started.withdrawn();
    assert!(message.contains("is revoked by digest"), "{message}");
    assert_eq!(held(&status(&started.plugins)), ["health", "eviction-check"]);
}

#[test]
fn a_restart_without_the_registry_has_the_image_that_an_object_trusts_and_no_revoked_one() {
    let team = Signer::new("team");
    let before = started(HEALTH, Some(&team), |place| vec![signed_by(place, &[&team])]);
    let Started {
        place, digest, plugins, ..
    } = before;
    drop(plugins);
    place.registry.fail("", Fault::Status(503), usize::MAX);
    let start = |objects: Vec<TrustObject>| {
        let trust = Arc::<TrustObjects>::default();
        let plugins = place.start_with(None, Some(Arc::clone(&trust)));
        plugins.refresh();
        assert!(
            refused(&status(&plugins)).contains("(TrustNotListed)"),
            "{}",
            status(&plugins)
        );
        trust.set(objects);
        plugins.refresh();
        status(&plugins)
    };
    let trusted = start(vec![signed_by(&place, &[&team])]);
    assert!(is_in_force(&trusted), "{trusted}");
    let revoked = json!({"rules": [], "revoked": [{"digest": digest.to_string()}]});
    let status = start(vec![signed_by(&place, &[&team]), object("security", revoked)]);
    assert!(
        status.active.is_none() && refused(&status).contains("is revoked by digest"),
        "{status}"
    );
    assert!(!status.held.is_empty(), "{status}");
}

#[test]
fn deleting_the_last_object_accepts_images_again() {
    let started = started(HEALTH, None, |_| Vec::new());
    started.change(vec![object("platform", json!({"rules": []}))]);
    started.withdrawn();
    started.change(Vec::new());
    until(&started.plugins, is_in_force);
}

#[test]
fn a_malformed_object_opens_nothing() {
    let team = Signer::new("team");
    let started = started(HEALTH, Some(&team), |place| vec![signed_by(place, &[&team])]);
    let address = started.place.registry.address.to_string();
    // The longer rule has a mistake, so the shorter one that accepts everything does not count.
    let open = || json!({"images": address, "unsigned": true});
    let narrow = json!({"images": format!("{address}/plugins"), "keys": [{"pem": team.pem()}], "kinds": ["healt"]});
    started.change(vec![object("platform", json!({"rules": [open(), narrow]}))]);
    let message = started.withdrawn();
    assert!(
        message.contains("(TrustRuleInvalid)") && message.contains("spec.rules[1].kinds: unknown variant `healt`"),
        "{message}"
    );
    for spec in [
        json!({}),
        json!({"rules": 3}),
        json!({"rules": [{"unsigned": true}]}),
        json!({"rules": [{"images": address, "keys": [{"pem": "x"}]}]}),
    ] {
        let shown = spec.to_string();
        started.change(vec![object("platform", spec)]);
        started.plugins.refresh();
        assert!(
            !is_in_force(&status(&started.plugins)),
            "{shown}: {}",
            status(&started.plugins)
        );
    }
    started.change(vec![object("platform", json!({"rules": [open()]}))]);
    until(&started.plugins, is_in_force);
}

#[test]
fn an_image_is_held_until_the_objects_are_listed() {
    let place = Place::new();
    place.push(HEALTH_AND_CHECK);
    place.list("");
    let trust = Arc::<TrustObjects>::default();
    let plugins = place.start_with(None, Some(Arc::clone(&trust)));
    plugins.refresh();
    let waiting = status(&plugins);
    assert!(
        waiting.active.is_none() && !waiting.held.is_empty() && refused(&waiting).contains("(TrustNotListed)"),
        "{waiting}"
    );
    assert!(trust.is_expected());
    trust.set(Vec::new());
    plugins.refresh();
    assert!(is_in_force(&status(&plugins)), "{}", status(&plugins));
}
