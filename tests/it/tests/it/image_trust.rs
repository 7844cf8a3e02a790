//! Trust in the images of plugins that are in force: a withdrawal needs no restart and no registry, takes the plugin out
//! of force by rule, and ends when the trust returns.

use std::fs;

use bulkhead_core::policy::{Capability, SignedImage};
use bulkhead_oci::signature::SigningKey;
use bulkhead_oci::{Cache, Digest};
use bulkhead_plugin::{LoadStage, PluginStatus, Plugins};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};

use crate::images::{HEALTH, HEALTH_AND_CHECK, Place, refused, run, status, until};
use crate::registry::Fault;

/// Key of a signer.
pub(crate) struct Signer {
    name: &'static str,
    pair: KeyPair,
}

impl Signer {
    pub(crate) fn new(name: &'static str) -> Self {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        Self { name, pair }
    }

    pub(crate) fn sign(&self, place: &Place, digest: &Digest) {
        let key = SigningKey::parse("key.pem", &self.pair.serialize_pem()).unwrap();
        let signature = key.sign(&place.image(), digest).unwrap();
        run(place.client().push_signature(&place.image(), digest, signature)).unwrap();
    }

    /// Returns the public key in PEM.
    pub(crate) fn pem(&self) -> String {
        self.pair.public_key_pem()
    }

    fn key(&self) -> String {
        let pem = self.pem().replace('\n', "\\n");
        format!("{{name: {}, pem: \"{pem}\"}}", self.name)
    }
}

/// Writes a trust file with one rule for the registry.
pub(crate) fn trust(place: &Place, signers: &[&Signer], rest: &str, revoked: &str) {
    let keys: Vec<_> = signers.iter().map(|signer| signer.key()).collect();
    let rule = format!(
        "{{images: '{}', keys: [{}]{rest}}}",
        place.registry.address,
        keys.join(", ")
    );
    let text = format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules: [{rule}]\nrevoked: [{revoked}]\n");
    fs::write(place.path("trust.yaml"), text).unwrap();
}

/// Starts with a plugin that the key `team` has signed. From then on the registry is down.
fn started(code: &'static str, rest: &str) -> (Place, Signer, Digest, Plugins) {
    let (place, team) = (Place::new(), Signer::new("team"));
    let digest = place.push(code);
    team.sign(&place, &digest);
    place.list("");
    trust(&place, &[&team], rest, "");
    let plugins = place.start(Some(&place.path("trust.yaml")));
    plugins.refresh();
    assert!(is_in_force(&status(&plugins)), "{}", status(&plugins));
    place.registry.fail("", Fault::Status(503), usize::MAX);
    (place, team, digest, plugins)
}

pub(crate) fn is_in_force(status: &PluginStatus) -> bool {
    status.active.is_some() && status.held.is_empty()
}

pub(crate) fn held(status: &PluginStatus) -> Vec<&str> {
    status.held.iter().map(|kind| kind.as_str()).collect()
}

fn withdrawn(plugins: &Plugins, part: &str) -> PluginStatus {
    let found = until(plugins, |status| status.active.is_none());
    assert_eq!(found.stage, LoadStage::Trusted, "{found}");
    let message = refused(&found);
    assert!(
        message.contains(part) && message.contains("(TrustWithdrawn)"),
        "no {part:?} in: {message}"
    );
    found
}

#[test]
fn a_revoked_key_takes_a_plugin_out_of_force_until_its_trust_returns() {
    let (place, team, digest, plugins) = started(HEALTH_AND_CHECK, "");
    let signed = SignedImage {
        reference: place.image().with_digest(digest).to_string(),
        signer: Some("team".to_owned()),
    };
    assert_eq!(status(&plugins).image.as_ref(), Some(&signed));
    let policies = plugins.registry().policies();
    let recorded = policies
        .entries()
        .iter()
        .find_map(|entry| entry.policy.build()?.image.clone());
    assert_eq!(recorded, Some(signed), "decisions record image and signer");
    let other = Signer::new("other");
    trust(&place, &[&other], "", "");
    let gone = withdrawn(&plugins, "none of its 1 signatures is by other");
    // It holds where it could hold, also when the catalog is read again.
    assert_eq!(held(&gone), ["health", "eviction-check"], "{gone}");
    place.list(", weight: 2");
    for _ in 0..3 {
        plugins.refresh();
    }
    let later = status(&plugins);
    assert_eq!(
        (held(&later), later.stage),
        (vec!["health", "eviction-check"], LoadStage::Trusted),
        "{later}"
    );
    let placeholder = plugins.registry().policies();
    let covers = |one: &Capability| {
        placeholder
            .entries()
            .iter()
            .any(|entry| entry.policy.capabilities().contains(one))
    };
    assert!(covers(&Capability::any(bulkhead_core::call::CallKind::EvictionCheck)));
    trust(&place, &[&other, &team], "", "");
    let returned = until(&plugins, is_in_force);
    assert_eq!(returned.image.and_then(|image| image.signer).as_deref(), Some("team"));
}

