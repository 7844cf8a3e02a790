//! Images of lists of plugins: pulled in the background, served from the cache, and never worse than before.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use bulkhead_core::manifest::MovedTag;
use bulkhead_core::policy::EngineKind;
use bulkhead_oci::artifact::{Artifact, Metadata};
use bulkhead_oci::signature::SigningKey;
use bulkhead_oci::{Cache, Client, Digest, RegistryImages, SourceOptions, Store};
use bulkhead_plugin::{FoundImage, ImageProblem, Images, LoadStage};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use tempfile::TempDir;

use super::registry::{Authentication, Fault, Registry};
use super::{access, artifact, client, image, run};

/// Time within which everything has happened, unless it never does.
const PATIENCE: Duration = Duration::from_secs(20);

fn start(registry: &Registry, folder: &Path, trust: Option<&str>) -> RegistryImages {
    let client = Client::new(access(registry, "{}")).unwrap();
    let cache = Cache::open(folder.join("images"), Cache::BYTES_MAX).unwrap();
    let trust = trust.map(|text| {
        let path = folder.join("trust.yaml");
        fs::write(
            &path,
            format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules:\n{text}"),
        )
        .unwrap();
        path
    });
    let options = SourceOptions {
        trust,
        trust_objects: None,
        tag_interval: Duration::from_millis(30),
        retry_base: Duration::from_millis(10),
        retry_max: Duration::from_millis(50),
    };
    RegistryImages::start(Store::new(client, cache), options).unwrap()
}

/// Calls `find` each time that the revision changes, until the result is the expected one.
pub(crate) fn until<T>(
    images: &RegistryImages,
    name: &str,
    moved: MovedTag,
    expected: impl Fn(&Result<FoundImage, ImageProblem>) -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        let seen = images.revision();
        let found = images.find(name, moved);
        if let Some(value) = expected(&found) {
            return value;
        }
        while images.revision() == seen {
            assert!(start.elapsed() < PATIENCE, "{name}: {found:?}");
            std::thread::yield_now();
        }
    }
}

fn found(images: &RegistryImages, name: &str) -> FoundImage {
    until(images, name, MovedTag::Refuse, |found| found.clone().ok())
}

fn problem(images: &RegistryImages, name: &str, part: &str) -> ImageProblem {
    until(images, name, MovedTag::Refuse, |found| {
        found
            .as_ref()
            .err()
            .filter(|problem| problem.message.contains(part))
            .cloned()
    })
}

fn pushed(registry: &Registry) -> Digest {
    run(artifact().push(&client(registry), &image(registry))).unwrap()
}

/// Pushes another plugin under the same tag.
fn pushed_another(registry: &Registry) -> Digest {
    let code = "function Score() return {} end".into();
    let another = Artifact::of(EngineKind::Lua, code, &Metadata::default()).unwrap();
    run(another.push(&client(registry), &image(registry))).unwrap()
}

fn prepared() -> (Registry, TempDir) {
    (Registry::start(Authentication::None), tempfile::tempdir().unwrap())
}

#[test]
fn an_image_is_pulled_once_and_needs_no_registry_after_that() {
    let (registry, folder) = prepared();
    let digest = pushed(&registry);
    let names = [
        registry.image("plugins/hold:1"),
        registry.image(&format!("plugins/hold@{digest}")),
    ];
    let images = start(&registry, folder.path(), None);
    for name in &names {
        let image = found(&images, name);
        assert_eq!((image.engine, image.code.as_slice()), (EngineKind::Lua, super::CODE));
        assert_eq!(image.origin, names[1]);
    }
    assert!(!images.is_pending());
    let part = format!(
        "GET /v2/plugins/hold/blobs/{}",
        artifact().manifest.manifest.layers[0].digest
    );
    assert_eq!(registry.count(&part), 1);
    drop(images);
    // The registry is down, and the process starts again.
    registry.fail("", Fault::Status(503), usize::MAX);
    let images = start(&registry, folder.path(), None);
    for name in &names {
        assert!(images.find(name, MovedTag::Refuse).is_ok(), "at once, without a wait");
    }
    let newer = until(&images, &names[0], MovedTag::Refuse, |found| {
        found.as_ref().ok()?.newer.clone()
    });
    assert!(newer.message.contains("RegistryServerError"), "{newer:?}");
    assert_eq!(found(&images, &names[1]).newer, None, "a digest needs no registry");
}

#[test]
fn a_failed_pull_is_named_and_tried_again() {
    let (registry, folder) = prepared();
    let name = registry.image("plugins/hold:1");
    let images = start(&registry, folder.path(), None);
    assert!(images.find(&name, MovedTag::Refuse).is_err());
    problem(&images, &name, "ImageNotFound");
    registry.fail("GET /v2/plugins/hold/blobs/", Fault::Changed, 1);
    pushed(&registry);
    assert_eq!(found(&images, &name).code, super::CODE);
}

