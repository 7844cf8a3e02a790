//! Mirrors are asked first, verified like the registry, and never in its way.

use bulkhead_core::manifest::MovedTag;
use bulkhead_oci::artifact::layer;
use bulkhead_oci::signature::SigningKey;
use bulkhead_oci::{Access, Cache, Client, Mirrors, RegistryImages, SourceOptions, Store};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};

use super::registry::{Authentication, Fault, Registry};
use super::{CODE, access, artifact, client, image, run};

/// Repository of the mirrors.
const AT_MIRROR: &str = "copies/plugins/hold";

/// A registry and two mirrors, all with the plugin.
struct Place {
    registry: Registry,
    mirrors: [Registry; 2],
}

impl Place {
    fn new() -> Self {
        let start = || Registry::start(Authentication::None);
        let place = Self {
            registry: start(),
            mirrors: [start(), start()],
        };
        run(artifact().push(&client(&place.registry), &image(&place.registry))).unwrap();
        for mirror in &place.mirrors {
            let copy = mirror.image(&format!("{AT_MIRROR}:1")).parse().unwrap();
            run(artifact().push(&client(mirror), &copy)).unwrap();
        }
        place
    }

    fn access(&self, resolve_tags: bool) -> Access {
        let mut access = access(&self.registry, "{}");
        let of = |mirror: &Registry| {
            let text = format!("{}/plugins={}/copies/plugins", self.registry.address, mirror.address);
            text.parse().unwrap()
        };
        access.mirrors = Mirrors {
            all: self.mirrors.iter().map(of).collect(),
            resolve_tags,
        };
        let hosts = self.mirrors.iter().map(|mirror| mirror.address.to_string());
        access.plain_http.extend(hosts);
        access
    }

    /// Pulls manifest and code under the digest, and returns the message of an error.
    fn pull(&self, client: &Client) -> Result<(), String> {
        let pinned = image(&self.registry).with_digest(artifact().manifest.digest);
        run(async {
            let pulled = client.manifest(&pinned).await?;
            let (_, code) = layer(&pulled.manifest).unwrap();
            let code = client.blob(&pinned, code).await?;
            assert_eq!(code, CODE);
            Ok(())
        })
        .map_err(|error: bulkhead_oci::RegistryError| error.to_string())
    }

    /// Returns the numbers of reads of the registry and of the mirrors.
    fn reads(&self) -> [usize; 3] {
        [&self.registry, &self.mirrors[0], &self.mirrors[1]].map(|one| one.count("GET /v2/"))
    }
}

#[test]
fn the_first_mirror_that_has_the_digest_answers() {
    let place = Place::new();
    let client = Client::new(place.access(false)).unwrap();
    let before = place.reads();
    let check = |expected: [usize; 3]| {
        let seen = place.reads();
        assert_eq!([0, 1, 2].map(|at| seen[at] - before[at]), expected);
    };
    place.pull(&client).unwrap();
    check([0, 2, 0]);
    // The first one is down, and then it changes the content.
    place.mirrors[0].fail("", Fault::Status(503), 2);
    place.pull(&client).unwrap();
    check([0, 4, 2]);
    place.mirrors[0].fail("", Fault::Changed, 2);
    place.pull(&client).unwrap();
    check([0, 6, 4]);
    for mirror in &place.mirrors {
        mirror.fail("", Fault::Status(404), usize::MAX);
    }
    place.pull(&client).unwrap();
    check([2, 8, 6]);
}

#[test]
fn a_tag_is_resolved_at_mirrors_only_if_they_resolve_tags() {
    let place = Place::new();
    let image = image(&place.registry);
    for (resolve_tags, expected) in [(false, [1, 0, 0]), (true, [0, 1, 0])] {
        let client = Client::new(place.access(resolve_tags)).unwrap();
        let before = place.reads();
        let digest = run(client.manifest(&image)).unwrap().digest;
        assert_eq!(digest, artifact().manifest.digest);
        let seen = place.reads();
        assert_eq!([0, 1, 2].map(|at| seen[at] - before[at]), expected, "{resolve_tags}");
    }
}