#[test]
fn a_revoked_digest_takes_a_plugin_out_of_force_and_is_refused_after_a_restart() {
    let (place, team, digest, plugins) = started(HEALTH, "");
    trust(
        &place,
        &[&team],
        "",
        &format!("{{digest: '{digest}', reason: CVE-2026-1}}"),
    );
    let gone = withdrawn(
        &plugins,
        "is revoked by digest: CVE-2026-1; list an image that replaces it",
    );
    assert_eq!(held(&gone), ["health"]);
    drop(plugins);
    let restarted = place.start(Some(&place.path("trust.yaml")));
    restarted.refresh();
    let refused_again = status(&restarted);
    assert!(refused(&refused_again).contains("(ImageRevoked)"), "{refused_again}");
    assert!(
        refused_again.active.is_none() && !refused_again.held.is_empty(),
        "{refused_again}"
    );
    // The digest of the code is that which decisions record.
    let code = Digest::of(HEALTH.as_bytes());
    trust(&place, &[&team], "", "");
    let back = until(&restarted, is_in_force);
    assert_eq!(
        back.digest.map(|digest| digest.to_string()).as_deref(),
        Some(code.hex())
    );
    trust(&place, &[&team], "", &format!("{{digest: '{code}'}}"));
    withdrawn(&restarted, "its code is revoked by digest");
}

#[test]
fn a_withdrawal_counts_while_the_list_cannot_be_read() {
    let (place, _, _, plugins) = started(HEALTH, "");
    fs::write(place.path("plugins/plugins.yaml"), "plugins: 3").unwrap();
    plugins.refresh();
    assert!(plugins.list_error().is_some() && is_in_force(&status(&plugins)));
    trust(&place, &[&Signer::new("other")], "", "");
    assert_eq!(held(&withdrawn(&plugins, "is by other")), ["health"]);
}

#[test]
fn a_narrower_rule_takes_a_plugin_out_of_force_that_answers_more() {
    let (place, team, _, plugins) = started(HEALTH_AND_CHECK, "");
    trust(&place, &[&team], ", kinds: [health]", "");
    let gone = until(&plugins, |status| status.active.is_none());
    assert_eq!(held(&gone), ["health"], "it may not hold evictions either: {gone}");
    assert!(refused(&gone).contains("it answers eviction-check calls"), "{gone}");
}

#[test]
fn a_mistake_in_the_trust_file_changes_nothing() {
    let (place, team, _, plugins) = started(HEALTH, "");
    for broken in ["rules: 3", ""] {
        fs::write(place.path("trust.yaml"), broken).unwrap();
        let kept = until(&plugins, |status| refused(status).contains("(TrustUnreadable)"));
        assert!(is_in_force(&kept), "{kept}");
    }
    fs::remove_file(place.path("trust.yaml")).unwrap();
    let kept = until(&plugins, |status| {
        refused(status).contains("cannot read the trust file")
    });
    assert!(is_in_force(&kept), "{kept}");
    trust(&place, &[&team], "", "");
    let mended = until(&plugins, |status| !refused(status).contains("(TrustUnreadable)"));
    assert!(is_in_force(&mended), "{mended}");
}

#[test]
fn a_cache_that_is_emptied_takes_nothing_out_of_force() {
    let (place, team, _, plugins) = started(HEALTH, "");
    for folder in ["blobs/sha256", "references", "signatures"] {
        let path = place.path("images").join(folder);
        fs::remove_dir_all(&path).unwrap();
        fs::create_dir(&path).unwrap();
    }
    let another = Signer::new("another");
    trust(&place, &[&team, &another], "", "");
    let kept = until(&plugins, |status| refused(status).contains("RegistryServerError"));
    assert!(is_in_force(&kept), "{kept}");
    trust(&place, &[&another], "", "");
    withdrawn(&plugins, "none of its 1 signatures is by another");
}

#[test]
fn a_key_is_replaced_without_a_gap() {
    let (place, team) = (Place::new(), Signer::new("team"));
    let digest = place.push(HEALTH);
    team.sign(&place, &digest);
    place.list("");
    let path = place.path("trust.yaml");
    let next = Signer::new("next");
    trust(&place, &[&team, &next], "", "");
    let plugins = place.start(Some(&path));
    plugins.refresh();
    assert!(is_in_force(&status(&plugins)));
    // The signature of the second key is found although the first one is enough.
    next.sign(&place, &digest);
    let cache = Cache::open(place.path("images"), Cache::BYTES_MAX).unwrap();
    let start = std::time::Instant::now();
    while cache.signatures(&digest).map_or(0, |known| known.len()) < 2 {
        assert!(start.elapsed() < std::time::Duration::from_secs(30));
        std::thread::yield_now();
    }
    place.registry.fail("", Fault::Status(503), usize::MAX);
    trust(&place, &[&next], "", "");
    let replaced = until(&plugins, |status| {
        assert!(is_in_force(status), "{status}");
        status
            .image
            .as_ref()
            .is_some_and(|image| image.signer.as_deref() == Some("next"))
    });
    assert!(is_in_force(&replaced));
}