#[test]
fn a_moved_tag_is_refused_unless_it_may_move() {
    let (registry, folder) = prepared();
    let first = pushed(&registry);
    let name = registry.image("plugins/hold:1");
    let images = start(&registry, folder.path(), None);
    found(&images, &name);
    let second = pushed_another(&registry);
    let newer = until(&images, &name, MovedTag::Refuse, |found| {
        found.as_ref().ok()?.newer.clone()
    });
    assert_eq!(newer.stage, LoadStage::Verified);
    assert!(
        newer.message.contains(&format!("has moved from {first} to {second}")),
        "{newer:?}"
    );
    assert!(newer.message.contains("TagMoved"), "{newer:?}");
    assert_eq!(found(&images, &name).code, super::CODE, "the first stays in force");
    // After a restart, too.
    drop(images);
    let images = start(&registry, folder.path(), None);
    assert_eq!(images.find(&name, MovedTag::Refuse).unwrap().code, super::CODE);
    until(&images, &name, MovedTag::Refuse, |found| {
        found.as_ref().ok()?.newer.clone()
    });
    let followed = |found: &Result<FoundImage, ImageProblem>| {
        found
            .as_ref()
            .ok()
            .filter(|image| image.origin.ends_with(second.as_str()))
            .cloned()
    };
    let followed = until(&images, &name, MovedTag::Follow, followed);
    assert_eq!(
        (followed.code.as_slice(), followed.newer),
        (&b"function Score() return {} end"[..], None)
    );
}

#[test]
fn only_trusted_images_are_found() {
    let (registry, folder) = prepared();
    let digest = pushed(&registry);
    let name = registry.image("plugins/hold:1");
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let pem = pair.public_key_pem().replace('\n', "\n      ");
    let rule = |prefix: &str| {
        format!("- images: {prefix}\n  kinds: [health]\n  keys:\n  - name: team\n    pem: |\n      {pem}\n")
    };
    let elsewhere = start(&registry, folder.path(), Some(&rule("r.io")));
    let refused = elsewhere.find(&name, MovedTag::Refuse).unwrap_err();
    assert!(refused.message.contains("no rule trusts"), "{refused:?}");
    drop(elsewhere);
    let images = start(&registry, folder.path(), Some(&rule(&registry.address.to_string())));
    let unsigned = problem(&images, &name, "is not trusted: it has no signature");
    assert_eq!(unsigned.stage, LoadStage::Verified);
    let other = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    for (pair, expected) in [(&other, "none of its 1 signatures is by team"), (&pair, "")] {
        let key = SigningKey::parse("key.pem", &pair.serialize_pem()).unwrap();
        let signature = key.sign(&image(&registry), &digest).unwrap();
        run(client(&registry).push_signature(&image(&registry), &digest, signature)).unwrap();
        if !expected.is_empty() {
            problem(&images, &name, expected);
        }
    }
    let trusted = found(&images, &name);
    assert_eq!(trusted.grant.kinds.map(|kinds| kinds.len()), Some(1));
    drop(images);
    // The signature is in the cache, so that the registry may be down.
    registry.fail("", Fault::Status(503), usize::MAX);
    let images = start(&registry, folder.path(), Some(&rule(&registry.address.to_string())));
    assert!(images.find(&name, MovedTag::Refuse).is_ok());
    // A change of the trust file counts at once: this key has not signed.
    let third = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let third = third.public_key_pem().replace('\n', "\n      ");
    let revoked = rule(&registry.address.to_string()).replace(&pem, &third);
    let before = images.revision();
    let text = format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules:\n# revoked\n{revoked}");
    fs::write(folder.path().join("trust.yaml"), text).unwrap();
    assert_ne!(images.revision(), before);
    let revoked = images.find(&name, MovedTag::Refuse).unwrap_err();
    assert!(revoked.message.contains("is not trusted"), "{revoked:?}");
}

#[test]
fn an_unlisted_image_is_forgotten() {
    let (registry, folder) = prepared();
    let images = start(&registry, folder.path(), None);
    let name = registry.image("plugins/hold:1");
    assert!(images.find(&name, MovedTag::Refuse).is_err());
    images.listed("plugins.yaml", std::collections::BTreeSet::new());
    assert!(!images.is_pending());
    let invalid = images.find("hold:1", MovedTag::Refuse).unwrap_err();
    assert!(invalid.message.contains("it has no registry"), "{invalid:?}");
}

/// Text of a trust file with one rule, and revoked digests.
fn rule(registry: &Registry, keys: &[&KeyPair], revoked: &str) -> String {
    let key = |(at, pair): (usize, &&KeyPair)| {
        let pem = pair.public_key_pem().replace('\n', "\\n");
        format!("{{name: key-{at}, pem: \"{pem}\"}}")
    };
    let keys: Vec<_> = keys.iter().enumerate().map(key).collect();
    let keys = keys.join(", ");
    format!(
        "- {{images: '{}', keys: [{keys}]}}\nrevoked: [{revoked}]\n",
        registry.address
    )
}

