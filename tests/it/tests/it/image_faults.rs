//! Each fault of a new version, of its registry or of the cache has its name and its remedy in the status of the plugin,
//! and leaves the version before it in force.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use bulkhead_core::call::{Call, HealthCall, Reply};
use bulkhead_core::model::Health;
use bulkhead_core::policy::EngineKind;
use bulkhead_core::time::Time;
use bulkhead_oci::manifest::{Descriptor, Manifest};
use bulkhead_oci::{CacheError, Digest, StoreError};
use bulkhead_plugin::{LoadStage, Plugins};
use serde_json::json;

use crate::image_trust::{Signer, trust};
use crate::images::{HEALTH, HEALTH_AND_CHECK, Place, refused, run, status, until};
use crate::registry::{Authentication, Fault};
use crate::support::root;

const NEXT: &str = "function InterpretHealth(obj) return false end";
const MANIFESTS: &str = "GET /v2/plugins/alive/manifests/";
/// Attempts within an hour with the default pauses: eight of 2 to 256 seconds, then one every five minutes.
const ATTEMPTS_PER_HOUR: usize = 19;
const BLOBS: &str = "GET /v2/plugins/alive/blobs/";

/// A registry with a version in force, and its signers.
struct Case {
    place: Place,
    team: Signer,
    other: Signer,
    first: Digest,
}

impl Case {
    /// Pushes a next version that the team has signed.
    fn signed_next(&self) {
        let digest = self.place.push(NEXT);
        self.team.sign(&self.place, &digest);
    }
}

/// Asks the plugins about the health of an object, as decisions do.
fn health(plugins: &Plugins) -> Health {
    let object = Arc::new(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}));
    let call = Call::Health(HealthCall {
        object: &object,
        now: Time::from_millis(0),
    });
    let policies = plugins.registry().policies();
    let entry = policies.answering(&call).next().expect("the plugin is asked");
    match entry.policy.call(&call) {
        Ok(Reply::Health(verdict)) => verdict.health,
        other => panic!("a decision failed: {other:?}"),
    }
}

/// Breaks the next version, and expects this text in the status while the first version answers.
fn check(name: &str, stage: LoadStage, parts: &[&str], break_it: impl FnOnce(&mut Case)) {
    let mut case = Case {
        place: Place::new(),
        team: Signer::new("team"),
        other: Signer::new("other"),
        first: Digest::of(b""),
    };
    case.first = case.place.push(HEALTH);
    case.team.sign(&case.place, &case.first);
    case.place.list(", movedTag: follow");
    trust(&case.place, &[&case.team], "", "");
    let plugins = case.place.start(Some(&case.place.path("trust.yaml")));
    plugins.refresh();
    let first = status(&plugins);
    assert!(first.active.is_some(), "{name}: {first}");
    break_it(&mut case);
    let broken = until(&plugins, |status| {
        assert_eq!(health(&plugins), Health::Healthy, "{name}");
        parts.iter().all(|part| refused(status).contains(part))
    });
    assert_eq!((broken.digest, broken.stage), (first.digest, stage), "{name}: {broken}");
    assert!(broken.held.is_empty(), "{name}: {broken}");
}

#[test]
fn a_next_version_without_a_valid_signature_is_refused() {
    let verified = LoadStage::Verified;
    check(
        "no signature",
        verified,
        &["it has no signature; `bulkhead plugin sign`"],
        |case| drop(case.place.push(NEXT)),
    );
    let wrong = ["none of its 1 signatures is by team; sign it with that key"];
    check("wrong key", verified, &wrong, |case| {
        let digest = case.place.push(NEXT);
        case.other.sign(&case.place, &digest);
    });
    let parts = ["its signature by team is for another image, sha256:", "; sign this one"];
    check("signature of another digest", verified, &parts, |case| {
        let (client, image) = (case.place.client(), case.place.image());
        let signatures = run(client.signatures(&image, &case.first)).unwrap();
        let next = case.place.push(NEXT);
        run(client.push_signatures(&image, &next, &signatures)).unwrap();
    });
}