#[test]
fn the_error_names_every_mirror_and_its_cause() {
    let place = Place::new();
    let client = Client::new(place.access(false)).unwrap();
    for (registry, status) in [
        (&place.mirrors[0], 503),
        (&place.mirrors[1], 403),
        (&place.registry, 404),
    ] {
        registry.fail("", Fault::Status(status), usize::MAX);
    }
    let message = place.pull(&client).unwrap_err();
    let [first, second] = place.mirrors.each_ref().map(|mirror| mirror.image(AT_MIRROR));
    for part in [
        format!("cannot pull {}@sha256:", place.registry.image("plugins/hold")),
        ": the registry does not have it (404)".to_owned(),
        format!("; its mirror {first} failed, too: the registry has failed (503)"),
        format!("; its mirror {second} failed, too: the credentials do not permit it (403)"),
        "(RegistryServerError)".to_owned(),
        "(RegistryForbidden)".to_owned(),
    ] {
        assert!(message.contains(&part), "no {part:?} in: {message}");
    }
}

#[test]
fn a_push_goes_to_the_registry() {
    let place = Place::new();
    let client = Client::new(place.access(true)).unwrap();
    let before = place.mirrors.each_ref().map(|mirror| mirror.count(""));
    run(artifact().push(&client, &image(&place.registry))).unwrap();
    assert_eq!(place.mirrors.each_ref().map(|mirror| mirror.count("")), before);
}

#[test]
fn a_mirror_without_a_signature_hides_none_of_the_registry() {
    let place = Place::new();
    let (image, digest) = (image(&place.registry), artifact().manifest.digest);
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let key = SigningKey::parse("key.pem", &pair.serialize_pem()).unwrap();
    let signature = key.sign(&image, &digest).unwrap();
    run(client(&place.registry).push_signature(&image, &digest, signature.clone())).unwrap();
    let client = Client::new(place.access(false)).unwrap();
    let signatures = || run(client.signatures(&image, &digest));
    assert_eq!(signatures().unwrap(), std::slice::from_ref(&signature));
    place.mirrors[0].fail("", Fault::Status(503), usize::MAX);
    assert_eq!(signatures().unwrap(), [signature]);
    // Without an answer of the registry, no signature is unknown rather than missing.
    place.registry.fail("", Fault::Status(503), usize::MAX);
    let message = signatures().unwrap_err().to_string();
    let mirror = place.mirrors[0].image(AT_MIRROR);
    assert!(
        message.contains(&format!("its mirror {mirror} failed, too")),
        "{message}"
    );
}

#[test]
fn a_plugin_is_trusted_with_the_signature_of_a_mirror_while_the_registry_is_down() {
    let place = Place::new();
    let digest = artifact().manifest.digest;
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let key = SigningKey::parse("key.pem", &pair.serialize_pem()).unwrap();
    let copy = place.mirrors[1].image(&format!("{AT_MIRROR}:1")).parse().unwrap();
    let signature = key.sign(&copy, &digest).unwrap();
    run(client(&place.mirrors[1]).push_signature(&copy, &digest, signature)).unwrap();
    place.registry.fail("", Fault::Status(503), usize::MAX);
    let folder = tempfile::tempdir().unwrap();
    let (trust, pem) = (
        folder.path().join("trust.yaml"),
        pair.public_key_pem().replace('\n', "\\n"),
    );
    // The rule is for the name of the image, not for that of the mirror.
    let rule = format!("{{images: '{}', keys: [{{pem: \"{pem}\"}}]}}", place.registry.address);
    let text = format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules: [{rule}]\n");
    std::fs::write(&trust, text).unwrap();
    let cache = Cache::open(folder.path().join("images"), Cache::BYTES_MAX).unwrap();
    let store = Store::new(Client::new(place.access(false)).unwrap(), cache);
    let options = SourceOptions {
        trust: Some(trust),
        ..SourceOptions::default()
    };
    let images = RegistryImages::start(store, options).unwrap();
    let name = place.registry.image(&format!("plugins/hold@{digest}"));
    let found = super::source::until(&images, &name, MovedTag::Refuse, |found| found.clone().ok());
    assert_eq!((found.code.as_slice(), found.origin), (CODE, name));
    drop(images);
}