fn rewrite(folder: &Path, rules: &str) {
    let text = format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules:\n{rules}");
    fs::write(folder.join("trust.yaml"), text).unwrap();
}

fn sign(registry: &Registry, pair: &KeyPair, digest: &Digest) {
    let key = SigningKey::parse("key.pem", &pair.serialize_pem()).unwrap();
    let signature = key.sign(&image(registry), digest).unwrap();
    run(client(registry).push_signature(&image(registry), digest, signature)).unwrap();
}

fn pair() -> KeyPair {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap()
}

#[test]
fn a_version_in_force_is_verified_again_without_the_registry() {
    let (registry, folder) = prepared();
    let digest = pushed(&registry);
    let name = registry.image("plugins/hold:1");
    let (team, other) = (pair(), pair());
    sign(&registry, &team, &digest);
    let images = start(&registry, folder.path(), Some(&rule(&registry, &[&team], "")));
    let in_force = found(&images, &name);
    assert_eq!(in_force.signer.as_deref(), Some("key-0"));
    registry.fail("", Fault::Status(503), usize::MAX);
    // The cache is lost, too.
    for kept in ["blobs/sha256", "references", "signatures"] {
        let path = folder.path().join("images").join(kept);
        fs::remove_dir_all(&path).unwrap();
        fs::create_dir(&path).unwrap();
    }
    let code = bulkhead_core::manifest::Digest::of(std::iter::once(super::CODE));
    let check = |rules: &str, part: Option<&str>| {
        let before = images.revision();
        rewrite(folder.path(), rules);
        assert_ne!(images.revision(), before, "{rules}");
        match (images.verify_again(&in_force.origin, &code), part) {
            (Ok(grant), None) => assert_eq!(grant.kinds, None),
            (Err(problem), Some(part)) => assert!(problem.message.contains(part), "no {part:?} in: {problem:?}"),
            (found, part) => panic!("{found:?}, not {part:?}, for {rules}"),
        }
    };
    check(&rule(&registry, &[&other, &team], ""), None);
    check(
        &rule(&registry, &[&other], ""),
        Some("none of its 1 signatures is by key-0"),
    );
    check("3", Some("none of its 1 signatures is by key-0"));
    check(&rule(&registry, &[&team], ""), None);
    check("a mistake", None);
    let of_manifest = format!("{{digest: '{digest}', reason: CVE-2026-1}}");
    check(
        &rule(&registry, &[&team], &of_manifest),
        Some("it is revoked by digest: CVE-2026-1; list an image that replaces it (ImageRevoked)"),
    );
    let of_code = format!("{{digest: 'sha256:{code}'}}");
    check(
        &rule(&registry, &[&team], &of_code),
        Some("its code is revoked by digest"),
    );
    check("- {images: r.io, unsigned: true}", Some("no rule trusts"));
}

#[test]
fn the_signature_of_a_second_key_is_found_before_the_first_one_leaves() {
    let (registry, folder) = prepared();
    let digest = pushed(&registry);
    let name = registry.image(&format!("plugins/hold@{digest}"));
    let (first, second) = (pair(), pair());
    sign(&registry, &first, &digest);
    let images = start(&registry, folder.path(), Some(&rule(&registry, &[&first, &second], "")));
    assert_eq!(found(&images, &name).signer.as_deref(), Some("key-0"));
    sign(&registry, &second, &digest);
    let cache = Cache::open(folder.path().join("images"), Cache::BYTES_MAX).unwrap();
    let start = Instant::now();
    while cache.signatures(&digest).map_or(0, |known| known.len()) < 2 {
        assert!(start.elapsed() < PATIENCE, "the registry is asked again");
        std::thread::yield_now();
    }
    registry.fail("", Fault::Status(503), usize::MAX);
    rewrite(folder.path(), &rule(&registry, &[&second], ""));
    let replaced = images.find(&name, MovedTag::Refuse).unwrap();
    assert_eq!(replaced.signer.as_deref(), Some("key-0"), "the only key now");
}

#[test]
fn a_trust_file_that_cannot_be_used_is_reported_and_the_rules_before_count() {
    let (registry, folder) = prepared();
    let digest = pushed(&registry);
    let name = registry.image("plugins/hold:1");
    let team = pair();
    sign(&registry, &team, &digest);
    let images = start(&registry, folder.path(), Some(&rule(&registry, &[&team], "")));
    found(&images, &name);
    rewrite(folder.path(), "3");
    let newer = images.find(&name, MovedTag::Refuse).unwrap().newer.unwrap();
    assert_eq!(newer.stage, LoadStage::Verified);
    assert!(
        newer
            .message
            .contains("the rules before stay in force until the file is mended (TrustUnreadable)")
    );
    assert!(newer.message.contains("trust.yaml: "), "{newer:?}");
}