#[test]
fn a_next_version_that_is_no_plugin_is_refused() {
    let parts = [
        "its layer has media type \"text/plain\"; a plugin has",
        "(MediaTypeUnknown)",
    ];
    check("wrong media type", LoadStage::Fetched, &parts, |case| {
        let (config, layer) = (
            Descriptor::of("application/json", b"{}"),
            Descriptor::of("text/plain", b"x"),
        );
        let manifest = Manifest::new(config, vec![layer], BTreeMap::new());
        let text = manifest.to_text().into();
        run(case.place.client().push_manifest(&case.place.image(), text)).unwrap();
    });
    let parts = ["imports bulkhead:policy/log@1.0.0", "supports bulkhead:policy@"];
    check("newer contract", LoadStage::Inspected, &parts, |case| {
        let file = root().join("target/guests/deployment-health.wasm");
        let mut code = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let (own, newer) = (b"bulkhead:policy/log@0.1.0", b"bulkhead:policy/log@1.0.0");
        let places: Vec<_> = code
            .windows(own.len())
            .enumerate()
            .filter(|(_, part)| part == own)
            .collect();
        let places: Vec<_> = places.into_iter().map(|(at, _)| at).collect();
        assert!(!places.is_empty());
        for at in places {
            code[at..at + newer.len()].copy_from_slice(newer);
        }
        let digest = case.place.push_artifact(EngineKind::Wasm, &code);
        case.team.sign(&case.place, &digest);
    });
}

#[test]
fn a_failing_registry_leaves_the_version_before_in_force() {
    let of_status = |status: u16, part: &str, reason: &str| {
        let reason = format!("({reason})");
        check(&status.to_string(), LoadStage::Fetched, &[part, &reason], |case| {
            case.signed_next();
            case.place.registry.fail(MANIFESTS, Fault::Status(status), usize::MAX);
        });
    };
    of_status(403, "grant the account access", "RegistryForbidden");
    of_status(404, "check repository, tag and digest", "ImageNotFound");
    of_status(429, "try later", "RegistryTooManyRequests");
    of_status(500, "try later", "RegistryServerError");
    of_status(503, "try later", "RegistryServerError");
    let parts = ["to the auths of the Docker configuration", "(RegistryUnauthorized)"];
    check("401", LoadStage::Fetched, &parts, |case| {
        case.signed_next();
        case.place.registry.require(Authentication::Basic);
    });
    check("down", LoadStage::Fetched, &["(RegistryUnreachable)"], |case| {
        let gone = crate::registry::Registry::start(Authentication::None);
        drop(std::mem::replace(&mut case.place.registry, gone));
    });
    let of_blob = |fault: Fault, part: &str, reason: &str| {
        let reason = format!("({reason})");
        check(&reason.clone(), LoadStage::Fetched, &[part, &reason], |case| {
            case.place.registry.fail(BLOBS, fault, usize::MAX);
            case.signed_next();
        });
    };
    of_blob(Fault::Truncated(3), "the download was cut off: 3 of", "BlobTruncated");
    of_blob(Fault::Changed, "the content has digest", "DigestMismatch");
}

#[test]
fn a_registry_that_is_down_for_an_hour_of_attempts_is_asked_again() {
    let place = Place::new();
    place.push(HEALTH);
    place.list(", movedTag: follow");
    let plugins = place.start(None);
    plugins.refresh();
    let first = status(&plugins);
    assert!(first.active.is_some(), "{first}");
    let asked = place.registry.count(MANIFESTS);
    place.registry.fail(MANIFESTS, Fault::Status(503), ATTEMPTS_PER_HOUR);
    place.push(HEALTH_AND_CHECK);
    let next = until(&plugins, |status| {
        assert_eq!(health(&plugins), Health::Healthy, "{status}");
        status.digest != first.digest && status.refused.is_none()
    });
    assert!(next.held.is_empty(), "{next}");
    assert!(place.registry.count(MANIFESTS) > asked + ATTEMPTS_PER_HOUR, "{asked}");
}

#[test]
fn a_cache_that_cannot_be_written_leaves_the_version_before_in_force() {
    check(
        "cache",
        LoadStage::Fetched,
        &["cannot use the image cache", "(ImageCacheFailed)"],
        |case| {
            let blobs = case.place.path("images/blobs/sha256");
            fs::remove_dir_all(&blobs).unwrap();
            fs::write(&blobs, "").unwrap();
            case.signed_next();
        },
    );
    let full = StoreError::from(CacheError::Full {
        folder: "/images".to_owned(),
    });
    assert_eq!(full.reason(), "ImageCacheFull");
    assert!(
        full.to_string()
            .contains("the disk is full; free space, or name another folder"),
        "{full}"
    );
}
